"""Past sessions of an agent on this machine: found by `install`, and imported on request."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.agents.capture import TranscriptPositions, capture_session
from perdure.agents.hook_log import hooks_folder, log_error
from perdure.agents.pending_sessions import PendingSession
from perdure.config import load_config
from perdure.dataclass import dataclass
from perdure.errors import ForgottenError, PerdureError, StorageError
from perdure.files import write_whole
from perdure.sqlite import open_read_only
from perdure.transfer.source import open_plain_file

if TYPE_CHECKING:
    from perdure.app import Context

_BYTES_PER_SECOND = 1_000_000
"""Measured: 0.5 MB of transcripts that are mostly messages, 1.5 MB with much tool output."""
_HEAD = 65_536
_CWD = re.compile(rb'"cwd":\s*("(?:[^"\\]|\\.)*")')
_SESSION_ID = re.compile(rb'"sessionId":\s*"([\w-]+)"')
_SUBAGENT = re.compile(
    rb'"thread_source":\s*"subagent"|"source":\s*\{\s*"subagent"|"kind":\s*"subagent"'
)
_ID = 36
"""The length of a session's id at the end of the name of Codex's file."""
_MOST_CANDIDATES = 10_000
_LOCAL_EMBEDDERS = frozenset({"auto", "minilm", "none"})


@dataclass(frozen=True, slots=True)
class PastSession:
    """A session of the user, not of a subagent."""

    session_id: str
    transcript: Path
    project: str
    """The folder of its project, or the agent's own name for it."""
    size: int
    time: float

    @property
    def stamp(self) -> str:
        """A text that changes when messages are added."""
        return f"{self.time}"


@dataclass(frozen=True, slots=True)
class PastSessions:
    agent: str
    sessions: tuple[PastSession, ...]

    @property
    def projects(self) -> int:
        return len({each.project for each in self.sessions})

    @property
    def seconds(self) -> int:
        return max(1, round(sum(each.size for each in self.sessions) / _BYTES_PER_SECOND))


@dataclass(frozen=True, slots=True)
class IndexingReport:
    stored: int
    failed: int
    """Sessions that can't be read; `perdure doctor` reports them."""
    candidates: int


def find_past_sessions(agent: str, environ: Mapping[str, str]) -> PastSessions:
    """Return the past sessions of an agent that are not indexed yet, without reading them."""
    if agent not in _FINDERS:
        return PastSessions(agent, ())
    find, variable, below, default = _FINDERS[agent]
    user, given = Path(environ.get("HOME", "~")).expanduser(), environ.get(variable)
    found = find(Path(given).expanduser() / below if given else user / default)
    home = load_config(environ).home
    stamps, readings = _stamps(home, agent), TranscriptPositions(hooks_folder(home) / "read")

    def is_known(each: PastSession) -> bool:
        if stamps.get(each.session_id) == each.stamp:
            return True
        read = readings.get(agent, each.session_id)  # by a hook
        return read is not None and read.offset == each.size

    new = (each for each in found if not is_known(each))
    return PastSessions(agent, tuple(sorted(new, key=lambda each: (each.time, each.session_id))))


def stays_here(environ: Mapping[str, str]) -> bool:
    """Whether indexing sends nothing to another machine."""
    return load_config(environ).embedding.provider in _LOCAL_EMBEDDERS


def index_past_sessions(
    history: PastSessions, environ: Mapping[str, str], progress: Callable[[int, int], None]
) -> IndexingReport:
    """Capture past sessions as the hooks capture new ones, and learn from them by rules alone.

    Each is captured completely or not at all; after an interruption, the next call continues.
    `progress` is called with the number of sessions that are done, and of all.
    """
    from perdure.app import open_context

    with open_context(environ) as context:
        home, stamps, failed = context.config.home, _stamps(context.config.home, history.agent), 0
        try:
            for done, each in enumerate(history.sessions):
                progress(done, len(history.sessions))
                failed += not _capture(context, history.agent, each)
                stamps[each.session_id] = each.stamp
        finally:
            write_whole(_stamps_file(home, history.agent), json.dumps(stamps).encode())
        context.memory.settle()
        progress(len(history.sessions), len(history.sessions))
        candidates = context.memory.candidates(limit=_MOST_CANDIDATES)
    return IndexingReport(len(history.sessions) - failed, failed, len(candidates))


def _capture(context: "Context", agent: str, each: PastSession) -> bool:
    """Capture a session, and return whether that worked; an error is logged."""
    try:
        capture_session(context, PendingSession(agent, each.session_id, str(each.transcript)))
    except ForgottenError:
        return True
    except (PerdureError, OSError) as error:
        log_error(context.config.home, f"{agent} session {each.session_id}: {error}")
        return False
    return True


def _stamps(home: Path, agent: str) -> dict[str, str]:
    """Return the stamps of the indexed sessions by their ids."""
    try:
        found = json.loads(_stamps_file(home, agent).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _stamps_file(home: Path, agent: str) -> Path:
    return hooks_folder(home) / "indexed" / f"{agent}.json"


# ---------------------------------------------------------------- where each agent stores them
def _claude_code(folder: Path) -> Iterator[PastSession]:
    for path in (folder / "projects").glob("*/*.jsonl"):
        if not path.name.startswith("agent-"):
            yield from _in_file(path, path.stem, path.parent.name)


def _codex(folder: Path) -> Iterator[PastSession]:
    for path in (folder / "sessions").glob("**/rollout-*.jsonl"):
        head = _head(path)
        cwd = _CWD.search(head)
        if not _SUBAGENT.search(head.partition(b"\n")[0]):
            yield from _in_file(path, path.stem[-_ID:], _decoded(cwd[1]) if cwd else "")


def _gemini_cli(folder: Path) -> Iterator[PastSession]:
    for path in (folder / "tmp").glob("*/chats/session-*.json*"):
        head = _head(path)
        named = _SESSION_ID.search(head)
        if named and not _SUBAGENT.search(head.partition(b"\n")[0]):
            yield from _in_file(path, named[1].decode(), path.parents[1].name)


def _opencode(folder: Path) -> Iterator[PastSession]:
    path = folder / "opencode.db"
    query = "select id, directory, time_updated from session where parent_id is null"
    try:
        size = path.stat().st_size
        with open_read_only(path) as database:
            rows = database.execute(query).fetchall()
    except (OSError, StorageError):
        return
    for name, directory, updated in rows:
        yield PastSession(str(name), path, str(directory), size // len(rows), float(updated or 0))


_FINDERS: Mapping[str, tuple[Callable[[Path], Iterator[PastSession]], str, str, str]] = {
    "claude-code": (_claude_code, "CLAUDE_CONFIG_DIR", "", ".claude"),
    "codex": (_codex, "CODEX_HOME", "", ".codex"),
    "gemini-cli": (_gemini_cli, "GEMINI_CLI_HOME", ".gemini", ".gemini"),
    "opencode": (_opencode, "XDG_DATA_HOME", "opencode", ".local/share/opencode"),
}
"""How sessions are found; the variable that moves their folder, the path in it, the default."""
AGENTS_WITH_HISTORY = tuple(_FINDERS)


def _in_file(path: Path, session_id: str, project: str) -> Iterator[PastSession]:
    try:
        found = path.stat()
    except OSError:  # removed meanwhile
        return
    if found.st_size:
        yield PastSession(session_id, path, project, found.st_size, found.st_mtime)


def _head(path: Path) -> bytes:
    """Return the start of a regular file; empty for anything else: a pipe would never end."""
    try:
        with open_plain_file(path.resolve(strict=True)) as file:
            return file.read(_HEAD)
    except (OSError, PerdureError):
        return b""


def _decoded(text: bytes) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return text.decode(errors="replace")
