"""Which backend is opened; and when none can be, a refusal instead of another one."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest

from perdure.errors import ConfigError, OptionError, StorageUnavailableError
from perdure.storage import (
    BackendRegistry,
    Capabilities,
    CapabilityMismatchError,
    Locator,
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
from perdure.storage.vault import VaultBackend
from perdure.testing.requirement import requirement

NOTE = Locator("note.md")


def settings_in(
    place: Path,
    backend: str | None = None,
    vault_path: Path | None = None,
    **options: Mapping[str, object],
) -> StorageSettings:
    """Return settings with the home in `place`; an option's table is named as in the config."""
    tables = {name.replace("_", "-"): table for name, table in options.items()}
    vault = str(vault_path) if vault_path else None
    return StorageSettings(str(place / "home"), backend, vault, tables)


def snapshot(place: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return all that is below `place`: its name, mode, time of change and content."""
    found = {}
    for path in (place, *place.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (status.st_mode, status.st_mtime_ns, content)
    return found


def make(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


class FailingBackend(MemoryBackend):
    error: Exception = OSError("the server is down")

    @classmethod
    def from_options(cls, options: Mapping[str, object], home: str) -> Self:
        raise cls.error


class UnavailableBackend(FailingBackend):
    error = StorageUnavailableError("the server is down. Fix: start it.")


class PickyBackend(FailingBackend):
    error = OptionError("size", "'size' is too small. Fix: make it larger.")


class SpeechlessBackend(MemoryBackend):
    @property
    def capabilities(self) -> Capabilities:
        raise OSError("the server is down")


# ---------------------------------------------------------------- the chain


class TestChain:
    @requirement("001-select-default-device-local")
    def test_without_a_choice_it_is_device_local(self, tmp_path: Path) -> None:
        backend = select_backend(settings_in(tmp_path))

        assert type(backend) is DeviceLocalBackend
        assert backend.whereabouts == os.path.realpath(tmp_path / "home" / "memory")

    @requirement("001-select-explicit-backend")
    @pytest.mark.parametrize("protocol", ["device-local", "memory", "vault"])
    def test_the_config_chooses_by_name(self, tmp_path: Path, protocol: str) -> None:
        vault = {"path": str(make(tmp_path / "vault"))}
        backend = select_backend(settings_in(tmp_path, protocol, vault=vault))

        assert type(backend) is registry.get(protocol)

    @requirement("001-select-environment-vault")
    def test_the_environment_chooses_the_vault_at_its_path(self, tmp_path: Path) -> None:
        backend = select_backend(settings_in(tmp_path, vault_path=make(tmp_path / "vault")))

        assert type(backend) is VaultBackend
        assert backend.whereabouts == os.path.realpath(tmp_path / "vault")

    @requirement("001-select-config-before-environment")
    @pytest.mark.parametrize("protocol", ["device-local", "memory"])
    def test_the_config_wins_over_the_environment(self, tmp_path: Path, protocol: str) -> None:
        settings = settings_in(tmp_path, protocol, vault_path=make(tmp_path / "vault"))

        assert type(select_backend(settings)) is registry.get(protocol)

    @requirement("001-select-bare-vault-path-is-no-choice")
    def test_a_path_in_the_config_chooses_nothing(self, tmp_path: Path) -> None:
        settings = settings_in(tmp_path, vault={"path": str(make(tmp_path / "vault"))})

        assert type(select_backend(settings)) is DeviceLocalBackend

    def test_the_environment_says_which_vault_if_it_chose_it(self, tmp_path: Path) -> None:
        configured, chosen = make(tmp_path / "configured"), make(tmp_path / "chosen")
        settings = settings_in(tmp_path, vault_path=chosen, vault={"path": str(configured)})

        assert storage_preview(settings).message == f"vault at {os.path.realpath(chosen)}"

    def test_the_config_says_which_vault_if_it_chose_it(self, tmp_path: Path) -> None:
        configured, other = make(tmp_path / "configured"), make(tmp_path / "other")
        settings = settings_in(tmp_path, "vault", vault_path=other, vault={"path": str(configured)})

        assert storage_preview(settings).message == f"vault at {os.path.realpath(configured)}"

    def test_a_configured_vault_without_a_path_takes_that_of_the_environment(
        self, tmp_path: Path
    ) -> None:
        settings = settings_in(tmp_path, "vault", vault_path=make(tmp_path / "vault"))

        assert type(select_backend(settings)) is VaultBackend

    @requirement("000-selection-instantiates-class")
    def test_selection_makes_an_instance_of_the_registered_class(self, tmp_path: Path) -> None:
        settings = settings_in(tmp_path, "memory")
        one, other = select_backend(settings), select_backend(settings)

        assert registry.get("memory") is MemoryBackend
        assert type(one) is type(other) is MemoryBackend
        assert one is not other

    def test_opening_a_backend_creates_nothing_yet(self, tmp_path: Path) -> None:
        before = snapshot(tmp_path)
        select_backend(settings_in(tmp_path))

        assert snapshot(tmp_path) == before

    @pytest.mark.parametrize(
        ("backend", "vault_path", "reason"),
        [
            ("vault", "/v", "backend in [storage] of the config file"),
            (None, "/v", "MEMORY_VAULT_PATH in the environment"),
            (None, None, "the default"),
            (None, "", "the default"),
        ],
    )
    def test_the_settings_say_who_chose(
        self, backend: str | None, vault_path: str | None, reason: str
    ) -> None:
        assert StorageSettings("/home", backend, vault_path).reason == reason


# ---------------------------------------------------------------- refusals


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a selection."""

    settings: StorageSettings
    required: Capabilities | None = None
    registry: BackendRegistry = field(default=registry)

    def select(self) -> StorageBackend:
        return select_backend(self.settings, required=self.required, registry=self.registry)

    def preview(self) -> StoragePreview:
        return storage_preview(self.settings, required=self.required, registry=self.registry)


def plug_in(
    place: Path, backend: type[StorageBackend], required: Capabilities | None = None
) -> Asked:
    backends = BackendRegistry()
    backends.register("plug-in", backend)
    return Asked(settings_in(place, "plug-in"), required, backends)


def emptied_vault(place: Path) -> Asked:
    vault = make(place / "vault")
    used = VaultBackend(str(vault), str(place / "home"))
    used.write(NOTE, "text")
    (vault / "note.md").unlink()
    return Asked(settings_in(place, vault_path=vault))


def home_inside_vault(place: Path) -> Asked:
    return Asked(settings_in(make(place / "vault"), vault_path=place / "vault"))


def vault_that_is_a_file(place: Path) -> Asked:
    (place / "vault").write_text("no folder", encoding="utf-8")
    return Asked(settings_in(place, vault_path=place / "vault"))


def vault_behind_a_dead_link(place: Path) -> Asked:
    (place / "vault").symlink_to(place / "unmounted")
    return Asked(settings_in(place, vault_path=place / "vault"))


def with_vault_options(**options: object) -> Callable[[Path], Asked]:
    def asked(place: Path) -> Asked:
        table = {"path": str(make(place / "vault")), **options}
        return Asked(settings_in(place, "vault", vault=table))

    return asked


def personal_beside_the_vault(place: Path) -> Asked:
    options = {"path": str(make(place / "vault")), "personal": str(make(place / "personal"))}
    return Asked(settings_in(place, "vault", vault=options))


REFUSALS: dict[str, tuple[Callable[[Path], Asked], str]] = {
    "unregistered": (lambda place: Asked(settings_in(place, "s3")), "no backend is called 's3'"),
    "unregistered in a plain registry": (
        lambda place: Asked(settings_in(place), registry=BackendRegistry()),
        "no backend is called 'device-local', chosen by the default",
    ),
    "a blank name": (lambda place: Asked(settings_in(place, "")), "no backend is called ''"),
    "vault without a path": (lambda place: Asked(settings_in(place, "vault")), "no vault path"),
    "vault with an empty path": (with_vault_options(path=""), "no vault path"),
    "vault of the environment not there": (
        lambda place: Asked(settings_in(place, vault_path=place / "unmounted")),
        "is not there",
    ),
    "vault of the config not there": (
        lambda place: Asked(settings_in(place, "vault", vault={"path": str(place / "gone")})),
        "is not there",
    ),
    "vault is a file": (vault_that_is_a_file, "is a file, not a folder"),
    "vault behind a dead link": (vault_behind_a_dead_link, "is not there"),
    "vault emptied since it was used": (emptied_vault, "is empty, but it was not"),
    "home inside the vault": (home_inside_vault, "lies inside the vault"),
    "personal space beside the vault": (personal_beside_the_vault, "must lie above"),
    "unknown option": (with_vault_options(paht="/x"), "'paht' in [storage.vault] is not an option"),
    "option of the wrong type": (with_vault_options(path=3), "is 3, not text"),
    "relative path": (with_vault_options(path="vault"), "is 'vault', not an absolute path"),
    "relative personal space": (with_vault_options(personal=".."), "not an absolute path"),
    "path that no disk can have": (with_vault_options(path="/a\0b"), "null byte"),
    "option of a backend without any": (
        lambda place: Asked(settings_in(place, "memory", memory={"size": 3})),
        "'size': MemoryBackend takes no options",
    ),
    "option of device-local": (
        lambda place: Asked(settings_in(place, device_local={"path": "/x"})),
        "'path' in [storage.device-local] is not an option",
    ),
    "plug-in that fails": (
        lambda place: plug_in(place, FailingBackend),
        "OSError: the server is down",
    ),
    "plug-in that is unavailable": (
        lambda place: plug_in(place, UnavailableBackend),
        "'plug-in' can't be opened: the server is down. Fix: start it.",
    ),
    "plug-in that refuses an option": (
        lambda place: plug_in(place, PickyBackend),
        "the option storage.plug-in.size: 'size' is too small",
    ),
    "plug-in that can't say what it promises": (
        lambda place: plug_in(place, SpeechlessBackend, Capabilities(sync=True)),
        "the server is down",
    ),
    "capability that is missing": (
        lambda place: Asked(settings_in(place), Capabilities(sync=True)),
        "does not promise sync",
    ),
    "capabilities that are missing": (
        lambda place: Asked(settings_in(place, "memory"), Capabilities(True, True, True, True)),  # noqa: FBT003
        "does not promise concurrent_writers, conflict_files, encryption, sync",
    ),
}


@pytest.fixture(params=REFUSALS)
def refused(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Asked, str]:
    build, words = REFUSALS[request.param]
    return build(tmp_path), words


class TestRefusal:
    @requirement(
        "001-select-refuses-unregistered",
        "001-select-refuses-vault-without-path",
        "001-select-refuses-unreachable-vault",
    )
    def test_it_says_what_is_wrong_and_how_to_mend_it(self, refused: tuple[Asked, str]) -> None:
        asked, words = refused
        with pytest.raises(StorageSelectionError) as caught:
            asked.select()

        assert words in str(caught.value)
        assert "Fix: " in str(caught.value)

    @requirement("001-preview-same-words", "001-preview-never-raises", "001-preview-same-path")
    def test_the_preview_says_the_same_word_for_word(self, refused: tuple[Asked, str]) -> None:
        asked, _ = refused
        with pytest.raises(StorageSelectionError) as caught:
            asked.select()

        protocol, reason = asked.settings.protocol, asked.settings.reason
        assert asked.preview() == StoragePreview(protocol, reason, False, str(caught.value))  # noqa: FBT003

    @requirement(
        "001-preview-never-mutates",
        "001-select-never-demotes",
        "001-select-refuses-unreachable-vault",
        "001-required-never-downgrades",
    )
    def test_nothing_is_created_changed_or_removed(
        self, refused: tuple[Asked, str], tmp_path: Path
    ) -> None:
        asked, _ = refused
        before, names = snapshot(tmp_path), asked.registry.protocols()
        asked.preview()
        assert snapshot(tmp_path) == before
        with pytest.raises(StorageSelectionError):
            asked.select()

        assert snapshot(tmp_path) == before
        assert asked.registry.protocols() == names

    @requirement("001-select-unregistered-message", "001-registry-miss-is-absence")
    def test_an_error_for_an_unregistered_backend_lists_the_installed_ones(
        self, tmp_path: Path
    ) -> None:
        backends = BackendRegistry()
        backends.register("one", MemoryBackend)
        backends.register("another", MemoryBackend)
        assert backends.get("s3") is None

        with pytest.raises(StorageSelectionError, match=r"'s3'.*Installed: another, one\."):
            select_backend(settings_in(tmp_path, "s3"), registry=backends)

    def test_a_wrong_option_is_reported_with_its_place_in_the_config(self, tmp_path: Path) -> None:
        settings = StorageSettings(
            str(tmp_path / "home"),
            "memory",
            options={"memory": {"size": 3}},
            where=lambda place: f"config.toml at {'/'.join(place)}",
        )
        with pytest.raises(ConfigError, match=r"^config\.toml at storage/memory/size: 'size'"):
            select_backend(settings)

    def test_a_refusal_remembers_its_cause(self, tmp_path: Path) -> None:
        with pytest.raises(StorageSelectionError) as caught:
            plug_in(tmp_path, FailingBackend).select()

        assert caught.value.__cause__ is FailingBackend.error

    def test_mending_the_cause_ends_the_refusal(self, tmp_path: Path) -> None:
        asked = Asked(settings_in(tmp_path, vault_path=tmp_path / "vault"))
        assert not asked.preview().ok
        make(tmp_path / "vault")

        assert asked.preview().ok
        assert type(asked.select()) is VaultBackend


# ---------------------------------------------------------------- capabilities


class TestRequired:
    @requirement("001-required-unmet-raises", "001-capability-mismatch-is-selection-error")
    def test_an_unmet_flag_is_a_refusal(self, tmp_path: Path) -> None:
        assert issubclass(CapabilityMismatchError, StorageSelectionError)
        with pytest.raises(CapabilityMismatchError, match="'device-local', chosen by the default"):
            select_backend(settings_in(tmp_path), required=Capabilities(encryption=True))

    @requirement("001-required-every-flag")
    def test_every_flag_counts(self, tmp_path: Path) -> None:
        settings = settings_in(tmp_path, vault_path=make(tmp_path / "vault"))
        some = Capabilities(concurrent_writers=True, sync=True, encryption=True)
        with pytest.raises(CapabilityMismatchError, match="does not promise encryption"):
            select_backend(settings, required=some)

    @requirement("001-required-false-asks-nothing", "001-required-met-returns-backend")
    @pytest.mark.parametrize(
        "required",
        [
            Capabilities(),
            Capabilities(sync=True),
            Capabilities(concurrent_writers=True, conflict_files=True, sync=True),
        ],
    )
    def test_a_backend_may_promise_more_than_was_asked(
        self, tmp_path: Path, required: Capabilities
    ) -> None:
        settings = settings_in(tmp_path, vault_path=make(tmp_path / "vault"))
        backend = select_backend(settings, required=required)
        unasked = select_backend(settings)
        backend.write(NOTE, "text")

        assert type(backend) is type(unasked) is VaultBackend
        assert unasked.read(NOTE) == "text"

    @requirement("001-required-default-none")
    def test_nothing_is_asked_by_default(self, tmp_path: Path) -> None:
        assert select_backend(settings_in(tmp_path, "memory")).capabilities == Capabilities()

    @requirement("001-required-never-downgrades")
    def test_a_backend_that_would_do_is_not_picked_instead(self, tmp_path: Path) -> None:
        vault = make(tmp_path / "vault")
        settings = settings_in(tmp_path, "device-local", vault_path=vault)
        with pytest.raises(CapabilityMismatchError):
            select_backend(settings, required=Capabilities(sync=True))


# ---------------------------------------------------------------- preview


ACCEPTED: dict[str, Callable[[Path], Asked]] = {
    "device-local": lambda place: Asked(settings_in(place)),
    "memory": lambda place: Asked(settings_in(place, "memory")),
    "vault of the environment": lambda place: Asked(
        settings_in(place, vault_path=make(place / "vault"))
    ),
    "vault of the config": with_vault_options(),
    "device-local elsewhere": lambda place: Asked(
        settings_in(place, device_local={"root": str(place / "elsewhere")})
    ),
    "with capabilities": lambda place: Asked(
        settings_in(place), Capabilities(concurrent_writers=True)
    ),
}


@pytest.fixture(params=ACCEPTED)
def accepted(request: pytest.FixtureRequest, tmp_path: Path) -> Asked:
    return ACCEPTED[request.param](tmp_path)


class TestPreview:
    @requirement("001-preview-same-path")
    def test_it_names_the_backend_that_would_be_opened(self, accepted: Asked) -> None:
        preview, backend = accepted.preview(), accepted.select()

        assert preview.ok
        assert accepted.registry.get(preview.protocol) is type(backend)
        assert preview.capabilities == backend.capabilities
        assert preview.message.startswith(preview.protocol)
        assert str(getattr(backend, "root", "")) in preview.message

    @requirement("001-preview-never-mutates")
    def test_it_creates_changes_and_removes_nothing(self, accepted: Asked, tmp_path: Path) -> None:
        before, names = snapshot(tmp_path), accepted.registry.protocols()
        accepted.preview()

        assert snapshot(tmp_path) == before
        assert accepted.registry.protocols() == names

    @requirement("001-preview-never-mutates")
    def test_it_leaves_a_store_in_use_alone(self, accepted: Asked, tmp_path: Path) -> None:
        accepted.select().write(NOTE, "text")
        before = snapshot(tmp_path)
        accepted.preview()

        assert snapshot(tmp_path) == before

    @requirement("001-preview-never-raises")
    def test_a_plug_in_that_can_not_say_what_it_promises_is_no_reason_to_raise(
        self, tmp_path: Path
    ) -> None:
        assert plug_in(tmp_path, SpeechlessBackend).preview().capabilities is None
