"""Repositories can be registered, listed and unregistered on any backend, by several at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from perdure.errors import RepoRegistryError, SlugTakenError
from perdure.harness.project import project_locator
from perdure.harness.repo_registry import (
    Repo,
    find_repo,
    list_repos,
    register_repo,
    registry_locator,
    unregister_repo,
)
from perdure.storage import Expectation, Locator, StorageBackend
from perdure.testing.requirement import requirement
from perdure.testing.suite import Suite

ONE = Repo("one", "https://example.com/a/one", ("/work/one",))
TWO = Repo("two", "", ("/work/two",))
_AT_ONCE = 6

BROKEN = (
    "{",
    "",
    "[]",
    "null",
    "{}",
    '{"version": 1}',
    '{"version": 2, "repos": {}}',
    '{"version": 1, "repos": []}',
    '{"version": 1, "repos": {"one": []}}',
    '{"version": 1, "repos": {"../one": {}}}',
    '{"version": 1, "repos": {"one": {"remote": 1}}}',
    '{"version": 1, "repos": {"one": {"roots": "/"}}}',
    '{"version": 1, "repos": {"one": {"roots": [1]}}}',
    "[" * 100_000,
)
"""Texts that no registry can be read from."""


class _Interrupted:
    """A backend where another process registers a repository before the first write."""

    def __init__(self, inner: StorageBackend, other: Repo) -> None:
        self._inner = inner
        self._others = [other]

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        while self._others:
            register_repo(self._inner, self._others.pop())
        return self._inner.write(locator, content, expect=expect)


class RoutingConformance(Suite):
    """What routing needs of a backend."""

    hooks = frozenset({"promises", "open_backend"})
    known_promises = frozenset[str]()

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        """Open the backend under test on the empty folder `place`; again, it is the same store."""
        raise NotImplementedError("say how to open the backend under test")

    @pytest.fixture
    def backend(self, tmp_path: Path) -> StorageBackend:
        return self.open_backend(tmp_path)

    @requirement("001-repo-registry-locator")
    def test_the_registry_is_one_text_of_the_backend(self, backend: StorageBackend) -> None:
        register_repo(backend, ONE)

        assert registry_locator(backend) == backend.resolve("_meta", "repos.json")
        assert "https://example.com/a/one" in backend.read(Locator("_meta/repos.json"))

    def test_a_project_has_a_place_of_its_own(self, backend: StorageBackend) -> None:
        assert project_locator(backend, "one") == backend.resolve("projects", "one")

    @requirement("001-conformance-routing")
    def test_nothing_is_registered_at_first(self, backend: StorageBackend) -> None:
        assert list_repos(backend) == []
        assert not backend.exists(registry_locator(backend))

    @requirement("001-conformance-routing")
    def test_what_is_registered_is_listed_by_slug(self, backend: StorageBackend) -> None:
        for repo in (TWO, ONE):
            assert register_repo(backend, repo) == repo

        assert list_repos(backend) == [ONE, TWO]
        assert find_repo(backend, "two") == TWO
        assert find_repo(backend, "three") is None

    @requirement("001-conformance-routing")
    def test_what_is_unregistered_is_gone(self, backend: StorageBackend) -> None:
        register_repo(backend, ONE)
        register_repo(backend, TWO)

        assert unregister_repo(backend, "one")
        assert not unregister_repo(backend, "one")
        assert list_repos(backend) == [TWO]

    def test_to_register_twice_is_as_once(self, backend: StorageBackend) -> None:
        register_repo(backend, ONE)
        before = backend.read(registry_locator(backend))

        register_repo(backend, ONE)

        assert backend.read(registry_locator(backend)) == before

    def test_another_checkout_of_a_repository_is_added(self, backend: StorageBackend) -> None:
        register_repo(backend, ONE)

        known = register_repo(backend, ONE._replace(roots=("/work/worktree",)))

        assert known.roots == ("/work/one", "/work/worktree")
        assert list_repos(backend) == [known]

    @pytest.mark.parametrize(
        "other",
        [
            ONE._replace(remote="https://example.com/b/one", roots=("/b/one",)),
            ONE._replace(remote="", roots=("/b/one",)),
        ],
    )
    def test_another_repository_of_the_same_name_is_reported(
        self, backend: StorageBackend, other: Repo
    ) -> None:
        register_repo(backend, ONE)

        with pytest.raises(SlugTakenError, match="Fix: give this one a name of its own"):
            register_repo(backend, other)
        assert list_repos(backend) == [ONE]

    @pytest.mark.parametrize("slug", ["../one", "", "a/b", "One"])
    def test_no_slug_but_a_good_one_is_registered(self, backend: StorageBackend, slug: str) -> None:
        with pytest.raises(ValueError, match="Fix"):
            register_repo(backend, Repo(slug))
        assert list_repos(backend) == []

    @pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
    def test_a_registry_that_is_broken_is_reported_and_stays(
        self, backend: StorageBackend, text: str
    ) -> None:
        backend.write(registry_locator(backend), text)

        for act in (list_repos, lambda each: register_repo(each, ONE)):
            with pytest.raises(RepoRegistryError, match="is damaged"):
                act(backend)
        with pytest.raises(RepoRegistryError, match="is damaged"):
            unregister_repo(backend, "one")
        assert backend.read(registry_locator(backend)) == text

    def test_who_comes_second_undoes_nothing(self, backend: StorageBackend) -> None:
        register_repo(cast("StorageBackend", _Interrupted(backend, TWO)), ONE)

        assert list_repos(backend) == [ONE, TWO]

    def test_several_register_at_once_and_none_is_lost(self, backend: StorageBackend) -> None:
        repos = [Repo(f"repo-{number}") for number in range(_AT_ONCE)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda repo: register_repo(backend, repo), repos))

        assert list_repos(backend) == repos
