"""What is shown often and never used leaves the briefing, stays findable, and comes back."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import perdure
from perdure import Memory
from perdure.engine import uses
from perdure.engine.shown_lines import LineState, ShownLine, used_lines
from perdure.engine.uses import LEAST_SESSIONS, count_uses, emitted, used_in

RULE = "Never deploy the harbour service on Fridays."


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    monkeypatch.setattr(uses, "GRACE", timedelta(0))
    with perdure.open(home=tmp_path, user="ana", project="harbour") as opened:
        opened.remember(RULE, kind="rule")
        yield opened


def show(memory: Memory, sessions: range, *, used: bool = False) -> None:
    items = list(map(emitted, memory.briefing().items))
    for number in sessions:
        count_uses(memory.home, f"s{number}", items, items if used else ())


def test_a_line_that_no_session_used_leaves_the_briefing_and_is_found(memory: Memory) -> None:
    show(memory, range(LEAST_SESSIONS - 1))
    assert RULE in memory.briefing().text

    show(memory, range(LEAST_SESSIONS))

    assert memory.briefing().text == ""
    (hit,) = memory.recall("deploy on fridays").hits
    assert RULE in hit.snippet
    assert memory.why(hit.uri).unused_sessions == LEAST_SESSIONS


def test_it_comes_back_when_it_is_used(memory: Memory) -> None:
    item = emitted(memory.briefing().items[0])
    show(memory, range(LEAST_SESSIONS))
    count_uses(memory.home, "s0", [item], [item])

    assert RULE in memory.briefing().text
    assert memory.why(item.uri).unused_sessions == 0


def test_the_same_session_counts_once_however_often_it_is_archived(memory: Memory) -> None:
    for _ in range(LEAST_SESSIONS):
        show(memory, range(1))
    assert RULE in memory.briefing().text

    show(memory, range(1), used=True)
    show(memory, range(1))
    assert used_in(memory.home, "s0") == 1


def test_what_is_pinned_or_recent_stays(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    show(memory, range(LEAST_SESSIONS))
    monkeypatch.setattr(uses, "GRACE", timedelta(days=30))
    assert RULE in memory.briefing().text

    monkeypatch.setattr(uses, "GRACE", timedelta(0))
    (hit,) = memory.recall("deploy on fridays").hits
    memory.write(hit.uri, metadata={"pinned": True}, replace=True)
    memory.settle()
    assert RULE in memory.briefing().text


def test_other_words_of_the_same_memory_are_not_left_out(memory: Memory) -> None:
    (item,) = memory.briefing().items
    show(memory, range(LEAST_SESSIONS))
    memory.write(item.uri, "- Never deploy the harbour service at night.", replace=True)
    memory.settle()

    assert "at night" in memory.briefing().text


def test_counts_that_are_lost_or_damaged_leave_nothing_out(memory: Memory) -> None:
    show(memory, range(LEAST_SESSIONS))
    (memory.home / "hooks" / "uses.sqlite").write_bytes(b"not a database" * 100)

    assert RULE in memory.briefing().text


def test_counts_have_no_words(memory: Memory) -> None:
    show(memory, range(3))

    for path in (memory.home / "hooks").iterdir():
        assert b"harbour" not in path.read_bytes().lower()


LINE = ShownLine("ctx://local/users/ana/memories/pattern/x", None, "k", LineState.SHOWN, RULE)
COMMAND = ShownLine(
    LINE.uri, None, "c", LineState.SHOWN, "Tests run with `make check-all` from the top."
)


@pytest.mark.parametrize(
    ("words", "used"),
    [
        (f"As {LINE.id} says, I will wait.", True),
        ("I won't deploy the harbour service today: it is Friday.", True),
        ("Deploying the harbour.", False),
        ("The service is up.\n\nFridays are busy in the harbour.", False),
        ("", False),
    ],
)
def test_a_line_is_used_if_its_id_or_most_of_its_words_come_back(words: str, *, used: bool) -> None:
    assert list(used_lines([LINE], words)) == ([LINE] if used else [])


def test_a_command_is_used_if_it_is_run_and_not_if_it_is_mentioned() -> None:
    run = '[called Bash: {"command": "cd app && make check-all -j2"}]'

    assert list(used_lines([COMMAND], run)) == [COMMAND]
    assert list(used_lines([COMMAND], "There is make check-all.")) == []
