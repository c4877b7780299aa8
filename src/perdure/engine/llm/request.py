"""What a model is asked: a value that every service can be asked with."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from perdure.engine.llm.schemas import check_schema
from perdure.errors import InvalidValueError
from perdure.model.values import JSON, encodable, frozen, plain, shown

CHOICES = frozenset({"auto", "required", "none"})
ROLES = frozenset({"system", "user", "assistant"})
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TOOL = frozenset({"name", "description", "input_schema"})
_MESSAGE = frozenset({"role", "content"})


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InvalidValueError(
                f"a message is of the role {shown(self.role)}. Fix: use {', '.join(sorted(ROLES))}."
            )
        if not encodable(self.content, "content of a message").strip():
            raise InvalidValueError("a message says nothing. Fix: leave it out.")

    @classmethod
    def read(cls, given: Mapping[str, JSON]) -> Self:
        return cls(**_fields(given, _MESSAGE, "message"))  # type: ignore[arg-type] # it looks itself


@dataclass(frozen=True, slots=True)
class Tool:
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

    @classmethod
    def read(cls, given: Mapping[str, JSON]) -> Self:
        return cls(**_fields(given, _TOOL, "tool"))  # type: ignore[arg-type] # it looks itself


@dataclass(frozen=True, slots=True)
class Request:
    """Messages, and either tools or a schema that the answer has to fit, or neither."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
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
        """Take a request as callers write it."""
        return cls(
            tuple(Message.read(each) for each in _listed(messages, "messages")),
            tuple(Tool.read(each) for each in _listed(tools or (), "tools")),
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


def _fields(given: object, names: frozenset[str], what: str) -> Mapping[str, JSON]:
    if not isinstance(given, Mapping) or set(given) != names:
        raise InvalidValueError(
            f"a {what} is {shown(given)}. Fix: give an object with {', '.join(sorted(names))}."
        )
    return given
