"""A conversation is written as Markdown and read back, whatever was said in it."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import InvalidValueError
from perdure.model.transcript import PIECE_CHARACTERS, Message, parse, pieces, render
from perdure.model.values import ROLES

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
TRAPS = st.sampled_from(
    [
        "## Ana (user) ^m1",
        "\\## x ^m0",
        "## user ^m0",
        "## user ^m0.1",
        "",
        "\n",
        "# Title",
        "```",
        "\r",
    ]
)
TEXTS = st.lists(st.one_of(TRAPS, st.text()), max_size=4).map("\n".join)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(ROLES),
    content=TEXTS,
    name=st.one_of(st.text(max_size=30), st.sampled_from(["Ana (user)", "user", "a, b ^m1"])),
    time=st.none() | st.datetimes(timezones=st.just(UTC)),
)


@given(st.lists(MESSAGES, max_size=6))
def test_messages_are_parsed_back(messages: list[Message]) -> None:
    found = parse(render("Session", pieces(messages)))

    assert [(said.index, said.piece) for said in found] == [(n, 0) for n in range(len(messages))]
    assert [said.message for said in found] == messages


@given(st.lists(MESSAGES, max_size=4))
def test_a_line_number_leads_to_its_message(messages: list[Message]) -> None:
    text = render("Session", pieces(messages))

    for said in parse(text):
        line = text.split("\n")[said.first_line - 1]
        assert line in {
            said.message.content.split("\n")[0],
            "\\" + said.message.content.split("\n")[0],
        }


def test_it_reads_well() -> None:
    said = [
        Message("user", "I moved to Lisbon.", "Ana", NOON),
        Message("assistant", "How is it?"),
    ]

    assert render("Session s1", pieces(said)) == (
        "# Session s1\n"
        "\n## Ana (user), 2026-03-02T12:00:00+00:00 ^m0\n\nI moved to Lisbon.\n"
        "\n## assistant ^m1\n\nHow is it?\n"
    )


def test_a_long_message_goes_on_in_another_piece() -> None:
    content = "line\n" * 20_000

    found = list(pieces([Message("tool", content)]))

    assert len(found) == 3
    assert "".join(message.content for _, _, message in found) == content
    assert all(len(message.content) <= PIECE_CHARACTERS for _, _, message in found)
    assert [piece for _, piece, _ in found] == [0, 1, 2]
    assert all(message.content.endswith("\n") for _, _, message in found)


def test_one_line_without_an_end_is_cut_all_the_same() -> None:
    content = "x" * (PIECE_CHARACTERS * 2 + 1)

    assert [len(m.content) for _, _, m in pieces([Message("user", content)])] == [
        PIECE_CHARACTERS,
        PIECE_CHARACTERS,
        1,
    ]


def test_what_stands_above_the_first_message_is_no_message() -> None:
    assert parse("# Title\n\nA note by hand.\n") == []


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"role": "user"},
        {"role": "king", "content": "x"},
        {"role": "user", "content": None},
        {"role": "user", "content": "x", "time": "noon"},
        {"role": "user", "content": "x", "mood": "good"},
        {"role": "user", "content": "\ud800"},
        {"role": "user", "content": "x", "name": 3},
        "hello",
    ],
)
def test_what_is_no_message_is_refused(said: dict[str, object]) -> None:
    with pytest.raises(InvalidValueError, match="Fix: "):
        Message.from_mapping(said)


def test_a_message_is_read_as_agents_hand_it_over() -> None:
    said = {"role": "user", "content": "Hi", "name": "Ana", "time": "2026-03-02T14:00:00+02:00"}

    message = Message.from_mapping(said)

    assert message == Message("user", "Hi", "Ana", NOON)
    assert message.time is not None
    assert message.time.utcoffset() == timedelta(0)
    assert Message.from_mapping({"role": "user", "content": ""}).speaker == "user"
    away = datetime(2026, 3, 2, 14, tzinfo=timezone(timedelta(hours=2)))
    assert Message.from_mapping({**said, "time": away}) == message
