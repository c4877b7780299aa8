"""What can be seen of one note alone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from perdure.context import frontmatter
from perdure.context.files import CONTENT, META
from perdure.context.links import located
from perdure.engine.lint.problem import Code, Problem
from perdure.errors import InvalidValueError
from perdure.model import ContextNode, Uri
from perdure.model.record import VALID_FROM, VALID_UNTIL
from perdure.model.values import read_moment, shown

_SOON = timedelta(days=2)
"""Clocks and zones differ by less; what was written later than this was not written yet."""
_FAR = timedelta(days=100 * 366)
_TIMES = ("date", VALID_FROM, VALID_UNTIL)
_NAMES = ("slug", "name", "id")
"""By what people give a note its name in its frontmatter."""


@dataclass(frozen=True, slots=True)
class Note:
    """A node, and what its files say to the letter."""

    node: ContextNode
    folder: str
    content: str
    meta: str

    def problem(self, code: Code, file: str, line: int, what: str, fix: str) -> Problem:
        return Problem(f"{self.folder}/{file}", line, code.value, what, fix, self.node.uri)

    def meta_line(self, name: str) -> int:
        """Return the line of the meta in which a name stands."""
        return line_with(self.meta, f'"{name}"')

    @property
    def above(self) -> int:
        """How many lines of the file stand before the body."""
        body = self.node.content
        if not self.content.endswith(body):  # an edit broke it, and what was before counts
            return 0
        return self.content.count("\n", 0, len(self.content) - len(body))

    def links(self) -> Iterator[tuple[int, str]]:
        """Yield what the note links to, each with its line in the file."""
        for line, target in located(self.node.content):
            yield self.above + line, target


def line_with(text: str, words: str) -> int:
    at = text.find(words)
    return 0 if at < 0 else text.count("\n", 0, at) + 1


# ---------------------------------------------------------------- fields
def fields(note: Note) -> Iterator[Problem]:
    """Expect that a note says something, and has a title if somebody wrote a frontmatter."""
    if not note.node.content.strip():
        fix = f"write something, or `perdure delete` {note.node.uri}"
        yield note.problem(Code.CONTENT_EMPTY, CONTENT, 1, "it says nothing", fix)
    said = _frontmatter(note)
    if said and not str(said.get("title") or "").strip():
        what, fix = "its frontmatter has no title", "add a line such as `title: A name`"
        yield note.problem(Code.TITLE_MISSING, CONTENT, 1, what, fix)


def names(note: Note) -> Iterator[Problem]:
    """Expect that a note calls itself as its folder is called."""
    said, name = _frontmatter(note), Uri.parse(note.node.uri).name
    for key in _NAMES:
        value = said.get(key)
        if isinstance(value, str) and value.strip() and value.strip() not in {name, note.node.uri}:
            what = f"its {key} is {shown(value)}, but its folder is called {shown(name)}"
            fix = f"make them one; `perdure move` gives {note.node.uri} another name"
            line = line_with(note.content, f"{key}:")
            yield note.problem(Code.NAME_DIFFERS, CONTENT, line, what, fix)


def _frontmatter(note: Note) -> dict[str, object]:
    """Return what its owner wrote above the body; what we generated is right by itself."""
    lines = note.node.frontmatter
    if not lines or not lines.strip():
        return {}
    try:
        return frontmatter.parsed(lines)
    except InvalidValueError:  # which is told of as a problem of the node
        return {}


# ---------------------------------------------------------------- dates
def dates(note: Note, now: datetime) -> Iterator[Problem]:
    """Expect times that can be read, in their order, and none that nobody can know of."""
    metadata, times = note.node.metadata, {}
    for name in _TIMES:
        value = metadata.get(name)
        times[name] = None if value is None else read_moment(value)
        if value is not None and times[name] is None:
            what, fix = f"its {name} is {shown(value)}, which is no time", "write it as 2026-03-02"
            yield note.problem(Code.DATE_UNREADABLE, META, note.meta_line(name), what, fix)
    start, end = times[VALID_FROM], times[VALID_UNTIL]
    if start is not None and end is not None and start > end:
        what = f"it holds from {start:%Y-%m-%d}, but only until {end:%Y-%m-%d}"
        line = note.meta_line(VALID_UNTIL)
        yield note.problem(Code.DATE_ORDER, META, line, what, "correct one of the two")
    yield from _future(note, now, times)


def _future(note: Note, now: datetime, times: dict[str, datetime | None]) -> Iterator[Problem]:
    written = {"created_at": note.node.created_at, "updated_at": note.node.updated_at}
    for name, time in written.items():
        if time > now + _SOON:
            what, fix = f"its {name} is {time:%Y-%m-%d}, which is to come", "check your clock"
            yield note.problem(Code.DATE_FUTURE, META, note.meta_line(name), what, fix)
    for name, said in times.items():
        if said is not None and said - now > _FAR:
            what, fix = f"its {name} is {said:%Y-%m-%d}, which is far away", "correct it"
            yield note.problem(Code.DATE_FUTURE, META, note.meta_line(name), what, fix)


def edits(note: Note) -> Iterator[Problem]:
    """Tell what an edit by hand broke."""
    for problem in note.node.problems:
        what, _, fix = problem.partition(" Fix: ")
        name = CONTENT if what.startswith(CONTENT) else META
        yield note.problem(
            Code.NODE_UNREADABLE, name, 1, what.rstrip("."), fix.rstrip(".") or "correct the file"
        )


ALONE: tuple[Callable[[Note], Iterator[Problem]], ...] = (fields, names, edits)
