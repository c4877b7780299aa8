"""Where records are kept: in a file for each account, or in memory for tests and short lives."""

from holdfast.index.stores.memory import MemoryIndex
from holdfast.index.stores.sqlite import SqliteIndex

__all__ = ["MemoryIndex", "SqliteIndex"]
