"""The files beside an account's database that are copies of its vectors: where, and away."""

import re
import time
from pathlib import Path

SUFFIX = ".vectors"
UNFINISHED = ".unfinished"
_AN_HOUR = 3600


def copy_of(database: Path, dimension: int) -> Path:
    return database.with_name(f"{database.stem}.{dimension}{SUFFIX}")


def remove_copies(database: Path) -> None:
    """Remove all copies of a database, also those that somebody is about to finish."""
    for path in copies(database):
        path.unlink(missing_ok=True)


def remove_unfinished(database: Path) -> None:
    """Remove what somebody began to write and never finished."""
    for path in copies(database):
        if path.suffix == UNFINISHED and _age(path) > _AN_HOUR:
            path.unlink(missing_ok=True)


def finished_copies(database: Path) -> list[Path]:
    return [path for path in copies(database) if path.suffix == SUFFIX]


def copies(database: Path) -> list[Path]:
    """Return the copies of this database, and not those of one whose name begins like its own."""
    name = re.compile(
        rf"{re.escape(database.stem)}\.\d+{re.escape(SUFFIX)}(\.[0-9a-f]+{re.escape(UNFINISHED)})?"
    )
    if not database.parent.is_dir():
        return []
    return [path for path in database.parent.iterdir() if name.fullmatch(path.name)]


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0
