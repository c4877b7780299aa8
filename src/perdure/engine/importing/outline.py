"""What a Markdown text is about: its title, how it begins, and its headings."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from perdure.model.values import MAX_ABSTRACT, MAX_OVERVIEW, shortened

_FRONTMATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n.*?^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})(?:[ \t]+(?P<text>.*?))?(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_PROSE = re.compile(r"(?![ \t]*(?:[-*+>|]|\d+[.)]|<|!?\[|\s*$))")
"""How a line begins that is no list, quote, table, picture or HTML."""


class Heading(NamedTuple):
    level: int
    text: str


def abstract_of(text: str, otherwise: str) -> str:
    """Return the title and the lead; the title of a text without headings is `otherwise`."""
    title = next((each.text for each in headings(text) if each.text), otherwise)
    lead = _lead(text)
    return shortened(f"{title}: {lead}" if lead and lead != title else title, MAX_ABSTRACT)


def outline_of(text: str) -> str:
    """Return the headings as a list, indented by their levels; as many as there is room for."""
    found = [each for each in headings(text) if each.text]
    top = min((each.level for each in found), default=1)
    lines: list[str] = []
    left = MAX_OVERVIEW - 2
    for each in found:
        line = f"{'  ' * (each.level - top)}- {shortened(each.text, MAX_ABSTRACT)}\n"
        left -= len(line)
        if left < 0:
            return f"{''.join(lines)}…\n"
        lines.append(line)
    return "".join(lines)


def headings(text: str) -> Iterator[Heading]:
    """Yield the headings outside of code, both those with marks and those with a line below."""
    above = ""
    for line in _lines(text):
        marked = _HEADING.fullmatch(line)
        if marked:
            yield Heading(len(marked["marks"]), " ".join((marked["text"] or "").split()))
        elif above.strip() and _UNDERLINE.fullmatch(line) and _PROSE.match(above):
            yield Heading(1 if "=" in line else 2, " ".join(above.split()))
        above = "" if marked else line


def _lead(text: str) -> str:
    """Return the first paragraph that is prose, on one line."""
    found: list[str] = []
    for line in _lines(text):
        if _UNDERLINE.fullmatch(line):
            found = []
        elif line.strip() and not _HEADING.fullmatch(line) and _PROSE.match(line):
            found.append(line.strip())
        elif found:
            break
        if sum(map(len, found)) > MAX_ABSTRACT:
            break
    return " ".join(" ".join(found).split())


def _lines(text: str) -> Iterator[str]:
    """Yield the lines below the frontmatter, with those of code as empty ones."""
    fence = ""
    for line in _FRONTMATTER.sub("", text, count=1).removeprefix("\ufeff").splitlines():
        found = _FENCE.match(line)
        if not fence:
            fence = found["fence"] if found else ""
            yield "" if found else line
        else:
            yield ""
            closes = line.strip().startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closes else fence
