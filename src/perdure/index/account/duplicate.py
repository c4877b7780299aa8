"""A second index of an account, to be changed on its own: the file, and its copies of vectors.

One that is made is in nobody's way: it gets its name last, when it is what that name promises.
"""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from perdure.index.account.changes import last_change
from perdure.index.account.copies import finished_copies
from perdure.index.account.file import AccountFile


def duplicate(file: AccountFile, target: Path) -> None:
    """Write the file of an account, as it is at one moment, where no file is."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.touch(mode=0o600, exist_ok=False)
    with file.reading() as db, closing(sqlite3.connect(target, isolation_level=None)) as fresh:
        last_change(db, file.account)
        for setting in ("journal_mode = OFF", "synchronous = OFF"):
            fresh.execute(f"PRAGMA {setting}")
        db.backup(fresh)
    _link_copies(file.path, target)


def publish(made: Path, target: Path) -> bool:
    """Give a file that nobody has open a second name, when it is on the disk.

    False if somebody has that name already, or left a log there: nothing is put in its place.
    """
    _sync(made)
    if any(Path(f"{path}-wal").exists() for path in (made, target)):
        return False
    try:
        os.link(made, target)
    except OSError:
        return False
    _link_copies(made, target)
    return True


def _link_copies(database: Path, target: Path) -> None:
    """Let the other file have the same copies; none is ever changed, so they can be shared."""
    for copy in finished_copies(database):
        with suppress(OSError):  # then it is made again when it is needed
            os.link(copy, target.with_name(copy.name))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
