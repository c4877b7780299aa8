"""One exchange with a service through its official client, in bounds of time and size.

Both official clients come from one generator: they name their errors alike, and speak through the
same HTTP library. What is said here holds for both.
"""

import json
import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import Any, ClassVar

from perdure.dataclass import dataclass, field
from perdure.engine.llm.contract import (
    CHOICES,
    Answer,
    Call,
    Refusal,
    Reply,
    Request,
    Tool,
    Truncation,
    Usage,
    is_closed,
    no_number,
)
from perdure.errors import (
    AnswerMalformedError,
    InvalidValueError,
    LanguageModelError,
    PackageMissingError,
    RequestRefusedError,
    ServiceUnreachableError,
)
from perdure.index.embedders.openai_compatible import check_service
from perdure.model.values import JSON, counted, plain, shown

STRUCTURES = ("json_schema", "tool", "text")
"""How a service is made to answer in JSON: by its own feature, by a tool whose input is the answer,
or by being told to in the prompt."""


@dataclass(frozen=True, slots=True)
class Service:
    """One model behind one endpoint. The key is told to nobody else."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    structured: str = "json_schema"
    max_output_tokens: int = 4_096
    limit_name: str = "max_tokens"
    """What the endpoint calls the limit; only where it can be called otherwise."""
    connect_seconds: float = 10.0
    read_seconds: float = 120.0
    """For how long nothing may come; models think before they say the first word."""

    def __post_init__(self) -> None:
        check_service(self.base_url, self.api_key, "language model")
        if not self.model:
            raise InvalidValueError("there is no name of a model. Fix: set model in [llm].")
        if self.structured not in STRUCTURES:
            raise InvalidValueError(
                f"structured is {shown(self.structured)}. Fix: use {', '.join(STRUCTURES)}."
            )
        counted(self.max_output_tokens, "most tokens of an answer", 1)

    def parameters(self, adapter: str) -> Mapping[str, JSON]:
        """Return all that an answer depends on besides the request, and who asked."""
        return {
            "adapter": adapter,
            "base_url": self.base_url,
            "model": self.model,
            "structured": self.structured,
            "max_output_tokens": self.max_output_tokens,
        }


ANSWER = "answer"
"""The tool whose input is the answer, and the name that a schema is given."""
MAX_ANSWER = 16_000_000
"""Bytes; of a longer answer no more is read."""
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n```\s*", re.DOTALL)
_HEADERS = frozenset(
    {"host", "connection", "accept", "accept-encoding", "user-agent", "content-type"}
    | {"content-length", "transfer-encoding", "anthropic-version"}
    | {"x-stainless-raw-response"}  # by which the clients remember what they were asked for
)
"""All that is said to a service besides the request and the key."""
_SECRETS = frozenset({"authorization", "x-api-key"})
_NOT_BEGUN = frozenset({429, 503, 529})
"""The service says that it did not begin, so that there is nothing to pay for."""
_TIMED_OUT, _CONFLICT, _BUSY, _SERVER_ERRORS = 408, 409, 429, 500
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

Clock = Callable[[], float]


def load(package: str) -> Any:  # noqa: ANN401 - a module without a type here
    try:
        return import_module(package)
    except ImportError as error:
        raise PackageMissingError(
            f"the language model needs a package that can't be imported: {error}. "
            f"Fix: pip install '.[{package}]' from a checkout."
        ) from error


class Wire:
    """Sends what a client is told to send, and returns the JSON that comes back."""

    def __init__(self, package: Any, service: Service, clock: Clock = time.monotonic) -> None:  # noqa: ANN401 - as above
        self._package = package
        self._service = service
        self._clock = clock
        key = service.api_key
        self._secrets = {"authorization": f"Bearer {key}", "x-api-key": key}
        self._http = import_module("httpx2")
        hooks = {"request": [self._begin], "response": [self._bound]}
        self.client = package.DefaultHttpxClient(event_hooks=hooks, follow_redirects=False)
        """What the official client is to send with; it follows nobody elsewhere."""

    def close(self) -> None:
        self.client.close()

    def ask(self, create: Callable[..., Any], seconds: float, **asked: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
        if seconds <= 0:
            raise self._unreachable("there is no time left for it", billed=False)
        try:
            return self._parsed(create(**asked, timeout=self._timeout(seconds)).http_response)
        except self._package.APIStatusError as error:
            raise self._refused(error.response.status_code, error.response.headers) from None
        except (self._package.APIError, self._http.HTTPError, _BoundError) as error:
            raise self._broken(error) from None

    # ------------------------------------------------------------ bounds
    def _timeout(self, seconds: float) -> Any:  # noqa: ANN401 - as above
        """Return how long each step may take.

        To wait for a connection of the pool is allowed all of the time, so that each request tells
        when its answer must have come.
        """
        read = min(self._service.read_seconds, seconds)
        connect = min(self._service.connect_seconds, seconds)
        return self._http.Timeout(connect=connect, read=read, write=read, pool=seconds)

    def _begin(self, request: Any) -> None:  # noqa: ANN401 - as above
        """Note when the answer must have come, and tell the service nothing but what it needs.

        The clients add what they find in the environment, which may be meant for somebody else, and
        what they know of this machine.
        """
        request.extensions["until"] = self._clock() + request.extensions["timeout"]["pool"]
        allowed = _HEADERS | (_SECRETS if self._service.api_key else frozenset())
        for name in set(request.headers) - allowed:
            del request.headers[name]
        for name in _SECRETS & set(request.headers):
            request.headers[name] = self._secrets[name]

    def _bound(self, response: Any) -> None:  # noqa: ANN401 - as above
        until = response.request.extensions["until"]
        response.stream = _bounded(self._http, response.stream, lambda: self._clock() > until)

    # ------------------------------------------------------------ answers
    def _parsed(self, response: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
        try:
            told = json.loads(response.content, parse_constant=no_number)
        except (ValueError, RecursionError):
            raise self.wrong("it is no JSON") from None
        if not isinstance(told, dict):
            raise self.wrong("it is no JSON object")
        return told

    def wrong(self, what: str) -> AnswerMalformedError:
        return AnswerMalformedError(
            f"what {self._where} sent is no answer: {what}. Fix: check base_url in [llm]."
        )

    # ------------------------------------------------------------ errors
    @property
    def _where(self) -> str:
        return f"{self._service.model} at {self._service.base_url}"

    def _refused(self, status: int, headers: Mapping[str, str]) -> LanguageModelError:
        fix = _FIXES.get(status, "try again later, or check base_url in [llm]")
        told = f"it answered with status {status}"
        if status not in {_TIMED_OUT, _CONFLICT, _BUSY} and status < _SERVER_ERRORS:
            return RequestRefusedError(f"{self._where}: {told}. Fix: {fix}.")
        return self._unreachable(
            told,
            fix,
            passing=True,
            billed=status not in _NOT_BEGUN,
            wait=_seconds(headers.get("Retry-After")),
        )

    def _broken(self, error: Exception) -> LanguageModelError:
        found = list(_causes(error))
        if any(isinstance(each, _TooLongError) for each in found):
            return self.wrong(f"it is longer than {MAX_ANSWER // 1_000_000} MB")
        never_there = (self._http.ConnectError, self._http.ConnectTimeout, self._http.PoolTimeout)
        billed = not any(isinstance(each, never_there) for each in found)
        if any(isinstance(each, ConnectionRefusedError) for each in found):
            return self._unreachable("nobody listens there", "start it", billed=False)
        if any(isinstance(each, self._http.TimeoutException | _TooSlowError) for each in found):
            return self._unreachable("it did not answer in time", passing=True, billed=billed)
        what = "it broke off its answer" if billed else "it can't be reached"
        return self._unreachable(what, passing=True, billed=billed)

    def _unreachable(
        self,
        what: str,
        fix: str = "try again later",
        **more: Any,  # noqa: ANN401 - the error's own
    ) -> ServiceUnreachableError:
        return ServiceUnreachableError(f"{self._where}: {what}. Fix: {fix}.", **more)


# ---------------------------------------------------------------- bodies
class _BoundError(Exception):
    """An answer went out of bounds; the clients let it pass, or wrap it."""


class _TooLongError(_BoundError): ...


class _TooSlowError(_BoundError): ...


def _bounded(http: Any, stream: Any, is_late: Callable[[], bool]) -> Any:  # noqa: ANN401 - as above
    class Bounded(http.SyncByteStream):  # type: ignore[misc] # its base is imported late
        def __iter__(self) -> Iterator[bytes]:
            size = 0
            for piece in stream:
                size += len(piece)
                if size > MAX_ANSWER:
                    raise _TooLongError
                if is_late():
                    raise _TooSlowError
                yield piece

        def close(self) -> None:
            stream.close()

    return Bounded()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _seconds(told: str | None) -> float:
    """Return for how long a service wants to be left alone: so many seconds, or until a date."""
    if not told:
        return 0.0
    try:
        seconds = float(told)
    except ValueError:
        return _seconds_until(told)
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


def _seconds_until(told: str) -> float:
    try:
        moment = parsedate_to_datetime(told)
    except ValueError:
        return 0.0
    return max(0.0, (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds())


# ---------------------------------------------------------------- adapters
class Adapter(ABC):
    """A `Completer` through an official client: what the protocols have in common."""

    protocol: ClassVar[str]
    _create: Callable[..., Any]

    def __init__(self, package: Any, service: Service, clock: Clock) -> None:  # noqa: ANN401 - as above
        self._service = service
        self._wire = Wire(package, service, clock)

    def close(self) -> None:
        self._wire.close()

    @property
    def parameters(self) -> Mapping[str, JSON]:
        return self._service.parameters(self.protocol)

    @property
    def max_output_tokens(self) -> int:
        return self._service.max_output_tokens

    def complete(self, request: Request, *, seconds: float) -> Reply:
        reply = self._reply(self._wire.ask(self._create, seconds, **self._asked(request)))
        if request.schema is None or not isinstance(reply, Answer):
            return reply
        text = reply.text
        if self._service.structured == "tool":
            only = [each.tool for each in reply.calls] == [ANSWER]
            text = reply.calls[0].arguments if only else ""
        elif self._service.structured == "text":
            text = unfenced(text)
        return Answer(text, usage=reply.usage)

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
            tool = Tool(ANSWER, "Give the answer.", schema)
            return {"tools": [self._tool(tool)], "tool_choice": self._choice(ANSWER)}
        last = {"role": "user", "content": f"{messages[-1]['content']}\n\n{in_words(schema)}"}
        return {"messages": [*messages[:-1], last]}

    @abstractmethod
    def _said(self, request: Request) -> dict[str, Any]:
        """Return the model, the messages and the limit, as the protocol says them."""

    @abstractmethod
    def _formatted(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Return how the service's own feature is asked for JSON that fits."""

    @abstractmethod
    def _tool(self, tool: Tool) -> dict[str, Any]: ...

    @abstractmethod
    def _choice(self, choice: str) -> str | dict[str, Any]: ...

    @abstractmethod
    def _reply(self, told: dict[str, Any]) -> Reply:
        """Return what the service said, unchecked."""


def in_words(schema: Any) -> str:  # noqa: ANN401 - JSON
    return (
        "Answer with one JSON object that fits this JSON Schema, and with nothing else:\n"
        f"{json.dumps(schema, ensure_ascii=False)}"
    )


def unfenced(text: str) -> str:
    fenced = _FENCED.fullmatch(text)
    return fenced[1] if fenced else text


def usage_of(told: object, read: Sequence[str], written: str) -> Usage | None:
    """Return the tokens that a service says it used, under its names for them; None if not all."""
    counts = _count_of(told, *read), _count_of(told, written)
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


class Anthropic(Adapter):
    """A `Completer` through the official `anthropic` client, which tries nothing twice itself."""

    protocol = "anthropic"

    def __init__(self, service: Service, *, clock: Clock = time.monotonic) -> None:
        if not service.api_key:
            raise InvalidValueError(
                "Anthropic is asked with an API key, and there is none. "
                "Fix: set api_key_variable in [llm] to the variable that holds it."
            )
        anthropic = load("anthropic")
        super().__init__(anthropic, service, clock)
        client = anthropic.Anthropic(
            base_url=service.base_url,
            api_key=service.api_key,
            max_retries=0,
            open_telemetry=False,
            http_client=self._wire.client,
        )
        self._create = client.messages.with_raw_response.create

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
        said = {
            "model": self._service.model,
            "messages": spoken,
            "max_tokens": self._service.max_output_tokens,
        }
        return said | ({"system": system} if system else {})

    def _formatted(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}

    def _tool(self, tool: Tool) -> dict[str, Any]:
        return {
            "name": tool.name,
            "description": tool.description,
            "input_schema": plain(tool.input_schema),
        }

    def _choice(self, choice: str) -> dict[str, Any]:
        return _CHOICES.get(choice, {"type": "tool", "name": choice})

    def _reply(self, told: dict[str, Any]) -> Reply:
        usage, stop = usage_of(told.get("usage"), _READ, "output_tokens"), told.get("stop_reason")
        blocks = told.get("content")
        if stop == "refusal":
            return Refusal(usage)
        if stop in _CUT_OFF:
            return Truncation(usage)
        if stop not in _DONE or not isinstance(blocks, list):
            raise self._wire.wrong("it holds no finished message")
        text = "".join(self._text(each) for each in blocks if _is(each, "text"))
        return Answer(
            text, tuple(self._call(each) for each in blocks if _is(each, "tool_use")), usage
        )

    def _text(self, block: dict[str, Any]) -> str:
        if not isinstance(block.get("text"), str):
            raise self._wire.wrong("a text in it is none")
        return str(block["text"])

    def _call(self, block: dict[str, Any]) -> Call:
        match block:
            case {"name": str(name), "input": given}:
                return Call(name, json.dumps(given))
        raise self._wire.wrong("a call of a tool in it names no tool, or has no input")


def _is(block: object, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


class OpenAICompatible(Adapter):
    """A `Completer` through the official `openai` client, which tries nothing twice itself."""

    protocol = "openai"

    def __init__(self, service: Service, *, clock: Clock = time.monotonic) -> None:
        openai = load("openai")
        super().__init__(openai, service, clock)
        client = openai.OpenAI(
            base_url=service.base_url,
            api_key=service.api_key or "none",  # which the wire keeps to itself
            max_retries=0,
            http_client=self._wire.client,
        )
        self._create = client.chat.completions.with_raw_response.create

    def _said(self, request: Request) -> dict[str, Any]:
        return {
            "model": self._service.model,
            "messages": [{"role": each.role, "content": each.content} for each in request.messages],
            self._service.limit_name: self._service.max_output_tokens,
        }

    def _formatted(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        described = {"name": ANSWER, "schema": schema, "strict": is_closed(schema)}
        return {"response_format": {"type": "json_schema", "json_schema": described}}

    def _tool(self, tool: Tool) -> dict[str, Any]:
        described = {
            "name": tool.name,
            "description": tool.description,
            "parameters": plain(tool.input_schema),
        }
        return {"type": "function", "function": described}

    def _choice(self, choice: str) -> str | dict[str, Any]:
        return choice if choice in CHOICES else {"type": "function", "function": {"name": choice}}

    def _reply(self, told: dict[str, Any]) -> Reply:
        match told.get("choices"):
            case [{"message": dict(message), "finish_reason": str(finish)}, *_]:
                pass
            case _:
                raise self._wire.wrong("it holds no message")
        usage = usage_of(told.get("usage"), ["prompt_tokens"], "completion_tokens")
        if message.get("refusal") or finish == "content_filter":
            return Refusal(usage)
        if finish == "length":
            return Truncation(usage)
        text, calls = text_of(message.get("content")), message.get("tool_calls") or []
        if text is None or not isinstance(calls, list):
            raise self._wire.wrong("its message is no text, and no calls of tools")
        return Answer(text, tuple(self._call(each) for each in calls), usage)

    def _call(self, told: object) -> Call:
        match told:
            case {"function": {"name": str(name), "arguments": str(arguments)}}:
                return Call(name, arguments)
        raise self._wire.wrong("a call of a tool in it names no tool, or has no arguments")
