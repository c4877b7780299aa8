"""Where everything stands in a text of JSON, be it with comments and trailing commas."""

import json
import re
from dataclasses import dataclass, field

from perdure.errors import InvalidValueError

_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"', re.DOTALL)
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class Span:
    """A value, and where it stands."""

    start: int
    end: int
    plain: object


@dataclass(frozen=True, slots=True)
class Element:
    """A member of an object, or an item of an array, which has no key."""

    start: int
    key: str
    value: Span
    comma: int | None = None
    """Where the comma behind it is, if there is one."""

    @property
    def end(self) -> int:
        return self.value.end


@dataclass(frozen=True, slots=True)
class Container(Span):
    elements: tuple[Element, ...] = field(default=())


def parse(text: str) -> Span:
    """Return what a text says; `InvalidValueError` tells the line and column where it says none."""
    reader = _Reader(text)
    value = reader.value(reader.blank(0), 0)
    rest = reader.blank(value.end)
    if rest != len(text):
        raise reader.wrong(rest, "something stands behind the end")
    return value


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def wrong(self, at: int, what: str) -> InvalidValueError:
        line = self.text.count("\n", 0, at) + 1
        column = at - (self.text.rfind("\n", 0, at) + 1) + 1
        return InvalidValueError(f"line {line}, column {column}: {what}")

    def blank(self, at: int) -> int:
        """Return where the next thing stands that is neither blank nor a comment."""
        found = _BLANK.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int) -> Span:
        opening = self.text[at : at + 1]
        if depth > _DEEPEST:
            raise self.wrong(at, "it is nested too deeply")
        if opening in {"{", "["}:
            return self._container(at, depth, "}" if opening == "{" else "]")
        if opening == '"':
            end = self._string_end(at)
            return Span(at, end, self._said(at, end))
        found = _PLAIN.match(self.text, at)
        if found is None:
            raise self.wrong(at, "there is no value")
        return Span(at, found.end(), self._said(at, found.end()))

    def _said(self, start: int, end: int) -> object:
        try:
            return json.loads(self.text[start:end])
        except ValueError as error:
            raise self.wrong(start, "there is no value") from error

    def _string_end(self, at: int) -> int:
        found = _STRING.match(self.text, at)
        if found is None:
            raise self.wrong(at, "a text is not ended")
        return found.end()

    def _container(self, start: int, depth: int, closing: str) -> Container:
        elements: list[Element] = []
        at = self.blank(start + 1)
        while self.text[at : at + 1] != closing:
            if elements and elements[-1].comma is None:
                raise self.wrong(at, "a comma is missing")
            element = self._element(at, depth, is_member=closing == "}")
            behind = self.blank(element.end)
            if self.text[behind : behind + 1] == ",":
                element = Element(element.start, element.key, element.value, behind)
                behind = self.blank(behind + 1)
            elements.append(element)
            at = behind
        if closing == "}":
            plain: object = {each.key: each.value.plain for each in elements}
        else:
            plain = [each.value.plain for each in elements]
        return Container(start, at + 1, plain, tuple(elements))

    def _element(self, at: int, depth: int, *, is_member: bool) -> Element:
        if not is_member:
            return Element(at, "", self.value(at, depth + 1))
        if self.text[at : at + 1] != '"':
            raise self.wrong(at, "a name in quotes is missing")
        end = self._string_end(at)
        colon = self.blank(end)
        if self.text[colon : colon + 1] != ":":
            raise self.wrong(colon, "a colon is missing")
        value = self.value(self.blank(colon + 1), depth + 1)
        return Element(at, str(self._said(at, end)), value)
