"""What the contract demands of a backend, and what the shipped ones promise."""

from dataclasses import FrozenInstanceError, fields
from inspect import isabstract
from pathlib import Path

import pytest

from perdure.storage import (
    Capabilities,
    ConflictStrategy,
    Info,
    Locator,
    StorageBackend,
    registry,
)
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.vault import VaultBackend
from perdure.testing import suite as suites
from perdure.testing.requirement import requirement
from perdure.testing.storage import SURVIVES_REOPENING, StorageConformance
from tests.storage import test_conformance

FLAGS = ("concurrent_writers", "conflict_files", "encryption", "sync")
DEMANDED = ("read", "write", "remove", "list", "exists", "info", "mkdir", "capabilities")
SHIPPED: dict[str, type[StorageBackend]] = {
    "memory": MemoryBackend,
    "device-local": DeviceLocalBackend,
    "vault": VaultBackend,
}


@pytest.fixture
def device_local(tmp_path: Path) -> StorageBackend:
    return DeviceLocalBackend(str(tmp_path / "memory"), str(tmp_path / "home"))


@pytest.fixture
def vault(tmp_path: Path) -> StorageBackend:
    (tmp_path / "vault").mkdir()
    return VaultBackend(str(tmp_path / "vault"), str(tmp_path / "home"))


class TestContract:
    @requirement("000-seven-verbs-abstract")
    def test_the_contract_by_itself_is_no_backend(self) -> None:
        assert isabstract(StorageBackend)
        assert StorageBackend.__abstractmethods__ == set(DEMANDED)
        with pytest.raises(TypeError, match="abstract"):
            StorageBackend()  # type: ignore[abstract]

    @requirement("000-seven-verbs-abstract")
    @pytest.mark.parametrize("verb", DEMANDED)
    def test_a_class_that_lacks_a_verb_is_no_backend(self, verb: str) -> None:
        lacking = {name: vars(MemoryBackend)[name] for name in DEMANDED if name != verb}
        incomplete: type = type("Incomplete", (StorageBackend,), lacking)

        with pytest.raises(TypeError, match=f"abstract method '?{verb}"):
            incomplete()

    @requirement("000-seven-verbs-abstract")
    def test_a_class_with_every_verb_is_a_backend_and_can_name_places(self) -> None:
        given = {name: vars(MemoryBackend)[name] for name in DEMANDED}
        complete = type("Complete", (StorageBackend,), given)

        assert complete().resolve("a", "b") == Locator("a/b")

    def test_a_backend_refuses_conflicts_and_finds_nothing_unless_it_says_so(self) -> None:
        backend = MemoryBackend()

        assert backend.conflict_strategy is ConflictStrategy.REFUSE
        assert list(backend.findings(Locator(""))) == []


class TestInfo:
    @requirement("000-info-frozen")
    def test_it_can_not_be_changed(self) -> None:
        info = Info(Locator("a"), is_dir=False, size=3, mtime=1.5)
        for field in fields(Info):
            with pytest.raises(FrozenInstanceError):
                setattr(info, field.name, 0)

        assert info == Info(Locator("a"), is_dir=False, size=3, mtime=1.5)


class TestCapabilities:
    @requirement("000-capabilities-frozen")
    @pytest.mark.parametrize("flag", FLAGS)
    def test_they_can_not_be_changed(self, flag: str) -> None:
        capabilities = Capabilities()
        with pytest.raises(FrozenInstanceError):
            setattr(capabilities, flag, True)

        assert capabilities == Capabilities()

    @requirement("000-capabilities-four-flags", "000-capabilities-default-false")
    def test_there_are_four_flags_and_all_are_down(self) -> None:
        assert [(field.name, field.type) for field in fields(Capabilities)] == [
            (flag, bool) for flag in FLAGS
        ]
        assert [getattr(Capabilities(), flag) for flag in FLAGS] == [False] * 4

    @requirement("001-required-every-flag", "001-required-false-asks-nothing")
    def test_missing_names_just_what_was_asked_for_and_not_promised(self) -> None:
        promised = Capabilities(concurrent_writers=True, sync=True)

        assert promised.missing(Capabilities()) == ()
        assert promised.missing(Capabilities(sync=True)) == ()
        assert promised.missing(Capabilities(sync=True, encryption=True)) == ("encryption",)
        assert Capabilities().missing(Capabilities(*[True] * 4)) == FLAGS


class TestShipped:
    @requirement("000-capabilities-encryption")
    def test_no_file_backend_claims_to_encrypt(
        self, device_local: StorageBackend, vault: StorageBackend, tmp_path: Path
    ) -> None:
        for backend in (device_local, vault):
            backend.write(Locator("note.md"), "in the clear")

            assert not backend.capabilities.encryption

        stored = [file.read_bytes() for file in tmp_path.rglob("note.md")]
        assert stored == [b"in the clear"] * 2

    @requirement("000-capabilities-sync", "001-vault-synced", "001-device-local-not-synced")
    def test_only_the_vault_is_synced(
        self, device_local: StorageBackend, vault: StorageBackend
    ) -> None:
        assert vault.capabilities.sync
        assert not device_local.capabilities.sync
        assert not MemoryBackend().capabilities.sync

    @requirement("001-vault-plain-markdown", "001-device-local-bytes-mode")
    @pytest.mark.parametrize("folder", ["vault", "memory"])
    def test_a_text_is_a_plain_file_at_its_key(
        self, device_local: StorageBackend, vault: StorageBackend, tmp_path: Path, folder: str
    ) -> None:
        text = "# Café\r\n\r\nold mac\rend \ufeff🗝"
        backend = vault if folder == "vault" else device_local
        backend.write(Locator("notes/Café.md"), text)

        assert (tmp_path / folder / "notes" / "Café.md").read_bytes() == text.encode()
        files = [file for file in (tmp_path / folder).rglob("*") if file.is_file()]
        assert files == [tmp_path / folder / "notes" / "Café.md"]

    @requirement("001-vault-plain-markdown")
    def test_a_plain_file_in_the_vault_is_a_text(
        self, vault: StorageBackend, tmp_path: Path
    ) -> None:
        (tmp_path / "vault" / "by hand.md").write_bytes(b"typed\r\nin an editor")

        assert vault.read(Locator("by hand.md")) == "typed\r\nin an editor"
        assert vault.list(Locator("")) == [Locator("by hand.md")]

    @requirement("001-conformance-device-local", "001-conformance-vault")
    @pytest.mark.parametrize("protocol", SHIPPED)
    def test_every_shipped_backend_runs_the_whole_suite(
        self, protocol: str, tmp_path: Path
    ) -> None:
        """The suite itself runs in test_conformance; here, that nothing of it was left out."""
        assert registry.get(protocol) is SHIPPED[protocol]
        (suite,) = [
            suite
            for suite in vars(test_conformance).values()
            if isinstance(suite, type)
            and issubclass(suite, StorageConformance)
            and suite is not StorageConformance
            and isinstance(suite.open_backend(tmp_path), SHIPPED[protocol])
        ]
        promised = suite.open_backend(tmp_path).capabilities
        flags = {flag for flag in FLAGS if getattr(promised, flag)}
        durable = {SURVIVES_REOPENING} if protocol != "memory" else set()
        off = {
            name
            for name, test in suites.gated_tests(StorageConformance).items()
            if vars(test)["gate"] not in flags | durable
        }

        assert suite.promises == flags | durable
        assert (
            set(suites.names_of_tests(suite))
            == set(suites.names_of_tests(StorageConformance)) - off
        )
