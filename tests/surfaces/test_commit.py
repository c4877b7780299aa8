"""`perdure commit`: a conversation in a file becomes memories."""

import json
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from perdure import session_id_for
from perdure.engine.memory import Memory
from perdure.errors import (
    AbsentError,
    AccessDeniedError,
    InvalidValueError,
    NodeExistsError,
    PathIsDirectoryError,
    UnreadableSourceError,
)
from perdure.surfaces.out import message_of
from tests.support.validate.tokens import token
from tests.surfaces.nodes import MEMORIES, lines, one, perdure, position, refusal, stdout_of
from tests.surfaces.terminals import PERDURE, at_a_terminal, environment
from tests.surfaces.terminals import perdure as run

BERLIN = {
    "role": "user",
    "name": "Ana",
    "content": "I live in Berlin. I prefer tabs over spaces.",
    "time": "2026-03-02T10:00:00Z",
}
NOTED = {"role": "assistant", "content": "Noted."}
LISBON = {**BERLIN, "content": "I moved: I live in Lisbon now.", "time": "2026-05-02T10:00:00Z"}
HOSTILE = "\x1b[2J\x1b]0;pwned\x07\u202e"


def write(folder: Path, name: str, *messages: Mapping[str, object] | str) -> str:
    """Write a conversation, a line for each message; return its path."""
    text = (each if isinstance(each, str) else json.dumps(each) for each in messages)
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in text))
    return str(path)


@pytest.fixture
def march(tmp_path: Path) -> str:
    return write(tmp_path, "march.jsonl", BERLIN, NOTED)


@pytest.fixture
def may(tmp_path: Path) -> str:
    return write(tmp_path, "may.jsonl", LISBON)


class TestCommitting:
    def test_it_says_what_was_learned_in_few_lines(self, memory: Path, march: str) -> None:
        done = perdure("commit", march)

        assert done.exit_code == 0
        assert done.stdout == (
            "sessions/march: 2 messages, 2 of them new\n"
            "2 extracted, 2 created\n"
            "  created     profile  Ana lives in Berlin.\n"
            "  created     preference/tabs-over-spaces  Ana prefers tabs over spaces.\n"
        )
        assert done.stderr == "`perdure why profile` shows its evidence\n"
        assert stdout_of("read", "profile") == "- Ana lives in Berlin.\n"

    def test_the_same_again_changes_nothing(self, memory: Path, march: str) -> None:
        stdout_of("commit", march)
        before = position()

        assert stdout_of("commit", march) == (
            "sessions/march: 2 messages, 0 of them new\nalready committed; nothing changed\n"
        )
        assert position() == before

    def test_what_is_superseded_is_shown(self, memory: Path, march: str, may: str) -> None:
        stdout_of("commit", march)

        answer = lines(stdout_of("commit", may))

        assert ["1", "extracted,", "1", "merged,", "1", "superseded"] in answer
        assert answer[2][:2] == ["merged", "profile"]
        assert answer[3][0] == "superseded"
        assert answer[3][1].startswith("former/profile-ana-lives-in-berlin-")
        assert answer[3][2:] == ["Ana", "lives", "in", "Berlin."]

    def test_more_messages_are_added(self, memory: Path, tmp_path: Path, march: str) -> None:
        stdout_of("commit", march)
        write(tmp_path, "march.jsonl", BERLIN, NOTED, LISBON)

        assert stdout_of("commit", march).startswith("sessions/march: 3 messages, 1 of them new\n")

    def test_other_messages_are_refused_with_the_option_that_helps(
        self, memory: Path, tmp_path: Path, march: str
    ) -> None:
        stdout_of("commit", march)
        write(tmp_path, "march.jsonl", LISBON)

        refused = refusal("commit", march)

        assert isinstance(refused, NodeExistsError)
        assert "or add --session ID." in message_of(refused)
        assert stdout_of("commit", march, "--session", "other").startswith(
            "sessions/other: 1 message"
        )

    def test_a_list_will_do_and_so_will_stdin(self, memory: Path, tmp_path: Path) -> None:
        path = tmp_path / "talk.json"
        path.write_text(json.dumps([BERLIN, NOTED], indent=2))

        assert stdout_of("commit", str(path)).startswith("sessions/talk: 2 messages")
        answer = stdout_of("commit", "-", "--session", "piped", typed=path.read_bytes())
        assert answer.startswith("sessions/piped: 2 messages")

    def test_stdin_has_no_name(self, memory: Path) -> None:
        done = perdure("commit", "-", typed=b"{}")

        assert done.exit_code == 2
        assert "Fix: add --session ID." in done.stderr

    def test_nothing_need_be_learned(self, memory: Path, march: str) -> None:
        answer = stdout_of("commit", march, "--no-extract")

        assert answer.endswith("nothing was learned\n")
        assert perdure("read", "profile").exit_code == 1
        assert "2 created" in stdout_of("commit", march), "it can be learned from later"

    def test_min_confidence_limits_what_is_learned(self, memory: Path, march: str) -> None:
        answer = stdout_of("commit", march, "--min-confidence", "0.95")

        assert answer.endswith("2 extracted, 2 filtered\n")
        assert perdure("commit", march, "--min-confidence", "7").exit_code == 2

    def test_a_user_learns_for_themselves(self, memory: Path, march: str) -> None:
        stdout_of("commit", march, "--user", "bob")

        assert "Berlin" in stdout_of("read", "profile", "--user", "bob")
        assert isinstance(refusal("commit", march, "--user", "eve"), PermissionError)

    def test_secrets_are_masked_wherever_they_are_shown(self, memory: Path, tmp_path: Path) -> None:
        secret = token("aws")
        path = write(tmp_path, "a.jsonl", {**BERLIN, "content": f"I prefer {secret} over tabs."})

        for words in (("--dry-run",), ("--json",), ()):
            done = perdure("commit", path, *words)
            assert done.exit_code == 0
            assert secret not in done.output

    def test_it_says_what_was_masked_and_never_the_value(
        self, memory: Path, tmp_path: Path
    ) -> None:
        secret = token("aws")
        path = write(tmp_path, "a.jsonl", NOTED, {**BERLIN, "name": secret, "content": secret})

        dry = one("commit", path, "--dry-run")
        done = perdure("commit", path)

        kinds = ["AWS access key"] * 2
        assert dry["masked"] == {"secrets": 2, "messages": [{"message": 1, "kinds": kinds}]}
        assert f"2 secrets were masked: message 1 ({', '.join(kinds)})\n" in done.stderr
        assert secret not in done.output
        assert one("commit", path)["masked"] == {"secrets": 0, "messages": []}


class TestDryRun:
    def test_it_shows_the_plan_and_the_diff_and_writes_nothing(
        self, memory: Path, march: str, may: str
    ) -> None:
        stdout_of("commit", march)
        before = position()

        done = perdure("commit", may, "--dry-run")

        assert done.stderr == "dry run: nothing was written\n"
        answer = lines(done.stdout)
        assert answer[3][:4] == ["outcome", "confidence", "memory", "statement"]
        assert answer[4][:4] == ["merged", "0.9", "profile", "Ana"]
        assert "It supersedes" in done.stdout
        assert "\n-- Ana lives in Berlin.\n" in done.stdout
        assert "\n+- Ana lives in Lisbon. (since 2026-05-02)\n" in done.stdout
        assert "\x1b" not in done.stdout
        assert position() == before

    def test_it_says_what_the_commit_will_say(self, memory: Path, march: str) -> None:
        planned, done = one("commit", march, "--dry-run"), one("commit", march)

        assert (planned.pop("dry_run"), done.pop("dry_run")) == (True, False)
        assert planned == done


class TestJson:
    def test_it_has_counts_plans_and_changes(self, memory: Path, march: str, may: str) -> None:
        stdout_of("commit", march)

        answer = one("commit", may)

        assert answer["session"] == "may"
        assert answer["uris"] == ["ctx://local/sessions/may/messages"]
        assert (answer["messages"], answer["added"], answer["left_out"]) == (1, 1, [])
        assert answer["counts"] == {
            "extracted": 1,
            "created": 0,
            "merged": 1,
            "appended": 0,
            "skipped": 0,
            "filtered": 0,
            "failed": 0,
            "superseded": 1,
        }
        changes = answer["changes"]
        plans = answer["plans"]
        assert isinstance(plans, list)
        assert isinstance(changes, list)
        former = plans[0].pop("superseded")
        assert plans == [
            {
                "outcome": "merged",
                "uri": f"{MEMORIES}/profile",
                "category": "profile",
                "content": "Ana lives in Lisbon.",
                "quote": "I live in Lisbon",
                "speaker": "Ana",
                "confidence": 0.9,
                "reason": 'It supersedes "Ana lives in Berlin". '
                'One says "Berlin", the other "Lisbon".',
            }
        ]
        assert {each["uri"] for each in changes} == {f"{MEMORIES}/profile", *former}
        assert set(changes[0]) == {"uri", "before", "after", "diff"}

    def test_what_became_nothing_has_no_place(self, memory: Path, march: str) -> None:
        answer = one("commit", march, "--min-confidence", "1")

        plans = answer["plans"]
        assert isinstance(plans, list)
        assert {(each["outcome"], each["uri"]) for each in plans} == {("filtered", None)}


class TestFaults:
    def test_all_faults_are_reported_with_line_and_fix_and_nothing_is_committed(
        self, memory: Path, tmp_path: Path
    ) -> None:
        wrong = ("{", {"role": "user"}, {**NOTED, "role": "human"}, {**NOTED, "id": 7}, "[1]", "3")
        path = write(tmp_path, "a.jsonl", BERLIN, *wrong)

        done = perdure("commit", path)

        assert isinstance(done.exception, InvalidValueError)
        assert "6 messages can't be read; nothing was committed." in str(done.exception)
        printed_lines = done.stderr.splitlines()
        assert [line.split(":")[1] for line in printed_lines] == [f" line {n}" for n in range(2, 8)]
        assert all("Fix: " in line for line in printed_lines)
        assert "a message has the unknown key 'id'" in printed_lines[3]
        assert perdure("list", "sessions/a").exit_code == 1

    def test_of_many_only_some_are_listed(self, memory: Path, tmp_path: Path) -> None:
        done = perdure("commit", write(tmp_path, "a.jsonl", *["{"] * 1000))

        assert done.exit_code == 1
        assert done.stderr.splitlines()[-1] == "and 980 more"
        assert len(done.stderr.splitlines()) == 21

    def test_unknown_keys_can_be_ignored_and_are_reported(
        self, memory: Path, tmp_path: Path
    ) -> None:
        odd = {**BERLIN, "id": 7, HOSTILE: 1}
        path = write(tmp_path, "a.jsonl", odd)
        assert perdure("commit", path).exit_code == 1

        done = perdure("commit", path, "--lenient")

        assert done.exit_code == 0
        assert "ignored, because no message has such a field: '\\x1b[2J" in done.stderr
        assert "'id'" in done.stderr
        assert one("commit", path, "--lenient")["left_out"] == [HOSTILE, "id"]

    def test_messages_of_sdks_are_read(self, memory: Path, tmp_path: Path) -> None:
        call = {"type": "function", "function": {"name": "weather", "arguments": "{}"}}
        calling = {"role": "assistant", "content": None, "tool_calls": [call]}
        result = {"role": "tool", "tool_call_id": "c1", "content": "Rain"}
        blocks = {"role": "user", "content": [{"type": "text", "text": "I live in Rome."}]}

        path = write(tmp_path, "a.jsonl", blocks, calling, result)

        assert stdout_of("commit", path).startswith("sessions/a: 3 messages, 3 of them new\n")
        assert "## weather (tool) ^m1\n\n[called weather] {}" in stdout_of(
            "read", "sessions/a/messages"
        )

    def test_what_can_not_be_stored_can_be_ignored_and_is_reported(
        self, memory: Path, tmp_path: Path
    ) -> None:
        picture = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Hi"}]}
        path = write(tmp_path, "a.jsonl", NOTED, picture, {"type": "reasoning", "summary": []})
        refused = perdure("commit", path)
        assert refused.exit_code == 1
        assert "line 2: image: only text is stored. Fix: remove it, or" in refused.stderr

        done = perdure("commit", path, "--lenient")

        assert done.stdout.startswith("sessions/a: 2 messages, 2 of them new\n")
        assert "left out of message 2: image: only text is stored\n" in done.stderr
        assert one("commit", path, "--lenient")["not_stored"] == [
            {"message": 1, "what": "image", "why": "only text is stored"},
            {"message": 2, "what": "reasoning", "why": "it is not part of the conversation"},
        ]

    def test_a_last_answer_that_differs_is_replaced_and_reported(
        self, memory: Path, tmp_path: Path, march: str
    ) -> None:
        stdout_of("commit", march)
        write(tmp_path, "march.jsonl", BERLIN, {**NOTED, "content": "Good to know."})

        assert stdout_of("commit", march).startswith(
            "sessions/march: 2 messages, 1 of them new, in place of 1\n"
        )

    @pytest.mark.parametrize(
        ("line", "program"),
        [
            ({"type": "user", "sessionId": "x", "message": NOTED}, "Claude Code"),
            ({"type": "session_meta", "payload": {"id": "x"}}, "Codex"),
            ({"title": "x", "mapping": {}}, "ChatGPT"),
            ({"uuid": "x", "chat_messages": []}, "Claude"),
        ],
    )
    def test_files_of_other_programs_are_imported(
        self, memory: Path, tmp_path: Path, line: dict[str, object], program: str
    ) -> None:
        for text in (json.dumps(line), json.dumps([line])):
            refused = refusal("commit", write(tmp_path, "a.jsonl", text))

            assert isinstance(refused, UnreadableSourceError)
            assert f"looks like a file of {program}," in str(refused)
            assert "`perdure import`" in str(refused)

    def test_a_message_that_speaks_of_other_programs_is_one(
        self, memory: Path, tmp_path: Path
    ) -> None:
        printed = {**NOTED, "content": 'It has a "sessionId" and a "mapping".'}

        assert perdure("commit", write(tmp_path, "a.jsonl", printed)).exit_code == 0

    @pytest.mark.parametrize("text", ["", "\n \n", "[]", "\ufeff"])
    def test_no_messages_are_no_session(self, memory: Path, tmp_path: Path, text: str) -> None:
        path = tmp_path / "a.jsonl"
        path.write_text(text)

        assert "there are no messages" in str(refusal("commit", str(path)))

    @pytest.mark.parametrize(
        "text", ["[", '[{"role": "user", "content": "x"}', "[1] 2", "[" * 9999]
    )
    def test_a_list_must_be_whole(self, memory: Path, tmp_path: Path, text: str) -> None:
        path = tmp_path / "a.json"
        path.write_text(text)

        refused = refusal("commit", str(path))

        assert isinstance(refused, UnreadableSourceError)
        assert "is not a list of messages" in str(refused)

    @pytest.mark.parametrize("data", [b"\xff\xfe\x00{\n\x00", b"[\n\xff]", b"\x00\x01\x02"])
    def test_bytes_that_are_no_text_are_refused(
        self, memory: Path, tmp_path: Path, data: bytes
    ) -> None:
        path = tmp_path / "a.jsonl"
        path.write_bytes(data)

        done = perdure("commit", str(path))

        assert isinstance(done.exception, InvalidValueError)
        assert done.exit_code == 1

    def test_folders_and_files_that_are_not_there_are_refused(
        self, memory: Path, tmp_path: Path
    ) -> None:
        assert isinstance(refusal("commit", str(tmp_path)), PathIsDirectoryError)
        assert isinstance(refusal("commit", str(tmp_path / "none")), AbsentError)

    def test_what_is_too_much_is_refused(
        self, memory: Path, march: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("perdure.engine.conversation.MOST_BYTES", 10)

        assert "has more than 10 bytes" in str(refusal("commit", march))

    def test_a_message_may_be_very_long(self, memory: Path, tmp_path: Path) -> None:
        path = write(tmp_path, "a.jsonl", {**NOTED, "content": "so it goes " * 100_000})

        assert perdure("commit", path, "--no-extract").exit_code == 0

    def test_what_is_shown_does_nothing_to_a_terminal(self, memory: Path, tmp_path: Path) -> None:
        evil = {**BERLIN, "name": f"Ana {HOSTILE}", "content": f"I live in Ber{HOSTILE}lin."}
        path = write(tmp_path, f"{HOSTILE}.jsonl", evil, {**BERLIN, "content": HOSTILE})

        for words in (("--dry-run",), (), ("--dry-run", "--json")):
            done = perdure("commit", path, *words)
            assert done.exit_code == 0, done.output
            assert not set(done.output) & set(HOSTILE) - set("[2J]0;pwned")

    def test_half_a_character_is_a_fault(self, memory: Path, tmp_path: Path) -> None:
        path = write(tmp_path, "a.jsonl", '{"role": "user", "content": "\\ud83d"}')

        done = perdure("commit", path)

        assert done.exit_code == 1
        assert "line 1: the content of a message has half a character" in done.stderr


@pytest.mark.parametrize(
    ("path", "session"),
    [
        ("a/march.jsonl", "march"),
        ("march.json", "march"),
        ("Büro 2026.jsonl", "Büro 2026"),
        (".jsonl", ".jsonl"),
        ("a\nb.jsonl", "a-b-767f0dbe"),
        ("x" * 240, "x" * 60 + "-718df670"),
        ("\udcff.jsonl", "untitled-"),
    ],
)
def test_a_session_is_named_as_its_file_or_like_it(path: str, session: str) -> None:
    assert session_id_for(path).startswith(session)
    assert session_id_for(path) == session_id_for(f"elsewhere/{path}") or "/" in path


class TestStopping:
    def test_stopping_it_reports_that_finished_parts_are_stored(
        self, memory: Path, march: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stop(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Memory, "commit_session", stop)

        done = perdure("commit", march)

        assert done.exit_code == 130
        assert done.stderr.startswith(
            "stopped; finished parts are stored. Fix: run the same command"
        )
        assert "nothing was written" in perdure("commit", march, "--dry-run").stderr

    def test_it_goes_on_where_it_was_stopped(self, tmp_path: Path) -> None:
        """A process that gets SIGINT while it learns."""
        path = write(tmp_path, "many.jsonl", *[BERLIN, *[NOTED] * 199] * 5)
        with subprocess.Popen(
            [PERDURE, "commit", path], env=environment(tmp_path), stderr=subprocess.PIPE, text=True
        ) as process:
            sessions = tmp_path / ".perdure/memory"
            while not list(sessions.rglob("Sessions/*.md")):
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            _, seen = process.communicate(timeout=60)

        assert process.returncode in {0, 130}
        assert "Traceback" not in seen
        again = run(tmp_path, "commit", path)
        assert again.returncode == 0, again.stderr
        assert json.loads(run(tmp_path, "commit", path, "--json").stdout)["plans"] == []


class TestTerminal:
    def test_the_diff_has_colours_for_those_who_want_them(self, tmp_path: Path) -> None:
        path = write(tmp_path, "march.jsonl", BERLIN)

        _, seen = at_a_terminal(tmp_path, "commit", path, "--dry-run")
        _, plain = at_a_terminal(tmp_path, "commit", path, "--dry-run", NO_COLOR="1")

        assert "\x1b[32m+- Ana lives in Berlin.\x1b[0m" in seen
        assert "\x1b[" not in plain

    def test_who_waits_long_sees_how_far_it_is(self, tmp_path: Path) -> None:
        path = write(tmp_path, "long.jsonl", *[NOTED] * 250)

        _, seen = at_a_terminal(tmp_path, "commit", path)

        assert "learning" in seen
        assert "100%" in seen
        assert "learning" not in run(tmp_path, "commit", path, "--session", "x").stderr


def test_what_could_not_be_stored_is_reported_and_sets_the_exit_code(memory: Path) -> None:
    stdout_of("write", "profile", "Tall.")
    stdout_of("archive", "profile")

    done = perdure("commit", "-", "--session", "s", typed=json.dumps(BERLIN).encode())

    assert done.exit_code == 1
    assert "not stored: Ana lives in Berlin.: " in done.stderr
    assert done.stderr.endswith("solve the problems above, then commit with --again.\n")
    stdout_of("unarchive", "profile")
    assert "profile  Ana lives in Berlin.\n" in stdout_of(
        "commit", "-", "--session", "s", "--again", typed=json.dumps(BERLIN).encode()
    )


def test_a_session_of_another_user_needs_another_name(memory: Path) -> None:
    stdout_of("commit", "-", "--session", "s", "--user", "ben", typed=json.dumps(BERLIN).encode())

    error = refusal(
        "commit", "-", "--session", "s", "--user", "eve", typed=json.dumps(BERLIN).encode()
    )

    assert isinstance(error, AccessDeniedError)
    assert "name it with --session ID" in str(error)
