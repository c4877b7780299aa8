"""The registry of repositories, on each backend that ships."""

import inspect
from pathlib import Path

import pytest

from perdure.errors import ConcurrentModificationError
from perdure.harness import repo_registry
from perdure.harness.repo_registry import Repo, list_repos, register_repo
from perdure.storage import Expectation, Locator, StorageBackend
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.vault import VaultBackend
from perdure.testing.requirement import requirement
from tests.harness.conftest import Machine
from tests.support.harness import RoutingConformance


class TestMemory(RoutingConformance):
    promises = frozenset()

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        return MemoryBackend()


class TestDeviceLocal(RoutingConformance):
    promises = frozenset()

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        return DeviceLocalBackend(str(place / "memory"), str(place / "home"))


class TestVault(RoutingConformance):
    promises = frozenset()

    @staticmethod
    def open_backend(place: Path) -> StorageBackend:
        (place / "vault").mkdir(exist_ok=True)
        return VaultBackend(str(place / "vault"), str(place / "home"))


@requirement("001-conformance-routing-both-backends")
def test_the_routing_suite_runs_on_both_file_backends(tmp_path: Path) -> None:
    ran = {type(each.open_backend(tmp_path)) for each in (TestDeviceLocal, TestVault)}

    assert ran == {DeviceLocalBackend, VaultBackend}
    assert all(issubclass(each, RoutingConformance) for each in (TestDeviceLocal, TestVault))


@requirement("001-repo-registry-takes-backend")
def test_every_public_function_takes_the_backend_first() -> None:
    functions = [
        each
        for name, each in inspect.getmembers(repo_registry, inspect.isfunction)
        if not name.startswith("_") and each.__module__ == repo_registry.__name__
    ]

    assert len(functions) == 5
    for function in functions:
        first, *_ = inspect.signature(function).parameters.values()
        assert (first.name, first.annotation) == ("backend", StorageBackend)


@requirement("001-repo-registry-vault-place", "001-repo-registry-device-local-place")
def test_the_registry_is_a_file_of_the_store(machine: Machine) -> None:
    register_repo(machine.backend(), Repo("one"))

    file = machine.store / "_meta" / "repos.json"
    assert '"one"' in file.read_text(encoding="utf-8")
    assert machine.store in (machine.vault, machine.home / "memory")


class IgnoresConditions(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        return super().write(locator, content)


class AlwaysLater(MemoryBackend):
    """Somebody else is always first."""

    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        raise ConcurrentModificationError("somebody was faster")


class Forgets(MemoryBackend):
    def read(self, locator: Locator) -> str:
        return super().read(Locator("elsewhere"))


@pytest.mark.parametrize(
    ("broken", "caught_by"),
    [
        (IgnoresConditions, "test_who_comes_second_undoes_nothing"),
        (Forgets, "test_what_is_registered_is_listed_by_slug"),
        (Forgets, "test_what_is_unregistered_is_gone"),
    ],
)
def test_the_suite_bites(broken: type[StorageBackend], caught_by: str) -> None:
    with pytest.raises((AssertionError, ConcurrentModificationError)):
        getattr(RoutingConformance(), caught_by)(broken())


def test_a_writer_that_never_gets_the_lock_is_refused_in_the_end() -> None:
    backend = AlwaysLater()

    with pytest.raises(ConcurrentModificationError):
        register_repo(backend, Repo("one"))
    assert list_repos(backend) == []
