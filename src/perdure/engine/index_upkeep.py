"""The upkeep of one account's index and events, for a caller who governs it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from urllib.parse import unquote

from perdure.dataclass import replace
from perdure.engine.building import Caught, Progress
from perdure.engine.edits import look_for_edits
from perdure.engine.parts import Parts
from perdure.engine.upkeep import (
    NOT_COMPARED,
    Counting,
    Difference,
    IndexProof,
    IndexStatus,
    Kind,
)
from perdure.errors import DamageError, NodeNotFoundError, StorageError
from perdure.model import OutboxEvent, RequestContext
from perdure.storage.stamps import save_scan


class IndexUpkeep:
    """The index of one account, for a caller who governs it."""

    def __init__(self, parts: Parts, caller: RequestContext, settle: Callable[[], None]) -> None:
        caller.demand_governing("look after its index")
        self._settle = settle
        self._parts = parts
        self._caller = caller
        self._account = caller.account_id

    def status(self) -> IndexStatus:
        """Return what the index is made of, and how far it is behind."""
        indexes, account, recorded = self._parts.indexes, self._account, self._parts.recorded
        following = indexes.upkeep.following
        waiting, dead, _ = self._parts.outbox.count(account)
        present = self._parts.present(account)
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
            hints=tuple(present.hints()) if present.meanwhile else (),
        )

    def _unrecorded(self) -> int:
        """Return how many texts others wrote; what was compared now is not read again."""
        recorded, seen = self._parts.recorded, self._parts.seen
        edits = look_for_edits(recorded.inner, recorded.history, seen)
        if not edits.found:
            with suppress(StorageError):  # as where the disk can't be written
                save_scan(seen, edits)
        return len(edits.found)

    @property
    def is_built(self) -> bool:
        return self._parts.indexes.upkeep.following.index.cursor(self._account) > 0

    def rebuild(self, *, progress: Counting | None = None) -> Caught:
        """Delete the index and build it again. Vectors that are known are not computed again.

        `TextsGoneError` if too many texts are gone at once, as `recall` would hint.
        """
        recorded = self._parts.recorded
        look_for_edits(recorded.inner, recorded.history, self._parts.seen)
        return self._parts.indexes.upkeep.rebuild(self._account, self._counted(progress))

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
        upkeep = self._parts.indexes.upkeep
        proof = upkeep.verify(self._account, heal=heal, progress=self._counted(progress))
        notes = self._parts.repair.notes(self._caller)
        return replace(proof, notes=tuple(note.uri for note in notes))

    def _verify_quickly(self) -> IndexProof:
        try:
            found = self.status()
        except DamageError as error:
            return IndexProof("", 0, 0, damage=str(error), not_compared=NOT_COMPARED)
        following = self._parts.indexes.upkeep.following
        behind = following.behind(self._account) if found.behind and found.built else ()
        return IndexProof(
            "",
            found.places,
            0,
            tuple(Difference(str(place), Kind.BEHIND) for place in behind),
            damage="" if found.built else "it was never finished",
            unrecorded=found.unrecorded,
            not_compared=NOT_COMPARED,
        )

    def prune(self) -> tuple[tuple[str, int], ...]:
        """Remove the indexes of earlier embedders that answer no more, of all accounts.

        Return their names and bytes. Vectors stay, so that nothing is computed twice.
        """
        return tuple((unquote(name), size) for name, size in self._parts.indexes.prune())

    def _counted(self, progress: Counting | None) -> Progress:
        if progress is None:
            return lambda _: None
        whole, done = sum(1 for _ in self._parts.indexes.upkeep.following.every(self._account)), 0

        def count(more: int) -> None:
            nonlocal done
            done += more
            progress(done, whole)

        return count


class OutboxUpkeep:
    """The events of one account that the index does not have yet, for a caller who governs it."""

    def __init__(self, parts: Parts, caller: RequestContext) -> None:
        caller.demand_governing("look after its outbox")
        self._parts = parts
        self._account = caller.account_id

    def list(self) -> tuple[OutboxEvent, ...]:
        """Return the events that are not done, oldest first."""
        return tuple(event for _, event in self._parts.outbox.list_unfinished(self._account))

    def dead(self, ids: Sequence[str] = ()) -> tuple[OutboxEvent, ...]:
        """Return the events that failed too often: all, or those with these ids.

        `NodeNotFoundError` if an id is not one of a dead event.
        """
        dead = {event.event_id: event for _, event in self._parts.outbox.list_dead(self._account)}
        for each in ids:
            if each not in dead:
                raise NodeNotFoundError(
                    f"no dead event is called {each!a}. Fix: `perdure outbox dead` lists them."
                )
        return tuple(dead[each] for each in ids or dead)

    def requeue(self, ids: Sequence[str] = ()) -> int:
        """Let dead events be tried again, all or some; return how many."""
        return self._parts.outbox.requeue(self._account, [e.event_id for e in self.dead(ids)])

    def purge(self, ids: Sequence[str] = ()) -> int:
        """Delete dead events, all or some; return how many."""
        return self._parts.outbox.purge(self._account, [e.event_id for e in self.dead(ids)])
