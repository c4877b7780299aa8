"""What an index is given of nodes: made of what they say, and of nothing else."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perdure.engine import upkeep
from perdure.errors import InvalidValueError
from perdure.index import records
from perdure.index.records import CHARACTERS, embedding_text, is_whole, records_of, whole_id
from perdure.model import ContextNode, IndexRecord, Level
from perdure.model.node import record_id
from perdure.model.speech import SpeechKind, speech_of
from perdure.model.transcript import Message, parse, pieces, render
from perdure.model.values import JSON, ROLES
from perdure.testing.suite import examples
from tests.engine.remembering import BOB, of, opened, save_all

CID = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
PLACE = "ctx://local/users/ana/memories/preference/editor-theme"
SESSION = "ctx://local/sessions/s1/messages"
SAID = datetime(2026, 3, 2, 10, tzinfo=UTC)
WRITTEN = datetime(2026, 4, 1, tzinfo=UTC)


def note(content: str, uri: str = PLACE, **metadata: JSON) -> ContextNode:
    return ContextNode(
        uri=uri, content=content, metadata=metadata, created_at=WRITTEN, updated_at=WRITTEN
    )


def session(*messages: Message, content: str = "") -> ContextNode:
    text = content or render("Session s1", pieces(messages))
    return ContextNode(uri=SESSION, content=text, owner_space="user:ana", updated_at=WRITTEN)


def passages_of(node: ContextNode) -> list[IndexRecord]:
    return [each for each in records_of(node, CID) if each.level is Level.CONTENT]


def payloads(node: ContextNode, name: str) -> list[JSON]:
    return [each.payload.get(name) for each in passages_of(node)]


TALK = (
    Message("user", "I adopted a cat.", "Ana", SAID),
    Message("assistant", "How lovely! How old is she?", time=SAID + timedelta(minutes=1)),
    Message("user", "Three years.", "Ana", SAID + timedelta(minutes=2)),
    Message("user", "word " * 400, "Ana"),
    Message("user", "The end.", "Bo"),
)


# ---------------------------------------------------------------- notes
class TestNotes:
    def test_a_note_has_its_abstract_its_overview_and_its_passages(self) -> None:
        node = ContextNode(
            uri=PLACE, content="# Theme\n\nLight.\n\n# Font\n\nLarge.\n", abstract="A", overview="O"
        )

        found = {record.id: (record.level, record.text) for record in records_of(node, CID)}

        assert found == {
            f"{PLACE}#0.0": (Level.ABSTRACT, "A"),
            f"{PLACE}#1.0": (Level.OVERVIEW, "O"),
            f"{PLACE}#1.1": (Level.OVERVIEW, "Light.\nLarge."),
            f"{PLACE}#2.0": (Level.CONTENT, "Light."),
            f"{PLACE}#2.1": (Level.CONTENT, "Large."),
        }

    def test_ids_tell_place_level_and_passage(self) -> None:
        ids = {record_id(PLACE, level, number) for level in Level for number in range(3)}

        assert len(ids) == 9
        assert whole_id(PLACE) in ids

    def test_one_passage_is_no_whole_beside_itself(self) -> None:
        assert not any(map(is_whole, records_of(note("Only this."), CID)))

    def test_the_whole_has_no_context_and_is_known_for_one(self) -> None:
        (whole,) = filter(is_whole, records_of(note("# A\n\nOne.\n\n# B\n\nTwo.\n"), CID))

        assert (whole.level, whole.text, whole.context) == (Level.OVERVIEW, "One.\nTwo.", "")

    @pytest.mark.parametrize("content", ["", " ", "\n\n", "# Only a heading\n", "\t\n# A\n## B\n"])
    def test_what_has_no_words_has_no_record(self, content: str) -> None:
        assert records_of(note(content), CID) == []

    def test_a_passage_knows_its_node_version_and_lines(self) -> None:
        first, second = passages_of(note("# A\n\nOne.\n\n# B\n\nTwo\nlines.\n"))

        assert (first.payload["cid"], first.payload["version"]) == (CID, 1)
        assert (first.payload["lines"], second.payload["lines"]) == ((3, 3), (7, 8))
        assert first.payload["updated_at"] == WRITTEN.isoformat()
        assert second.filters["parent_uri"] == PLACE

    def test_its_neighbours_are_the_passages_beside_it(self) -> None:
        node = note("".join(f"# H{number}\n\nText {number}.\n\n" for number in range(4)))

        assert payloads(node, "near") == [(-1, 1, 2), (0, 2, 3), (1, 3, -1), (2, -1, -1)]
        assert payloads(node, "passage") == [0, 1, 2, 3]

    def test_its_context_is_what_it_is_called_and_the_headings_above(self) -> None:
        (passage,) = passages_of(note("# Colours\n\n## Night\n\nSolarized.\n"))

        assert passage.context == "editor theme · Colours · Night"

    def test_a_name_that_the_content_has_is_not_repeated(self) -> None:
        (passage,) = passages_of(note("The theme of the editor is light."))

        assert passage.context == ""

    def test_it_is_filed_under_all_that_a_search_may_ask_for(self) -> None:
        (record,) = passages_of(note("Light."))

        assert dict(record.filters) == {
            "account_id": "local",
            "owner_space": "user:ana",
            "context_type": "MEMORY",
            "category": "preference",
            "session_id": "",
            "project": "",
            "parent_uri": PLACE,
        }

    def test_an_abstract_is_filed_below_its_folder(self) -> None:
        node = ContextNode(uri=PLACE, content="", abstract="A")

        (record,) = records_of(node, CID)

        assert record.filters["parent_uri"] == PLACE.rpartition("/")[0]

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ("2024-01-01", "2024-01-01T00:00:00+00:00"),
            ("2024-01-01T10:00:00+02:00", "2024-01-01T08:00:00+00:00"),
            ("2024-01-01T10:00:00", "2024-01-01T10:00:00+00:00"),
        ],
    )
    def test_when_it_holds_is_in_utc(self, given: str, expected: str) -> None:
        (record,) = passages_of(note("Light.", valid_from=given, valid_until=given))

        assert (record.filters["valid_from"], record.filters["valid_until"]) == (expected, expected)

    @pytest.mark.parametrize("given", ["soon", "", 2024, None, "0001-01-01T00:00:00+14:00", ["x"]])
    def test_what_is_no_time_holds_always(self, given: JSON) -> None:
        (record,) = passages_of(note("Light.", valid_from=given, date=given))

        assert "valid_from" not in record.filters
        assert record.payload["date"] == WRITTEN.isoformat()

    def test_a_date_that_it_is_about_is_its_date(self) -> None:
        (record,) = passages_of(note("Light.", date="2020-02-02"))

        assert record.payload["date"] == "2020-02-02T00:00:00+00:00"
        assert "valid_from" not in record.filters


# ---------------------------------------------------------------- sessions
class TestSessions:
    def test_each_message_has_its_speaker_role_time_and_index(self) -> None:
        node = session(*TALK)

        assert payloads(node, "speaker")[:3] == ["Ana", "assistant", "Ana"]
        assert payloads(node, "role")[:3] == ["user", "assistant", "user"]
        assert payloads(node, "message") == [0, 1, 2, 3, 3, 3, 4]
        assert payloads(node, "date")[0] == SAID.isoformat()
        assert payloads(node, "date")[-1] == WRITTEN.isoformat()
        assert set(payloads(node, "session_id")) == {"s1"}

    def test_everybody_who_speaks_is_of_the_party(self) -> None:
        assert set(payloads(session(*TALK), "party")) == {("Ana", "assistant", "Bo")}

    def test_only_what_ends_with_a_question_asks(self) -> None:
        assert payloads(session(*TALK), "asks") == [False, True] + [False] * 5
        long_ago = Message("user", "Who? " + "I do not know. " * 6)
        assert payloads(session(long_ago), "asks") == [False]

    def test_neighbours_are_the_first_passages_of_messages(self) -> None:
        assert payloads(session(*TALK), "near") == [
            (-1, 1, 2),
            (0, 2, 3),
            (1, 3, 6),
            (2, 6, -1),
            (2, 6, -1),
            (2, 6, -1),
            (3, -1, -1),
        ]

    def test_the_length_is_that_of_the_whole_message(self) -> None:
        assert payloads(session(*TALK), "length") == [4, 6, 2, 400, 400, 400, 2]

    def test_a_message_holds_from_its_time_on(self) -> None:
        first, *_, last = passages_of(session(*TALK))

        assert first.filters["valid_from"] == SAID.isoformat()
        assert "valid_from" not in last.filters
        assert {each.filters["session_id"] for each in (first, last)} == {"s1"}

    def test_the_whole_names_the_speakers(self) -> None:
        (whole,) = filter(is_whole, records_of(session(*TALK[:3]), CID))

        assert whole.text.split("\n") == [
            "Ana: I adopted a cat.",
            "assistant: How lovely! How old is she?",
            "Ana: Three years.",
        ]

    def test_a_message_without_words_has_no_record(self) -> None:
        node = session(Message("user", "One."), Message("tool", " \n "), Message("user", "Two."))

        assert [each.text for each in passages_of(node)] == ["One.", "Two."]
        assert payloads(node, "message") == [0, 2]
        assert records_of(session(Message("user", "")), CID) == []

    def test_an_embedded_text_has_its_speaker_or_headings(self) -> None:
        (given,) = passages_of(session(TALK[0]))
        (plain,) = passages_of(note("Light."))
        (headed,) = passages_of(note("# Colours\n\n## Night\n\nDark.\n"))

        assert embedding_text(given) == "Ana: I adopted a cat."
        assert embedding_text(plain) == "Light."
        assert embedding_text(headed) == "Colours · Night: Dark."

    @pytest.mark.parametrize(
        "heading",
        [
            f"## {'A' * 500} (user) ^m0",
            "## Ana (user), 0001-01-01T00:00:00+14:00 ^m0",
            "## Ana (user), 2026-99-99T00:00:00 ^m0",
            "## Ana (user), 9999-12-31T23:59:59-12:00 ^m0",
            "##   (user) ^m999999999",
            "## user ^m0.999999999",
        ],
    )
    def test_no_heading_is_too_odd(self, heading: str) -> None:
        node = session(content=f"## Bo (user) ^m1\n\nFirst.\n\n{heading}\n\nSecond.\n")

        given = "\n".join(each.text for each in passages_of(node))

        assert "First." in given
        assert "Second." in given


# ---------------------------------------------------------------- any node
LINES = st.sampled_from(
    [
        *("# A", "## B (user) ^m3", "## Ana (user) ^m0", "## tool ^m1.2", "\\## user ^m0", "```"),
        *("", "  ", "text", "- item", "It ends. " * 40, "x" * 2_000, "wörter ☂", "a\rb", "?"),
    ]
)
CONTENTS = st.lists(st.one_of(LINES, st.text(max_size=60)), max_size=15).map("\n".join)
TIMES = st.none() | st.datetimes(timezones=st.just(UTC))
MESSAGES = st.lists(
    st.builds(Message, st.sampled_from(ROLES), CONTENTS, st.sampled_from(["", "Ana", "Bo"]), TIMES),
    max_size=5,
)
METADATA = st.dictionaries(
    st.sampled_from(["valid_from", "valid_until", "date", "title"]),
    st.one_of(st.none(), st.integers(0, 9), st.text(max_size=30), st.just("2024-01-01")),
)
NODES = st.one_of(
    st.builds(
        lambda content, metadata: ContextNode(uri=PLACE, content=content, metadata=metadata),
        CONTENTS,
        METADATA,
    ),
    CONTENTS.map(lambda content: session(content=content or " ")),
    MESSAGES.map(lambda messages: session(*messages)),
)


def unescaped(text: str) -> str:
    """Return a text without the backslashes before what looks like the heading of a message."""
    return re.sub(r"(?m)^\\+(?=## )", "", text)


def lines_of(record: IndexRecord, node: ContextNode) -> str:
    first, last = cast("tuple[int, int]", record.payload["lines"])
    return "\n".join(node.content.split("\n")[first - 1 : last])


@settings(max_examples=examples(150), deadline=None)
@given(NODES)
@example(session(Message("user", "\n\n## Ana (user) ^m0\n\nx\n\n")))
@example(session(Message("user", "\\## Ana (user) ^m0"), Message("user", "a\n\n\n")))
def test_of_every_node_the_lines_of_a_passage_lead_to_what_it_says(node: ContextNode) -> None:
    for record in passages_of(node):
        assert unescaped(record.text) in unescaped(lines_of(record, node))
        assert 0 < len(record.text) <= CHARACTERS


@settings(max_examples=examples(100), deadline=None)
@given(NODES)
def test_of_every_node_the_records_are_sound_and_the_same_again(node: ContextNode) -> None:
    records = records_of(node, CID)

    assert records_of(node, CID) == records
    assert len({record.id for record in records}) == len(records)
    assert all(record.text.strip() and record.uri == node.uri for record in records)
    numbers = [record.payload["passage"] for record in passages_of(node)]
    assert numbers == list(range(len(numbers)))
    for record in passages_of(node):
        near = cast("tuple[int, ...]", record.payload["near"])
        assert all(-1 <= number < len(numbers) for number in near)
        assert cast("int", record.payload["length"]) >= 0


@settings(max_examples=examples(100), deadline=None)
@given(MESSAGES)
def test_of_every_session_each_message_with_words_is_found_under_its_index(
    messages: list[Message],
) -> None:
    node = session(*messages)
    indexes = {each.payload["message"] for each in passages_of(node) if "message" in each.payload}
    given = [each.message.content for each in parse(node.content)]

    assert given == [message.content for message in messages]
    kinds = [speech_of(each.role, each.content) for each in messages]
    assert indexes == {
        at
        for at, each in enumerate(kinds)
        if each.kind in {SpeechKind.USER, SpeechKind.AGENT, SpeechKind.SUMMARY}
        and each.text.strip()
    }


# ---------------------------------------------------------------- what can't be indexed
def test_a_node_that_can_not_be_indexed_does_not_stop_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One user's odd text must not take recall from all others of the account."""

    def refusing(node: ContextNode, cid: str, names: Sequence[str]) -> list[IndexRecord]:
        if "odd" in node.content:
            raise InvalidValueError("it can't be. Fix: none.")
        return records_of(node, cid, names)

    monkeypatch.setattr(records, "records_of", refusing)
    with opened(tmp_path) as context:
        of(context, BOB).save("An odd text.", category="event", slug="odd")
        save_all(of(context))

        assert of(context).recall("tabs").hits
        assert of(context).recall("tabs").index_lag == 0
        assert of(context, BOB).recall("odd").index_lag == 1
        assert (
            upkeep.verify_index(context.indexes.configured.follower, "local")
            .failed[0][0]
            .endswith("/odd")
        )
