"""What agents were shown is logged without a word of it, and found again as of then."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import perdure
from perdure import LineState, Memory
from perdure.engine import emissions
from perdure.engine.emissions import (
    REASONS,
    EmissionRecord,
    EmittedLine,
    append_emission,
    key_of,
    read_emissions,
)
from perdure.engine.uses import emitted
from perdure.files import append_line, read_lines

RECORD = EmissionRecord("claude-code", "s1", "session-start", "the session starts", 12, 80)
RULE = "Never deploy on Fridays."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with perdure.open(home=tmp_path, project="harbour") as opened:
        yield opened


def show(memory: Memory, session: str = "s1", **changed: object) -> None:
    """Log the briefing as a hook does."""
    found = memory.briefing(budget_tokens=2_000)
    lines = (*found.items, *([found.end] if found.end else []))
    record = RECORD._replace(
        session=session,
        items=tuple(map(emitted, lines)),
        account="local",
        user=memory.caller.user_id,
        project=memory.project,
        position=memory.position,
        **changed,  # type: ignore[arg-type] # as the test says
    )
    append_emission(memory.home, record)


def texts(memory: Memory) -> list[str]:
    return [line.text for each in memory.shown() for line in each.lines]


class TestLog:
    def test_what_is_logged_is_read_again(self, tmp_path: Path) -> None:
        item = EmittedLine("ctx://local/users/ana/memories/pattern/x", 3, key_of(RULE))
        record = RECORD._replace(items=(item, item._replace(message=None)), position=7, time=5.25)
        append_emission(tmp_path, record)

        assert list(read_emissions(tmp_path)) == [record]

    def test_a_torn_line_and_a_foreign_one_are_passed_over(self, tmp_path: Path) -> None:
        append_emission(tmp_path, RECORD)
        log = tmp_path / "hooks" / "emitted"
        whole = log.read_bytes()
        others = (b"[]", b"{}", b'{"items": 3}', b"\xff\xfe", whole[: len(whole) // 2])
        log.write_bytes(b"\n".join((*others, whole)))

        assert [each.session for each in read_emissions(tmp_path)] == ["s1"]

    def test_the_words_of_a_reason_are_not_logged(self, tmp_path: Path) -> None:
        append_emission(tmp_path, RECORD._replace(reason="names kumquat"))
        append_emission(tmp_path, RECORD)

        assert [each.reason for each in read_emissions(tmp_path)] == ["names", RECORD.reason]
        assert RECORD.reason in REASONS
        assert b"kumquat" not in (tmp_path / "hooks" / "emitted").read_bytes()

    def test_it_is_bounded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(emissions, "MOST_BYTES", 2_000)
        for number in range(101):
            append_emission(tmp_path, RECORD._replace(session=str(number)))

        files = sorted((tmp_path / "hooks").iterdir())
        assert [each.name for each in files] == ["emitted", "emitted.1"]
        assert all(each.stat().st_size < 2_500 for each in files)
        assert [each.session for each in read_emissions(tmp_path)][-1] == "100"

    def test_nothing_is_raised_where_nothing_can_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "hooks").write_text("a file")
        append_emission(tmp_path, RECORD)

        assert list(read_emissions(tmp_path)) == []


class TestLines:
    def test_lines_of_many_processes_are_whole_and_in_one_place(self, tmp_path: Path) -> None:
        """Each file is renamed once when it is full, so that no full one is written over."""
        path = tmp_path / "deep" / "lines"
        script = (
            "import sys; from pathlib import Path; from perdure.files import append_line\n"
            "for n in range(150):"
            " append_line(Path(sys.argv[1]), f'{sys.argv[2]} {n} {\"x\" * 80}'.encode(), 40_000)"
        )
        words = [sys.executable, "-c", script, str(path)]
        started = [subprocess.Popen([*words, str(number)]) for number in range(4)]
        assert [each.wait() for each in started] == [0] * 4

        lines = [line.split() for line in read_lines(path)]
        assert all(len(line) == 3 and line[2] == b"x" * 80 for line in lines)
        assert len({(who, number) for who, number, _ in lines}) == len(lines) > 300

    def test_a_full_file_is_renamed_once(self, tmp_path: Path) -> None:
        path = tmp_path / "lines"
        for line in (b"first", b"second", b"third"):
            append_line(path, line, 5)

        assert read_lines(path) == [b"first", b"second", b"third"]
        assert path.with_name("lines.1").read_bytes() == b"first\nsecond\n"

    def test_a_link_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "lines").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(OSError, match="lines"):
            append_line(tmp_path / "lines", b"x", 10)

        assert not (tmp_path / "elsewhere").exists()


class TestEmissionReader:
    def test_the_words_are_those_of_then(self, memory: Memory) -> None:
        uri = memory.remember(RULE, kind="rule").uri
        show(memory)
        memory.write(uri, "- Deploy whenever you like.", replace=True)

        (emission,) = memory.shown()
        assert [(line.state, line.text) for line in emission.lines] == [(LineState.SHOWN, RULE)]
        assert emission.record.tokens == 12
        memory.delete(uri)
        assert texts(memory) == [RULE]

    def test_what_another_process_wrote_meanwhile_is_not_taken_for_it(self, memory: Memory) -> None:
        uri = memory.remember(RULE, kind="rule").uri
        items = tuple(map(emitted, memory.briefing().items))
        memory.write(uri, "- Deploy whenever you like.", replace=True)
        late = RECORD._replace(items=items, account="local", position=memory.position)
        append_emission(memory.home, late)

        assert texts(memory) == [RULE]

    def test_a_sentence_of_a_session_and_its_end_are_found(self, memory: Memory) -> None:
        asked = "Now rename the parser module to reader, and " + "all that imports it too " * 8
        talk = [{"role": "user", "content": f"Hello. {RULE}"}, {"role": "user", "content": asked}]
        memory.commit_session(talk, session_id="s", extract=False)
        show(memory)

        (emission,) = memory.shown()
        assert emission.lines[0].text == RULE
        assert emission.lines[-1].text in memory.briefing(budget_tokens=2_000).text
        assert {line.state for line in emission.lines} == {LineState.SHOWN}

    def test_what_was_forgotten_says_so_and_never_shows(self, memory: Memory) -> None:
        uri = memory.remember(RULE, kind="rule").uri
        memory.remember("Always run the linter before you push.", kind="rule")
        show(memory)
        memory.forget(uri)

        (emission,) = memory.shown()
        assert {line.uri: line.state for line in emission.lines}[uri] is LineState.FORGOTTEN
        assert sorted(line.text for line in emission.lines) == [
            "",
            "Always run the linter before you push.",
        ]

    def test_a_position_that_is_not_there_shows_nothing(self, memory: Memory) -> None:
        memory.remember(RULE, kind="rule")
        show(memory)
        item = next(read_emissions(memory.home)).items[0]
        append_emission(
            memory.home, RECORD._replace(items=(item,), position=10**9, account="local")
        )

        (_, future) = memory.shown()
        assert [line.state for line in future.lines] == [LineState.GONE]

    def test_it_is_chosen_by_session_time_and_project(self, memory: Memory) -> None:
        show(memory, "s1", time=1_000.0)
        show(memory, "s2", time=2_000.0)
        other = memory.for_caller(project="other")
        show(other, "s3", time=3_000.0)

        def sessions(**chosen: object) -> list[str]:
            return [each.record.session for each in memory.shown(**chosen)]  # type: ignore[arg-type]

        assert sessions() == ["s1", "s2", "s3"]
        assert sessions(last=True) == ["s3"]
        assert sessions(session="s2") == sessions(session="claude-code-s2") == ["s2"]
        assert sessions(since="1970-01-01T00:30:00Z") == ["s2", "s3"]
        assert sessions(project="harbour") == ["s1", "s2"]

    def test_a_user_sees_nothing_of_another(self, memory: Memory) -> None:
        memory.remember(RULE, kind="rule")
        show(memory)

        assert memory.for_caller(user="bob").shown() == ()
        own = memory.for_caller(user=memory.caller.user_id)
        assert (own.caller.governs, len(own.shown())) == (False, 1)


def test_the_log_has_ids_and_never_words(memory: Memory) -> None:
    memory.remember("The kumquat jam is under the veranda.", kind="fact")
    show(memory)

    data = json.loads((memory.home / "hooks" / "emitted").read_bytes())
    ((uri, message, key),) = data.pop("items")
    assert (message, len(key)) == (None, 16)
    assert "veranda" not in json.dumps(data)
    assert uri.startswith("ctx://local/users/")
