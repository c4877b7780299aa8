"""Subagents get the project's rules and nothing else, and their prompts are not stored."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import perdure
from perdure.agents.hook_log import CAPTURE_EVENTS
from perdure.agents.hooks import EVENTS
from perdure.engine.recall.result import tokens_in
from perdure.testing.importer import found_in
from perdure.transfer.contract import ImportFinding, SessionItem
from perdure.transfer.imports import FORMATS
from tests.surfaces.hooks.calling import call, heard, line, stored, transcript, waiting
from tests.surfaces.processes import PERDURE

TABS = "I prefer tabs over spaces."


def started(home: Path, agent: str) -> str:
    app = home / "app"
    (app / ".harness").mkdir(parents=True)
    (app / ".harness" / "project.json").write_text('{"slug": "harbour"}')
    given = {"session_id": "3f0c", "cwd": str(app), "agent_id": "a1", "agent_type": "default"}
    output = heard(home, "subagent-start", "--agent", agent, payload=given)
    return str(output["hookSpecificOutput"]["additionalContext"]) if output else ""


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_a_subagent_gets_rules_and_prohibitions_only(tmp_path: Path, agent: str) -> None:
    with perdure.open(home=tmp_path / ".perdure", user="ana", project="harbour") as memory:
        memory.remember("Never push to main.", kind="rule")
        memory.remember("Redis was rejected for the cache.", kind="rejected")
        memory.remember("The lighthouse blinks every seven seconds.", kind="fact")
        memory.remember("Finish the mole.", kind="task")
        memory.remember("Run `make test`.", kind="command")
        talk = [{"role": "user", "content": "Please paint the harbour wall."}]
        memory.commit_session(talk, session_id="t", extract=False)
    text = started(tmp_path, agent)

    assert "Never push to main." in text
    assert "Redis was rejected for the cache." in text
    assert not any(each in text for each in ("lighthouse", "mole", "make test", "wall", "ended at"))


def test_many_rules_keep_to_120_tokens(tmp_path: Path) -> None:
    with perdure.open(home=tmp_path / ".perdure", user="ana", project="harbour") as memory:
        for name in ("harbour", "mole", "tide", "lamp", "buoy", "crane", "pier", "dock", "quay"):
            memory.remember(f"Never edit the files of the {name} without a test.", kind="rule")
    text = started(tmp_path, "claude-code")
    body = "\n".join(text.split("\n")[1:-1])  # between the marks

    assert body
    assert tokens_in(body) <= 120


def test_without_memory_a_subagent_gets_nothing(tmp_path: Path) -> None:
    assert started(tmp_path, "claude-code") == ""


def test_what_a_subagent_is_asked_is_no_prompt_of_the_user(tmp_path: Path) -> None:
    given = {"session_id": "3f0c", "cwd": str(tmp_path), "prompt": f"From now on, {TABS}"}
    with perdure.open(home=tmp_path / ".perdure", user="ana") as memory:
        memory.save(TABS, category="preference", slug="indentation")

    assert heard(tmp_path, "user-prompt-submit", "--agent", "codex", payload=given)
    assert not heard(
        tmp_path, "user-prompt-submit", "--agent", "codex", payload={**given, "agent_id": "a1"}
    )


@pytest.mark.parametrize("event", sorted(CAPTURE_EVENTS & {*EVENTS}))
def test_the_session_of_a_subagent_is_not_stored(tmp_path: Path, event: str) -> None:
    path = transcript(tmp_path, TABS, "Noted.")
    given = {"session_id": path.stem, "transcript_path": str(path), "agent_id": "a1"}
    assert call(tmp_path, event, "--foreground", payload=given) == (0, b"", "")

    assert waiting(tmp_path) == 0
    assert not (tmp_path / ".perdure" / "histories").exists() or not list(stored(tmp_path))


# ---------------------------------------------------------------- transcripts
def lines(*found: object) -> bytes:
    return "".join(f"{json.dumps(each)}\n" for each in found).encode()


def rollout(**meta: object) -> bytes:
    payload = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": TABS}]}
    return lines(
        {"type": "session_meta", "payload": {"id": "0199", **meta}},
        {"type": "response_item", "payload": payload},
    )


SPAWNED = {"subagent": {"thread_spawn": {"parent_thread_id": "01", "depth": 1}}}
OF_SUBAGENTS = [
    ("claude-code", "agent-a1.jsonl", lines(line("u0", None, "user", TABS, "3f0c"))),
    (
        "claude-code",
        "a1.jsonl",
        lines({**line("u0", None, "user", TABS, "3f0c"), "isSidechain": True}),
    ),
    ("codex", "rollout-a.jsonl", rollout(source=SPAWNED)),
    ("codex", "rollout-b.jsonl", rollout(source={"subagent": "review"})),
    ("codex", "rollout-c.jsonl", rollout(thread_source="subagent")),
    ("codex", "rollout-d.jsonl", rollout(parent_thread_id="01")),
    (
        "gemini-cli",
        "session-1.jsonl",
        lines(
            {"sessionId": "9c", "projectHash": "ab", "kind": "subagent"},
            {"id": "1", "type": "user", "content": TABS},
        ),
    ),
]


@pytest.mark.parametrize(("name", "file", "data"), OF_SUBAGENTS)
def test_a_transcript_of_a_subagent_is_left_out_and_the_reader_says_so(
    name: str, file: str, data: bytes
) -> None:
    found = found_in(FORMATS[name], {file: data})

    assert not [each for each in found if isinstance(each, SessionItem)]
    assert [each.refused for each in found if isinstance(each, ImportFinding)] == [False]


def test_a_rollout_that_went_on_from_one_of_a_subagent_is_the_users() -> None:
    """The first line is of the session itself; that of the other comes after it."""
    data = (
        lines(
            {"type": "session_meta", "payload": {"id": "02", "source": "cli"}},
            {"type": "session_meta", "payload": {"id": "01", "source": SPAWNED}},
        )
        + rollout().partition(b"\n")[2]
    )
    found = found_in(FORMATS["codex"], {"rollout-e.jsonl": data})

    assert [each.source_id for each in found if isinstance(each, SessionItem)] == ["02"]


def test_an_import_keeps_no_session_of_a_subagent(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "-srv-app"
    (folder / "3f0c" / "subagents").mkdir(parents=True)
    transcript(folder, "The lamp blinks every seven seconds.", "I see.")
    (folder / "3f0c" / "subagents" / "agent-a1.jsonl").write_bytes(OF_SUBAGENTS[0][2])
    done = subprocess.run(
        [PERDURE, "import", str(folder)],
        env={**os.environ, "HOME": str(tmp_path), "USER": "ana"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert [name for name, _ in stored(tmp_path)] == ["claude-code-3f0c"]
