"""The status line: what the memory has and did, in one line, without opening it."""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from perdure.errors import StorageError
from perdure.files import read_lines, write_whole

_COUNT_SECONDS = 60 * 86_400.0


class StatusLineInput(NamedTuple):
    home: Path
    folders: tuple[str, ...]
    """The agent's folders, the likeliest first."""
    session: str = ""
    """The agent's own id of the session; empty if it is not known."""

    @classmethod
    def parse(cls, home: Path, data: bytes, cwd: str) -> "StatusLineInput":
        """Parse the input of Claude Code; ignores invalid parts."""
        given: Mapping[str, object] = {}
        with suppress(ValueError, RecursionError):
            found = json.loads(data)
            given = found if isinstance(found, dict) else {}
        where = given.get("workspace")
        workspace: Mapping[str, object] = where if isinstance(where, dict) else {}
        paths = (workspace.get("project_dir"), given.get("cwd"), workspace.get("current_dir"), cwd)
        folders = tuple(dict.fromkeys(each for each in paths if isinstance(each, str) and each))
        session = given.get("session_id")
        return cls(home, folders, session if isinstance(session, str) else "")


def status_line(given: StatusLineInput) -> str:
    return "perdure: " + " · ".join(filter(None, (field(given) for field in FIELDS)))


# ---------------------------------------------------------------- fields
def _memories(given: StatusLineInput) -> str:
    for folder in given.folders:
        with suppress(OSError, ValueError, TypeError, KeyError):
            count = int(json.loads(_file(given.home, folder).read_bytes())["memories"])
            return f"{count} {'memory' if count == 1 else 'memories'}"
    return "" if (given.home / "histories").is_dir() else "no memories yet"


def _session(given: StatusLineInput) -> str:
    if not given.session:
        return ""
    from perdure.engine.uses import used_in

    return f"{len(set(_shown(given)))} shown, {used_in(given.home, given.session)} used"


def _shown(given: StatusLineInput) -> Iterator[str]:
    named = json.dumps(given.session).encode()
    for line in read_lines(given.home / "hooks" / "emitted"):
        if named in line:  # most lines are of other sessions, and parsing is slow
            with suppress(ValueError, TypeError, LookupError, RecursionError):
                fields = json.loads(line)
                if fields["session"] == given.session:
                    yield from (f"{uri}#{message} {key}" for uri, message, key in fields["items"])


def _saved(given: StatusLineInput) -> str:
    """Return when something was last saved: when a log last grew."""
    grown = [each.stat().st_mtime for each in given.home.glob("histories/*/segment-*")]
    return f"saved {age(max(grown))}" if grown else ""


def _budget(given: StatusLineInput) -> str:
    if not (given.home / "config.toml").exists():  # the model is off by default
        return ""
    from perdure.config import load_config
    from perdure.llm.counter import background_usage

    usage = background_usage(given.home, load_config(os.environ).llm)
    return f"{usage.runs} of {usage.runs_allowed} background runs" if usage.is_on else ""


def _switched(given: StatusLineInput) -> str:
    """Return whether the session is private, or may not use memory or contribute to it."""
    from perdure.agents.switches import switches_at

    found = switches_at(given.home, os.environ, next(iter(given.folders), ""), given.session)
    if found.private:
        return "private"
    if found.use:
        return "off"
    return "read only" if found.contribute else ""


FIELDS: tuple[Callable[[StatusLineInput], str], ...] = (
    _memories,
    _session,
    _saved,
    _budget,
    _switched,
)
"""The fields of the line, in this order; an empty one is left out."""


def age(then: float) -> str:
    seconds = max(0.0, time.time() - then)
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {name} ago"
    return "just now"


# ---------------------------------------------------------------- the number of memories
def note_memories(home: Path, folder: str, count: int) -> None:
    """Record how many memories the project of a folder has, for the next status line."""
    path, content = _file(home, folder), json.dumps({"memories": count}).encode()
    with suppress(OSError, StorageError):  # on a read-only disk it is not shown
        if path.exists() and path.read_bytes() == content:
            os.utime(path)
            return
        write_whole(path, content, durable=False)
        for other in path.parent.iterdir():
            if other.stat().st_mtime < time.time() - _COUNT_SECONDS:
                other.unlink()


def _file(home: Path, folder: str) -> Path:
    named = sha256(os.path.realpath(folder).encode(errors="surrogatepass")).hexdigest()[:32]
    return home / "hooks" / "folders" / f"{named}.json"
