"""Transcripts are read on from where the last hook stopped; what is lost is read again."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.agents import capture
from perdure.agents.capture import capture_session
from perdure.agents.hook_log import hooks_folder
from perdure.agents.pending_sessions import PendingSession
from perdure.app import Context, open_context
from perdure.engine.sessions import Sessions
from perdure.errors import ForgottenError
from perdure.model import Uri
from perdure.model.transcript import HIDDEN
from perdure.testing.suite import examples
from tests.harness.conftest import git
from tests.surfaces.hooks.calling import (
    SESSION,
    call,
    ending,
    environment,
    line,
    log,
    start,
    waiting,
)
from tests.transfer.samples import code_line, codex_message, codex_meta, result, used

Lines = Sequence[dict[str, Any]]


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with open_context(environment(tmp_path)) as opened:
        yield opened


def talk(count: int, first: int = 0) -> list[dict[str, Any]]:
    kinds = ("user", "assistant")
    return [
        line(f"u{n}", f"u{n - 1}" if n else None, kinds[n % 2], f"Look at item {n}.", SESSION)
        for n in range(first, count)
    ]


def write(path: Path, lines: Lines, mode: str = "w") -> Path:
    with path.open(mode) as file:
        file.write("".join(f"{json.dumps(each)}\n" for each in lines))
    return path


def hook(context: Context, path: Path, agent: str = "claude-code") -> None:
    capture_session(context, PendingSession(agent, path.stem[-36:], str(path)))


def payload(context: Context, name: str = f"claude-code-{SESSION}") -> list[str]:
    ctx = context.memory.caller
    place = Uri(ctx.account_id, ("sessions", name))
    return [each.content for each in Sessions(context.nodes).messages(place, ctx)]


def names(context: Context) -> list[str]:
    return sorted(each.id for each in context.memory.sessions())


def items(count: int) -> list[str]:
    return [f"Look at item {n}." for n in range(count)]


class TestReadingOn:
    def test_only_what_is_new_is_read(
        self, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write(tmp_path / f"{SESSION}.jsonl", talk(40))
        hook(context, path)
        monkeypatch.setattr(capture, "_put", None)  # reading all of it would call that
        monkeypatch.setattr(Sessions, "messages", None)  # and this

        for count in range(41, 45):
            write(path, talk(count, count - 1), "a")
            hook(context, path)
        monkeypatch.undo()

        assert payload(context) == items(44)

    def test_nothing_new_changes_nothing(self, context: Context, tmp_path: Path) -> None:
        path = write(tmp_path / f"{SESSION}.jsonl", talk(3))
        hook(context, path)
        before = context.memory.history(f"sessions/claude-code-{SESSION}/messages")

        hook(context, path)

        assert context.memory.history(f"sessions/claude-code-{SESSION}/messages") == before

    @settings(deadline=None, max_examples=examples(10))
    @given(cuts=st.lists(st.floats(0, 1), max_size=5), lost=st.sets(st.integers(0, 5)))
    def test_it_is_the_same_however_it_was_cut(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        cuts: list[float],
        lost: set[int],
    ) -> None:
        """Hooks run at any byte of a growing file, and what they know may be lost."""
        home = tmp_path_factory.mktemp("home")
        lines = talk(12)
        lines[5:5] = [code_line("p", "u4", "system", "", sessionId=SESSION)]
        data = b"".join(json.dumps(each).encode() + b"\n" for each in lines)
        path = home / f"{SESSION}.jsonl"
        with open_context(environment(home)) as context:
            for number, share in enumerate([*sorted(cuts), 1.0]):
                path.write_bytes(data[: round(share * len(data))])
                hook(context, path)
                if number in lost:
                    shutil.rmtree(hooks_folder(context.config.home) / "read", ignore_errors=True)

            assert payload(context) == items(12)
            assert names(context) == [f"claude-code-{SESSION}"]

    def test_results_beside_each_other_are_read_on(self, context: Context, tmp_path: Path) -> None:
        path = tmp_path / "3f.jsonl"
        failed = [{**result("no", "a")[0], "is_error": True}]
        lines = [
            code_line("1", None, "user", "Go."),
            code_line("2", "1", "assistant", used("A", {}, "a")),
            code_line("3", "2", "assistant", used("B", {}, "b")),
            code_line("4", "2", "user", failed),
            code_line("5", "3", "user", result("from B", "b")),
            code_line("6", "5", "user", "Go on."),
        ]
        for at in range(len(lines)):
            write(path, lines[at : at + 1], "a")
            hook(context, path)

        assert payload(context, "claude-code-3f") == [
            *("Go.", "[called A]", "[called B]", "[failed] no", "Go on.")
        ]
        assert names(context) == ["claude-code-3f"]

    def test_lines_of_another_session_among_them_are_passed_over(
        self, context: Context, tmp_path: Path
    ) -> None:
        path = tmp_path / f"{SESSION}.jsonl"
        for at, each in enumerate(talk(6)):
            other = line(f"o{at}", f"o{at - 1}" if at else None, "user", "Another.", "other")
            write(path, [each, other], "a")
            hook(context, path)

        assert payload(context) == items(6)
        assert names(context) == [f"claude-code-{SESSION}"]

    def test_codex_is_read_on(self, context: Context, tmp_path: Path) -> None:
        path = tmp_path / "rollout-01-a.jsonl"
        waiting = PendingSession("codex", "01-a", str(path))
        for lines in ([codex_meta("01-a")], [codex_message("user", "One.")], []):
            write(path, lines, "a")
            capture_session(context, waiting)
        write(path, [codex_message("assistant", "Two.")], "a")
        capture_session(context, waiting)

        assert payload(context, "codex-01-a") == ["One.", "Two."]

    def test_a_long_session_goes_on_in_another_node(self, context: Context, tmp_path: Path) -> None:
        path = write(tmp_path / f"{SESSION}.jsonl", talk(2))
        hook(context, path)
        long = "word " * 7_000
        for at in range(2, 6):
            write(path, [line(f"u{at}", f"u{at - 1}", "user", f"{at} {long}", SESSION)], "a")
            hook(context, path)

        assert [each.split()[0] for each in payload(context)] == ["Look", "Look", *"2345"]
        whole = payload(context)
        shutil.rmtree(hooks_folder(context.config.home) / "read")
        hook(context, path)
        assert payload(context) == whole


class TestWhatIsLostOrWrong:
    @pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"offset": "1"}', b"\xff"])
    def test_a_reading_that_says_nothing_is_read_over(
        self, context: Context, tmp_path: Path, content: bytes
    ) -> None:
        path = write(tmp_path / f"{SESSION}.jsonl", talk(3))
        hook(context, path)
        (reading,) = (hooks_folder(context.config.home) / "read").iterdir()
        reading.write_bytes(content)

        write(path, talk(5, 3), "a")
        hook(context, path)

        assert payload(context) == items(5)

    def test_a_transcript_that_was_rewritten_is_read_again(
        self, context: Context, tmp_path: Path
    ) -> None:
        path = write(tmp_path / f"{SESSION}.jsonl", talk(3))
        hook(context, path)

        extra = {"type": "file-history-snapshot", "messageId": "x"}
        write(path, [extra, *talk(6)])
        hook(context, path)

        assert payload(context) == items(6)

    def test_a_session_that_others_continued_is_read_again(
        self, context: Context, tmp_path: Path
    ) -> None:
        path = write(tmp_path / f"{SESSION}.jsonl", talk(2))
        hook(context, path)
        later = [line("u2", "u1", "user", "Look at item 2.", SESSION)]
        both = [{"role": "user", "content": "Look at item 2.", "time": "2026-03-02T10:00:00Z"}]
        context.memory.append(f"claude-code-{SESSION}", both, extract=False)

        write(path, later, "a")
        hook(context, path)

        assert payload(context) == items(3)

    def test_who_goes_back_has_both_ways(self, context: Context, tmp_path: Path) -> None:
        path = write(tmp_path / f"{SESSION}.jsonl", talk(6))
        hook(context, path)
        write(path, [line("v", "u1", "user", "No, the other one.", SESSION)], "a")
        hook(context, path)
        write(path, [line("w", "v", "assistant", "This one.", SESSION)], "a")
        hook(context, path)

        assert payload(context) == items(6)
        other = f"claude-code-{SESSION}-2"
        (name,) = [each for each in names(context) if each != f"claude-code-{SESSION}"]
        assert name.startswith(other[:-2])
        assert payload(context, name) == [*items(2), "No, the other one.", "This one."]

    def test_lines_of_unknown_kinds_and_versions_are_passed_over(
        self, context: Context, tmp_path: Path
    ) -> None:
        odd: list[dict[str, Any]] = [
            {"type": "telemetry", "uuid": "t", "parentUuid": "u0", "sessionId": SESSION},
            {"type": "user"},
            {"v": 99},
        ]
        path = write(tmp_path / f"{SESSION}.jsonl", [*talk(1), *odd])
        hook(context, path)
        with path.open("ab") as file:
            file.write(b'\xff\xfe\n[1]\nnull\n{"type":\n')
        write(path, talk(3, 1), "a")
        hook(context, path)

        assert payload(context) == items(3)

    def test_an_unknown_agent_is_logged(self, context: Context, tmp_path: Path) -> None:
        path = write(tmp_path / f"{SESSION}.jsonl", talk(1))

        with pytest.raises(Exception, match="transcripts of 'acme' can't be read"):
            hook(context, path, "acme")

    def test_a_link_to_a_device_is_not_read(self, context: Context, tmp_path: Path) -> None:
        path = tmp_path / f"{SESSION}.jsonl"
        path.symlink_to("/dev/zero")

        with pytest.raises(Exception, match="not a regular file"):
            hook(context, path)
        assert log(tmp_path) == ""


def test_a_session_has_the_branch_and_the_commit_it_began_at(
    context: Context, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "repo")
    git(tmp_path / "repo", "commit", "-q", "--allow-empty", "-m", "begin")
    first = git(tmp_path / "repo", "rev-parse", "HEAD")
    lines = [{**each, "cwd": str(tmp_path / "repo")} for each in talk(4)]
    path = write(tmp_path / f"{SESSION}.jsonl", lines[:2])
    hook(context, path)
    git(tmp_path / "repo", "commit", "-q", "--allow-empty", "-m", "more")
    write(path, lines[2:], "a")
    hook(context, path)

    node = context.memory.read(f"sessions/claude-code-{SESSION}/messages")
    assert (node.metadata["branch"], node.metadata["commit"]) == ("main", first)
    assert node.project == f"git-{first[:12]}"


class TestKilled:
    @pytest.mark.parametrize(
        ("owner", "name"),
        [
            (capture.TranscriptPositions, "put"),
            (Sessions, "end"),
            (Sessions, "_write"),
            (capture.Transcript, "before"),
        ],
    )
    def test_a_hook_that_was_killed_loses_and_doubles_nothing(
        self,
        context: Context,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        owner: type,
        name: str,
    ) -> None:
        path = write(tmp_path / f"{SESSION}.jsonl", talk(2))

        def die(*_given: object, **_more: object) -> None:
            raise KeyboardInterrupt

        for count in (2, 5, 8):
            with monkeypatch.context() as dying:
                dying.setattr(owner, name, die)
                with pytest.raises(KeyboardInterrupt):
                    hook(context, path)
            hook(context, path)
            assert payload(context) == items(count)
            write(path, talk(count + 3, count), "a")


def test_many_short_messages_are_stored(context: Context) -> None:
    """Their headings count, too: two thousand such once were too much for one node."""
    given = [
        {"role": "user", "content": f"{n}", "time": "2026-03-02T10:00:00Z"} for n in range(5_000)
    ]

    done = context.memory.commit_session(given, session_id="long", extract=False)

    assert (done.messages, len(done.uris)) == (5_000, 7)
    assert payload(context, "long") == [f"{n}" for n in range(5_000)]


def test_ten_sessions_of_five_projects_at_once_are_all_stored(tmp_path: Path) -> None:
    """Each ends twice, the second time with more messages."""
    paths = [tmp_path / f"{at:04d}.jsonl" for at in range(10)]
    for count in (2, 4):
        started = []
        for at, path in enumerate(paths):
            lines = [
                {**each, "sessionId": path.stem, "cwd": f"/srv/project-{at % 5}"}
                for each in talk(count, count - 2)
            ]
            write(path, lines, "a")
            words = ("stop", "--foreground", "--seconds", "120")
            started.append(start(tmp_path, *words, payload=json.dumps(ending(path)).encode()))
        for each in started:
            each.communicate(timeout=180)
    call(tmp_path, "stop", "--foreground", payload=ending(paths[0]))  # keeps what waits still

    assert (waiting(tmp_path), log(tmp_path)) == (0, "")
    with open_context(environment(tmp_path)) as context:
        for at, path in enumerate(paths):
            assert payload(context, f"claude-code-{path.stem}") == items(4)
            node = context.memory.read(f"sessions/claude-code-{path.stem}/messages")
            assert node.metadata["cwd"] == f"/srv/project-{at % 5}"


class TestForgetting:
    def test_a_session_with_something_hidden_goes_on_as_it_is(
        self, context: Context, tmp_path: Path
    ) -> None:
        path = write(tmp_path / f"{SESSION}.jsonl", talk(4))
        hook(context, path)
        memory = context.memory
        for number, erase in ((0, False), (2, True)):
            uri = memory.save(f"Look at item {number}.", category="note", slug=f"n{number}")
            memory.forget(uri, erase=erase)
            hook(context, path)
            hook(context, write(path, talk(6 + number, 4 + number), "a"))

        assert names(context) == [f"claude-code-{SESSION}"]
        stored = [HIDDEN if number in {0, 2} else each for number, each in enumerate(items(8))]
        assert payload(context) == stored

    @pytest.mark.parametrize("erase", [False, True])
    def test_a_forgotten_session_is_not_stored_again(
        self, context: Context, tmp_path: Path, *, erase: bool
    ) -> None:
        path = write(tmp_path / f"{SESSION}.jsonl", talk(4))
        hook(context, path)
        context.memory.forget(f"sessions/claude-code-{SESSION}", erase=erase)

        write(path, talk(6, 4), "a")
        with pytest.raises(ForgottenError):  # which ends its note
            hook(context, path)
        shutil.rmtree(hooks_folder(context.config.home) / "read")
        hook(context, path)

        assert names(context) == []
