"""Messages of SDKs are read: each is kept, or what is not kept of it is reported."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types import TextBlock, ThinkingBlock, ToolUseBlock, Usage
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.chat.chat_completion import Choice
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseFunctionWebSearch,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_function_web_search import ActionSearch

from perdure.errors import InvalidValueError
from perdure.model.messages import SkippedContent, read_messages
from perdure.model.transcript import Message

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"at": "x"}'}}
CALLED = Message("tool", '[called weather] {"at": "x"}', "weather")
THOUGHT = "it is not part of the conversation"
TEXT = {"type": "text", "text": "Rain"}
ONLY_TEXT = "only text is stored"

TEXTS = st.text() | st.text(st.characters(categories=["Cs"]), max_size=2)
KEYS = st.text(max_size=3) | st.sampled_from(
    [
        *("role", "content", "type", "text", "name", "time", "id", "tool_calls", "function_call"),
        *(
            "function",
            "object",
            "arguments",
            "input",
            "output",
            "refusal",
            "audio",
            "transcript",
            "source",
        ),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.integers(), inner),
    max_leaves=8,
)
KINDS = st.sampled_from(
    [
        *("text", "input_text", "output_text", "refusal", "image_url", "document", "thinking"),
        *("tool_use", "tool_result", "message", "reasoning", "function_call"),
        *("function_call_output", "web_search_call"),
    ]
)
ROLES = st.sampled_from(
    ["user", "assistant", "system", "developer", "tool", "function", "critic", "", " ", "x" * 90]
)
BLOCKS = st.lists(st.dictionaries(KEYS, JSON, max_size=3) | st.text() | JSON, max_size=3)
GIVEN = st.builds(
    lambda rest, known: {**rest, **known},
    st.dictionaries(KEYS | st.integers() | st.none(), JSON, max_size=4),
    st.fixed_dictionaries(
        {},
        optional={
            "role": ROLES | JSON,
            "type": KINDS | JSON,
            "content": TEXTS | BLOCKS | JSON,
            "tool_calls": BLOCKS | JSON,
        },
    ),
)


def read(*messages: object) -> list[Message]:
    found = read_messages(messages)
    assert found.left_out == ()
    return list(found.messages)


def left_out(*messages: object) -> list[tuple[str, str]]:
    return [(each.what, each.why) for each in read_messages(messages).left_out]


# ---------------------------------------------------------------- rules for all
@given(st.lists(GIVEN, max_size=4))
def test_every_message_is_stored_or_reported(messages: list[dict[Any, Any]]) -> None:
    found = read_messages(messages)

    reported = {each.message for each in found.left_out}
    assert {*found.sources, *reported} == set(range(len(messages)))
    assert len(found.sources) == len(found.messages)
    for message in found.messages:
        assert message.content.strip()
        message.content.encode()
    assert read_messages(messages) == found


@given(st.lists(GIVEN, max_size=4))
def test_each_message_is_read_by_itself(messages: list[dict[Any, Any]]) -> None:
    alone = [each for message in messages for each in read_messages([message]).messages]

    assert list(read_messages(messages).messages) == alone


@pytest.mark.parametrize("given", ["Hi", 3, None, [1], b"x", ChatCompletionMessage, object()])
def test_what_is_not_a_mapping_is_refused(given: object) -> None:
    with pytest.raises(InvalidValueError, match="Fix: "):
        read_messages([{"role": "user", "content": "Hi"}, given])


@pytest.mark.parametrize("given", ["Hi", 3, None, {"role": "user", "content": "Hi"}])
def test_what_is_not_a_list_is_refused(given: Any) -> None:  # noqa: ANN401 - that is the point
    with pytest.raises(InvalidValueError, match="is not a list of messages"):
        read_messages(given)


def test_our_own_form_is_read_as_it_is() -> None:
    raw = {"role": "user", "content": "Hi", "name": "Ana", "time": "2026-03-02T12:00:00Z"}

    assert read(raw) == [Message("user", "Hi", "Ana", NOON)] == [Message.from_mapping(raw)]
    assert read({**raw, "time": NOON}) == read({**raw, "time": NOON.timestamp()})


# ---------------------------------------------------------------- OpenAI
def test_openai_chat_messages_are_read() -> None:
    assert read(
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What"}, {"text": "is it?"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "Rain"},
        {"role": "assistant", "content": None, "refusal": "I can't say."},
    ) == [
        Message("system", "Be brief."),
        Message("user", "What\n\nis it?"),
        CALLED,
        Message("tool", "Rain"),
        Message("assistant", "I can't say."),
    ]


def test_openai_objects_are_read() -> None:
    plain = ChatCompletionMessage(role="assistant", content="Hello.")
    calling = ChatCompletionMessage.model_validate(
        {"role": "assistant", "content": "One moment.", "tool_calls": [CALL]}
    )

    assert read(plain, calling) == [
        Message("assistant", "Hello."),
        Message("assistant", "One moment."),
        CALLED,
    ]
    loose = {"role": "assistant", "tool_calls": calling.tool_calls}
    assert read(loose) == [CALLED], "objects inside a dict are read too"


def test_the_old_function_call_is_read() -> None:
    assert read(
        {"role": "assistant", "content": None, "function_call": CALL["function"]},
        {"role": "function", "name": "weather", "content": "Rain"},
    ) == [CALLED, Message("tool", "Rain", "weather")]


def test_openai_responses_items_are_read() -> None:
    text = ResponseOutputText(type="output_text", text="Rain.", annotations=[])
    items = [
        ResponseFunctionToolCall(
            type="function_call", call_id="c1", name="weather", arguments='{"at": "x"}'
        ),
        {"type": "function_call_output", "call_id": "c1", "output": "Rain"},
        ResponseFunctionWebSearch(
            id="w1",
            type="web_search_call",
            status="completed",
            action=ActionSearch(type="search", query="rain"),
        ),
        ResponseOutputMessage(
            id="m1", type="message", role="assistant", status="completed", content=[text]
        ),
    ]

    found = read(*items)

    assert found[:2] == [CALLED, Message("tool", "Rain")]
    assert (found[2].role, found[2].name) == ("tool", "web_search")
    assert found[3:] == [Message("assistant", "Rain.")]


def test_whole_answers_of_openai_are_read() -> None:
    message = ChatCompletionMessage(role="assistant", content="Hello.")
    chosen = Choice(index=0, finish_reason="stop", message=message)
    other = Choice(index=1, finish_reason="stop", message=message)
    chat = ChatCompletion(
        id="c", object="chat.completion", created=1, model="m", choices=[chosen, other]
    )
    text = {"type": "output_text", "text": "Hello.", "annotations": []}
    item = {"type": "message", "role": "assistant", "content": [text]}

    assert read(chat) == read({"object": "response", "output": [item]}) == read(message)
    assert left_out({"object": "response", "output": []}) == [("the message", "has no role")]


def test_what_responses_hold_back_is_reported() -> None:
    thought = ResponseReasoningItem(id="r1", type="reasoning", summary=[], encrypted_content="x")

    assert left_out(thought, {"type": "item_reference", "id": "m1"}) == [
        ("reasoning", THOUGHT),
        ("an item of type 'item_reference'", "has no role"),
    ]


def test_what_is_not_text_is_reported_and_leaves_a_word() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,xxxx"}}
    raw = {"role": "user", "content": [{"type": "text", "text": "Look:"}, picture]}

    found = read_messages([raw, {"role": "user", "content": [{"type": "input_audio"}]}])

    assert [each.content for each in found.messages] == ["Look:\n\n[image]", "[audio]"]
    assert found.left_out == (
        SkippedContent(0, "image", ONLY_TEXT),
        SkippedContent(1, "audio", ONLY_TEXT),
    )


def test_the_transcript_of_audio_is_stored() -> None:
    spoken = {"role": "assistant", "content": None, "audio": {"id": "a", "transcript": "Hello."}}

    found = read_messages([spoken])

    assert list(found.messages) == [Message("assistant", "Hello.")]
    assert found.left_out == (SkippedContent(0, "audio", ONLY_TEXT),)


# ---------------------------------------------------------------- Anthropic
def test_anthropic_messages_are_read() -> None:
    answer = AnthropicMessage(
        id="msg_1",
        type="message",
        role="assistant",
        model="claude",
        stop_reason="tool_use",
        usage=Usage(input_tokens=1, output_tokens=1),
        content=[
            ThinkingBlock(type="thinking", thinking="Hm.", signature="s"),
            TextBlock(type="text", text="I look it up."),
            ToolUseBlock(type="tool_use", id="c1", name="weather", input={"at": "x"}),
        ],
    )
    result = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [TEXT]},
            {"type": "text", "text": "And tomorrow?"},
        ],
    }

    found = read_messages([answer, {"role": "assistant", "content": answer.content}, result])

    raw = [Message("assistant", "I look it up."), CALLED]
    asked = [Message("tool", "Rain"), Message("user", "And tomorrow?")]
    assert list(found.messages) == [*raw, *raw, *asked]
    assert found.sources == (0, 0, 1, 1, 2, 2)
    assert found.left_out == (
        SkippedContent(0, "thinking", THOUGHT),
        SkippedContent(1, "thinking", THOUGHT),
    )


def test_cited_texts_go_on_in_one_sentence() -> None:
    texts = ["The grass is ", "green", ", and the sky is blue."]
    blocks = [{"type": "text", "text": each, "citations": [{}]} for each in texts]

    assert read({"role": "assistant", "content": blocks}) == [
        Message("assistant", "The grass is green, and the sky is blue.")
    ]


def test_documents_are_not_taken_for_what_the_user_says() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "I live in Rome."}
    raw = {"role": "user", "content": [{"type": "document", "source": source}, "Read it."]}

    found = read_messages([raw])

    assert [each.content for each in found.messages] == ["[document]\n\nRead it."]
    assert found.left_out == (SkippedContent(0, "document", ONLY_TEXT),)


# ---------------------------------------------------------------- the odd
def test_an_unknown_role_is_stored_under_its_own_name() -> None:
    assert read(
        {"role": "critic", "content": "No."},
        {"role": "critic", "name": "Bob", "content": "No."},
        {"role": "User", "content": "Hi"},
    ) == [
        Message("system", "No.", "critic"),
        Message("system", "No.", "critic Bob"),
        Message("user", "Hi"),
    ]


@pytest.mark.parametrize("role", ["", " ", 3, ["user"], {"a": 1}, "x" * 81])
def test_a_role_that_is_none_is_reported(role: object) -> None:
    ((what, why),) = left_out({"role": role, "content": "Hi"})

    assert what == "the message"
    assert why.startswith("its role is ")


def test_unknown_keys_are_reported_and_the_message_stored() -> None:
    raw = {"role": "user", "content": "Hi", "mood": "good", 3: 4, "empty": None, "id": "m"}

    found = read_messages([{**raw, "reasoning_content": "Hm."}])

    assert list(found.messages) == [Message("user", "Hi")]
    assert [(each.what, each.why) for each in found.left_out] == [
        ("reasoning_content", THOUGHT),
        ("'3', 'mood'", "unknown key"),
    ]


@pytest.mark.parametrize("time", ["noon", math.nan, 10**30, True, [], datetime(2026, 3, 2)])  # noqa: DTZ001 - that is the point
def test_an_invalid_time_is_reported_and_the_message_stored(time: object) -> None:
    found = read_messages([{"role": "user", "content": "Hi", "time": time}])

    assert list(found.messages) == [Message("user", "Hi")]
    assert [each.what for each in found.left_out] == ["its time"]


def test_half_a_character_is_replaced_and_reported() -> None:
    found = read_messages([{"role": "user", "content": "a\ud800b"}])

    assert list(found.messages) == [Message("user", "a\ufffdb")]
    assert [each.what for each in found.left_out] == ["half a character"]


def test_what_json_can_not_say_is_reported() -> None:
    cyclic: dict[str, object] = {}
    cyclic["self"] = cyclic
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]

    for odd in (cyclic, deep, {"x": b"bytes"}, {(1, 2): 3}, 10**5000):
        call = {"name": "weather", "arguments": odd}
        found = read_messages([{"role": "assistant", "function_call": call}])

        assert list(found.messages) == [Message("tool", "[called weather]", "weather")]
        assert found.left_out == (
            SkippedContent(0, "what a tool was called with", "it can't be JSON"),
        )
    assert left_out({"role": deep, "content": deep}) != []
    assert left_out({"role": "user", "content": [cyclic, deep, b"x"]}) != []


def test_a_long_name_is_cut_and_reported() -> None:
    found = read_messages([{"role": "user", "name": "n" * 200, "content": "Hi"}])

    assert found.messages[0].name == "n" * 80
    assert [each.what for each in found.left_out] == ["its name"]
