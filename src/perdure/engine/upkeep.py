"""The health of a memory: values of status and doctor, and the verification of an index."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from perdure.dataclass import dataclass, replace
from perdure.engine.indexing.follower import IndexFollower, Progress
from perdure.engine.indexing.indexer import BATCH, Records, batched
from perdure.engine.recall.result import Hint
from perdure.errors import DamageError
from perdure.index.filters import root_digest, stamp
from perdure.model import IndexRecord
from perdure.model.values import JSON
from perdure.storage import StoragePreview


@dataclass(frozen=True, slots=True)
class StatusSection:
    """One part of a memory, such as its storage, history or index."""

    name: str
    facts: Mapping[str, JSON]
    trouble: str = ""
    """What is wrong, with the fix; empty if nothing is."""


class Severity(Enum):
    OK = "ok"
    NOTE = "note"
    """Nothing is wrong, but something could be improved."""
    WARN = "warn"
    """It works, but needs attention."""
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    level: Severity
    message: str
    """What was found, with the fix if something is wrong."""


@dataclass(frozen=True, slots=True)
class Checkup:
    storage: StoragePreview
    checks: tuple[Check, ...]
    """All checks except that of the storage."""

    @property
    def ok(self) -> bool:
        return self.storage.ok and all(check.level is not Severity.FAIL for check in self.checks)


Counting = Callable[[int, int], None]
"""Is called with the number done, and the total."""


class DifferenceKind(Enum):
    MISSING = "missing"
    """Canonical state has it, but the index does not."""
    SURPLUS = "surplus"
    """The index has it, but canonical state does not."""
    DIFFERENT = "different"
    DAMAGED = "damaged"
    """Its records are not those that were written."""
    BEHIND = "behind"
    """It changed after the position of the index."""


NOT_COMPARED = (
    "what the records say, what the texts say, and whether the file of the index is whole"
)
"""What a quick check does not compare."""


class Difference(NamedTuple):
    uri: str
    kind: DifferenceKind


@dataclass(frozen=True, slots=True)
class IndexProof:
    """The result of comparing an index with canonical state."""

    root: str
    """A digest of all records that the index should have; equal nodes give equal digests."""
    places: int
    records: int
    differences: tuple[Difference, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    """Nodes that can't be read or embedded, each with its error."""
    damage: str = ""
    """Why the index could not be read at all."""
    notes: tuple[str, ...] = ()
    """Texts that no index has, because they are not nodes yet."""
    unrecorded: int = 0
    """Texts that were edited outside Perdure and are not recorded yet, if it was a quick check."""
    not_compared: str = ""
    """What a quick check did not look at; empty if everything was compared."""

    @property
    def holds(self) -> bool:
        return not self.differences and not self.damage and not self.unrecorded


@dataclass(frozen=True, slots=True)
class ListedIndex:
    name: str
    places: int
    position: int
    """The position up to which it is correct; 0 if it is not finished."""
    size: int
    answers: bool


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The index of the configured embedder, and the others that an account has."""

    index: str
    semantic: bool
    built: bool
    position: int
    newest: int
    """The newest position of the log."""
    places: int
    behind: int
    """Places that changed after `position`."""
    unrecorded: int
    """Texts that were edited outside Perdure since, and are not recorded yet."""
    waiting: int
    dead: int
    indexes: tuple[ListedIndex, ...]
    hints: tuple[Hint, ...]
    """Why another index answers in the interim; empty if none does."""


def verify_index(
    follower: IndexFollower,
    account_id: str,
    *,
    heal: bool = False,
    progress: Progress = lambda _: None,
) -> IndexProof:
    """Compare every record with canonical state; with `heal`, replace those that differ.

    The comparison takes time in proportion to the memory, and healing to the differences.
    """
    index = follower.index
    try:
        damaged = set(index.check(account_id))
        stamps = index.stamps(account_id)
    except DamageError as error:
        if not heal:
            return IndexProof("", 0, 0, damage=str(error))
        follower.rebuild(account_id, progress)
        return replace(verify_index(follower, account_id), damage=str(error))
    comparison = _IndexComparison(stamps, damaged)
    for places in batched(follower.places(account_id), BATCH):
        batch = follower.indexer.batch(places)
        if batch.outage is not None:
            raise batch.outage  # the correct vectors are unknown
        wrong = comparison.compare(batch.records)
        comparison.failed += [(uri, str(error)) for uri, error in batch.failed.items()]
        if heal and wrong:
            unlogged = follower.log.unlogged(batch, index.cursor(account_id))
            index.replace(account_id, wrong, unlogged=unlogged & wrong.keys())
        progress(len(places))
    surplus = comparison.surplus()
    if heal and surplus:
        index.replace(account_id, surplus, unlogged=surplus)
    return comparison.proof()


class _IndexComparison:
    def __init__(self, stamps: dict[str, str], damaged: set[str]) -> None:
        self._unseen = dict(stamps)
        self._stamps = stamps
        self._damaged = damaged
        self._expected: dict[str, str] = {}
        self._differences: list[Difference] = []
        self.failed: list[tuple[str, str]] = []
        self._places = self._records = 0

    def compare(self, expected: Records) -> Records:
        """Return those of the expected records that the index does not have."""
        wrong: Records = {}
        for uri, records in expected.items():
            self._places += 1
            self._records += len(records)
            self._unseen.pop(uri, None)
            kind = self._kind(uri, records)
            if kind is not None:
                self._differences.append(Difference(uri, kind))
                wrong[uri] = records
        return wrong

    def _kind(self, uri: str, records: list[IndexRecord]) -> DifferenceKind | None:
        expected = stamp(records) if records else None
        indexed = self._stamps.get(uri)
        if expected is not None:
            self._expected[uri] = expected
        if uri in self._damaged:
            return DifferenceKind.DAMAGED
        if expected == indexed:
            return None
        if indexed is None:
            return DifferenceKind.MISSING
        return DifferenceKind.SURPLUS if expected is None else DifferenceKind.DIFFERENT

    def surplus(self) -> Records:
        """Return the places that only the index has, each without records."""
        unseen = sorted(self._unseen)
        self._differences += [Difference(uri, DifferenceKind.SURPLUS) for uri in unseen]
        return {uri: [] for uri in self._unseen}

    def proof(self) -> IndexProof:
        found = tuple(self._differences), tuple(self.failed)
        return IndexProof(root_digest(self._expected), self._places, self._records, *found)
