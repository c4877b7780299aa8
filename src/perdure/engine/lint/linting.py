"""Looks at all notes of an account that somebody may see, and at what lies between them."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from perdure.context import links
from perdure.context.files import CONTENT, META, RELATIONS
from perdure.context.reading import NodeReader, Stored
from perdure.engine.lint.chains import cycles, forks
from perdure.engine.lint.folders import Folders
from perdure.engine.lint.notes import ALONE, Note, dates, line_with
from perdure.engine.lint.problem import Code, Problem
from perdure.errors import BrokenNodeError, ConcurrentModificationError
from perdure.model import SUPERSEDED_BY, RequestContext, Uri
from perdure.model.node import NodeStatus
from perdure.model.values import shown


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is remembered of a note until all are known."""

    folder: str
    links: tuple[tuple[int, str], ...]
    edges: tuple[tuple[int, str, str], ...]
    """Line, type and target of each."""


@dataclass(slots=True)
class Linted:
    """What was looked at, and what is wrong."""

    notes: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def errors(self) -> int:
        return sum(problem.is_error for problem in self.problems)


class Lint:
    """Reads every note once. It changes nothing, and waits for nobody."""

    def __init__(
        self, reader: NodeReader, ctx: RequestContext, now: datetime | None = None
    ) -> None:
        self._reader = reader
        self._ctx = ctx
        self._now = now or datetime.now(UTC)
        self._places = _Places(reader)

    def run(self, start: Uri | None = None) -> Linted:
        """Look at all that is at a place and below; without one, at the whole account."""
        place = start or Uri(self._ctx.account_id)
        found, seen = Linted(), dict[str, _Seen]()
        for each in self._reader.walk(place):
            if self._reader.reach.may_see(each, self._ctx):
                found.problems += self._look(each, seen)
        found.notes = len(seen)
        for uri, note in seen.items():
            found.problems += self._leading(uri, note)
        found.problems += _chained(seen)
        found.problems += Folders(self._reader, self._ctx).problems(place)
        found.problems.sort()
        return found

    # ------------------------------------------------------------ one note
    def _look(self, place: Uri, seen: dict[str, _Seen]) -> Iterator[Problem]:
        folder = self._reader.folder(place).key
        try:
            stored = self._reader.load(place)
        except BrokenNodeError as error:
            what, _, fix = str(error).partition(" Fix: ")
            fix = fix.rstrip(".") or "`perdure repair` says what can be done"
            code = Code.NODE_UNREADABLE.value
            yield Problem(f"{folder}/{META}", 0, code, what.rstrip("."), fix, str(place))
            return
        except ConcurrentModificationError:  # somebody is at it
            return
        if stored is None:
            if self._reader.look(place, CONTENT) is not None:
                what, fix = "it is no node yet, so nobody finds it", "`perdure repair --apply`"
                code = Code.NO_NODE.value
                yield Problem(f"{folder}/{CONTENT}", 0, code, what, fix, str(place))
            return
        if stored.meta.status is NodeStatus.ACTIVE:
            self._places.active.add(place)
            note = _note(stored, folder)
            seen[str(place)] = _Seen(folder, tuple(note.links()), tuple(_edges(stored)))
            for check in ALONE:
                yield from check(note)
            yield from dates(note, self._now)

    # ------------------------------------------------------------ where it leads
    def _leading(self, uri: str, note: _Seen) -> Iterator[Problem]:
        place = Uri.parse(uri)
        for line, target in note.links:
            if not self._is_known(target, place):
                what = f"[[{shown(target)[1:-1]}]] leads nowhere"
                fix = "correct the link, or write the note that it names"
                file, code = f"{note.folder}/{CONTENT}", Code.LINK_BROKEN.value
                yield Problem(file, line, code, what, fix, uri)
        for line, kind, to in note.edges:
            end = Uri.parse(to)
            if self._may_see(end) and not self._places.is_active(end):
                what = f"it is {kind} {to}, where no node is in use"
                fix = f"`perdure relate --remove --type {kind}` takes the relation away"
                file, code = f"{note.folder}/{RELATIONS}", Code.RELATION_BROKEN.value
                yield Problem(file, line, code, what, fix, uri)

    def _is_known(self, target: str, start: Uri) -> bool:
        """Whether a link leads somewhere, or it is not for the caller to know."""
        if links.resolve(target, start, self._places) is not None:
            return True
        with suppress(ValueError):
            named = Uri.parse(target)
            return not self._may_see(named) or named == start
        return links.name_in(target) == links.name_of(start)  # a note may link to itself

    def _may_see(self, place: Uri) -> bool:
        return self._reader.reach.may_see(place, self._ctx)


class _Places:
    """What links need to know of the nodes around; each is asked once."""

    def __init__(self, reader: NodeReader) -> None:
        self._reader = reader
        self.active: set[Uri] = set()
        self._asked: dict[Uri, bool] = {}
        self._categories: dict[Uri, list[str]] = {}

    def is_active(self, place: Uri) -> bool:
        if place in self.active:
            return True
        if place not in self._asked:
            self._asked[place] = self._reader.is_active(place)
        return self._asked[place]

    def categories(self, owner: Uri) -> list[str]:
        if owner not in self._categories:
            self._categories[owner] = self._reader.categories(owner)
        return self._categories[owner]


def _note(stored: Stored, folder: str) -> Note:
    content, meta = stored.files[CONTENT], stored.files[META]
    return Note(
        stored.node,
        folder,
        content if isinstance(content, str) else "",
        meta if isinstance(meta, str) else "",
    )


def _edges(stored: Stored) -> Iterator[tuple[int, str, str]]:
    said = stored.files[RELATIONS]
    text = said if isinstance(said, str) else ""
    for edge in stored.node.relations:
        yield line_with(text, f'"{edge.to_uri}"'), edge.relation_type, edge.to_uri


def _chained(seen: dict[str, _Seen]) -> Iterator[Problem]:
    edges = {
        uri: [to for _, kind, to in note.edges if kind == SUPERSEDED_BY]
        for uri, note in seen.items()
    }
    for ring in cycles(edges):
        file = f"{seen[ring[0]].folder}/{RELATIONS}"
        what = f"it was superseded by what it superseded: {' -> '.join((*ring, ring[0]))}"
        fix = f"`perdure relate --remove --type {SUPERSEDED_BY}` takes one of these away"
        yield Problem(file, 0, Code.SUPERSESSION_CYCLE.value, what, fix, ring[0])
    for start, targets in forks(edges):
        file = f"{seen[start].folder}/{RELATIONS}"
        what = f"several superseded it: {', '.join(targets)}"
        fix = "look which of them holds, and let it supersede the others"
        yield Problem(file, 0, Code.SUPERSESSION_FORK.value, what, fix, start)
