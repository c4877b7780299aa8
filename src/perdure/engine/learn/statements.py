"""The statements of a node: its list items, and the paragraphs around them.

A text without a list is one statement. A change of one statement leaves all others byte for byte.
A line ends at a line feed, and nowhere else. A statement is fresh if what it names in a checkout
still holds.
"""

import re
from collections.abc import Sequence
from datetime import date
from typing import Final

from perdure.context.reader import NodeReader
from perdure.dataclass import dataclass, field
from perdure.engine.learn.evidence import Support, support_of, text_of
from perdure.engine.learn.evidence import cid_of as content_cid
from perdure.engine.recall.result import Confirmation
from perdure.model import ContextNode, RequestContext, Uri
from perdure.model.anchors import (
    UNCHECKED,
    AnchorChecker,
    AnchoredStatement,
    AnchorStatus,
    session_anchors,
)
from perdure.model.uri import FIRST_NODE, kind_of
from perdure.patterns import later

WHITE: Final = " \t\r\n"

_LINE = later(r"[^\n]*\n|[^\n]+")
_ITEM = later(r"[-*+][ \t]+(?=[^ \t\r\n])")
_BELOW = later(r"[ \t]")
_BELOW_A_GAP = later(r" {2}|\t")
_FENCE = later(r" {0,3}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})", re.MULTILINE)
_COMMENT = later(r" {0,3}<!--")
_COMMENT_END = later("-->")
_UNDERLINE = later(r" {0,3}(?:=+|-+)[ \t\r\n]*\Z")
_BREAK = later(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t\r\n]*\Z")
_HEADING = later(r" {0,3}#{1,6}(?:[ \t\r\n]|\Z)")
_NO_STATEMENT = later(r" {0,3}(?:\||\[\^)| {4}|\t")
"""The beginning of a table, a footnote, or code."""
_PROPERTIES = later(r"---[ \t]*\r?\n[^\s:]+:[\s\S]*?\n(?:---|\.\.\.)[ \t\r]*(?:\n|\Z)")
"""Properties at the top of a file, as some editors write them."""
_SINCE = later(r"[ \n]\((?P<doubt>may be outdated )?since (?P<day>\d{4}-\d{2}-\d{2})\)", re.ASCII)
_LONG = len(" (may be outdated since 2026-01-01)")
_END_OF_LIST = "\n<!-- -->\n\n"
"""Separates an item from an indented block below it that does not belong to it."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, and its span in the text of its node, without the end of its last line."""

    text: str
    start: int = 0
    end: int = 0
    is_item: bool = False
    since: date | None = None
    """The day since which it holds, if the text has one."""
    doubted: date | None = None
    """The day since which it may be outdated, if the text has one."""

    @classmethod
    def read(cls, text: str, start: int = 0, end: int = 0, *, is_item: bool = False) -> "Statement":
        bare, since, doubted = _dated(text)
        return cls(bare, start, end, is_item, since, doubted)

    @property
    def cid(self) -> str:
        return cid_of(self.text)

    @property
    def dated(self) -> str:
        """The text, with the day since which it holds."""
        return f"{self.text} (since {self.since.isoformat()})" if self.since else self.text


def cid_of(text: str) -> str:
    """Return the CID of a statement, under which a node stores its support.

    It depends neither on where the statement is in a text nor on its days.
    """
    return content_cid(plain(text))


def plain(text: str) -> str:
    """Return a statement without surrounding white space and without its days."""
    return _dated(text)[0]


def statements(content: str) -> list[Statement]:
    """Return the statements of a text in order; headings, tables and code are not statements."""
    found = _read(content)
    if any(each.is_item for each in found):
        return found
    text = content.strip(WHITE)
    if not text:
        return []
    first = content.index(text)
    return [Statement.read(text, content.rfind("\n", 0, first) + 1, first + len(text))]


def item(text: str, since: date | None = None, doubted: date | None = None) -> str:
    """Return a statement as a list item, with its days."""
    bare, day, doubt = _dated(text)
    gap = "\n" if "\n" in bare else " "  # a fence must end on its own line
    if day := since or day:
        bare = f"{bare}{gap}(since {day.isoformat()})"
    if day := doubted or doubt:
        bare = f"{bare}{gap}(may be outdated since {day.isoformat()})"
    first, *more = bare.split("\n")
    mark = "*" if is_break(f"- {first}") else "-"
    return "\n".join([f"{mark} {first}", *(f"  {line}".rstrip(WHITE) for line in more)]) + "\n"


def alone(text: str) -> str:
    """Return a text that has this one statement and no other."""
    whole = f"{text.strip(WHITE)}\n"
    found = statements(whole)
    is_one = len(found) == 1 and not found[0].is_item and found[0].text == plain(text)
    return whole if is_one else item(text)


def inserted(content: str, new: str, before: Statement | None = None) -> str:
    """Return a text with one more item: before a statement, or at the end."""
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
    # The text ends in code, or in a comment, that is not closed.
    first = next((each.start for each in _read(content)), 0)
    return _joined(content, (first, first), new)


def without(content: str, gone: Statement) -> str:
    """Return a text without a statement, and without the gap that it would leave."""
    return _joined(content, (gone.start, gone.end), "")


def replaced(content: str, old: Statement, new: str) -> str:
    return _joined(content, (old.start, old.end), new)


def _joined(content: str, cut: tuple[int, int], new: str) -> str:
    """Return a text with a span replaced; all other statements stay the same."""
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
    gaps = ("", "\n", _END_OF_LIST)
    results = [f"{head}{lead}{new}{gap}{tail}" for lead in ("", "\n") for gap in gaps]
    return next((each for each in results if _texts(each) == wanted), results[0])


def _closed(head: str, tail: str) -> tuple[str, str]:
    """Return the texts before and after a removed span, without the gap that it left."""
    if head and not _ends_with_a_gap(head):
        return head, tail
    rest = tail.lstrip(WHITE)
    if rest:
        return head, tail[tail.rfind("\n", 0, len(tail) - len(rest)) + 1 :]
    bare = head.rstrip(WHITE)
    return head[: head.find("\n", len(bare)) + 1] if bare else "", ""


def _ends_with_a_gap(content: str) -> bool:
    return content[len(content.rstrip(WHITE)) :].count("\n") > 1


def _read(content: str) -> list[Statement]:
    """Return the items and paragraphs; lines indented below an item belong to it."""
    parser = _StatementParser(content)
    top = _PROPERTIES.match(content)
    for line in _LINE.finditer(content, top.end() if top else 0):
        parser.take(line.group(), line.start())
    parser.end()
    return parser.statements


def _texts(content: str) -> list[str]:
    return [each.text for each in _read(content)]


def is_break(line: str) -> bool:
    return _BREAK.match(line) is not None


@dataclass(slots=True)
class _StatementParser:
    """Takes one line after another, and tracks the block that they are in."""

    content: str
    statements: list[Statement] = field(default_factory=list)
    kind: str = ""
    """`item`, `text`, `other` for a block without statements; empty between blocks."""
    start: int = 0
    stop: int = 0
    gap: bool = False
    """Whether the last line of the block was followed by an empty one."""
    until: re.Pattern[str] | None = None
    """The end of the code or the comment that the next line is in."""

    def take(self, line: str, at: int) -> None:
        if self.until is not None:
            if self.kind:
                self._extend(line, at)
            self.until = None if self.until.search(line) else self.until
        elif not line.strip(WHITE):
            self.gap = True
            if self.kind != "item":
                self.end()
        elif self.kind == "item" and (_BELOW_A_GAP if self.gap else _BELOW).match(line):
            self._extend(line, at)
        else:
            self._take_new(line, at)

    def _take_new(self, line: str, at: int) -> None:
        if fence := _FENCE.match(line):
            if self.kind == "text":  # code right below a paragraph belongs to it
                self._extend(line, at)
            else:
                self.end()
            marks = f"{re.escape(fence['fence'][0])}{{{len(fence['fence'])},}}"
            self.until = re.compile(rf"\A {{0,3}}{marks}[ \t\r\n]*\Z")
        elif comment := _COMMENT.match(line):
            self.end()
            self.until = None if _COMMENT_END.search(line, comment.end()) else _COMMENT_END
        elif self.kind == "text" and _UNDERLINE.match(line):
            self.kind = ""  # the lines so far are a heading
        elif _BREAK.match(line) or _HEADING.match(line):
            self.end()
        elif _ITEM.match(line):
            self._begin("item", line, at)
        elif self.kind in {"text", "other"}:
            self._extend(line, at)
        else:
            self._begin("other" if _NO_STATEMENT.match(line) else "text", line, at)

    def _begin(self, kind: str, line: str, at: int) -> None:
        self.end()
        self.kind, self.start = kind, at
        self._extend(line, at)

    def _extend(self, line: str, at: int) -> None:
        self.stop = at + len(line.rstrip("\r\n"))
        self.gap = False

    def end(self) -> None:
        if self.kind in {"item", "text"}:
            raw = self.content[self.start : self.stop]
            is_item = self.kind == "item"
            text = _ITEM.sub("", raw, count=1).replace("\n  ", "\n") if is_item else raw
            self.statements.append(Statement.read(text, self.start, self.stop, is_item=is_item))
        self.kind = ""


def _dated(text: str) -> tuple[str, date | None, date | None]:
    """Return a text without the days at its end, since when it holds, and since when it may not."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    bare = "\n".join(line.rstrip(WHITE) for line in lines).strip(WHITE)
    end, since, doubted = len(bare), None, None
    while found := _mark_at(bare, end):
        try:
            day = date.fromisoformat(found["day"])
        except ValueError:
            break
        if found["doubt"]:
            doubted = doubted or day
        else:
            since = since or day
        end = found.start()
        while bare[end - 1] in WHITE:
            end -= 1
    return bare[:end], since, doubted


def _mark_at(bare: str, end: int) -> re.Match[str] | None:
    start = bare.rfind("(", max(0, end - _LONG), end) - 1
    return _SINCE.fullmatch(bare, start, end) if start >= 0 else None


# ---------------------------------------------------------------- freshness
Lines = Sequence[tuple[str, int | None, str]]
"""Statements, each as its URI, its message in a session or None, and its text."""


def verdicts_on(
    lines: Lines,
    checkout: AnchorChecker | None,
    reader: NodeReader,
    ctx: RequestContext,
    seconds: float,
) -> tuple[AnchorStatus, ...]:
    """Return whether statements hold in a checkout; one out of reach names nothing in it."""
    if checkout is None:
        return (UNCHECKED,) * len(lines)
    nodes = Confirmation(reader, ctx)
    return tuple(checkout.check([_stated(nodes, *line) for line in lines], seconds))


def _stated(nodes: Confirmation, uri: str, message: int | None, text: str) -> AnchoredStatement:
    place = Uri.parse(uri)
    if message is None and not place.session:
        stored = nodes.stored(uri)
        if stored is None:
            return AnchoredStatement(text, "")
        return stated_in(stored.node, text, support_of(stored.node).get(cid_of(text), Support()))
    first = nodes.stored(str(Uri(place.account, ("sessions", place.session, FIRST_NODE))))
    if first is None:
        return AnchoredStatement(text, "")
    return AnchoredStatement(
        text, _kind(text), first.node.date, session_anchors(first.node.metadata)
    )


def _kind(text: str) -> str:
    from perdure.engine.learn.prose import scored  # noqa: PLC0415 - only messages need it

    likeliest = max(scored(text), key=lambda each: each.score, default=None)
    return likeliest.kind if likeliest else ""


def stated_in(node: ContextNode, text: str, support: Support) -> AnchoredStatement:
    """Return a statement of a node with what it names in a checkout."""
    kind = support.kind or text_of(node.metadata.get("kind")) or kind_of(node.category)
    return AnchoredStatement(text, kind, support.when or node.date, support.all_anchors)
