"""Texts in passages of about two hundred tokens, cut where a reader would cut them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

CHARACTERS = 900
"""About two hundred tokens of English."""
_HEADING = re.compile(r"#{1,6}[ \t]+(\S.*)")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_SENTENCE_END = re.compile(r"[.!?…]['\")\]]*\s+|\s*\n")


class Passage(NamedTuple):
    """Some lines of a text."""

    text: str
    first_line: int
    """From 1."""
    last_line: int
    headings: tuple[str, ...] = ()
    """Those that it stands under, the outermost first."""


@dataclass(slots=True)
class _Block:
    """Lines that belong together: a paragraph, a fence of code, a list."""

    text: str
    first: int
    headings: tuple[str, ...]
    section: int = 0
    """How many headings are above."""

    @property
    def last(self) -> int:
        return self.first + self.text.count("\n")


def passages(text: str) -> list[Passage]:
    """Return the passages of a Markdown text, in order; one without words has none.

    A passage never reaches over a heading. Paragraphs stay whole as long as they fit.
    """
    found: list[Passage] = []
    lines = text.split("\n")
    for block in _joined(_blocks(lines), lines):
        found += _cut(block)
    return found


def cut(text: str, first_line: int = 1) -> list[Passage]:
    """Return plain text in passages, without regard to headings; at least one, be it empty."""
    return list(_cut(_Block(text, first_line, ()))) or [Passage(text, first_line, first_line)]


def _blocks(every: list[str]) -> Iterator[_Block]:
    """Yield what blank lines and headings set apart; code stays together."""
    headings: list[tuple[int, str]] = []
    lines: list[str] = []
    first, section, fence = 1, 0, ""

    def block() -> Iterator[_Block]:
        if lines:
            titles = tuple(title for _, title in headings)
            yield _Block("\n".join(lines), first, titles, section)
            lines.clear()

    for number, line in enumerate(every, 1):
        opened = _FENCE.match(line)
        if fence:
            fence = "" if opened and line.strip() == opened[0] and opened[0] >= fence else fence
        elif opened:
            fence = opened[0]
        elif heading := _HEADING.match(line):
            yield from block()
            depth = len(line) - len(line.lstrip("#"))
            headings = [each for each in headings if each[0] < depth]
            headings.append((depth, heading[1].rstrip("# \t")))
            section += 1
            continue
        elif not line.strip():
            yield from block()
            continue
        if not lines:
            first = number
        lines.append(line)
    yield from block()


def _joined(blocks: Iterator[_Block], lines: list[str]) -> Iterator[_Block]:
    """Join small blocks under the same heading, as long as they fit into one passage."""
    last: _Block | None = None
    for block in blocks:
        if last and last.section == block.section:
            gap = "\n" + "".join(f"{line}\n" for line in lines[last.last : block.first - 1])
            if len(last.text) + len(gap) + len(block.text) <= CHARACTERS:
                last.text += gap + block.text
                continue
        if last:
            yield last
        last = block
    if last:
        yield last


def _cut(block: _Block) -> Iterator[Passage]:
    """Cut a long block at the ends of sentences, or in words if there are none."""
    text, start = block.text, 0
    while start < len(text):
        end = len(text) if len(text) - start <= CHARACTERS else _end(text, start)
        said = text[start:end]
        if said.strip():
            first = block.first + text.count("\n", 0, start + len(said) - len(said.lstrip("\n")))
            last = block.first + text.count("\n", 0, start + len(said.rstrip("\n")))
            yield Passage(said.strip("\n"), first, last, block.headings)
        start = end


def _end(text: str, start: int) -> int:
    """Return where the passage that begins at `start` ends, not too early if that can be."""
    limit = start + CHARACTERS
    least = start + CHARACTERS // 3
    ends = [found.end() for found in _SENTENCE_END.finditer(text, least, limit)]
    if ends:
        return ends[-1]
    space = text.rfind(" ", least, limit)
    return space + 1 if space > 0 else limit
