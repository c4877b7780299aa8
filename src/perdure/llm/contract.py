"""What a language model promises, what it is asked, and what it says.

A request is a value that every service can be asked with.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, Protocol, Self, TypeGuard, TypeVar, runtime_checkable

from perdure.dataclass import dataclass, fields
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


_WORDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "type": (f"one of {', '.join(_TYPES)}, or a list of them", _are_types),
    "properties": ("an object of schemas", lambda value: isinstance(value, Mapping)),
    "required": ("a list of names", lambda value: value == [] or _are_texts(value)),
    "enum": ("a list of texts", _are_texts),
    **dict.fromkeys(("additionalProperties", "description", "items"), ("", lambda _: True)),
}
"""What each word must be, and whether it is."""


def check_schema(schema: object, what: str) -> None:
    """Refuse a schema that is not of an object, or says what we can't check."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise InvalidValueError(
            f'{what} is no schema of an object. Fix: give one with "type": "object".'
        )
    _check(schema, what, _DEEPEST)


def _check(schema: object, where: str, depth: int) -> None:
    if not depth:
        raise InvalidValueError(f"{where} is nested too deep. Fix: {_DEEPEST} levels are the most.")
    if not isinstance(schema, Mapping):
        raise InvalidValueError(f"{where} is {shown(schema)}. Fix: make it a schema, an object.")
    for word, value in schema.items():
        if word not in _WORDS:
            raise InvalidValueError(
                f"{where} says {shown(word)}, which answers are not checked for. "
                f"Fix: use {', '.join(sorted(_WORDS))}."
            )
        expected, is_so = _WORDS[word]
        if not is_so(value):
            raise InvalidValueError(f"{where}.{word} is not {expected}. Fix: make it so.")
    for name, inner in _schemas_in(schema):
        _check(inner, f"{where}.{name}", depth - 1)


def _schemas_in(schema: Schema) -> Iterator[tuple[str, object]]:
    yield from schema.get("properties", {}).items()
    if not isinstance(schema.get("additionalProperties", True), bool):
        yield "additionalProperties", schema["additionalProperties"]
    if "items" in schema:
        yield "items", schema["items"]


def is_closed(schema: Schema) -> bool:
    """Whether each object has exactly the properties that it lists, as strict services ask."""
    names = set(schema.get("properties", {}))
    if "object" in _types(schema) and (
        schema.get("additionalProperties") is not False or set(schema.get("required", ())) != names
    ):
        return False
    return all(isinstance(each, Mapping) and is_closed(each) for _, each in _schemas_in(schema))


# ---------------------------------------------------------------- answers
def find_fault(value: JSON, schema: Schema) -> SchemaFault | None:
    """Return where a value does not fit a schema that was checked; None if it does."""
    return next(_faults(value, schema, "$"), None)


def _faults(value: Any, schema: Schema, at: str) -> Iterator[SchemaFault]:  # noqa: ANN401 - JSON
    if "type" in schema and not any(_is_a(value, name) for name in _types(schema)):
        yield at, f"it is no {' or '.join(_types(schema))}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield at, "it is none of the values that it may be"
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
            yield at, f"it has {shown(name)}, which it may not"
        elif inner is not True:
            yield from _faults(each, inner, f"{at}.{name}")


def _types(schema: Schema) -> tuple[str, ...]:
    types = schema.get("type", ())
    return (types,) if isinstance(types, str) else tuple(types)


def _is_a(value: object, name: str) -> bool:
    """Whether a value is of a type; 1.0 is a whole number, as the standard has it."""
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
                f"a message is of the role {shown(self.role)}. Fix: use {', '.join(sorted(ROLES))}."
            )
        if not encodable(self.content, "content of a message").strip():
            raise InvalidValueError("a message says nothing. Fix: leave it out.")


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
        kept = frozen(self.input_schema, f"input_schema of the tool {self.name!a}")
        check_schema(kept, f"the input_schema of the tool {self.name!a}")
        object.__setattr__(self, "input_schema", kept)


_Part = TypeVar("_Part", ChatMessage, ToolDefinition)


@dataclass(frozen=True, slots=True)
class Request:
    """Messages, and either tools or a schema that the answer has to fit, or neither."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: str = "auto"
    schema: Mapping[str, JSON] | None = None

    def __post_init__(self) -> None:
        _check_conversation([message.role for message in self.messages])
        _check_choice(self.tool_choice, [tool.name for tool in self.tools])
        if self.schema is not None:
            if self.tools:
                raise InvalidValueError("an answer in JSON calls no tools. Fix: offer none.")
            kept = frozen(self.schema, "schema")
            check_schema(kept, "the schema")
            object.__setattr__(self, "schema", kept)

    @classmethod
    def read(
        cls,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None,
        tool_choice: str,
    ) -> Self:
        return cls(
            tuple(_made(ChatMessage, each) for each in _listed(messages, "messages")),
            tuple(_made(ToolDefinition, each) for each in _listed(tools or (), "tools")),
            tool_choice,
        )

    def as_json(self) -> dict[str, JSON]:
        """Return all of it, so that the same request is the same JSON."""
        return {
            "messages": [{"role": each.role, "content": each.content} for each in self.messages],
            "tools": [
                {
                    "name": each.name,
                    "description": each.description,
                    "input_schema": plain(each.input_schema),
                }
                for each in self.tools
            ],
            "tool_choice": self.tool_choice,
            "schema": plain(self.schema),
        }


def _check_conversation(roles: Sequence[str]) -> None:
    spoken = [role for role in roles if role != "system"]
    if roles != ["system"] * (len(roles) - len(spoken)) + spoken:
        raise InvalidValueError("a message of the system comes late. Fix: put it first.")
    if not spoken or spoken[0] != "user" or spoken[-1] != "user":
        raise InvalidValueError(
            "the conversation does not begin and end with a message of the user. "
            "Fix: let the user speak first and last."
        )


def _check_choice(choice: str, names: Sequence[str]) -> None:
    if len(names) != len(set(names)):
        raise InvalidValueError("two tools have the same name. Fix: give one of them another.")
    if choice not in CHOICES | set(names):
        raise InvalidValueError(
            f"no tool is called {shown(choice)}. Fix: choose auto, required, none or a tool's name."
        )
    if choice == "required" and not names:
        raise InvalidValueError("a tool must be called, but there is none. Fix: offer one.")


def _listed(given: object, what: str) -> Sequence[Mapping[str, JSON]]:
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise InvalidValueError(f"the {what} are {shown(given)}. Fix: give a list of them.")
    return given


def _made(kind: type[_Part], given: object) -> _Part:
    names = [each.name for each in fields(kind)]
    if not isinstance(given, Mapping) or set(given) != set(names):
        raise InvalidValueError(
            f"a {kind.__name__.lower()} is {shown(given)}. "
            f"Fix: give an object with {', '.join(sorted(names))}."
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
    """Meant to be a JSON object; nobody has looked yet."""


@dataclass(frozen=True, slots=True)
class Answer:
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    """None if the service does not tell."""


@dataclass(frozen=True, slots=True)
class Refusal:
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Truncation:
    usage: Usage | None = None


Reply = Answer | Refusal | Truncation


@runtime_checkable
class LLM(Protocol):
    """Answers in JSON, in calls of tools, or in text. What it returns is what was asked for.

    An answer that is no such thing is `AnswerMalformedError`, one that was cut off
    `AnswerTruncatedError`, none because the model declined `AnswerRefusedError`; nothing is mended,
    and nothing guessed. What can't be asked is `InvalidValueError`, before anybody was asked.
    """

    def complete_json(self, prompt: str, schema: Mapping[str, JSON]) -> dict[str, Any]:
        """Return a JSON object that fits the schema, which is `{"type": "object", …}`.

        `perdure.llm.contract` says which words a schema may use.
        """

    def complete_with_tools(
        self, prompt: str, tools: Sequence[Mapping[str, JSON]], tool_choice: str = "auto"
    ) -> list[dict[str, Any]]:
        """Return each call of a tool as `{"tool": name, "input": {…}}`, in the model's order.

        A tool is `{"name": …, "description": …, "input_schema": {…}}`. The choice is the model's
        (`auto`), to call at least one (`required`), none (`none`), or the one of this name. Every
        call names a tool that was offered, and its input fits the schema of that tool. If the model
        calls none, the list is empty.
        """

    def complete_with_tools_messages(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        tool_choice: str = "auto",
    ) -> tuple[list[dict[str, Any]], str]:
        """Return the calls of tools, as above, and the text; empty if there are calls only.

        A message is `{"role": …, "content": …}`. Those of the role `system` come first; the others
        are of `user` and `assistant`, and the first and the last of them are the user's.
        """


@runtime_checkable
class Completer(Protocol):
    """Speaks to a model. The meter around one has the same shape."""

    @property
    def model(self) -> str:
        """The name of the model, for the ledger and for errors."""

    @property
    def max_output_tokens(self) -> int:
        """As many tokens as an answer may have."""

    def complete(self, request: Request, *, seconds: float) -> Reply:
        """Ask the model once, and return its reply, unchecked.

        `ServiceUnreachableError` if no whole answer comes within so many seconds;
        `RequestRefusedError` if the service turns the request down; `AnswerMalformedError` if what
        comes is no answer of its protocol.
        """


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and infinities, which Python reads as JSON and no service means."""
    raise ValueError(name)
