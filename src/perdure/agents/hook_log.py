"""What hooks record in the home: what each session was shown, how each hook ran, and errors.

All files are small or bounded. If one is lost, texts are shown again and runs are not counted.
"""

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
from perdure.model.values import shortened, visible

RUNS_BYTES = 64 * 1024
"""The size of each of the two files per agent and event: about five hundred runs. Events have
files of their own, so that a frequent one does not displace the others."""
ERRORS_BYTES = 256 * 1024
CAPTURE_EVENTS = frozenset({"pre-compact", "stop", "session-end"})
"""The events at which a session is captured."""
CAPTURED = "kept"
"""Recorded when a session was captured."""
WARNED = "warned"
"""Recorded when a session was warned that capture stopped."""
_LINE_BYTES = 1_024
_ERROR_CHARACTERS = 1_000
_AGENT_CHARACTERS = 40
_SHOWN_KEYS = 2_000
_SHOWN_SECONDS = 14 * 24 * 3600.0
_HINT_SECONDS = 180.0
"""At most one hint in this time."""


def hooks_folder(home: Path) -> Path:
    return home / "hooks"


def session_file(folder: Path, agent: str, session_id: str) -> Path:
    """Return the file for one session of an agent; any session id gives a valid name."""
    named = json.dumps([agent, session_id])
    return folder / (sha256(named.encode()).hexdigest()[:32] + ".json")


def log_error(home: Path, message: str) -> None:
    """Append a line to the log of errors, which no agent sees; a failure to write is ignored."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    line = f"{now} {visible(shortened(' '.join(message.split()), _ERROR_CHARACTERS))}"
    with suppress(OSError):
        append_line(
            hooks_folder(home) / "log", line.encode(errors="backslashreplace"), ERRORS_BYTES
        )


# ---------------------------------------------------------------- what a session was shown
@dataclass(slots=True)
class AnswerSource:
    """Whose memory a hook answered from, and up to which position of the log."""

    account: str = ""
    user: str = ""
    project: str = ""
    position: int = 0
    behind: bool = False
    """Whether the answer has a hint that edits made outside Perdure were not checked."""


class ShownTexts:
    """The keys of the texts that one session was shown since its context was last compacted.

    Texts with another `prefix` are separate.
    """

    def __init__(self, folder: Path, agent: str, session_id: str, prefix: str = "") -> None:
        self._prefix = prefix
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

    def __contains__(self, text: object) -> bool:
        return key_of(f"{self._prefix}{text}") in self._keys

    def add(self, texts: Iterable[str]) -> None:
        new = [key_of(f"{self._prefix}{text}") for text in texts]
        if new:
            self._keys = [*self._keys, *new][-_SHOWN_KEYS:]
            self._write()

    def brief(self, texts: Iterable[str]) -> None:
        """Record a briefing; what was shown before is no longer in the context."""
        self._keys, self._prompts = [key_of(text) for text in texts], 0
        self.has_briefing = bool(self._keys)
        self._write()

    def prompted(self) -> int:
        """Count a prompt of the session; return how many there were before."""
        self._prompts += 1
        self._write()
        return self._prompts - 1

    def may_hint(self, words: str) -> bool:
        """Return whether a hint may be given now, and record it if so."""
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
                if other.stat().st_mtime < time.time() - _SHOWN_SECONDS:
                    other.unlink()


# ---------------------------------------------------------------- how hooks ran
class HookRun(NamedTuple):
    session: str = ""
    """The digest of the session's id, which is not stored: the session may be private."""
    cpu: float = 0.0
    """Milliseconds of CPU that the process used since its start."""
    wall: float = 0.0
    """Milliseconds from the call to the answer, without the start of Python."""
    bytes: int = 0
    late: bool = False
    """Whether the deadline ended it before it answered."""
    time: float = 0.0
    """Seconds since 1970; the default is when it is recorded."""

    @property
    def when(self) -> datetime:
        return datetime.fromtimestamp(self.time, UTC)


class Stopwatch:
    """Times one run of a hook, and records it at the first `end`."""

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
    """Return the digest that identifies a session among runs; empty for an empty id."""
    return sha256(session_id.encode(errors="replace")).hexdigest()[:16] if session_id else ""


def record_run(home: Path, agent: str, event: str, run: HookRun) -> None:
    """Record a run; does nothing without a home, or on a read-only disk."""
    if not home.is_dir():
        return
    fields = run._asdict()
    fields["time"] = run.time or round(time.time(), 3)
    line = json.dumps(fields, separators=(",", ":")).encode()
    with suppress(OSError):
        append_line(_runs_file(home, agent, event), line, RUNS_BYTES)


def runs_of(home: Path, agent: str, event: str) -> list[HookRun]:
    return list(_parse_runs(read_lines(_runs_file(home, agent, event))))


def last_run(home: Path, agent: str, event: str) -> float:
    """Return when an event of an agent was last recorded, in seconds since 1970; 0 if never."""
    with suppress(OSError), _runs_file(home, agent, event).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LINE_BYTES))
        return max((run.time for run in _parse_runs(file.read().splitlines())), default=0.0)
    return 0.0


def _parse_runs(lines: list[bytes]) -> Iterator[HookRun]:
    for line in lines:
        with suppress(ValueError, TypeError, RecursionError):
            run = HookRun(**json.loads(line))
            float(run.time + run.cpu + run.wall + run.bytes)
            yield run


def _runs_file(home: Path, agent: str, event: str) -> Path:
    is_plain = agent.replace("-", "").isalnum() and agent.isascii()
    named = agent if is_plain and len(agent) <= _AGENT_CHARACTERS else "other"
    return hooks_folder(home) / "runs" / f"{named}.{event}"
