"""Language models over HTTP: services with the protocol of OpenAI or of Anthropic."""

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from perdure.dataclass import asdict, dataclass, field
from perdure.errors import (
    AnswerMalformedError,
    InvalidValueError,
    LanguageModelError,
    RequestRefusedError,
    ServiceUnreachableError,
)
from perdure.http import ExchangeError, RequestLimits, check_service, post
from perdure.llm.contract import (
    CHOICES,
    Answer,
    Refusal,
    Reply,
    Request,
    ToolCall,
    ToolDefinition,
    Truncation,
    Usage,
    is_closed,
)
from perdure.model.values import count, plain, shown

STRUCTURES = ("json_schema", "tool", "text")
"""How to get JSON from a service: by its own feature, by a tool whose input is the answer, or by an
instruction in the prompt."""
ANSWER = "answer"
"""The name of that tool, and of a schema."""
MAX_ANSWER = 16_000_000
"""Bytes of an answer that are read at most."""
_MOST_SECONDS = 120.0
"""For one attempt; models may think before they write the first word."""
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n```\s*", re.DOTALL)
_FIXES = {
    400: "check the model, and whether it supports the value of `structured` in [llm]",
    401: "check the API key",
    402: "pay the bill, or choose another service",
    403: "check the API key, and whether it may use the model",
    404: "check base_url and model in [llm]",
    413: "ask for less at once",
    422: "check the model, and whether it supports the value of `structured` in [llm]",
    429: "wait, or ask for a higher limit",
}


@dataclass(frozen=True, slots=True)
class Service:
    """One model at one endpoint. The key is sent to this endpoint only."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    structured: str = "json_schema"
    max_output_tokens: int = 4_096
    limit_name: str = "max_tokens"
    """The endpoint's name of the limit; only for the protocol of OpenAI."""
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    def __post_init__(self) -> None:
        check_service(self.base_url, self.api_key, "language model")
        if not self.model:
            raise InvalidValueError("the model is not set. Fix: set model in [llm].")
        if self.structured not in STRUCTURES:
            raise InvalidValueError(
                f"structured is {shown(self.structured)}. Fix: use {', '.join(STRUCTURES)}."
            )
        count(self.max_output_tokens, "limit of tokens of an answer", 1)


class HTTPCompleter(ABC):
    """A `Completer` over HTTP: the common part of both protocols. It does not retry."""

    path: ClassVar[str]
    headers: ClassVar[Mapping[str, str]] = {}

    def __init__(self, service: Service) -> None:
        self._service = service
        self.model, self.max_output_tokens = service.model, service.max_output_tokens

    def complete(self, request: Request, *, seconds: float) -> Reply:
        reply = self._reply(self._post(self._body(request), seconds))
        if request.schema is None or not isinstance(reply, Answer):
            return reply
        text = reply.text
        if self._service.structured == "tool":
            only = [each.tool for each in reply.calls] == [ANSWER]
            text = reply.calls[0].arguments if only else ""
        elif self._service.structured == "text":
            text = strip_fence(text)
        return Answer(text, usage=reply.usage)

    def _post(self, body: Mapping[str, object], seconds: float) -> dict[str, Any]:
        service = self._service
        url = f"{service.base_url.rstrip('/')}/{self.path}"
        key = {"Authorization": f"Bearer {service.api_key}"} if service.api_key else {}
        bounds = RequestLimits(min(seconds, _MOST_SECONDS), MAX_ANSWER, service.clock)
        try:
            answer = post(url, body, {**self.headers, **key}, bounds)
        except ExchangeError as error:
            raise self._failed(error) from None
        if not isinstance(answer, dict):
            raise self._malformed("it is not a JSON object")
        return answer

    def _failed(self, error: ExchangeError) -> LanguageModelError:
        if error.is_answer:
            return self._malformed(str(error))
        default = "start it" if error.is_absent else "try again later, or check base_url in [llm]"
        fix = _FIXES.get(error.status, default)
        what = f"{self.model} at {self._service.base_url}: {error}. Fix: {fix}."
        if error.status and not error.is_transient:
            return RequestRefusedError(what)
        return ServiceUnreachableError(
            what,
            is_transient=error.is_transient,
            may_be_billed=error.may_be_billed,
            wait=error.wait,
        )

    def _malformed(self, what: str) -> AnswerMalformedError:
        return AnswerMalformedError(
            f"the reply of {self.model} at {self._service.base_url} is not valid: {what}. "
            "Fix: check base_url in [llm]."
        )

    def _body(self, request: Request) -> dict[str, Any]:
        body = self._conversation(request)
        if request.schema is not None:
            return body | self._structured(body["messages"], plain(request.schema))
        if request.tools:
            body["tools"] = [self._tool(each) for each in request.tools]
            body["tool_choice"] = self._choice(request.tool_choice)
        return body

    def _structured(self, messages: list[dict[str, str]], schema: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        if self._service.structured == "json_schema":
            return self._formatted(schema)
        if self._service.structured == "tool":
            tool = ToolDefinition(ANSWER, "Give the answer.", schema)
            return {"tools": [self._tool(tool)], "tool_choice": self._choice(ANSWER)}
        last = {"role": "user", "content": f"{messages[-1]['content']}\n\n{schema_prompt(schema)}"}
        return {"messages": [*messages[:-1], last]}

    @abstractmethod
    def _conversation(self, request: Request) -> dict[str, Any]:
        """Return the part of the body with the model, the messages and the limit."""

    @abstractmethod
    def _formatted(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Return the part of the body that uses the service's own feature for JSON."""

    @abstractmethod
    def _tool(self, tool: ToolDefinition) -> dict[str, Any]: ...

    @abstractmethod
    def _choice(self, choice: str) -> str | dict[str, Any]: ...

    @abstractmethod
    def _reply(self, reply: dict[str, Any]) -> Reply:
        """Parse the reply of the service."""


def schema_prompt(schema: Any) -> str:  # noqa: ANN401 - JSON
    return (
        "Answer with one JSON object that fits this JSON Schema, and with nothing else:\n"
        f"{json.dumps(schema, ensure_ascii=False)}"
    )


def strip_fence(text: str) -> str:
    fenced = _FENCED.fullmatch(text)
    return fenced[1] if fenced else text


def parse_usage(usage: object, read: Sequence[str], written: str) -> Usage | None:
    """Return the tokens that a service reports, under these names; None if it does not.

    Of `read`, all but the first may be missing.
    """
    if not isinstance(usage, Mapping) or usage.get(read[0]) is None or usage.get(written) is None:
        return None
    counts = [usage.get(name) or 0 for name in (written, *read)]
    if any(type(count) is not int or count < 0 for count in counts):
        return None
    return Usage(sum(counts[1:]), counts[0])


INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_CUT_OFF = frozenset({"max_tokens", "model_context_window_exceeded"})
_DONE = frozenset({"end_turn", "stop_sequence", "tool_use"})
_CHOICES = {"auto": {"type": "auto"}, "required": {"type": "any"}, "none": {"type": "none"}}


class AnthropicCompleter(HTTPCompleter):
    path = "v1/messages"
    headers: ClassVar[Mapping[str, str]] = {"anthropic-version": "2023-06-01"}

    def __init__(self, service: Service) -> None:
        if not service.api_key:
            raise InvalidValueError(
                "Anthropic needs an API key, and none is set. "
                "Fix: set api_key_variable in [llm] to the variable that holds it."
            )
        super().__init__(service)

    def _conversation(self, request: Request) -> dict[str, Any]:
        messages = request.messages
        system = [{"type": "text", "text": e.content} for e in messages if e.role == "system"]
        body = {
            "model": self._service.model,
            "messages": [asdict(each) for each in messages if each.role != "system"],
            "max_tokens": self._service.max_output_tokens,
        }
        return body | ({"system": system} if system else {})

    def _formatted(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}

    def _tool(self, tool: ToolDefinition) -> dict[str, Any]:
        return {**asdict(tool), "input_schema": plain(tool.input_schema)}

    def _choice(self, choice: str) -> dict[str, Any]:
        return _CHOICES.get(choice, {"type": "tool", "name": choice})

    def _reply(self, reply: dict[str, Any]) -> Reply:
        usage, stop = (
            parse_usage(reply.get("usage"), INPUT_COUNTS, "output_tokens"),
            reply.get("stop_reason"),
        )
        blocks = reply.get("content")
        if stop == "refusal":
            return Refusal(usage)
        if stop in _CUT_OFF:
            return Truncation(usage)
        if stop not in _DONE or not isinstance(blocks, list):
            raise self._malformed("it has no complete message")
        text = "".join(self._text(each) for each in blocks if _is(each, "text"))
        return Answer(
            text, tuple(self._call(each) for each in blocks if _is(each, "tool_use")), usage
        )

    def _text(self, block: dict[str, Any]) -> str:
        if not isinstance(block.get("text"), str):
            raise self._malformed("a text block has no text")
        return str(block["text"])

    def _call(self, block: dict[str, Any]) -> ToolCall:
        match block:
            case {"name": str(name), "input": given}:
                return ToolCall(name, json.dumps(given))
        raise self._malformed("a tool call has no name or no input")


def _is(block: object, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


class OpenAICompleter(HTTPCompleter):
    path = "chat/completions"

    def _conversation(self, request: Request) -> dict[str, Any]:
        return {
            "model": self._service.model,
            "messages": [asdict(each) for each in request.messages],
            self._service.limit_name: self._service.max_output_tokens,
        }

    def _formatted(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        described = {"name": ANSWER, "schema": schema, "strict": is_closed(schema)}
        return {"response_format": {"type": "json_schema", "json_schema": described}}

    def _tool(self, tool: ToolDefinition) -> dict[str, Any]:
        described = {
            "name": tool.name,
            "description": tool.description,
            "parameters": plain(tool.input_schema),
        }
        return {"type": "function", "function": described}

    def _choice(self, choice: str) -> str | dict[str, Any]:
        return choice if choice in CHOICES else {"type": "function", "function": {"name": choice}}

    def _reply(self, reply: dict[str, Any]) -> Reply:
        match reply.get("choices"):
            case [{"message": dict(message), "finish_reason": str(finish)}, *_]:
                pass
            case _:
                raise self._malformed("it has no message")
        usage = parse_usage(reply.get("usage"), ["prompt_tokens"], "completion_tokens")
        if message.get("refusal") or finish == "content_filter":
            return Refusal(usage)
        if finish == "length":
            return Truncation(usage)
        text, calls = message.get("content"), message.get("tool_calls") or []
        if not isinstance(text, str | None) or not isinstance(calls, list):
            raise self._malformed("its message has neither text nor tool calls")
        return Answer(text or "", tuple(self._call(each) for each in calls), usage)

    def _call(self, call: object) -> ToolCall:
        match call:
            case {"function": {"name": str(name), "arguments": str(arguments)}}:
                return ToolCall(name, arguments)
        raise self._malformed("a tool call has no name or no arguments")
