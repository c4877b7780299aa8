"""Where records are kept: in a file for each account."""

from perdure.index.stores.sqlite import SqliteIndex

__all__ = ["SqliteIndex"]
