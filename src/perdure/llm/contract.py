"""The contract of a language model, and the requests, schemas and replies that it uses."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, Protocol, Self, TypeGuard, TypeVar, runtime_checkable

from perdure.dataclass import asdict, dataclass, fields
from perdure.errors import InvalidValueError
from perdure.model.values import JSON, encodable, frozen, plain, shown

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_DEEPEST = 32

Schema = Mapping[str, Any]
SchemaFault = tuple[str, str]


# ---------------------------------------------------------------- schemas
def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _are_types(value: object) -> bool:
    names = value if _is_list(value) else [value]
    return bool(names) and all(isinstance(each, str) and each in _TYPES for each in names)


def _are_texts(value: object) -> bool:
    return _is_list(value) and bool(value) and all(isinstance(each, str) for each in value)


_KEYWORDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "type": (f"one of {', '.join(_TYPES)}, or a list of them", _are_types),
    "properties": ("an object of schemas", lambda value: isinstance(value, Mapping)),
    "required": ("a list of names", lambda value: value == [] or _are_texts(value)),
    "enum": ("a list of texts", _are_texts),
    **dict.fromkeys(("additionalProperties", "description", "items"), ("", lambda _: True)),
}
"""The keywords of a schema: what each must be, and a check of that."""


def check_schema(schema: object, what: str) -> None:
    """Raise `InvalidValueError` unless a schema is of an object, and has known keywords only."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise InvalidValueError(
            f'{what} is not a schema of an object. Fix: give one with "type": "object".'
        )
    _check(schema, what, _DEEPEST)


def _check(schema: object, where: str, depth: int) -> None:
    if not depth:
        raise InvalidValueError(
            f"{where} is nested too deeply. Fix: use at most {_DEEPEST} levels."
        )
    if not isinstance(schema, Mapping):
        raise InvalidValueError(f"{where} is {shown(schema)}. Fix: make it a schema, an object.")
    for word, value in schema.items():
        if word not in _KEYWORDS:
            raise InvalidValueError(
                f"{where} has the keyword {shown(word)}, which is not supported. "
                f"Fix: use {', '.join(sorted(_KEYWORDS))}."
            )
        expected, is_valid = _KEYWORDS[word]
        if not is_valid(value):
            raise InvalidValueError(f"{where}.{word} is not {expected}. Fix: make it one.")
    for name, inner in _schemas_in(schema):
        _check(inner, f"{where}.{name}", depth - 1)


def _schemas_in(schema: Schema) -> Iterator[tuple[str, object]]:
    yield from schema.get("properties", {}).items()
    if not isinstance(schema.get("additionalProperties", True), bool):
        yield "additionalProperties", schema["additionalProperties"]
    if "items" in schema:
        yield "items", schema["items"]


def is_closed(schema: Schema) -> bool:
    """Whether each object has exactly its listed properties, as strict services require."""
    names = set(schema.get("properties", {}))
    if "object" in _types(schema) and (
        schema.get("additionalProperties") is not False or set(schema.get("required", ())) != names
    ):
        return False
    return all(isinstance(each, Mapping) and is_closed(each) for _, each in _schemas_in(schema))


# ---------------------------------------------------------------- answers
def find_fault(value: JSON, schema: Schema) -> SchemaFault | None:
    """Return where a value does not fit a checked schema, and why; None if it does."""
    return next(_faults(value, schema, "$"), None)


def _faults(value: Any, schema: Schema, at: str) -> Iterator[SchemaFault]:  # noqa: ANN401 - JSON
    if "type" in schema and not any(_is_a(value, name) for name in _types(schema)):
        yield at, f"it is not of the type {' or '.join(_types(schema))}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield at, "it is not one of the allowed values"
    if isinstance(value, dict):
        yield from _faults_of_object(value, schema, at)
    elif isinstance(value, list):
        for place, each in enumerate(value if "items" in schema else ()):
            yield from _faults(each, schema["items"], f"{at}[{place}]")


def _faults_of_object(value: dict[str, Any], schema: Schema, at: str) -> Iterator[SchemaFault]:
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield at, f"it lacks {shown(name)}"
    for name, each in value.items():
        inner = properties.get(name, others)
        if inner is False:
            yield at, f"it has {shown(name)}, which is not allowed"
        elif inner is not True:
            yield from _faults(each, inner, f"{at}.{name}")


def _types(schema: Schema) -> tuple[str, ...]:
    types = schema.get("type", ())
    return (types,) if isinstance(types, str) else tuple(types)


def _is_a(value: object, name: str) -> bool:
    """Whether a value is of a type; as in the standard, 1.0 is an integer."""
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


CHOICES = frozenset({"auto", "required", "none"})
ROLES = frozenset({"system", "user", "assistant"})
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: str
    content: str

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InvalidValueError(
                f"a message has the role {shown(self.role)}. Fix: use {', '.join(sorted(ROLES))}."
            )
        if not encodable(self.content, "content of a message").strip():
            raise InvalidValueError("a message is empty. Fix: leave it out.")


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    name: str
    description: str
    input_schema: Mapping[str, JSON]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(encodable(self.name, "name of a tool")):
            raise InvalidValueError(
                f"a tool is called {shown(self.name)}. Fix: use 1 to 64 of a-z, A-Z, 0-9, _ and -."
            )
        if self.name in CHOICES:
            raise InvalidValueError(
                f"a tool is called {self.name!a}, which as a choice means something else. "
                "Fix: give it another name."
            )
        encodable(self.description, f"description of the tool {self.name!a}")
        schema = frozen(self.input_schema, f"input_schema of the tool {self.name!a}")
        check_schema(schema, f"the input_schema of the tool {self.name!a}")
        object.__setattr__(self, "input_schema", schema)


_Value = TypeVar("_Value", ChatMessage, ToolDefinition)


@dataclass(frozen=True, slots=True)
class Request:
    """Messages, with tools or with a schema for the answer, or with neither."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: str = "auto"
    schema: Mapping[str, JSON] | None = None

    def __post_init__(self) -> None:
        _check_conversation([message.role for message in self.messages])
        _check_choice(self.tool_choice, [tool.name for tool in self.tools])
        if self.schema is not None:
            if self.tools:
                raise InvalidValueError("a request has a schema and tools. Fix: give one of them.")
            schema = frozen(self.schema, "schema")
            check_schema(schema, "the schema")
            object.__setattr__(self, "schema", schema)

    @classmethod
    def parse(
        cls,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None,
        tool_choice: str,
    ) -> Self:
        return cls(
            tuple(_parse(ChatMessage, "message", each) for each in _listed(messages, "messages")),
            tuple(_parse(ToolDefinition, "tool", each) for each in _listed(tools or (), "tools")),
            tool_choice,
        )

    def as_json(self) -> dict[str, JSON]:
        """Return the request as JSON; equal requests have equal JSON."""
        return {name: plain(value) for name, value in asdict(self).items()}


def _check_conversation(roles: Sequence[str]) -> None:
    spoken = [role for role in roles if role != "system"]
    if roles != ["system"] * (len(roles) - len(spoken)) + spoken:
        raise InvalidValueError("a system message follows another. Fix: put it first.")
    if not spoken or spoken[0] != "user" or spoken[-1] != "user":
        raise InvalidValueError(
            "the conversation does not begin and end with a user message. "
            "Fix: put one first and one last."
        )


def _check_choice(choice: str, names: Sequence[str]) -> None:
    if len(names) != len(set(names)):
        raise InvalidValueError("two tools have the same name. Fix: give one of them another.")
    if choice not in CHOICES | set(names):
        raise InvalidValueError(
            f"no tool is called {shown(choice)}. Fix: use auto, required, none or a tool's name."
        )
    if choice == "required" and not names:
        raise InvalidValueError("a tool call is required, but no tool is offered. Fix: offer one.")


def _listed(given: object, what: str) -> Sequence[Mapping[str, JSON]]:
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise InvalidValueError(f"the {what} are {shown(given)}. Fix: give a list of them.")
    return given


def _parse(kind: type[_Value], name: str, given: object) -> _Value:
    names = [each.name for each in fields(kind)]
    if not isinstance(given, Mapping) or set(given) != set(names):
        raise InvalidValueError(
            f"a {name} is {shown(given)}. Fix: give an object with {', '.join(sorted(names))}."
        )
    return kind(**given)


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int
    output_tokens: int

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class ToolCall:
    tool: str
    arguments: str
    """JSON, unchecked."""


@dataclass(frozen=True, slots=True)
class Answer:
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    """None if the service does not report it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Truncation:
    usage: Usage | None = None


Reply = Answer | Refusal | Truncation


@runtime_checkable
class LLM(Protocol):
    """Answers with JSON, with tool calls, or with text, and returns only valid answers.

    Raises `AnswerMalformedError` for an answer that does not fit, `AnswerTruncatedError` for one
    that was cut off, and `AnswerRefusedError` if the model declined; no answer is repaired. A
    request that is not valid raises `InvalidValueError` before the model is called.
    """

    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
        """Return a JSON object that fits the schema, which is `{"type": "object", …}`.

        `perdure.llm.contract` lists the keywords that a schema may use.
        """

    def complete_with_tools(
        self, prompt: str, tools: Sequence[Mapping[str, JSON]], tool_choice: str = "auto"
    ) -> list[dict[str, Any]]:
        """Return each tool call as `{"tool": name, "input": {…}}`, in the model's order.

        A tool is `{"name": …, "description": …, "input_schema": {…}}`. With `auto` the model may
        call tools, with `required` it must call at least one, with `none` it must not; with a
        tool's name it must call that tool. Every call is of an offered tool, with an input that
        fits its schema. The list is empty if the model calls none.
        """

    def complete_with_tools_messages(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        tool_choice: str = "auto",
    ) -> tuple[list[dict[str, Any]], str]:
        """Return the tool calls, as above, and the text; empty if there are only calls.

        A message is `{"role": …, "content": …}`. Those with the role `system` come first; of the
        others, with `user` or `assistant`, the first and the last are the user's.
        """


@runtime_checkable
class Completer(Protocol):
    """Sends requests to a model. `MeteredCompleter` wraps one with the same interface."""

    @property
    def model(self) -> str:
        """The name of the model, for the ledger and for error messages."""

    @property
    def max_output_tokens(self) -> int:
        """The limit of tokens in an answer."""

    def complete(self, request: Request, *, seconds: float) -> Reply:
        """Send a request once, and return the reply, unchecked.

        `ServiceUnreachableError` if no complete reply arrives within `seconds`;
        `RequestRefusedError` if the service rejects the request; `AnswerMalformedError` if the
        reply does not follow the protocol.
        """


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and infinities, which Python accepts as JSON."""
    raise ValueError(name)
