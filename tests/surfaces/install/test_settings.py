"""`perdure install` changes a setting of an agent only if asked to, and gives it back."""

import json
import tomllib
from pathlib import Path

import pytest

from perdure.agents import clients
from tests.surfaces.install.test_install import contents, home, write
from tests.surfaces.nodes import perdure
from tests.surfaces.nodes import stdout_of as told

__all__ = ["home"]

SETTINGS = ".claude/settings.json"
CODEX = ".codex/config.toml"
BEFORE = {
    "absent": "",
    "empty": "{}",
    "other": '{\n    "model": "opus"\n}\n',
    "on": '{\n  // mine\n  "autoMemoryEnabled": true, // so\n  "model": "opus",\n}\n',
    "one line": '{"autoMemoryEnabled": true, "b": 1}',
    "off": '{"autoMemoryEnabled": false}\n',
}
TOMLS = {
    "absent": "",
    "no table": 'model = "o3"',
    "table": "[features]\nhooks = true # mine\n\n[tui]\nx = 1\n",
    "on": "# a\n[features]\r\nmemories = true # mine\r\n",
    "off": "[features]\nmemories = false\n",
}


def settings(home: Path) -> dict[str, object]:
    text = (home / SETTINGS).read_text().replace("// mine", "").replace("// so", "")
    found: dict[str, object] = json.loads(text.replace(",\n}", "\n}"))
    return found


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if text:
        path.write_bytes(text.encode())


@pytest.mark.parametrize("text", BEFORE.values(), ids=BEFORE.keys())
def test_the_memory_of_claude_code_is_switched_off_and_given_back(home: Path, text: str) -> None:
    put(home / SETTINGS, text)
    before = contents(home)
    told("install", "claude-code", "--yes", "--builtin-memory", "off")

    assert '"autoMemoryEnabled": false' in (home / SETTINGS).read_text()
    told("install", "claude-code", "--yes", "--uninstall")
    assert contents(home) == before


@pytest.mark.parametrize("text", TOMLS.values(), ids=TOMLS.keys())
def test_the_memory_of_codex_is_switched_off_and_given_back(home: Path, text: str) -> None:
    put(home / CODEX, text)
    before = contents(home)
    told("install", "codex", "--yes", "--builtin-memory", "off")

    assert tomllib.loads((home / CODEX).read_text())["features"]["memories"] is False
    told("install", "codex", "--yes", "--uninstall")
    assert contents(home) == before


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_it_stays_on_unless_a_user_switches_it_off(home: Path, agent: str) -> None:
    told("install", agent, "--yes")

    payload = b"".join(contents(home).values())
    assert b"autoMemoryEnabled" not in payload
    assert b"memories" not in payload


@pytest.mark.parametrize("name", ["on", "other"])
def test_beside_changes_of_its_owner_the_old_value_comes_back(home: Path, name: str) -> None:
    put(home / SETTINGS, BEFORE[name])
    told("install", "claude-code", "--yes", "--builtin-memory", "off")
    path = home / SETTINGS
    path.write_text(path.read_text().replace("{", '{ "mine": [1], ', 1))
    told("install", "claude-code", "--yes", "--uninstall")

    expected = {"autoMemoryEnabled": True} if name == "on" else {}
    assert settings(home) == {"mine": [1], **expected, "model": "opus"}


@pytest.mark.parametrize("name", ["on", "table", "no table"])
def test_beside_changes_in_toml_the_old_value_comes_back(home: Path, name: str) -> None:
    put(home / CODEX, TOMLS[name])
    told("install", "codex", "--yes", "--builtin-memory", "off")
    path = home / CODEX
    path.write_text(f"{path.read_text()}\n[after]\nx = 1\n")
    told("install", "codex", "--yes", "--uninstall")

    assert tomllib.loads(path.read_text()) == {**tomllib.loads(TOMLS[name]), "after": {"x": 1}}


def test_what_its_owner_set_since_stays(home: Path) -> None:
    told("install", "claude-code", "--yes", "--builtin-memory", "off")
    path = home / SETTINGS
    path.write_text(path.read_text().replace("false", "true"))
    told("install", "claude-code", "--yes", "--uninstall")

    assert settings(home) == {"autoMemoryEnabled": True}


def test_what_was_chosen_stays_until_another_is_chosen(home: Path) -> None:
    before = write(home, "claude-code")
    told("install", "claude-code", "--yes", "--builtin-memory", "off")
    off = contents(home)
    assert "nothing was changed" in perdure("install", "claude-code", "--yes").stderr
    assert contents(home) == off
    told("install", "claude-code", "--yes", "--builtin-memory", "on")

    assert "autoMemoryEnabled" not in (home / SETTINGS).read_text()
    told("install", "claude-code", "--yes", "--uninstall")
    assert contents(home) == before


def test_the_status_line_is_set_and_given_back(home: Path) -> None:
    before = write(home, "claude-code")
    told("install", "claude-code", "--yes", "--statusline")
    line = settings(home)["statusLine"]

    assert isinstance(line, dict)
    assert line["command"].endswith("perdure statusline")
    told("install", "claude-code", "--yes", "--uninstall")
    assert contents(home) == before


def test_a_status_line_of_ones_own_stays(home: Path) -> None:
    put(home / SETTINGS, '{"statusLine": {"type": "command", "command": "date"}}')
    done = perdure("install", "claude-code", "--yes", "--statusline")

    assert "yours, and left alone: statusLine in" in done.stderr
    assert settings(home)["statusLine"] == {"type": "command", "command": "date"}


def test_a_slash_command_of_ones_own_stays_and_is_named(home: Path) -> None:
    mine = home / ".claude" / "commands" / "recall.md"
    put(mine, "mine\n")
    done = perdure("install", "claude-code", "--yes")

    assert done.exit_code == 0
    assert f"yours, and left alone: {mine}" in done.stderr
    assert (mine.parent / "remember.md").exists()
    told("install", "claude-code", "--yes", "--uninstall")
    assert contents(home) == {mine: b"mine\n"}


@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini-cli"])
def test_an_older_installation_gets_what_is_new(home: Path, agent: str) -> None:
    """Whether its file is as we made it, or was changed since."""
    before = write(home, agent)
    told("install", agent, "--yes")
    now = contents(home)
    for path in now:
        if path.name in {"settings.json", "hooks.json"}:
            whole = json.loads(path.read_text())
            del whole["hooks"][next(iter(whole["hooks"]))]
            path.write_text(json.dumps(whole))
    told("install", agent, "--yes")

    for path, content in now.items():
        if path.name in {"settings.json", "hooks.json"}:
            assert json.loads(path.read_text()) == json.loads(content)
    told("install", agent, "--yes", "--uninstall")
    assert contents(home).keys() == before.keys()
    assert not any(b"perdure" in content for content in contents(home).values())


def test_an_older_installation_is_taken_back_to_the_byte(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = write(home, "claude-code")
    with monkeypatch.context() as older:
        older.setattr(clients, "_CLAUDE_EVENTS", clients._CLAUDE_EVENTS[:2])
        older.setattr(clients, "COMMANDS", ())
        told("install", "claude-code", "--yes")
    assert "PreToolUse" not in (home / SETTINGS).read_text()
    told("install", "claude-code", "--yes")
    assert "PreToolUse" in (home / SETTINGS).read_text()
    told("install", "claude-code", "--yes", "--uninstall")

    assert contents(home) == before
