"""A service may be slow, busy, wrong or hostile; what it says is checked."""

import json
import socket
import traceback
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from perdure.errors import (
    AnswerMalformedError,
    InvalidValueError,
    RequestRefusedError,
    ServiceUnreachableError,
)
from perdure.llm import http_services
from perdure.llm.contract import (
    Answer,
    ChatMessage,
    Completer,
    Refusal,
    Request,
    ToolCall,
    ToolDefinition,
    Truncation,
    Usage,
)
from perdure.llm.http_services import AnthropicCompleter, OpenAICompleter, Service
from tests.llm import fake_services
from tests.llm.fake_services import KEY, MODEL, USAGE, Act, Server, fails, replies, says, serving

Open = Callable[..., Completer]

HELLO = Request((ChatMessage("user", "Hello."),))
SOON = 0.2
"""Seconds after which a service that never answers is given up."""
LATER = 30.0
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
WANTS_JSON = Request(
    (ChatMessage("system", "Be brief."), ChatMessage("user", "Hello.")), schema=SCHEMA
)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture(params=["openai", "anthropic"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


ADAPTERS: dict[str, Any] = {"openai": OpenAICompleter, "anthropic": AnthropicCompleter}


@pytest.fixture
def open_service(protocol: str) -> Open:
    adapter: Open = ADAPTERS[protocol]
    return adapter


@pytest.fixture
def open_(server: Server, protocol: str, open_service: Open) -> Open:
    return lambda **more: open_service(getattr(server, protocol)(**more))


@pytest.fixture
def completer(open_: Open) -> Completer:
    return open_()


# ---------------------------------------------------------------- asking
def test_the_key_and_the_limit_are_sent(server: Server, completer: Completer) -> None:
    server.script.add(Answer("Hi."))

    assert completer.complete(HELLO, seconds=LATER) == Answer("Hi.", usage=USAGE)
    assert server.asked[0]["model"] == MODEL
    assert server.asked[0]["max_tokens"] == completer.max_output_tokens == 4_096
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_nothing_of_the_environment_is_sent_to_the_service(
    server: Server, open_: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("API_KEY", "AUTH_TOKEN", "ORG_ID", "PROJECT_ID", "ADMIN_KEY", "BASE_URL"):
        monkeypatch.setenv(f"OPENAI_{name}", "http://ambient.invalid")
        monkeypatch.setenv(f"ANTHROPIC_{name}", "http://ambient.invalid")
    for name in ("OPENAI", "ANTHROPIC"):
        headers = "X-Secret: ambient\nAuthorization: Bearer ambient\nX-Api-Key: ambient"
        monkeypatch.setenv(f"{name}_CUSTOM_HEADERS", headers)
    server.script.add(Answer("Hi."))

    open_().complete(HELLO, seconds=LATER)

    (headers_sent,) = server.headers
    assert "ambient" not in json.dumps(headers_sent)
    assert headers_sent["authorization"] == f"Bearer {KEY}"
    assert not [name for name in headers_sent if name.startswith(("x-stainless-os", "openai-"))]


def test_a_service_without_a_key_is_sent_none(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "ambient")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer ambient\nX-Api-Key: ambient")
    server.script.add(Answer("Hi."))

    completer = OpenAICompleter(server.openai(api_key=""))
    completer.complete(HELLO, seconds=LATER)

    assert not {"authorization", "x-api-key"} & set(server.headers[0])


def test_anthropic_is_not_asked_without_a_key(server: Server) -> None:
    with pytest.raises(InvalidValueError, match="Fix: set api_key_variable"):
        AnthropicCompleter(server.anthropic(api_key=""))


def test_the_limit_is_called_as_the_endpoint_calls_it(server: Server) -> None:
    server.script.add(Answer("Hi."))
    service = server.openai(limit_name="max_completion_tokens", max_output_tokens=7)

    completer = OpenAICompleter(service)
    completer.complete(HELLO, seconds=LATER)

    assert server.asked[0]["max_completion_tokens"] == 7
    assert "max_tokens" not in server.asked[0]


# ---------------------------------------------------------------- structure
@pytest.mark.parametrize("structured", ["json_schema", "tool", "text"])
def test_json_is_requested_as_configured(server: Server, open_: Open, structured: str) -> None:
    reply = Answer('{"a": "b"}')
    server.acts.append(
        replies(fake_services.as_the_tool_answer(reply) if structured == "tool" else reply)
    )

    answer = open_(structured=structured).complete(WANTS_JSON, seconds=LATER)

    assert isinstance(answer, Answer)
    assert json.loads(answer.text) == {"a": "b"}
    assert answer.calls == ()
    (asked,) = server.asked
    assert ("tools" in asked) == (structured == "tool")
    assert ("response_format" in asked or "output_config" in asked) == (structured == "json_schema")
    assert (json.dumps(SCHEMA) in asked["messages"][-1]["content"]) == (structured == "text")


def test_a_closed_schema_is_held_to_strictly(server: Server) -> None:
    closed = {**SCHEMA, "required": ["a"], "additionalProperties": False}
    server.script.add(Answer("{}"), Answer("{}"))

    completer = OpenAICompleter(server.openai())
    completer.complete(Request(HELLO.messages, schema=closed), seconds=LATER)
    completer.complete(WANTS_JSON, seconds=LATER)

    strict = [asked["response_format"]["json_schema"]["strict"] for asked in server.asked]
    assert strict == [True, False]


def test_a_fence_is_removed_where_only_the_prompt_asks_for_json(
    server: Server, open_: Open
) -> None:
    fenced = '```json\n{"a": "b"}\n```\n'
    server.acts.extend([replies(Answer(fenced)), replies(Answer(f"Here: {fenced}"))])
    completer = open_(structured="text")

    first, second = (completer.complete(WANTS_JSON, seconds=LATER) for _ in range(2))

    assert first == Answer('{"a": "b"}', usage=USAGE)
    assert second == Answer(f"Here: {fenced}", usage=USAGE)


@pytest.mark.parametrize(
    "reply",
    [
        Answer("I won't."),
        Answer(calls=(ToolCall("other", "{}"),)),
        Answer(calls=(ToolCall("answer", "{}"), ToolCall("answer", "{}"))),
    ],
)
def test_a_service_that_does_not_use_the_tool_for_its_answer_has_none(
    server: Server, open_: Open, reply: Answer
) -> None:
    server.acts.append(replies(reply))

    assert open_(structured="tool").complete(WANTS_JSON, seconds=LATER) == Answer(usage=USAGE)


# ---------------------------------------------------------------- replies
def test_refusals_and_truncations_tell_what_they_cost(server: Server, completer: Completer) -> None:
    server.script.add(Refusal(Usage(7, 1)), Truncation(Usage(8, 2)))

    assert completer.complete(HELLO, seconds=LATER) == Refusal(Usage(7, 1))
    assert completer.complete(HELLO, seconds=LATER) == Truncation(Usage(8, 2))


def test_a_filter_of_the_service_is_a_refusal(server: Server) -> None:
    body = fake_services.openai(Answer(""))
    body["choices"][0]["finish_reason"] = "content_filter"
    server.acts.append(says(json.dumps(body).encode()))

    completer = OpenAICompleter(server.openai())
    assert completer.complete(HELLO, seconds=LATER) == Refusal(USAGE)


def test_a_full_window_is_a_truncation(server: Server) -> None:
    body = fake_services.anthropic(Answer("")) | {"stop_reason": "model_context_window_exceeded"}
    server.acts.append(says(json.dumps(body).encode()))

    completer = AnthropicCompleter(server.anthropic())
    assert completer.complete(HELLO, seconds=LATER) == Truncation(USAGE)


def test_tokens_that_were_read_from_a_cache_or_put_there_count_as_read(server: Server) -> None:
    body = fake_services.anthropic(Answer("Hi."))
    body["usage"] |= {"cache_creation_input_tokens": 30, "cache_read_input_tokens": 4}
    server.acts.append(says(json.dumps(body).encode()))

    completer = AnthropicCompleter(server.anthropic())
    assert completer.complete(HELLO, seconds=LATER).usage == Usage(134, 20)


@pytest.mark.parametrize(
    "usage", [None, {}, [], "many", {"prompt_tokens": -1}, {"prompt_tokens": "1"}]
)
def test_a_service_that_does_not_say_what_it_used_is_not_believed_to_have_used_nothing(
    server: Server,
    completer: Completer,
    protocol: str,
    usage: Any,  # noqa: ANN401 - JSON
) -> None:
    write = fake_services.openai if protocol == "openai" else fake_services.anthropic
    body: dict[str, Any] = {**write(Answer("Hi.")), "usage": usage}
    server.acts.append(says(json.dumps(body).encode()))

    assert completer.complete(HELLO, seconds=LATER).usage is None


def test_tools_are_called_with_arguments_as_the_model_wrote_them(
    server: Server, completer: Completer
) -> None:
    server.script.add(Answer("Well.", (ToolCall("save", '{"a": "é"}'), ToolCall("other", "[1]"))))
    request = Request(HELLO.messages, (ToolDefinition("save", "Save.", SCHEMA),))

    reply = completer.complete(request, seconds=LATER)

    assert isinstance(reply, Answer)
    assert reply.text == "Well."
    assert [(each.tool, json.loads(each.arguments)) for each in reply.calls] == [
        ("save", {"a": "é"}),
        ("other", [1]),
    ]


NO_ANSWERS = {
    "no JSON": b"Hello.",
    "half of it": b'{"choices": [',
    "no object": b"[]",
    "nothing": b"",
    "an empty object": b"{}",
    "no number": b'{"usage": NaN}',
    "too deep": b"[" * 100_000,
    "no choice": b'{"choices": [], "content": 1, "stop_reason": "end_turn"}',
    "no message": b'{"choices": [1], "content": [], "stop_reason": "pause_turn"}',
    "no text": b'{"choices": [{"finish_reason": "stop", "message": {"content": 1}}], '
    b'"content": [{"type": "text", "text": 1}], "stop_reason": "end_turn"}',
    "no call": b'{"choices": [{"finish_reason": "stop", "message": {"tool_calls": [1]}}], '
    b'"content": [{"type": "tool_use"}], "stop_reason": "end_turn"}',
    "a page": b"<html>Bad gateway</html>",
}


@pytest.mark.parametrize("content", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_a_reply_outside_the_protocol_is_malformed(
    server: Server, completer: Completer, content: bytes
) -> None:
    server.acts.append(says(content, Content_Type="text/html"))

    with pytest.raises(AnswerMalformedError, match="Fix: check base_url"):
        completer.complete(HELLO, seconds=LATER)


# ---------------------------------------------------------------- no answer
@pytest.mark.parametrize("status", [301, 307, 400, 401, 402, 403, 404, 413, 422])
def test_a_rejected_request_is_not_sent_again(
    server: Server, completer: Completer, status: int
) -> None:
    server.acts.append(fails(status, Location="http://127.0.0.1:1/"))

    with pytest.raises(RequestRefusedError, match=f"status {status}. Fix: ") as caught:
        completer.complete(HELLO, seconds=LATER)
    assert len(server.asked) == 1
    assert "secret" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("status", "billed"),
    [
        (408, True),
        (409, True),
        (429, False),
        (500, True),
        (502, True),
        (503, False),
        (504, True),
        (529, False),
    ],
)
def test_a_busy_or_failing_service_may_be_asked_again_and_may_have_been_paid(
    server: Server,
    completer: Completer,
    status: int,
    billed: bool,  # noqa: FBT001 - a parameter
) -> None:
    server.acts.append(fails(status))

    with pytest.raises(ServiceUnreachableError, match=f"status {status}. Fix: ") as caught:
        completer.complete(HELLO, seconds=LATER)
    assert (caught.value.is_transient, caught.value.may_be_billed, caught.value.wait) == (
        True,
        billed,
        0,
    )
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("nan", 0.0),
        ("inf", 0.0),
        ("soon", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
    ],
)
def test_the_wait_that_a_service_asks_for_is_reported(
    server: Server, completer: Completer, retry_after: str, wait: float
) -> None:
    server.acts.append(fails(429, Retry_After=retry_after))

    with pytest.raises(ServiceUnreachableError) as caught:
        completer.complete(HELLO, seconds=LATER)
    assert caught.value.wait == wait


def test_a_date_to_wait_for_is_reported_in_seconds(server: Server, completer: Completer) -> None:
    server.acts.append(fails(503, Retry_After="Thu, 21 Oct 2120 07:28:00 GMT"))

    with pytest.raises(ServiceUnreachableError) as caught:
        completer.complete(HELLO, seconds=LATER)
    assert caught.value.wait > 1_000_000_000


@pytest.mark.parametrize("act", [fake_services.never, fake_services.stalls])
def test_a_service_that_falls_silent_is_given_up(
    server: Server, completer: Completer, act: Act
) -> None:
    server.acts.append(act)

    with pytest.raises(ServiceUnreachableError, match="did not answer in time") as caught:
        completer.complete(HELLO, seconds=SOON)
    assert (caught.value.is_transient, caught.value.may_be_billed) == (True, True)


def test_a_service_that_drips_is_given_up(
    server: Server, protocol: str, open_service: Open
) -> None:
    server.acts.append(fake_services.drips)
    ticks = count()
    completer = open_service(getattr(server, protocol)(clock=lambda: next(ticks)))

    with pytest.raises(ServiceUnreachableError, match="did not answer in time"):
        completer.complete(HELLO, seconds=LATER)
    assert 30 < next(ticks) < 100


@pytest.mark.parametrize("act", [fake_services.breaks_off, fake_services.hangs_up])
def test_an_answer_that_breaks_off_may_have_been_paid(
    server: Server, completer: Completer, act: Act
) -> None:
    server.acts.append(act)

    with pytest.raises(ServiceUnreachableError, match="broke off") as caught:
        completer.complete(HELLO, seconds=LATER)
    assert (caught.value.is_transient, caught.value.may_be_billed) == (True, True)


def test_the_body_of_an_error_is_not_read(server: Server, completer: Completer) -> None:
    server.acts.append(fake_services.floods_with_an_error)

    with pytest.raises(RequestRefusedError, match="status 400"):
        completer.complete(HELLO, seconds=LATER)


def test_of_a_flood_no_more_is_read_than_an_answer_can_be_long(
    server: Server, completer: Completer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_services, "MAX_ANSWER", 2_000_000)
    server.acts.append(fake_services.floods)

    with pytest.raises(AnswerMalformedError, match="longer than 2 MB"):
        completer.complete(HELLO, seconds=LATER)


def test_without_a_server_nothing_is_billed_or_retried(open_service: Open) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        service = Service(f"http://127.0.0.1:{taken.getsockname()[1]}", MODEL, api_key=KEY)
        completer = open_service(service)

        with pytest.raises(ServiceUnreachableError, match="nothing listens") as caught:
            completer.complete(HELLO, seconds=LATER)
    assert (caught.value.is_transient, caught.value.may_be_billed) == (False, False)


def test_without_time_no_request_is_sent(server: Server, completer: Completer) -> None:
    with pytest.raises(ServiceUnreachableError, match="no time left") as caught:
        completer.complete(HELLO, seconds=0)
    assert (caught.value.may_be_billed, server.asked) == (False, [])


# ---------------------------------------------------------------- settings
@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "localhost"},
        {"base_url": "ftp://host/v1"},
        {"base_url": "https://ana:hunter2@host/v1"},
        {"base_url": "https://host/v1?key=hunter2"},
        {"base_url": "http://host:99999/v1"},
        {"model": ""},
        {"api_key": "two words"},
        {"api_key": "hunter2\n"},
        {"structured": "somehow"},
        {"max_output_tokens": 0},
    ],
)
def test_an_invalid_service_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match="Fix: ") as caught:
        Service(**{"base_url": "http://host/v1", "model": "small", **wrong})
    assert "hunter2" not in str(caught.value)


def test_a_key_is_not_shown() -> None:
    assert KEY not in repr(Service("http://host/v1", MODEL, KEY))
