"""Events on their way to the index: kept in a file, or in memory for tests and short lives."""

from typing import TYPE_CHECKING

from holdfast.exports import exports

if TYPE_CHECKING:
    from holdfast.context.outbox.drafts import MAX_SIBLINGS, Siblings
    from holdfast.context.outbox.memory import MemoryOutbox
    from holdfast.context.outbox.moments import Clock
    from holdfast.context.outbox.retry import MAX_RETRY, backoff, fail
    from holdfast.context.outbox.sqlite import SqliteOutbox
else:
    __getattr__ = exports(
        __name__,
        {
            "drafts": "MAX_SIBLINGS Siblings",
            "memory": "MemoryOutbox",
            "moments": "Clock",
            "retry": "MAX_RETRY backoff fail",
            "sqlite": "SqliteOutbox",
        },
    )

__all__ = [
    "MAX_RETRY",
    "MAX_SIBLINGS",
    "Clock",
    "MemoryOutbox",
    "Siblings",
    "SqliteOutbox",
    "backoff",
    "fail",
]
