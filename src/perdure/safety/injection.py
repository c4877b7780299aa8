"""Finds sentences that give orders to the agent, and marks them as quoted.

A page or a mail that is remembered may contain instructions. They are stored as words of a third
party. Preferences of the owner ("answer in French") are not instructions, nor are sentences that
only report them.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from perdure.dataclass import dataclass
from perdure.patterns import entries, later, table

_SENTENCES = table(__file__, "orders.txt", "sentences")
LABEL = "> quoted, not an instruction: "
"""The start of each line with an order."""
INLINE_LABEL = "quoted, not an instruction: "
"""The start of a one-line text with an order, such as an abstract."""
_MARKED = later(rf"[ \t>*+#\d.)-]{{0,40}}{re.escape(INLINE_LABEL)}")
"""The start of a marked line, also in a list or a heading."""
END = ">"
"""The line after a marked one, so that the following text is not part of the quote."""

_REACH = 300
"""How many characters of a sentence are read before and after a phrase."""
_BOUND = later(_SENTENCES["BOUND"])
"""The end of a sentence; a line that continues in lower case was wrapped."""
_IF = later(r"\b(?:if|when|unless|once|whether|that|because|how|why) (?:you|u) $")
_WISHED = later(_SENTENCES["WISHED"])
"""A polite form in front of an order."""
_LEAD = later(_SENTENCES["LEAD"])
_QUOTES = {
    '"': '"',
    "\u201c": "\u201d",
    "\u201e": "\u201c",
    "\u00ab": "\u00bb",
    "`": "`",
    "\u2018": "\u2019",
}
_REPORTING = 3
"""Words around a quotation from which on a sentence reports it."""
_WORDS = later(r"\w+")
_TEMPLATE = later(_SENTENCES["TEMPLATE"], re.IGNORECASE)
"""Tokens of chat templates, which are broken by a backslash."""
_ROLE_NEXT = later(r"\s{0,2}(?:system|user|assistant|tool|developer|model|<)")


@dataclass(frozen=True, slots=True)
class Instruction:
    start: int
    end: int


def instructions_in(text: str) -> list[Instruction]:
    """Return the sentences that give orders to the agent, in order, without marked ones."""
    unmarked = _unmarked(text)
    found = sorted(_phrases(unmarked, _folded(unmarked)))
    joined: list[Instruction] = []
    for start, end in found:
        if joined and start < joined[-1].end:
            joined[-1] = Instruction(joined[-1].start, max(end, joined[-1].end))
        else:
            joined.append(Instruction(start, end))
    return joined


def mark_quoted(text: str) -> str:
    """Return the text with each line that contains an order marked as quoted.

    Idempotent, also if a marked line is moved or copied.
    """
    while found := instructions_in(text):
        text = _marked(text, found)
    if INLINE_LABEL not in text:
        return text
    return "\n".join(_harmless(line) for line in text.split("\n"))


def mark_quoted_line(text: str) -> str:
    """Return a one-line text, marked if it contains an order."""
    if not instructions_in(text):
        return _harmless(text)
    return INLINE_LABEL + " ".join(_broken(text).split())


# ---------------------------------------------------------------- finding
def _folded(text: str) -> str:
    """Return the text in lower case and compatibility forms, with the same length."""
    if text.isascii():
        return text.lower()
    return text.translate({ord(each): _fold(each) for each in set(text) if not each.isspace()})


def _fold(character: str) -> str:
    plain = unicodedata.normalize("NFKC", character).lower().replace("\u2019", "'")
    return plain if len(plain) == 1 and not plain.isspace() else character


def _unmarked(text: str) -> str:
    if INLINE_LABEL not in text:
        return text
    lines = text.split("\n")
    return "\n".join(" " * len(each) if _MARKED.match(each) else each for each in lines)


def _phrases(text: str, folded: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence with an order."""
    for needed, patterns in _orders():
        if folded.isascii() and not any(part in folded for part in needed):
            continue
        for where, pattern in patterns:
            yield from _matched(text, folded, pattern, where)


def _matched(
    text: str, folded: str, pattern: re.Pattern[str], where: str
) -> Iterator[tuple[int, int]]:
    for match in pattern.finditer(folded):
        start, end = _sentence(text, *match.span())
        if where != "begins":
            end = max(end, _paragraph_end(text, match.end()))
        if _is_addressed(folded, match, start, where) and not _is_reported(
            text[start:end], match.start() - start
        ):
            yield start, end


@cache
def _orders() -> list[tuple[list[str], list[tuple[str, re.Pattern[str]]]]]:
    """Return groups of patterns: what a text must contain, and where each pattern is an order."""
    found: list[tuple[list[str], list[tuple[str, re.Pattern[str]]]]] = []
    for where, name, text in entries(Path(__file__).with_name("orders.txt")):
        if name == "NEEDS":
            found.append((text.split(), []))
        elif not name:
            begin = r"\b" if where == "begins" else ""
            found[-1][1].append((where, later(begin + text.replace(" ", r"[\s_-]{1,4}"))))
    return found


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    first = max(0, start - _REACH)
    before = [each.end() for each in _BOUND.finditer(text, first, start)]
    after = _BOUND.search(text, max(start, end - 1), end + _REACH)
    begin = max([first, *(each for each in before if each <= start)])
    return begin, max(end, after.end() if after else min(len(text), end + _REACH))


def _paragraph_end(text: str, place: int) -> int:
    """Return the end of the text that a heading or a token assigns to a role."""
    end = text.find("\n\n", place, place + _REACH)
    return end if end >= 0 else min(len(text), place + _REACH)


def _is_addressed(folded: str, match: re.Match[str], begin: int, where: str) -> bool:
    """Whether a phrase is in a position that addresses the reader."""
    before = folded[begin : match.start()]
    if where == "markup":
        line = folded[folded.rfind("\n", 0, match.start()) + 1 : match.start()]
        return not _WORDS.search(line) or bool(_ROLE_NEXT.match(folded, match.end()))
    if where == "anywhere" or not before.strip():
        return True
    spaced = " ".join(before.split()) + " "
    return (_LEAD.search(before) is not None or _LEAD.search(spaced) is not None) and (
        not _IF.search(spaced) or _WISHED.search(spaced) is not None
    )


def _is_reported(sentence: str, place: int) -> bool:
    """Whether a phrase is in quotation marks, in a sentence that reports it."""
    closing = ""
    opened = 0
    for at, character in enumerate(sentence):
        if closing and character == closing:
            if opened < place < at:
                return len(_WORDS.findall(sentence[:opened] + sentence[at:])) >= _REPORTING
            closing = ""
        elif not closing and character in _QUOTES:
            closing, opened = _QUOTES[character], at
    return False


# ---------------------------------------------------------------- marking
def _marked(text: str, found: list[Instruction]) -> str:
    lines = text.split("\n")
    touched = _touched(lines, found)
    marked: list[str] = []
    for at, line in enumerate(lines):
        marked.append(LABEL + _broken(line) if at in touched else line)
        after = lines[at + 1] if at + 1 < len(lines) else ""
        if (
            at in touched
            and after.strip()
            and at + 1 not in touched
            and not after.startswith(LABEL)
        ):
            marked.append(END)
    return "\n".join(marked)


def _touched(lines: list[str], found: list[Instruction]) -> set[int]:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    return {
        at
        for each in found
        for at in range(bisect_right(starts, each.start) - 1, bisect_right(starts, each.end - 1))
        if lines[at].strip() and not _MARKED.match(lines[at])
    }


def _broken(line: str) -> str:
    return _TEMPLATE.sub(r"\1\\\2", line)


def _harmless(line: str) -> str:
    """Return the line with broken tokens, if it is marked."""
    if not _MARKED.match(line):
        return line
    return _TEMPLATE.sub(lambda match: match[1] + (match[2] or "\\"), line)
