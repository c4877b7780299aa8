"""Past sessions of an agent: found by `perdure install`, and indexed if its user wants that."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from perdure.agents.past_sessions import find_past_sessions, index_past_sessions
from tests.surfaces.install.test_install import home
from tests.surfaces.nodes import perdure
from tests.surfaces.nodes import stdout_of as told
from tests.surfaces.terminals import at_a_terminal
from tests.transfer.samples import (
    CHAT,
    as_lines,
    code_line,
    codex_line,
    codex_message,
    opencode_database,
)

__all__ = ["home"]

IDS = [f"{number:08}-0000-4000-8000-000000000000" for number in range(4)]
LATER = "perdure import --history claude-code"


def put(path: Path, lines: Sequence[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(as_lines(lines))


def claude(home: Path, number: int, text: str) -> Path:
    name = IDS[number]
    path = home / ".claude" / "projects" / f"-srv-p{number % 2}" / f"{name}.jsonl"
    first = code_line(f"a{number}", None, "user", text, sessionId=name, cwd=f"/srv/p{number % 2}")
    put(path, [first])
    os.utime(path, (number, number))
    return path


@pytest.fixture
def past(home: Path) -> Path:
    """Return a home with three sessions of Claude Code in two projects, and two of subagents."""
    texts = ("The lighthouse blinks every seven seconds.", "Which port is it?", "Rename the pier.")
    *_, path = (claude(home, number, text) for number, text in enumerate(texts))
    aside = code_line("b", None, "user", "Look around the harbour.", isSidechain=True)
    put(path.parent / "agent-a1.jsonl", [aside])
    put(path.with_suffix("") / "subagents" / "agent-a2.jsonl", [aside])
    return home


def recalled(words: str) -> str:
    return told("recall", words, "--json")


def test_it_says_what_is_there_and_a_script_is_not_surprised(past: Path) -> None:
    done = perdure("install", "claude-code", "--yes")

    assert f"3 past sessions of 2 projects; to index them: `{LATER}`" in done.stderr
    assert not (past / ".perdure" / "histories").exists()


def test_past_sessions_are_indexed_once(past: Path) -> None:
    first = told("install", "claude-code", "--yes", "--history")
    again = perdure(*LATER.split()[1:])

    assert "3 sessions of 2 projects indexed" in first
    assert "no past session is new" in again.stderr
    assert "past session" not in perdure("install", "claude-code", "--yes").stderr
    assert "every seven seconds" in recalled("how often does the lighthouse blink?")
    assert "Look around the harbour" not in recalled("look around the harbour")


def test_what_was_added_since_is_indexed_later(past: Path) -> None:
    told("install", "claude-code", "--yes", "--history")
    claude(past, 3, "The ferry leaves at noon.")

    assert "1 session of 1 project indexed" in told(*LATER.split()[1:])
    assert "at noon" in recalled("when does the ferry leave?")


def test_they_are_not_mentioned_if_they_are_not_wanted(past: Path) -> None:
    assert "past session" not in perdure("install", "claude-code", "--yes", "--no-history").output


def test_stopped_anywhere_it_goes_on(past: Path) -> None:
    def stopping(done: int, _all: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    for left in (3, 2):
        found = find_past_sessions("claude-code", os.environ)
        assert len(found.sessions) == left
        with pytest.raises(KeyboardInterrupt):
            index_past_sessions(found, os.environ, stopping)

    assert "1 session of 1 project indexed" in told(*LATER.split()[1:])
    assert "every seven seconds" in recalled("how often does the lighthouse blink?")
    assert "Rename the pier" in recalled("rename the pier")


def test_a_broken_transcript_does_not_stop_the_others(past: Path) -> None:
    path = past / ".claude" / "projects" / "-srv-p0" / f"{IDS[0]}.jsonl"
    path.unlink()
    path.symlink_to("/dev/zero")
    put(path.parent / "notes.jsonl", [{"type": "user"}])
    done = perdure("install", "claude-code", "--yes", "--history")

    assert done.exit_code == 0
    assert "Rename the pier" in recalled("rename the pier")


# ---------------------------------------------------------------- the others
def codex(name: str, **meta: object) -> list[object]:
    first = codex_line("session_meta", {"id": name, "cwd": "/srv/app", **meta})
    return [first, codex_message("user", f"The crane {name[:8]} lifts nine tons.")]


def test_sessions_of_codex_are_found_without_those_of_subagents(home: Path) -> None:
    folder = home / ".codex" / "sessions" / "2026" / "03" / "02"
    spawned = {"source": {"subagent": {"thread_spawn": {}}}, "thread_source": "subagent"}
    put(folder / f"rollout-2026-03-02T10-00-00-{IDS[0]}.jsonl", codex(IDS[0]))
    put(folder / f"rollout-2026-03-02T11-00-00-{IDS[1]}.jsonl", codex(IDS[1], **spawned))

    assert "1 session of 1 project indexed" in told("install", "codex", "--yes", "--history")
    assert "nine tons" in recalled("how much does the crane lift?")


def test_a_pipe_among_them_stops_nobody(home: Path) -> None:
    folder = home / ".codex" / "sessions"
    folder.mkdir(parents=True)
    os.mkfifo(folder / f"rollout-2026-03-02T10-00-00-{IDS[0]}.jsonl")

    assert find_past_sessions("codex", os.environ).sessions == ()


def test_sessions_of_gemini_cli_are_found(home: Path) -> None:
    put(home / ".gemini" / "tmp" / "harbour" / "chats" / "session-2026-03-02-9c.jsonl", CHAT)

    assert "1 session of 1 project indexed" in told("install", "gemini-cli", "--yes", "--history")
    assert "no past session is new" in perdure("import", "--history", "gemini-cli").stderr
    assert "8080" in recalled("use port 8080")


def test_sessions_of_opencode_are_found(home: Path) -> None:
    folder = home / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    opencode_database(folder / "opencode.db")

    assert "1 session of 1 project indexed" in told("install", "opencode", "--yes", "--history")
    assert "no past session is new" in perdure("import", "--history", "opencode").stderr
    assert "Rename it" in recalled("rename it")


def test_the_estimate_grows_with_the_bytes(past: Path) -> None:
    path = past / ".claude" / "projects" / "-srv-p0" / f"{IDS[0]}.jsonl"
    few = find_past_sessions("claude-code", os.environ).seconds
    path.write_bytes(path.read_bytes() + b" " * 5_000_000)

    assert (few, find_past_sessions("claude-code", os.environ).seconds) == (1, 5)


def test_a_path_or_a_history_is_imported_not_both(home: Path) -> None:
    assert perdure("import").exit_code == 2
    assert perdure("import", str(home), "--history", "codex").exit_code == 2


def test_candidates_wait_for_a_decision_and_are_counted(past: Path) -> None:
    claude(past, 3, "I think we should probably keep the tide table in the repository from now on.")
    printed = told("install", "claude-code", "--yes", "--history")
    waiting = len(told("review", "--project", "", "--json").splitlines())

    assert waiting
    assert f"{waiting} candidate" in printed


# ---------------------------------------------------------------- asked at a terminal
def test_a_user_is_asked_about_both(past: Path) -> None:
    code, seen = at_a_terminal(past, "install", "claude-code", typed="n\ny\n\n")

    assert code == 0, seen
    assert "a memory of its own (MEMORY.md). Keep it on beside Perdure? [Y/n]" in seen
    question = (
        "3 past sessions of 2 projects; index now? about 1 s, nothing leaves this machine [Y/n]"
    )
    assert question in seen.replace("\n", "")
    assert "3 sessions of 2 projects indexed" in seen
    assert '"autoMemoryEnabled": false' in (past / ".claude" / "settings.json").read_text()


def test_a_user_is_asked_once(past: Path) -> None:
    at_a_terminal(past, "install", "claude-code", typed="\ny\nn\n")
    _, seen = at_a_terminal(past, "install", "claude-code", typed="n\n")

    assert "autoMemoryEnabled" not in (past / ".claude" / "settings.json").read_text()
    assert "memory of its own" not in seen
    assert f"to index them: `{LATER}`" in seen.replace("\n", "")


def test_nobody_is_asked_to_keep_on_what_is_off(home: Path) -> None:
    """Codex has a memory of its own that is off unless its user switched it on."""
    _, seen = at_a_terminal(home, "install", "codex", typed="y\n")

    assert "memory of its own" not in seen
    assert (home / ".codex" / "hooks.json").exists()
