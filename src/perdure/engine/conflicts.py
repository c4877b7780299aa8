"""Conflict copies: what a sync client leaves when two machines changed one file, and settling it.

A copy is not a memory, and nothing of it is lost: before it is removed, its text is a version of
the file that it is a copy of.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from perdure.artifacts.lines import Merged, diff, merge
from perdure.errors import AbsentError, ConcurrentModificationError, InvalidValueError
from perdure.storage import ABSENT, FindingKind, Locator, StorageBackend, content_hash
from perdure.storage.contract import is_directory
from perdure.storage.undo import look

KEEPS = ("mine", "theirs", "merge")


class Conflict(NamedTuple):
    """A file with a conflict copy beside it."""

    path: str
    """Of the copy, in the store."""
    original: str
    mine: str | None
    """What the file has now; None if it is gone."""
    theirs: str
    """What the copy has."""
    base: str
    """The newest version that is neither of them: what both were made from; empty if none is."""

    @property
    def merged(self) -> Merged:
        return merge(self.base, self.mine or "", self.theirs)

    @property
    def changes(self) -> tuple[str, str]:
        """What each side changed, as unified diffs: in the file, and in the copy."""
        mine, name = self.mine or "", self.original
        return (
            diff(self.base, mine, old_name=f"{name} before", new_name=f"{name} (mine)"),
            diff(self.base, self.theirs, old_name=f"{name} before", new_name=f"{name} (theirs)"),
        )


def conflicts(
    files: StorageBackend, earlier: Callable[[Locator], Iterator[str]]
) -> Iterator[Conflict]:
    """Yield the conflict copies of a store; `earlier` gives the texts that a file had."""
    pending = [Locator("")]
    while pending:
        directory = pending.pop()
        copies = set()
        for finding in files.findings(directory):
            if finding.kind is FindingKind.CONFLICT_COPY and finding.original is not None:
                copies.add(finding.name)
                found = _conflict(files, directory.child(finding.name), finding.original, earlier)
                if found is not None:
                    yield found
        pending += [
            child
            for child in files.list(directory)
            if child.name not in copies
            and not child.name.startswith(".")
            and is_directory(files, child)
        ]


def _conflict(
    files: StorageBackend,
    copy: Locator,
    original: Locator,
    earlier: Callable[[Locator], Iterator[str]],
) -> Conflict | None:
    mine, theirs = look(files, original), look(files, copy)
    if not isinstance(theirs, str):  # it is not a text, or was removed since
        return None
    text = mine if isinstance(mine, str) else None
    base = next((one for one in earlier(original) if one not in (text, theirs)), "")
    return Conflict(copy.key, original.key, text, theirs, base)


def chosen(found: Sequence[Conflict], path: str) -> Conflict:
    """Return the conflict that a path means: the copy's, or the original's if it has one copy."""
    exact = [each for each in found if each.path == path]
    named = exact or [each for each in found if each.original == path]
    if len(named) == 1:
        return named[0]
    what = "is not a conflict copy" if not named else f"has {len(named)} conflict copies"
    raise AbsentError(f"{path!a} {what}. Fix: name one that `perdure conflicts` lists.")


def settle(
    files: StorageBackend, conflict: Conflict, keep: str, record: Callable[[], object]
) -> str:
    """Let the file be `mine`, `theirs` or a `merge` of both; remove the copy; return the text.

    `record` lets what was written enter history. The copy's text does so before it is removed. If
    the file or the copy changed since it was looked at: `ConcurrentModificationError`.
    """
    if keep not in KEEPS:
        raise InvalidValueError(f"{keep!a} can't be kept. Fix: one of {', '.join(KEEPS)}.")
    final = _final(conflict, keep)
    original, copy = Locator(conflict.original), Locator(conflict.path)
    now = conflict.mine
    for text in (conflict.theirs, final):
        if text != now:
            expect = ABSENT if now is None else content_hash(now)
            files.write(original, text, expect=expect)
            record()
            now = text
    files.remove(copy, expect=content_hash(conflict.theirs))
    record()
    return final


def _final(conflict: Conflict, keep: str) -> str:
    if keep == "theirs" or conflict.mine is None:
        return conflict.theirs
    if keep == "mine":
        return conflict.mine
    merged = conflict.merged
    if merged.clashes:
        raise ConcurrentModificationError(
            f"{conflict.path!a} and {conflict.original!a} changed the same lines in "
            f"{merged.clashes} place{'s' * (merged.clashes > 1)}. Nothing was changed. Fix: keep "
            "mine or theirs; or edit the file so that it has both, then keep mine."
        )
    return merged.text
