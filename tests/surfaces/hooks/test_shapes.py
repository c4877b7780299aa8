"""What a hook prints, in the shape that each agent reads."""

import json
from pathlib import Path

import pytest

from perdure.agents.hook_input import HookInput
from perdure.agents.hooks import HookOptions, _answer
from perdure.agents.moments import MOMENTS, Emission, Moment


def answered(
    monkeypatch: pytest.MonkeyPatch, words: str, given: dict[str, object], *, blocks: bool = False
) -> dict[str, object]:
    wishes = HookOptions.parse(words.split())
    monkeypatch.setitem(MOMENTS, wishes.event, lambda _: Emission("Use tabs.", blocks=blocks))
    return _answer(wishes, Path("/nowhere"), HookInput.parse(json.dumps(given).encode()))


@pytest.mark.parametrize(
    ("words", "event"),
    [
        ("pre-tool-use", "PreToolUse"),
        ("post-tool-use", "PostToolUse"),
        ("post-tool-use", "PostToolUseFailure"),
        ("subagent-start --agent codex", "SubagentStart"),
        ("pre-tool-use --agent gemini-cli", "AfterTool"),
    ],
)
def test_a_line_names_the_event_that_the_agent_named(
    monkeypatch: pytest.MonkeyPatch, words: str, event: str
) -> None:
    found = answered(monkeypatch, words, {"hook_event_name": event})["hookSpecificOutput"]

    assert isinstance(found, dict)
    assert found.keys() == {"hookEventName", "additionalContext"}, "nothing that allows or asks"
    assert found["hookEventName"] == event
    assert "Use tabs." in found["additionalContext"]


def test_a_refusal_has_the_form_that_each_agent_understands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, object] = {"hook_event_name": "PreToolUse"}
    claude = answered(monkeypatch, "pre-tool-use", given, blocks=True)["hookSpecificOutput"]
    gemini = answered(monkeypatch, "pre-tool-use --agent gemini-cli", given, blocks=True)

    assert isinstance(claude, dict)
    assert claude["permissionDecision"] == "deny"
    assert "Use tabs." in claude["permissionDecisionReason"]
    assert gemini["decision"] == "deny"
    assert "Use tabs." in str(gemini["reason"])


@pytest.mark.parametrize(
    ("tool", "is_ours"),
    [
        ("mcp__perdure__recall", True),
        ("mcp__plugin_perdure_perdure__recall", True),
        ("mcp_perdure_recall", True),
        ("perdure_recall", True),
        ("mcp__other__recall", False),
        ("mcp__perduren__x", False),
        ("Bash", False),
    ],
)
def test_calls_of_our_own_tools_are_passed_over(
    monkeypatch: pytest.MonkeyPatch, tool: str, *, is_ours: bool
) -> None:
    assert (answered(monkeypatch, "post-tool-use", {"tool_name": tool}) == {}) is is_ours


@pytest.mark.parametrize(("event", "expected"), [("BeforeTool", True), ("AfterTool", False)])
def test_gemini_cli_takes_no_text_before_a_tool(event: str, *, expected: bool) -> None:
    given = HookInput.parse(json.dumps({"hook_event_name": event}).encode())

    assert Moment("gemini-cli", Path("/nowhere"), given).may_only_block is expected
