"""JSON with comments and trailing commas: a parser with positions, and edits in place."""

import json
import re
from collections.abc import Sequence

from perdure.dataclass import dataclass, field
from perdure.errors import InvalidValueError

Path = tuple[str, ...]
_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"', re.DOTALL)
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_DEEPEST = 64
_WHITE = " \t\r\n"
_DEFAULT_UNIT = "  "
_ENDS_IN_COMMENT = re.compile(r"//[^\n]*\Z")


@dataclass(frozen=True, slots=True)
class JsonValue:
    start: int
    end: int
    plain: object


@dataclass(frozen=True, slots=True)
class JsoncElement:
    """A member of an object, or an item of an array, which has no key."""

    start: int
    key: str
    value: JsonValue
    comma: int | None = None
    """The position of the comma after it, if there is one."""

    @property
    def end(self) -> int:
        return self.value.end


@dataclass(frozen=True, slots=True)
class JsonContainer(JsonValue):
    elements: tuple[JsoncElement, ...] = field(default=())


def parse(text: str) -> JsonValue:
    """Parse a text; raises `InvalidValueError` with line and column if it is not valid."""
    parser = _JsonParser(text)
    value = parser.value(parser.blank(0), 0)
    rest = parser.blank(value.end)
    if rest != len(text):
        raise parser.wrong(rest, "text after the end")
    return value


class _JsonParser:
    def __init__(self, text: str) -> None:
        self.text = text

    def wrong(self, at: int, what: str) -> InvalidValueError:
        line = self.text.count("\n", 0, at) + 1
        column = at - (self.text.rfind("\n", 0, at) + 1) + 1
        return InvalidValueError(f"line {line}, column {column}: {what}")

    def blank(self, at: int) -> int:
        """Return the position of the next token after blanks and comments."""
        found = _BLANK.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int) -> JsonValue:
        opening = self.text[at : at + 1]
        if depth > _DEEPEST:
            raise self.wrong(at, "nested too deeply")
        if opening in {"{", "["}:
            return self._container(at, depth, "}" if opening == "{" else "]")
        if opening == '"':
            end = self._string_end(at)
            return JsonValue(at, end, self._value(at, end))
        found = _PLAIN.match(self.text, at)
        if found is None:
            raise self.wrong(at, "a value is missing")
        return JsonValue(at, found.end(), self._value(at, found.end()))

    def _value(self, start: int, end: int) -> object:
        try:
            return json.loads(self.text[start:end])
        except ValueError as error:
            raise self.wrong(start, "a value is missing") from error

    def _string_end(self, at: int) -> int:
        found = _STRING.match(self.text, at)
        if found is None:
            raise self.wrong(at, "a string has no end")
        return found.end()

    def _container(self, start: int, depth: int, closing: str) -> JsonContainer:
        elements: list[JsoncElement] = []
        at = self.blank(start + 1)
        while self.text[at : at + 1] != closing:
            if elements and elements[-1].comma is None:
                raise self.wrong(at, "a comma is missing")
            element = self._element(at, depth, is_member=closing == "}")
            behind = self.blank(element.end)
            if self.text[behind : behind + 1] == ",":
                element = JsoncElement(element.start, element.key, element.value, behind)
                behind = self.blank(behind + 1)
            elements.append(element)
            at = behind
        if closing == "}":
            plain: object = {each.key: each.value.plain for each in elements}
        else:
            plain = [each.value.plain for each in elements]
        return JsonContainer(start, at + 1, plain, tuple(elements))

    def _element(self, at: int, depth: int, *, is_member: bool) -> JsoncElement:
        if not is_member:
            return JsoncElement(at, "", self.value(at, depth + 1))
        if self.text[at : at + 1] != '"':
            raise self.wrong(at, "a name in quotes is missing")
        end = self._string_end(at)
        colon = self.blank(end)
        if self.text[colon : colon + 1] != ":":
            raise self.wrong(colon, "a colon is missing")
        value = self.value(self.blank(colon + 1), depth + 1)
        return JsoncElement(at, str(self._value(at, end)), value)


# ---------------------------------------------------------------- changes
def at(text: str, path: Path) -> JsonContainer | None:
    """Return the object or array at a path; None if it is absent.

    Raises `InvalidValueError` for any other value, and for a duplicate key.
    """
    value = parse(text)
    for depth, name in enumerate(path):
        if not isinstance(value, JsonContainer) or not isinstance(value.plain, dict):
            raise _wrong_type(path[:depth])
        found = [each for each in value.elements if each.key == name]
        if len(found) > 1:
            raise InvalidValueError(f"{'.'.join(path[: depth + 1])} is a duplicate key")
        if not found:
            return None
        value = found[0].value
    if not isinstance(value, JsonContainer):
        raise _wrong_type(path)
    return value


def _wrong_type(path: Path) -> InvalidValueError:
    return InvalidValueError(f"{'.'.join(path) or 'the file'} has another type than expected")


# ---------------------------------------------------------------- adding
def with_member(text: str, path: Path, key: str, value: object) -> str:
    return _added(text, _container_at(text, path), f"{json.dumps(key)}: ", value)


def with_item(text: str, path: Path, value: object) -> str:
    return _added(text, _container_at(text, path), "", value)


def with_value(text: str, key: str, value: object) -> str:
    """Return the text with a new value for a member of the outermost object."""
    (found,) = (each.value for each in _container_at(text, ()).elements if each.key == key)
    line = text[: found.start].rpartition("\n")[2]
    style = JsonStyle.of(text)
    outer = line[: len(line) - len(line.lstrip(" \t"))]
    new = json.dumps(value) if style.is_one_line else style.dumped(value, outer)
    return text[: found.start] + new + text[found.end :]


def _container_at(text: str, path: Path) -> JsonContainer:
    container = at(text, path)
    if container is None:
        raise _wrong_type(path)
    return container


def _added(text: str, container: JsonContainer, name: str, value: object) -> str:
    style = JsonStyle.of(text)
    if not container.elements:
        return _filled(text, container, name, value, style)
    last = container.elements[-1]
    before = _blank_before(text, last.start)
    if "\n" in before:
        between = style.newline + before.rpartition("\n")[2]
        added = name + style.dumped(value, between.removeprefix(style.newline))
    else:
        between, added = before or " ", name + json.dumps(value, ensure_ascii=False)
    return f"{text[: last.end]},{between}{added}{text[last.end :]}"  # before a trailing comma


def _filled(
    text: str, container: JsonContainer, name: str, value: object, style: "JsonStyle"
) -> str:
    start, end = container.start + 1, container.end - 1
    inner = text[start:end]
    inner = inner.rstrip(_WHITE) if inner.strip(_WHITE) else ""  # a comment stays
    if style.is_one_line and not inner:
        return f"{text[:start]}{name}{json.dumps(value, ensure_ascii=False)}{text[end:]}"
    line = text[: container.start].rpartition("\n")[2]
    outer = line[: len(line) - len(line.lstrip(" \t"))]
    own = outer + style.unit
    added = name + style.dumped(value, own)
    return f"{text[:start]}{inner}{style.newline}{own}{added}{style.newline}{outer}{text[end:]}"


@dataclass(frozen=True, slots=True)
class JsonStyle:
    newline: str
    unit: str
    is_one_line: bool

    @classmethod
    def of(cls, text: str) -> "JsonStyle":
        newline = "\r\n" if "\r\n" in text else "\n"
        found = re.search(r"^[ \t]+(?=\S)", text, re.MULTILINE)
        is_one_line = "\n" not in text.strip(_WHITE) and bool(text.strip("{}[]" + _WHITE))
        return cls(newline, found[0] if found else _DEFAULT_UNIT, is_one_line)

    def dumped(self, value: object, outer: str) -> str:
        lines = json.dumps(value, indent=self.unit, ensure_ascii=False).split("\n")
        return f"{self.newline}{outer}".join(lines)


# ---------------------------------------------------------------- removing
def without(text: str, path: Path, numbers: Sequence[int]) -> str:
    """Return the text without the elements of an object or array with these numbers, from 0."""
    for number in sorted(numbers, reverse=True):
        text = _without_one(text, _container_at(text, path), number)
    return text


def without_member(text: str, path: Path, key: str) -> str:
    elements = _container_at(text, path).elements
    return without(text, path, [n for n, each in enumerate(elements) if each.key == key])


def _without_one(text: str, container: JsonContainer, number: int) -> str:
    elements = container.elements
    gone = elements[number]
    start = _start_of(text, container, number)
    if len(elements) == 1:
        end = _end_with_comma(gone)
        return text[:start] + text[end:].lstrip(_WHITE)
    if number < len(elements) - 1:
        return text[:start] + text[_end_with_comma(gone) :]
    if gone.comma is not None:  # this file uses trailing commas: the one before keeps its own
        return text[:start] + text[gone.comma + 1 :]
    comma = elements[number - 1].comma
    assert comma is not None  # noqa: S101 - something follows it
    return text[:comma] + text[comma + 1 : start] + text[gone.end :]


def _end_with_comma(element: JsoncElement) -> int:
    return element.end if element.comma is None else element.comma + 1


def _blank_before(text: str, position: int) -> str:
    start = position
    while start and text[start - 1] in _WHITE:
        start -= 1
    return text[start:position]


def _start_of(text: str, container: JsonContainer, number: int) -> int:
    """Return where the blanks before an element start, after the end of a line comment."""
    before = container.elements[number - 1].comma if number else container.start
    assert before is not None  # noqa: S101 - something follows it
    element = container.elements[number].start
    start = element - len(_blank_before(text, element))
    if _ENDS_IN_COMMENT.search(text, before + 1, start):
        start = text.index("\n", start) + 1
    return start
