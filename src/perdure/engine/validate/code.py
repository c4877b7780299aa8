"""Which parts of a Markdown text are code beyond doubt, and which may be raw HTML.

Viewers disagree about where code ends inside lists, quotations and HTML. What is taken for code
here must be code for all of them; after a fence in doubt nothing is.
"""

import re
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

Span = tuple[int, int]

_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})(.*)", re.DOTALL)
_NESTED = re.compile(r"[ \t]*(?:[-*+:>]|\d{1,9}[.)]|\[\^[^\]]{1,80}\]:)")
_BEFORE_TAG = " \t>*+-0123456789.):~[]^"
_TAG = re.compile(r"<[A-Za-z/!?]")
_TICKS = re.compile(r"`+|\\[\\`]|<[A-Za-z/!?]|>")
_RUN = re.compile(r"`+")
_INDENT = 3
"""The most spaces before a fence; with more it may be something else."""


@dataclass(slots=True)
class Layout:
    """Where code is, and where a viewer may pass HTML on as it stands; each in order."""

    code: list[Span] = field(default_factory=list)
    raw: list[Span] = field(default_factory=list)


def within(spans: list[Span], place: int) -> bool:
    """Whether a place is in one of the spans, which are in order."""
    at = bisect_right(spans, (place, 1 << 62)) - 1
    return at >= 0 and place < spans[at][1]


def layout(text: str) -> Layout:
    reader = _Reader()
    for start, line in _lines(text):
        reader.read(line, start)
    return reader.found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1


class _Reader:
    """Goes through the lines of a text, and notes what they are."""

    def __init__(self) -> None:
        self.found = Layout()
        self._fence: tuple[int, str] | None = None
        """The indent and the mark of the fence that is open."""
        self._doubt = self._nested = False
        """Whether nothing is sure from here on; whether a list or quotation was seen."""
        self._raw = self._open = False
        """Of the paragraph: whether HTML began in it, or code that may go on in the next line."""
        self._fresh = True
        """Whether a paragraph would begin here."""

    def read(self, line: str, start: int) -> None:
        if self._doubt:
            self.found.raw.append((start, start + len(line) + 1))
        elif self._fence:
            self._fenced(line, start, *self._fence)
        elif not line.strip():
            self._end()
        else:
            self._prose(line, start)

    def _end(self) -> None:
        self._fence = None
        self._raw = self._open = False
        self._fresh = True

    def _fenced(self, line: str, start: int, indent: int, mark: str) -> None:
        spaces = len(line) - len(line.lstrip(" "))
        if line.strip() and spaces < indent:
            self._lose(line, start)
            return
        self.found.code.append((start, start + len(line) + 1))
        said = line.strip()
        if spaces <= _INDENT and said.startswith(mark) and not said.strip(mark[0]):
            self._end()

    def _prose(self, line: str, start: int) -> None:
        fence = _FENCE.fullmatch(line)
        if fence and not (fence[2][0] == "`" and "`" in fence[3]):
            self._begin(fence, line, start)
            return
        nested = _NESTED.match(line) is not None
        if nested and ("```" in line or "~~~" in line):
            self._lose(line, start)
            return
        self._nested |= nested
        if self._fresh and not self._nested and line.startswith(("    ", "\t")):
            self.found.code.append((start, start + len(line) + 1))
            return
        self._fresh = False
        self._paragraph(line, start)

    def _begin(self, fence: re.Match[str], line: str, start: int) -> None:
        indent = fence[1]
        if self._raw or "\t" in indent or len(indent) > _INDENT:
            self._lose(line, start)
            return
        self._fence = len(indent), fence[2]
        self.found.code.append((start, start + len(line) + 1))

    def _lose(self, line: str, start: int) -> None:
        self._doubt = True
        self.read(line, start)

    def _paragraph(self, line: str, start: int) -> None:
        self._raw |= _TAG.match(line.lstrip(_BEFORE_TAG)) is not None
        if self._raw:
            self.found.raw.append((start, start + len(line) + 1))
        elif not self._open:
            self._spans(line, start)

    def _spans(self, line: str, start: int) -> None:
        """Note the code of one line; what may go on in the next line is in doubt."""
        runs: defaultdict[int, deque[int]] = defaultdict(deque)
        for run in _RUN.finditer(line):
            runs[len(run[0])].append(run.start())
        at, in_tag = 0, False
        while found := _TICKS.search(line, at):
            at = found.end()
            if found[0][0] in "<>":
                in_tag = found[0][0] == "<"
            elif found[0] == "\\\\":
                continue
            elif in_tag or found[0] == "\\`" or not (closing := _after(runs, found)):
                self._open = True
                return
            else:
                at = closing + len(found[0])
                if "|" not in line[found.end() : closing]:  # a table would end the cell there
                    self.found.code.append((start + found.start(), start + at))


def _after(runs: defaultdict[int, deque[int]], opening: re.Match[str]) -> int:
    """Return where the run of ticks is that closes this one; 0 if none does."""
    places = runs[len(opening[0])]
    while places and places[0] <= opening.start():
        places.popleft()
    return places[0] if places else 0
