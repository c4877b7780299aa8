"""Upkeep of a memory: its health, the indexes, and the events that wait for them."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from perdure.dataclass import dataclass, replace
from perdure.engine.building import (
    BATCH,
    Caught,
    Progress,
    Records,
    batched,
)
from perdure.engine.indexing import Following
from perdure.engine.recall.result import Hint
from perdure.errors import DamageError
from perdure.index.contract import NodeIndex
from perdure.index.filters import root_digest, stamp
from perdure.model import IndexRecord
from perdure.model.values import JSON
from perdure.storage import StoragePreview


@dataclass(frozen=True, slots=True)
class StatusPart:
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


class Kind(Enum):
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
    kind: Kind


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
    def __init__(self, following: Following) -> None:
        self.following = following

    @property
    def _index(self) -> NodeIndex:
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
        found = _Found(held, damaged)
        for batch in batched(self.following.every(account_id), BATCH):
            made = self.following.indexer.make(batch)
            if made.outage is not None:
                raise made.outage  # nobody can tell what the vectors should be
            wrong = found.compare(made.records)
            found.failed += [(uri, str(error)) for uri, error in made.failed.items()]
            if heal and wrong:
                unlogged = self.following.logged.unlogged(made, self._index.cursor(account_id))
                self._index.replace(account_id, wrong, unlogged=unlogged & wrong.keys())
            progress(len(batch))
        surplus = found.surplus()
        if heal and surplus:
            self._index.replace(account_id, surplus, unlogged=surplus)
        return found.proof()

    def rebuild(self, account_id: str, progress: Progress = lambda _: None) -> Caught:
        return self.following.rebuild(account_id, progress)


class _Found:
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

    def _kind(self, uri: str, made: list[IndexRecord]) -> Kind | None:
        expected = stamp(made) if made else None
        held = self._held.get(uri)
        if expected is not None:
            self._expected[uri] = expected
        if uri in self._damaged:
            return Kind.DAMAGED
        if expected == held:
            return None
        if held is None:
            return Kind.MISSING
        return Kind.SURPLUS if expected is None else Kind.DIFFERENT

    def surplus(self) -> Records:
        self._differences += [Difference(uri, Kind.SURPLUS) for uri in sorted(self._unseen)]
        return {uri: [] for uri in self._unseen}

    def proof(self) -> IndexProof:
        found = tuple(self._differences), tuple(self.failed)
        return IndexProof(root_digest(self._expected), self._places, self._records, *found)
