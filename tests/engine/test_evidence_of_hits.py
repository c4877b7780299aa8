"""A hit names the messages that it rests on, and what says the same is shown once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import perdure
from perdure import Hit, Memory
from perdure.engine.recall.answer import _distinct

RULE = "Never paint the harbour wall red."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with perdure.open(home=tmp_path / "home") as opened:
        yield opened


def commit(memory: Memory, *texts: str) -> None:
    messages = [{"role": "user", "content": text} for text in texts]
    assert memory.commit_session(messages, session_id="s").plans


def test_a_statement_rests_on_its_message(memory: Memory) -> None:
    commit(memory, "Look at the tide tables.", RULE)

    stated = [hit for hit in memory.recall("harbour wall").hits if not hit.session_id]

    assert [hit.evidence for hit in stated] == [(("s", 1),)]


def test_a_message_rests_on_itself(memory: Memory) -> None:
    commit(memory, "Look at the tide tables.", RULE)

    (hit,) = memory.recall("tide tables").hits[:1]

    assert hit.evidence == (("s", 0),)


def test_a_text_that_was_written_rests_on_no_message(memory: Memory) -> None:
    memory.save("The harbour is old.", category="note", slug="old")

    assert [hit.evidence for hit in memory.recall("harbour").hits] == [()]


def hit(text: str, session: str = "") -> Hit:
    return Hit(
        uri=f"ctx://local/{session}",
        cid="",
        title="",
        date=None,
        snippet=text,
        score=1.0,
        session_id=session,
        evidence=(("s", 1),),
    )


def test_a_message_that_only_repeats_a_statement_before_it_is_left_out() -> None:
    statement, message = hit(f"- {RULE}\n"), hit(RULE.upper(), "s")
    longer = hit(f"{RULE} And look at the tide.", "s")

    assert list(_distinct([statement, message])) == [statement]
    assert list(_distinct([statement, longer])) == [statement, longer]
    assert list(_distinct([message, statement])) == [message, statement]


def test_a_message_that_says_more_than_its_statement_stays(memory: Memory) -> None:
    more = "The tide was high when we came, so look at the tables again before noon."
    commit(memory, f"{RULE} {more}")

    hits = memory.recall("harbour wall red").hits

    assert any(hit.session_id and more in hit.snippet for hit in hits)
    assert any(not hit.session_id for hit in hits)
