"""Capture sessions from the transcripts of agents: one background process at a time.

Of a transcript that has grown, only the new lines are read. A position in a transcript is verified
by the bytes before it, not by the file's name or inode, so that a transcript that was rewritten,
truncated or replaced is detected. Positions are derived: a lost one is read again from the start.
"""

import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from perdure.agents.hook_log import (
    CAPTURED,
    HookRun,
    hooks_folder,
    log_error,
    record_run,
    session_digest,
    session_file,
)
from perdure.agents.pending_sessions import PendingSession, PendingSessions, capture_lock
from perdure.dataclass import asdict, dataclass, field, replace
from perdure.engine.sessions import SessionEnd
from perdure.errors import (
    AbsentError,
    ForgottenError,
    InvalidValueError,
    LockTimeout,
    NodeExistsError,
    PerdureError,
    UnreadableSourceError,
    VersionMismatchError,
)
from perdure.files import write_whole
from perdure.model.values import JSON
from perdure.transfer.contract import ImportFinding, ImportItem, Resumable, SessionItem
from perdure.transfer.source import ImportSource, SourceFile, open_plain_file, translate_errors

if TYPE_CHECKING:
    from perdure.app import Context
    from perdure.engine.emissions import EmittedLine
    from perdure.transfer.items import Admission, AdmittedSession, SessionImporter

FINISHED_AFTER = timedelta(minutes=30)
_GIVE_UP_SECONDS = 7 * 24 * 3600.0
_GIT_SECONDS = 1.0
_FOLDER_LIMIT = 8
_BRANCH_LIMIT = 20
_COMPARED_BYTES = 4_096
"""The bytes at the start, and before a position, that identify a transcript."""
_STEP_BYTES = 65_536
_LAST_LINE_BYTES = 1_000_000
_POSITION_LIMIT = 2_000


# ---------------------------------------------------------------- the background process
def drain(home: Path, environ: Mapping[str, str]) -> None:
    """Capture pending sessions until only failed ones are left; failures are logged."""
    failed: set[str] = set()
    ended: set[str] = set()
    while True:
        with capture_lock(home) as is_free:
            if not is_free:
                return
            _drain_once(home, environ, failed, ended)
        if all(session.mark in failed for session in PendingSessions(home)):
            judge_finished(home, environ, ended)
            return


def judge_finished(home: Path, environ: Mapping[str, str], ended: Iterable[str] = ()) -> None:
    """Ask the language model about candidates of finished sessions, if the owner allowed it.

    A session is finished if its agent reported the end (`ended`), or if nothing was added to it
    for a while: every agent reports its answers, but not every agent the end.
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
        return  # another process does it
    except (PerdureError, OSError) as error:
        log_error(home, f"background model: {error}")


def _drain_once(home: Path, environ: Mapping[str, str], failed: set[str], ended: set[str]) -> None:
    from perdure.app import open_context
    from perdure.model.uri import stable_name

    pending, folders = PendingSessions(home), set[str]()
    with open_context(environ) as context:
        for session in pending:
            if session.mark in failed:
                continue
            try:
                read = capture_session(context, session)
            except (PerdureError, OSError) as error:
                log_error(home, f"{session.agent} session {session.session_id}: {error}")
                is_final = isinstance(error, InvalidValueError | AbsentError | ForgottenError)
                if is_final or pending.is_older(session, _GIVE_UP_SECONDS):
                    pending.done(session)
                else:
                    failed.add(session.mark)
            else:
                pending.done(session)
                folders.add(session.cwd)
                if session.event == "session-end":
                    ended.add(stable_name(session.agent, session.session_id))
                digest = session_digest(session.session_id)
                record_run(home, session.agent, CAPTURED, HookRun(digest))
                with suppress(PerdureError, OSError):  # the next capture counts it
                    _count_uses(context, session, read)
        _record_edits(home, context)
        context.memory.settle()
        for folder in islice(folders, _FOLDER_LIMIT):
            _prepare_briefing(context, folder)


def _record_edits(home: Path, context: "Context") -> None:
    """Record edits made outside Perdure where hooks leave that to this process."""
    from perdure.engine.edits import has_many, notice_edits

    if context.check_seconds and has_many(context):
        for hint in notice_edits(context, seconds=None).hints:
            log_error(home, f"edits: {hint.text}")


def _prepare_briefing(context: "Context", cwd: str) -> None:
    """Cache git's answers for the next briefing; a hook has no time to wait for slow ones."""
    from perdure.harness.project import identity_at

    with suppress(PerdureError, OSError):
        identity = identity_at(cwd) if cwd else None
        if identity is not None and identity.folder:
            with context.memory_for(context.request, identity) as memory:
                memory.briefing(seconds=_GIT_SECONDS)


def _count_uses(context: "Context", session: PendingSession, read: Iterable[SessionItem]) -> None:
    """Count the lines that a session was shown, and those that its new messages use."""
    from perdure.engine.shown_lines import used_lines
    from perdure.engine.uses import count_uses
    from perdure.times import read_time

    found = context.memory.shown(session=session.session_id)
    shown = [each for each in found if each.record.agent == session.agent and each.lines]
    messages = [message for item in read for message in item.messages]
    used: set[EmittedLine] = set()
    for message in messages if shown else ():
        if message["role"] != "assistant":
            continue
        when = read_time(message.get("time"))
        before = (each for each in shown if when is None or each.record.when <= when)
        lines = [line for each in before for line in each.lines]
        used.update(line.item for line in used_lines(lines, message["content"]))
    if shown:
        every = [line.item for each in shown for line in each.lines]
        count_uses(context.config.home, session.session_id, every, used)


# ---------------------------------------------------------------- one session
def capture_session(context: "Context", session: PendingSession) -> list[SessionItem]:
    """Store the messages of a transcript, learn from them, and return what was read.

    Only what was added since the last capture is read; without a position, all of it. Messages
    that are stored already change nothing.
    """
    from perdure.engine.session_notes import SessionNotes
    from perdure.transfer.contract import Selective
    from perdure.transfer.imports import FORMATS
    from perdure.transfer.items import Admission, SessionImporter

    if session.agent not in FORMATS:
        raise InvalidValueError(
            f"transcripts of {session.agent!a} can't be read. Fix: none needed."
        )
    home, format_ = context.config.home, FORMATS[session.agent]
    importer = SessionImporter(context.memory, context.nodes, learn=True)
    is_named = bool(session.allowed)
    admission = Admission(context.config.agents, SessionNotes(home), is_named=is_named)
    reader = _TranscriptReader(session, admission, home)
    if isinstance(format_, Resumable):
        _capture_growing(importer, reader, format_)
        return reader.read
    with closing(ImportSource(Path(session.transcript))) as source:
        if isinstance(format_, Selective):
            items = format_.session(source, session.session_id)
        else:
            items = format_.items(source)
        for item in reader.admitted(items):
            _put(importer, item)
    return reader.read


def _capture_growing(
    importer: "SessionImporter", reader: "_TranscriptReader", format_: Resumable
) -> None:
    """Store what was added to a transcript since its recorded position; without one, all of it.

    No position is recorded for a session with private parts: these are found from the whole
    transcript only. All of it is also read where a rule would write a statement, whose words may
    be in an earlier part.
    """
    from perdure.transfer.contract import NotResumableError

    session = reader.session
    positions = TranscriptPositions(hooks_folder(reader.home) / "read")
    known = positions.get(session.agent, session.session_id)
    with transcript(Path(session.transcript)) as found:
        before = found.before(found.size)

        def record(admitted: "AdmittedSession", end: SessionEnd) -> None:
            item = admitted.item
            state = item.state if isinstance(item.state, Mapping) else {}
            position = TranscriptPosition(found.size, before, item.source_id, state, end)
            positions.put(session.agent, session.session_id, position)

        if known is not None and found.continues(known):
            if known.offset == found.size:
                return
            # If the user went back in the session or edited the stored one, all of it is read.
            with suppress(NotResumableError, VersionMismatchError, NodeExistsError):
                for admitted in reader.admitted(found.items(format_, known)):
                    if admitted.is_private or admitted.states_anything:
                        raise NotResumableError("all of it must be read")
                    named = _with_commit(replace(admitted.item, source_id=known.source_id))
                    one = replace(admitted, item=named)
                    record(one, importer.extend(one, known.end))
                return
        for admitted in reader.admitted(found.items(format_, None)):
            one = _put(importer, admitted)
            if admitted.is_private:
                positions.forget(session.agent, session.session_id)
            else:
                record(one, importer.end(one.item))


@dataclass(frozen=True, slots=True)
class _TranscriptReader:
    session: PendingSession
    admission: "Admission"
    home: Path
    read: list[SessionItem] = field(default_factory=list)

    def admitted(self, items: Iterable[ImportItem | ImportFinding]) -> "Iterator[AdmittedSession]":
        """Yield the admitted part of each conversation in a file; findings are logged."""
        from perdure.transfer.items import AdmittedSession

        session = self.session
        for item in items:
            if isinstance(item, SessionItem) and (item.messages or item.state):
                _demand_session(session, item)
                placed = replace(item, cwd=item.cwd or session.cwd)
                found = self.admission.admit(placed, session.session_id)
                if isinstance(found, AdmittedSession):
                    # Not every client calls a hook for each tool; its transcript has all of them.
                    self.admission.notes.mark(session.session_id, *found.origins)
                    self.read.append(found.item)
                    yield found
            elif isinstance(item, ImportFinding) and item.refused:
                log_error(self.home, f"{session.agent}: {item}")


def _demand_session(session: PendingSession, item: SessionItem) -> None:
    """Refuse the transcript of another session."""
    if session.session_id not in {item.source_id, Path(session.transcript).stem[-36:]}:
        raise InvalidValueError(
            f"the transcript belongs to the session {item.source_id[:80]!a}, not to "
            f"{session.session_id[:80]!a}. Fix: none needed; it was not read."
        )


def _put(importer: "SessionImporter", admitted: "AdmittedSession") -> "AdmittedSession":
    """Store a conversation; a branch, where the user went back in it, gets a name of its own."""
    item = _with_commit(admitted.item)
    number = 1
    while item.messages:
        named = item if number == 1 else replace(item, source_id=f"{item.source_id}.{number}")
        one = replace(admitted, item=named)
        try:
            importer.put(one, dry_run=False)
        except NodeExistsError:
            if number == _BRANCH_LIMIT:
                raise
            number += 1
        else:
            return one
    return admitted


def _with_commit(item: SessionItem) -> SessionItem:
    """Return a conversation with the commit of its branch, if that is checked out now."""
    from perdure.harness.project import head_at

    branch, commit = head_at(item.cwd) if item.cwd else ("", "")
    is_current = not item.branch or item.branch in {branch, "HEAD"}
    commit = item.commit or (commit if is_current else "")
    return replace(item, branch=branch if is_current else item.branch, commit=commit)


# ---------------------------------------------------------------- transcripts
@dataclass(frozen=True, slots=True)
class TranscriptPosition:
    """How far a transcript was read, and how far its session is stored."""

    offset: int
    before: str
    """The hash of the start of the file and of the bytes before the offset."""
    source_id: str
    """The name under which the session is stored; a branch has a name of its own."""
    state: Mapping[str, JSON]
    """What the format needs to continue."""
    end: SessionEnd


class TranscriptPositions:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, agent: str, session_id: str) -> TranscriptPosition | None:
        """Return how far a session was read; None if that is not recorded, or damaged."""
        try:
            data = json.loads(session_file(self._folder, agent, session_id).read_bytes())
            end = SessionEnd(**data.pop("end"))
            position = TranscriptPosition(**data, end=end)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        numbers = position.offset, end.part, end.messages
        texts = position.before, position.source_id, end.digest, end.mark
        is_valid = all(type(each) is int and each >= 0 for each in numbers)
        is_valid = is_valid and all(isinstance(each, str) for each in texts)
        return position if is_valid and isinstance(position.state, dict) else None

    def put(self, agent: str, session_id: str, position: TranscriptPosition) -> None:
        path = session_file(self._folder, agent, session_id)
        write_whole(path, json.dumps(asdict(position)).encode())
        self._forget_oldest()

    def forget(self, agent: str, session_id: str) -> None:
        session_file(self._folder, agent, session_id).unlink(missing_ok=True)

    def _forget_oldest(self) -> None:
        with suppress(OSError):
            files = [entry for entry in os.scandir(self._folder) if entry.name.endswith(".json")]
            if len(files) > _POSITION_LIMIT:
                oldest = sorted(files, key=lambda entry: entry.stat().st_mtime)
                for entry in oldest[: len(files) - _POSITION_LIMIT // 2]:
                    Path(entry.path).unlink(missing_ok=True)


class Transcript:
    """The complete lines of a transcript that an agent may still be writing to."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self._path = path
        self._stream = stream
        self.size = _complete_lines(stream)

    def items(
        self, format_: Resumable, known: TranscriptPosition | None
    ) -> Iterator[ImportItem | ImportFinding]:
        """Yield what a format finds, from a position if there is one."""
        start = known.offset if known else 0
        self._stream.seek(start)
        stream = io.BytesIO(translate_errors(lambda: self._stream.read(self.size - start)))
        entry = SourceFile(self._path.name, self.size, lambda: self._stream)
        if known is None:
            return format_.read(entry, stream)
        return format_.resume(entry, stream, known.state)

    def continues(self, known: TranscriptPosition) -> bool:
        """Whether the bytes before a position are unchanged."""
        return known.offset <= self.size and self.before(known.offset) == known.before

    def before(self, offset: int) -> str:
        hashed = sha256()
        for start in (0, max(0, offset - _COMPARED_BYTES)):
            self._stream.seek(start)
            hashed.update(self._stream.read(min(_COMPARED_BYTES, offset - start)))
        return hashed.hexdigest()


@contextmanager
def transcript(path: Path) -> Iterator[Transcript]:
    """Open a transcript; raises `UnreadableSourceError` if it can't be read."""
    try:
        stream = open_plain_file(path.resolve(strict=True))
    except OSError as error:
        raise UnreadableSourceError(
            f"{str(path)!a} can't be read: {error.strerror}. Fix: none needed; nothing was stored."
        ) from error
    with stream:
        yield Transcript(path, stream)


def _complete_lines(stream: BinaryIO) -> int:
    """Return the size of the complete lines; the last may lack its newline if it is JSON."""
    size = at = stream.seek(0, os.SEEK_END)
    while at > 0:
        start = max(0, at - _STEP_BYTES)
        stream.seek(start)
        found = stream.read(at - start).rfind(b"\n")
        if found >= 0:
            at = start + found + 1
            break
        at = start
    stream.seek(at)
    return size if size - at <= _LAST_LINE_BYTES and _is_json(stream.read(size - at)) else at


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
