"""Messages of a session are kept once, readable, and only ever added to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.app import Context, open_context
from perdure.engine.sessions import Sessions
from perdure.errors import AccessDeniedError, InvalidValueError, NodeExistsError
from perdure.model import RequestContext
from perdure.model.messages import SkippedContent
from perdure.model.transcript import parse

ANA = RequestContext("local", "ana")
HELLO = {
    "role": "user",
    "content": "I moved to Lisbon.",
    "name": "Ana",
    "time": "2026-03-02T10:00Z",
}
ANSWER = {"role": "assistant", "content": "How is it?"}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Context]:
    with open_context({"HOME": str(tmp_path), "USER": "ana"}) as opened:
        yield opened


@pytest.fixture
def sessions(memory: Context) -> Sessions:
    return Sessions(memory.nodes)


def test_messages_become_a_note_that_people_can_read(memory: Context, sessions: Sessions) -> None:
    done = sessions.archive([HELLO, ANSWER], "s1", ANA)

    assert done.uris == ("ctx://local/sessions/s1/messages",)
    assert (len(done.messages), done.added) == (2, 2)
    node = memory.nodes.read_node(done.uris[0], ANA)
    assert "## Ana (user), 2026-03-02T10:00:00+00:00 ^m0\n\nI moved to Lisbon.\n" in node.content
    assert node.owner_space == "user:ana"
    assert node.abstract == "Ana, assistant, 2026-03-02: I moved to Lisbon."


def test_the_same_twice_is_there_once(memory: Context, sessions: Sessions) -> None:
    first = sessions.archive([HELLO, ANSWER], "s1", ANA)
    position = memory.recorded.history.position()

    again = sessions.archive([HELLO, ANSWER], "s1", ANA)
    fewer = sessions.archive([HELLO], "s1", ANA)

    assert (again.uris, again.added, fewer.added, len(fewer.messages)) == (first.uris, 0, 0, 2)
    assert memory.recorded.history.position() == position


def test_new_messages_are_added(memory: Context, sessions: Sessions) -> None:
    sessions.archive([HELLO], "s1", ANA)

    done = sessions.archive([HELLO, ANSWER], "s1", ANA)

    assert done.added == 1
    node = memory.nodes.read_node(done.uris[0], ANA)
    assert [each.message.content for each in parse(node.content)] == [
        "I moved to Lisbon.",
        "How is it?",
    ]
    assert node.version == 2


def test_other_messages_under_the_same_id_are_refused(sessions: Sessions) -> None:
    sessions.archive([HELLO], "s1", ANA)

    with pytest.raises(NodeExistsError, match="other messages"):
        sessions.archive([ANSWER], "s1", ANA)


def test_a_long_session_is_stored_in_several_nodes(memory: Context, sessions: Sessions) -> None:
    messages = [{"role": "tool", "content": f"{number} " + "x" * 30_000} for number in range(5)]
    messages.append({"role": "tool", "content": "y" * 150_000})

    done = sessions.archive(messages, "s1", ANA)
    more = sessions.archive([*messages, HELLO], "s1", ANA)

    assert len(done.uris) == 9
    assert more.added == 1
    found = [p for uri in more.uris for p in parse(memory.nodes.read_node(uri, ANA).content)]
    assert [each.index for each in found] == [0, 1, 2, 3, 4, 5, 5, 5, 5, 6]
    assert "".join(each.message.content for each in found if each.index == 5) == "y" * 150_000


def test_nobody_else_adds_to_a_session(sessions: Sessions) -> None:
    sessions.archive([HELLO], "s1", ANA)

    with pytest.raises(AccessDeniedError):
        sessions.archive([HELLO, ANSWER], "s1", RequestContext("local", "bob"))


def test_what_is_no_message_changes_nothing(memory: Context, sessions: Sessions) -> None:
    with pytest.raises(InvalidValueError):
        sessions.archive([HELLO, "Hi"], "s1", ANA)

    assert memory.nodes.list_children("ctx://local/sessions", ANA) == []


def test_what_a_message_does_not_say_is_reported(sessions: Sessions) -> None:
    done = sessions.archive([HELLO, {"role": "user"}], "s1", ANA)

    assert len(done.messages) == 1
    assert done.left_out == (SkippedContent(1, "the message", "it is empty"),)


def test_no_messages_are_no_session(memory: Context, sessions: Sessions) -> None:
    assert sessions.archive([], "s1", ANA).uris == ()
    assert memory.nodes.list_children("ctx://local/sessions", ANA) == []
