import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import perdure.storage
from perdure.storage import (
    BackendRegistry,
    ProtocolError,
    StorageBackend,
    StoragePreview,
    StorageSelectionError,
    StorageSettings,
    registry,
    select_backend,
    storage_preview,
)
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.registry import InstalledBackends
from perdure.storage.vault import VaultBackend
from perdure.testing.requirement import requirement
from tests.support.packages import Install, installing


class OtherBackend(MemoryBackend):
    pass


class UnfinishedBackend(StorageBackend):
    """Lacks every verb."""


class TestRegistry:
    @requirement("000-registry-stores-classes", "000-registry-register-returns-none")
    def test_the_very_class_that_was_registered_comes_back(self) -> None:
        backends = BackendRegistry()
        answer: object = backends.register("other", OtherBackend)  # type: ignore[func-returns-value]

        assert answer is None
        assert backends.get("other") is OtherBackend

    @requirement(
        "000-registry-get-absent-none",
        "000-protocol-error-not-for-misses",
        "001-registry-miss-is-absence",
    )
    @pytest.mark.parametrize("name", ["absent", "", "other ", "OTHER"])
    @pytest.mark.parametrize("kind", [BackendRegistry, InstalledBackends])
    def test_a_name_that_nobody_registered_is_absent(
        self, name: str, kind: type[BackendRegistry]
    ) -> None:
        backends = kind()
        backends.register("other", OtherBackend)

        assert backends.get(name) is None
        assert name not in backends

    @requirement("000-registry-contains")
    def test_a_registered_name_is_contained(self) -> None:
        backends = BackendRegistry()
        backends.register("other", OtherBackend)

        assert "other" in backends
        assert None not in backends
        assert OtherBackend not in backends

    @requirement("000-registry-protocols-sorted")
    def test_the_names_are_sorted(self) -> None:
        backends = BackendRegistry()
        assert backends.protocols() == ()
        for name in ("vault", "a", "memory", "B"):
            backends.register(name, OtherBackend)

        assert backends.protocols() == ("B", "a", "memory", "vault")

    @requirement("000-registry-rejects-non-backend", "000-registry-rejects-instance")
    @pytest.mark.parametrize(
        "thing", [MemoryBackend(), object, dict, "memory", None, MemoryBackend.read]
    )
    def test_what_is_no_class_of_backends_is_refused(self, thing: object) -> None:
        backends = BackendRegistry()
        with pytest.raises(TypeError, match="registered"):
            backends.register("thing", thing)  # type: ignore[arg-type]

        assert backends.protocols() == ()

    @requirement("000-registry-rejects-abstract-base")
    @pytest.mark.parametrize("backend", [StorageBackend, UnfinishedBackend])
    def test_a_class_that_lacks_a_verb_is_refused(self, backend: type[StorageBackend]) -> None:
        backends = BackendRegistry()
        with pytest.raises(TypeError, match=r"lacks .*'read'"):
            backends.register("unfinished", backend)

        assert "unfinished" not in backends

    @requirement("000-registry-rejects-empty-name")
    @pytest.mark.parametrize("name", ["", " ", "\t\n"])
    def test_a_blank_name_is_refused(self, name: str) -> None:
        backends = BackendRegistry()
        with pytest.raises(ProtocolError, match="Fix: "):
            backends.register(name, OtherBackend)

        assert backends.protocols() == ()

    @requirement("000-registry-rejects-duplicate")
    def test_a_name_is_not_taken_twice(self) -> None:
        backends = BackendRegistry()
        backends.register("other", OtherBackend)
        for again in (MemoryBackend, OtherBackend):
            with pytest.raises(ProtocolError, match=r"'other' is taken.*Fix: "):
                backends.register("other", again)

        assert backends.get("other") is OtherBackend

    @requirement("000-registry-clobber-replaces")
    def test_a_name_can_be_taken_over_on_purpose(self) -> None:
        backends = BackendRegistry()
        backends.register("other", OtherBackend)
        backends.register("other", MemoryBackend, clobber=True)

        assert backends.get("other") is MemoryBackend
        assert backends.protocols() == ("other",)

    def test_taking_over_does_not_excuse_what_is_no_backend(self) -> None:
        backends = BackendRegistry()
        backends.register("other", OtherBackend)
        with pytest.raises(TypeError):
            backends.register("other", UnfinishedBackend, clobber=True)  # type: ignore[type-abstract]

        assert backends.get("other") is OtherBackend

    @requirement("000-registry-instances-independent")
    def test_registries_know_nothing_of_each_other(self) -> None:
        one, other = BackendRegistry(), BackendRegistry()
        one.register("other", OtherBackend)

        assert "other" not in other
        assert "other" not in registry

    @requirement("000-protocol-error-is-value-error")
    def test_a_bad_registration_is_a_value_error(self) -> None:
        assert issubclass(ProtocolError, ValueError)
        assert not issubclass(ProtocolError, LookupError)


class TestDefault:
    @requirement("000-backends-protocol-names")
    def test_the_shipped_backends_have_their_names(self) -> None:
        assert registry.get("device-local") is DeviceLocalBackend
        assert registry.get("vault") is VaultBackend
        assert registry.get("memory") is MemoryBackend

    @requirement("000-default-registry-process-wide")
    def test_selection_looks_where_everybody_registers(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(registry, "_backends", dict(registry._backends))
        settings = StorageSettings(str(tmp_path), backend="other")
        assert not storage_preview(settings).ok
        perdure.storage.registry.register("other", OtherBackend)

        assert type(select_backend(settings)) is OtherBackend
        assert storage_preview(settings).ok
        for function in (select_backend, storage_preview):
            assert inspect.signature(function).parameters["registry"].default is registry

    @requirement("000-registry-imports-no-fsspec-nor-database")
    def test_the_registry_brings_no_library_along(self) -> None:
        source = Path(inspect.getfile(BackendRegistry)).parents[2]
        program = "import sys; sys.path.append(sys.argv[1]); import perdure.storage.registry\n"
        program += "print('fsspec' in sys.modules or 'sqlite3' in sys.modules)"
        command = (sys.executable, "-I", "-S", "-c", program, str(source))
        run = subprocess.run(command, capture_output=True, text=True, check=True)

        assert run.stdout.strip() == "False"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Give a way to install packages for the length of a test, as an installer would."""
    with installing(tmp_path, monkeypatch) as install:
        yield install


ACME = """
from perdure.storage.in_memory import MemoryBackend

class AcmeBackend(MemoryBackend):
    pass
"""


class TestInstalled:
    def test_an_installed_backend_is_known_without_being_imported(self, install: Install) -> None:
        backends = InstalledBackends()
        assert "acme" not in backends
        install("acme", {"acme": "acme_storage:AcmeBackend"}, acme_storage=ACME)

        assert "acme" in backends
        assert "acme" in registry
        assert backends.protocols() == ("acme",)
        assert registry.protocols() == ("acme", "device-local", "memory", "vault")
        assert "acme_storage" not in sys.modules

    def test_an_installed_backend_can_be_selected(self, install: Install, tmp_path: Path) -> None:
        install("acme", {"acme": "acme_storage:AcmeBackend"}, acme_storage=ACME)
        backends = InstalledBackends()
        settings = StorageSettings(str(tmp_path), backend="acme")

        backend = select_backend(settings, registry=backends)

        assert type(backend) is sys.modules["acme_storage"].AcmeBackend
        assert backends.get("acme") is type(backend)

    def test_a_plain_registry_does_not_look_for_packages(self, install: Install) -> None:
        install("acme", {"acme": "acme_storage:AcmeBackend"}, acme_storage=ACME)

        assert BackendRegistry().get("acme") is None
        assert "acme" not in BackendRegistry()

    def test_a_package_that_is_found_twice_offers_one_backend(self, install: Install) -> None:
        install("acme", {"acme": "acme_storage:AcmeBackend"}, acme_storage=ACME)
        install("acme_again", {"acme": "acme_storage:AcmeBackend"})

        assert InstalledBackends().get("acme") is not None

    @pytest.mark.parametrize(
        ("value", "source", "expected_message"),
        [
            ("acme_storage:AcmeBackend", "raise OSError('no licence')", "OSError: no licence"),
            ("acme_storage:AcmeBackend", "import no_such_module_at_all", "ModuleNotFoundError"),
            ("acme_storage:AcmeBackend", "def broken(:", "SyntaxError"),
            ("acme_storage:AcmeBackend", "", "AttributeError"),
            ("no_such_module:AcmeBackend", "", "ModuleNotFoundError"),
            ("acme storage?", "", "Error"),
            ("acme_storage:AcmeBackend", "AcmeBackend = dict", "TypeError"),
            ("acme_storage:AcmeBackend", "def AcmeBackend(): ...", "TypeError"),
            (
                "acme_storage:StorageBackend",
                "from perdure.storage import StorageBackend",
                "it lacks",
            ),
            ("acme_storage:AcmeBackend", f"{ACME}\nAcmeBackend = AcmeBackend()", "TypeError"),
        ],
    )
    def test_a_backend_that_can_not_be_used_is_a_refusal(
        self, install: Install, tmp_path: Path, value: str, source: str, expected_message: str
    ) -> None:
        install("acme", {"acme": value}, acme_storage=source)
        settings = StorageSettings(str(tmp_path / "home"), backend="acme")
        backends = InstalledBackends()
        with pytest.raises(StorageSelectionError, match=r"'acme' is installed.*Fix: ") as caught:
            select_backend(settings, registry=backends)

        assert value in str(caught.value)
        assert expected_message in str(caught.value)
        assert storage_preview(settings, registry=backends) == refusal(caught.value)

    def test_two_packages_that_offer_the_same_name_are_a_refusal(
        self, install: Install, tmp_path: Path
    ) -> None:
        install("acme", {"acme": "acme_storage:AcmeBackend"}, acme_storage=ACME)
        install("evil", {"acme": "evil_storage:AcmeBackend"}, evil_storage=ACME)
        settings = StorageSettings(str(tmp_path / "home"), backend="acme")
        backends = InstalledBackends()
        with pytest.raises(StorageSelectionError, match="Fix: uninstall all but one") as caught:
            select_backend(settings, registry=backends)

        assert "acme_storage:AcmeBackend" in str(caught.value)
        assert "evil_storage:AcmeBackend" in str(caught.value)
        assert storage_preview(settings, registry=backends) == refusal(caught.value)
        assert not {"acme_storage", "evil_storage"} & sys.modules.keys()

    def test_a_package_can_not_replace_a_shipped_backend(self, install: Install) -> None:
        install("evil", {"vault": "evil_storage:AcmeBackend"}, evil_storage=ACME)

        assert registry.get("vault") is VaultBackend
        assert "evil_storage" not in sys.modules

    def test_a_package_that_is_not_asked_for_can_be_as_broken_as_it_likes(
        self, install: Install, tmp_path: Path
    ) -> None:
        install("acme", {"acme": "acme_storage:AcmeBackend"}, acme_storage="raise SystemExit")
        settings = StorageSettings(str(tmp_path / "home"), backend="memory")

        assert type(select_backend(settings)) is MemoryBackend

    def test_a_name_that_an_installed_package_offers_is_taken(self, install: Install) -> None:
        install("acme", {"acme": "acme_storage:AcmeBackend"}, acme_storage=ACME)
        backends = InstalledBackends()
        with pytest.raises(ProtocolError, match="'acme' is taken"):
            backends.register("acme", OtherBackend)
        backends.register("acme", OtherBackend, clobber=True)

        assert backends.get("acme") is OtherBackend

    @requirement("001-preview-never-mutates")
    def test_a_preview_does_not_change_what_can_be_registered(
        self, install: Install, tmp_path: Path
    ) -> None:
        install("acme", {"acme": "acme_storage:AcmeBackend"}, acme_storage=ACME)
        previewed, untouched = InstalledBackends(), InstalledBackends()
        settings = StorageSettings(str(tmp_path), backend="acme")
        assert storage_preview(settings, registry=previewed).ok

        assert previewed.protocols() == untouched.protocols()
        assert can_register(previewed, "acme") == can_register(untouched, "acme")


def can_register(backends: BackendRegistry, protocol: str) -> bool:
    try:
        backends.register(protocol, OtherBackend)
    except ProtocolError:
        return False
    return True


def refusal(error: StorageSelectionError) -> StoragePreview:
    reason = "backend in [storage] of the config file"
    return StoragePreview("acme", reason, ok=False, message=str(error))
