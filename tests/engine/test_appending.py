"""A session grows by what is appended; a last answer is replaced; sessions are listed by title."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types import TextBlock, ToolUseBlock, Usage
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage

from perdure.app import Context, open_context
from perdure.engine.learn.merge import KnownMemory
from perdure.engine.memory import Memory
from perdure.engine.sessions import appended, recommitted
from perdure.errors import (
    AccessDeniedError,
    ConcurrentModificationError,
    InvalidValueError,
    NodeExistsError,
)
from perdure.model import ContextNode, RequestContext, Role, Uri
from perdure.model.transcript import Message, parse
from perdure.safety.validation import shared_prefix
from tests.support.validate.tokens import token

ANA = RequestContext("local", "ana")
BOB = RequestContext("local", "bob")
MESSAGES = "ctx://local/sessions/s1/messages"
PROFILE = "ctx://local/users/ana/memories/profile"

HELLO = {"role": "user", "content": "I live in Lisbon."}
ANSWER = {"role": "assistant", "content": "How is it?"}
OTHER = {"role": "assistant", "content": "A zebra crossing!"}
MORE = {"role": "user", "content": "Sunny."}
FINE = {"role": "assistant", "content": "Fine."}
CALL = {"role": "assistant", "tool_calls": [{"function": {"name": "weather", "arguments": "{}"}}]}
RESULT = {"role": "tool", "content": "Rain"}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Context]:
    with open_context({"HOME": str(tmp_path), "USER": "ana"}) as context:
        yield context


@pytest.fixture
def memory(opened: Context) -> Memory:
    return opened.memory.for_caller(ANA)


def contents(memory: Memory, session_id: str = "s1") -> list[str]:
    node = memory.read(f"ctx://local/sessions/{session_id}/messages")
    return [each.message.content for each in parse(node.content)]


def found(memory: Memory, query: str) -> list[str]:
    return [hit.snippet for hit in memory.recall(query).hits]


# ---------------------------------------------------------------- appending
def test_append_makes_a_session_and_learns_from_it(memory: Memory) -> None:
    done = memory.append("s1", [HELLO, ANSWER])

    assert (done.messages, done.added, done.created) == (2, 2, 1)
    assert memory.read(PROFILE).content == "- The user lives in Lisbon.\n"


def test_messages_and_what_is_learned_from_them_are_one_commit(
    opened: Context, memory: Memory
) -> None:
    store = opened.recorded.history.store
    memory.append("s1", [ANSWER])
    before = store.current().position

    memory.append("s1", [HELLO, FINE])

    assert memory.read(PROFILE).content == "- The user lives in Lisbon.\n"
    assert len({each.commit for each in store.log(after=before)}) == 1


def test_messages_are_archived_if_learned_nodes_can_not_be_written(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(*_: object) -> list[ContextNode]:
        return [ContextNode(uri=PROFILE, version=7)]

    monkeypatch.setattr(KnownMemory, "planned", taken)

    with pytest.raises(ConcurrentModificationError, match="The messages are archived"):
        memory.append("s1", [HELLO, ANSWER])

    assert contents(memory) == [HELLO["content"], ANSWER["content"]]


def test_only_what_is_new_is_learned_from(memory: Memory) -> None:
    memory.append("s1", [HELLO, ANSWER])

    done = memory.append("s1", [{"role": "user", "content": "I prefer tabs over spaces."}])

    assert (done.messages, done.added, done.extracted) == (3, 1, 1)
    assert memory.append("s2", [HELLO], extract=False).extracted == 0


@pytest.mark.parametrize(
    "messages", [[HELLO], [HELLO, ANSWER], [CALL, RESULT], [ANSWER], [MORE, CALL, RESULT, FINE]]
)
@pytest.mark.parametrize("replace_last", [None, True, False])
def test_the_same_call_twice_is_one(
    opened: Context, memory: Memory, messages: list[object], *, replace_last: bool | None
) -> None:
    memory.append("s1", [HELLO, ANSWER])
    memory.append("s1", messages, replace_last=replace_last)
    position, before = opened.recorded.history.position(), contents(memory)

    again = memory.append("s1", messages, replace_last=replace_last)

    assert (again.added, again.replaced, contents(memory)) == (0, 0, before)
    assert opened.recorded.history.position() == position


def test_what_the_session_ends_with_is_not_added_again(memory: Memory) -> None:
    memory.append("s1", [HELLO, ANSWER])

    whole = memory.append("s1", [HELLO, ANSWER, MORE])
    window = memory.append("s1", [ANSWER, MORE, FINE])

    assert (whole.added, window.added) == (1, 1)
    assert contents(memory) == ["I live in Lisbon.", "How is it?", "Sunny.", "Fine."]


def test_the_same_words_in_another_turn_are_added(memory: Memory) -> None:
    go_on = {"role": "user", "content": "continue"}
    memory.append("s1", [go_on, {"role": "assistant", "content": "Part 2."}])

    memory.append("s1", [go_on, {"role": "assistant", "content": "Part 3."}])

    assert contents(memory) == ["continue", "Part 2.", "continue", "Part 3."]


def test_a_late_retry_is_known_by_its_times(memory: Memory) -> None:
    first = {**HELLO, "time": "2026-03-02T10:00:00Z"}
    memory.append("s1", [first])
    memory.append("s1", [ANSWER])

    assert memory.append("s1", [first]).added == 0


def test_threads_lose_no_message(memory: Memory) -> None:
    messages = [{"role": "user", "content": f"Number {number}."} for number in range(8)]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: memory.append("s1", [each], extract=False), messages))

    assert sorted(contents(memory)) == [f"Number {number}." for number in range(8)]


def test_nothing_appended_is_no_session(memory: Memory) -> None:
    assert memory.append("s1", []).uris == ()
    assert memory.append("s1", [{"role": "user", "content": None}]).messages == 0
    assert memory.sessions() == ()


def test_what_is_not_a_message_adds_nothing(memory: Memory) -> None:
    with pytest.raises(InvalidValueError):
        memory.append("s1", [HELLO, "Hi"])

    assert memory.sessions() == ()


ODD = st.lists(
    st.builds(Message, st.sampled_from(["user", "assistant", "tool"]), st.sampled_from("ab")),
    max_size=5,
)


@given(before=ODD, new=ODD, replace_last=st.sampled_from([None, True, False]))
def test_whatever_is_appended_twice_is_there_once(
    before: list[Message], new: list[Message], *, replace_last: bool | None
) -> None:
    once = appended(before, new, replace_last=replace_last)

    assert appended(once, new, replace_last=replace_last) is once
    assert list(once[len(once) - len(new) :]) == new, "all that is given is there, at the end"
    kept = shared_prefix(before, once)
    if replace_last is False:
        assert kept == len(before), "nothing is replaced"
    assert all(each.role != "user" for each in before[kept + 1 :]), "only the last exchange is"


@given(before=ODD, messages=ODD)
def test_whatever_is_committed_changes_the_last_exchange_only(
    before: list[Message], messages: list[Message]
) -> None:
    place = Uri.parse("ctx://local/sessions/s1")
    try:
        after = recommitted(before, messages, place)
    except NodeExistsError:
        return

    kept = shared_prefix(before, after)
    assert all(each.role != "user" for each in before[kept + 1 :])
    assert kept or not before, "another conversation is refused"
    assert recommitted(after, messages, place) is after


# ---------------------------------------------------------------- SDKs
def test_a_conversation_with_sdk_objects_is_stored_whole(memory: Memory) -> None:
    claude = AnthropicMessage(
        id="msg_1",
        type="message",
        role="assistant",
        model="claude",
        usage=Usage(input_tokens=1, output_tokens=1),
        content=[
            TextBlock(type="text", text="I look."),
            ToolUseBlock(type="tool_use", id="c1", name="weather", input={}),
        ],
    )
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "Rain"}
    picture = {"type": "image", "source": {"type": "base64", "data": "xxxx"}}

    memory.append("s1", [HELLO, claude])
    memory.append("s1", [{"role": "user", "content": [result, picture]}])
    done = memory.append("s1", [ChatCompletionMessage(role="assistant", content="Rain it is.")])

    assert contents(memory)[1:] == [
        "I look.",
        "[called weather] {}",
        "Rain",
        "[image]",
        "Rain it is.",
    ]
    assert done.left_out == ()


def test_what_can_not_be_stored_is_in_the_result(memory: Memory) -> None:
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}]}

    done = memory.commit_session([HELLO, thought, {"role": "user"}], session_id="s1")

    assert [(each.message, each.what) for each in done.left_out] == [
        (1, "thinking"),
        (2, "the message"),
    ]
    assert done.messages == 1


def test_nothing_is_learned_from_tools_and_unknown_roles(memory: Memory) -> None:
    words = "I live in Rome. I prefer tabs over spaces. Always run the linter before you push."
    call = {"function": {"name": "note", "arguments": words}}

    done = memory.append(
        "s1",
        [
            {"role": "tool", "content": words},
            {"role": "critic", "content": words},
            {"role": "function", "name": "user", "content": words},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"type": "function_call_output", "call_id": "c", "output": words},
            {"role": "user", "content": [{"type": "tool_result", "content": words}]},
        ],
    )

    assert (done.messages, done.extracted) == (6, 0)


def test_secrets_in_calls_are_masked(memory: Memory) -> None:
    secret = token("github")
    memory.append("s1", [HELLO])

    call = {"function": {"name": "push", "arguments": secret}}
    done = memory.append("s1", [{"role": "assistant", "tool_calls": [call]}])

    assert [each.message for each in done.masked_messages] == [1]
    assert secret not in memory.read(MESSAGES).content


# ---------------------------------------------------------------- replacing the last answer
def test_a_regenerated_answer_replaces_the_last_one(memory: Memory) -> None:
    memory.append("s1", [HELLO, OTHER])
    assert found(memory, "zebra crossing")[0] == "A zebra crossing!"

    done = memory.append("s1", [ANSWER])

    assert (done.messages, done.added, done.replaced) == (2, 1, 1)
    assert contents(memory) == ["I live in Lisbon.", "How is it?"]
    assert not [text for text in found(memory, "zebra crossing") if "zebra" in text]


def test_history_keeps_the_answer_that_was_replaced(opened: Context, memory: Memory) -> None:
    memory.commit_session([HELLO, OTHER], session_id="s1")
    memory.commit_session([HELLO, ANSWER], session_id="s1")

    old, new = memory.history(MESSAGES)

    history = opened.recorded.history
    assert "zebra" in history.text(old)
    assert "zebra" not in history.text(new)


def test_a_committed_session_may_differ_in_its_last_answer(memory: Memory) -> None:
    memory.commit_session([HELLO, ANSWER, MORE, CALL, RESULT, FINE], session_id="s1")

    done = memory.commit_session([HELLO, ANSWER, MORE, OTHER], session_id="s1")

    assert (done.messages, done.added, done.replaced) == (4, 1, 3)
    assert contents(memory)[2:] == ["Sunny.", "A zebra crossing!"]


def test_an_edited_last_question_is_replaced_with_its_answer(memory: Memory) -> None:
    memory.commit_session([HELLO, ANSWER, MORE, FINE], session_id="s1")

    edited = {"role": "user", "content": "Rainy."}
    done = memory.commit_session([HELLO, ANSWER, edited, OTHER], session_id="s1")

    assert (done.added, done.replaced) == (2, 2)
    assert contents(memory)[2:] == ["Rainy.", "A zebra crossing!"]


@pytest.mark.parametrize(
    "other",
    [
        [MORE, FINE],
        [MORE, ANSWER, MORE, FINE],
        [HELLO, OTHER, MORE, FINE],
        [HELLO, ANSWER, OTHER, FINE],
        [ANSWER],
    ],
)
def test_what_differs_before_the_last_exchange_is_refused(
    memory: Memory, other: list[object]
) -> None:
    memory.commit_session([HELLO, ANSWER, MORE, FINE], session_id="s1")

    with pytest.raises(NodeExistsError, match="other messages"):
        memory.commit_session(other, session_id="s1")

    assert contents(memory) == ["I live in Lisbon.", "How is it?", "Sunny.", "Fine."]


def test_another_first_question_is_another_conversation(memory: Memory) -> None:
    memory.commit_session([HELLO, ANSWER], session_id="s1")

    with pytest.raises(NodeExistsError):
        memory.commit_session([MORE, ANSWER], session_id="s1")


def test_the_whole_last_answer_is_replaced_if_asked_for(memory: Memory) -> None:
    memory.append("s1", [HELLO, CALL, RESULT, FINE])

    memory.append("s1", [CALL, OTHER], replace_last=True)
    assert contents(memory) == ["I live in Lisbon.", "[called weather] {}", "A zebra crossing!"]

    memory.append("s1", [MORE, FINE], replace_last=True)
    assert contents(memory) == ["Sunny.", "Fine."]


def test_an_answer_is_added_to_an_answer_if_asked_for(memory: Memory) -> None:
    memory.append("s1", [HELLO, ANSWER])

    memory.append("s1", [FINE], replace_last=False)

    assert contents(memory)[1:] == ["How is it?", "Fine."]


def test_a_long_answer_gives_its_nodes_back(memory: Memory) -> None:
    long = {"role": "assistant", "content": "word " * 30_000}
    first = memory.append("s1", [HELLO, long])

    done = memory.append("s1", [ANSWER])

    assert len(first.uris) > 1
    assert done.uris == (MESSAGES,)
    (session,) = memory.sessions()
    assert (session.messages, session.bytes < 1000) == (2, True)
    assert memory.append("s1", [MORE]).messages == 3


def test_only_the_new_answer_is_learned_from(memory: Memory) -> None:
    memory.commit_session([HELLO, ANSWER], session_id="s1")

    done = memory.commit_session([HELLO, OTHER, MORE], session_id="s1")

    assert done.extracted == 0, "the first message was learned from before"
    assert memory.commit_session([HELLO, OTHER, MORE], session_id="s1").extracted == 0


def test_why_says_that_the_evidence_was_changed(memory: Memory) -> None:
    lives = {"role": "user", "content": "I live in Porto."}
    memory.commit_session([MORE, FINE, lives], session_id="s1")

    memory.commit_session([MORE, FINE, {**lives, "content": "Never mind."}], session_id="s1")

    (claim,) = memory.why(PROFILE).statements
    assert claim.evidence[0].quotes[0].trouble == "the message was changed since"


def test_a_dry_run_replaces_nothing(memory: Memory) -> None:
    memory.commit_session([HELLO, ANSWER], session_id="s1")

    done = memory.commit_session([HELLO, OTHER], session_id="s1", dry_run=True)

    assert (done.replaced, contents(memory)[1]) == (1, "How is it?")


# ---------------------------------------------------------------- whose they are
def test_nobody_else_appends(memory: Memory) -> None:
    memory.append("s1", [HELLO])

    with pytest.raises(AccessDeniedError):
        memory.for_caller(BOB).append("s1", [ANSWER])
    with pytest.raises(AccessDeniedError):
        memory.for_caller(BOB).append("s1", [ANSWER], replace_last=True)

    assert contents(memory) == ["I live in Lisbon."]


def test_sessions_are_listed_for_who_may_see_them(memory: Memory) -> None:
    root = Memory(memory._services, RequestContext("local", "root", role=Role.ROOT))
    bob = root.for_caller(BOB)
    memory.append("s1", [HELLO])
    bob.append("s2", [MORE])
    root.for_caller(RequestContext("other", "ana")).append("s3", [FINE])

    assert [each.id for each in memory.sessions()] == ["s1"]
    assert [each.id for each in bob.sessions()] == ["s2"]
    assert {each.id for each in root.sessions()} == {"s1", "s2"}
    named = root.for_caller(RequestContext("local", "bob", session_id="s1"))
    assert [each.id for each in named.sessions()] == ["s2"], "to name a session opens nothing"


# ---------------------------------------------------------------- listing
def test_a_session_has_title_date_and_size(memory: Memory) -> None:
    early = {**HELLO, "time": "2026-03-02T10:00:00Z"}
    memory.commit_session([early, ANSWER], session_id="s1")
    memory.append("s2", [{**MORE, "time": "2026-03-03T10:00:00Z"}], title="The weather")

    second, first = memory.sessions()

    assert (first.id, first.title, first.messages) == ("s1", "I live in Lisbon.", 2)
    assert first.uri == "ctx://local/sessions/s1"
    assert first.date == datetime(2026, 3, 2, 10, tzinfo=UTC)
    assert first.bytes == len(memory.read(MESSAGES).content.encode())
    assert (second.id, second.title) == ("s2", "The weather")


def test_the_title_is_how_the_first_user_begins(memory: Memory) -> None:
    memory.append("s1", [{"role": "system", "content": "Be brief."}, FINE, MORE])
    memory.append("s2", [{"role": "user", "content": f"\n  {'word ' * 40}\nmore"}])
    memory.append("s3", [FINE])

    titles = {each.id: each.title for each in memory.sessions()}

    assert (titles["s1"], titles["s3"]) == ("Sunny.", "Fine.")
    assert len(titles["s2"]) <= 80
    assert titles["s2"].endswith("word…")


def test_a_title_is_given_later_and_stays(opened: Context, memory: Memory) -> None:
    memory.append("s1", [HELLO])
    memory.append("s1", [HELLO], title="  Where\nI live ")
    position = opened.recorded.history.position()
    memory.append("s1", [HELLO], title="Where I live")
    assert opened.recorded.history.position() == position
    memory.append("s1", [ANSWER])

    assert [each.title for each in memory.sessions()] == ["Where I live"]


def test_a_secret_in_a_title_is_masked(memory: Memory) -> None:
    secret = token("github")

    memory.append("s1", [HELLO], title=f"My key {secret}")

    assert secret not in memory.sessions()[0].title
    with pytest.raises(InvalidValueError, match="title"):
        memory.append("s2", [HELLO], title="\ud800")


def test_an_archived_session_is_not_listed(memory: Memory) -> None:
    memory.append("s1", [HELLO])

    memory.forget("ctx://local/sessions/s1")

    assert memory.sessions() == ()
