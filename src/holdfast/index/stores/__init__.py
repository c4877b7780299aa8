"""Where records are kept: in a file for each account, or in memory for tests and short lives."""

from typing import TYPE_CHECKING

from holdfast.exports import exports

if TYPE_CHECKING:
    from holdfast.index.stores.memory import MemoryIndex
    from holdfast.index.stores.sqlite import SqliteIndex
else:
    __getattr__ = exports(
        __name__,
        {
            "memory": "MemoryIndex",
            "sqlite": "SqliteIndex",
        },
    )

__all__ = ["MemoryIndex", "SqliteIndex"]
