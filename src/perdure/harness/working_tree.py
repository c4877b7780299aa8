"""A working tree: the code that statements refer to, and whether it has changed since.

Links are never followed, only regular files of bounded size are read, and nothing is written.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import cached_property
from hashlib import sha1
from itertools import takewhile
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from perdure.dataclass import dataclass
from perdure.harness import spans
from perdure.harness.ancestry import MUCH_TIME, Ancestry
from perdure.harness.project import GitCheckout, head_of, identity_of, run_git, top_of
from perdure.model.anchors import (
    CHANGED,
    FRESH,
    MOVED,
    ON_EVERY_BRANCH,
    UNKNOWN,
    AnchoredStatement,
    Anchors,
    AnchorStatus,
    CommandAnchor,
    FileAnchor,
    SessionOrigin,
)
from perdure.patterns import later
from perdure.storage.openat import FILE, LOOK, opener

_HASHED_BYTES = 1 << 20
"""The size limit of a file that is hashed."""
_PARSED_BYTES = 1 << 18
"""The size limit of a file in which definitions and lines are searched."""
_GIT_SHARE = 0.75
"""The share of the time that is for git."""
_FILE_LIMIT = 40
_SEARCH_SECONDS = 0.5
"""The time for all searches for symbols whose file is not named."""
_COMMIT = later("[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BLOB = later("[0-9a-f]{40}")


def working_tree(folder: str, cache: Path | None = None) -> "WorkingTree | None":
    """Return the working tree of a folder; None if it is in none.

    `cache` is a file for git's answers.
    """
    found = top_of(folder)
    if found is None:
        return None
    root, checkout = found
    within = os.path.relpath(os.path.realpath(folder), root)
    return WorkingTree(root, checkout, "" if within == "." else within, cache)


@dataclass(frozen=True)
class _TreeFile:
    kind: str
    """`file`, `folder`, `large` for a file that is not read, or `none`."""
    data: bytes = b""
    changed: date | None = None

    @cached_property
    def blob(self) -> str:
        given = b"blob %d\0%b" % (len(self.data), self.data)
        return sha1(given, usedforsecurity=False).hexdigest()

    @cached_property
    def text(self) -> str:
        return self.data.decode(errors="surrogateescape")


class WorkingTree:
    def __init__(self, root: str, checkout: GitCheckout, within: str, cache: Path | None) -> None:
        self._root = root
        self._checkout = checkout
        self._within = within
        self._cache = cache
        self._open = opener(root)
        self._search_seconds = _SEARCH_SECONDS

    # ------------------------------------------------------------ anchors of a statement
    def anchors_of(
        self, text: str, when: datetime | None, origin: SessionOrigin | None
    ) -> Anchors | None:
        """Return the anchors of a statement; a file that changed after `when` has no hash."""
        branch, commit = head_of(self._checkout) if origin is None else origin[1:]
        found = Anchors(
            identity_of(self._checkout.remote),
            branch,
            commit if _COMMIT.fullmatch(commit) else "",
            (when or datetime.now(UTC)).isoformat(timespec="seconds"),
            tuple(self._spans(text, when)),
            tuple(self._commands(text)),
        )
        return found if found.names_code or found.commit else None

    def _spans(self, text: str, when: datetime | None) -> Iterator[FileAnchor]:
        symbols = dict.fromkeys(spans.symbols_in(text))
        for named in self._paths(text):
            found = self.look(named.path)
            if found.kind != "file" or (when and self._is_newer(named.path, when)):
                yield FileAnchor(named.path)
                continue
            named_spans = list(_spans_in(named, found, list(symbols), text))
            for each in named_spans:
                symbols.pop(each.symbol, None)
            yield from named_spans or [FileAnchor(named.path, found.blob)]
        if symbols:
            yield from self._defined(list(symbols), when)

    def _paths(self, text: str) -> Iterator[spans.NamedPath]:
        """Yield the existing paths in a text, relative to the top of the checkout."""
        for named in spans.paths_in(text):
            below = f"{self._within}/{named.path}" if self._within else named.path
            for path in dict.fromkeys((named.path, below)):
                if spans.is_within(path) and self.look(path, read=False).kind != "none":
                    yield named._replace(path=path)
                    break

    def _defined(self, names: Sequence[str], when: datetime | None) -> Iterator[FileAnchor]:
        """Yield the symbols that exactly one tracked file defines, within a short search."""
        pattern = rf"({'|'.join(names)})"
        command = ("-C", self._root, "grep", "-I", "-l", "-w", "-E", "-e", pattern)
        began = monotonic()
        listed = run_git(command, self._search_seconds) if self._search_seconds > 0 else None
        self._search_seconds -= monotonic() - began
        files = (listed or "").splitlines()[:_FILE_LIMIT]
        found: dict[str, list[FileAnchor]] = {name: [] for name in names}
        for path in files:
            content = self.look(path) if spans.is_within(path) else _TreeFile("none")
            if content.kind == "file" and not (when and self._is_newer(path, when)):
                for name in names:
                    if (span := _definition(content, name, path)) is not None:
                        found[name].append(span)
        if len(files) < _FILE_LIMIT:
            yield from (each[0] for each in found.values() if len(each) == 1)

    def _commands(self, text: str) -> Iterator[CommandAnchor]:
        for each in spans.commands_in(text):
            folders = dict.fromkeys((self._within, ""))
            paths = (f"{top}/{file}" if top else file for top in folders for file in each.files)
            for path in paths:
                found = self.look(path)
                if found.kind == "file" and spans.defines(path, found.text, each.name):
                    yield CommandAnchor(each.text, path, found.blob)
                    break

    def _is_newer(self, path: str, when: datetime) -> bool:
        """Whether a file was written after that time, so that its content then is not known."""
        try:
            descriptor = self._open(path, LOOK)
        except OSError:
            return True
        try:
            return os.fstat(descriptor).st_mtime > when.timestamp()
        finally:
            os.close(descriptor)

    def look(self, path: str, *, read: bool = True) -> _TreeFile:
        """Return the file at a path. Links, pipes and devices count as absent."""
        try:
            descriptor = self._open(path, FILE if read else LOOK)
        except OSError:
            return _TreeFile("none")
        try:
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                return _TreeFile("folder")
            if not stat.S_ISREG(status.st_mode):
                return _TreeFile("none")
            if status.st_size > _HASHED_BYTES or not read:
                return _TreeFile("large")
            changed = datetime.fromtimestamp(status.st_mtime, UTC).date()
            data = b"".join(iter(lambda: os.read(descriptor, _HASHED_BYTES), b""))
            return _TreeFile("file", data, changed)
        except (OSError, ValueError, OverflowError):
            return _TreeFile("large")
        finally:
            os.close(descriptor)

    # ------------------------------------------------------------ checking anchors
    def check(
        self,
        stated: Sequence[AnchoredStatement],
        seconds: float,
        clock: Callable[[], float] = monotonic,
    ) -> list[AnchorStatus]:
        """Return a verdict on each statement.

        A statement that is not reached in time is unknown, with a note.
        """
        return _AnchorCheck(self, Ancestry(self._checkout, self._cache), seconds, clock).verdicts(
            stated
        )

    def is_same_repository(self, anchors: Anchors) -> bool:
        own = identity_of(self._checkout.remote)
        return not own or not anchors.repository or own == anchors.repository


def _spans_in(
    named: spans.NamedPath, found: _TreeFile, symbols: Sequence[str], text: str
) -> Iterator[FileAnchor]:
    """Yield the lines, definitions and snippets of a file that a statement names."""
    if len(found.data) > _PARSED_BYTES:
        return
    count = named.last - named.first + 1
    if named.first and (lines := spans.hash_of_lines(found.text, named.first, count)):
        yield FileAnchor(named.path, found.blob, "", lines, named.first, count)
    for name in symbols:
        if (span := _definition(found, name, named.path)) is not None:
            yield span
    for snippet in spans.snippets_in(text):
        line = spans.line_with(found.text, snippet)
        if line and (one := spans.hash_of_lines(found.text, line, 1)):
            yield FileAnchor(named.path, found.blob, "", one, line, 1)


def _definition(found: _TreeFile, name: str, path: str) -> FileAnchor | None:
    if len(found.data) > _PARSED_BYTES:
        return None
    defined = spans.definition(found.text, name, path)
    return (
        None if defined is None else FileAnchor(path, found.blob, name, defined.hash, defined.line)
    )


class _AnchorFinding(NamedTuple):
    state: str
    what: str = ""
    """A path, or a command."""
    to: str = ""
    since: date | None = None
    is_gone: bool = False


_UNKNOWN = _AnchorFinding(UNKNOWN)
_LATE = _AnchorFinding(UNKNOWN, "not checked")
_HERE, _ELSEWHERE, _ABANDONED = "here", "elsewhere", "abandoned"
_ORDER = (CHANGED, MOVED, UNKNOWN, FRESH)


class _AnchorCheck:
    """One call of `checked`: every file is read once, and none after the deadline."""

    def __init__(
        self, tree: WorkingTree, ancestry: Ancestry, seconds: float, clock: Callable[[], float]
    ) -> None:
        self._tree = tree
        self._ancestry = ancestry
        self._seconds = seconds
        self._clock = clock
        self._deadline = clock() + seconds
        self._files: dict[str, _TreeFile] = {}

    def verdicts(self, stated: Sequence[AnchoredStatement]) -> list[AnchorStatus]:
        own = [self._of_repository(each) for each in stated]
        self._ask(own)
        return [self._verdict(each) for each in own]

    def _of_repository(self, stated: AnchoredStatement) -> AnchoredStatement:
        same = filter(self._tree.is_same_repository, stated.anchors)
        return AnchoredStatement(stated.text, stated.kind, stated.date, tuple(same))

    def _ask(self, stated: Iterable[AnchoredStatement]) -> None:
        """Ask git about commits of other branches, and about files without a stored hash."""
        branch, head = self._ancestry.head
        seconds = min(self._seconds * _GIT_SHARE, self._left())
        known = {"", branch} if seconds < MUCH_TIME else {""}
        commits: dict[str, None] = {}
        files: dict[str, None] = {}
        for each in takewhile(lambda _: self._left() > 0, stated):
            for anchors in (one for one in each.anchors if _COMMIT.fullmatch(one.commit)):
                is_other, tip = bool(branch) and anchors.branch not in known, ""
                if is_other:
                    tip = self._ancestry.tip(anchors.branch)
                    commits |= dict.fromkeys(filter(None, (anchors.commit, tip)))
                if head != anchors.commit and (is_other or not anchors.names_code):
                    at_commits = [each for each in (anchors.commit, head, tip) if each]
                    paths = _paths_of(each, anchors)
                    files |= dict.fromkeys(f"{at}:{path}" for path in paths for at in at_commits)
        self._ancestry.ask(commits, files, seconds)

    def _left(self) -> float:
        return self._deadline - self._clock()

    # ------------------------------------------------------------ one statement
    def _verdict(self, stated: AnchoredStatement) -> AnchorStatus:
        findings = list(self._findings(stated))
        places = [self._place(stated, each, findings) for each in stated.anchors]
        if places and _HERE not in places:
            branches = ", ".join(dict.fromkeys(each.branch for each in stated.anchors))
            gone = _ELSEWHERE not in places
            why = f"the branch {branches} is gone and was not merged" if gone else ""
            held = why or f"it holds on the branch {branches}, which is not merged here"
            return AnchorStatus(_state(findings), held_back=held, is_abandoned=gone)
        return _verdict_of(findings, stated)

    def _findings(self, stated: AnchoredStatement) -> Iterator[_AnchorFinding]:
        newest = next((each for each in reversed(stated.anchors) if each.names_code), None)
        if newest is None:
            yield from self._unhashed(stated)
            return
        for span in newest.spans:
            yield self._refusal(span.path) or self._span(span)
        for command in newest.commands:
            yield self._refusal(command.path) or self._command(command)

    def _refusal(self, path: str) -> _AnchorFinding | None:
        """Return the finding for a path that must not be read; None if it may be."""
        if self._left() <= 0:
            return _LATE
        return None if spans.is_within(path) else _UNKNOWN

    def _place(
        self, stated: AnchoredStatement, anchors: Anchors, findings: Sequence[_AnchorFinding]
    ) -> str:
        """Return where a statement holds; here, if that can't be decided."""
        branch = self._ancestry.head[0]
        is_free = stated.kind in ON_EVERY_BRANCH and not findings
        if is_free or not (branch and anchors.branch and anchors.commit):
            return _HERE
        if anchors.branch == branch or self._ancestry.is_in_history(anchors.commit) is not False:
            return _HERE
        tip = self._ancestry.tip(anchors.branch)
        if tip and self._ancestry.is_in_history(tip) is not False:  # rebased, then merged
            return _HERE
        is_unchanged = findings and all(each.state in {FRESH, MOVED} for each in findings)
        if is_unchanged or self._was_squashed(anchors, tip, _paths_of(stated, anchors)):  # squashed
            return _HERE
        return _ABANDONED if self._ancestry.is_gone(anchors.branch) else _ELSEWHERE

    def _was_squashed(self, anchors: Anchors, tip: str, paths: Sequence[str]) -> bool:
        """Whether all files are here as at the tip of a branch, or were added by it."""
        blob, head = self._ancestry.blob, self._ancestry.head[1]
        return bool(paths) and all(
            blob(head, each)
            and (blob(head, each) == blob(tip, each) or blob(anchors.commit, each) == "")
            for each in paths
        )

    # ------------------------------------------------------------ one span
    def _look(self, path: str) -> _TreeFile:
        if path not in self._files:
            self._files[path] = self._tree.look(path)
        return self._files[path]

    def _span(self, span: FileAnchor) -> _AnchorFinding:
        found = self._look(span.path)
        if found.kind == "none":
            return self._moved(span)
        if found.kind != "file" or not span.blob:
            return _UNKNOWN
        if found.blob == span.blob:
            return _AnchorFinding(FRESH, span.path)
        line = _line_of(span, found)
        if line is None:
            named = f"{span.symbol} in {span.path}" if span.symbol else span.path
            return _AnchorFinding(CHANGED, named, since=found.changed)
        if line == span.line:
            return _AnchorFinding(FRESH, span.path)
        return _AnchorFinding(MOVED, span.path, f"{span.path}:{line}" if span.lines else "")

    def _moved(self, span: FileAnchor) -> _AnchorFinding:
        """Return where an absent file is now, by its content or else by its name."""
        ancestry = self._ancestry
        same = ancestry.with_content(span.blob) if _BLOB.fullmatch(span.blob) else []
        called = ancestry.with_name(span.path.rpartition("/")[2])
        for path in dict.fromkeys((*same, *called)):
            if self._left() <= 0:
                return _LATE
            found = self._look(path) if spans.is_within(path) and path != span.path else None
            if found is None or found.kind != "file" or not span.blob:
                continue
            if found.blob == span.blob or _line_of(span, found):
                return _AnchorFinding(MOVED, span.path, path)
        others = [each for each in called if each != span.path]
        if len(others) == 1 and self._look(others[0]).kind in {"file", "large"}:
            if not span.blob:
                return _AnchorFinding(MOVED, span.path, others[0])
            return _AnchorFinding(CHANGED, span.path, others[0])
        return _AnchorFinding(CHANGED, span.path, is_gone=ancestry.can_search)

    def _command(self, command: CommandAnchor) -> _AnchorFinding:
        found = self._look(command.path)
        if found.kind == "large":
            return _UNKNOWN
        name = command.text.split()[-1] if command.text.split() else ""
        if found.kind == "file" and (
            found.blob == command.blob or spans.defines(command.path, found.text, name)
        ):
            return _AnchorFinding(FRESH, command.text)
        return _AnchorFinding(CHANGED, f"`{command.text}`", since=found.changed, is_gone=True)

    # ------------------------------------------------------------ without hashes
    def _unhashed(self, stated: AnchoredStatement) -> Iterator[_AnchorFinding]:
        """Yield findings for the files that a sentence names, compared with git's at its commit.

        The working tree may have differed from that commit, so no file counts as fresh.
        """
        head = self._ancestry.head[1]
        commit = next((each.commit for each in reversed(stated.anchors) if each.commit), "")
        for named in spans.paths_in(stated.text):
            if self._left() <= 0:
                yield _LATE
                return
            then = self._ancestry.blob(commit, named.path)
            now = self._ancestry.blob(head, named.path)
            kind = self._look(named.path).kind
            if kind == "none" and then:
                yield _AnchorFinding(CHANGED, named.path, is_gone=True)
            elif kind == "file" and then and now and then != now:
                yield _AnchorFinding(CHANGED, named.path, since=self._look(named.path).changed)
            elif kind != "none":
                yield _UNKNOWN


def _paths_of(stated: AnchoredStatement, anchors: Anchors) -> list[str]:
    if anchors.names_code:
        return [each.path for each in anchors.spans]
    return [each.path for each in spans.paths_in(stated.text)]


def _line_of(span: FileAnchor, found: _TreeFile) -> int | None:
    """Return the line where a span is now, unchanged; None if it changed."""
    if not span.hash or len(found.data) > _PARSED_BYTES:
        return None
    if span.symbol:
        now = spans.definition(found.text, span.symbol, span.path)
        return now.line if now and now.hash == span.hash else None
    if not 0 < span.lines <= _PARSED_BYTES:
        return None
    return spans.find_lines(found.text, span.hash, span.line, span.lines) or None


def _state(findings: Iterable[_AnchorFinding]) -> str:
    states = {each.state for each in findings}
    return next((each for each in _ORDER if each in states), UNKNOWN)


def _verdict_of(findings: Sequence[_AnchorFinding], stated: AnchoredStatement) -> AnchorStatus:
    state = _state(findings)
    if findings and all(each.is_gone for each in findings):
        gone = ", ".join(dict.fromkeys(each.what for each in findings))
        return AnchorStatus(state, held_back=f"{gone} gone since {_day(stated)}")
    notes = dict.fromkeys(_note(each, stated) for each in findings if each.state == state)
    return AnchorStatus(state, "; ".join(filter(None, notes)))


def _note(finding: _AnchorFinding, stated: AnchoredStatement) -> str:
    if finding.state == MOVED:
        return f"now {finding.to}" if finding.to else ""
    if finding.state != CHANGED:
        return finding.what if finding is _LATE else ""
    since = _day(stated, finding.since)
    if finding.to:
        return f"now {finding.to}, changed since {since}"
    return f"{finding.what} {'gone' if finding.is_gone else 'changed'} since {since}"


def _day(stated: AnchoredStatement, changed: date | None = None) -> str:
    """Return the day of the statement, or of a later change of the file."""
    day = stated.date.date() if stated.date else None
    newest = max(filter(None, (day, changed)), default=None)
    return newest.isoformat() if newest else "then"
