"""What must hold of a store after a power cut."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from perdure.artifacts import CID, ArtifactStore, IndexState, Literal, LogEntry
from perdure.artifacts.entry import Lift, Put, SnapshotAnchor, Sweep, Tombstone
from perdure.errors import RetentionError
from tests.support.artifacts.states import CrashState
from tests.support.artifacts.workloads import Run, open_store

_AFTERWARDS = b"put after the power cut"
_THOROUGH = 8


class Moment(NamedTuple):
    """What is to be had after a commit."""

    state: IndexState
    horizon: int
    answers: list[bytes | None]


class Judge:
    """Knows what a run logged, and so what a store may say that is left of it."""

    def __init__(self, run: Run) -> None:
        self._log = list(run.log)
        self._cids = list(run.contents)
        self._moments = _moments(run.log, run.contents)
        self._swept = [
            (logged.position, logged.entry.cids)
            for logged in run.log
            if isinstance(logged.entry, Sweep)
        ]

    def check(self, state: CrashState) -> None:
        """Return only if a store on these files keeps every promise; else something is raised."""
        disk = state.disk()
        last = self.check_opened(open_store(disk), state)
        self.check_reopened(open_store(disk), last, thorough=state.digest[-1] % _THOROUGH == 0)

    def check_opened(self, opened: ArtifactStore, state: CrashState) -> int:
        """Check the store that first meets the state, and put something; return what it kept."""
        with opened as store:
            last = self._check_log(list(store.log()))
            for promised in state.promises[-1:]:
                assert isinstance(promised, IndexState)
                assert last >= promised.position, f"{promised} is lost, the log ends with {last}"
            for position in self._moments:
                self._check_answers(store, position, last)
            cid, after = store.put(Literal(_AFTERWARDS))
            assert after == (self._moments[last].state.snapshot, last + 1)
            assert store.get(cid) == _AFTERWARDS
        return last

    def check_reopened(self, opened: ArtifactStore, last: int, *, thorough: bool = True) -> None:
        """Check that a store which comes after that one finds all as it should be."""
        with opened as store:
            assert store.cuts == (), f"what was settled must be settled again: {store.cuts}"
            assert store.current() == (self._moments[last].state.snapshot, last + 1)
            assert store.get(CID.of(_AFTERWARDS)) == _AFTERWARDS
            self._check_answers(store, last, last)
            if thorough:
                assert self._check_log(list(store.log())[:-1]) == last
                faults = store.verify().faults
                assert faults == (), faults

    def _check_log(self, found: list[LogEntry]) -> int:
        """Return how far the log goes, if it says what was logged, and whole commits only."""
        last = len(found)
        assert found == self._log[:last], "the log says what was never logged"
        assert last in self._moments, f"half a commit is visible, up to {last}"
        return last

    def _check_answers(self, store: ArtifactStore, position: int, last: int) -> None:
        state, _, answers = self._moments[position]
        if position < self._moments[last].horizon:
            _check_refused(store, state, self._cids)
        elif position <= last:
            gone = {cid for at, cids in self._swept if position < at <= last for cid in cids}
            left = [None if c in gone else a for c, a in zip(self._cids, answers, strict=True)]
            assert store.get_many(self._cids, state) == left, f"wrong answers as of {state}"


def _check_refused(store: ArtifactStore, state: IndexState, cids: Sequence[CID]) -> None:
    try:
        store.get_many(cids, state)
    except RetentionError:
        return
    assert not cids, f"{state} is older than what is retained, but was answered"


def _moments(log: Sequence[LogEntry], contents: Mapping[CID, bytes]) -> dict[int, Moment]:
    """Return what is to be had after each commit, by its position."""
    visible: set[CID] = set()
    snapshots = horizon = 0
    moments = {0: Moment(IndexState(0, 0), 0, [None] * len(contents))}
    for logged in log:
        match logged.entry:
            case Put(cid) | Lift(cid):
                visible.add(cid)
            case Tombstone(cid):
                visible.discard(cid)
            case SnapshotAnchor():
                snapshots += 1
            case Sweep(horizon, cids):
                visible.difference_update(cids)
        if logged.position == logged.commit:
            moments[logged.commit] = Moment(
                IndexState(snapshots, logged.commit),
                horizon,
                [content if cid in visible else None for cid, content in contents.items()],
            )
    return moments
