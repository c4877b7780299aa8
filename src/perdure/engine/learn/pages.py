"""The statements of a page: its list items, and the paragraphs that somebody wrote around them.

A page without a list is one statement. Whatever is not touched stays to the letter. Lines end where
a line feed is, and nowhere else: what other characters separate stays together.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from perdure.artifacts import CID

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


# ---------------------------------------------------------------- the statements of a page
_SINCE = re.compile(
    r"[ \n]\((?P<doubt>may be outdated )?since (?P<day>\d{4}-\d{2}-\d{2})\)", re.ASCII
)
_LONG = len(" (may be outdated since 2026-01-01)")
_END_OF_LIST = "\n<!-- -->\n\n"
"""Keeps apart an item and what is indented below it and does not belong to it."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, and where it stands in its page."""

    text: str
    start: int
    end: int
    is_item: bool
    since: date | None = None
    """From when on it holds, as the page says; None if the page says nothing of that."""
    doubted: date | None = None
    """Since when it may be outdated, as the page says."""

    @property
    def cid(self) -> str:
        return cid_of(self.text)

    @property
    def dated(self) -> str:
        """What it says, with since when it holds."""
        return f"{self.text} (since {self.since.isoformat()})" if self.since else self.text


def cid_of(text: str) -> str:
    """Return the name of a statement, by which a node keeps what it rests on.

    It is the same however the statement stands in a page, and since when it holds there.
    """
    return str(CID.of(plain(text).encode()))


def plain(text: str) -> str:
    """Return a statement as a page has it: without white space around, or since when it holds."""
    return _dated(text)[0]


def statement_of(text: str) -> Statement:
    """Return what somebody said, as a statement that stands nowhere yet."""
    said, since, doubted = _dated(text)
    return Statement(said, 0, 0, is_item=False, since=since, doubted=doubted)


def statements(content: str) -> list[Statement]:
    """Return what a page says, in its order; headings, tables and code are no statements."""
    found = _read(content)
    if any(block.is_item for block in found):
        return found
    text = content.strip(WHITE)
    if not text:
        return []
    first = content.index(text)
    said, since, doubted = _dated(text)
    start = content.rfind("\n", 0, first) + 1
    return [Statement(said, start, first + len(text), False, since, doubted)]  # noqa: FBT003 - no item


def item(text: str, since: date | None = None, doubted: date | None = None) -> str:
    """Return a statement as an item of a list."""
    said, told, doubt = _dated(text)
    gap = "\n" if "\n" in said else " "  # code must end in a line of its own
    if day := since or told:
        said = f"{said}{gap}(since {day.isoformat()})"
    if day := doubted or doubt:
        said = f"{said}{gap}(may be outdated since {day.isoformat()})"
    first, *more = said.split("\n")
    mark = "*" if is_break(f"- {first}") else "-"
    return "\n".join([f"{mark} {first}", *(f"  {line}".rstrip(WHITE) for line in more)]) + "\n"


def alone(text: str) -> str:
    """Return a page that says one thing and nothing else."""
    page = f"{text.strip(WHITE)}\n"
    read = statements(page)
    is_one = len(read) == 1 and not read[0].is_item and read[0].text == plain(text)
    return page if is_one else item(text)


# ---------------------------------------------------------------- changing
def inserted(content: str, new: str, before: Statement | None = None) -> str:
    """Return a page with one more item: before a statement, else at its end."""
    if before is not None:
        return _joined(content, (before.start, before.start), new)
    if not content.strip(WHITE):
        return new
    ended = content if content.endswith("\n") else f"{content}\n"
    known = statements(ended)
    follows = bool(known) and known[-1].is_item and not ended[known[-1].end :].strip(WHITE)
    gap = "" if follows or _ends_with_a_gap(ended) else "\n"
    added = f"{ended}{gap}{new}"
    wanted = [*_texts(content), *_texts(new)]
    if _texts(added) == wanted:
        return added
    # What would come last is in code, or in a comment, that has no end.
    first = next((each.start for each in _read(content)), 0)
    return _joined(content, (first, first), new)


def without(content: str, gone: Statement) -> str:
    """Return a page without a statement, and without the gap that it would leave."""
    return _joined(content, (gone.start, gone.end), "")


def replaced(content: str, old: Statement, new: str) -> str:
    """Return a page that has an item in the place of a statement."""
    return _joined(content, (old.start, old.end), new)


def _joined(content: str, cut: tuple[int, int], new: str) -> str:
    """Return a page with something in the place of a part; all others still say what they said."""
    start, end = cut
    head, tail = content[:start], content[end:]
    if end > start:
        tail = tail.removeprefix("\r").removeprefix("\n")
    if not new:
        head, tail = _closed(head, tail)
    found = _read(content)
    before = [each.text for each in found if each.end <= start]
    after = [each.text for each in found if each.start >= end]
    wanted = [*before, *_texts(new), *after]
    ways = [f"{head}{new}{gap}{tail}" for gap in ("", "\n", _END_OF_LIST)]
    ways += [f"{head}\n{new}{gap}{tail}" for gap in ("", "\n", _END_OF_LIST)]
    return next((each for each in ways if _texts(each) == wanted), ways[0])


def _closed(head: str, tail: str) -> tuple[str, str]:
    """Return what was around something that is gone, without the gap that it left."""
    if head and not _ends_with_a_gap(head):
        return head, tail
    said = tail.lstrip(WHITE)
    if said:
        return head, tail[tail.rfind("\n", 0, len(tail) - len(said)) + 1 :]
    kept = head.rstrip(WHITE)
    return head[: head.find("\n", len(kept)) + 1] if kept else "", ""


def _ends_with_a_gap(content: str) -> bool:
    return content[len(content.rstrip(WHITE)) :].count("\n") > 1


# ---------------------------------------------------------------- reading
def _read(content: str) -> list[Statement]:
    found = []
    for block in blocks(content):
        said, since, doubted = _dated(block.text)
        found.append(Statement(said, block.start, block.end, block.is_item, since, doubted))
    return found


def _texts(content: str) -> list[str]:
    return [each.text for each in _read(content)]


def _dated(text: str) -> tuple[str, date | None, date | None]:
    """Return what is said, since when it holds, and since when it may not, as its end tells."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    said = "\n".join(line.rstrip(WHITE) for line in lines).strip(WHITE)
    end, since, doubted = len(said), None, None
    while found := _told_at(said, end):
        day = _day(found["day"])
        if day is None:
            break
        if found["doubt"]:
            doubted = doubted or day
        else:
            since = since or day
        end = found.start()
        while said[end - 1] in WHITE:
            end -= 1
    return said[:end], since, doubted


def _told_at(said: str, end: int) -> re.Match[str] | None:
    """Return the mark that ends there."""
    start = said.rfind("(", max(0, end - _LONG), end) - 1
    return _SINCE.fullmatch(said, start, end) if start >= 0 else None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
