"""How hooks ran: one line for each run, in a bounded file for each agent and event."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from perdure.files import append_line, read_lines

MOST_BYTES = 64 * 1024
"""Of one of the two files of an agent and an event: some five hundred runs, and never fewer of
one event because another comes more often."""
KEEPING = frozenset({"pre-compact", "stop", "session-end"})
"""The events at which a session is to be kept."""
KEPT = "kept"
WARNED = "warned"
"""The event of a session whose user was notified that capture stopped."""
_LONGEST_LINE = 1_024
_LONGEST_AGENT = 40
_FOLDER = ("hooks", "runs")


class Run(NamedTuple):
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
        run = Run(session_digest(self.session), cpu, wall, self.bytes, late)
        record_run(*self._where, run)


def session_digest(session_id: str) -> str:
    """Return what stands for a session in the records of runs; empty for none."""
    return sha256(session_id.encode(errors="replace")).hexdigest()[:16] if session_id else ""


def record_run(home: Path, agent: str, event: str, run: Run) -> None:
    """Record a run; without a home, or on a disk that can't be written, nothing is."""
    if not home.is_dir():
        return
    fields = run._asdict()
    fields["time"] = run.time or round(time.time(), 3)
    line = json.dumps(fields, separators=(",", ":")).encode()
    with suppress(OSError):
        append_line(_path(home, agent, event), line, MOST_BYTES)


def runs_of(home: Path, agent: str, event: str) -> list[Run]:
    return list(_read(read_lines(_path(home, agent, event))))


def last_run(home: Path, agent: str, event: str) -> float:
    """Return when an event of an agent was last recorded, in seconds since 1970; 0 if never."""
    with suppress(OSError), _path(home, agent, event).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST_LINE))
        return max((run.time for run in _read(file.read().splitlines())), default=0.0)
    return 0.0


def _read(lines: list[bytes]) -> Iterator[Run]:
    for line in lines:
        with suppress(ValueError, TypeError, RecursionError):
            run = Run(**json.loads(line))
            float(run.time + run.cpu + run.wall + run.bytes)
            yield run


def _path(home: Path, agent: str, event: str) -> Path:
    is_plain = agent.replace("-", "").isalnum() and agent.isascii()
    named = agent if is_plain and len(agent) <= _LONGEST_AGENT else "other"
    return home.joinpath(*_FOLDER, f"{named}.{event}")
