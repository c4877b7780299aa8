"""Events on their way to the index."""

from typing import TYPE_CHECKING

from perdure.exports import exports

if TYPE_CHECKING:
    from perdure.context.outbox.drafts import MAX_SIBLINGS, Siblings
    from perdure.context.outbox.moments import Clock
    from perdure.context.outbox.retry import MAX_RETRY, backoff, fail
    from perdure.context.outbox.sqlite import SqliteOutbox
else:
    __getattr__ = exports(
        __name__,
        {
            "drafts": "MAX_SIBLINGS Siblings",
            "moments": "Clock",
            "retry": "MAX_RETRY backoff fail",
            "sqlite": "SqliteOutbox",
        },
    )

__all__ = [
    "MAX_RETRY",
    "MAX_SIBLINGS",
    "Clock",
    "Siblings",
    "SqliteOutbox",
    "backoff",
    "fail",
]
