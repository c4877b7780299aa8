"""Sessions that are to be kept: noted at once, and kept by whoever comes to it.

A note is a small file, so that a hook is done in a moment, and whatever is killed later is done by
the next.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from perdure.engine.whole_file import write_whole
from perdure.surfaces.hooks.trouble import folder_of

MOST = 1_000
"""More notes than that are not looked at in one go."""
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A session of an agent that memory should know of."""

    agent: str
    session_id: str
    transcript: str
    mark: str = field(default_factory=lambda: uuid4().hex)
    """Tells this note from a later one of the same session."""


class Pending:
    """The notes in a home. Any number of processes may use them at once."""

    def __init__(self, home: Path) -> None:
        self._folder = folder_of(home) / "pending"

    def add(self, waiting: Waiting) -> None:
        """Note a session; it is there when this returns, once for each session."""
        write_whole(self._path(waiting), json.dumps(asdict(waiting)).encode())

    def __iter__(self) -> Iterator[Waiting]:
        """Yield what waits, the oldest first; what is no note is left alone."""
        for path in sorted(self._files(), key=_age)[:MOST]:
            waiting = _read(path)
            if waiting is not None:
                yield waiting

    def __bool__(self) -> bool:
        return any(True for _ in self._files())

    def done(self, waiting: Waiting) -> None:
        """Take a note away, unless somebody wrote another in its place since.

        Between the look and the removal a hook may note the session once more. So it is taken
        aside first, and put back if it is not the one that was meant.
        """
        path = self._path(waiting)
        aside = path.with_name(f".{path.stem}.{uuid4().hex}")
        with suppress(FileNotFoundError):
            path.replace(aside)
            if _read(aside) == waiting or path.exists():
                aside.unlink()
            else:
                aside.replace(path)

    def is_older(self, waiting: Waiting, seconds: float) -> bool:
        """Whether a note has been there for so long."""
        try:
            return self._path(waiting).stat().st_mtime < time.time() - seconds
        except OSError:
            return False

    def _files(self) -> Iterator[Path]:
        with suppress(OSError):
            for entry in os.scandir(self._folder):
                if entry.name.endswith(_SUFFIX) and not entry.name.startswith("."):
                    yield Path(entry.path)

    def _path(self, waiting: Waiting) -> Path:
        named = json.dumps([waiting.agent, waiting.session_id])
        return self._folder / (sha256(named.encode()).hexdigest()[:32] + _SUFFIX)


def _read(path: Path) -> Waiting | None:
    try:
        waiting = Waiting(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    return waiting if all(isinstance(each, str) for each in asdict(waiting).values()) else None


def _age(path: Path) -> tuple[float, str]:
    try:
        return path.stat().st_mtime, path.name
    except OSError:
        return 0.0, path.name
