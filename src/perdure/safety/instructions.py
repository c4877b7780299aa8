"""Sentences of a text that are addressed to the agent, and a mark that they are quoted.

A page or a mail that is remembered may hold instructions. They are kept as what they are,
words of a third party. Preferences of the owner ("answer in French") are not instructions, nor are
sentences that only tell of them.
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
"""Stands before each line that holds an order."""
INLINE_LABEL = "quoted, not an instruction: "
"""Stands before a text of one line, such as an abstract."""
_MARKED = later(rf"[ \t>*+#\d.)-]{{0,40}}{re.escape(INLINE_LABEL)}")
"""How a marked line begins, in a list or under a heading too."""
END = ">"
"""The line after the last of them, so that what follows is not taken for quoted too."""

_REACH = 300
"""How far a sentence is looked at before a phrase and after it."""
_BOUND = later(_SENTENCES["BOUND"])
"""Where a sentence ends; a line that goes on with a small letter was wrapped."""
_IF = later(r"\b(?:if|when|unless|once|whether|that|because|how|why) (?:you|u) $")
_WISHED = later(_SENTENCES["WISHED"])
"""A wish, in front of what is wished for; so an order may be dressed up."""
_LEAD = later(_SENTENCES["LEAD"])
_QUOTES = {
    '"': '"',
    "\u201c": "\u201d",
    "\u201e": "\u201c",
    "\u00ab": "\u00bb",
    "`": "`",
    "\u2018": "\u2019",
}
_TELLING = 3
"""Words around a quotation that make a sentence one that tells of it."""
_WORDS = later(r"\w+")
_TEMPLATE = later(_SENTENCES["TEMPLATE"], re.IGNORECASE)
"""What a chat template might take for its own, if nothing stood in it."""
_ROLE_NEXT = later(r"\s{0,2}(?:system|user|assistant|tool|developer|model|<)")


@dataclass(frozen=True, slots=True)
class Instruction:
    start: int
    end: int


def instructions_in(text: str) -> list[Instruction]:
    """Return the sentences that are addressed to the agent, in order, but for marked ones."""
    unmarked = _unmarked(text)
    found = sorted(_phrases(unmarked, _folded(unmarked)))
    joined: list[Instruction] = []
    for start, end in found:
        if joined and start < joined[-1].end:
            joined[-1] = Instruction(joined[-1].start, max(end, joined[-1].end))
        else:
            joined.append(Instruction(start, end))
    return joined


def quoted(text: str) -> str:
    """Return the text with each line that holds an order marked as quoted.

    Marking twice is marking once, wherever the marked line is put since. What was marked can be
    given back.
    """
    while found := instructions_in(text):
        text = _marked(text, found)
    if INLINE_LABEL not in text:
        return text
    return "\n".join(_harmless(line) for line in text.split("\n"))


def quoted_inline(text: str) -> str:
    """Return a text of one line, marked if it holds an order."""
    if not instructions_in(text):
        return _harmless(text)
    return INLINE_LABEL + " ".join(_broken(text).split())


# ---------------------------------------------------------------- finding
def _folded(text: str) -> str:
    """Return the text in small letters and plain forms, character for character."""
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
    """Yield where each order's phrase stands, and the sentence that it is in."""
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
        if _addressed(folded, match, start, where) and not _told(
            text[start:end], match.start() - start
        ):
            yield start, end


@cache
def _orders() -> list[tuple[list[str], list[tuple[str, re.Pattern[str]]]]]:
    """Return the patterns, each with where it is an order, below what a text needs to have one."""
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
    """Return where the words end that a heading or a token claims for a role."""
    end = text.find("\n\n", place, place + _REACH)
    return end if end >= 0 else min(len(text), place + _REACH)


def _addressed(folded: str, match: re.Match[str], begin: int, where: str) -> bool:
    """Whether a phrase is where a reader is addressed."""
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


def _told(sentence: str, place: int) -> bool:
    """Whether a phrase is in quotation marks, in a sentence that tells of it."""
    closing = ""
    opened = 0
    for at, character in enumerate(sentence):
        if closing and character == closing:
            if opened < place < at:
                return len(_WORDS.findall(sentence[:opened] + sentence[at:])) >= _TELLING
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
    """Return a line whose tokens are broken if it is marked, by whomever."""
    if not _MARKED.match(line):
        return line
    return _TEMPLATE.sub(lambda match: match[1] + (match[2] or "\\"), line)
