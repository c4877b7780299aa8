"""The upkeep of an account's index and outbox, and of the derived tiers."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from urllib.parse import unquote

from perdure.dataclass import dataclass, replace
from perdure.engine.edits import look_for_edits, record
from perdure.engine.indexing.follower import IndexUpdate, Progress, accounts_of, with_folders
from perdure.engine.services import Services
from perdure.engine.upkeep import (
    NOT_COMPARED,
    Counting,
    Difference,
    DifferenceKind,
    IndexProof,
    IndexStatus,
    verify_index,
)
from perdure.errors import DamageError, NodeNotFoundError, StorageError
from perdure.model import OutboxEvent, RequestContext, Uri
from perdure.storage import DerivedMaintenance, Locator, Tier
from perdure.storage.contract import Layout
from perdure.storage.stamps import save_scan


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
