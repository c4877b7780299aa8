"""The git commits that contain the versions of a text, in a store that is under git."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from perdure.artifacts import CID
from perdure.engine.versions import VersionLog
from perdure.errors import ProjectError
from perdure.harness.project import run_git
from perdure.storage.text_history import Event

_SECONDS = 20.0
_COMMIT_LIMIT = 1_000
"""At most this many commits of a file are read, the newest first."""
_SIZE_LIMIT = 1 << 20
"""A larger file is not a text of a store."""


class GitCommit(NamedTuple):
    hash: str
    time: datetime
    """The author date."""
    subject: str


def find_commits(log: VersionLog, key: str, events: Sequence[Event]) -> dict[int, GitCommit]:
    """Return the commits in which the file of a key has the texts of these events, by position.

    Of several commits with the same text, the oldest belongs to the first event that has it, and so
    on. A text that was never committed has none. Raises `ProjectError` if git can't answer.
    """
    folder, path = log.file_of(key)
    if _git(folder, "rev-parse", "--git-dir") is None:
        raise ProjectError(
            f"{folder!a} is not under git, or git can't be run there. Fix: `git -C '{folder}' log` "
            "shows why; or leave out --git."
        )
    commits: dict[CID, list[GitCommit]] = {}
    for commit, data in _versions(folder, path) if path else ():  # a deleted note has no path
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
    form = ("--no-show-signature", "--format=%H %at %s", f"--max-count={_COMMIT_LIMIT}")
    found = _git(folder, "log", *form, "HEAD", "--", f":(literal){path}") or ""
    commits = [line.split(" ", 2) for line in found.split("\n") if line]
    names = "".join(f"{digits}:./{path}\n" for digits, *_ in commits)
    sizes = (_git(folder, "cat-file", "--batch-check=%(objectsize)", stdin=names) or "").split("\n")
    small = [
        commit
        for commit, size in zip(commits, sizes, strict=False)
        if size.isdecimal() and int(size) <= _SIZE_LIMIT  # not removed, and a text
    ]
    names = "".join(f"{digits}:./{path}\n" for digits, *_ in small)
    contents = (_git(folder, "cat-file", "--batch=%(objectsize)", stdin=names) or "").encode(
        errors="surrogateescape"
    )
    for digits, seconds, subject in small:
        size, _, contents = contents.partition(b"\n")
        time = datetime.fromtimestamp(0, UTC)
        with suppress(ValueError, OverflowError, OSError):  # an impossible time
            time = datetime.fromtimestamp(int(seconds), UTC)
        yield GitCommit(digits, time, subject), contents[: int(size)]
        contents = contents[int(size) + 1 :]


def _git(folder: str, *arguments: str, stdin: str = "") -> str | None:
    return run_git(("-C", folder, *arguments), _SECONDS, stdin)
