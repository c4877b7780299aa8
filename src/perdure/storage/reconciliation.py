"""Files and history in step: what others wrote enters it, and what came with it is written."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import Enum
from hashlib import sha256
from itertools import chain
from typing import NamedTuple

from perdure.artifacts import IndexState
from perdure.dataclass import dataclass, field
from perdure.errors import (
    AbsentError,
    StorageError,
)
from perdure.storage.changes import ABSENT, Expectation, content_hash
from perdure.storage.committer import Discrepancy
from perdure.storage.contract import UNREADABLE, Layout, StorageBackend, refuse_loss, walk
from perdure.storage.locator import Locator
from perdure.storage.redo import keys_among, matches_cid, remove_empty_directories
from perdure.storage.stamps import batches, was_moved
from perdure.storage.text_history import Event, History
from perdure.storage.wrappers.recorded import Recorded

_ROOT = Locator("")


class EditKind(Enum):
    NEW = "new"
    EDITED = "edited"
    REMOVED = "removed"
    UNREADABLE = "unreadable"
    """No text, or a link, or not ours to read; it is left alone."""


class ExternalEdit(NamedTuple):
    locator: Locator
    kind: EditKind


def record_external_edits(
    recorded: Recorded, *, accept_removals: bool = False
) -> list[ExternalEdit]:
    """Compare every text with its last version; return what others did, and record it.

    Content decides; times and sizes say nothing where somebody else replicates the tree. What
    differs is looked at again while no other writer of ours is at work, so a save that is under
    way is not taken for somebody else's. Nothing is found twice, except what can't be read. A tree
    that is empty all at once, or lost more than a tenth of its texts, is a `TextsGoneError`, unless
    that is accepted.
    """
    unreadable: list[ExternalEdit] = []
    removed: dict[Locator, bytes] = {}
    written: list[Locator] = []
    met = 0
    arrived: Counter[bytes] = Counter()
    compared = map(recorded.committer.compare, _batches(recorded, accept_removals=accept_removals))
    for text, locator, bound in chain.from_iterable(compared):
        met += isinstance(text, str)
        if text is UNREADABLE:
            unreadable.append(ExternalEdit(locator, EditKind.UNREADABLE))
        elif matches_cid(bound, text):
            continue
        elif text is None:
            removed[locator] = b"" if bound is None else bound.digest
        else:
            written.append(locator)
            arrived[sha256(text.encode()).digest()] += 1
    is_asked = isinstance(recorded.inner, Layout) or not recorded.identity  # one is in memory
    if not accept_removals and not is_asked:
        lost = [each.key for each, was in removed.items() if not was_moved(was, arrived)]
        refuse_loss(recorded, lost, known=met + len(lost), met=met)
    noticed = [
        _found(discrepancy)
        for batch in batches([*removed, *written])
        for discrepancy in recorded.notice(batch)
    ]
    return sorted([*noticed, *unreadable], key=lambda found: found.locator)


def _batches(recorded: Recorded, *, accept_removals: bool) -> Iterator[list[Locator]]:
    """Yield every place that may have a text, and those that had one, many at a time."""
    inner = recorded.inner
    if isinstance(inner, Layout):
        there = list(inner.refresh(accept_removals=accept_removals))
    else:
        there = list(walk(inner, _ROOT))
    yield from batches(there)
    yield from batches(set(recorded.committer.known_keys()).difference(there))


def _found(discrepancy: Discrepancy) -> ExternalEdit:
    if discrepancy.after is None:
        return ExternalEdit(discrepancy.locator, EditKind.REMOVED)
    kind = EditKind.NEW if discrepancy.before is None else EditKind.EDITED
    return ExternalEdit(discrepancy.locator, kind)


class EditReport(NamedTuple):
    """What a sweep of the texts found."""

    recorded: tuple[ExternalEdit, ...]
    """Texts that were new, edited or removed; each is a version now."""
    unreadable: tuple[Locator, ...]
    """Files that are not text, or may not be read. They are left alone."""
    lost: tuple[Locator, ...]
    """Those of the unreadable that were texts before."""


def record_edits(recorded: Recorded, *, accept_removals: bool = False) -> EditReport:
    """Compare every text of the tree with its last version, and record what others wrote."""
    found = record_external_edits(recorded, accept_removals=accept_removals)
    unreadable = tuple(each.locator for each in found if each.kind is EditKind.UNREADABLE)
    return EditReport(
        tuple(each for each in found if each.kind is not EditKind.UNREADABLE),
        unreadable,
        tuple(each for each in unreadable if recorded.history.current(each) is not None),
    )


@dataclass(slots=True)
class FileWrites:
    written: int = 0
    left: list[str] = field(default_factory=list)
    """Where the file is not what history had before, or can't be written."""


def unwritten_keys(history: History) -> list[Locator]:
    """Return the texts of which history knows more than was ever written to files."""
    history.position()
    return list(keys_among(history.store.catalogue.named_since(history.lock.settled())))


_TOGETHER = 200


def write_files(history: History, storage: StorageBackend) -> FileWrites:
    """Write the files as history has them, where nobody else changed them meanwhile.

    All texts of a node are written at once: in some layouts they are one file, which is named by
    what they say together.
    """
    landed = FileWrites()
    with history.lock.hold():
        before, now = history.lock.settled(), history.position()
        some: list[Locator] = []
        for locator in unwritten_keys(history):
            if len(some) >= _TOGETHER and locator.parent.parent != some[-1].parent.parent:
                _land(history, storage, some, (before, now), landed)
                some = []
            some.append(locator)
        _land(history, storage, some, (before, now), landed)
    return landed


def _land(
    history: History,
    storage: StorageBackend,
    locators: Sequence[Locator],
    positions: tuple[int, int],
    landed: FileWrites,
) -> None:
    changes: dict[Locator, str | None] = {}
    guards: dict[Locator, Expectation] = {}
    for locator in locators:
        try:
            old, new = (_event(history, locator, at) for at in positions)
            text = None if new is None else history.text(new)
            found: str | None = None
            with suppress(AbsentError):
                found = storage.read(locator)
        except StorageError:
            landed.left.append(locator.key)
            continue
        if found == text:
            continue
        if matches_cid(None if old is None else old.cid, found):
            changes[locator] = text
            guards[locator] = ABSENT if found is None else content_hash(found)
        else:
            landed.left.append(locator.key)
    try:
        storage.write_all(changes, expect=guards)
        landed.written += len(changes)
    except StorageError:
        if len(changes) == 1:
            landed.left.extend(locator.key for locator in changes)
            return
        for locator in changes:
            _land(history, storage, [locator], positions, landed)
    for locator, text in changes.items():
        if text is None:
            remove_empty_directories(storage, locator.parent)


def _event(history: History, locator: Locator, position: int) -> Event | None:
    found = history.current(locator, IndexState(0, position))
    return None if found is None or found.unbound else found
