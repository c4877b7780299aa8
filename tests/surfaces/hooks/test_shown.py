"""What hooks record: what the agent got, how they ran, and whether sessions are captured."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import perdure
from perdure.agents import hooks, pending_sessions
from perdure.agents.hook_input import HookInput
from perdure.agents.hook_log import (
    CAPTURED,
    RUNS_BYTES,
    HookRun,
    last_run,
    record_run,
    runs_of,
    session_digest,
)
from perdure.agents.hooks import MOST_TEXT, truncate_lines
from perdure.agents.moments import Emission
from perdure.agents.pending_sessions import (
    DAY,
    HOUR,
    PROMPT,
    PendingSession,
    PendingSessions,
    stopped_capture,
)
from perdure.agents.status_line import StatusLineInput, status_line
from perdure.engine.emissions import read_emissions
from perdure.engine.uses import used_in
from perdure.model.speech import without_injected
from tests.bites import FAILED
from tests.surfaces.hooks.calling import call, ending, heard, line, log
from tests.surfaces.nodes import one
from tests.surfaces.nodes import stdout_of as told

RULE = "Never deploy the harbour service on Fridays, because nobody is on call."
AGENT = "claude-code"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("USER", "ana")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PERDURE_HOME", "PERDURE_OFF", "CI", "CLAUDE_CODE_ENTRYPOINT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def ours(home: Path) -> Path:
    """Return Perdure's home, with a rule in it."""
    with perdure.open(home=home / ".perdure") as memory:
        memory.remember(RULE, kind="rule")
    return home / ".perdure"


def started(home: Path, session: str = "s1") -> str:
    """Return what a session that starts is given."""
    given = heard(home, "session-start", payload={"session_id": session, "cwd": str(home)})
    return str(given.get("hookSpecificOutput", {}).get("additionalContext", ""))


class TestEmissions:
    def test_what_a_session_gets_is_logged_and_shown(self, home: Path, ours: Path) -> None:
        text = started(home)

        (record,) = read_emissions(ours)
        assert (record.agent, record.session, record.moment) == (AGENT, "s1", "session-start")
        assert record.bytes == len(text.encode())
        assert record.position > 0
        shown = told("shown", "--last")
        assert RULE in shown
        assert "session-start: the session starts" in shown
        found = one("shown", "--session", "s1")
        assert found["lines"][0]["text"] == RULE  # type: ignore[index] # a list of objects
        assert told("shown", "--session", "other") == ""

    def test_without_options_it_is_the_last_session(self, home: Path, ours: Path) -> None:
        for session in ("s1", "s2"):
            started(home, session)

        assert "s2" in told("shown")
        assert "s1" not in told("shown")
        assert told("shown", "--since", "2026-01-01").count(RULE) == 2

    def test_silence_is_not_logged(self, home: Path, ours: Path) -> None:
        payload = {"session_id": "s1", "cwd": str(home), "prompt": "What is the weather like?"}
        heard(home, "user-prompt-submit", payload=payload)

        assert list(read_emissions(ours)) == []

    def test_what_the_agent_does_with_it_is_counted(self, home: Path, ours: Path) -> None:
        started(home, "3f0c")
        now = time.strftime("%Y-%m-%dT%H:%M:%S.999Z", time.gmtime())
        answer = "It is Friday: I will not deploy the harbour service, nobody is on call."
        payload = [("user", "Please deploy."), ("assistant", answer)]
        lines = [
            {**line(f"u{n}", f"u{n - 1}" if n else None, *each, "3f0c"), "timestamp": now}
            for n, each in enumerate(payload)
        ]
        path = home / "3f0c.jsonl"
        path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
        call(home, "stop", "--foreground", payload=ending(path))

        assert log(home) == ""
        assert used_in(ours, "3f0c") == 1
        assert len(runs_of(ours, AGENT, CAPTURED)) == 1

    def test_what_was_answered_before_is_no_use(self, home: Path, ours: Path) -> None:
        path = home / "3f0c.jsonl"
        old = line("u0", None, "assistant", RULE, "3f0c")
        path.write_text(f"{json.dumps(old)}\n")
        started(home, "3f0c")
        call(home, "stop", "--foreground", payload=ending(path))

        assert used_in(ours, "3f0c") == 0


class TestBound:
    def test_an_agent_is_never_given_more_than_its_client_keeps_whole(self) -> None:
        text = "".join(f"- line {number} é\n" for number in range(2_000))
        cut = truncate_lines(text)

        assert len(cut.encode()) <= MOST_TEXT
        assert text.startswith(f"{cut}\n")
        assert truncate_lines("short") == "short"
        assert len(truncate_lines("é" * MOST_TEXT).encode()) == MOST_TEXT

    @pytest.mark.parametrize("agent", ["claude-code", "cursor"])
    @pytest.mark.parametrize("blocks", [False, True])
    def test_so_is_every_answer_with_its_marks(self, agent: str, *, blocks: bool) -> None:
        emission = Emission("- a line of a rule\n" * 5_000, blocks=blocks)
        answer = hooks._as_json(hooks.HookOptions("pre-tool-use", agent), HookInput(), emission)

        assert 8_000 < hooks._size(answer) < MOST_TEXT + 100
        assert without_injected(json.dumps(answer)).count("rule") == 0


class TestRuns:
    def test_every_run_is_recorded_with_what_it_cost(self, home: Path, ours: Path) -> None:
        text = started(home)
        heard(home, "user-prompt-submit", payload={"session_id": "s1", "prompt": "yes"})

        (run,) = runs_of(ours, AGENT, "session-start")
        assert run.session == session_digest("s1")
        assert 10 < run.cpu < 60_000
        assert 0 < run.wall < 60_000
        assert (run.bytes, run.late) == (len(text.encode()), False)
        assert len(runs_of(ours, AGENT, PROMPT)) == 1

    def test_a_run_that_was_ended_is_recorded_as_late(self, home: Path, ours: Path) -> None:
        call(home, "session-start", "--seconds", "0.01", payload={"session_id": "s1"})

        (run,) = runs_of(ours, AGENT, "session-start")
        assert run.late

    def test_they_are_bounded_for_each_event(self, tmp_path: Path) -> None:
        record_run(tmp_path, AGENT, CAPTURED, HookRun("s1"))
        for _ in range(3_000):
            record_run(tmp_path, AGENT, "pre-tool-use", HookRun("s1", 12.5, 14.0, 100))

        sizes = [each.stat().st_size for each in (tmp_path / "hooks" / "runs").iterdir()]
        assert max(sizes) <= RUNS_BYTES + 200
        assert len(runs_of(tmp_path, AGENT, CAPTURED)) == 1

    def test_a_name_of_an_agent_names_no_other_file(self, tmp_path: Path) -> None:
        record_run(tmp_path, "../../../etc/x", "stop", HookRun("s1"))

        assert [each.name for each in tmp_path.rglob("*.stop")] == ["other.stop"]

    def test_without_a_home_nothing_is_created(self, home: Path) -> None:
        call(home, "session-start", payload={"session_id": "s1"})

        assert not (home / ".perdure").exists()


NOW = time.time()


def prompted(home: Path, *sessions: str, ago: float = 2 * HOUR) -> None:
    for session in sessions:
        record_run(home, AGENT, PROMPT, HookRun(session_digest(session), time=NOW - ago))


class TestCapture:
    def test_sessions_that_never_end_are_reported_once_a_day(self, home: Path, ours: Path) -> None:
        prompted(ours, "a", "b")

        text = started(home)
        assert "no session of claude-code was captured since" in text
        assert "`perdure doctor --agents`" in text
        assert "perdure doctor" not in started(home, "s2")

    def test_the_next_day_it_is_shown_again(self, home: Path, ours: Path) -> None:
        prompted(ours, "a", "b")
        record_run(ours, AGENT, "warned", HookRun("s0", time=NOW - DAY - 60))

        assert "perdure doctor" in started(home)

    def test_notes_that_wait_too_long_are_reported(self, ours: Path) -> None:
        PendingSessions(ours).add(PendingSession(AGENT, "a", "/nowhere"))
        assert stopped_capture(ours, AGENT) == ""
        (path,) = (ours / "hooks" / "pending").iterdir()
        os.utime(path, (NOW - 2 * HOUR, NOW - 2 * HOUR))

        assert stopped_capture(ours, AGENT).startswith("1 session could not be captured since ")

    def test_all_is_well_if_one_was_stored_since(self, ours: Path) -> None:
        prompted(ours, "a", "b")
        record_run(ours, AGENT, CAPTURED, HookRun("c", time=NOW - HOUR))

        assert stopped_capture(ours, AGENT) == ""

    def test_all_is_well_if_they_ended_though_nothing_was_to_be_stored(self, ours: Path) -> None:
        prompted(ours, "a", "b")
        for session in ("a", "b"):
            record_run(ours, AGENT, "stop", HookRun(session_digest(session), time=NOW - HOUR))

        assert stopped_capture(ours, AGENT) == ""

    def test_all_is_well_while_they_are_young_or_one_or_this(self, ours: Path) -> None:
        prompted(ours, "a", "b", ago=60)
        assert stopped_capture(ours, AGENT) == ""
        prompted(ours, "c")
        assert stopped_capture(ours, AGENT) == ""
        prompted(ours, "d")
        assert stopped_capture(ours, AGENT, "d") == ""
        assert stopped_capture(ours, "codex") == ""


class TestStatusLine:
    def test_it_says_what_there_is(self, home: Path, ours: Path) -> None:
        started(home)
        payload = {"session_id": "s1", "cwd": "/elsewhere", "workspace": {"project_dir": str(home)}}

        text = told("statusline", typed=json.dumps(payload).encode())
        assert text == "perdure: 1 memory · 1 shown, 0 used · saved just now\n"

    def test_it_says_what_is_left_of_the_budget_of_the_background(
        self, home: Path, ours: Path
    ) -> None:
        config = ours / "config.toml"
        config.write_text("[llm]\n")
        assert "background" not in told("statusline")

        config.write_text('[llm]\nprovider = "claude-code"\nbackground = true\n')
        assert told("statusline").endswith(" · 0 of 20 background runs\n")

    def test_it_says_what_is_switched_off(
        self, home: Path, ours: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert not told("statusline").endswith((" · off\n", " · read only\n", " · private\n"))

        monkeypatch.setenv("PERDURE_CONTRIBUTE", "0")
        assert told("statusline").endswith(" · read only\n")
        monkeypatch.setenv("PERDURE_OFF", "1")
        assert told("statusline").endswith(" · off\n")

    def test_nothing_can_go_wrong_with_it(self, home: Path) -> None:
        for typed in (b"", b"[]", b"\xff", b'{"workspace": 3, "session_id": []}', b"[" * 10_000):
            assert told("statusline", typed=typed) == "perdure: no memories yet\n"

    def test_memory_is_not_opened(self, home: Path, ours: Path) -> None:
        script = (
            "import sys; from perdure.surfaces.cli import cli\n"
            "cli(['statusline'], standalone_mode=False)\n"
            "assert not [each for each in sys.modules if each.startswith('perdure.storage')]\n"
        )
        payload = json.dumps({"session_id": "s1", "cwd": str(home)}).encode()
        done = subprocess.run(
            [sys.executable, "-c", script], input=payload, capture_output=True, check=False
        )
        assert (done.returncode, done.stdout[:9]) == (0, b"perdure: "), done.stderr

    def test_a_line_of_a_session_counts_once(self, home: Path, ours: Path) -> None:
        for _ in range(2):
            started(home)

        assert "1 shown" in status_line(StatusLineInput(ours, (str(home),), "s1"))


# ---------------------------------------------------------------- each check bites
def test_a_bound_that_is_exceeded_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "MOST_TEXT", 10**9)
    with pytest.raises(FAILED):
        TestBound().test_an_agent_is_never_given_more_than_its_client_keeps_whole()


def test_a_warning_about_a_working_agent_is_caught(
    ours: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_sessions, "CAPTURE_EVENTS", frozenset())
    with pytest.raises(FAILED):
        TestCapture().test_all_is_well_if_they_ended_though_nothing_was_to_be_stored(ours)


def test_the_last_run_is_that_of_the_last_line(tmp_path: Path) -> None:
    for each in (5.0, 7.0):
        record_run(tmp_path, AGENT, CAPTURED, HookRun("s", time=each))

    assert last_run(tmp_path, AGENT, CAPTURED) == 7.0
    assert last_run(tmp_path, AGENT, PROMPT) == 0.0
