"""Real agents use memory: what they install, call and get, by what their model received."""

import json
import re

import pytest

from perdure import INTRODUCTION
from perdure.surfaces.mcp.server import TOOLS
from tests.clients.clients import Client, clients
from tests.clients.conftest import NewClient
from tests.clients.models import Call

pytestmark = pytest.mark.clients

FACT = "The harbour project keeps its tides in PostgreSQL."
ASKED = "Where does the harbour project keep its tides?"


@clients()
def test_its_config_is_taken_back_to_the_byte(client: Client) -> None:
    client.uninstall()
    client.run("Hello.", "Hello.")  # it notes things of its own
    before = client.configured()
    client.install()
    assert client.configured() != before
    client.run("Hello.", "Hello.")
    client.uninstall()
    after = client.configured()

    own = {name: before[name] for name in client.kind.files(0)}
    assert {name: after[name] for name in own} == own
    # What else there is now, the agent wrote itself.
    others = [text for name, text in after.items() if name not in own]
    assert not any(b'"perdure"' in text or b"perdure hook" in text for text in others)


@clients()
def test_the_first_turn_has_all_tools(client: Client) -> None:
    (first, *_) = client.run("Hello.", "Hello.").model.turns

    assert first.has_memory
    assert TOOLS.keys() <= first.tools.keys()


@clients()
def test_a_model_is_shown_what_tools_answer(client: Client) -> None:
    stored = Call("remember", {"text": FACT, "kind": "decision"})
    asked = Call("recall", {"query": ASKED})
    ran = client.run("Please note it down.", stored, asked, "Done.")
    before, after = ran.model.turns[-2:]

    assert ran.model.is_done, ran.output
    assert "ctx://local/users/ana/memories/pattern/" in before.text
    assert INTRODUCTION in after.text.partition(ASKED)[2]
    assert FACT in after.text.partition(ASKED)[2]


@clients()
def test_a_refusal_reaches_the_model_with_its_fix(client: Client) -> None:
    ran = client.run("Read it.", Call("read", {"uri": "preference/none"}), "There is none.")

    assert "no node is at" in ran.shown
    assert "Fix: " in ran.shown


@clients()
def test_the_next_session_gets_it(client: Client) -> None:
    client.run("Please note it down.", Call("remember", {"text": FACT}), "Done.")
    (first, *_) = client.run(ASKED, "In PostgreSQL.").model.turns

    assert FACT in first.text
    assert re.search(r"\[perdure-begin-[0-9a-f]{8}\]", first.text)


@clients()
def test_the_first_turn_of_all_says_what_may_last(client: Client) -> None:
    content = "From now on, never push to main without asking me."
    (first, *_) = client.run(content, "Noted.").model.turns

    assert f"possibly lasting: {content.rstrip('.')};" in first.text


@clients()
def test_a_prompt_is_not_shown_what_the_briefing_says(client: Client) -> None:
    """Some agents give hooks the prompt together with the briefing."""
    client.run("Please note it down.", Call("remember", {"text": FACT}), "Done.")
    (first, *_) = client.run("Write a limerick about a cat.", "There was a cat.").model.turns

    assert first.text.count(FACT) == 1
    assert "Possibly relevant" not in first.text


@clients()
def test_every_hook_is_called(client: Client) -> None:
    client.trace()
    ran = client.run("Hello there, agent.", "Hello.")

    assert set(client.traced) == client.kind.events, ran.output


@clients()
def test_the_session_is_stored(client: Client) -> None:
    client.run("The lighthouse blinks every seven seconds.", "I see.")
    found = json.loads(client.perdure("recall", "how often does the lighthouse blink?", "--json"))

    hit = next(each for each in found["hits"] if "every seven seconds" in json.dumps(each))
    assert hit["project"].startswith("git-")


@pytest.mark.parametrize("name", ["claude-code", "codex", "opencode"])
def test_a_session_is_captured_before_it_is_compacted_and_briefed_again_after(
    new_client: NewClient, name: str
) -> None:
    client = new_client(name, small=True)
    client.trace()
    calls = [Call("recall", {"query": f"tides {number}"}) for number in range(3)]
    long = Call("recall", {"query": "tides"}, tokens=200_000)
    ran = client.run("The lighthouse blinks every seven seconds.", *calls, long, "I see.")
    if client.kind.compact:
        ran = client.run(client.kind.compact, goes_on=True)
    _, _, after = " ".join(client.traced).partition("pre-compact")

    assert any(re.search(r"(?i)compact(ion|ed)", each.text) for each in ran.model.requests)
    assert "session-start" in after


def test_gemini_cli_keeps_what_was_stated_before_it_compacts(new_client: NewClient) -> None:
    """Its hook for that comes before every request, so the one after an answer keeps all."""
    client = new_client("gemini-cli", small=True)
    calls = [Call("recall", {"query": f"tides {number}"}, tokens=200_000) for number in range(3)]
    client.run("The lighthouse blinks every seven seconds.", "I see.")
    ran = client.run("Look at the tides, too.", *calls, "I did.", goes_on=True)
    found = json.loads(client.perdure("recall", "how often does the lighthouse blink?", "--json"))

    assert any("<state_snapshot>" in each.text for each in ran.model.requests), ran.output
    assert "every seven seconds" in json.dumps(found["hits"])
    assert "state_snapshot" not in json.dumps(found["hits"])


@clients()
def test_what_a_tool_forgot_is_in_no_later_request(client: Client) -> None:
    named = {"category": "health", "slug": "allergy"}
    stored = Call("remember", {"text": "Ana is allergic to penicillin.", **named})
    gone = Call("forget", {"uri": "health/allergy"})
    client.run(
        "Please handle my note about the medicine, and forget it again.", stored, gone, "Done."
    )
    ran = client.run("Which medicine is Ana allergic to?", Call("list", {}), "I don't know.")

    assert ran.model.is_done
    assert "penicillin" not in "".join(each.text for each in ran.model.requests)


GULLS = "Count the gulls."
SPAWNING = {
    "claude-code": Call(
        "Agent", {"description": "look", "prompt": GULLS, "subagent_type": "general-purpose"}
    ),
    "codex": Call("multi_agent_v1/spawn_agent", {"message": GULLS, "agent_type": "default"}),
}


@pytest.mark.parametrize("name", SPAWNING)
def test_a_subagent_gets_the_rules_and_nothing_else(new_client: NewClient, name: str) -> None:
    client = new_client(name)
    client.perdure("remember", "Never push to main.", "--kind", "rule")
    client.perdure("remember", "The lighthouse blinks every seven seconds.", "--kind", "fact")
    waits = [Call("exec_command", {"cmd": "sleep 2"})] * 2 if name == "codex" else []
    ran = client.run("Look at the harbour.", SPAWNING[name], *waits, "Seven.", "Done.")
    own = [each for each in ran.model.turns if "Look at the harbour." not in each.text]

    assert own, ran.output
    assert GULLS in own[0].text
    assert "Never push to main." in own[0].text
    assert "lighthouse" not in own[0].text
    found = json.loads(client.perdure("recall", "count the gulls", "--json"))
    assert GULLS not in [each.get("snippet") for each in found["hits"]]


def test_after_compaction_claude_code_gets_a_recap(new_client: NewClient) -> None:
    client = new_client("claude-code")
    shell = Call("Bash", {"command": "make -v", "description": "look at make"})
    client.run("Count the gulls of the harbour, and write them down.", shell, "There are 7 %.")
    client.run("Go on with it.", "I did.", goes_on=True)
    client.run("/compact", goes_on=True)
    ran = client.run("And now?", "Done.", goes_on=True)

    shown = ran.model.turns[-1].text
    assert "This session, before its context was compacted:" in shown, ran.output
    assert '"Count the gulls of the harbour, and write them down."' in shown
    assert "`make -v`" in shown
