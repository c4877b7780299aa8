"""The project of a folder: its git checkout, its identity and its slug."""

import errno
import json
import os
import re
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from perdure.errors import NotTextError, ProjectError, storage_read_error
from perdure.model.project_aliases import BORN, ProjectAliases, ProjectIdentity
from perdure.model.uri import SLUG, check_slug, slugify
from perdure.patterns import later
from perdure.storage import Locator, StorageBackend
from perdure.storage.openat import DIRECTORY, FILE, identify, opened, read_all

_TEXT_BYTES = 1 << 16
_PACKED_BYTES = 1 << 24
_GITDIR = "gitdir:"
_SECTION = r'\[\s*remote\s+"((?:[^"\\]|\\.)*)"\s*\]'
_URL = r"url\s*=\s*(.*)"
_COMMENT = r"\s[#;].*$"
_FIRST_REMOTE = "origin"
_URL_OF_REMOTE = later(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?:[^/]*@)?(?P<host>[^/:@]*)(?::[0-9]+)?/(?P<path>.*)"
    r"|(?:[^/@:\s]+@)?(?P<alias>[^/@:\s]{2,}):(?P<file>(?!//).*)",
    re.IGNORECASE | re.DOTALL,
)
"""A URL, or `user@host:path`; a single letter before the colon is a drive."""
_HOSTS = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
}
_OWNER_AND_NAME = 2
_GIT_SECONDS = 2.0
_COMMIT = later("[0-9a-f]{40}(?:[0-9a-f]{24})?")
_TEMPORARY = "/tmp"  # noqa: S108 - compared with, not written to


class GitCheckout(NamedTuple):
    common: Path
    """The folder of the repository, which all its worktrees share."""
    own: Path
    """The folder of this working tree in it; the same for the main one."""

    @property
    def is_worktree(self) -> bool:
        return self.own != self.common

    @property
    def main(self) -> Path | None:
        """The main working tree; None for a bare repository."""
        return self.common.parent if self.common.name == ".git" else None

    @property
    def remote(self) -> str:
        """The URL of origin, else of the first remote; empty without a remote."""
        remotes = _remotes(text_in(self.common / "config") or "")
        return remotes.get(_FIRST_REMOTE) or next(iter(remotes.values()), "")


def checkout_at(root: Path) -> GitCheckout | None:
    """Return the checkout with this folder as its top; None if there is none."""
    found = root / ".git"
    if found.is_dir():
        return GitCheckout(found, found)
    value = (text_in(found) or "").strip()
    if not value.startswith(_GITDIR):
        return None
    own = Path(root, value.removeprefix(_GITDIR).strip())
    shared = (text_in(own / "commondir") or "").strip()
    if not shared:  # a submodule, or a separate git folder
        return GitCheckout(own, own)
    return GitCheckout(Path(own, shared).resolve(), own)


def head_at(cwd: str) -> tuple[str, str]:
    """Return the branch and the commit of a folder's checkout; "" where there is none.

    Git is not run, because hooks call this.
    """
    found = top_of(cwd)
    return ("", "") if found is None else head_of(found[1])


def top_of(folder: str) -> tuple[str, GitCheckout] | None:
    """Return the top of a folder's checkout, and the checkout; None if it is in none."""
    with suppress(ProjectError, OSError):
        root = project_root(folder) if folder else ""
        checkout = checkout_at(Path(root)) if root else None
        return None if checkout is None else (root, checkout)
    return None


def head_of(checkout: GitCheckout) -> tuple[str, str]:
    """Return the branch and the commit that are checked out; "" where there is none."""
    head = (text_in(checkout.own / "HEAD") or "").strip()
    ref = head.removeprefix("ref:").strip()
    commit = ref_in(checkout, ref) if ref != head else head
    branch = ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else ""
    return branch, commit if _COMMIT.fullmatch(commit) else ""


def ref_in(checkout: GitCheckout, ref: str) -> str:
    """Return the commit of a ref; "" if it does not exist."""
    safe = re.fullmatch(r"refs/(?!.*\.\.)[^\0]+", ref)
    commit = (text_in(checkout.common / ref) or "").strip() if safe else ""
    commit = commit or _packed(checkout.common / "packed-refs", ref)
    return commit if _COMMIT.fullmatch(commit) else ""


def _packed(path: Path, ref: str) -> str:
    """Return the commit of a ref in packed-refs, which may have 10⁵ lines."""
    with suppress(OSError), path.open("rb") as file:
        found = file.read(_PACKED_BYTES)
        end = found.find(b" %b\n" % os.fsencode(ref))
        return found[found.rfind(b"\n", 0, end) + 1 : end].decode() if end >= 0 else ""
    return ""


def text_in(path: Path) -> str | None:
    """Return the start of a text file; None if it can't be read."""
    try:
        with path.open("rb") as file:
            return file.read(_TEXT_BYTES).decode(errors="replace")
    except (OSError, ValueError):  # ValueError: an invalid path
        return None


def _remotes(config: str) -> dict[str, str]:
    """Return the URLs of the remotes by name, in file order."""
    found: dict[str, str] = {}
    remote = None
    for line in map(str.strip, config.splitlines()):
        if line.startswith("["):
            section = re.match(_SECTION, line, re.IGNORECASE)
            remote = section[1] if section else None
        elif remote is not None and (url := re.fullmatch(_URL, line, re.IGNORECASE)):
            value = re.sub(_COMMENT, "", url[1]).strip().strip('"')
            found.setdefault(remote, value)
    return {name: url for name, url in found.items() if url}


def without_secrets(url: str) -> str:
    """Return a URL without credentials, query and fragment."""
    bare = re.sub(r"[?#].*$", "", url, flags=re.DOTALL)
    return re.sub(r"^([a-z][a-z0-9+.-]*://)[^/]*@", r"\1", bare, flags=re.IGNORECASE)


HARNESS = ".harness"
"""The folder in a checkout for state that belongs to it."""
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})


def read_local(project_root: str, name: str) -> str | None:
    """Return the text of a file in `.harness`; None if absent; `StorageError` if not text."""
    key = f"{HARNESS}/{name}"
    try:
        with opened(project_root, key, FILE) as descriptor:
            return read_all(descriptor).decode()
    except UnicodeDecodeError as error:
        raise NotTextError(
            f"{key!a} in {project_root!a} is not UTF-8. Fix: save it as UTF-8, or remove it."
        ) from error
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise storage_read_error(error, project_root, key) from error


def read_mark(project_root: str, name: str) -> str | None:
    value = read_local(project_root, name)
    return None if value is None else value.strip()


def list_local(project_root: str) -> list[str]:
    """Return the names in `.harness`; none if it is absent, or a link."""
    with suppress(OSError), opened(project_root, HARNESS, DIRECTORY) as directory:
        return sorted(os.listdir(directory))  # noqa: PTH208 - of an open folder
    return []


SETTINGS = "project.json"
PROJECTS = "projects"

REPOSITORY, WORKTREE, FOLDER = "repository", "worktree", "folder"


class Project(NamedTuple):
    """A project, and the backend of the state that outlives this checkout."""

    slug: str
    project_locator: Locator | None
    """Its folder in the backend; None without a backend."""
    backend: StorageBackend | None
    project_root: str
    """The top of this checkout, or the folder itself."""
    layout: str
    """`repository`, `worktree`, or `folder` if there is no git."""


_NO_ALIASES = ProjectAliases()


def resolve_project(
    cwd: str, backend: StorageBackend | None, aliases: ProjectAliases = _NO_ALIASES
) -> Project:
    """Return the project of a folder; raises `ProjectError` if the folder does not exist.

    Its slug is `slug` in `.harness/project.json`; else it is derived from the git remote, the
    oldest commit, or the path of a folder without git, never from a folder's name alone. All
    worktrees and clones of a repository are one project. The home folder and folders in the
    temporary folder have an empty slug, unless they are repositories. `aliases` map an identity to
    the project that the user assigned it to.
    """
    root = project_root(cwd)
    checkout = checkout_at(Path(root))
    slug = aliases.project(_identity(cwd, Path(root), checkout))
    tracked = WORKTREE if checkout is not None and checkout.is_worktree else REPOSITORY
    place = None if backend is None or not slug else project_locator(backend, slug)
    return Project(slug, place, backend, root, FOLDER if checkout is None else tracked)


def identity_at(cwd: str) -> ProjectIdentity:
    """Return the identity of a folder's project, also of a removed folder; "" for none."""
    try:
        root = project_root(cwd)
    except ProjectError:
        folder = Path(os.path.normpath(cwd))
        is_project = folder.is_absolute() and not _has_no_project(folder)
        return ProjectIdentity(_unique_slug(folder.name, str(folder)) if is_project else "")
    found = _identity(cwd, Path(root), checkout_at(Path(root)))
    return found._replace(folder=os.path.realpath(cwd))


def project_locator(backend: StorageBackend, slug: str) -> Locator:
    return backend.resolve(PROJECTS).child(check_slug(slug, "the name of a project"))


def project_root(cwd: str) -> str:
    """Return the nearest top of a checkout or named project, else with `.harness`; else `cwd`."""
    try:
        start = Path(cwd).resolve(strict=True)
        is_folder = start.is_dir()
    except (OSError, ValueError) as error:
        raise _no_folder(cwd) from error
    if not is_folder:
        raise _no_folder(cwd)
    places = (start, *start.parents)
    tops = (each for each in places if _is_top(each))
    with_state = (each for each in places[:-1] if (each / HARNESS).is_dir())
    return str(next(tops, None) or next(with_state, None) or start)


def remote_of(project: Project) -> str:
    """Return the URL of a project's git remote without credentials; empty without a remote."""
    checkout = checkout_at(Path(project.project_root))
    return "" if checkout is None else without_secrets(checkout.remote)


def roots_of(project: Project) -> tuple[str, ...]:
    """Return the main working tree of a project, if this is another, and this checkout."""
    checkout = checkout_at(Path(project.project_root))
    if checkout is None or not checkout.is_worktree:
        return (project.project_root,)
    return str(checkout.main or checkout.common), project.project_root


def _no_folder(cwd: str) -> ProjectError:
    return ProjectError(f"{cwd!a} is not a folder, so it has no project. Fix: name a folder.")


def _is_top(folder: Path) -> bool:
    try:
        return (folder / ".git").exists() or (folder / HARNESS / SETTINGS).is_file()
    except OSError:  # not readable
        return False


# ---------------------------------------------------------------- identities
def _identity(cwd: str, root: Path, checkout: GitCheckout | None) -> ProjectIdentity:
    """Return the identity of a project: configured, by its repository, or by its path."""
    below = Path(os.path.realpath(cwd)).relative_to(root).as_posix()
    within = "" if below == "." else below
    for top in [root] if checkout is None or checkout.main is None else [root, checkout.main]:
        if (named := _configured(top / HARNESS / SETTINGS)) is not None:
            return ProjectIdentity(named, within)
    if checkout is None:
        named = "" if _has_no_project(root) else _unique_slug(root.name, str(root))
        return ProjectIdentity(named, within, births=cache(partial(_births, root)))
    common, first = checkout.common, cache(partial(root_identity, checkout.common))
    births = cache(partial(_births, common, *filter(None, [checkout.main])))
    if remote := identity_of(checkout.remote):
        slug = slug_of_identity(remote)
    else:
        slug = first() or _unique_slug((checkout.main or common).name, f"{common}{_birth(common)}")
    return ProjectIdentity(
        slug, within, first, births, partial(_is_own, common, first), bool(remote)
    )


def _is_own(common: Path, root: Callable[[], str]) -> bool:
    """Whether the first commit was made in this repository, rather than cloned."""
    log = text_in(common / "logs" / "HEAD") or ""
    initial = rf"^\w+ {root()[4:]}\w* .*\tcommit \((?:initial|amend)\)"
    return bool(re.search(initial, log, re.MULTILINE)) if root() else not log


def _births(*folders: Path) -> tuple[str, ...]:
    """Return identities by birth and inode; a repository's is the same after a move."""
    found = ((_birth(each), "" if each.name == ".git" else each) for each in folders)
    return tuple(_unique_slug(BORN, f"{birth} {path}") for birth, path in found if birth)


def _birth(folder: Path) -> str:
    """Return when a folder was created, and its inode; "" if the system can't tell."""
    with suppress(OSError, ValueError):  # no such folder
        _, inode, birth = identify(str(folder))
        at = struct.pack("<qI", *divmod(birth, 1_000_000_000)).strip(b"\0").hex()
        return f"{at} {inode}" if at else ""
    return ""


def _has_no_project(folder: Path) -> bool:
    """Whether a folder without git is the root, the home, or in the temporary folder."""
    temporary = {Path(os.environ.get("TMPDIR") or _TEMPORARY).resolve(), Path(_TEMPORARY)}
    at_home = folder in {Path(folder.anchor), Path.home().resolve()}
    return at_home or not temporary.isdisjoint({folder, *folder.parents})


def identity_of(remote: str) -> str:
    """Return `host/path` of a remote, the same for all spellings; "" for a local path."""
    url = _URL_OF_REMOTE.fullmatch(remote.strip())
    if url is None or (url["scheme"] or "").casefold() == "file":
        return ""
    host = (url["host"] or url["alias"] or "").casefold().removeprefix("www.")
    path = re.sub(r"/+", "/", (url["path"] or url["file"] or "").casefold()).strip("/")
    path = re.sub(r"(?:\.git|/)+$", "", path.partition("?")[0].partition("#")[0])
    return f"{_HOSTS.get(host, host)}/{path}" if path else ""


def slug_of_identity(identity: str) -> str:
    """Return the slug of a repository, which no other repository has.

    `owner-name` on GitHub; with a digest where that is ambiguous, and on other hosts.
    """
    host, *names = identity.split("/")
    joined = "-".join(names)
    is_plain = (
        host == "github.com"
        and len(names) == _OWNER_AND_NAME
        and not re.search("^git$|-", names[0])
    )
    if is_plain and SLUG.fullmatch(joined) and not re.search(r"-[0-9a-f]{8}$", joined):
        return joined
    return _unique_slug("-".join(names[-_OWNER_AND_NAME:]), identity)


def root_identity(common: Path) -> str:
    """Return the identity of a repository by its oldest root commit; "" if git can't tell."""
    command = ("log", "--all", "--max-parents=0", "--format=%ct %H")
    done = run_git((f"--git-dir={common}", *command), _GIT_SECONDS)
    commits = [line.split() for line in (done or "").splitlines()]
    dated = [(int(time), commit) for time, commit in commits]
    return f"git-{min(dated)[1][:12]}" if dated else ""


def commit_time(cwd: str, name: str) -> datetime | None:
    """Return the time of a commit in a folder's checkout; None if it does not exist."""
    command = ("log", "-1", "--format=%ct", "--end-of-options", name, "--")
    found = (run_git(("-C", cwd, *command), _GIT_SECONDS) or "").strip()
    if not found.isdecimal():
        return None
    return datetime.fromtimestamp(int(found), UTC).replace(microsecond=999_000)  # the whole second


def run_git(arguments: Sequence[str], seconds: float, stdin: str = "") -> str | None:
    """Return the output of git; None if it fails or exceeds the time.

    Git only reads: programs that a repository may configure are disabled, and nothing is fetched.
    """
    import subprocess  # noqa: PLC0415 - most calls need no git

    off = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    settings = {"GIT_CONFIG_NOSYSTEM": "1", "HOME": "/", "GIT_OPTIONAL_LOCKS": "0"}
    never = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(  # noqa: S603 - the repository can't run code
            ("git", *off, *arguments),  # noqa: S607 - the user's own git
            input=stdin.encode(errors="surrogateescape"),
            capture_output=True,
            timeout=seconds,
            check=True,
            env={"PATH": os.environ.get("PATH", ""), **settings, **never},
        )
    except (OSError, ValueError, subprocess.SubprocessError):  # ValueError: a NUL in a path
        return None
    return done.stdout.decode(errors="surrogateescape")


def _unique_slug(name: str, identity: str) -> str:
    digest = sha256(identity.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{slugify(name)[:80].strip('-')}-{digest}"


def _configured(path: Path) -> str | None:
    """Return the slug in a project file; None if there is no file, or no slug in it."""
    if not path.is_file():
        return None
    try:
        value = json.loads(text_in(path) or "")
        if not isinstance(value, dict):
            raise TypeError("it is not an object.")  # noqa: TRY301 - reported like invalid JSON
        return check_slug(value["slug"], "the name of a project") if "slug" in value else None
    except (ValueError, TypeError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise ProjectError(
            f'{str(path)!a} is not valid: {reason} Fix: write {{"slug": "my-project"}}.'
        ) from error
