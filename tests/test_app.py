"""From a user's environment to a backend that works."""

from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.app import open_context, open_storage, preview_storage
from perdure.errors import CapabilityMismatchError, ConfigError
from perdure.storage import Capabilities, Locator, StoragePreview, StorageSelectionError
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.vault import VaultBackend
from perdure.testing.requirement import requirement

NOTE = Locator("notes/today.md")


class User:
    """Somebody with a home, a vault and an environment."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.home = place / "user"
        self.vault = place / "vault"
        self.file = self.home / ".perdure" / "config.toml"
        self.environ = {"HOME": str(self.home)}
        self.home.mkdir()
        self.vault.mkdir()

    def configure(self, text: str) -> None:
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(text, encoding="utf-8")

    def files(self) -> dict[str, bytes]:
        """Return all files but the locks: relative name to content."""
        found = (path for path in self.place.rglob("*") if path.is_file())
        names = {path.relative_to(self.place).as_posix(): path.read_bytes() for path in found}
        return {name: content for name, content in names.items() if "/locks/" not in name}

    def everything(self) -> dict[str, bytes | None]:
        """Return all files and folders."""
        return {
            path.relative_to(self.place).as_posix(): path.read_bytes() if path.is_file() else None
            for path in self.place.rglob("*")
        }


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


class TestOpen:
    @requirement("001-device-local-root", "001-select-default-device-local")
    def test_a_new_user_has_a_memory_in_the_home_folder(self, user: User) -> None:
        backend = open_storage(user.environ)
        backend.write(NOTE, "text")

        assert type(backend) is DeviceLocalBackend
        assert user.files() == {"user/.perdure/memory/notes/today.md": b"text"}
        assert open_storage(user.environ).read(NOTE) == "text"

    @requirement("001-device-local-root")
    def test_the_memory_moves_with_the_home_of_perdure(self, user: User, tmp_path: Path) -> None:
        user.environ["PERDURE_HOME"] = str(tmp_path / "elsewhere")
        open_storage(user.environ).write(NOTE, "text")

        assert user.files() == {"elsewhere/memory/notes/today.md": b"text"}

    @requirement("001-select-environment-vault", "001-vault-plain-markdown")
    def test_a_vault_in_the_environment_is_used(self, user: User) -> None:
        user.environ["MEMORY_VAULT_PATH"] = str(user.vault)
        backend = open_storage(user.environ)
        backend.write(NOTE, "text")

        assert type(backend) is VaultBackend
        assert [path.name for path in user.vault.rglob("*")] == ["notes", "today.md"]
        assert (user.vault / "notes" / "today.md").read_bytes() == b"text"
        assert not (user.home / ".perdure" / "memory").exists()

    @requirement("001-select-environment-per-session")
    def test_a_vault_in_the_environment_is_for_this_session_only(self, user: User) -> None:
        user.configure("# mine\n[storage]\n")
        chosen = open_storage(user.environ | {"MEMORY_VAULT_PATH": str(user.vault)})
        chosen.write(NOTE, "in the vault")

        assert user.file.read_text(encoding="utf-8") == "# mine\n[storage]\n"
        assert type(open_storage(user.environ)) is DeviceLocalBackend
        assert not open_storage(user.environ).exists(NOTE)

    @requirement("001-select-environment-empty")
    def test_an_empty_variable_selects_no_vault(self, user: User) -> None:
        user.environ["MEMORY_VAULT_PATH"] = ""

        assert type(open_storage(user.environ)) is DeviceLocalBackend

    @requirement("001-select-explicit-backend")
    def test_the_config_selects_a_vault(self, user: User) -> None:
        user.configure(f"[storage]\nbackend = 'vault'\n[storage.vault]\npath = '{user.vault}'\n")
        open_storage(user.environ).write(NOTE, "text")

        assert (user.vault / "notes" / "today.md").read_bytes() == b"text"

    @requirement("001-select-config-before-environment")
    def test_the_config_wins_over_the_environment(self, user: User) -> None:
        user.configure("storage.backend = 'memory'")
        user.environ["MEMORY_VAULT_PATH"] = str(user.vault)

        assert type(open_storage(user.environ)) is MemoryBackend

    @requirement("001-select-bare-vault-path-is-no-choice")
    def test_a_vault_path_in_the_config_selects_nothing(self, user: User) -> None:
        user.configure(f"storage.vault.path = '{user.vault}'")
        open_storage(user.environ).write(NOTE, "text")

        assert list(user.vault.iterdir()) == []

    def test_a_tilde_in_the_config_is_the_home_of_that_user(self, user: User) -> None:
        (user.home / "notes").mkdir()
        user.configure("storage.backend = 'vault'\nstorage.vault.path = '~/notes'\n")
        open_storage(user.environ).write(NOTE, "text")

        assert (user.home / "notes" / "notes" / "today.md").read_bytes() == b"text"

    def test_only_the_given_environment_counts(
        self, user: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("MEMORY_VAULT_PATH", str(user.vault))
        monkeypatch.setenv("PERDURE_HOME", str(tmp_path / "wrong"))
        open_storage(user.environ).write(NOTE, "text")

        assert list(user.files()) == ["user/.perdure/memory/notes/today.md"]

    @requirement("001-required-met-returns-backend", "001-required-unmet-raises")
    def test_capabilities_can_be_required(self, user: User) -> None:
        met = open_storage(user.environ, required=Capabilities(concurrent_writers=True))
        with pytest.raises(CapabilityMismatchError, match="sync"):
            open_storage(user.environ, required=Capabilities(sync=True))

        assert type(met) is DeviceLocalBackend

    def test_opening_creates_nothing(self, user: User) -> None:
        before = user.everything()
        open_storage(user.environ)

        assert user.everything() == before


def corrupt(user: User) -> None:
    user.configure("[storage\n")


def no_string(user: User) -> None:
    user.configure("[storage]\nbackend = 3\n")


def unknown_key(user: User) -> None:
    user.configure("[storage]\nbackned = 'vault'\n")


def wrong_option(user: User) -> None:
    user.configure("storage.backend = 'vault'\nstorage.vault.paht = '/v'\n")


def unregistered(user: User) -> None:
    user.configure("storage.backend = 's3'")


def no_vault_path(user: User) -> None:
    user.configure("storage.backend = 'vault'")


def vault_not_mounted(user: User) -> None:
    user.configure("# the environment chooses")
    user.environ["MEMORY_VAULT_PATH"] = str(user.place / "unmounted")


def relative_vault(user: User) -> None:
    user.environ["MEMORY_VAULT_PATH"] = "vault"


def no_home(user: User) -> None:
    user.environ.clear()


REFUSALS = (
    *(corrupt, no_string, unknown_key, wrong_option, unregistered, no_vault_path),
    *(vault_not_mounted, relative_vault, no_home),
)
OF_THE_CONFIG = (corrupt, no_string, unknown_key, relative_vault, no_home)

Spoil = Callable[[User], None]


class TestRefuse:
    @requirement(
        "001-select-refuses-corrupt-config",
        "001-select-refuses-non-string-backend",
        "001-select-never-demotes",
    )
    @pytest.mark.parametrize("spoil", REFUSALS)
    def test_what_can_not_be_had_is_refused_and_nothing_is_opened_instead(
        self, user: User, spoil: Spoil
    ) -> None:
        spoil(user)
        before = user.everything()
        with pytest.raises(StorageSelectionError, match="Fix: "):
            open_storage(user.environ)

        assert user.everything() == before

    @requirement("001-preview-never-raises", "001-preview-same-words", "001-preview-never-mutates")
    @pytest.mark.parametrize("spoil", REFUSALS)
    def test_the_preview_says_so_in_the_same_words(self, user: User, spoil: Spoil) -> None:
        spoil(user)
        before = user.everything()
        preview = preview_storage(user.environ)
        with pytest.raises(StorageSelectionError) as caught:
            open_storage(user.environ)

        assert not preview.ok
        assert preview.message == str(caught.value)
        assert preview.capabilities is None
        assert user.everything() == before

    @pytest.mark.parametrize("spoil", OF_THE_CONFIG)
    def test_a_config_that_is_wrong_says_nothing_about_the_backend(
        self, user: User, spoil: Spoil
    ) -> None:
        spoil(user)
        with pytest.raises(ConfigError):
            open_storage(user.environ)

        assert preview_storage(user.environ).protocol == "unknown"

    @requirement("001-config-outside-vault")
    def test_a_missing_vault_is_reported_from_the_config_outside_of_it(self, user: User) -> None:
        user.configure(f"storage.backend = 'vault'\nstorage.vault.path = '{user.vault}'\n")
        user.vault.rmdir()
        with pytest.raises(StorageSelectionError, match="is not there"):
            open_storage(user.environ)

        assert not user.vault.exists()

    def test_a_refused_capability_is_previewed_too(self, user: User) -> None:
        required = Capabilities(encryption=True)
        with pytest.raises(CapabilityMismatchError) as caught:
            open_storage(user.environ, required=required)

        assert preview_storage(user.environ, required=required).message == str(caught.value)


class TestPreview:
    @requirement("001-preview-same-path", "001-preview-never-mutates")
    def test_it_says_what_would_be_opened_and_opens_nothing(self, user: User) -> None:
        preview = preview_storage(user.environ)

        assert preview == StoragePreview(
            "device-local",
            "the default",
            ok=True,
            message=f"device-local at {(user.home / '.perdure' / 'memory').resolve()}",
            capabilities=Capabilities(concurrent_writers=True),
        )
        assert user.everything() == {"user": None, "vault": None}

    @requirement("001-preview-same-path")
    def test_it_says_why(self, user: User) -> None:
        environ = user.environ | {"MEMORY_VAULT_PATH": str(user.vault)}
        assert preview_storage(environ).reason == "MEMORY_VAULT_PATH in the environment"
        user.configure("storage.backend = 'memory'")

        assert preview_storage(environ).reason == "backend in [storage] of the config file"
        assert preview_storage(environ).protocol == "memory"


def test_the_home_that_is_created_is_its_owner_s_alone(tmp_path: Path) -> None:
    with open_context({"HOME": str(tmp_path), "USER": "ana"}) as context:
        context.memory.save("Tabs.", category="preference")

    assert (tmp_path / ".perdure").stat().st_mode & 0o777 == 0o700
