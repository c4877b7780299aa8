"""The tools as clients see them: names, descriptions, arguments, and how arguments are checked.

A model pays for each word of `listed` in every request; arguments that only programs need are
accepted but not listed. Nothing heavy is imported here: a client waits for this when it starts.
"""

import re
from collections.abc import Mapping

from perdure.dataclass import dataclass, field
from perdure.errors import InvalidValueError
from perdure.model.uri import KINDS, MAX_KEY_BYTES
from perdure.model.values import MAX_CONTENT, visible

SCOPES = ("project", "person")
_NAME = re.compile(r"[a-z0-9_-]*\Z")
_MOST_TOKENS = 20_000


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a tool. Without a default, it is required."""

    default: str | int | bool | None = None
    description: str = ""
    most: int = 100
    """The greatest number, or the longest text."""
    least: int = 0
    choices: tuple[str, ...] = ()
    lines: bool = False
    is_name: bool = False
    listed: bool = True

    def schema(self) -> dict[str, object]:
        kind = {bool: "boolean", int: "integer"}.get(type(self.default), "string")
        schema: dict[str, object] = {"type": kind}
        if self.description:
            schema["description"] = self.description
        return {**schema, "enum": list(self.choices)} if self.choices else schema

    def checked(self, value: object) -> str | int | bool:
        """Return the converted value; raise `InvalidValueError`, without the value, if invalid."""
        match self.default:
            case bool():
                return self._flag(value)
            case int():
                return self._number(value)
        return self._text(value)

    def _flag(self, value: object) -> bool:
        if value in {True, False, "true", "false"}:
            return value in {True, "true"}
        raise InvalidValueError("it is neither true nor false")

    def _number(self, value: object) -> int:
        if isinstance(value, str) and value.isdecimal() and len(value) < 12:  # noqa: PLR2004
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidValueError("it is not a whole number")
        if not self.least <= value <= self.most:
            raise InvalidValueError(f"it is not from {self.least:,} to {self.most:,}")
        return value

    def _text(self, value: object) -> str:
        if not isinstance(value, str):
            raise InvalidValueError("it is not a text")
        if not self.least <= len(value) <= self.most:
            raise InvalidValueError(f"it does not have {self.least:,} to {self.most:,} characters")
        if self.choices and value not in self.choices:
            raise InvalidValueError(f"it is none of {', '.join(self.choices)}")
        if self.is_name and not _NAME.match(value):
            raise InvalidValueError("it has other characters than a-z, 0-9, _ and -")
        if self.lines:
            return value
        if visible(value) != value or "\t" in value or value != " ".join(value.splitlines()):
            raise InvalidValueError("it has a control character, or more than one line")
        return value


@dataclass(frozen=True, slots=True)
class ToolSchema:
    description: str
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    writes: bool = False
    destroys: bool = False

    def listed(self, name: str) -> dict[str, object]:
        """Return the tool's entry in the list that clients get."""
        shown = {key: each for key, each in self.arguments.items() if each.listed}
        needed = [key for key, each in shown.items() if each.default is None]
        schema: dict[str, object] = {
            "type": "object",
            "properties": {key: each.schema() for key, each in shown.items()},
        }
        hints = {"destructiveHint": self.destroys, "openWorldHint": False}
        return {
            "name": name,
            "description": self.description,
            "inputSchema": {**schema, "required": needed} if needed else schema,
            "annotations": hints if self.writes else {"readOnlyHint": True},
        }


def _uri(says: str = "") -> Argument:
    return Argument(description=says, least=1, most=MAX_KEY_BYTES)


def _budget(tokens: int) -> Argument:
    return Argument(tokens, least=100, most=_MOST_TOKENS, listed=False)


_AT = Argument("", "past date", most=40)
_NAMED = Argument("", is_name=True, listed=False)

TOOLS: Mapping[str, ToolSchema] = {
    "recall": ToolSchema(
        "Find rules, decisions, preferences, facts and what was tried in earlier sessions. Use it "
        "before work that may depend on them.",
        {
            "query": Argument(least=1, most=4_000, lines=True),
            "at": _AT,
            "valid_at": Argument("", most=40, listed=False),
            "category": Argument("", listed=False),
            "top_k": Argument(10, least=1, listed=False),
            "budget_tokens": _budget(2_000),
            "details": Argument(False, listed=False),  # noqa: FBT003 - its default
        },
    ),
    "remember": ToolSchema(
        "Keep one lasting thing, in words that need no context. Use it when the user states a "
        "rule, decides (with the reason), corrects you or asks; not for passing things or secrets.",
        {
            "text": Argument(least=1, most=MAX_CONTENT, lines=True),
            "kind": Argument("fact", choices=tuple(KINDS)),
            "scope": Argument("project", choices=SCOPES),
            "replaces": Argument("", "URI of the old one", most=MAX_KEY_BYTES),
            "category": _NAMED,
            "slug": _NAMED,
            "mask_secrets": Argument(False, listed=False),  # noqa: FBT003 - its default
        },
        writes=True,
    ),
    "read": ToolSchema(
        "Show one memory whole. Use it when recall cut it.",
        {
            "uri": _uri(),
            "at": _AT,
            "offset": Argument(0, most=2 * MAX_CONTENT),
            "budget_tokens": _budget(4_000),
        },
    ),
    "list": ToolSchema(
        "List memories. Use it when no question fits.",
        {
            "folder": Argument("", "category", most=MAX_KEY_BYTES),
            "after": Argument("", most=MAX_KEY_BYTES, listed=False),
            "archived": Argument(False, listed=False),  # noqa: FBT003 - its default
            "limit": Argument(50, least=1, most=200, listed=False),
        },
    ),
    "forget": ToolSchema(
        "Remove a memory from all later answers. Use it when the user asks.",
        {
            "uri": _uri("or ~id, or words"),
            "reason": Argument("", most=200, listed=False),
            "delete": Argument(False, listed=False),  # noqa: FBT003 - its default
        },
        writes=True,
        destroys=True,
    ),
    "history": ToolSchema(
        "List a memory's versions. Use it when asked for an earlier text.",
        {"uri": _uri(), "limit": Argument(20, least=1, most=200, listed=False)},
    ),
    "why": ToolSchema(
        "Show its evidence, and what it replaced. Use it when a memory is doubted.",
        {"uri": _uri(), "budget_tokens": _budget(2_000)},
    ),
}


def checked(name: str, given: Mapping[str, object]) -> dict[str, str | int | bool]:
    """Return all arguments of a call, with defaults; raise `InvalidValueError` if invalid."""
    if name not in TOOLS:
        raise InvalidValueError(f"there is no tool {name[:80]!a}. Fix: use {', '.join(TOOLS)}.")
    taken = TOOLS[name].arguments
    if unknown := sorted(given.keys() - taken.keys()):
        names = ", ".join(sorted(taken))
        raise InvalidValueError(f"{name} takes no {unknown[0][:80]!a}. Fix: use {names}.")
    found: dict[str, str | int | bool] = {}
    for key, argument in taken.items():
        value = given.get(key)
        if value is None and argument.default is not None:
            found[key] = argument.default
            continue
        try:
            found[key] = argument.checked(value)
        except InvalidValueError as error:
            wrong = "it is missing" if value is None else str(error)
            raise InvalidValueError(f"{name}: {key}: {wrong}. Fix: see its input schema.") from None
    return found
