"""Find problems in the texts of notes. Nothing is changed.

All notes of an account that the caller may see are checked, the other files in their folders, and
the chains of superseded notes, which must end and not fork.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import Enum
from graphlib import CycleError, TopologicalSorter

from perdure import markdown
from perdure.context.links import CachedLinkTargets, name_in, name_of, resolve
from perdure.context.node_files import CONTENT, FILES, META, RELATIONS
from perdure.context.reader import NodeReader, StoredNode
from perdure.dataclass import dataclass, field, replace
from perdure.errors import BrokenNodeError, ConcurrentModificationError
from perdure.frontmatter import frontmatter, join
from perdure.model import SUPERSEDED_BY, ContextNode, RequestContext, Role, Uri, slugify
from perdure.model.node import VALID_FROM, VALID_UNTIL, NodeStatus
from perdure.model.values import shown
from perdure.patterns import later
from perdure.storage import Finding, FindingKind, Locator
from perdure.storage.contract import ROOT, is_directory
from perdure.times import read_time


class LintCode(Enum):
    """The kinds of findings, by their public names."""

    CONTENT_EMPTY = "content-empty"
    NAME_DIFFERS = "name-differs"
    """The name in the frontmatter differs from that of the folder."""
    NAME_UNUSABLE = "name-unusable"
    DATE_UNREADABLE = "date-unreadable"
    DATE_ORDER = "date-order"
    """Its validity ends before it begins."""
    DATE_FUTURE = "date-future"
    LINK_BROKEN = "link-broken"
    RELATION_BROKEN = "relation-broken"
    SUPERSESSION_CYCLE = "supersession-cycle"
    SUPERSESSION_FORK = "supersession-fork"
    CONFLICT_COPY = "conflict-copy"
    CONFLICT_MARKERS = "conflict-markers"
    """Markers that git writes into a file with a merge conflict."""
    NODE_UNREADABLE = "node-unreadable"
    FRONTMATTER_UNREADABLE = "frontmatter-unreadable"
    """Its properties are ignored until they are corrected; its text is read and found."""
    TOO_LONG = "too-long"
    """Headings and code at its end are not distinguished."""
    NO_NODE = "no-node"
    """A text that no recall finds, because it is not a node yet."""
    FILE_LINK = "file-link"
    LEFTOVER = "leftover"


_WARNINGS = {
    LintCode.FRONTMATTER_UNREADABLE,
    LintCode.NAME_DIFFERS,
    LintCode.DATE_FUTURE,
    LintCode.SUPERSESSION_FORK,
    LintCode.NO_NODE,
    LintCode.FILE_LINK,
    LintCode.LEFTOVER,
    LintCode.TOO_LONG,
}


@dataclass(frozen=True, slots=True, order=True)
class LintFinding:
    file: str
    """The key of the file or folder."""
    line: int
    """Counted from 1; 0 if it is not about a line."""
    code: str
    what: str
    fix: str
    uri: str = ""
    """The URI of the node; empty if it is not about one."""

    @property
    def is_error(self) -> bool:
        """Whether it is an error, and not a warning."""
        return LintCode(self.code) not in _WARNINGS


Edges = Mapping[str, Sequence[str]]


def forks(edges: Edges) -> Iterator[tuple[str, tuple[str, ...]]]:
    for start in sorted(edges):
        targets = tuple(sorted({*edges[start]} - {start}))
        if len(targets) > 1:
            yield start, targets


def cycles(edges: Edges) -> list[tuple[str, ...]]:
    """Return the cycles of superseded URIs, each from its least URI on; no two share a URI."""
    left, found = {start: {*targets} for start, targets in edges.items()}, list[tuple[str, ...]]()
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            ring = error.args[1][:0:-1]  # it is in reverse, and repeats the first
            at = ring.index(min(ring))
            found.append((*ring[at:], *ring[:at]))
            for uri in ring:
                del left[uri]
        else:
            return sorted(found)


_MARKERS = [re.compile(each, re.MULTILINE) for each in (r"^<{7} ", r"^={7}\r?$", r"^>{7} ")]
_SOON = timedelta(days=2)
"""Clocks and time zones differ by less than this."""
_FAR = timedelta(days=100 * 366)
_TIMES = ("date", VALID_FROM, VALID_UNTIL)
_NAMES = ("slug", "name", "id")
"""The properties of the frontmatter that name a note."""


@dataclass(frozen=True, slots=True)
class LintedText:
    node: ContextNode
    folder: str
    content: str
    meta: str

    def problem(self, code: LintCode, file: str, line: int, what: str, fix: str) -> LintFinding:
        return LintFinding(f"{self.folder}/{file}", line, code.value, what, fix, self.node.uri)

    @property
    def is_own(self) -> bool:
        """Whether it is a note in place, which is named by its file."""
        return bool(self.node.metadata.get("in_place"))

    def meta_line(self, name: str) -> int:
        return line_with(self.meta, f'"{name}"')

    @property
    def above(self) -> int:
        """The number of lines above the body."""
        body = self.node.content
        if not self.content.endswith(
            body
        ):  # the file was broken by an edit, and an earlier text is used
            return 0
        return self.content.count("\n", 0, len(self.content) - len(body))

    def links(self) -> Iterator[tuple[int, str]]:
        for link in markdown.links(self.node.content):
            if link.kind == "wikilink" and link.target:
                yield self.above + link.line, link.target


def line_with(text: str, words: str) -> int:
    at = text.find(words)
    return 0 if at < 0 else text.count("\n", 0, at) + 1


# ---------------------------------------------------------------- fields
def fields(note: LintedText) -> Iterator[LintFinding]:
    """Check that a note is not empty."""
    if not note.node.content.strip():
        remove = "remove the file" if note.is_own else f"`perdure delete` {note.node.uri}"
        fix = f"write something, or {remove}"
        yield note.problem(LintCode.CONTENT_EMPTY, CONTENT, 1, "it is empty", fix)


def names(note: LintedText) -> Iterator[LintFinding]:
    properties, name = _frontmatter(note), Uri.parse(note.node.uri).name
    for key in () if note.is_own else _NAMES:
        value = properties.get(key)
        if isinstance(value, str) and value.strip() and value.strip() not in {name, note.node.uri}:
            what = f"its {key} is {shown(value)}, but its folder is called {shown(name)}"
            fix = f"make them one; `perdure move` gives {note.node.uri} another name"
            line = line_with(note.content, f"{key}:")
            yield note.problem(LintCode.NAME_DIFFERS, CONTENT, line, what, fix)


_LINE = later(r", line (\d+)")


def _parsing(file: tuple[str, str] | None, uri: str) -> Iterator[LintFinding]:
    """Check that the frontmatter and all blocks of a file can be parsed."""
    name, text = file or ("", "")
    found = {
        LintCode.FRONTMATTER_UNREADABLE: frontmatter(text).finding,
        LintCode.TOO_LONG: markdown.finding(text),
    }
    for code, finding in found.items():
        if finding:
            what, _, fix = finding.partition(". Fix: ")
            line = _LINE.search(what)
            number = int(line[1]) if line else 1
            yield LintFinding(name, number, code.value, f"its {what}", fix.rstrip("."), uri)


def _frontmatter(note: LintedText) -> Mapping[str, object]:
    """Return the properties that the owner wrote above the body."""
    lines = note.node.frontmatter
    if not lines or not lines.strip():
        return {}
    return frontmatter(join(lines, "")).values


# ---------------------------------------------------------------- dates
def dates(note: LintedText, now: datetime) -> Iterator[LintFinding]:
    """Check that times can be parsed, are in order, and not far in the future."""
    metadata, times = note.node.metadata, {}
    for name in _TIMES:
        value = metadata.get(name)
        times[name] = None if value is None else read_time(value)
        if value is not None and times[name] is None:
            what, fix = (
                f"its {name} is {shown(value)}, which is not a time",
                "write it as 2026-03-02",
            )
            yield note.problem(LintCode.DATE_UNREADABLE, META, note.meta_line(name), what, fix)
    start, end = times[VALID_FROM], times[VALID_UNTIL]
    if start is not None and end is not None and start > end:
        what = f"it is valid from {start:%Y-%m-%d}, but only until {end:%Y-%m-%d}"
        line = note.meta_line(VALID_UNTIL)
        yield note.problem(LintCode.DATE_ORDER, META, line, what, "correct one of the two")
    yield from _future(note, now, times)


def _future(
    note: LintedText, now: datetime, times: dict[str, datetime | None]
) -> Iterator[LintFinding]:
    written = {"created_at": note.node.created_at, "updated_at": note.node.updated_at}
    for name, time in written.items():
        if time > now + _SOON:
            what, fix = f"its {name} is {time:%Y-%m-%d}, which is in the future", "check your clock"
            yield note.problem(LintCode.DATE_FUTURE, META, note.meta_line(name), what, fix)
    for name, stated in times.items():
        if stated is not None and stated - now > _FAR:
            what, fix = f"its {name} is {stated:%Y-%m-%d}, which is far in the future", "correct it"
            yield note.problem(LintCode.DATE_FUTURE, META, note.meta_line(name), what, fix)


def edits(note: LintedText) -> Iterator[LintFinding]:
    for problem in note.node.problems:
        what, _, fix = problem.partition(" Fix: ")
        name = CONTENT if what.startswith(CONTENT) else META
        yield note.problem(
            LintCode.NODE_UNREADABLE,
            name,
            1,
            what.rstrip("."),
            fix.rstrip(".") or "correct the file",
        )


def markers(note: LintedText) -> Iterator[LintFinding]:
    """Check that there are no conflict markers of git."""
    at, starts = 0, list[int]()
    for marker in _MARKERS:
        found = marker.search(note.content, at)
        if found is None:
            return
        at = found.end()
        starts.append(found.start())
    line = note.content.count("\n", 0, starts[0]) + 1
    what = "git could not merge it, and it contains both sides"
    fix = "choose one text, and remove the lines <<<<<<<, ======= and >>>>>>>"
    yield note.problem(LintCode.CONFLICT_MARKERS, CONTENT, line, what, fix)


ALONE: tuple[Callable[[LintedText], Iterator[LintFinding]], ...] = (fields, names, edits, markers)


_KINDS = {
    FindingKind.CONFLICT_COPY: LintCode.CONFLICT_COPY,
    FindingKind.UNUSABLE_NAME: LintCode.NAME_UNUSABLE,
    FindingKind.LINK: LintCode.FILE_LINK,
    FindingKind.LEFTOVER: LintCode.LEFTOVER,
    FindingKind.CLOSED: LintCode.NODE_UNREADABLE,
}
_NOTE = ".md"


def _other_files(reader: NodeReader, ctx: RequestContext, place: Uri) -> Iterator[LintFinding]:
    """Yield files that are not memories; for a whole account and ROOT, in the whole store.

    Folders of other accounts are skipped, and those that begin with a dot, which belong to tools.
    """
    backend, own = reader.backend, reader.folder(Uri(ctx.account_id))

    def may_read(folder: Locator) -> bool:
        at = None if ctx.governs else Uri.of_key(folder.key)
        return ctx.governs or (at is not None and reader.reach.may_see(at, ctx))

    def is_entered(child: Locator) -> bool:
        another = child.parent == own.parent and child != own
        return not another and child.name not in FILES and is_directory(backend, child)

    whole = not place.path and ctx.role is Role.ROOT
    pending = [ROOT if whole else reader.folder(place)]
    while pending:
        folder = pending.pop()
        if not may_read(folder):
            continue
        findings = backend.findings(folder)
        yield from map(_storage_finding, findings)
        children = [child for child in backend.list(folder) if not child.name.startswith(".")]
        if own.contains(folder) and not reader.has_layout:
            yield from _strays(folder, children, {finding.name for finding in findings})
        pending += filter(is_entered, children)


def _strays(folder: Locator, children: list[Locator], reported: set[str]) -> Iterator[LintFinding]:
    for child in children:
        if child.name == CONTENT:
            place = Uri.of_key(folder.key)
            if place is None or not place.is_node:
                what = f"no memory can be in a folder called {shown(folder.name)} here"
                fix = f"rename it, such as to {slugify(folder.name)}, in a folder of a category"
                yield LintFinding(child.key, 0, LintCode.NAME_UNUSABLE.value, what, fix)
        elif child.name.endswith(_NOTE) and child.name not in reported:
            what = "it is not a memory, so no recall finds it"
            fix = "make it one with `perdure write CATEGORY/NAME < FILE`"
            yield LintFinding(child.key, 0, LintCode.NO_NODE.value, what, fix)


def _storage_finding(finding: Finding) -> LintFinding:
    folder = f"{finding.directory.key}/" if finding.directory.key else ""
    of = f" of {finding.original.name}" if finding.original is not None else ""
    article = "an" if finding.kind is FindingKind.UNUSABLE_NAME else "a"
    what = f"it is {article} {finding.kind.value}{of}"
    code = _KINDS[finding.kind].value
    return LintFinding(f"{folder}{finding.name}", 0, code, what, finding.advice.rstrip("."))


@dataclass(frozen=True, slots=True)
class _OutgoingLinks:
    folder: str
    links: tuple[tuple[int, str], ...]
    edges: tuple[tuple[int, str, str], ...]


@dataclass(slots=True)
class LintReport:
    notes: int = 0
    findings: list[LintFinding] = field(default_factory=list)

    @property
    def errors(self) -> int:
        return sum(problem.is_error for problem in self.findings)


class Lint:
    """Reads every note once. It changes nothing, and takes no lock."""

    def __init__(self, reader: NodeReader, ctx: RequestContext) -> None:
        self._reader = reader
        self._ctx = ctx
        self._now = datetime.now(UTC)
        self._places = CachedLinkTargets(reader)

    def run(self, start: Uri | None = None) -> LintReport:
        """Check the notes at and below a place; without one, those of the whole account."""
        place = start or Uri(self._ctx.account_id)
        found, seen = LintReport(), dict[str, _OutgoingLinks]()
        for each in self._reader.walk(place):
            if self._reader.reach.may_see(each, self._ctx):
                found.findings += self._check(each, seen)
        found.notes = len(seen)
        for uri, note in seen.items():
            found.findings += self._broken_links(uri, note)
        found.findings += _chained(seen)
        found.findings += _other_files(self._reader, self._ctx, place)
        found.findings = sorted(map(self._located, found.findings))
        return found

    def _located(self, problem: LintFinding) -> LintFinding:
        path = self._reader.path_of(Uri.parse(problem.uri)) if problem.uri else ""
        if path in {"", problem.file}:
            return problem
        line = 0
        if problem.line and problem.file.endswith(CONTENT):
            line = max(problem.line + self._reader.lines_above(Uri.parse(problem.uri)), 1)
        return replace(problem, file=path, line=line)

    # ------------------------------------------------------------ one note
    def _check(self, place: Uri, seen: dict[str, _OutgoingLinks]) -> Iterator[LintFinding]:
        folder = self._reader.folder(place).key
        try:
            stored = self._reader.load(place)
        except BrokenNodeError as error:
            what, _, fix = str(error).partition(" Fix: ")
            fix = fix.rstrip(".") or "see `perdure repair`"
            code = LintCode.NODE_UNREADABLE.value
            yield LintFinding(f"{folder}/{META}", 0, code, what.rstrip("."), fix, str(place))
            return
        except ConcurrentModificationError:  # it is being written
            return
        if stored is None:
            if self._reader.text_at(place, CONTENT) is not None:
                what, fix = (
                    "it is not a node yet, so no recall finds it",
                    "`perdure repair --apply`",
                )
                code = LintCode.NO_NODE.value
                yield LintFinding(f"{folder}/{CONTENT}", 0, code, what, fix, str(place))
            return
        if stored.meta.status is NodeStatus.ACTIVE:
            self._places.active.add(place)
            note = _note(stored, folder)
            seen[str(place)] = _OutgoingLinks(folder, tuple(note.links()), tuple(_edges(stored)))
            for check in ALONE:
                yield from check(note)
            yield from dates(note, self._now)
            yield from _parsing(self._reader.file_of(place), str(place))

    # ------------------------------------------------------------ links and relations
    def _broken_links(self, uri: str, note: _OutgoingLinks) -> Iterator[LintFinding]:
        place = Uri.parse(uri)
        for line, target in note.links:
            if not self._is_known(target, place):
                what = f"[[{shown(target)[1:-1]}]] has no target"
                fix = "correct the link, or write the note that it names"
                file, code = f"{note.folder}/{CONTENT}", LintCode.LINK_BROKEN.value
                yield LintFinding(file, line, code, what, fix, uri)
        for line, kind, to in note.edges:
            end = Uri.parse(to)
            if self._may_see(end) and not self._places.is_active(end):
                what = f"it is {kind} {to}, where no active node is"
                fix = f"remove the relation with `perdure relate --remove --type {kind}`"
                file, code = f"{note.folder}/{RELATIONS}", LintCode.RELATION_BROKEN.value
                yield LintFinding(file, line, code, what, fix, uri)

    def _is_known(self, target: str, start: Uri) -> bool:
        """Return whether a link has a target, or one that the caller may not see."""
        if resolve(target, start, self._places) is not None:
            return True
        if self._reader.has_file(target):
            return True
        with suppress(ValueError):
            named = Uri.parse(target)
            return not self._may_see(named) or named == start
        return name_in(target) == name_of(start)  # a note may link to itself

    def _may_see(self, place: Uri) -> bool:
        return self._reader.reach.may_see(place, self._ctx)


def _note(stored: StoredNode, folder: str) -> LintedText:
    content, meta = stored.files[CONTENT], stored.files[META]
    return LintedText(
        stored.node,
        folder,
        content if isinstance(content, str) else "",
        meta if isinstance(meta, str) else "",
    )


def _edges(stored: StoredNode) -> Iterator[tuple[int, str, str]]:
    relations = stored.files[RELATIONS]
    text = relations if isinstance(relations, str) else ""
    for edge in stored.node.relations:
        yield line_with(text, f'"{edge.to_uri}"'), edge.relation_type, edge.to_uri


def _chained(seen: dict[str, _OutgoingLinks]) -> Iterator[LintFinding]:
    edges = {
        uri: [to for _, kind, to in note.edges if kind == SUPERSEDED_BY]
        for uri, note in seen.items()
    }
    for ring in cycles(edges):
        file = f"{seen[ring[0]].folder}/{RELATIONS}"
        what = f"it was superseded by a note that it superseded: {' -> '.join((*ring, ring[0]))}"
        fix = f"remove one with `perdure relate --remove --type {SUPERSEDED_BY}`"
        yield LintFinding(file, 0, LintCode.SUPERSESSION_CYCLE.value, what, fix, ring[0])
    for start, targets in forks(edges):
        file = f"{seen[start].folder}/{RELATIONS}"
        what = f"several notes superseded it: {', '.join(targets)}"
        fix = "choose the valid one, and let it supersede the others"
        yield LintFinding(file, 0, LintCode.SUPERSESSION_FORK.value, what, fix, start)
