"""Memory does not eat itself: what a hook or a tool of ours emitted is never stored as stated."""

import html
import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.agents import hook_input, hooks
from perdure.app import caller_for, open_context
from perdure.model.speech import SPOKEN, speech_of
from perdure.surfaces.mcp.server import checked
from perdure.surfaces.mcp.tools import Tools
from perdure.testing.importer import found_in, items_of
from perdure.testing.suite import examples
from perdure.transfer.contract import SessionItem
from perdure.transfer.imports import FORMATS
from tests.transfer import samples
from tests.transfer.samples import as_json, as_lines, code_line, codex_line, codex_message

ECHO = "zebra"
"""A word of every memory here; what is stored as a statement must not have it."""
REMEMBERED = {
    "preference": f'Prefers a {ECHO} over a horse.\n\n- {ECHO}: `always` "quoted" <b>{ECHO}</b>',
    "entity": f"The {ECHO} database is at port 5433, and {ECHO} is its user.",
}
Emitted = list[tuple[str, str]]


@pytest.fixture(scope="module")
def emitted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emitted]:
    """Return what hooks and tools say of a memory, each by its name."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("PERDURE_HOME", str(home / ".perdure"))
        patch.setenv("USER", "ana")
        with open_context(os.environ) as context:
            for category, text in REMEMBERED.items():
                context.memory.save(text, category=category, slug=ECHO)
            asked = [{"role": "user", "content": f"Why is the {ECHO} so fast?"}]
            context.memory.commit_session(asked, session_id="before", extract=False)
        yield [*_of_hooks(home / ".perdure", home), *_of_tools()]


def _of_hooks(home: Path, folder: Path) -> Iterator[tuple[str, str]]:
    prompts = (
        f"Which port has the {ECHO} database?",
        f"From now on, never touch the {ECHO} database without a backup.",
    )
    events = [("session-start", ""), *(("user-prompt-submit", each) for each in prompts)]
    for agent in ("claude-code", "codex", "gemini-cli", "opencode", "cursor"):
        for event, prompt in events:
            given = hook_input.HookInput(session_id=prompt[:5], cwd=str(folder), prompt=prompt)
            answer = hooks._answer(hooks.HookOptions(event=event, agent=agent), home, given)
            yield f"{agent} {event}", json.dumps(answer)
            inner: Any = answer.get("hookSpecificOutput", {})
            yield f"{event}", str(answer.get("additional_context") or inner["additionalContext"])


def _of_tools() -> Iterator[tuple[str, str]]:
    calls: list[tuple[str, dict[str, object]]] = [
        ("recall", {"query": ECHO}),
        ("read", {"uri": f"preference/{ECHO}"}),
        ("list", {"folder": "preference"}),
        ("why", {"uri": f"preference/{ECHO}"}),
        ("remember", {"text": f"Feeds the {ECHO}.", "category": "note", "slug": "feed"}),
        ("history", {"uri": f"preference/{ECHO}"}),
        ("forget", {"uri": "note/feed", "reason": f"no {ECHO}"}),
    ]
    with Tools(os.environ, caller_for(os.environ, role="member")) as tools:
        for name, arguments in calls:
            answer, text = tools.call(name, checked(name, arguments))
            yield f"{name}, text", text
            yield f"{name}, structured", json.dumps(answer)


def gemini(kind: str, text: str) -> bytes:
    return as_lines([samples.CHAT[0], samples.gemini("1", kind, [{"text": text}])])


def gemini_failure(text: str) -> bytes:
    call = {"name": "recall", "args": {}, "status": "error", "resultDisplay": text}
    return as_lines([samples.CHAT[0], samples.gemini("1", "gemini", "Look.", toolCalls=[call])])


def opencode(text: str, place: str = "msg_1/prt_0") -> dict[str, bytes]:
    part = {"type": "text", "text": text}
    return {**samples.OPENCODE, f"storage/part/{place}.json": as_json(part)}


def opencode_failure(text: str) -> dict[str, bytes]:
    state = {"status": "error", "input": {}, "error": text}
    part = {"type": "tool", "tool": "perdure_recall", "state": state}
    return {**samples.OPENCODE, "storage/part/msg_2/prt_1.json": as_json(part)}


def codex_result(text: str) -> list[dict[str, Any]]:
    result = {"type": "function_call_output", "call_id": "1", "output": f"Exit code: 1\n{text}"}
    return [*samples.ROLLOUT, codex_line("response_item", result)]


def codex(role: str, text: str) -> dict[str, bytes]:
    return {"a.jsonl": as_lines([samples.ROLLOUT[0], codex_message(role, text)])}


def failed(text: str) -> list[dict[str, Any]]:
    return [{**samples.result([{"type": "text", "text": text}])[0], "is_error": True}]


WRAPPERS: dict[str, tuple[str, Callable[[str], dict[str, bytes]]]] = {
    "Claude Code, user": (
        "claude-code",
        lambda text: {"3f.jsonl": as_lines([code_line("1", None, "user", text)])},
    ),
    "Claude Code, reminder": (
        "claude-code",
        lambda text: {
            "3f.jsonl": as_lines(
                [
                    code_line(
                        "1", None, "user", f"<system-reminder>\n{text}\n</system-reminder>\nGo on."
                    )
                ]
            )
        },
    ),
    "Claude Code, block": (
        "claude-code",
        lambda text: {
            "3f.jsonl": as_lines([code_line("1", None, "user", [{"type": "text", "text": text}])])
        },
    ),
    "Claude Code, assistant": (
        "claude-code",
        lambda text: {"3f.jsonl": as_lines([code_line("1", None, "assistant", text)])},
    ),
    "Claude Code, result": (
        "claude-code",
        lambda text: {"3f.jsonl": as_lines([code_line("1", None, "user", samples.result(text))])},
    ),
    "Claude Code, failure": (
        "claude-code",
        lambda text: {"3f.jsonl": as_lines([code_line("1", None, "user", failed(text))])},
    ),
    "Claude Code, summary": (
        "claude-code",
        lambda text: {
            "3f.jsonl": as_lines([code_line("1", None, "user", text, isCompactSummary=True)])
        },
    ),
    **{
        f"Codex, {role}": ("codex", partial(codex, role))
        for role in ("user", "assistant", "developer", "system")
    },
    "Codex, failure": ("codex", lambda text: {"a.jsonl": as_lines(codex_result(text))}),
    "Gemini CLI, user": ("gemini-cli", lambda text: {"s.jsonl": gemini("user", text)}),
    "Gemini CLI, model": ("gemini-cli", lambda text: {"s.jsonl": gemini("gemini", text)}),
    "Gemini CLI, info": ("gemini-cli", lambda text: {"s.jsonl": gemini("info", text)}),
    "Gemini CLI, failure": ("gemini-cli", lambda text: {"s.jsonl": gemini_failure(text)}),
    "opencode, user": ("opencode", opencode),
    "opencode, assistant": ("opencode", partial(opencode, place="msg_2/prt_2")),
    "opencode, summary": ("opencode", partial(opencode, place="msg_3/prt_0")),
    "opencode, failure": ("opencode", opencode_failure),
}


DROPPED = (
    *("Claude Code, reminder", "Claude Code, result"),
    *("Codex, developer", "Codex, system", "Gemini CLI, info"),
)
"""What of a transcript is never stored."""


def quoted(text: str) -> str:
    return "\n".join(f"> {each}" for each in text.split("\n"))


def indented(text: str) -> str:
    return "\n".join(f"    {each}" for each in text.split("\n"))


ESCAPES: list[Callable[[str], str]] = [str, quoted, indented, json.dumps, html.escape]


def stored(wrapper: str, text: str) -> list[tuple[str, str]]:
    name, wrapped = WRAPPERS[wrapper]
    found = items_of(found_in(FORMATS[name], wrapped(text)))
    return [
        (each["role"], each["content"])
        for item in found
        if isinstance(item, SessionItem)
        for each in item.messages
    ]


def echo_in(wrapper: str, text: str) -> list[tuple[str, str]]:
    """Return the messages that would be stored and contain something of what was emitted."""
    return [each for each in stored(wrapper, text) if ECHO in each[1]]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_what_was_emitted_is_never_stored(emitted: Emitted, wrapper: str) -> None:
    for text, name in {text: name for name, text in emitted}.items():  # each once
        for escape in ESCAPES:
            assert echo_in(wrapper, escape(text)) == [], (name, escape)
            assert echo_in(wrapper, escape(json.dumps(text))) == [], (name, escape)


@settings(deadline=None, max_examples=examples(60))
@given(data=st.data(), share=st.floats(0, 1))
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_part_of_what_was_emitted_is_never_stored(
    emitted: Emitted, wrapper: str, data: st.DataObject, share: float
) -> None:
    name, text = data.draw(st.sampled_from(emitted))
    text = data.draw(st.sampled_from(ESCAPES))(text)
    cut = round(share * len(text))

    assert echo_in(wrapper, text[cut:]) == [], name
    assert echo_in(wrapper, text[:cut]) == [], name


@pytest.mark.parametrize("escape", ESCAPES)
def test_wherever_it_is_cut_it_is_not_stated(
    emitted: Emitted, escape: Callable[[str], str]
) -> None:
    step = 2 if escape is str else 17
    for text in {escape(text) for _, text in emitted}:
        for cut in range(0, len(text), step):
            for part in (text[:cut], text[cut:]):
                for role in ("user", "assistant") if ECHO in part else ():
                    speech = speech_of(role, part)
                    assert speech.kind not in SPOKEN or ECHO not in speech.text, part


def test_there_is_something_to_keep_out(emitted: Emitted) -> None:
    """So that these tests can fail."""
    assert sum(ECHO in text for _, text in emitted) == len(emitted) - 4  # those only name a note
    assert sum("possibly lasting" in text for _, text in emitted) == 10  # two of each agent
    for wrapper in WRAPPERS:
        if wrapper not in DROPPED:
            assert echo_in(wrapper, f"I like the {ECHO}."), wrapper
    assert echo_in("Claude Code, user", f"I like the {ECHO}.") == [("user", f"I like the {ECHO}.")]
    assert speech_of("user", f"I like the {ECHO}.").kind in SPOKEN
