"""Upkeep of a memory: its health, the indexes, and the events that wait for them."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import NamedTuple
from urllib.parse import unquote

from perdure.dataclass import dataclass, replace
from perdure.engine.edits import look_for_edits, record
from perdure.engine.indexing.feed import with_folders
from perdure.engine.indexing.follower import IndexFollower, IndexUpdate, Progress, accounts_of
from perdure.engine.indexing.indexer import BATCH, Records, batched
from perdure.engine.recall.result import Hint
from perdure.engine.services import Services
from perdure.errors import DamageError, NodeNotFoundError, StorageError
from perdure.index.contract import KeptIndex
from perdure.index.filters import root, stamp
from perdure.model import IndexRecord, OutboxEvent, RequestContext, Uri
from perdure.model.values import JSON
from perdure.storage import DerivedMaintenance, Locator, StoragePreview, Tier
from perdure.storage.contract import Layout
from perdure.storage.seen import settle


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
    """All is well, and could be better."""
    WARN = "warn"
    """It works, but somebody should look."""
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    level: Severity
    message: str
    """What was found; unless all is well, with the fix."""


@dataclass(frozen=True, slots=True)
class Checkup:
    storage: StoragePreview
    checks: tuple[Check, ...]
    """All, but for the storage."""

    @property
    def ok(self) -> bool:
        return self.storage.ok and all(check.level is not Severity.FAIL for check in self.checks)


Counting = Callable[[int, int], None]
"""Is called with how many were done, and of how many."""


class DifferenceKind(Enum):
    MISSING = "missing"
    """Canonical state has it, and the index has not."""
    SURPLUS = "surplus"
    """The index has it, and canonical state has not."""
    DIFFERENT = "different"
    DAMAGED = "damaged"
    """Its records are not what was put."""
    BEHIND = "behind"
    """It changed after the index was brought up to date."""


NOT_COMPARED = (
    "what the records say, what the texts say, and whether the file of the index is whole"
)
"""What a quick check leaves out."""


class Difference(NamedTuple):
    uri: str
    kind: DifferenceKind


@dataclass(frozen=True, slots=True)
class IndexProof:
    """What was found when an index was compared with canonical state."""

    root: str
    """One digest of all that the index should hold; the same wherever the nodes are the same."""
    places: int
    records: int
    differences: tuple[Difference, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    """Nodes that can't be read or embedded, and why."""
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
    """Up to where it is right; 0 if it is not finished."""
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
    """Why another index answers meanwhile; empty if it does not."""


class Upkeep:
    def __init__(self, following: IndexFollower) -> None:
        self.following = following

    @property
    def _index(self) -> KeptIndex:
        return self.following.index

    def verify(
        self, account_id: str, *, heal: bool = False, progress: Progress = lambda _: None
    ) -> IndexProof:
        """Compare every record with what canonical state gives; make right what is not, if told.

        To look takes as long as there is memory; to heal, as long as there are differences.
        """
        try:
            damaged = set(self._index.check(account_id))
            held = self._index.stamps(account_id)
        except DamageError as error:
            if not heal:
                return IndexProof("", 0, 0, damage=str(error))
            self.rebuild(account_id, progress)
            return replace(self.verify(account_id), damage=str(error))
        found = _IndexComparison(held, damaged)
        for batch in batched(self.following.places(account_id), BATCH):
            made = self.following.indexer.batch(batch)
            if made.outage is not None:
                raise made.outage  # nobody can tell what the vectors should be
            wrong = found.compare(made.records)
            found.failed += [(uri, str(error)) for uri, error in made.failed.items()]
            if heal and wrong:
                unlogged = self.following.log.unlogged(made, self._index.cursor(account_id))
                self._index.replace(account_id, wrong, unlogged=unlogged & wrong.keys())
            progress(len(batch))
        surplus = found.surplus()
        if heal and surplus:
            self._index.replace(account_id, surplus, unlogged=surplus)
        return found.proof()

    def rebuild(self, account_id: str, progress: Progress = lambda _: None) -> IndexUpdate:
        return self.following.rebuild(account_id, progress)


class _IndexComparison:
    def __init__(self, held: dict[str, str], damaged: set[str]) -> None:
        self._unseen = dict(held)
        self._held = held
        self._damaged = damaged
        self._expected: dict[str, str] = {}
        self._differences: list[Difference] = []
        self.failed: list[tuple[str, str]] = []
        self._places = self._records = 0

    def compare(self, records: Records) -> Records:
        wrong: Records = {}
        for uri, made in records.items():
            self._places += 1
            self._records += len(made)
            self._unseen.pop(uri, None)
            kind = self._kind(uri, made)
            if kind is not None:
                self._differences.append(Difference(uri, kind))
                wrong[uri] = made
        return wrong

    def _kind(self, uri: str, made: list[IndexRecord]) -> DifferenceKind | None:
        expected = stamp(made) if made else None
        held = self._held.get(uri)
        if expected is not None:
            self._expected[uri] = expected
        if uri in self._damaged:
            return DifferenceKind.DAMAGED
        if expected == held:
            return None
        if held is None:
            return DifferenceKind.MISSING
        return DifferenceKind.SURPLUS if expected is None else DifferenceKind.DIFFERENT

    def surplus(self) -> Records:
        self._differences += [
            Difference(uri, DifferenceKind.SURPLUS) for uri in sorted(self._unseen)
        ]
        return {uri: [] for uri in self._unseen}

    def proof(self) -> IndexProof:
        found = tuple(self._differences), tuple(self.failed)
        return IndexProof(root(self._expected), self._places, self._records, *found)


class IndexUpkeep:
    """The index of one account, for a caller who governs it."""

    def __init__(self, parts: Services, caller: RequestContext, settle: Callable[[], None]) -> None:
        caller.demand_governing("look after its index")
        self._settle = settle
        self._services = parts
        self._caller = caller
        self._account = caller.account_id

    def status(self) -> IndexStatus:
        """Return what the index is made of, and how far it is behind."""
        indexes, account, recorded = self._services.indexes, self._account, self._services.recorded
        following = indexes.upkeep.following
        waiting, dead, _ = self._services.outbox.count(account)
        present = self._services.current_index(account)
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
        """Return how many texts others wrote; what was compared now is not read again."""
        recorded, seen = self._services.recorded, self._services.seen
        edits = look_for_edits(recorded.inner, recorded.history, seen)
        if not edits.found:
            with suppress(StorageError):  # as where the disk can't be written
                settle(seen, edits)
        return len(edits.found)

    @property
    def is_built(self) -> bool:
        return self._services.indexes.upkeep.following.index.cursor(self._account) > 0

    def rebuild(self, *, progress: Counting | None = None) -> IndexUpdate:
        """Delete the index and build it again. Vectors that are known are not computed again.

        `TextsGoneError` if too many texts are gone at once, as `recall` would hint.
        """
        recorded = self._services.recorded
        look_for_edits(recorded.inner, recorded.history, self._services.seen)
        return self._services.indexes.upkeep.rebuild(self._account, self._counted(progress))

    def verify(
        self, *, heal: bool = False, quick: bool = False, progress: Counting | None = None
    ) -> IndexProof:
        """Compare every record with canonical state; with `heal`, replace what differs.

        What is only behind is brought up to date first. With `quick`, no record and no text is
        read: the index is compared with the log by its cursor, and texts with the log by their
        stamps. The proof says what was not compared.
        """
        with suppress(DamageError):  # which is found below
            self._settle()
        if quick:
            return self._verify_quickly()
        upkeep = self._services.indexes.upkeep
        proof = upkeep.verify(self._account, heal=heal, progress=self._counted(progress))
        notes = self._services.repair.notes(self._caller)
        return replace(proof, notes=tuple(note.uri for note in notes))

    def _verify_quickly(self) -> IndexProof:
        try:
            found = self.status()
        except DamageError as error:
            return IndexProof("", 0, 0, damage=str(error), not_compared=NOT_COMPARED)
        following = self._services.indexes.upkeep.following
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
        """Remove the indexes of earlier embedders that answer no more, of all accounts.

        Return their names and bytes. Vectors stay, so that nothing is computed twice.
        """
        return tuple((unquote(name), size) for name, size in self._services.indexes.prune())

    def _counted(self, progress: Counting | None) -> Progress:
        if progress is None:
            return lambda _: None
        whole, done = (
            sum(1 for _ in self._services.indexes.upkeep.following.places(self._account)),
            0,
        )

        def count(more: int) -> None:
            nonlocal done
            done += more
            progress(done, whole)

        return count


class OutboxUpkeep:
    """The events of one account that the index does not have yet, for a caller who governs it."""

    def __init__(self, parts: Services, caller: RequestContext) -> None:
        caller.demand_governing("look after its outbox")
        self._services = parts
        self._account = caller.account_id

    def list(self) -> tuple[OutboxEvent, ...]:
        """Return the events that are not done, oldest first."""
        return tuple(event for _, event in self._services.outbox.list_unfinished(self._account))

    def dead(self, ids: Sequence[str] = ()) -> tuple[OutboxEvent, ...]:
        """Return the events that failed too often: all, or those with these ids.

        `NodeNotFoundError` if an id is not one of a dead event.
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
    services: Services

    def reindex(self, tier: Tier) -> None:
        if not tier.derived:
            raise ValueError("the source is the truth. Fix: reindex a derived tier.")
        reader, indexes = self.services.reader, self.services.indexes
        for account in accounts_of(reader):
            if tier is Tier.LOCAL_INDEX:
                indexes.upkeep.rebuild(account)
                continue
            for place in with_folders(reader.walk(Uri(account))):
                if not place.is_node:
                    indexes.summaries.records(place)

    def changed_since(self, mtime: float) -> list[Locator]:
        """As promised, from the table of what was seen of each text, which is brought up to date.

        `TextsGoneError` if so many are gone that nothing is recorded.
        """
        parts, backend = self.services, self.services.recorded.inner
        began = time.time()
        checked = look_for_edits(backend, parts.recorded.history, parts.seen)
        record(parts, checked)
        settle(parts.seen, checked, began)
        if not isinstance(backend, Layout):
            return sorted(map(Locator, parts.seen.newer(mtime, backend)))
        texts = backend.logical(parts.seen.newer(mtime, backend.inner))
        return sorted(text for text in texts if backend.exists(text))
