"""What a session was shown: nothing is injected into it twice until its context is compacted."""

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from perdure.dataclass import dataclass
from perdure.engine.emissions import key_of
from perdure.errors import StorageError
from perdure.files import append_line, read_lines, write_whole

_MOST = 2_000
_KEPT_SECONDS = 14 * 24 * 3600.0
_HINT_SECONDS = 180.0
"""At most one hint in this time."""


@dataclass(slots=True)
class AnswerSource:
    """Whose memory a moment was answered from, and up to which position of the log."""

    account: str = ""
    user: str = ""
    project: str = ""
    position: int = 0
    behind: bool = False
    """Whether edits made outside Perdure were not looked for, as a hint of the answer has it."""


class ShownTexts:
    """The keys of what one session was shown, in a small file. If it is lost, it is empty."""

    def __init__(self, folder: Path, agent: str, session_id: str) -> None:
        self._path = session_file(folder, agent, session_id)
        self._keys: list[str] = []
        self._hinted = 0.0
        self._prompts = 0
        self.has_briefing = False
        with suppress(OSError, ValueError, TypeError, KeyError):
            data = json.loads(self._path.read_bytes())
            self._keys, self._hinted = [str(key) for key in data["keys"]], float(data["hinted"])
            self._prompts = int(data["prompts"])
            self.has_briefing = bool(data["briefed"])

    def __contains__(self, key: str) -> bool:
        return key_of(key) in self._keys

    def add(self, keys: Iterable[str]) -> None:
        new = [key_of(key) for key in keys]
        if new:
            self._keys = [*self._keys, *new][-_MOST:]
            self._write()

    def brief(self, keys: Iterable[str]) -> None:
        """Note a briefing, if it says anything; all before it is gone from the context."""
        self._keys, self._prompts = [key_of(key) for key in keys], 0
        self.has_briefing = bool(self._keys)
        self._write()

    def prompted(self) -> int:
        """Count one more prompt of the session; return how many there were before."""
        self._prompts += 1
        self._write()
        return self._prompts - 1

    def may_hint(self, words: str) -> bool:
        """Return whether a hint may be given now; if so, note that it was."""
        now = time.time()
        if words in self or now - self._hinted < _HINT_SECONDS:
            return False
        self._hinted = now
        self.add([words])
        return True

    def _write(self) -> None:
        data: dict[str, object] = {"keys": self._keys, "hinted": self._hinted}
        data |= {"prompts": self._prompts, "briefed": self.has_briefing}
        with suppress(OSError, StorageError):  # on a read-only disk it is shown again
            write_whole(self._path, json.dumps(data).encode())
            for other in self._path.parent.iterdir():
                if other.stat().st_mtime < time.time() - _KEPT_SECONDS:
                    other.unlink()


def session_file(folder: Path, agent: str, session_id: str) -> Path:
    """Return the file that is about one session of an agent, whatever its id is made of."""
    named = json.dumps([agent, session_id])
    return folder / (sha256(named.encode()).hexdigest()[:32] + ".json")


RUNS_BYTES = 64 * 1024
"""Of one of the two files of an agent and an event: some five hundred runs, and never fewer of
one event because another comes more often."""
CAPTURE_EVENTS = frozenset({"pre-compact", "stop", "session-end"})
"""The events at which a session is to be kept."""
CAPTURED = "kept"
WARNED = "warned"
"""The event of a session whose user was notified that capture stopped."""
_LONGEST_LINE = 1_024
_LONGEST_AGENT = 40
_FOLDER = ("hooks", "runs")


class HookRun(NamedTuple):
    session: str = ""
    """The digest of the session's id: of a private session, not even its id is kept."""
    cpu: float = 0.0
    """Milliseconds that the process used, from its start."""
    wall: float = 0.0
    """Milliseconds from the call to the answer, without the start of Python."""
    bytes: int = 0
    late: bool = False
    """Whether it was ended before it answered, because it took too long."""
    time: float = 0.0
    """Seconds since 1970; when it is recorded, if not given."""

    @property
    def when(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)


class Stopwatch:
    """Times one run of a hook, and records it when it ends; only the first end counts."""

    def __init__(self, home: Path, agent: str, event: str) -> None:
        self._where = home, agent, event
        self._began = time.monotonic()
        self._is_over = False
        self.session = ""
        self.bytes = 0

    def end(self, *, late: bool = False) -> None:
        if self._is_over:
            return
        self._is_over = True
        cpu = round(time.process_time() * 1000, 1)
        wall = round((time.monotonic() - self._began) * 1000, 1)
        run = HookRun(session_digest(self.session), cpu, wall, self.bytes, late)
        record_run(*self._where, run)


def session_digest(session_id: str) -> str:
    """Return what stands for a session in the records of runs; empty for none."""
    return sha256(session_id.encode(errors="replace")).hexdigest()[:16] if session_id else ""


def record_run(home: Path, agent: str, event: str, run: HookRun) -> None:
    """Record a run; without a home, or on a disk that can't be written, nothing is."""
    if not home.is_dir():
        return
    fields = run._asdict()
    fields["time"] = run.time or round(time.time(), 3)
    line = json.dumps(fields, separators=(",", ":")).encode()
    with suppress(OSError):
        append_line(_path(home, agent, event), line, RUNS_BYTES)


def runs_of(home: Path, agent: str, event: str) -> list[HookRun]:
    return list(_read(read_lines(_path(home, agent, event))))


def last_run(home: Path, agent: str, event: str) -> float:
    """Return when an event of an agent was last recorded, in seconds since 1970; 0 if never."""
    with suppress(OSError), _path(home, agent, event).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST_LINE))
        return max((run.time for run in _read(file.read().splitlines())), default=0.0)
    return 0.0


def _read(lines: list[bytes]) -> Iterator[HookRun]:
    for line in lines:
        with suppress(ValueError, TypeError, RecursionError):
            run = HookRun(**json.loads(line))
            float(run.time + run.cpu + run.wall + run.bytes)
            yield run


def _path(home: Path, agent: str, event: str) -> Path:
    is_plain = agent.replace("-", "").isalnum() and agent.isascii()
    named = agent if is_plain and len(agent) <= _LONGEST_AGENT else "other"
    return home.joinpath(*_FOLDER, f"{named}.{event}")
