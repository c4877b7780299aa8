"""Sessions that are to be kept: noted by a hook, and kept by one process at a time.

A note is a small file, so that a hook is done in a moment, and what is killed later is done by the
next. What goes wrong is in a log of bounded size, because nobody reads what hooks print.
"""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.agents.runs import (
    KEEPING,
    KEPT,
    WARNED,
    Run,
    last_run,
    record_run,
    runs_of,
    session_digest,
)
from perdure.agents.shown import session_file
from perdure.dataclass import asdict, dataclass, field, replace
from perdure.errors import (
    AbsentError,
    ForgottenError,
    InvalidValueError,
    LockTimeout,
    NodeExistsError,
    PerdureError,
    StorageError,
    VersionMismatchError,
)
from perdure.files import append_line, write_whole
from perdure.files import locked as locked_file
from perdure.model.values import shortened, visible

if TYPE_CHECKING:
    from perdure.app import Context
    from perdure.engine.emissions import Emitted
    from perdure.engine.sessions import SessionEnd
    from perdure.transfer.admission import Admission, AdmittedSession
    from perdure.transfer.contract import ImportFinding, ImportItem, Resumable, SessionItem
    from perdure.transfer.items import SessionImporter

PROMPT = "user-prompt-submit"
HOUR, DAY = 3600.0, 86_400.0
_FEWEST_SESSIONS = 2
"""One session without an end may have been killed; several that nothing was kept of were not."""
MOST = 1_000
"""More notes than that are not looked at in one go."""
_SUFFIX = ".json"
MOST_LOG_BYTES = 256 * 1024
_LONGEST_LINE = 1_000
_MOST_BRANCHES = 20
_GIT_SECONDS = 1.0
_MOST_FOLDERS = 8
_GIVEN_UP_SECONDS = 7 * 24 * 3600.0
FINISHED_AFTER = timedelta(minutes=30)
_CHECK_AGAIN_SECONDS = 1.0
_RUN = """import os
os.closerange(3, 4096)
os.chdir("/")
from perdure.agents.hooks import run
run(["drain"])"""


@dataclass(frozen=True, slots=True)
class Waiting:
    agent: str
    session_id: str
    transcript: str
    cwd: str = ""
    """Where the agent works, for a transcript that does not say so."""
    event: str = ""
    allowed: str = ""
    """Not empty if the run itself allowed that it contributes (`PERDURE_CONTRIBUTE=1`)."""
    mark: str = field(default_factory=lambda: os.urandom(16).hex())
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
        """Remove a note, unless another was written in its place since.

        Between the look and the removal a hook may note the session once more. So it is taken
        aside first, and put back if it is not the one that was meant.
        """
        path = self._path(waiting)
        aside = path.with_name(f".{path.stem}.{os.urandom(16).hex()}")
        with suppress(FileNotFoundError):
            path.replace(aside)
            if _read(aside) == waiting or path.exists():
                aside.unlink()
            else:
                aside.replace(path)

    def times(self) -> list[float]:
        """Return since when each note has been there, in seconds since 1970."""
        return [_age(path)[0] for path in self._files()]

    def is_older(self, waiting: Waiting, seconds: float) -> bool:
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
        return session_file(self._folder, waiting.agent, waiting.session_id)


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


# ---------------------------------------------------------------- one process at a time
def start_draining(home: Path, environ: Mapping[str, str]) -> None:
    """Let a process of its own keep what waits, unless one is at it.

    That one looks again after it has let the lock go, so it sees what was noted before this.
    """
    with locked(home) as is_ours:
        if not is_ours:
            return
    null = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0)
    files = (null, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2))
    # Not `subprocess`, which takes 3 ms to load. In a session of its own: it may outlive the agent.
    os.posix_spawn(
        sys.executable, [sys.executable, "-c", _RUN], environ, file_actions=files, setsid=True
    )


def start_checking(home: Path, environ: Mapping[str, str]) -> None:
    """Let that process look for edits made outside Perdure, unless one was started just now.

    Nor does it where the owner switched that off.
    """
    from perdure.config import load_config

    if not load_config(environ).check_seconds:
        return
    mark = folder_of(home) / "checking"
    with suppress(OSError, StorageError):  # on a read-only disk, nothing can be recorded either
        if 0 <= time.time() - _age(mark)[0] < _CHECK_AGAIN_SECONDS:
            return
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark.touch(mode=0o600)
        start_draining(home, environ)


@contextmanager
def locked(home: Path) -> Iterator[bool]:
    """Say whether nobody else keeps sessions now; if so, nobody does until this ends."""
    with locked_file(folder_of(home) / "lock") as descriptor:
        yield descriptor is not None


def drain(home: Path, environ: Mapping[str, str]) -> None:
    """Keep what waits, until nothing does but what failed; failures go to the log."""
    failed: set[str] = set()
    ended: set[str] = set()
    while True:
        with locked(home) as is_ours:
            if not is_ours:
                return
            _drain_once(home, environ, failed, ended)
        if all(waiting.mark in failed for waiting in Pending(home)):
            judge_finished(home, environ, ended)
            return


def judge_finished(home: Path, environ: Mapping[str, str], ended: Iterable[str] = ()) -> None:
    """Ask the language model about candidates of finished sessions, if the owner allowed it.

    A session is finished if its agent reported the end (`ended`), or if nothing was added to it
    for a while: every agent reports its answers, but not every one the end.
    """
    from perdure.config import load_config
    from perdure.llm.counter import background_usage

    settings = load_config(environ).llm
    usage = background_usage(home, settings)
    if not settings.background or usage.runs >= usage.runs_allowed:
        return
    from perdure.app import open_context

    try:
        with open_context(environ) as context:
            finished = datetime.now(UTC) - FINISHED_AFTER
            context.memory.judge_candidates(before=finished, ended=ended)
    except LockTimeout:
        return  # another process is at it
    except (PerdureError, OSError) as error:
        note(home, f"background model: {error}")


def _drain_once(home: Path, environ: Mapping[str, str], failed: set[str], ended: set[str]) -> None:
    from perdure.app import open_context
    from perdure.model.uri import stable_name

    pending, folders = Pending(home), set[str]()
    with open_context(environ) as context:
        for waiting in pending:
            if waiting.mark in failed:
                continue
            try:
                read = keep(context, waiting)
            except (PerdureError, OSError) as error:
                note(home, f"{waiting.agent} session {waiting.session_id}: {error}")
                is_its_fault = isinstance(error, InvalidValueError | AbsentError | ForgottenError)
                if is_its_fault or pending.is_older(waiting, _GIVEN_UP_SECONDS):
                    pending.done(waiting)
                else:
                    failed.add(waiting.mark)
            else:
                pending.done(waiting)
                folders.add(waiting.cwd)
                if waiting.event == "session-end":
                    ended.add(stable_name(waiting.agent, waiting.session_id))
                record_run(home, waiting.agent, KEPT, Run(session_digest(waiting.session_id)))
                with suppress(PerdureError, OSError):  # then it is counted when it goes on
                    _count_used(context, waiting, read)
        _check_edits(home, context)
        context.memory.settle()
        for folder in islice(folders, _MOST_FOLDERS):
            _look_ahead(context, folder)


def _check_edits(home: Path, context: "Context") -> None:
    """Record edits made outside Perdure where hooks leave that to this process."""
    from perdure.engine.edits import has_many, notice_edits

    if context.check_seconds and has_many(context):
        for hint in notice_edits(context, seconds=None).hints:
            note(home, f"edits: {hint.text}")


def _look_ahead(context: "Context", cwd: str) -> None:
    """Ask git now what the next briefing will ask; a hook has no time for a slow answer."""
    from perdure.harness.projects import identity_at

    with suppress(PerdureError, OSError):
        identity = identity_at(cwd) if cwd else None
        if identity is not None and identity.folder:
            with context.memory_for(context.request, identity) as memory:
                memory.briefing(seconds=_GIT_SECONDS)


def _count_used(context: "Context", waiting: Waiting, read: "Iterable[SessionItem]") -> None:
    """Count which lines a session was shown, and which of them its new messages use."""
    from perdure.engine.recomposition import used_lines
    from perdure.engine.uses import count_uses
    from perdure.times import read_moment

    found = context.memory.shown(session=waiting.session_id)
    shown = [each for each in found if each.record.agent == waiting.agent and each.lines]
    messages = [message for item in read for message in item.messages]
    used: set[Emitted] = set()
    for message in messages if shown else ():
        if message["role"] != "assistant":
            continue
        when = read_moment(message.get("time"))
        before = (each for each in shown if when is None or each.record.when <= when)
        lines = [line for each in before for line in each.lines]
        used.update(line.item for line in used_lines(lines, message["content"]))
    if shown:
        every = [line.item for each in shown for line in each.lines]
        count_uses(context.config.home, waiting.session_id, every, used)


def keep(context: "Context", waiting: Waiting) -> "list[SessionItem]":
    """Keep what a transcript says, and learn from it; what is known already changes nothing.

    What was added since the last time is read alone. If that is not known, all of it is read.
    Return what was read.
    """
    from perdure.engine.session_notes import SessionNotes
    from perdure.transfer.admission import Admission
    from perdure.transfer.contract import Resumable, Selective
    from perdure.transfer.imports import FORMATS
    from perdure.transfer.items import SessionImporter
    from perdure.transfer.source import ImportSource

    if waiting.agent not in FORMATS:
        raise InvalidValueError(f"nobody reads transcripts of {waiting.agent!a}. Fix: none needed.")
    home, format_ = context.config.home, FORMATS[waiting.agent]
    importer = SessionImporter(context.memory, context.nodes, learn=True)
    notes = SessionNotes(home)
    admission = Admission(context.config.agents, notes, is_named=bool(waiting.allowed))
    reader = _Reader(waiting, admission, home)
    if isinstance(format_, Resumable):
        _keep_growing(importer, reader, format_)
        return reader.read
    with closing(ImportSource(Path(waiting.transcript))) as source:
        if isinstance(format_, Selective):
            items = format_.session(source, waiting.session_id)
        else:
            items = format_.items(source)
        for item in reader.admitted(items):
            _put(importer, item)
    return reader.read


def _keep_growing(importer: "SessionImporter", reader: "_Reader", format_: "Resumable") -> None:
    """Keep what was added to a transcript since it was last read; if nothing says so, all.

    Of a session with private parts no reading is noted: what is private can be found from all of
    it only. The same holds where a rule would write something: the words may be in what was read
    before.
    """
    waiting = reader.waiting
    from perdure.agents.transcripts import Reading, Readings, transcript
    from perdure.transfer.contract import NotResumableError

    readings = Readings(folder_of(reader.home) / "read")
    known = readings.get(waiting.agent, waiting.session_id)
    with transcript(Path(waiting.transcript)) as found:
        before = found.before(found.size)

        def note_down(admitted: "AdmittedSession", end: "SessionEnd") -> None:
            item = admitted.item
            state = item.state if isinstance(item.state, Mapping) else {}
            reading = Reading(found.size, before, item.source_id, state, end)
            readings.put(waiting.agent, waiting.session_id, reading)

        if known is not None and found.is_behind(known):
            if known.offset == found.size:
                return
            # The user went back in the session, or changed what is kept of it: then all is read.
            with suppress(NotResumableError, VersionMismatchError, NodeExistsError):
                for admitted in reader.admitted(found.items(format_, known)):
                    if admitted.is_private or admitted.states_anything:
                        raise NotResumableError("all of it must be read")
                    named = _placed(replace(admitted.item, source_id=known.source_id))
                    one = replace(admitted, item=named)
                    note_down(one, importer.extend(one, known.end))
                return
        for admitted in reader.admitted(found.items(format_, None)):
            one = _put(importer, admitted)
            if admitted.is_private:
                readings.forget(waiting.agent, waiting.session_id)
            else:
                note_down(one, importer.end(one.item))


@dataclass(frozen=True, slots=True)
class _Reader:
    waiting: Waiting
    admission: "Admission"
    home: Path
    read: "list[SessionItem]" = field(default_factory=list)

    def admitted(
        self, items: "Iterable[ImportItem | ImportFinding]"
    ) -> "Iterator[AdmittedSession]":
        """Yield what may be kept of the conversations in a file; note what is wrong."""
        from perdure.transfer.admission import AdmittedSession
        from perdure.transfer.contract import ImportFinding, SessionItem

        waiting = self.waiting
        for item in items:
            if isinstance(item, SessionItem) and (item.messages or item.state):
                _refuse_another(waiting, item)
                placed = replace(item, cwd=item.cwd or waiting.cwd)
                found = self.admission.admit(placed, waiting.session_id)
                if isinstance(found, AdmittedSession):
                    # Not every client calls a hook for each tool; its transcript has them all.
                    self.admission.notes.mark(waiting.session_id, *found.origins)
                    self.read.append(found.item)
                    yield found
            elif isinstance(item, ImportFinding) and item.refused:
                note(self.home, f"{waiting.agent}: {item}")


def _refuse_another(waiting: Waiting, item: "SessionItem") -> None:
    """Refuse a file that is not of the session: then something else was meant to be read."""
    if waiting.session_id not in {item.source_id, Path(waiting.transcript).stem[-36:]}:
        raise InvalidValueError(
            f"the transcript is of the session {item.source_id[:80]!a}, not of "
            f"{waiting.session_id[:80]!a}. Fix: none needed; it was left alone."
        )


def _put(importer: "SessionImporter", admitted: "AdmittedSession") -> "AdmittedSession":
    """Keep a conversation; who went back in it and took another way has it under another name."""
    item = _placed(admitted.item)
    number = 1
    while item.messages:
        named = item if number == 1 else replace(item, source_id=f"{item.source_id}.{number}")
        one = replace(admitted, item=named)
        try:
            importer.put(one, dry_run=False)
        except NodeExistsError:
            if number == _MOST_BRANCHES:
                raise
            number += 1
        else:
            return one
    return admitted


def _placed(item: "SessionItem") -> "SessionItem":
    """Return a conversation with the commit of its branch, if that is still checked out."""
    from perdure.harness.projects import head_at

    branch, commit = head_at(item.cwd) if item.cwd else ("", "")
    is_there = not item.branch or item.branch in {branch, "HEAD"}
    commit = item.commit or (commit if is_there else "")
    return replace(item, branch=branch if is_there else item.branch, commit=commit)


# ---------------------------------------------------------------- whether sessions are still kept
def stopped_capture(home: Path, agent: str, session: str = "") -> str:
    """Say what stopped sessions of an agent from being kept, and since when; empty if nothing.

    Notes that have waited for over an hour are not kept. Nor are sessions whose prompts came and
    whose end never did, if nothing was kept since the first of them.
    """
    waiting = [each for each in Pending(home).times() if time.time() - each > HOUR]
    if waiting:
        number = f"{len(waiting)} session{'s' if len(waiting) > 1 else ''}"
        return f"{number} could not be kept since {_day(min(waiting))}"
    kept, prompted = last_run(home, agent, KEPT), last_run(home, agent, PROMPT)
    if prompted <= kept + HOUR:  # as nearly always
        return ""
    ended = {run.session for event in KEEPING for run in runs_of(home, agent, event)}
    first: dict[str, float] = {}
    for run in runs_of(home, agent, PROMPT):
        if kept < run.time < time.time() - HOUR and run.session not in {
            *ended,
            session_digest(session),
        }:
            first.setdefault(run.session, run.time)
    if len(first) < _FEWEST_SESSIONS:
        return ""
    since = _day(min(first.values()))
    return f"no session of {agent} was kept since {since}: its stop hook did not run"


def capture_warning(home: Path, agent: str, session: str) -> str:
    """Return one line for a session that starts if capture stopped; at most one a day."""
    if time.time() - last_run(home, agent, WARNED) < DAY:
        return ""
    stopped = stopped_capture(home, agent, session)
    if not stopped:
        return ""
    record_run(home, agent, WARNED, Run(session_digest(session)))
    return f"Memory: {stopped}. The user can run `perdure doctor --agents` to see why."


def _day(then: float) -> str:
    return datetime.fromtimestamp(then, UTC).strftime("%Y-%m-%d %H:%M UTC")


# ---------------------------------------------------------------- the log
def folder_of(home: Path) -> Path:
    return home / "hooks"


def note(home: Path, what: str) -> None:
    """Add a line; if even that can't be done, nothing is."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    line = f"{now} {visible(shortened(' '.join(what.split()), _LONGEST_LINE))}"
    with suppress(OSError):
        append_line(folder_of(home) / "log", line.encode(errors="backslashreplace"), MOST_LOG_BYTES)
