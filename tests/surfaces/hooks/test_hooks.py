"""`perdure hook`: what agents call at the turns of a session."""

import json
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import perdure
from perdure.agents.capture import drain
from perdure.agents.hook_log import ERRORS_BYTES, log_error
from perdure.agents.pending_sessions import PendingSession, PendingSessions, capture_lock
from perdure.engine.recall.result import tokens_in
from perdure.model.speech import marked
from tests.surfaces.hooks.calling import (
    call,
    ending,
    environment,
    heard,
    log,
    start,
    stored,
    transcript,
    waiting,
)
from tests.surfaces.nodes import stdout_of as told
from tests.surfaces.processes import PERDURE, until

TABS = "I prefer tabs over spaces."


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("USER", "ana")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def remember(home: Path, text: str, slug: str) -> None:
    with perdure.open(home=home / ".perdure") as memory:
        memory.save(text, category="preference", slug=slug)


class TestKeeping:
    @pytest.mark.parametrize("event", ["pre-compact", "stop", "session-end"])
    def test_a_session_is_stored_and_learned_from_once(self, home: Path, event: str) -> None:
        path = transcript(home, TABS, "Noted.")
        for _ in range(2):
            assert call(home, event, "--foreground", payload=ending(path)) == (0, b"", "")

        ((name, payload),) = stored(home)
        assert name == "claude-code-3f0c"
        assert payload.count(TABS) == 1
        with perdure.open(home=home / ".perdure") as memory:
            hits = memory.recall("tabs", filters={"category": "preference"}).hits
        assert len(hits) == 1
        assert (waiting(home), log(home)) == (0, "")

    def test_the_agent_need_not_wait_for_it(self, home: Path) -> None:
        path = transcript(home, TABS, "Noted.")
        assert call(home, "stop", payload=ending(path)) == (0, b"", "")

        until(lambda: waiting(home) == 0)
        assert [name for name, _ in stored(home)] == ["claude-code-3f0c"]

    def test_a_session_that_goes_on_is_continued(self, home: Path) -> None:
        call(home, "stop", "--foreground", payload=ending(transcript(home, TABS, "Noted.")))
        longer = transcript(home, TABS, "Noted.", "I live in Lisbon.", "Nice.")
        call(home, "stop", "--foreground", payload=ending(longer))

        ((_, payload),) = stored(home)
        assert payload.index(TABS) < payload.index("I live in Lisbon.")
        assert log(home) == ""

    def test_who_went_back_and_took_another_way_has_both(self, home: Path) -> None:
        call(home, "stop", "--foreground", payload=ending(transcript(home, TABS, "Noted.")))
        for _ in range(2):
            other = transcript(home, TABS, "Why?", "It is quicker to type.")
            call(home, "stop", "--foreground", payload=ending(other))

        names = [name for name, _ in stored(home)]
        assert len(names) == 2
        assert "claude-code-3f0c" in names
        assert log(home) == ""

    def test_codex_sessions_are_stored_too(self, home: Path) -> None:
        path = home / "rollout-2026-03-02T10-00-00-0199.jsonl"
        payload = {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": TABS}],
        }
        lines = [
            {
                "type": "session_meta",
                "payload": {"id": "0199", "timestamp": "2026-03-02T10:00:00Z"},
            },
            {"type": "response_item", "payload": payload, "timestamp": "2026-03-02T10:00:01Z"},
        ]
        path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
        words = ("stop", "--agent", "codex", "--foreground")
        call(home, *words, payload={**ending(path), "session_id": "0199"})

        assert [name for name, _ in stored(home)] == ["codex-0199"]

    def test_a_transcript_that_names_no_folder_is_of_where_the_agent_works(
        self, home: Path
    ) -> None:
        app = home / "app"
        (app / ".harness").mkdir(parents=True)
        (app / ".harness" / "project.json").write_text('{"slug": "lighthouse"}')
        path = home / "session-1.jsonl"
        lines = [
            {"sessionId": "9c", "projectHash": "ab", "startTime": "2026-03-02T10:00:00Z"},
            {"id": "1", "type": "user", "content": "The lamp blinks every seven seconds."},
        ]
        path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
        payload = {"session_id": "9c", "transcript_path": str(path), "cwd": str(app)}
        call(home, "stop", "--agent", "gemini-cli", "--foreground", payload=payload)

        with perdure.open(home=home / ".perdure", user="ana") as memory:
            (hit,) = memory.recall("how often does the lamp blink?").hits
        assert hit.project == "lighthouse"

    def test_the_transcript_of_another_session_is_left_alone(self, home: Path) -> None:
        path = transcript(home, TABS, "Noted.")
        call(home, "stop", "--foreground", payload={**ending(path), "session_id": "other"})

        assert list(stored(home)) == []
        assert "it was not read" in log(home)
        assert waiting(home) == 0

    def test_a_session_without_a_transcript_is_none_to_keep(self, home: Path) -> None:
        payload = {"session_id": "s", "transcript_path": None, "cwd": "/srv/app"}
        assert call(home, "stop", "--agent", "codex", payload=payload) == (0, b"", "")

        assert (waiting(home), log(home)) == (0, "")

    def test_a_transcript_that_is_gone_is_given_up(self, home: Path) -> None:
        call(home, "stop", "--foreground", payload=ending(home / "gone.jsonl"))

        assert waiting(home) == 0
        assert "gone.jsonl" in log(home)

    def test_a_line_that_is_being_written_is_stored_by_the_next(self, home: Path) -> None:
        path = transcript(home, TABS, "Noted.")
        whole = path.read_bytes()
        path.write_bytes(whole[:-30])
        call(home, "stop", "--foreground", payload=ending(path))
        path.write_bytes(whole)
        call(home, "stop", "--foreground", payload=ending(path))

        ((_, payload),) = stored(home)
        assert "Noted." in payload

    def test_what_was_killed_is_done_by_the_next_hook(self, home: Path) -> None:
        path = transcript(home, *(f"I like the number {n}." for n in range(40)))
        PendingSessions(home / ".perdure").add(PendingSession("claude-code", path.stem, str(path)))
        process = start(home, "drain")
        until((home / ".perdure" / "histories").exists)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        call(home, "session-start", payload={"cwd": "/srv/app"})

        until(lambda: waiting(home) == 0)
        ((_, payload),) = stored(home)
        assert payload.count("I like the number") == 40

    def test_a_config_that_is_broken_loses_nothing(self, home: Path) -> None:
        config = home / ".perdure" / "config.toml"
        config.parent.mkdir()
        config.write_text("[storage]\nbackend = 'no-such'\n")
        path = transcript(home, TABS, "Noted.")
        assert call(home, "stop", "--foreground", payload=ending(path)) == (0, b"", "")
        assert "no-such" in log(home)
        config.unlink()
        drain(home / ".perdure", environment(home))

        assert [name for name, _ in stored(home)] == ["claude-code-3f0c"]


class TestManyAtOnce:
    def test_of_fifty_hooks_at_once_none_is_lost(self, home: Path) -> None:
        paths = [transcript(home, f"I like tea {n}.", "Ok.", session=f"s{n}") for n in range(50)]
        for some in (paths[:25], paths[25:]):
            begun = [
                start(home, "stop", payload=json.dumps(ending(path)).encode()) for path in some
            ]
            assert [process.wait(120) for process in begun] == [0] * len(begun)
            assert {process.communicate() for process in begun} == {(b"", b"")}

        until(lambda: waiting(home) == 0, 120)
        payload = dict(stored(home))
        assert payload.keys() == {f"claude-code-s{n}" for n in range(50)}
        assert all(f"I like tea {n}." in payload[f"claude-code-s{n}"] for n in range(50))

    def test_only_one_keeps_sessions_at_a_time(self, home: Path) -> None:
        path = transcript(home, TABS, "Noted.")
        PendingSessions(home / ".perdure").add(PendingSession("claude-code", path.stem, str(path)))
        with capture_lock(home / ".perdure") as is_ours:
            assert is_ours
            drain(home / ".perdure", environment(home))
            assert waiting(home) == 1
        drain(home / ".perdure", environment(home))

        assert waiting(home) == 0

    def test_a_note_that_comes_meanwhile_is_not_taken_for_the_one_that_is_done(
        self, tmp_path: Path
    ) -> None:
        pending = PendingSessions(tmp_path)
        first, second = (PendingSession("claude-code", "s", "t.jsonl") for _ in range(2))
        pending.add(first)
        pending.add(second)
        pending.done(first)
        assert list(pending) == [second]
        pending.done(second)

        assert list(pending) == []
        assert not pending


class TestRecalling:
    def test_a_session_that_is_resumed_has_its_briefing_already(self, home: Path) -> None:
        remember(home, "The app project is deployed on Fridays.", "deploys")

        def started(session: str, source: str) -> bool:
            payload = {"cwd": str(home), "session_id": session, "source": source}
            return "Fridays" in str(heard(home, "session-start", payload=payload))

        assert started("one", "startup")
        assert not started("one", "resume")
        assert started("one", "compact")
        assert started("two", "resume")

    def test_a_session_that_had_a_hint_only_gets_its_briefing_when_it_is_resumed(
        self, home: Path
    ) -> None:
        (home / ".perdure").mkdir()
        payload = {
            "prompt": "From now on, never push to main.",
            "session_id": "one",
            "cwd": str(home),
        }
        assert heard(home, "user-prompt-submit", payload=payload)
        remember(home, "The app project is deployed on Fridays.", "deploys")

        assert "Fridays" in str(
            heard(home, "session-start", payload={**payload, "source": "resume"})
        )

    def test_what_a_session_taught_is_shown_to_others_only(self, home: Path) -> None:
        path = transcript(home, "Never push the harbour app without asking the pilots.")
        call(home, "stop", "--foreground", payload=ending(path))

        def shown(session: str) -> bool:
            prompt = "shall I push the harbour app without the pilots?"
            given = {"prompt": prompt, "cwd": "/srv/app", "session_id": session}
            return "asking the pilots" in str(heard(home, "user-prompt-submit", payload=given))

        assert not shown(path.stem)
        assert shown("another")

    @pytest.mark.parametrize("agent", ["claude-code", "codex"])
    def test_a_session_starts_with_what_is_known_of_its_project(
        self, home: Path, agent: str
    ) -> None:
        remember(home, "The app project is deployed on Fridays.", "deploys")
        app = home / "app"
        app.mkdir()
        answer = heard(home, "session-start", "--agent", agent, payload={"cwd": str(app)})

        told = answer["hookSpecificOutput"]
        assert told["hookEventName"] == "SessionStart"
        assert "From earlier sessions" in told["additionalContext"]
        assert "deployed on Fridays" in told["additionalContext"]

    def test_in_no_project_only_what_is_about_the_person_is_shown(self, home: Path) -> None:
        remember(home, "I work on Fridays.", "work")
        with perdure.open(home=home / ".perdure") as memory:
            memory.save("We deploy on Fridays.", category="decision", project="app")

        told = json.dumps(heard(home, "session-start", payload={"cwd": str(home / "gone")}))

        assert "I work on Fridays." in told
        assert "deploy" not in told

    def test_what_is_to_be_stored_and_can_not_be_hides_nothing(self, home: Path) -> None:
        remember(home, "The app project is deployed on Fridays.", "deploys")
        (home / "app").mkdir()
        PendingSessions(home / ".perdure").add(
            PendingSession("claude-code", "s", str(home / "none.jsonl"))
        )
        (home / ".perdure" / "hooks" / "lock").mkdir()  # nobody can lock

        answer = heard(home, "session-start", payload={"cwd": str(home / "app")})

        assert "deployed on Fridays" in answer["hookSpecificOutput"]["additionalContext"]

    def test_cursor_is_answered_in_its_own_form(self, home: Path) -> None:
        remember(home, "The app project is deployed on Fridays.", "deploys")
        (home / "app").mkdir()
        payload = {"workspace_roots": [str(home / "app")], "conversation_id": "c1"}
        answer = heard(home, "session-start", "--agent", "cursor", payload=payload)

        assert list(answer) == ["additional_context"]
        assert "deployed on Fridays" in answer["additional_context"]

    def test_a_prompt_is_answered_within_a_small_budget(self, home: Path) -> None:
        for n in range(20):
            remember(home, f"Tabs are preferred, reason {n}: {'because ' * 40}", f"tabs-{n}")
        answer = heard(home, "user-prompt-submit", payload={"prompt": "should I use tabs here?"})

        told = answer["hookSpecificOutput"]
        assert told["hookEventName"] == "UserPromptSubmit"
        assert "Tabs are preferred" in told["additionalContext"]
        assert tokens_in(told["additionalContext"]) <= 200

    def test_what_was_just_stated_is_not_shown_again(self, home: Path) -> None:
        path = transcript(home, "The harbour crane is yellow.", "Noted.")
        call(home, "stop", "--foreground", payload=ending(path))
        asked = {"prompt": "which colour is the harbour crane?", "cwd": "/srv/app"}

        assert "crane" not in json.dumps(
            heard(home, "user-prompt-submit", payload={**asked, "session_id": path.stem})
        )
        assert "crane is yellow" in json.dumps(
            heard(home, "user-prompt-submit", payload={**asked, "session_id": "another"})
        )

    def test_what_others_stated_is_not_shown(self, home: Path) -> None:
        with perdure.open(home=home / ".perdure") as memory:
            bob = memory.for_caller(replace(memory.caller, user_id="bob"))
            bob.save("Bob keeps his harbour key under the mat.", category="note", slug="key")
        asked = {"prompt": "where is the harbour key?", "cwd": "/srv/harbour"}

        assert heard(home, "user-prompt-submit", payload=asked) == {}
        assert heard(home, "session-start", payload=asked) == {}

    @pytest.mark.parametrize("prompt", ["", "yes", "/compact now please", "!ls -l", 7])
    def test_what_is_no_question_is_not_asked(self, home: Path, prompt: object) -> None:
        remember(home, "Say yes, compact, now, please.", "words")

        assert heard(home, "user-prompt-submit", payload={"prompt": prompt}) == {}

    def test_what_the_prompt_says_itself_is_not_shown(self, home: Path) -> None:
        question = "Which colour is the harbour crane?"
        path = transcript(home, question, "It is yellow.")
        call(home, "stop", "--foreground", payload=ending(path))
        asked = {"prompt": f"{question} Look it up.", "cwd": "/srv/app", "session_id": "another"}

        assert "Which colour" not in json.dumps(heard(home, "user-prompt-submit", payload=asked))

    def test_a_briefing_that_an_agent_puts_before_a_prompt_is_not_part_of_it(
        self, home: Path
    ) -> None:
        remember(home, "The app project is deployed on Fridays.", "deploys")
        remember(home, "The app project is deployed by Ana alone.", "deployer")
        briefing = marked("Rules:\n- The app project is deployed on Fridays.")
        prompt = f"<hook_context>{briefing}</hook_context>\n\nWrite a limerick about a cat."

        assert heard(home, "user-prompt-submit", payload={"prompt": prompt}) == {}

    def test_the_first_prompt_of_all_gets_a_hint_of_what_may_last(self, home: Path) -> None:
        (home / ".perdure").mkdir()  # as `perdure install` leaves it
        payload = {"prompt": "From now on, never push to main.", "session_id": "one"}

        assert "possibly lasting" in json.dumps(heard(home, "user-prompt-submit", payload=payload))
        assert heard(home, "user-prompt-submit", payload=payload) == {}

    @pytest.mark.parametrize("event", ["session-start", "user-prompt-submit"])
    def test_without_memory_nothing_is_shown_or_created(self, home: Path, event: str) -> None:
        assert heard(home, event, payload={"cwd": "/srv/app", "prompt": "what is known?"}) == {}
        assert list(home.iterdir()) == []


class TestNeverInTheWay:
    @pytest.mark.parametrize(
        "given",
        [b"", b"not JSON", b"[]", b"\xff\xfe", b'{"session_id": 7}', b"[" * 100_000, b"null"],
        ids=lambda given: repr(given[:10]),
    )
    def test_what_is_no_message_is_only_logged(self, home: Path, given: bytes) -> None:
        assert call(home, "stop", payload=given or b" ") == (0, b"", "")

        assert log(home).count("\n") == 1
        assert list(stored(home)) == []

    def test_a_prompt_that_is_none_is_only_logged(self, home: Path) -> None:
        assert call(home, "user-prompt-submit", payload=b"not JSON") == (0, b"", "")
        assert "not JSON" in log(home)

    @pytest.mark.parametrize(
        "words", [(), ("unheard-of",), ("stop", "--unheard-of", "x"), ("--x",)]
    )
    def test_words_that_it_does_not_know_stop_no_agent(
        self, home: Path, words: tuple[str, ...]
    ) -> None:
        assert call(home, *words) == (0, b"", "")

    @pytest.mark.parametrize("named", ["", "relative", "~nobody/x"])
    def test_without_a_home_nothing_is_done(self, tmp_path: Path, named: str) -> None:
        done = subprocess.run(
            [PERDURE, "hook", "stop"],
            env={"PERDURE_HOME": named},
            cwd=tmp_path,
            input=b"{}",
            capture_output=True,
            check=False,
        )

        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert list(tmp_path.iterdir()) == []

    def test_strict_says_what_is_wrong(self, home: Path) -> None:
        code, printed, complained = call(home, "stop", "--strict", payload=b"not JSON")

        assert (code, printed) == (1, b"")
        assert complained.startswith("perdure: a hook was given 8 bytes that are not JSON")
        assert log(home) == ""

    def test_a_hook_that_takes_too_long_is_left(self, home: Path) -> None:
        process = start(home, "stop", "--seconds", "0.2")
        assert process.wait(60) == 0  # nobody closed its input
        printed, complained = process.communicate()

        assert (printed, complained) == (b"", b"")
        assert "took more than 0.2 s" in log(home)

    def test_a_reader_that_is_gone_is_no_trouble(self, home: Path) -> None:
        remember(home, TABS, "tabs")
        process = start(home, "user-prompt-submit")
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, complained = process.communicate(b'{"prompt": "tabs or spaces?"}')

        assert (process.returncode, complained) == (0, b"")


class TestTheLog:
    def test_it_stays_small(self, tmp_path: Path) -> None:
        for number in range(600):
            log_error(tmp_path, f"{number} {'x' * 2000}\x1b[2J\nsecond line")
        files = list((tmp_path / "hooks").iterdir())

        assert {each.name for each in files} == {"log", "log.1"}
        assert all(each.stat().st_size <= ERRORS_BYTES + 2000 for each in files)
        assert "\x1b" not in (tmp_path / "hooks" / "log").read_text()

    def test_the_doctor_tells_of_it(self, home: Path) -> None:
        assert "hooks" not in told("doctor")
        log_error(home / ".perdure", "first")
        log_error(home / ".perdure", "second")

        assert "warn hooks     2 errors, the last: " in told("doctor")
        (check,) = (
            each
            for each in json.loads(told("doctor", "--json"))["checks"]
            if each["name"] == "hooks"
        )
        assert "second" in check["message"]
