"""The upkeep of an account's index and outbox, and of the derived tiers.

An index is verified by a comparison with the records that canonical state should have in it.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import NamedTuple
from urllib.parse import unquote

from perdure.dataclass import dataclass, replace
from perdure.engine.edits import look_for_edits, record
from perdure.engine.indexing.follower import (
    BATCH,
    IndexFollower,
    IndexUpdate,
    Progress,
    accounts_of,
    batched,
    with_folders,
)
from perdure.engine.indexing.indexer import Records
from perdure.engine.indexing.indexes import ListedIndex
from perdure.engine.recall.result import Hint
from perdure.engine.services import Services
from perdure.errors import DamageError, NodeNotFoundError, StorageError
from perdure.index.filters import root_digest, stamp
from perdure.model import IndexRecord, OutboxEvent, RequestContext, Uri
from perdure.storage import DerivedMaintenance, Locator, Tier
from perdure.storage.contract import Layout
from perdure.storage.stamps import save_scan

# ---------------------------------------------------------------- verification
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


# ---------------------------------------------------------------- the verbs
class IndexUpkeep:
    """The index of one account, for a caller who governs it."""

    def __init__(
        self, services: Services, caller: RequestContext, settle: Callable[[], None]
    ) -> None:
        caller.demand_governing("maintain its index")
        self._settle = settle
        self._services = services
        self._caller = caller
        self._account = caller.account_id

    def status(self) -> IndexStatus:
        """Return what the index contains, and how far it is behind."""
        indexes, account, recorded = self._services.indexes, self._account, self._services.recorded
        following = indexes.configured.follower
        waiting, dead, _ = self._services.outbox.count(account)
        present = self._services.indexes.current(account)
        return IndexStatus(
            index=unquote(indexes.name),
            semantic=indexes.embedder is not None,
            built=following.index.cursor(account) > 0,
            position=following.index.cursor(account),
            newest=recorded.history.position(),
            places=len(following.index.stamps(account)),
            behind=len(following.behind(account)),
            unrecorded=self._unrecorded(),
            waiting=waiting,
            dead=dead,
            indexes=tuple(
                replace(each, name=unquote(each.name)) for each in indexes.listed(account)
            ),
            hints=tuple(present.hints()) if present.is_interim else (),
        )

    def _unrecorded(self) -> int:
        """Return how many texts were edited outside Perdure and are not recorded yet."""
        recorded, seen = self._services.recorded, self._services.seen
        edits = look_for_edits(recorded.inner, recorded.history, seen)
        if not edits.found:
            with suppress(StorageError):  # as where the disk can't be written
                save_scan(seen, edits)
        return len(edits.found)

    @property
    def is_built(self) -> bool:
        return self._services.indexes.configured.follower.index.cursor(self._account) > 0

    def rebuild(self, *, progress: Counting | None = None) -> IndexUpdate:
        """Delete the index and build it again. Vectors that are known are not computed again.

        `TextsGoneError` if too many texts are gone at once, as `recall` would hint.
        """
        recorded = self._services.recorded
        look_for_edits(recorded.inner, recorded.history, self._services.seen)
        return self._services.indexes.configured.follower.rebuild(
            self._account, self._counted(progress)
        )

    def verify(
        self, *, heal: bool = False, quick: bool = False, progress: Counting | None = None
    ) -> IndexProof:
        """Compare every record with canonical state; with `heal`, replace those that differ.

        A lagging index is brought up to date first. With `quick`, no record and no text is read:
        the index is compared with the log by its cursor, and texts by their stamps;
        `not_compared` lists what was skipped.
        """
        with suppress(DamageError):  # reported below
            self._settle()
        if quick:
            return self._verify_quickly()
        follower, count = self._services.indexes.configured.follower, self._counted(progress)
        proof = verify_index(follower, self._account, heal=heal, progress=count)
        notes = self._services.repair.notes(self._caller)
        return replace(proof, notes=tuple(note.uri for note in notes))

    def _verify_quickly(self) -> IndexProof:
        try:
            found = self.status()
        except DamageError as error:
            return IndexProof("", 0, 0, damage=str(error), not_compared=NOT_COMPARED)
        following = self._services.indexes.configured.follower
        behind = following.behind(self._account) if found.behind and found.built else ()
        return IndexProof(
            "",
            found.places,
            0,
            tuple(Difference(str(place), DifferenceKind.BEHIND) for place in behind),
            damage="" if found.built else "it was never finished",
            unrecorded=found.unrecorded,
            not_compared=NOT_COMPARED,
        )

    def prune(self) -> tuple[tuple[str, int], ...]:
        """Remove the indexes of earlier embedders that answer for no account.

        Return their names and bytes. Vectors stay, so that none is computed twice.
        """
        return tuple((unquote(name), size) for name, size in self._services.indexes.prune())

    def _counted(self, progress: Counting | None) -> Progress:
        if progress is None:
            return lambda _: None
        whole, done = (
            sum(1 for _ in self._services.indexes.configured.follower.places(self._account)),
            0,
        )

        def count(more: int) -> None:
            nonlocal done
            done += more
            progress(done, whole)

        return count


class OutboxUpkeep:
    """The events of one account that the index does not have yet, for a caller who governs it."""

    def __init__(self, services: Services, caller: RequestContext) -> None:
        caller.demand_governing("maintain its outbox")
        self._services = services
        self._account = caller.account_id

    def list(self) -> tuple[OutboxEvent, ...]:
        """Return the events that are not done, oldest first."""
        return tuple(event for _, event in self._services.outbox.list_unfinished(self._account))

    def dead(self, ids: Sequence[str] = ()) -> tuple[OutboxEvent, ...]:
        """Return the events that failed too often: all, or those with these ids.

        `NodeNotFoundError` if an id is not that of a dead event.
        """
        dead = {
            event.event_id: event for _, event in self._services.outbox.list_dead(self._account)
        }
        for each in ids:
            if each not in dead:
                raise NodeNotFoundError(
                    f"no dead event is called {each!a}. Fix: `perdure outbox dead` lists them."
                )
        return tuple(dead[each] for each in ids or dead)

    def requeue(self, ids: Sequence[str] = ()) -> int:
        """Let dead events be tried again, all or some; return how many."""
        return self._services.outbox.requeue(self._account, [e.event_id for e in self.dead(ids)])

    def purge(self, ids: Sequence[str] = ()) -> int:
        """Delete dead events, all or some; return how many."""
        return self._services.outbox.purge(self._account, [e.event_id for e in self.dead(ids)])


@dataclass(frozen=True, slots=True)
class DerivedTiers(DerivedMaintenance):
    """The derived tiers of a memory: how to rebuild them, and which texts are newer."""

    services: Services

    def reindex(self, tier: Tier) -> None:
        if not tier.derived:
            raise ValueError("the source is the truth. Fix: reindex a derived tier.")
        reader, indexes = self.services.reader, self.services.indexes
        for account in accounts_of(reader):
            if tier is Tier.LOCAL_INDEX:
                indexes.configured.follower.rebuild(account)
                continue
            for place in with_folders(reader.walk(Uri(account))):
                if not place.is_node:
                    indexes.summaries.records(place)

    def changed_since(self, mtime: float) -> list[Locator]:
        """As `DerivedMaintenance` promises, from the table of seen texts, after a check for edits.

        `TextsGoneError` if so many are gone that nothing is recorded.
        """
        services, backend = self.services, self.services.recorded.inner
        began = time.time()
        checked = look_for_edits(backend, services.recorded.history, services.seen)
        record(services, checked)
        save_scan(services.seen, checked, began)
        if not isinstance(backend, Layout):
            return sorted(map(Locator, services.seen.newer(mtime, backend)))
        texts = backend.logical(services.seen.newer(mtime, backend.inner))
        return sorted(text for text in texts if backend.exists(text))
