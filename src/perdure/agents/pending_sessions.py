"""Sessions that wait to be captured: a hook notes one, and a background process captures it.

A note is a small file, so that a hook ends quickly; what a killed process left is captured by the
next. `perdure.agents.capture` is that process, which hooks do not load.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from perdure.agents.hook_log import (
    CAPTURE_EVENTS,
    CAPTURED,
    WARNED,
    HookRun,
    hooks_folder,
    last_run,
    record_run,
    runs_of,
    session_digest,
    session_file,
)
from perdure.dataclass import asdict, dataclass, field
from perdure.errors import StorageError
from perdure.files import locked, write_whole

PROMPT = "user-prompt-submit"
HOUR, DAY = 3600.0, 86_400.0
MOST = 1_000
"""At most this many notes are read at a time."""
_MISSED_SESSIONS = 2
"""One session without an end may have been killed; several mean that capture stopped."""
_CHECK_AGAIN_SECONDS = 1.0
_RUN = """import os
os.closerange(3, 4096)
os.chdir("/")
from perdure.agents.hooks import run
run(["drain"])"""


@dataclass(frozen=True, slots=True)
class PendingSession:
    agent: str
    session_id: str
    transcript: str
    cwd: str = ""
    """Where the agent works, for a transcript that does not name its folder."""
    event: str = ""
    allowed: str = ""
    """Not empty if the run itself allowed its contribution (`PERDURE_CONTRIBUTE=1`)."""
    mark: str = field(default_factory=lambda: os.urandom(16).hex())
    """Distinguishes this note from a later one of the same session."""


class PendingSessions:
    """The notes in a home. Any number of processes may use them at once."""

    def __init__(self, home: Path) -> None:
        self._folder = hooks_folder(home) / "pending"

    def add(self, session: PendingSession) -> None:
        """Write the note of a session, which replaces an earlier one."""
        write_whole(self._path(session), json.dumps(asdict(session)).encode())

    def __iter__(self) -> Iterator[PendingSession]:
        """Yield the oldest first; ignores files that are not notes."""
        for path in sorted(self._files(), key=_modified)[:MOST]:
            session = _read(path)
            if session is not None:
                yield session

    def __bool__(self) -> bool:
        return any(True for _ in self._files())

    def done(self, session: PendingSession) -> None:
        """Remove a note, unless a newer one has replaced it.

        A hook may write a new note between the check and the removal. So the file is renamed first,
        and renamed back if it is a newer one.
        """
        path = self._path(session)
        aside = path.with_name(f".{path.stem}.{os.urandom(16).hex()}")
        with suppress(FileNotFoundError):
            path.replace(aside)
            if _read(aside) == session or path.exists():
                aside.unlink()
            else:
                aside.replace(path)

    def times(self) -> list[float]:
        """Return when each note was written, in seconds since 1970."""
        return [_modified(path)[0] for path in self._files()]

    def is_older(self, session: PendingSession, seconds: float) -> bool:
        try:
            return self._path(session).stat().st_mtime < time.time() - seconds
        except OSError:
            return False

    def _files(self) -> Iterator[Path]:
        with suppress(OSError):
            for entry in os.scandir(self._folder):
                if entry.name.endswith(".json") and not entry.name.startswith("."):
                    yield Path(entry.path)

    def _path(self, session: PendingSession) -> Path:
        return session_file(self._folder, session.agent, session.session_id)


def _read(path: Path) -> PendingSession | None:
    try:
        session = PendingSession(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    return session if all(isinstance(each, str) for each in asdict(session).values()) else None


def _modified(path: Path) -> tuple[float, str]:
    try:
        return path.stat().st_mtime, path.name
    except OSError:
        return 0.0, path.name


# ---------------------------------------------------------------- the background process
@contextmanager
def capture_lock(home: Path) -> Iterator[bool]:
    """Take the lock of the capturing process; yields False if another process has it."""
    with locked(hooks_folder(home) / "lock") as descriptor:
        yield descriptor is not None


def start_draining(home: Path, environ: Mapping[str, str]) -> None:
    """Start the background process, unless one is running.

    A running one looks for notes again after it releases the lock, so it finds earlier notes.
    """
    with capture_lock(home) as is_free:
        if not is_free:
            return
    null = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0)
    files = (null, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2))
    # `subprocess` takes 3 ms to load. The process has its own session: it may outlive the agent.
    os.posix_spawn(
        sys.executable, [sys.executable, "-c", _RUN], environ, file_actions=files, setsid=True
    )


def start_checking(home: Path, environ: Mapping[str, str]) -> None:
    """Start the background process to record edits made outside Perdure.

    Does nothing if one was started within a second, or if the owner disabled the check.
    """
    from perdure.config import load_config

    if not load_config(environ).check_seconds:
        return
    mark = hooks_folder(home) / "checking"
    with suppress(OSError, StorageError):  # on a read-only disk, nothing can be recorded
        if 0 <= time.time() - _modified(mark)[0] < _CHECK_AGAIN_SECONDS:
            return
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark.touch(mode=0o600)
        start_draining(home, environ)


# ---------------------------------------------------------------- whether capture works
def stopped_capture(home: Path, agent: str, session: str = "") -> str:
    """Return what stopped the capture of an agent's sessions, and since when; empty if it works.

    Capture stopped if notes have waited for over an hour, or if several sessions had prompts but
    no end, and no session was captured since the first of them.
    """
    waiting = [each for each in PendingSessions(home).times() if time.time() - each > HOUR]
    if waiting:
        number = f"{len(waiting)} session{'s' if len(waiting) > 1 else ''}"
        return f"{number} could not be captured since {_minute(min(waiting))}"
    captured, prompted = last_run(home, agent, CAPTURED), last_run(home, agent, PROMPT)
    if prompted <= captured + HOUR:  # the usual case
        return ""
    ended = {run.session for event in CAPTURE_EVENTS for run in runs_of(home, agent, event)}
    ended.add(session_digest(session))
    first: dict[str, float] = {}
    for run in runs_of(home, agent, PROMPT):
        if captured < run.time < time.time() - HOUR and run.session not in ended:
            first.setdefault(run.session, run.time)
    if len(first) < _MISSED_SESSIONS:
        return ""
    since = _minute(min(first.values()))
    return f"no session of {agent} was captured since {since}: its stop hook did not run"


def capture_warning(home: Path, agent: str, session: str) -> str:
    """Return a line for a starting session if capture stopped; at most once a day."""
    if time.time() - last_run(home, agent, WARNED) < DAY:
        return ""
    stopped = stopped_capture(home, agent, session)
    if not stopped:
        return ""
    record_run(home, agent, WARNED, HookRun(session_digest(session)))
    return f"Memory: {stopped}. The user can run `perdure doctor --agents` to see why."


def _minute(then: float) -> str:
    return datetime.fromtimestamp(then, UTC).strftime("%Y-%m-%d %H:%M UTC")
