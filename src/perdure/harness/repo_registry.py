"""The registry of repositories, one file in the active backend."""

import json
from collections.abc import Callable
from typing import NamedTuple

from perdure.errors import (
    AbsentError,
    ConcurrentModificationError,
    NotTextError,
    ProjectError,
    RepoRegistryError,
    SlugTakenError,
)
from perdure.model.uri import check_slug
from perdure.storage import ABSENT, Locator, StorageBackend, content_hash

META, FILE = "_meta", "repos.json"
_ATTEMPTS = 1000
"""Each failed attempt means that another process succeeded."""
_VERSION = 1


class Repo(NamedTuple):
    """A repository, identified by the slug of its project."""

    slug: str
    remote: str = ""
    """The URL of its git remote without credentials; empty without a remote."""
    roots: tuple[str, ...] = ()
    """Its checkouts, also those on other machines that share the backend."""


Repos = dict[str, Repo]


def registry_locator(backend: StorageBackend) -> Locator:
    return backend.resolve(META, FILE)


def list_repos(backend: StorageBackend) -> list[Repo]:
    """Return all repositories by slug; raises `RepoRegistryError` if the file is damaged."""
    repos, _ = _read(backend)
    return [repos[slug] for slug in sorted(repos)]


def find_repo(backend: StorageBackend, slug: str) -> Repo | None:
    return _read(backend)[0].get(slug)


def register_repo(backend: StorageBackend, repo: Repo) -> Repo:
    """Add a repository, or update a registered one; return the registered one.

    Raises `SlugTakenError` if another repository has its slug: the two would share their state.
    """
    if not repo.slug:
        raise ProjectError(
            f"{' '.join(repo.roots)!a} is not a project. Fix: make it a git repository, or name it "
            'with {"slug": "..."} in its .harness/project.json.'
        )
    check_slug(repo.slug, "the name of a project")

    def change(repos: Repos) -> Repos:
        known = repos.get(repo.slug)
        return {**repos, repo.slug: repo if known is None else _merge(known, repo)}

    return _mutate(backend, change)[repo.slug]


def unregister_repo(backend: StorageBackend, slug: str) -> bool:
    known = False

    def change(repos: Repos) -> Repos:
        nonlocal known
        known = slug in repos
        return {name: repo for name, repo in repos.items() if name != slug}

    _mutate(backend, change)
    return known


def _merge(known: Repo, repo: Repo) -> Repo:
    if not _is_same(known, repo):
        theirs, ours = (each.remote or " ".join(each.roots) for each in (known, repo))
        raise SlugTakenError(
            f"{repo.slug!a} is another repository: {theirs!a}, and not {ours!a}. Fix: give this "
            f'one a name of its own with {{"slug": "..."}} in its .harness/project.json, or run '
            f"`perdure repo unregister {repo.slug}` if it has moved."
        )
    roots = tuple(dict.fromkeys((*known.roots, *repo.roots)))
    return Repo(repo.slug, repo.remote or known.remote, roots)


def _is_same(known: Repo, repo: Repo) -> bool:
    """Whether two have the same remote; if one has none, whether they share a root."""
    if known.remote and repo.remote:
        return known.remote == repo.remote
    return bool(set(known.roots) & set(repo.roots)) or not (known.roots and repo.roots)


# ---------------------------------------------------------------- the file
def _mutate(backend: StorageBackend, change: Callable[[Repos], Repos]) -> Repos:
    """Change the registry with optimistic locking."""
    for attempt in range(1, _ATTEMPTS + 1):
        repos, before = _read(backend)
        after = change(repos)
        if after == repos:
            return after
        expect = ABSENT if before is None else content_hash(before.encode())
        try:
            backend.write(registry_locator(backend), _written(after), expect=expect)
        except ConcurrentModificationError:
            if attempt == _ATTEMPTS:
                raise
            continue
        return after
    raise AssertionError("unreachable")  # pragma: no cover


def _read(backend: StorageBackend) -> tuple[Repos, str | None]:
    try:
        text = backend.read(registry_locator(backend))
    except AbsentError:
        return {}, None
    except NotTextError as error:
        raise _broken(backend, str(error)) from error
    try:
        return _parsed(text), text
    except (ValueError, TypeError, RecursionError) as error:
        raise _broken(backend, str(error)) from error


def _parsed(text: str) -> Repos:
    data = json.loads(text)
    if not isinstance(data, dict) or data.get("version") != _VERSION:
        raise ValueError(f"it is not a list of version {_VERSION}")
    repos = data.get("repos")
    if not isinstance(repos, dict):
        raise TypeError("it has no repos")
    return {check_slug(slug): _repo(slug, entry) for slug, entry in repos.items()}


def _repo(slug: str, entry: object) -> Repo:
    if not isinstance(entry, dict):
        raise TypeError(f"{slug!a} is not an object")
    remote, roots = entry.get("remote", ""), entry.get("roots", [])
    if not isinstance(remote, str) or not isinstance(roots, list):
        raise TypeError(f"{slug!a} has an invalid remote or roots")
    if not all(isinstance(root, str) for root in roots):
        raise TypeError(f"{slug!a} has a root that is not a text")
    return Repo(slug, remote, tuple(roots))


def _written(repos: Repos) -> str:
    data = {
        slug: {"remote": repo.remote, "roots": list(repo.roots)}
        for slug, repo in sorted(repos.items())
    }
    return json.dumps({"version": _VERSION, "repos": data}, indent=2, ensure_ascii=False) + "\n"


def _broken(backend: StorageBackend, what: str) -> RepoRegistryError:
    key = registry_locator(backend).key
    return RepoRegistryError(
        f"{key!a} in {backend.whereabouts!a} is damaged: {what[:200]}. "
        "Fix: correct it, or move it away and register the repositories again."
    )
