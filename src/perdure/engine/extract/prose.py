"""The sentences that somebody says in their own words.

Code, logs, quotations and pasted texts are somebody else's words. They are blotted out, character
for character, so that rules can't find anything in them and every position stays what it was.
"""

import operator
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from perdure.engine.extract.voices import others_lines

BLOT = "\x1a"
"""Stands for each character that is not the speaker's own."""

_FENCE = re.compile(r"\s{0,3}(?:`{3,}|~{3,})")
_FOREIGN_LINE = re.compile(
    r"\s*>|\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:|\s*\[?\d\d:\d\d:\d\d|\s*\[?(?:DEBUG|INFO"
    r"|WARN|WARNING|ERROR|FATAL"
    r"|TRACE)\b|Traceback\b|\s*File \"|\s+at \S+[.(:]|\s*(?:\$|>>>|#|\+\+\+|---|@@|//)"
    r"\s|npm (?:ERR|WARN)"
    r"|E   |diff --git|\s*</?\w+[ >/]|\s*[\w.]{1,80}(?:Error|Exception)\b:|\s*[{}]\s*$"
)
_INDENTED = re.compile(r"(?: {4}|\t)\s*\S")
_PASTE = re.compile(
    r"\b(?:e-?mail|mail|letter|message|text|article|logs?|transcript|quote|post|ticket|review|reply"
    r"|wrote|writes|says|said|output|document|draft|prompt|story|poem|lyrics)\b[^.!?\n]{0,80}:\s*$",
    re.IGNORECASE,
)
_SPANS = re.compile(
    r"`(?P<code>[^`\n]{1,400})`|\"(?P<plain>[^\"\n]{1,400})\""
    r"|\u201c(?P<curly>[^\u201d\n]{1,400})\u201d"
    r"|\u00ab(?P<angled>[^\u00bb\n]{1,400})\u00bb"
    r"|\u201e(?P<low>[^\u201c\u201d\n]{1,400})[\u201c\u201d]"
    r"|(?<!\w)'(?P<single>[^'\n]{2,200})'(?!\w)|(?P<link>https?://\S{1,400})"
)
_END = re.compile(r"[.!?\u2026]+[\"')\]\u201d\u2019*]{0,3}(?=\s|$)|[\u3002\uff01\uff1f]")
_ABBREVIATED = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|etc|e\.g|i\.e|approx|no|inc|ltd|jr|sr|dept|u\.s"
    r"|u\.k|a\.m|p\.m)"
    r"|\b[A-Z])\Z",
    re.IGNORECASE,
)
_WRAPPED = 60
"""A line at least as long that goes on with a small letter was wrapped."""
LONGEST = 1_000
"""Characters of a sentence; what goes on without an end is cut there."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text` is what stands in the message from `start` on; `plain` is the same, blotted."""

    text: str
    plain: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    def part(self, begin: int, finish: int) -> "Sentence":
        return Sentence(self.text[begin:finish], self.plain[begin:finish], self.start + begin)


def sentences(content: str, own: Collection[str] = ()) -> list[Sentence]:
    """Return the sentences of a message, in their order, without what is somebody else's.

    `own` are the names of who speaks.
    """
    plain = own_words(content, own)
    whole = Sentence(content, plain, 0)
    return [
        sentence
        for begin, finish in _lines(plain)
        for sentence in _sentences(whole.part(begin, finish))
        if sentence.plain.replace(BLOT, "").strip()
    ]


def own_words(content: str, own: Collection[str] = ()) -> str:
    """Return the message with what is not the speaker's own blotted out, as long as before."""
    lines = content.split("\n")
    foreign = map(operator.or_, _foreign(lines), others_lines(lines, own))
    kept = (BLOT * len(line) if other else line for line, other in zip(lines, foreign, strict=True))
    return _SPANS.sub(_blot, "\n".join(kept)).replace("\u2019", "'")


def _blot(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    inside = match[kind]
    before = match.start(kind) - match.start()
    return match[0][:before] + BLOT * len(inside) + match[0][before + len(inside) :]


def _foreign(lines: list[str]) -> list[bool]:
    fenced = pasted = False
    found: list[bool] = []
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
            found.append(True)
            continue
        after_code = not found or found[-1] or not lines[len(found) - 1].strip()
        code = after_code and _INDENTED.match(line) is not None
        found.append(fenced or pasted or code or _FOREIGN_LINE.match(line) is not None)
        pasted = pasted or (not fenced and _PASTE.search(line[-200:]) is not None)
    return found


def _lines(plain: str) -> Iterator[tuple[int, int]]:
    """Yield the lines; one that was wrapped goes on in the next."""
    begin = end = 0
    for line in plain.split("\n"):
        if end > begin and not (end - begin >= _WRAPPED and line[:1].islower()):
            yield begin, end - 1
            begin = end
        end += len(line) + 1
    yield begin, max(begin, end - 1)


def _sentences(line: Sentence) -> Iterator[Sentence]:
    begin = 0
    for match in _END.finditer(line.plain):
        if match[0] == "." and _ABBREVIATED.search(
            line.plain, max(0, match.start() - 8), match.start()
        ):
            continue
        yield from _pieces(line, begin, match.end())
        begin = match.end()
    yield from _pieces(line, begin, len(line.plain))


def _pieces(line: Sentence, begin: int, finish: int) -> Iterator[Sentence]:
    for start in range(begin, finish, LONGEST):
        piece = line.part(start, min(start + LONGEST, finish))
        yield _stripped(piece)


def _stripped(piece: Sentence) -> Sentence:
    begin = len(piece.plain) - len(piece.plain.lstrip())
    return piece.part(begin, len(piece.plain.rstrip()))
