"""Reconciliation of files and history: edits are recorded, imported versions are written."""

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
from perdure.storage.recorded import Recorded
from perdure.storage.redo import keys_among, matches_cid, remove_empty_directories
from perdure.storage.stamps import batches, was_moved
from perdure.storage.text_history import Event, History

_ROOT = Locator("")


class EditKind(Enum):
    NEW = "new"
    EDITED = "edited"
    REMOVED = "removed"
    UNREADABLE = "unreadable"
    """Not a text, or a link, or not readable; it is left alone."""


class ExternalEdit(NamedTuple):
    locator: Locator
    kind: EditKind


def record_external_edits(
    recorded: Recorded, *, accept_removals: bool = False
) -> list[ExternalEdit]:
    """Compare every text with its last version; record what others changed, and return it.

    Contents are compared, not times and sizes, which sync clients set. Texts that differ are
    compared again under the lock, so that a save in progress is not taken for an edit. A second
    call finds nothing, except files that can't be read. Raises `TextsGoneError` if the tree is
    suddenly empty or has lost more than a tenth of its texts, unless that is accepted.
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
    # A layout has refused a loss itself, and a tree without an identity is in memory.
    is_checked = isinstance(recorded.inner, Layout) or not recorded.identity
    if not accept_removals and not is_checked:
        lost = [each.key for each, digest in removed.items() if not was_moved(digest, arrived)]
        refuse_loss(recorded, lost, known=met + len(lost), met=met)
    noticed = [
        _found(discrepancy)
        for batch in batches([*removed, *written])
        for discrepancy in recorded.notice(batch)
    ]
    return sorted([*noticed, *unreadable], key=lambda found: found.locator)


def _batches(recorded: Recorded, *, accept_removals: bool) -> Iterator[list[Locator]]:
    """Yield every locator that may have a text, or had one, in batches."""
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
    """What a comparison of all texts with history found."""

    recorded: tuple[ExternalEdit, ...]
    """Texts that are new, edited or removed; each is now a version."""
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
    """What `write_files` did."""

    written: int = 0
    left: list[str] = field(default_factory=list)
    """Keys whose file is not what history had before, or can't be written."""


def unwritten_keys(history: History) -> list[Locator]:
    """Return the texts that have versions after the mark, which no file may have."""
    history.position()
    return list(keys_among(history.store.catalogue.named_since(history.lock.settled())))


_BATCH = 200


def write_files(history: History, storage: StorageBackend) -> FileWrites:
    """Write the files as history has them, unless others changed them meanwhile.

    All texts of a node are written at once: in some layouts they are one file, whose name depends
    on all of them.
    """
    result = FileWrites()
    with history.lock.hold():
        before, now = history.lock.settled(), history.position()
        some: list[Locator] = []
        for locator in unwritten_keys(history):
            if len(some) >= _BATCH and locator.parent.parent != some[-1].parent.parent:
                _land(history, storage, some, (before, now), result)
                some = []
            some.append(locator)
        _land(history, storage, some, (before, now), result)
    return result


def _land(
    history: History,
    storage: StorageBackend,
    locators: Sequence[Locator],
    positions: tuple[int, int],
    result: FileWrites,
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
            result.left.append(locator.key)
            continue
        if found == text:
            continue
        if matches_cid(None if old is None else old.cid, found):
            changes[locator] = text
            guards[locator] = ABSENT if found is None else content_hash(found)
        else:
            result.left.append(locator.key)
    try:
        storage.write_all(changes, expect=guards)
        result.written += len(changes)
    except StorageError:
        if len(changes) == 1:
            result.left.extend(locator.key for locator in changes)
            return
        for locator in changes:
            _land(history, storage, [locator], positions, result)
    for locator, text in changes.items():
        if text is None:
            remove_empty_directories(storage, locator.parent)


def _event(history: History, locator: Locator, position: int) -> Event | None:
    found = history.current(locator, IndexState(0, position))
    return None if found is None or found.unbound else found
