"""Conflict copies, which a sync client writes when two machines changed one file.

A copy is not a memory. Before it is removed, its text becomes a version of the original file.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby, islice
from typing import NamedTuple

from perdure.artifacts.lines import MergeResult, diff, matching_runs, merge
from perdure.artifacts.lines import split as split_lines
from perdure.context.node_files import FORGOTTEN
from perdure.context.notefile import ID, NoteFile, compose, split
from perdure.context.notes import NotesLayout
from perdure.engine import forgotten
from perdure.errors import AbsentError, ConcurrentModificationError, InvalidValueError
from perdure.model.project_aliases import FILE, ProjectAliases
from perdure.storage import ABSENT, Finding, FindingKind, Locator, StorageBackend, content_hash
from perdure.storage.changes import copied_name
from perdure.storage.contract import ROOT
from perdure.storage.locator import is_key_segment
from perdure.storage.recorded import Recorded
from perdure.storage.redo import read_text
from perdure.storage.text_history import CONFLICT_COPY, Version

KEEPS = ("mine", "theirs", "merge")
_MOST_VERSIONS = 200
"""The number of newest versions that are searched for the base of a copy."""
_GROWING = {"updated": max, "version": max, "created": min}
"""Properties of which the later or the earlier value wins, whatever the base has."""


class Conflict(NamedTuple):
    path: str
    """The path of the copy in the store."""
    original: str
    mine: str | None
    """The text of the file; None if it does not exist any more."""
    theirs: str
    base: str
    """The common base of both: an earlier version, or else what they share."""

    @property
    def merged(self) -> MergeResult:
        """The file with the changes of both: the frontmatter by property, the body by line.

        A list of Perdure has the entries of both.
        """
        if (united := self.united) is not None:
            return MergeResult(united, 0)
        three = [NoteFile.parse(_ended(each or "")) for each in (self.base, self.mine, self.theirs)]
        head, body = _merged_heads(*three), merge(*(each.body for each in three))
        return MergeResult(head.text + body.text, head.clashes + body.clashes)

    @property
    def united(self) -> str | None:
        """The union of both texts, if they are a list of Perdure; None if they are not."""
        place = str(NoteFile.parse(self.theirs).value(ID) or self.original)
        unite = _UNITED.get(place.rpartition("/")[2])
        if unite is None or self.mine is None:
            return None
        is_note = place != self.original
        with suppress(ValueError, TypeError, LookupError):  # one of the texts is not such a list
            mine, theirs = (
                split(each, place)[""] if is_note else each for each in (self.mine, self.theirs)
            )
            text = unite(mine, theirs)
            return compose({"": text}, place, self.mine) if is_note else text
        return None

    @property
    def changes(self) -> tuple[str, str]:
        """The changes of both sides as unified diffs: of the file, and of the copy."""
        name = self.original
        base, mine, theirs = map(_ended, (self.base, self.mine or "", self.theirs))
        return (
            diff(base, mine, old_name=f"{name} before", new_name=f"{name} (mine)"),
            diff(base, theirs, old_name=f"{name} before", new_name=f"{name} (theirs)"),
        )


def _united_aliases(one: str, other: str) -> str:
    text = ProjectAliases.parse(one).united(ProjectAliases.parse(other)).text()
    return ProjectAliases.parse(text).text()  # raises an error if it has a cycle


_UNITED = {FORGOTTEN: forgotten.united, FILE: _united_aliases}
"""The functions that unite lists of Perdure, by file name."""


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _merged_heads(base: NoteFile, mine: NoteFile, theirs: NoteFile) -> MergeResult:
    """Return the frontmatter with the changes of both, by property; by line if it is irregular."""
    files = (base, mine, theirs)
    heads = [each._replace(body="").text() for each in files]
    three = [{entry.name or entry.raw: entry.raw for entry in each.entries} for each in files]
    is_plain = list(map(len, three)) == [len(each.entries) for each in files]  # no name twice
    is_easy = len(set(heads)) < len(heads) and three[1].get("created") == three[2].get("created")
    if is_easy or not (is_plain and mine.opening and theirs.opening):
        return merge(*heads)
    out, clashes = "", 0
    for name in dict.fromkeys((*three[1], *three[2])):
        before, ours, others = (raws.get(name, "") for raws in three)
        if name in _GROWING and ours and others:
            out += _GROWING[name](ours, others, key=lambda raw: (len(raw), raw))
            continue
        merged = others if ours == before else ours
        clashes += merged != others != before
        out += merged
    return MergeResult(mine.opening + out + mine.closing, clashes)


def files_of(recorded: Recorded) -> StorageBackend:
    """Return the backend whose files people and sync clients see."""
    inner = recorded.inner
    return inner.inner if isinstance(inner, NotesLayout) else inner


def conflicts(recorded: Recorded) -> Iterator[Conflict]:
    """Yield the conflict copies of a store."""
    for finding in _findings(recorded):
        if finding.kind is FindingKind.CONFLICT_COPY and finding.original is not None:
            found = _conflict(recorded, finding.directory.child(finding.name), finding.original)
            if found is not None:
                yield found


def _findings(recorded: Recorded) -> Iterator[Finding]:
    if isinstance(recorded.inner, NotesLayout):
        yield from recorded.inner.findings(ROOT)
        return
    for directory, stamps in recorded.inner.scan(ROOT, skip=_is_of_a_tool):
        yield from recorded.inner.findings(directory) if stamps is not None else ()


def _is_of_a_tool(directory: str) -> bool:
    return directory.rpartition("/")[2].startswith(".")


def _conflict(recorded: Recorded, copy: Locator, original: Locator) -> Conflict | None:
    files = files_of(recorded)
    mine, theirs = read_text(files, original), read_text(files, copy)
    if not isinstance(theirs, str):  # it is not a text, or does not exist any more
        return None
    text = mine if isinstance(mine, str) else None
    if theirs in _earlier(recorded, original, theirs):  # the copy is an earlier version of the file
        return Conflict(copy.key, original.key, text, theirs, theirs)
    earlier = _earlier(recorded, original, text or theirs)
    return Conflict(copy.key, original.key, text, theirs, _base(earlier, text or "", theirs))


def _base(earlier: Iterator[str], mine: str, theirs: str) -> str:
    """Return the version that is most similar to the copy; of several, the newest.

    With a version newer than the true base, a merge would remove its new lines. Without any
    version, return the lines that both share, so that a merge has the lines of both.
    """
    lines = Counter(filter(str.strip, theirs.splitlines()))

    def distance(text: str) -> int:
        has = Counter(filter(str.strip, text.splitlines()))
        return (lines - has).total() + (has - lines).total()

    texts = [each for each in islice(earlier, _MOST_VERSIONS) if each not in {mine, theirs}]
    if texts:
        return min(texts, key=distance)
    ours, others = NoteFile.parse(_ended(mine)), NoteFile.parse(_ended(theirs))
    shared = matching_runs(old := split_lines(ours.body), split_lines(others.body))
    return ours._replace(
        entries=tuple(each for each in ours.entries if each in others.entries),
        body="".join(line for run in shared for line in old[run.old : run.old + run.length]),
    ).text()


def _earlier(recorded: Recorded, file: Locator, text: str) -> Iterator[str]:
    """Yield earlier texts of a file, newest first, without those of former copies."""
    layout, history = recorded.inner, recorded.history
    held = layout.held(file.key, text) if isinstance(layout, NotesLayout) else {file: text}
    every = ((each, locator) for locator in held for each in history.versions(locator))
    states: list[Mapping[Locator, Version]] = []
    for _, commit in groupby(sorted(every, key=_commit_of), key=_commit_of):
        found = {locator: version for version, locator in commit}
        if not any(CONFLICT_COPY in each.circumstances.more for each in found.values()):
            states.append({**(states[-1] if states else {}), **found})
    for state in reversed(states):
        texts = {}
        for locator, version in state.items():
            with suppress(AbsentError):  # it was removed, or erased
                texts[locator] = history.text(version)
        if isinstance(layout, NotesLayout):
            texts = {file: layout.composed(file.key, texts, text)} if texts else {}
        yield from texts.values()


def _commit_of(found: tuple[Version, Locator]) -> int:
    return found[0].commit


def chosen(found: Sequence[Conflict], path: str) -> Conflict:
    """Return the conflict of a copy, or of an original that has one copy, by path."""
    exact = [each for each in found if each.path == path]
    named = exact or [each for each in found if each.original == path]
    if len(named) == 1:
        return named[0]
    what = "is not a conflict copy" if not named else f"has {len(named)} conflict copies"
    raise AbsentError(f"{path!a} {what}. Fix: name one that `perdure conflicts` lists.")


def unite(recorded: Recorded, paths: Iterable[str]) -> None:
    """Settle conflict copies of lists of Perdure, so that forgotten statements stay forgotten."""
    layout = recorded.inner
    for path in paths:
        copy, name = Locator(path), copied_name(path.rpartition("/")[2])
        original = copy.parent.child(name) if name and is_key_segment(name) else None
        found = _conflict(recorded, copy, original) if original else None
        if original is None or found is None or found.united is None:
            continue
        files = layout.logical([original.key]) if isinstance(layout, NotesLayout) else [original]
        with suppress(ConcurrentModificationError, AbsentError):  # another process settles it
            settle(recorded, found, "merge", partial(recorded.notice, files))


def settle(
    recorded: Recorded, conflict: Conflict, keep: str, record: Callable[[], object]
) -> str | None:
    """Write `mine`, `theirs` or a `merge` of both; remove the copy; return the text.

    `record` records edits by hand in the history. The text of the copy is recorded before it is
    removed. Raises `ConcurrentModificationError` if the file or the copy has changed since.
    """
    if keep not in KEEPS:
        raise InvalidValueError(f"{keep!a} is not a choice. Fix: use one of {', '.join(KEEPS)}.")
    files, mine, final = files_of(recorded), conflict.mine, _final(conflict, keep)
    record()
    if final != conflict.theirs:
        _put_aside(recorded, conflict)
    if final is not None and final != mine:
        expect = ABSENT if mine is None else content_hash(mine)
        files.write(Locator(conflict.original), final, expect=expect)
        record()
    files.remove(Locator(conflict.path), expect=content_hash(conflict.theirs))
    record()
    return final


def _put_aside(recorded: Recorded, conflict: Conflict) -> None:
    """Record the text of the copy as a version of the file, which does not change."""
    layout, file = recorded.inner, Locator(conflict.original)
    held = {file: conflict.theirs}
    if isinstance(layout, NotesLayout):
        held = layout.held(file.key, conflict.theirs)
    recorded.committer.record_unwritten(held, {CONFLICT_COPY: conflict.path})


def _final(conflict: Conflict, keep: str) -> str | None:
    if keep != "merge":
        return conflict.theirs if keep == "theirs" else conflict.mine
    if conflict.mine is None:
        raise ConcurrentModificationError(
            f"{conflict.original!a} does not exist any more. Nothing was changed. "
            "Fix: keep theirs to bring it back, or mine to leave it gone."
        )
    merged = conflict.merged
    if merged.clashes:
        raise ConcurrentModificationError(
            f"{conflict.path!a} and {conflict.original!a} changed the same lines in "
            f"{merged.clashes} place{'s' * (merged.clashes > 1)}. Nothing was changed. Fix: keep "
            "mine or theirs; or edit the file so that it has both, then keep mine."
        )
    return merged.text
