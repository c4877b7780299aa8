"""Real agents at the moments of a tool call: what reaches their model, and how it is refused."""

import json

import pytest

from tests.clients.clients import Client, clients
from tests.clients.conftest import NewClient
from tests.clients.models import Call

pytestmark = pytest.mark.clients


@clients()
def test_a_line_comes_with_the_result_of_a_call(client: Client) -> None:
    client.speak()
    ran = client.run("Look around.", client.kind.shell("echo FIRST-WORD"), "Done.")

    assert ran.model.is_done, ran.output
    assert "RULE-LINE" in ran.shown
    assert "FIX-LINE" in ran.shown
    assert "FIRST-WORD" in ran.shown
    assert {"pre-tool-use", "post-tool-use"} <= set(client.traced)


@clients()
def test_a_line_comes_with_a_failure(client: Client) -> None:
    client.speak()
    ran = client.run("Look around.", client.kind.shell("echo LAST-WORD; exit 3"), "Done.")

    assert "FIX-LINE" in ran.shown
    assert "LAST-WORD" in ran.shown


@clients()
def test_a_call_is_refused_with_the_rule(client: Client) -> None:
    client.speak(blocks=True)
    file = client.project / "made"
    ran = client.run("Make it.", client.kind.shell(f"touch {file}"), "I won't.")

    assert "RULE-LINE" in ran.shown
    assert not file.exists()
    assert "post-tool-use" not in client.traced


@clients()
def test_our_own_tools_are_passed_over(client: Client) -> None:
    client.speak()
    ran = client.run("Ask.", Call("recall", {"query": "tides"}), "Nothing.")

    assert ran.model.is_done, ran.output
    assert "-LINE" not in ran.shown


_SERVERS = {
    "claude-code": (".claude.json", "mcpServers", "mcp__toy__list"),
    "codex": (".codex/config.toml", "", "mcp__toy/list"),
    "gemini-cli": (".gemini/settings.json", "mcpServers", "mcp_toy_list"),
    "opencode": (".config/opencode/opencode.json", "mcp", "toy_list"),
}
"""Where each has its servers, and how it calls the tool `list` of one that is named toy."""


@clients()
def test_the_tools_of_other_servers_are_noticed(client: Client) -> None:
    file, section, tool = _SERVERS[client.kind.name]
    path = client.home / file
    text = path.read_text()
    if section:
        config = json.loads(text)
        config[section]["toy"] = config[section]["perdure"]
        text = json.dumps(config)
    else:
        entry = text.partition("[mcp_servers.perdure]")[2].partition("\n[")[0]
        text += f"\n[mcp_servers.toy]\nrequired = true{entry}"
    path.write_text(text)
    client.speak()
    ran = client.run("Ask it.", Call(tool, {}), "Done.")

    assert ran.model.is_done, ran.output
    assert "FIX-LINE" in ran.shown
    assert client.traced == ["post-tool-use"]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        (
            "claude-code",
            Call(
                "Agent",
                {"description": "look", "prompt": "Look.", "subagent_type": "general-purpose"},
            ),
        ),
        (
            "codex",
            Call("multi_agent_v1/spawn_agent", {"message": "Look.", "agent_type": "default"}),
        ),
        (
            "opencode",
            Call("task", {"description": "look", "prompt": "Look.", "subagent_type": "general"}),
        ),
    ],
)
def test_a_subagent_gets_a_line_of_its_own(new_client: NewClient, name: str, call: Call) -> None:
    client = new_client(name)
    client.speak()
    waits = client.kind.shell("sleep 2")  # Codex does not wait for it, and ends
    ran = client.run("Let another look.", call, waits, waits, "It looked.", "Done.")

    assert "subagent-start" in client.traced, ran.output
    assert any("SUB-LINE" in each.text for each in ran.model.requests)
