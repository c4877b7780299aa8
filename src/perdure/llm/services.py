"""Language models behind HTTP: services that speak as OpenAI's or as Anthropic's do."""

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from perdure.dataclass import dataclass, field
from perdure.errors import (
    AnswerMalformedError,
    InvalidValueError,
    LanguageModelError,
    RequestRefusedError,
    ServiceUnreachableError,
)
from perdure.http import Bounds, ExchangeError, check_service, post
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
from perdure.model.values import counted, plain, shown

STRUCTURES = ("json_schema", "tool", "text")
"""How a service is made to answer in JSON: by its own feature, by a tool whose input is the answer,
or by an instruction in the prompt."""
ANSWER = "answer"
"""The tool whose input is the answer, and the name that a schema is given."""
MAX_ANSWER = 16_000_000
"""Bytes; of a longer answer no more is read."""
_MOST_SECONDS = 120.0
"""For one attempt; models think before they write the first word."""
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n```\s*", re.DOTALL)
_FIXES = {
    400: "check the model, and whether it knows what `structured` in [llm] says",
    401: "check the API key",
    402: "pay what is due, or choose another service",
    403: "check the API key, and whether it may use the model",
    404: "check base_url and model in [llm]",
    413: "ask for less at once",
    422: "check the model, and whether it knows what `structured` in [llm] says",
    429: "wait, or ask for a higher limit",
}


@dataclass(frozen=True, slots=True)
class Service:
    """One model behind one endpoint. The key goes to this endpoint only."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    structured: str = "json_schema"
    max_output_tokens: int = 4_096
    limit_name: str = "max_tokens"
    """What the endpoint calls the limit; only where it can be called otherwise."""
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    def __post_init__(self) -> None:
        check_service(self.base_url, self.api_key, "language model")
        if not self.model:
            raise InvalidValueError("there is no name of a model. Fix: set model in [llm].")
        if self.structured not in STRUCTURES:
            raise InvalidValueError(
                f"structured is {shown(self.structured)}. Fix: use {', '.join(STRUCTURES)}."
            )
        counted(self.max_output_tokens, "most tokens of an answer", 1)


class HTTPCompleter(ABC):
    """A `Completer` over HTTP: what both protocols have in common. It tries nothing twice."""

    path: ClassVar[str]
    headers: ClassVar[Mapping[str, str]] = {}

    def __init__(self, service: Service) -> None:
        self._service = service
        self.model, self.max_output_tokens = service.model, service.max_output_tokens

    def complete(self, request: Request, *, seconds: float) -> Reply:
        reply = self._reply(self._post(self._asked(request), seconds))
        if request.schema is None or not isinstance(reply, Answer):
            return reply
        text = reply.text
        if self._service.structured == "tool":
            only = [each.tool for each in reply.calls] == [ANSWER]
            text = reply.calls[0].arguments if only else ""
        elif self._service.structured == "text":
            text = strip_fence(text)
        return Answer(text, usage=reply.usage)

    def _post(self, asked: Mapping[str, object], seconds: float) -> dict[str, Any]:
        service = self._service
        url = f"{service.base_url.rstrip('/')}/{self.path}"
        key = {"Authorization": f"Bearer {service.api_key}"} if service.api_key else {}
        bounds = Bounds(min(seconds, _MOST_SECONDS), MAX_ANSWER, service.clock)
        try:
            answer = post(url, asked, {**self.headers, **key}, bounds)
        except ExchangeError as error:
            raise self._failed(error) from None
        if not isinstance(answer, dict):
            raise self._wrong("it is no JSON object")
        return answer

    def _failed(self, error: ExchangeError) -> LanguageModelError:
        if error.is_answer:
            return self._wrong(str(error))
        otherwise = "start it" if error.is_absent else "try again later, or check base_url in [llm]"
        fix = _FIXES.get(error.status, otherwise)
        what = f"{self.model} at {self._service.base_url}: {error}. Fix: {fix}."
        if error.status and not error.passing:
            return RequestRefusedError(what)
        return ServiceUnreachableError(
            what, passing=error.passing, billed=error.billed, wait=error.wait
        )

    def _wrong(self, what: str) -> AnswerMalformedError:
        return AnswerMalformedError(
            f"what {self.model} at {self._service.base_url} sent is no answer: {what}. "
            "Fix: check base_url in [llm]."
        )

    def _asked(self, request: Request) -> dict[str, Any]:
        asked = self._said(request)
        if request.schema is not None:
            return asked | self._structured(asked["messages"], plain(request.schema))
        if request.tools:
            asked["tools"] = [self._tool(each) for each in request.tools]
            asked["tool_choice"] = self._choice(request.tool_choice)
        return asked

    def _structured(self, messages: list[dict[str, str]], schema: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        if self._service.structured == "json_schema":
            return self._formatted(schema)
        if self._service.structured == "tool":
            tool = ToolDefinition(ANSWER, "Give the answer.", schema)
            return {"tools": [self._tool(tool)], "tool_choice": self._choice(ANSWER)}
        last = {"role": "user", "content": f"{messages[-1]['content']}\n\n{schema_prompt(schema)}"}
        return {"messages": [*messages[:-1], last]}

    @abstractmethod
    def _said(self, request: Request) -> dict[str, Any]:
        """Return the model, the messages and the limit, as the protocol says them."""

    @abstractmethod
    def _formatted(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Return how the service's own feature is asked for JSON that fits."""

    @abstractmethod
    def _tool(self, tool: ToolDefinition) -> dict[str, Any]: ...

    @abstractmethod
    def _choice(self, choice: str) -> str | dict[str, Any]: ...

    @abstractmethod
    def _reply(self, reply: dict[str, Any]) -> Reply:
        """Return the reply of the service, unchecked."""


def schema_prompt(schema: Any) -> str:  # noqa: ANN401 - JSON
    return (
        "Answer with one JSON object that fits this JSON Schema, and with nothing else:\n"
        f"{json.dumps(schema, ensure_ascii=False)}"
    )


def strip_fence(text: str) -> str:
    fenced = _FENCED.fullmatch(text)
    return fenced[1] if fenced else text


def parse_usage(counts_of: object, read: Sequence[str], written: str) -> Usage | None:
    """Return the tokens that a service says it used, under its names for them; None if not all."""
    counts = _count_of(counts_of, *read), _count_of(counts_of, written)
    return None if counts[0] is None or counts[1] is None else Usage(counts[0], counts[1])


def _count_of(usage: object, *names: str) -> int | None:
    if not isinstance(usage, Mapping):
        return None
    counts = [usage.get(name) or 0 for name in names]
    if any(type(count) is not int or count < 0 for count in counts) or usage.get(names[0]) is None:
        return None
    return sum(counts)


def text_of(value: object) -> str | None:
    """Return a text; the empty one for null; None if it is anything else."""
    if value is None:
        return ""
    return value if isinstance(value, str) else None


_READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_CUT_OFF = frozenset({"max_tokens", "model_context_window_exceeded"})
_DONE = frozenset({"end_turn", "stop_sequence", "tool_use"})
_CHOICES = {"auto": {"type": "auto"}, "required": {"type": "any"}, "none": {"type": "none"}}


class AnthropicCompleter(HTTPCompleter):
    path = "v1/messages"
    headers: ClassVar[Mapping[str, str]] = {"anthropic-version": "2023-06-01"}

    def __init__(self, service: Service) -> None:
        if not service.api_key:
            raise InvalidValueError(
                "Anthropic is asked with an API key, and there is none. "
                "Fix: set api_key_variable in [llm] to the variable that holds it."
            )
        super().__init__(service)

    def _said(self, request: Request) -> dict[str, Any]:
        spoken = [
            {"role": each.role, "content": each.content}
            for each in request.messages
            if each.role != "system"
        ]
        system = [
            {"type": "text", "text": each.content}
            for each in request.messages
            if each.role == "system"
        ]
        body = {
            "model": self._service.model,
            "messages": spoken,
            "max_tokens": self._service.max_output_tokens,
        }
        return body | ({"system": system} if system else {})

    def _formatted(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}

    def _tool(self, tool: ToolDefinition) -> dict[str, Any]:
        return {
            "name": tool.name,
            "description": tool.description,
            "input_schema": plain(tool.input_schema),
        }

    def _choice(self, choice: str) -> dict[str, Any]:
        return _CHOICES.get(choice, {"type": "tool", "name": choice})

    def _reply(self, reply: dict[str, Any]) -> Reply:
        usage, stop = (
            parse_usage(reply.get("usage"), _READ, "output_tokens"),
            reply.get("stop_reason"),
        )
        blocks = reply.get("content")
        if stop == "refusal":
            return Refusal(usage)
        if stop in _CUT_OFF:
            return Truncation(usage)
        if stop not in _DONE or not isinstance(blocks, list):
            raise self._wrong("it holds no finished message")
        text = "".join(self._text(each) for each in blocks if _is(each, "text"))
        return Answer(
            text, tuple(self._call(each) for each in blocks if _is(each, "tool_use")), usage
        )

    def _text(self, block: dict[str, Any]) -> str:
        if not isinstance(block.get("text"), str):
            raise self._wrong("a text in it is none")
        return str(block["text"])

    def _call(self, block: dict[str, Any]) -> ToolCall:
        match block:
            case {"name": str(name), "input": given}:
                return ToolCall(name, json.dumps(given))
        raise self._wrong("a call of a tool in it names no tool, or has no input")


def _is(block: object, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


class OpenAICompleter(HTTPCompleter):
    path = "chat/completions"

    def _said(self, request: Request) -> dict[str, Any]:
        return {
            "model": self._service.model,
            "messages": [{"role": each.role, "content": each.content} for each in request.messages],
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
                raise self._wrong("it holds no message")
        usage = parse_usage(reply.get("usage"), ["prompt_tokens"], "completion_tokens")
        if message.get("refusal") or finish == "content_filter":
            return Refusal(usage)
        if finish == "length":
            return Truncation(usage)
        text, calls = text_of(message.get("content")), message.get("tool_calls") or []
        if text is None or not isinstance(calls, list):
            raise self._wrong("its message is no text, and no calls of tools")
        return Answer(text, tuple(self._call(each) for each in calls), usage)

    def _call(self, call: object) -> ToolCall:
        match call:
            case {"function": {"name": str(name), "arguments": str(arguments)}}:
                return ToolCall(name, arguments)
        raise self._wrong("a call of a tool in it names no tool, or has no arguments")
