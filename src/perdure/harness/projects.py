"""Which project a folder belongs to, and where that project is kept."""

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from perdure.errors import ProjectError
from perdure.harness.git import Checkout, checkout_at, name_in, text_in, without_secrets
from perdure.harness.marks import HARNESS
from perdure.model.uri import check_slug, slugify
from perdure.storage import Locator, StorageBackend

SETTINGS = "project.json"
PROJECTS = "projects"

REPOSITORY, WORKTREE, FOLDER = "repository", "worktree", "folder"
_LETTERS_TOLD_APART = 8


class Project(NamedTuple):
    """A project, and the backend that keeps what is to outlast this checkout."""

    slug: str
    project_locator: Locator | None
    """Where the backend keeps it; None without a backend."""
    backend: StorageBackend | None
    project_root: str
    """The top of this checkout, or the folder itself."""
    layout: str
    """`repository`, `worktree` of one, or a `folder` that is none."""


def resolve_project(cwd: str, backend: StorageBackend | None) -> Project:
    """Return the project of a folder; `ProjectError` if there is no such folder.

    Its name is `slug` in `.harness/project.json`; else what the git remote calls it; else what its
    folder is called. All worktrees of a repository are one project.
    """
    root = project_root(cwd)
    checkout = checkout_at(Path(root))
    slug = _slug(Path(root), checkout)
    layout = FOLDER
    if checkout is not None:
        layout = WORKTREE if checkout.is_worktree else REPOSITORY
    place = None if backend is None else project_locator(backend, slug)
    return Project(slug, place, backend, root, layout)


def project_locator(backend: StorageBackend, slug: str) -> Locator:
    return backend.resolve(PROJECTS).child(check_slug(slug, "the name of a project"))


def project_root(cwd: str) -> str:
    """Return the nearest folder that is the top of a checkout or names a project; else `cwd`."""
    try:
        start = Path(cwd).resolve(strict=True)
        is_folder = start.is_dir()
    except (OSError, ValueError) as error:
        raise _no_folder(cwd) from error
    if not is_folder:
        raise _no_folder(cwd)
    places = (start, *start.parents)
    tops = (each for each in places if _is_top(each))
    kept = (each for each in places[:-1] if (each / HARNESS).is_dir())
    return str(next(tops, None) or next(kept, None) or start)


def remote_of(project: Project) -> str:
    """Return the URL of a project's git remote, without secrets; empty if it has none."""
    checkout = checkout_at(Path(project.project_root))
    return "" if checkout is None else without_secrets(checkout.remote)


def roots_of(project: Project) -> tuple[str, ...]:
    """Return where a project is checked out, as far as this checkout knows: itself last."""
    checkout = checkout_at(Path(project.project_root))
    if checkout is None or not checkout.is_worktree:
        return (project.project_root,)
    return str(checkout.main or checkout.common), project.project_root


def _no_folder(cwd: str) -> ProjectError:
    return ProjectError(f"{cwd!a} is no folder, so it is of no project. Fix: name a folder.")


def _is_top(folder: Path) -> bool:
    try:
        return (folder / ".git").exists() or (folder / HARNESS / SETTINGS).is_file()
    except OSError:  # not for us to look into
        return False


# ---------------------------------------------------------------- names
def _slug(root: Path, checkout: Checkout | None) -> str:
    tops = [root] if checkout is None or checkout.main is None else [root, checkout.main]
    for top in tops:
        if (named := _configured(top / HARNESS / SETTINGS)) is not None:
            return named
    if checkout is not None and (called := name_in(checkout.remote)):
        return slug_of(called)
    return slug_of(_folder_name(root, checkout))


def _folder_name(root: Path, checkout: Checkout | None) -> str:
    if checkout is None or not checkout.is_worktree:
        return root.name
    return checkout.main.name if checkout.main else checkout.common.name.removesuffix(".git")


def slug_of(name: str) -> str:
    """Return the slug of a project that is called so.

    Letters that a slug can't have would make many names one; so some digits of a hash tell them
    apart.
    """
    slug = slugify(name)
    if name.isascii() and re.search(r"[A-Za-z0-9]", name):
        return slug
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:_LETTERS_TOLD_APART]
    return f"{slug[:80].strip('-')}-{digest}"


def _configured(path: Path) -> str | None:
    """Return the slug that a file names; None if there is no file, or it names none."""
    if not path.is_file():
        return None
    try:
        said = _object(text_in(path) or "")
        return check_slug(said["slug"], "the name of a project") if "slug" in said else None
    except (ValueError, TypeError, RecursionError) as error:
        told = str(error).partition("\n")[0]
        raise ProjectError(
            f'{str(path)!a} names no project: {told} Fix: write {{"slug": "my-project"}}.'
        ) from error


def _object(text: str) -> dict[str, object]:
    said = json.loads(text)
    if not isinstance(said, dict):
        raise TypeError("it is no object.")
    return said
