"""Move a memory to another backend: copy it with its history, compare both sides, then say so.

The texts of the source are only read. What is there already is not copied again, so whoever is
killed is followed by the next one who does the same.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.artifacts import CID
from perdure.artifacts.archiving import How, export
from perdure.artifacts.proof import log_root
from perdure.artifacts.state import is_foreign
from perdure.artifacts.verify import Progress
from perdure.engine.carrying.arriving import Arriving, demand_landed
from perdure.errors import (
    ArchiveError,
    ConcurrentModificationError,
    LockTimeout,
    NodeNotFoundError,
    StorageFaultError,
)
from perdure.storage.sweep import sweep
from perdure.storage.wrappers.recorded import Recorded

_ATTEMPTS = 5
_LOCK = "migrating-lock"
_SCRATCH = ".migrating"


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """What would be copied, and what stands in the way."""

    source: str
    target: str
    texts: int
    size: int
    """Of all texts, in bytes."""
    versions: int
    position: int
    """Of the source's log."""
    known: int
    """Up to where the target has the same log already."""
    conflicts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Migrated:
    """A memory that is the same on both sides."""

    history: str
    position: int
    texts: int
    versions: int
    written: int
    """Files that had to be written."""


class Migrating:
    """Copies one memory to the place of another, which is empty, or an earlier state of it."""

    def __init__(self, source: Recorded, target: Arriving, scratch: Path) -> None:
        self._source = source
        self._target = target
        self._scratch = scratch

    # ------------------------------------------------------------ before
    def plan(self) -> MigrationPlan:
        """Say what would be done; nothing is changed."""
        history = self._source.history
        bound = self._bound()
        sizes = (history.store.locate(cid) or () for cid in bound.values())
        how, known = self._relation()
        return MigrationPlan(
            self._source.whereabouts,
            self._target.storage.whereabouts,
            len(bound),
            sum(part.length for location in sizes for part in location),
            sum(event.cid is not None for event in history.changes()),
            history.position(),
            known,
            tuple(self._conflicts(how, bound)),
        )

    def _bound(self) -> dict[str, CID]:
        history = self._source.history
        position = history.position()
        names = [n for n in history.store.catalogue.names("", position) if not is_foreign(n)]
        found = history.store.catalogue.contents(names, position)
        return {name: cid for name, cid in found.items() if cid is not None}

    def _relation(self) -> tuple[How, int]:
        """Return how the target's log stands to ours, and up to where it has the same."""
        ours, theirs = self._source.history.store, self._target.history.store
        ours.current()
        theirs.current()
        if not theirs.history:
            return How.RESTORED, 0
        here, there = ours.current().position, theirs.current().position
        if (
            ours.history != theirs.history
            or there > here
            or log_root(theirs, there) != log_root(ours, there)
        ):
            return How.FOREIGN, 0
        return (How.KNOWN if here == there else How.CONTINUED), there

    def _conflicts(self, how: How, bound: dict[str, CID]) -> Iterator[str]:
        if self._source.identity == self._target.storage.identity:
            yield "it is the memory itself"
            return
        ours, theirs = self._source.history.store, self._target.history.store
        if how is How.FOREIGN and ours.history == theirs.history:
            yield "the memory there went on by itself since it was copied"
            return
        yield from self._target.conflicts(how, bound)

    # ------------------------------------------------------------ doing it
    def apply(self, progress: Progress | None = None) -> Migrated:
        """Copy what is missing there, until both sides are the same; interrupted, do it again."""
        if not self._source.history.position():
            raise NodeNotFoundError("there is nothing to migrate yet. Fix: save something first.")
        written, changed = 0, ""
        with self._alone():
            for _ in range(_ATTEMPTS):
                sweep(self._source)
                self.demand_room()
                position = self._source.history.store.current().position
                written += self._copy(progress)
                with self._source.joint.alone():  # nobody of ours writes meanwhile
                    changed = self._changed(position)
                    if not changed:
                        return self.verify(written)
        raise ConcurrentModificationError(
            f"others keep writing to the memory while it is copied: {changed}. What was copied is "
            "right, and something is missing. Fix: stop them, and do it again."
        )

    def demand_room(self) -> None:
        """Refuse if something stands in the way at the target."""
        found = list(self._conflicts(self._relation()[0], self._bound()))
        if found:
            raise ArchiveError(
                f"the memory can't go to {self._target.storage.whereabouts!a}: {found[0]}"
                f"{f' and {len(found) - 1} more' if len(found) > 1 else ''}. Nothing was changed. "
                "Fix: name a place with no memory in it."
            )

    def _copy(self, progress: Progress | None) -> int:
        """Copy the history and write the files; return how many."""
        path = self._scratch / f"{_SCRATCH}-{secrets.token_hex(4)}"
        try:
            self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
            with path.open("x+b") as file:
                path.chmod(0o600)
                export(self._source.history.store, file, progress=progress)
                file.seek(0)
                return self._target.take_in(file, self._source.whereabouts, progress).files
        finally:
            path.unlink(missing_ok=True)

    def _changed(self, position: int) -> str:
        """Say what was written since a position, by us or by hand; nothing if nothing was."""
        now = self._source.history.store.current().position
        if now != position:
            return f"{now - position} entries are new"
        try:
            demand_landed(self._source.history, self._source.inner)
        except StorageFaultError as error:
            return str(error).partition(". Fix: ")[0]
        return ""

    def verify(self, written: int = 0) -> Migrated:
        """Compare every text and every version on both sides; an error says what differs."""
        ours, theirs = self._source.history, self._target.history
        here, there = ours.position(), theirs.position()
        same = ours.store.history == theirs.store.history and here == there
        if not same or log_root(ours.store, here) != log_root(theirs.store, there):
            raise StorageFaultError(
                f"the histories differ: here it has {here} entries, there {there}. "
                "Fix: migrate again."
            )
        for store in (ours.store, theirs.store):
            faults = store.verify().faults
            if faults:
                raise StorageFaultError(
                    f"{store.disk.whereabouts!a} is damaged: {faults[0].what}. "
                    "Fix: `perdure history verify` says more."
                )
        demand_landed(ours, self._source.inner)
        texts = demand_landed(theirs, self._target.storage)
        versions = sum(event.cid is not None for event in ours.changes())
        return Migrated(ours.store.history.hex(), here, texts, versions, written)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        held = self._source.history.store.disk.lock(_LOCK)
        if held is None:
            raise LockTimeout(
                "another process is migrating this memory just now. Nothing was changed. "
                "Fix: let it finish."
            )
        try:
            for left in self._scratch.glob(f"{_SCRATCH}-*"):
                left.unlink(missing_ok=True)
            yield
        finally:
            held.release()
