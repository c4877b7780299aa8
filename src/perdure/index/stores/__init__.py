"""Where records are kept: in a file for each account, or in memory for tests and short lives."""

from typing import TYPE_CHECKING

from perdure.exports import exports

if TYPE_CHECKING:
    from perdure.index.stores.memory import MemoryIndex
    from perdure.index.stores.sqlite import SqliteIndex
else:
    __getattr__ = exports(
        __name__,
        {
            "memory": "MemoryIndex",
            "sqlite": "SqliteIndex",
        },
    )

__all__ = ["MemoryIndex", "SqliteIndex"]
