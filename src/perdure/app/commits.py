"""Which commit of git has the bytes of a version, in a store that is under git."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from perdure.artifacts import CID
from perdure.engine.versions import VersionLog
from perdure.errors import ProjectError
from perdure.harness.projects import run_git
from perdure.storage.history import Event

_SECONDS = 20.0
_MOST_COMMITS = 1_000
"""So many commits of a file are looked at, the newest first."""
_MOST_BYTES = 1 << 20
"""A file with more is not a text of a store."""


class GitCommit(NamedTuple):
    hash: str
    time: datetime
    """When its author made it."""
    subject: str


def commits_beside(log: VersionLog, key: str, events: Sequence[Event]) -> dict[int, GitCommit]:
    """Return the commits in which the file of a key has the text of these events, by position.

    Of several commits with one text, the oldest goes with the first event that has it, and so on;
    a text that was never committed has none. `ProjectError` if git can't answer.
    """
    folder, path = log.file_of(key)
    if _asked(folder, "rev-parse", "--git-dir") is None:
        raise ProjectError(
            f"{folder!a} is not under git, or git can't be run there. Fix: `git -C '{folder}' log` "
            "shows why; or leave out --git."
        )
    commits: dict[CID, list[GitCommit]] = {}
    for commit, data in _versions(folder, path) if path else ():  # a note that is gone has none
        with suppress(UnicodeDecodeError):
            text = log.text_in(path, data.decode(), key)
            if text is not None:
                commits.setdefault(CID.of(text.encode()), []).append(commit)
    found: dict[int, GitCommit] = {}
    for event in events:
        same = commits.get(event.cid, []) if event.cid is not None else []
        if same:
            found[event.position] = same.pop() if len(same) > 1 else same[0]
    return found


def _versions(folder: str, path: str) -> Iterator[tuple[GitCommit, bytes]]:
    form = ("--no-show-signature", "--format=%H %at %s", f"--max-count={_MOST_COMMITS}")
    found = _asked(folder, "log", *form, "HEAD", "--", f":(literal){path}") or ""
    commits = [line.split(" ", 2) for line in found.split("\n") if line]
    names = "".join(f"{digits}:./{path}\n" for digits, *_ in commits)
    sizes = (_asked(folder, "cat-file", "--batch-check=%(objectsize)", given=names) or "").split(
        "\n"
    )
    small = [
        commit
        for commit, size in zip(commits, sizes, strict=False)
        if size.isdecimal() and int(size) <= _MOST_BYTES  # else it was removed, or is not a text
    ]
    names = "".join(f"{digits}:./{path}\n" for digits, *_ in small)
    contents = (_asked(folder, "cat-file", "--batch=%(objectsize)", given=names) or "").encode(
        errors="surrogateescape"
    )
    for digits, seconds, subject in small:
        size, _, contents = contents.partition(b"\n")
        time = datetime.fromtimestamp(0, UTC)
        with suppress(ValueError, OverflowError, OSError):  # a time that no clock has
            time = datetime.fromtimestamp(int(seconds), UTC)
        yield GitCommit(digits, time, subject), contents[: int(size)]
        contents = contents[int(size) + 1 :]


def _asked(folder: str, *arguments: str, given: str = "") -> str | None:
    return run_git(("-C", folder, *arguments), _SECONDS, given)
