"""The three methods of a language model, on top of a completer, with checks and retries."""

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from perdure.errors import (
    AnswerMalformedError,
    AnswerRefusedError,
    AnswerTruncatedError,
    InvalidValueError,
    ServiceUnreachableError,
)
from perdure.llm.contract import (
    CHOICES,
    Answer,
    ChatMessage,
    Completer,
    Refusal,
    Reply,
    Request,
    Schema,
    Truncation,
    find_fault,
    refuse_constant,
)
from perdure.model.values import JSON, shown

PATIENCE_SECONDS = 300.0
"""The limit of all attempts of one call together."""
ATTEMPTS = 5
FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
"""Seconds. The wait doubles each time, with jitter, so that clients do not retry together."""


class LLMClient:
    """An `LLM`.

    If the service is busy, failing, slow or unreachable, a request is sent up to five times, after
    increasing waits, or the wait that the service asks for. All attempts together stay within the
    time limit. Errors that a retry can't solve, such as a wrong key or a refusal, are raised.
    """

    def __init__(
        self,
        completer: Completer,
        *,
        attempts: int = ATTEMPTS,
        seconds: float = PATIENCE_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._completer = completer
        self._attempts = attempts
        self._seconds = seconds
        self._sleep = sleep
        self._clock = clock

    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
        if schema is None:
            raise InvalidValueError("the schema is missing. Fix: give one of an object.")
        answer = self.ask(Request((ChatMessage("user", prompt),), schema=schema))
        return parse_object(answer.text, schema, self._completer.model)

    def complete_with_tools(
        self, prompt: str, tools: Sequence[Mapping[str, JSON]], tool_choice: str = "auto"
    ) -> list[dict[str, Any]]:
        messages: list[dict[str, JSON]] = [{"role": "user", "content": prompt}]
        return self.complete_with_tools_messages(messages, tools, tool_choice)[0]

    def complete_with_tools_messages(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        tool_choice: str = "auto",
    ) -> tuple[list[dict[str, Any]], str]:
        answer = self.ask(Request.parse(messages, tools, tool_choice))
        calls = [{"tool": each.tool, "input": json.loads(each.arguments)} for each in answer.calls]
        return calls, answer.text

    def ask(self, request: Request) -> Answer:
        until, wait = self._clock() + self._seconds, FIRST_WAIT
        for left in reversed(range(self._attempts)):
            try:
                reply = self._completer.complete(request, seconds=until - self._clock())
            except ServiceUnreachableError as error:
                pause = max(error.wait, min(wait, LONGEST_WAIT) + random.random())  # noqa: S311 - no secret
                if not left or not error.is_transient or self._clock() + pause >= until:
                    raise
                self._sleep(pause)
                wait *= 2
            else:
                return check_reply(request, reply, self._completer.model)
        raise AssertionError(self._attempts)


def check_reply(request: Request, reply: Reply, model: str) -> Answer:
    if isinstance(reply, Refusal):
        raise AnswerRefusedError(
            f"{model} declined to answer. Fix: change the request, or use another model."
        )
    if isinstance(reply, Truncation):
        raise AnswerTruncatedError(
            f"the answer of {model} was cut off. "
            "Fix: raise max_output_tokens in [llm], or ask for less."
        )
    if request.schema is not None:
        parse_object(reply.text, request.schema, model)
    else:
        _check_calls(request, reply, model)
    return reply


def _check_calls(request: Request, answer: Answer, model: str) -> None:
    tools = {tool.name: tool.input_schema for tool in request.tools}
    called = [call.tool for call in answer.calls]
    for call in answer.calls:
        if call.tool not in tools:
            _malformed(model, f"it calls {shown(call.tool)}, which is not an offered tool")
        parse_object(call.arguments, tools[call.tool], model)
    choice = request.tool_choice
    if choice == "none" and called:
        _malformed(model, "it calls a tool, but none was allowed")
    if choice not in {"auto", "none"} and not called:
        _malformed(model, "it calls no tool, but one was required")
    if choice not in CHOICES and set(called) != {choice}:
        _malformed(model, f"it calls another tool than {choice!a}")


def parse_object(text: str, schema: Schema, model: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=refuse_constant, object_pairs_hook=_object)
        text.encode()
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # as \ud800, or 1e999
    except (ValueError, RecursionError):
        _malformed(model, "it is not JSON")
    fault = find_fault(value, schema)
    if fault is not None:
        place, what = fault
        _malformed(model, f"at {shown(place)} {what}")
    return dict(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name occurs twice")
    return value


def _malformed(model: str, what: str) -> NoReturn:
    raise AnswerMalformedError(
        f"the answer of {model} is not valid: {what}. "
        "Fix: ask again in other words, or use another model."
    )
