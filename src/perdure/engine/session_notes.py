"""Notes of hooks about a running session: whether it is private, and the sources of its words.

One file per session, named by a hash of its id, with one JSON object per line. A line is one
append, so hooks of one session can run at the same time. The files have no words: a project is a
hash of its folder, and typed sentences are hashes. The file of a session that was ever private is
never removed, because its transcript may be imported at any time later.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from perdure.dataclass import dataclass, field
from perdure.model.trust import ORIGINS, PrivacySwitch

_SUFFIX = ".jsonl"
_RETENTION_SECONDS = 14 * 24 * 3600.0
_RECENT_SECONDS = 12 * 3600.0
"""How long an agent may repeat the words of a page after it was read."""
_MOST_BYTES = 1 << 20


@dataclass(slots=True)
class SessionNote:
    place: str = ""
    switches: list[PrivacySwitch] = field(default_factory=list)
    origins: dict[str, float] = field(default_factory=dict)
    """For each source, when it was first noted."""
    typed: set[str] = field(default_factory=set)
    headless: bool = False
    ended: bool = False

    @property
    def is_private(self) -> bool:
        return bool(self.switches) and self.switches[-1].is_on


class SessionNotes:
    def __init__(self, home: Path) -> None:
        self._folder = home / "hooks" / "sessions"

    def get(self, session_id: str) -> SessionNote:
        return _read(self._path(session_id))

    def switches(self, *session_ids: str) -> tuple[PrivacySwitch, ...]:
        """Return when a session, which may have several ids, became private or public."""
        return tuple(each for id_ in {*session_ids} if id_ for each in self.get(id_).switches)

    def switch(self, session_id: str, *, is_on: bool) -> None:
        """Make a session private or public; durable when this returns."""
        self._add(self._path(session_id), {"private": is_on}, durable=True)

    def switch_newest(self, folder: str, *, is_on: bool) -> bool:
        """Make the newest session of a folder private or public; return whether there is one."""
        path = self._newest(place_of(folder))
        if path is not None:
            self._add(path, {"private": is_on}, durable=True)
        return path is not None

    def newest(self, folder: str) -> SessionNote | None:
        """Return the note of the newest session of a folder; None if there is none."""
        path = self._newest(place_of(folder))
        return None if path is None else _read(path)

    def enter(self, session_id: str, folder: str, *, is_headless: bool = False) -> None:
        """Record the folder of a session, and that it is the newest one there."""
        path, place = self._path(session_id), place_of(folder)
        note = _read(path)
        if note.place != place or note.ended or is_headless > note.headless:
            self._add(path, {"place": place, "ended": False, "headless": is_headless})
        with suppress(OSError):
            os.utime(path)

    def leave(self, session_id: str) -> None:
        """Record that a session ended; it may continue later."""
        path = self._path(session_id)
        if path.exists():
            self._add(path, {"ended": True})

    def mark(self, session_id: str, *origins: str, typed: Iterable[str] = ()) -> None:
        """Record sources of the words of a session, and hashes of typed sentences."""
        path = self._path(session_id)
        known = _read(path)
        lists = {
            "origins": sorted({*origins} - known.origins.keys()),
            "typed": sorted({*typed} - known.typed),
        }
        line = {name: value for name, value in lists.items() if value}
        if line:
            self._add(path, line)

    def recent(self, folder: str) -> list[SessionNote]:
        """Return the notes of the sessions of a folder in the last hours, the newest last."""
        place, since = place_of(folder), time.time() - _RECENT_SECONDS
        files = sorted((when, path) for path, when in self._files() if when >= since)
        return [note for _, path in files if (note := _read(path)).place == place]

    # ------------------------------------------------------------ files
    def _path(self, session_id: str) -> Path:
        return (
            self._folder
            / f"{sha256(session_id.encode(errors='replace')).hexdigest()[:32]}{_SUFFIX}"
        )

    def _newest(self, place: str) -> Path | None:
        newest = sorted(self._files(), key=lambda each: -each[1])
        return next((path for path, _ in newest if _read(path).place == place), None)

    def _files(self) -> Iterator[tuple[Path, float]]:
        with suppress(OSError):
            for entry in os.scandir(self._folder):
                if entry.name.endswith(_SUFFIX):
                    yield Path(entry.path), entry.stat().st_mtime

    def _add(self, path: Path, line: Mapping[str, object], *, durable: bool = False) -> None:
        is_new = not path.exists()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if durable or os.fstat(descriptor).st_size < _MOST_BYTES:
                record = json.dumps({"time": time.time(), **line})
                os.write(descriptor, f"\n{record}\n".encode())  # the line before may be incomplete
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if is_new:
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        for path, when in self._files():
            if when < time.time() - _RETENTION_SECONDS and not _read(path).switches:
                path.unlink(missing_ok=True)


def place_of(folder: str) -> str:
    path = Path(os.path.realpath(folder or "/"))
    tops = (each for each in (path, *path.parents) if (each / ".git").exists())
    return sha256(bytes(next(tops, path))).hexdigest()[:16]


def _read(path: Path) -> SessionNote:
    note = SessionNote()
    with suppress(OSError):
        for line in path.read_bytes().splitlines():
            with suppress(ValueError, TypeError, KeyError, OverflowError):
                _take(note, json.loads(line))
    return note


def _take(note: SessionNote, line: Mapping[str, object]) -> None:
    when = float(str(line["time"]))
    if isinstance(line.get("place"), str):
        note.place = str(line["place"])
    note.ended = line.get("ended", note.ended) is True
    note.headless = line.get("headless", note.headless) is True
    if isinstance(line.get("private"), bool):
        note.switches.append(
            PrivacySwitch(datetime.fromtimestamp(when, UTC), line["private"] is True)
        )
    for name in _texts(line.get("origins")):
        if name in ORIGINS:
            note.origins[name] = when
    note.typed.update(_texts(line.get("typed")))


def _texts(value: object) -> Iterator[str]:
    yield from map(str, value if isinstance(value, list) else ())
