"""The blocks of a page as Markdown has them: items of its lists, and paragraphs around them.

Lines end where a line feed is, and nowhere else: what other characters separate stays together.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

WHITE: Final = " \t\r\n"

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_ITEM = re.compile(r"[-*+][ \t]+(?=[^ \t\r\n])")
_BELOW = re.compile(r"[ \t]")
_BELOW_A_GAP = re.compile(r" {2}|\t")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})", re.MULTILINE)
_COMMENT = re.compile(r" {0,3}<!--")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t\r\n]*\Z")
_BREAK = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t\r\n]*\Z")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t\r\n]|\Z)")
_NO_STATEMENT = re.compile(r" {0,3}(?:\||\[\^)| {4}|\t")
"""Begins a table, a footnote, or code."""
_PROPERTIES = re.compile(r"---[ \t]*\r?\n[^\s:]+:[\s\S]*?\n(?:---|\.\.\.)[ \t\r]*(?:\n|\Z)")
"""Properties as some editors write them at the top of a file."""


@dataclass(frozen=True, slots=True)
class Block:
    """An item or a paragraph, and where it stands; its last line ends after it."""

    raw: str
    start: int
    end: int
    is_item: bool

    @property
    def text(self) -> str:
        """What it says, without what makes it an item."""
        found = _ITEM.match(self.raw)
        if not self.is_item or found is None:
            return self.raw
        first, *more = self.raw[found.end() :].split("\n")
        return "\n".join([first, *(line.removeprefix("  ") for line in more)])


def blocks(content: str) -> list[Block]:
    """Return the items and paragraphs of a page; what is indented below an item belongs to it."""
    reading = _Reading(content)
    top = _PROPERTIES.match(content)
    for line in _LINE.finditer(content, top.end() if top else 0):
        reading.take(line.group(), line.start())
    reading.end()
    return reading.found


def is_break(line: str) -> bool:
    """Whether a line is drawn across the page, and is no item."""
    return _BREAK.match(line) is not None


@dataclass(slots=True)
class _Reading:
    """Takes line after line, and knows in what block it is."""

    content: str
    found: list[Block] = field(default_factory=list)
    kind: str = ""
    """`item`, `text`, `other` for what is no statement; empty between blocks."""
    start: int = 0
    stop: int = 0
    gap: bool = False
    """Whether there was an empty line since."""
    until: Callable[[str], object] | None = None
    """What ends the code or the comment that the next line is in."""

    def take(self, line: str, at: int) -> None:
        if self.until is not None:
            self._take_inside(self.until, line, at)
        elif not line.strip(WHITE):
            self.gap = True
            if self.kind != "item":
                self.end()
        elif self.kind == "item" and (_BELOW_A_GAP if self.gap else _BELOW).match(line):
            self._go_on(line, at)
        else:
            self._take_new(line, at)

    def _take_inside(self, until: Callable[[str], object], line: str, at: int) -> None:
        if self.kind:
            self._go_on(line, at)
        if until(line):
            self.until = None

    def _take_new(self, line: str, at: int) -> None:
        """Take a line that does not belong to an item before it."""
        if _FENCE.match(line):
            self._open_code(line, at)
        elif _COMMENT.match(line):
            self.end()
            inside = line.partition("<!--")[2]
            self.until = None if _ends_comment(inside) else _ends_comment
        elif self.kind == "text" and _UNDERLINE.match(line):
            self.kind = ""  # what was read so far is a heading
        elif _BREAK.match(line) or _HEADING.match(line):
            self.end()
        elif _ITEM.match(line):
            self._begin("item", line, at)
        elif self.kind in {"text", "other"}:
            self._go_on(line, at)
        else:
            self._begin("other" if _NO_STATEMENT.match(line) else "text", line, at)

    def _open_code(self, line: str, at: int) -> None:
        """Read on until code ends; right below a paragraph it belongs to that."""
        if self.kind == "text":
            self._go_on(line, at)
        else:
            self.end()
        self.until = _end_of_code(line)

    # ------------------------------------------------------------ blocks
    def _begin(self, kind: str, line: str, at: int) -> None:
        self.end()
        self.kind, self.start = kind, at
        self._go_on(line, at)

    def _go_on(self, line: str, at: int) -> None:
        self.stop = at + len(line.rstrip("\r\n"))
        self.gap = False

    def end(self) -> None:
        if self.kind in {"item", "text"}:
            raw = self.content[self.start : self.stop]
            self.found.append(Block(raw, self.start, self.stop, self.kind == "item"))
        self.kind = ""


def _ends_comment(line: str) -> bool:
    return "-->" in line


def _end_of_code(line: str) -> Callable[[str], object]:
    """Return what tells the line that closes code from others: as many marks, or more."""
    found = _FENCE.match(line)
    fence = found["fence"] if found else "```"
    closing = re.compile(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t\r\n]*\Z")
    return closing.match
