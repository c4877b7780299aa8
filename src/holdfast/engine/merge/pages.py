"""The statements of a page: its list items, and the paragraphs that somebody wrote around them.

A page without a list is one statement. Whatever is not touched stays to the letter.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from holdfast.artifacts import CID

_ITEM = re.compile(r"[-*+] (?P<text>\S.*)")
_MORE = re.compile(r"[ \t]+\S")
_FENCE = re.compile(r"(?P<fence>`{3,}|~{3,})")
_NO_STATEMENT = re.compile(r"#{1,6}(?:\s|$)|\||-{3,}$|\*{3,}$|_{3,}$|\[\^|<!--")
_SINCE = re.compile(r" \(since (?P<day>\d{4}-\d{2}-\d{2})\)$")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, and where it stands in its page."""

    text: str
    start: int
    end: int
    is_item: bool
    since: date | None = None
    """From when on it holds, as the page says; None if the page says nothing of that."""

    @property
    def cid(self) -> str:
        return cid_of(self.text)


def cid_of(text: str) -> str:
    """Return the name of a statement, by which a node keeps what it rests on."""
    return str(CID.of(text.encode()))


def statements(content: str) -> list[Statement]:
    """Return what a page says, in its order; headings, tables and code are no statements."""
    blocks = list(_blocks(content))
    if not any(block.is_item for block in blocks):
        text = content.strip()
        start = content.find(text)
        return [_dated(text, start, start + len(text), is_item=False)] if text else []
    return blocks


def item(text: str, since: date | None = None) -> str:
    """Return a statement as an item of a list."""
    said = f"{text} (since {since.isoformat()})" if since else text
    first, *more = said.split("\n")
    return "\n".join([f"- {first}", *(f"  {line}".rstrip() for line in more)]) + "\n"


def inserted(content: str, new: str, before: Statement | None = None) -> str:
    """Return a page with one more item: before a statement, else at its end."""
    if before is not None:
        return content[: before.start] + new + content[before.start :]
    if not content.strip():
        return new
    known = statements(content)
    ended = content if content.endswith("\n") else f"{content}\n"
    follows = known and known[-1].is_item and not ended[known[-1].end :].strip()
    return ended + ("" if follows and not ended.endswith("\n\n") else "\n") + new


def without(content: str, gone: Statement) -> str:
    """Return a page without a statement, and without the gap that it would leave."""
    before, after = content[: gone.start], content[gone.end :].removeprefix("\n")
    if gone.is_item or not before.strip():
        return before + (after if gone.is_item else after.lstrip("\n"))
    return f"{before.rstrip()}\n{after}" if after.strip() else f"{before.rstrip()}\n"


def replaced(content: str, old: Statement, new: str) -> str:
    """Return a page that has an item in the place of a statement."""
    after = content[old.end :].removeprefix("\n")
    gap = "\n" if not old.is_item and after.strip() and not after.startswith("\n") else ""
    return content[: old.start] + new + gap + after


# ---------------------------------------------------------------- reading
def _blocks(content: str) -> Iterator[Statement]:
    """Yield items and paragraphs; what is indented below an item belongs to it."""
    begin, taken, is_item = 0, list[str](), False
    fence, at = "", 0
    for line in content.splitlines(keepends=True):
        found = _FENCE.match(line.lstrip())
        goes_on = bool(taken) and (bool(fence) or bool(_MORE.match(line)))
        if found and not fence:
            fence = found["fence"]
        elif found and line.strip() == fence:
            fence = ""
        starts_item = not goes_on and _ITEM.match(line) is not None
        if taken and (starts_item or (not goes_on and (is_item or not line.strip()))):
            yield from _block(taken, begin, is_item=is_item)
            taken = []
        if goes_on or starts_item or (line.strip() and (taken or not found)):
            if not taken:
                begin, is_item = at, starts_item
            taken.append(line)
        at += len(line)
    if taken:
        yield from _block(taken, begin, is_item=is_item)


def _block(lines: list[str], begin: int, *, is_item: bool) -> Iterator[Statement]:
    raw = "".join(lines).rstrip("\n")
    if is_item:
        first, *more = raw[2:].split("\n")
        text = "\n".join([first, *(line.removeprefix("  ") for line in more)])
    else:
        text = raw
    if not _NO_STATEMENT.match(text):
        yield _dated(text.rstrip(), begin, begin + len(raw), is_item=is_item)


def _dated(text: str, start: int, end: int, *, is_item: bool) -> Statement:
    found = _SINCE.search(text)
    if found is None:
        return Statement(text, start, end, is_item)
    try:
        since = date.fromisoformat(found["day"])
    except ValueError:
        return Statement(text, start, end, is_item)
    return Statement(text[: found.start()], start, end, is_item, since)
