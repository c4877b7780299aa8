"""What is being erased, written down from before the first step until after the last."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from perdure.engine.erasing.scope import Span
from perdure.engine.whole_file import write_whole
from perdure.errors import DamageError

_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Task:
    """An erasure that was begun. It holds names, and no text."""

    id: str
    account_id: str
    owner_space: str
    """Whose everything goes; empty if it is about places."""
    owners: tuple[str, ...]
    """Whose derived things may tell of it."""
    uris: tuple[str, ...]
    spans: tuple[Span, ...]
    actor: str
    reason: str
    begun: int
    """The position of the log."""


class Tasks:
    """The erasures that are under way, each in a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, task: Task) -> None:
        write_whole(self._path(task.id), json.dumps(asdict(task), indent=1).encode())

    def end(self, task: Task) -> None:
        with suppress(FileNotFoundError):
            self._path(task.id).unlink()
        with suppress(OSError):  # others are under way
            self._folder.rmdir()

    def begun(self) -> list[Task]:
        """Return what was begun and not ended, the oldest first."""
        found = sorted(self._folder.glob(f"*{_SUFFIX}"))
        return sorted(map(_read, found), key=lambda task: task.begun)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{_SUFFIX}"


def _read(path: Path) -> Task:
    try:
        said = json.loads(path.read_bytes())
        spans = said.pop("spans")
        said |= {name: tuple(said[name]) for name in ("uris", "owners")}
        return Task(spans=tuple(Span(**each) for each in spans), **said)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise DamageError(
            f"{str(path)!a} does not say what is being erased: {error}. "
            "Fix: remove it, and erase again what was to be erased."
        ) from error
