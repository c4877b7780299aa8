"""The plugin for Claude Code in this repository says what `perdure install` says."""

import json
import re
import tomllib
from typing import Any

import pytest
import yaml

from perdure.agents.clients import COMMANDS, files_for
from perdure.agents.entries import JsonFile, WholeFile
from perdure.surfaces.mcp.server import TOOLS
from tests.docs.blocks import REPOSITORY


def read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((REPOSITORY / name).read_text(encoding="utf-8"))
    return content


@pytest.fixture
def installed() -> tuple[JsonFile, JsonFile]:
    settings, servers, *_ = files_for("claude-code", {"HOME": "/home/ana"}, "perdure")
    assert isinstance(settings, JsonFile)
    assert isinstance(servers, JsonFile)
    return settings, servers


def test_its_hooks_are_those_that_are_installed(installed: tuple[JsonFile, JsonFile]) -> None:
    hooks = {hook.event: [hook.entry] for hook in installed[0].hooks}

    assert read("hooks/hooks.json")["hooks"] == hooks


def test_its_server_is_the_one_that_is_installed(installed: tuple[JsonFile, JsonFile]) -> None:
    assert read(".mcp.json") == {"mcpServers": {"perdure": installed[1].server}}


def test_its_slash_commands_are_those_that_are_installed() -> None:
    _, _, *commands = files_for("claude-code", {"HOME": "/home/ana"}, "perdure")
    installed = {each.path.name: each.text for each in commands if isinstance(each, WholeFile)}
    plugin = {path.name: path.read_text() for path in (REPOSITORY / "commands").iterdir()}

    assert sorted(plugin) == sorted(f"{name}.md" for name in COMMANDS)
    assert plugin == {
        name: re.sub(r"^# .*\n", "", text, count=1, flags=re.MULTILINE)
        for name, text in installed.items()
    }


def test_its_version_is_ours() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    plugin = read(".claude-plugin/plugin.json")

    assert (plugin["name"], plugin["version"]) == (project["name"], project["version"])
    assert plugin["license"] == project["license"]


def test_the_marketplace_offers_the_plugin_where_it_is() -> None:
    (offered,) = read(".claude-plugin/marketplace.json")["plugins"]

    assert offered["name"] == read(".claude-plugin/plugin.json")["name"]
    assert (REPOSITORY / offered["source"] / ".claude-plugin" / "plugin.json").is_file()


def test_the_skill_names_every_tool_and_none_that_is_not_there() -> None:
    text = (REPOSITORY / "skills" / "perdure" / "SKILL.md").read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    about = yaml.safe_load(head)
    table = body.partition("## Habits")[0]
    named = {
        name
        for name in re.findall(r"`([a-z]+)`", table)
        if name not in {"perdure", "delete", "kind", "replaces"}
    }

    assert about["name"] == "perdure"
    assert 0 < len(about["description"]) <= 1024
    assert named == set(TOOLS)
