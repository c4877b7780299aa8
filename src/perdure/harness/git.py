"""What a checkout says of itself: read from git's own files, because to start git takes longer."""

import re
from pathlib import Path
from typing import NamedTuple

_MOST_BYTES = 1 << 16
_GITDIR = "gitdir:"
_SECTION = r'\[\s*remote\s+"((?:[^"\\]|\\.)*)"\s*\]'
_URL = r"url\s*=\s*(.*)"
_COMMENT = r"\s[#;].*$"
_FIRST_REMOTE = "origin"


class Checkout(NamedTuple):
    """A working tree of a repository."""

    common: Path
    """The folder of the repository itself, which all its worktrees share."""
    is_worktree: bool

    @property
    def main(self) -> Path | None:
        """The working tree that the repository was made with; None if it has none."""
        return self.common.parent if self.common.name == ".git" else None

    @property
    def remote(self) -> str:
        """The URL of the remote: of origin, or of the first there is; empty without any."""
        remotes = _remotes(text_in(self.common / "config") or "")
        return remotes.get(_FIRST_REMOTE) or next(iter(remotes.values()), "")


def checkout_at(root: Path) -> Checkout | None:
    """Return the checkout whose top this folder is; None if it is none."""
    found = root / ".git"
    if found.is_dir():
        return Checkout(found, is_worktree=False)
    said = (text_in(found) or "").strip()
    if not said.startswith(_GITDIR):
        return None
    own = Path(root, said.removeprefix(_GITDIR).strip())
    shared = (text_in(own / "commondir") or "").strip()
    if not shared:  # a submodule, or a repository that is kept elsewhere
        return Checkout(own, is_worktree=False)
    return Checkout(Path(own, shared).resolve(), is_worktree=True)


def text_in(path: Path) -> str | None:
    """Return how a small file begins; None if it can't be had."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode(errors="replace")
    except (OSError, ValueError):  # ValueError: no file can be called so
        return None


def _remotes(config: str) -> dict[str, str]:
    """Return the URLs of the remotes, by name, in the order of the file."""
    found: dict[str, str] = {}
    remote = None
    for line in map(str.strip, config.splitlines()):
        if line.startswith("["):
            section = re.match(_SECTION, line, re.IGNORECASE)
            remote = section[1] if section else None
        elif remote is not None and (url := re.fullmatch(_URL, line, re.IGNORECASE)):
            said = re.sub(_COMMENT, "", url[1]).strip().strip('"')
            found.setdefault(remote, said)
    return {name: url for name, url in found.items() if url}


def name_in(url: str) -> str:
    """Return what a remote calls the repository: the last part of its URL."""
    last = re.split(r"[/:\\]", url.rstrip("/\\"))[-1]
    return last.removesuffix(".git")


def without_secrets(url: str) -> str:
    """Return a URL without who logs in, and without what comes after a question mark."""
    bare = re.sub(r"[?#].*$", "", url, flags=re.DOTALL)
    return re.sub(r"^([a-z][a-z0-9+.-]*://)[^/]*@", r"\1", bare, flags=re.IGNORECASE)
