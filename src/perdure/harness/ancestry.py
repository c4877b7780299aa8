"""Which commits are ancestors of the checked-out one, and where files were moved.

As much as possible is read from git's own files; git itself runs at most twice, for a short time.
Its answers about ancestry never change, so they are cached in a small file that can be deleted.
"""

import json
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from time import monotonic

from perdure.errors import StorageError
from perdure.files import write_whole
from perdure.harness.project import GitCheckout, head_of, ref_in, run_git

MUCH_TIME = 0.4
"""Seconds; with this much, no hook is waiting."""
_TIP_LIMIT = 6
_CACHE_LIMIT = 500
_QUERY_LIMIT = 64
_READ_BYTES = 1 << 17
_INDEX_BYTES = 16 << 20
"""An index of about 150,000 files; a larger one takes too long to search."""
_PLACE_LIMIT = 4
_FIELDS, _LONGEST_PATH = 62, 4095
"""The bytes before the path in an entry of git's index, and the longest path it counts."""


class Ancestry:
    def __init__(self, checkout: GitCheckout, cache: Path | None) -> None:
        self._checkout = checkout
        self._cache = cache
        self._blobs: dict[str, str] = {}
        self._tips_known: dict[str, str] = {}

    @cached_property
    def head(self) -> tuple[str, str]:
        return head_of(self._checkout)

    def tip(self, branch: str) -> str:
        """Return the commit of a branch; of a deleted one, where it was last checked out."""
        if branch not in self._tips_known:
            found = ref_in(self._checkout, f"refs/heads/{branch}") if branch else ""
            self._tips_known[branch] = found or self._left_at.get(branch, "")
        return self._tips_known[branch]

    @cached_property
    def _left_at(self) -> dict[str, str]:
        """The last checked-out commit of each branch, from git's log of HEAD."""
        log = ""
        with suppress(OSError), (self._checkout.own / "logs" / "HEAD").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _READ_BYTES))
            log = os.fsdecode(file.read(_READ_BYTES))
        left = re.findall(r"^(\w+) .*\tcheckout: moving from (\S+) to ", log, re.MULTILINE)
        return {branch: commit for commit, branch in left}

    def is_gone(self, branch: str) -> bool:
        """Whether neither this repository nor one of its remotes has the branch."""
        common = self._checkout.common
        if not branch or (common / "reftable").exists():
            return False
        remotes = (f"refs/remotes/{each}" for each in _names(common / "refs" / "remotes"))
        places = ("refs/heads", *remotes, "refs/remotes/origin")
        return not any(ref_in(self._checkout, f"{each}/{branch}") for each in places)

    def is_in_history(self, commit: str) -> bool | None:
        """Whether a commit is an ancestor of HEAD; None if that is not known."""
        head = self.head[1]
        return True if commit == head != "" else self._known.get(_key(commit, head))

    def blob(self, commit: str, path: str) -> str | None:
        """Return the hash of a file at a commit; "" if it was absent, None if not known."""
        return self._blobs.get(f"{commit}:{path}")

    def ask(self, commits: Collection[str], files: Collection[str], seconds: float) -> None:
        """Ask git about commits, and files as `commit:path`, as far as the time allows.

        With much time, also for the branches that may be checked out next.
        """
        head, git = self.head[1], f"--git-dir={self._checkout.own}"
        if not head or seconds <= 0:
            return
        heads = [head, *(self._tips(git, seconds) if seconds >= MUCH_TIME else ())]
        new = {
            each: [commit for commit in commits if self._is_open(commit, each)][:_QUERY_LIMIT]
            for each in heads
        }
        files = list(islice(files, _QUERY_LIMIT))
        asked = {*chain.from_iterable(new.values()), *(each[: each.index(":")] for each in files)}
        if asked:
            ends = monotonic() + seconds
            present = self._look_up(git, asked, files, seconds)
            for each in heads:
                known = [commit for commit in new[each] if commit in present]
                self._walk(git, known, each, ends - monotonic())
            self._write()

    def _is_open(self, commit: str, head: str) -> bool:
        return commit != head and _key(commit, head) not in self._known

    def _tips(self, git: str, seconds: float) -> list[str]:
        newest = ("--sort=-committerdate", f"--count={_TIP_LIMIT}", "--format=%(objectname)")
        found = run_git((git, "for-each-ref", *newest, "refs/heads"), seconds)
        return [each for each in (found or "").split() if each != self.head[1]]

    def _look_up(
        self, git: str, commits: Collection[str], files: Collection[str], seconds: float
    ) -> set[str]:
        """Return the commits that exist here, and store the hashes of files at those."""
        asked = [*commits, *files]
        stdin = "".join(f"{each}\n" for each in asked)
        found = run_git((git, "cat-file", "--batch-check"), seconds, stdin)
        answers = [] if found is None else found.splitlines()
        if len(answers) != len(asked):
            return set()
        by_name = dict(zip(asked, answers, strict=True))
        present = {each for each in commits if by_name[each].startswith(f"{each} commit")}
        for each in files:
            if each[: each.index(":")] in present:
                oid, _, kind = by_name[each].partition(" ")
                self._blobs[each] = oid if kind.startswith(("blob", "tree")) else ""
        return present

    def _walk(self, git: str, commits: list[str], head: str, seconds: float) -> None:
        """Ask which commits are not ancestors of another one.

        In a shallow repository the history ends early: only a positive answer is certain.
        """
        stdin = "".join(f"{each}\n" for each in (*commits, f"^{head}"))
        may_ask = commits and seconds > 0
        found = run_git((git, "rev-list", "--stdin"), seconds, stdin) if may_ask else None
        outside = set(found.split()) if found is not None else set()
        is_shallow = (self._checkout.common / "shallow").exists()
        for each in commits if found is not None else ():
            if each not in outside or not is_shallow:
                self._known[_key(each, head)] = each not in outside

    @cached_property
    def _known(self) -> dict[str, bool]:
        """The cached answers by commit and head, the oldest first."""
        with suppress(OSError, ValueError, RecursionError):
            if self._cache is not None and self._cache.stat().st_size <= _READ_BYTES:
                found = json.loads(self._cache.read_bytes())
                listed = found.items() if isinstance(found, dict) else ()
                return {key: value for key, value in listed if isinstance(value, bool)}
        return {}

    def _write(self) -> None:
        newest = dict(islice(self._known.items(), max(0, len(self._known) - _CACHE_LIMIT), None))
        with suppress(OSError, StorageError):  # git is asked again
            if self._cache is not None and newest:
                write_whole(self._cache, json.dumps(newest).encode(), durable=False)

    # ------------------------------------------------------------ where a file is now
    @cached_property
    def _index(self) -> bytes:
        """Git's index; empty if it is too large, or of another version."""
        path = self._checkout.own / "index"
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                if stat.S_ISREG(status.st_mode) and status.st_size <= _INDEX_BYTES:
                    found = file.read(_INDEX_BYTES)
                    is_plain = found[:4] == b"DIRC" and found[4:8] in {b"\0\0\0\2", b"\0\0\0\3"}
                    return found if is_plain else b""
        return b""

    @property
    def can_search(self) -> bool:
        return bool(self._index)

    def with_content(self, blob: str) -> list[str]:
        """Return a few tracked files with this content."""
        found = (self._path_after(at) for at in _occurrences(self._index, bytes.fromhex(blob)))
        return list(islice(filter(None, found), _PLACE_LIMIT))

    def with_name(self, name: str) -> list[str]:
        """Return a few tracked files with this name."""
        wanted = name.encode(errors="surrogateescape") + b"\0"
        ends = (at + len(wanted) - 1 for at in _occurrences(self._index, wanted))
        found = (self._path_before(end, len(wanted) - 1) for end in ends)
        return list(islice(filter(None, found), _PLACE_LIMIT))

    def _path_after(self, at: int) -> str:
        flags = int.from_bytes(self._index[at + 20 : at + 22], "big")
        start = at + (24 if flags & 0x4000 else 22)
        return os.fsdecode(self._index[start : self._index.find(b"\0", start)])

    def _path_before(self, end: int, least: int) -> str:
        """Return the path that ends there; the flags before it contain its length."""
        for length in range(least, min(_LONGEST_PATH, end - _FIELDS)):
            start = end - length
            if self._index[start - 2 : start] in _flags(length):
                path = self._index[start:end]
                is_whole = length == least or path[-least - 1 : -least] == b"/"
                return os.fsdecode(path) if is_whole and b"\0" not in path else ""
        return ""


def _flags(length: int) -> tuple[bytes, bytes]:
    """Return the flags of an entry with a path of this length, without and with the valid bit."""
    return length.to_bytes(2, "big"), (length | 0x8000).to_bytes(2, "big")


def _occurrences(data: bytes, wanted: bytes) -> Iterator[int]:
    at = data.find(wanted) if wanted else -1
    while at >= 0:
        yield at
        at = data.find(wanted, at + 1)


def _names(folder: Path) -> list[str]:
    with suppress(OSError):
        return [each.name for each in folder.iterdir()]
    return []


def _key(commit: str, head: str) -> str:
    return sha256(f"{commit} {head}".encode()).hexdigest()[:16]
