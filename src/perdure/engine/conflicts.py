"""Conflict copies: what a sync client leaves when two machines changed one file, and settling it.

A copy is not a memory, and nothing of it is lost: before it is removed, its text is a version of
the file that it is a copy of.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from perdure.artifacts.lines import Merged, diff, matches, merge
from perdure.artifacts.lines import split as split_lines
from perdure.context.files import CONTENT
from perdure.errors import AbsentError, ConcurrentModificationError, InvalidValueError
from perdure.frontmatter import split
from perdure.storage import ABSENT, FindingKind, Locator, StorageBackend, content_hash
from perdure.storage.contract import Layout
from perdure.storage.undo import look
from perdure.storage.wrappers.recorded import Recorded

KEEPS = ("mine", "theirs", "merge")
_MOST_VERSIONS = 200
"""So many versions, the newest first, may be what a copy was made from."""


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
    """The body that both were made from: an earlier version, or else the lines that they share."""

    @property
    def merged(self) -> Merged:
        """The file with the changes of both in its body; its frontmatter stays."""
        head, body = _parted(self.mine or "")
        text, clashes = merge(self.base, body, _parted(self.theirs)[1])
        return Merged(head + text, clashes)

    @property
    def changes(self) -> tuple[str, str]:
        """What each side changed, as unified diffs: in the file, and in the copy."""
        name = self.original
        mine, theirs = _parted(self.mine or "")[1], _parted(self.theirs)[1]
        return (
            diff(self.base, mine, old_name=f"{name} before", new_name=f"{name} (mine)"),
            diff(self.base, theirs, old_name=f"{name} before", new_name=f"{name} (theirs)"),
        )


def _parted(text: str) -> tuple[str, str]:
    """Return the frontmatter of a text with its fences, and its body with an end of line."""
    body = split(text)[1]
    head = text.removesuffix(body)
    return head, body if body.endswith("\n") else f"{body}\n"


def files_of(recorded: Recorded) -> StorageBackend:
    """Return the backend with the files that people and sync clients see."""
    inner = recorded.inner
    return inner.inner if isinstance(inner, Layout) else inner


def conflicts(recorded: Recorded) -> Iterator[Conflict]:
    """Yield the conflict copies of a store."""
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
    bodies = [_parted(each)[1] for each in (theirs, text) if each is not None]
    earlier = (_parted(each)[1] for each in _earlier(recorded, original))
    return Conflict(copy.key, original.key, text, theirs, _base(earlier, *bodies))


def _base(earlier: Iterator[str], theirs: str, mine: str = "") -> str:
    """Return the version that is nearest to the copy, the newest of several.

    A newer one than the copy was made from would have its own lines removed by a merge. Without
    one, it is what both share, so that a merge has the lines of both.
    """
    lines = Counter(filter(str.strip, theirs.splitlines()))

    def distance(body: str) -> int:
        has = Counter(filter(str.strip, body.splitlines()))
        return (lines - has).total() + (has - lines).total()

    bodies = [each for each in islice(earlier, _MOST_VERSIONS) if each not in {mine, theirs}]
    if bodies:
        return min(bodies, key=distance)
    shared = matches(old := split_lines(mine), split_lines(theirs))
    return "".join(line for run in shared for line in old[run.old : run.old + run.length])


def _earlier(recorded: Recorded, file: Locator) -> Iterator[str]:
    """Yield the contents that a file had, newest first."""
    inner = recorded.inner
    if not isinstance(inner, Layout):
        return recorded.earlier(file)
    texts = [each for each in inner.logical([file.key]) if each.name == CONTENT]
    return chain.from_iterable(map(recorded.earlier, texts))


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
