"""Events on their way to the index."""

from typing import TYPE_CHECKING

from perdure.exports import exports

if TYPE_CHECKING:
    from perdure.context.outbox.events import (
        MAX_RETRY,
        MAX_SIBLINGS,
        Clock,
        Siblings,
        backoff,
        fail,
    )
    from perdure.context.outbox.sqlite import SqliteOutbox
else:
    __getattr__ = exports(
        __name__,
        {
            "events": "Clock MAX_RETRY MAX_SIBLINGS Siblings backoff fail",
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
