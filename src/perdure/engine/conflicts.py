"""Conflict copies: what a sync client leaves when two machines changed one file, and settling it.

A copy is not a memory, and nothing of it is lost: before it is removed, its text is a version of
the file that it is a copy of.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby, islice
from typing import NamedTuple

from perdure.artifacts.lines import Merged, diff, matches, merge
from perdure.artifacts.lines import split as split_lines
from perdure.context.layouts.notefile import NoteFile
from perdure.context.layouts.notes import NotesLayout
from perdure.errors import AbsentError, ConcurrentModificationError, InvalidValueError
from perdure.storage import ABSENT, FindingKind, Locator, StorageBackend, content_hash
from perdure.storage.history import CONFLICT_COPY, Version
from perdure.storage.undo import look
from perdure.storage.wrappers.recorded import Recorded

KEEPS = ("mine", "theirs", "merge")
_MOST_VERSIONS = 200
"""So many versions, the newest first, may be what a copy was made from."""
_GROWING = frozenset({"updated", "version"})
"""Properties that every save changes; of two, the later is right."""


class Conflict(NamedTuple):
    path: str
    """Of the copy, in the store."""
    original: str
    mine: str | None
    """What the file has now; None if it is gone."""
    theirs: str
    base: str
    """What both were made from: an earlier version, or else what they share."""

    @property
    def merged(self) -> Merged:
        """The file with the changes of both: in its frontmatter by property, below by line."""
        three = [NoteFile.parse(_ended(each or "")) for each in (self.base, self.mine, self.theirs)]
        head, body = _merged_heads(*three), merge(*(each.body for each in three))
        return Merged(head.text + body.text, head.clashes + body.clashes)

    @property
    def changes(self) -> tuple[str, str]:
        """What each side changed, as unified diffs: in the file, and in the copy."""
        name = self.original
        base, mine, theirs = map(_ended, (self.base, self.mine or "", self.theirs))
        return (
            diff(base, mine, old_name=f"{name} before", new_name=f"{name} (mine)"),
            diff(base, theirs, old_name=f"{name} before", new_name=f"{name} (theirs)"),
        )


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _merged_heads(base: NoteFile, mine: NoteFile, theirs: NoteFile) -> Merged:
    """Return the frontmatter with the changes of both; lines between properties count as one."""
    files = (base, mine, theirs)
    heads = [each._replace(body="").text() for each in files]
    three = [{entry.name or entry.raw: entry.raw for entry in each.entries} for each in files]
    is_plain = list(map(len, three)) == [len(each.entries) for each in files]  # no name twice
    if len(set(heads)) < len(heads) or not (is_plain and mine.opening and theirs.opening):
        return merge(*heads)
    out, clashes = "", 0
    for name in dict.fromkeys((*three[1], *three[2])):
        before, ours, others = (raws.get(name, "") for raws in three)
        if name in _GROWING and ours and others:
            out += max(ours, others, key=lambda raw: (len(raw), raw))
            continue
        merged = others if ours == before else ours
        clashes += merged != others != before
        out += merged
    return Merged(mine.opening + out + mine.closing, clashes)


def files_of(recorded: Recorded) -> StorageBackend:
    """Return the backend with the files that people and sync clients see."""
    inner = recorded.inner
    return inner.inner if isinstance(inner, NotesLayout) else inner


def conflicts(recorded: Recorded) -> Iterator[Conflict]:
    files = files_of(recorded)
    for directory, stamps in files.scan(skip=_is_of_a_tool):
        for finding in files.findings(directory) if stamps is not None else ():
            if finding.kind is FindingKind.CONFLICT_COPY and finding.original is not None:
                found = _conflict(recorded, directory.child(finding.name), finding.original)
                if found is not None:
                    yield found


def _is_of_a_tool(directory: str) -> bool:
    return directory.rpartition("/")[2].startswith(".")


def _conflict(recorded: Recorded, copy: Locator, original: Locator) -> Conflict | None:
    files = files_of(recorded)
    mine, theirs = look(files, original), look(files, copy)
    if not isinstance(theirs, str):  # it is not a text, or was removed since
        return None
    text = mine if isinstance(mine, str) else None
    earlier = _earlier(recorded, original, text or theirs)
    return Conflict(copy.key, original.key, text, theirs, _base(earlier, text or "", theirs))


def _base(earlier: Iterator[str], mine: str, theirs: str) -> str:
    """Return the version that is nearest to the copy, the newest of several.

    A newer one than the copy was made from would have its own lines removed by a merge. Without
    one, it is what both share, so that a merge has the lines of both.
    """
    lines = Counter(filter(str.strip, theirs.splitlines()))

    def distance(text: str) -> int:
        has = Counter(filter(str.strip, text.splitlines()))
        return (lines - has).total() + (has - lines).total()

    texts = [each for each in islice(earlier, _MOST_VERSIONS) if each not in {mine, theirs}]
    if texts:
        return min(texts, key=distance)
    ours, others = NoteFile.parse(_ended(mine)), NoteFile.parse(_ended(theirs))
    shared = matches(old := split_lines(ours.body), split_lines(others.body))
    return ours._replace(
        entries=tuple(each for each in ours.entries if each in others.entries),
        body="".join(line for run in shared for line in old[run.old : run.old + run.length]),
    ).text()


def _earlier(recorded: Recorded, file: Locator, text: str) -> Iterator[str]:
    """Yield what a file was, newest first; not what copies had that were settled."""
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
            with suppress(AbsentError):  # removed, or no longer kept
                texts[locator] = history.text(version)
        if isinstance(layout, NotesLayout):
            texts = {file: layout.composed(file.key, texts, text)} if texts else {}
        yield from texts.values()


def _commit_of(found: tuple[Version, Locator]) -> int:
    return found[0].commit


def chosen(found: Sequence[Conflict], path: str) -> Conflict:
    """Return the conflict that a path means: the copy's, or the original's if it has one copy."""
    exact = [each for each in found if each.path == path]
    named = exact or [each for each in found if each.original == path]
    if len(named) == 1:
        return named[0]
    what = "is not a conflict copy" if not named else f"has {len(named)} conflict copies"
    raise AbsentError(f"{path!a} {what}. Fix: name one that `perdure conflicts` lists.")


def settle(
    recorded: Recorded, conflict: Conflict, keep: str, record: Callable[[], object]
) -> str | None:
    """Let the file be `mine`, `theirs` or a `merge` of both; remove the copy; return the text.

    `record` lets what others wrote enter history. The copy's text does so before it is removed. If
    the file or the copy changed since it was looked at: `ConcurrentModificationError`.
    """
    if keep not in KEEPS:
        raise InvalidValueError(f"{keep!a} can't be kept. Fix: one of {', '.join(KEEPS)}.")
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
    """Let the copy's text be a version of the file, which is then again as it was."""
    layout, file = recorded.inner, Locator(conflict.original)
    held = {file: conflict.theirs}
    if isinstance(layout, NotesLayout):
        held = layout.held(file.key, conflict.theirs)
    recorded.joint.put_aside(held, {CONFLICT_COPY: conflict.path})


def _final(conflict: Conflict, keep: str) -> str | None:
    if keep != "merge":
        return conflict.theirs if keep == "theirs" else conflict.mine
    if conflict.mine is None:
        raise ConcurrentModificationError(
            f"{conflict.original!a} is gone, so there is nothing to merge. Nothing was changed. "
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
