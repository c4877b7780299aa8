"""Real agents with what stands beside memory: slash commands, their own memory, the plugin."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.clients.clients import Client
from tests.clients.conftest import NewClient
from tests.docs.blocks import REPOSITORY

pytestmark = pytest.mark.clients

_COMMANDED = ("claude-code", "gemini-cli", "opencode")
"""Codex 0.166 has no commands of the user's own."""


def _command(client: Client, name: str, words: str) -> str:
    """Return what the model was shown when the user typed a slash command."""
    if client.kind.name == "opencode":
        kind = replace(client.kind, arguments=lambda prompt, _: ["run", "--command", name, prompt])
        ran = replace(client, kind=kind).run(words, "Done.")
    else:
        ran = client.run(f"/{name} {words}", "Done.")
    assert ran.model.turns, ran.output
    return ran.shown


@pytest.mark.parametrize("name", _COMMANDED)
@pytest.mark.parametrize("command", ["remember", "recall", "forget"])
def test_a_slash_command_asks_for_its_tool(new_client: NewClient, name: str, command: str) -> None:
    shown = _command(new_client(name), command, "the tides of March")

    assert f"the tool `{command}`" in shown
    assert "the tides of March" in shown


@pytest.mark.parametrize("name", _COMMANDED)
def test_a_slash_command_switches_a_session_to_private(new_client: NewClient, name: str) -> None:
    client = new_client(name)
    client.speak()

    assert "PRIVATE-IS on" in _command(client, "private", "on")


def test_the_memory_of_claude_code_is_off_if_it_is_switched_off(new_client: NewClient) -> None:
    client = new_client("claude-code")
    (on, *_) = client.run("Hello.", "Hello.").model.turns
    client.install("--builtin-memory", "off")
    (off, *_) = client.run("Hello.", "Hello.").model.turns
    client.install("--builtin-memory", "on")
    (again, *_) = client.run("Hello.", "Hello.").model.turns

    found = ["persistent file-based memory" in each.text for each in (on, off, again)]
    assert found == [True, False, True]


def test_the_memory_of_codex_is_off_if_it_is_switched_off(new_client: NewClient) -> None:
    client = new_client("codex")
    client.uninstall()
    config = client.home / ".codex" / "config.toml"
    config.write_text(f"{config.read_text()}\n[features]\nmemories = true\n")
    summary = client.home / ".codex" / "memories" / "memory_summary.md"
    summary.parent.mkdir()
    summary.write_text("The tides turn at noon.\n")
    client.run("Hello.", "Hello.")  # it notes things of its own
    before = config.read_bytes()
    client.install("--builtin-memory", "off")
    (off, *_) = client.run("Hello.", "Hello.").model.turns
    client.uninstall()

    assert config.read_bytes() == before
    (on, *_) = client.run("Hello.", "Hello.").model.turns
    found = ["The tides turn at noon." in each.text for each in (off, on)]
    assert found == [False, True]


def test_the_plugin_is_valid(programs: Path, tmp_path: Path) -> None:
    claude = programs / "node_modules" / ".bin" / "claude"
    for what in (REPOSITORY, REPOSITORY / ".claude-plugin" / "plugin.json"):
        words = [str(claude), "plugin", "validate", "--strict", str(what)]
        environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "DISABLE_AUTOUPDATER": "1"}
        done = subprocess.run(words, capture_output=True, text=True, env=environ, check=False)

        assert done.returncode == 0, done.stdout + done.stderr
