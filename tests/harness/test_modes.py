"""The mode of state: set by the checkout, by the machine, or by default; never guessed."""

import dataclasses
import os
from pathlib import Path

import pytest

from perdure.app.setup import set_state_mode
from perdure.config import Config, load_config
from perdure.errors import ConfigError, StateModeError, StateUnavailableError
from perdure.harness.state_files import BACKEND, LOCAL, Device, marked_mode, state_mode
from perdure.harness.state_writer import mark_mode
from perdure.testing.requirement import requirement
from tests.harness.conftest import Machine


def mode_of(machine: Machine) -> str:
    device = Device(str(machine.home), load_config(machine.environ).state_mode)
    return state_mode(str(machine.root), device)


class TestDevice:
    @requirement("001-state-mode-device")
    @pytest.mark.parametrize("content", ["local", "backend"])
    def test_the_config_says_it_for_the_machine(self, machine: Machine, content: str) -> None:
        machine.configure(f'state_mode = "{content}"')

        assert mode_of(machine) == content
        expected = content == "local" or machine.protocol != "vault"
        assert machine.opened().place.is_local is expected

    @requirement("001-state-mode-vault-config-alias", "001-state-mode-alias-no-rewrite")
    def test_its_old_name_is_read_as_backend_and_stays_in_the_file(self, machine: Machine) -> None:
        machine.configure('state_mode = "vault"')
        before = machine.everything()

        assert mode_of(machine) == BACKEND
        assert machine.everything() == before

    @pytest.mark.parametrize("content", ['"nonsense"', '""', "1", "true", "[]"])
    def test_what_is_no_mode_is_refused_with_its_line(self, machine: Machine, content: str) -> None:
        machine.configure("# mine", f"state_mode = {content}")

        with pytest.raises(ConfigError, match=r"config.toml, line 2: .*Fix: use backend or local"):
            load_config(machine.environ)

    @requirement("001-state-mode-own-key")
    def test_it_is_a_key_of_its_own(self, machine: Machine) -> None:
        names = {field.name for field in dataclasses.fields(Config)}
        assert "state_mode" in names

        (machine.home / "config.toml").write_text('mode = "local"\n')
        with pytest.raises(ConfigError, match="unknown key 'mode'"):
            load_config(machine.environ)


class TestSetting:
    @requirement("001-state-mode-set-by-command", "001-state-mode-alias-on-write")
    @pytest.mark.parametrize(("content", "stored"), [("local", "local"), ("vault", "backend")])
    def test_it_is_written_under_its_one_name(
        self, machine: Machine, content: str, stored: str
    ) -> None:
        set_state_mode(machine.environ, content)

        assert f'state_mode = "{stored}"' in (machine.home / "config.toml").read_text()
        assert mode_of(machine) == stored

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "# mine\n\n[storage]\nbackend = 'device-local'  # here\n",
            'state_mode = "vault"  # long ago\r\n[embedding]\r\nprovider = "none"\r\n',
            '"state_mode" = "local"\n[llm]\n',
            "[storage]\nbackend = 'device-local'",
        ],
    )
    def test_all_else_stays_to_the_letter(self, tmp_path: Path, text: str) -> None:
        file = tmp_path / "config.toml"
        file.write_bytes(text.encode())
        environ = {"PERDURE_HOME": str(tmp_path)}

        set_state_mode(environ, "local")

        content = file.read_bytes().decode()
        assert "\r" not in text or content.count("\r\n") == content.count("\n")
        assert [line for line in content.splitlines() if "state_mode" not in line and line] == [
            line for line in text.splitlines() if "state_mode" not in line and line
        ]
        assert ("# long ago" in content) == ("# long ago" in text)
        assert load_config(environ).state_mode == "local"

    def test_where_there_is_no_config_one_is_created(self, tmp_path: Path) -> None:
        environ = {"PERDURE_HOME": str(tmp_path / "home")}

        set_state_mode(environ, "local")

        assert load_config(environ).state_mode == "local"

    @pytest.mark.parametrize("text", ["[storage\n", "nonsense = 1\n"])
    def test_a_config_that_is_wrong_is_not_touched(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "config.toml").write_text(text)

        with pytest.raises(ConfigError):
            set_state_mode({"PERDURE_HOME": str(tmp_path)}, "local")
        assert (tmp_path / "config.toml").read_text() == text

    def test_a_config_whose_lines_are_ambiguous_is_not_touched(self, tmp_path: Path) -> None:
        text = '[llm]\nmodel = """\nstate_mode = "x"\n"""\n'
        (tmp_path / "config.toml").write_text(text)
        set_state_mode({"PERDURE_HOME": str(tmp_path)}, "local")
        assert (tmp_path / "config.toml").read_text() == f'state_mode = "local"\n\n{text}'

    def test_no_other_mode_is_written(self, machine: Machine) -> None:
        before = machine.everything()

        with pytest.raises(ConfigError, match="Fix: use backend or local"):
            set_state_mode(machine.environ, "nonsense")
        with pytest.raises(StateModeError, match="Fix: write backend or local"):
            mark_mode(str(machine.root), str(machine.home), "nonsense")
        assert machine.everything() == before


class TestMarker:
    @requirement("001-state-mode-repo-marker", "001-state-mode-marker-first")
    @pytest.mark.parametrize(("device", "marker"), [("local", "backend"), ("backend", "local")])
    def test_the_marker_of_a_checkout_wins_over_the_machine(
        self, machine: Machine, device: str, marker: str
    ) -> None:
        machine.configure(f'state_mode = "{device}"')
        assert mode_of(machine) == device

        machine.mark(".project-mode", f"{marker}\n")
        assert mode_of(machine) == marker

    @requirement("001-state-mode-vault-marker-alias", "001-state-mode-alias-no-rewrite")
    def test_its_old_name_is_read_as_backend_and_stays_in_the_file(self, machine: Machine) -> None:
        file = machine.mark(".project-mode", "vault")

        assert mode_of(machine) == BACKEND
        assert file.read_text() == "vault"

    @requirement("001-state-mode-set-by-command", "001-state-mode-alias-on-write")
    def test_it_is_written_under_its_one_name(self, machine: Machine) -> None:
        assert mark_mode(str(machine.root), str(machine.home), "vault") == BACKEND
        assert marked_mode(str(machine.root)) == BACKEND
        assert (machine.root / ".harness" / ".project-mode").read_text() == "backend\n"

    @pytest.mark.parametrize("content", ["", "Local", "nonsense", "local backend"])
    def test_what_is_no_mode_is_reported(self, machine: Machine, content: str) -> None:
        machine.mark(".project-mode", content)

        with pytest.raises(StateModeError, match="Fix: write backend or local"):
            machine.opened()

    @requirement("001-state-mode-not-in-vault")
    def test_no_marker_in_the_store_counts(self, machine: Machine) -> None:
        for folder in (machine.state, machine.store, machine.store / ".harness"):
            if folder != machine.root / ".harness":
                folder.mkdir(parents=True, exist_ok=True)
                (folder / ".project-mode").write_text("local")

        assert mode_of(machine) == BACKEND
        assert machine.opened().place.shown == str(machine.state)


class TestNeither:
    @requirement("001-state-mode-canonical-backend")
    def test_it_is_called_backend(self, machine: Machine) -> None:
        assert mode_of(machine) == "backend" == BACKEND
        assert machine.opened().place.shown == str(machine.state)

    @requirement("001-state-mode-neither", "001-state-mode-explicit")
    def test_a_vault_that_is_missing_is_no_local_mode(self, vaulted: Machine) -> None:
        vaulted.vault.rename(vaulted.place / "unmounted")

        with pytest.raises(ValueError, match="is not available") as caught:
            vaulted.opened()
        assert isinstance(caught.value, StateUnavailableError)
        assert os.listdir(vaulted.root / ".harness") == ["project.json"]  # noqa: PTH208 - plain

    @requirement("001-state-mode-explicit")
    def test_a_vault_without_a_path_is_no_local_mode(self, vaulted: Machine) -> None:
        (vaulted.home / "config.toml").write_text('[storage]\nbackend = "vault"\n')

        assert mode_of(vaulted) == BACKEND
        with pytest.raises(ValueError, match="path"):
            vaulted.opened()

    def test_who_chose_local_needs_no_vault(self, vaulted: Machine) -> None:
        vaulted.vault.rmdir()
        vaulted.mark(".project-mode", LOCAL)

        assert vaulted.opened().place.is_local
