"""A store against a dictionary: any sequence of verbs must give the same answers, for ever."""

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from perdure.artifacts import CID, ArtifactStore, IndexState, Literal, NewBinding
from perdure.artifacts.disk import Disk
from perdure.artifacts.entry import Bind
from perdure.errors import (
    BeforeSnapshotError,
    FuturePositionError,
    RetentionError,
    UnknownContentError,
    UnknownSnapshotError,
)
from perdure.testing.suite import examples as scaled

# Few contents, so that the verbs meet each other at one; some fill a segment.
CONTENTS = [b"", b"a", b"b", b"note\r\n\xff", b"long" * 40, b"longer" * 60]
SEGMENT_BYTES = 900
_STORES = 2

_CONTENTS = st.sampled_from(CONTENTS)
_SOME = st.lists(_CONTENTS, max_size=4)
_VERBS = st.sampled_from(
    [
        *("put", "put", "put", "put many", "put many", "record"),
        *("tombstone", "tombstone", "tombstone", "lift", "snapshot", "sweep", "sweep"),
        *("erase", "reopen", "rebuild", "look back"),
    ]
)


class Seen(NamedTuple):
    """What is to be seen in a state, for ever."""

    state: IndexState
    contents: frozenset[bytes]


class Model:
    """The promise, in the plainest form: what is stored, what of it is shown, and each state."""

    def __init__(self) -> None:
        self.stored: set[bytes] = set()
        self.shown: set[bytes] = set()
        self.names: list[tuple[str, bytes | None]] = []
        self.snapshots: list[int] = []
        self.horizon = 0
        self.position = 0
        self.hidden_at: dict[bytes, int] = {}
        self.past = [Seen(IndexState(0, 0), frozenset())]

    @property
    def state(self) -> IndexState:
        return IndexState(len(self.snapshots), self.position)

    def put(self, contents: Sequence[bytes], changes: Sequence[tuple[str, bytes | None]]) -> None:
        new = set(contents) - self.shown
        self.stored |= new
        self.shown |= new
        self.names += changes
        self._commit(len(new) + len(changes))

    def tombstone(self, data: bytes) -> None:
        if data not in self.stored:
            raise UnknownContentError
        if data in self.shown:
            self.shown.remove(data)
            self._commit(1)
            self.hidden_at[data] = self.position

    def lift(self, data: bytes) -> None:
        if data not in self.stored:
            raise UnknownContentError
        if data not in self.shown:
            self.shown.add(data)
            self._commit(1)

    def snapshot(self) -> None:
        self.snapshots.append(self.position)
        self._commit(1)

    def sweep(self, horizon: int | None, pinned: frozenset[bytes]) -> set[bytes]:
        horizon = self.horizon if horizon is None else horizon
        if horizon > self.position:
            raise FuturePositionError
        if horizon < self.horizon:
            raise RetentionError
        hidden = self.stored - self.shown - pinned
        swept = {data for data in hidden if self.hidden_at[data] <= horizon}
        if swept or horizon != self.horizon:
            self.stored -= swept
            self.horizon = horizon
            self._commit(1)
        return swept

    def erase(self, contents: frozenset[bytes]) -> set[bytes]:
        """Let all states stay, and none of them show these."""
        gone = self.stored & contents
        shown = gone & self.shown
        self.shown -= shown
        if shown:
            self._commit(len(shown))
        if gone:
            self.stored -= gone
            self._commit(1)
            self.past = [Seen(state, seen - gone) for state, seen in self.past]
        return gone

    def _commit(self, entries: int) -> None:
        self.position += entries
        self.past.append(Seen(self.state, frozenset(self.shown)))

    def at(self, state: IndexState) -> frozenset[bytes]:
        """Return what is to be seen there, or raise what is to be raised."""
        if not 0 <= state.position <= self.position:
            raise FuturePositionError
        if not 0 <= state.snapshot <= len(self.snapshots):
            raise UnknownSnapshotError
        if state.snapshot and state.position < self.snapshots[state.snapshot - 1]:
            raise BeforeSnapshotError
        if state.position < self.horizon:
            raise RetentionError
        # A position inside a commit is answered as of the last whole one.
        whole = [seen for seen in self.past if seen.state.position <= state.position]
        return whole[-1].contents


_ERRORS = (
    UnknownContentError,
    FuturePositionError,
    UnknownSnapshotError,
    BeforeSnapshotError,
    RetentionError,
)


def _outcome(action: Callable[[], object]) -> object:
    """Return what the action returned, or the kind of its error."""
    try:
        return action()
    except _ERRORS as error:
        return type(error)


class StoreMachine(RuleBasedStateMachine):
    """Does the same to two stores on one disk, by turns, and to a model; and compares.

    A subclass says on which disk, by `make_disk`; each sequence gets one of its own.
    """

    make_disk: ClassVar[Callable[[], Disk]]

    def __init__(self) -> None:
        super().__init__()
        self.disk = type(self).make_disk()
        self.stores = [self._open() for _ in range(_STORES)]
        self.model = Model()

    def _open(self) -> ArtifactStore:
        return ArtifactStore(self.disk, segment_bytes=SEGMENT_BYTES)

    @rule(
        verb=_VERBS,
        which=st.integers(0, _STORES - 1),
        some=_SOME,
        one=_CONTENTS,
        number=st.integers(-1, 60),
    )
    def do(self, verb: str, which: int, some: list[bytes], one: bytes, number: int) -> None:
        # One rule for all verbs: Hypothesis leaves some rules out of each sequence.
        store = self.stores[which]
        if verb in {"put", "put many", "record"}:
            self.write(store, verb, [one, *some])
        elif verb in {"tombstone", "lift"}:
            self.hide_or_show(store, verb, one)
        elif verb == "snapshot":
            self.model.snapshot()
            assert store.snapshot() == self.model.state
        elif verb == "sweep":
            self.sweep(store, None if number < 0 else number, frozenset(some))
        elif verb == "erase":
            gone = {CID.of(data) for data in self.model.erase(frozenset(some))}
            assert set(store.erase(list(map(CID.of, some)), "no more").cids) == gone
            self._ask_every_state(store)
        elif verb == "look back":
            self.look_back(store, IndexState(len(some), number))
        else:
            self.open_again(which, everything_derived_gone=verb == "rebuild")

    def write(self, store: ArtifactStore, verb: str, contents: list[bytes]) -> None:
        one = contents[0]
        if verb == "put":
            self.model.put([one], [])
            assert store.put(Literal(one)) == (CID.of(one), self.model.state)
        elif verb == "put many":
            self.model.put(contents, [])
            cids = list(map(CID.of, contents))
            assert store.put_many(list(map(Literal, contents))) == (cids, self.model.state)
        else:
            names = [(f"{number}", data) for number, data in enumerate(contents[1:])]
            self.model.put(contents[1:], [*names, ("gone", None)])
            changes = [NewBinding(name, data) for name, data in names]
            assert store.record([*changes, NewBinding("gone", None)]) == self.model.state

    def hide_or_show(self, store: ArtifactStore, verb: str, data: bytes) -> None:
        cid = CID.of(data)
        if verb == "tombstone":
            expected = _outcome(lambda: self.model.tombstone(data))
            found = _outcome(lambda: store.tombstone(cid, "no more"))
        else:
            expected = _outcome(lambda: self.model.lift(data))
            found = _outcome(lambda: store.lift(cid))
        assert found == (expected or self.model.state)

    def sweep(self, store: ArtifactStore, horizon: int | None, pinned: frozenset[bytes]) -> None:
        swept = _outcome(lambda: self.model.sweep(horizon, pinned))
        expected = {CID.of(data) for data in swept} if isinstance(swept, set) else swept
        pins = frozenset(map(CID.of, pinned))
        assert _outcome(lambda: set(store.gc(horizon, pins).cids)) == expected
        self._ask_every_state(store)

    def look_back(self, store: ArtifactStore, state: IndexState) -> None:
        """Ask for any state at all, also for one that nobody was ever given."""
        expected = _outcome(lambda: self._contents(self.model.at(state)))
        cids = list(map(CID.of, CONTENTS))
        assert _outcome(lambda: store.get_many(cids, state)) == expected
        assert _outcome(lambda: [store.get(cid, state) for cid in cids]) == expected
        if isinstance(expected, list):
            there = [data is not None for data in expected]
            assert store.has_many(cids, state) == there
            assert [store.has(cid, state) for cid in cids] == there
            assert [store.locate(cid, state) is not None for cid in cids] == there

    def open_again(self, which: int, *, everything_derived_gone: bool) -> None:
        if everything_derived_gone:
            for store in self.stores:
                store.close()
            for name in self.disk.names():
                if not name.startswith("segment-"):
                    self.disk.remove(name)
            self.stores = [self._open() for _ in self.stores]
        else:
            self.stores[which].close()
            self.stores[which] = self._open()
        assert self.stores[which].cuts == ()
        self._ask_every_state(self.stores[which])

    def _ask_every_state(self, store: ArtifactStore) -> None:
        for seen in self.model.past:
            self.look_back(store, seen.state)

    def _contents(self, shown: frozenset[bytes]) -> list[bytes | None]:
        return [data if data in shown else None for data in CONTENTS]

    @invariant()
    def both_stores_say_what_the_model_says(self) -> None:
        for store in self.stores:
            assert store.current() == self.model.state
            cids = list(map(CID.of, CONTENTS))
            assert store.get_many(cids) == self._contents(frozenset(self.model.shown))

    def teardown(self) -> None:
        for store in self.stores:
            self._ask_every_state(store)
            log = list(store.log())
            assert [logged.position for logged in log] == list(range(1, self.model.position + 1))
            bound = [entry.entry for entry in log if isinstance(entry.entry, Bind)]
            assert [(bind.name, bind.cid) for bind in bound] == [
                (name, None if data is None else CID.of(data)) for name, data in self.model.names
            ]
            assert store.verify().ok
            store.close()


def check_store(
    make_disk: Callable[[], Disk], *, examples: int, steps: int = 30, shrink: bool = True
) -> None:
    """Try so many sequences of verbs, each on a disk that `make_disk` returns.

    A sequence that goes wrong is shown, and the shortest one that does if it may `shrink`.
    """
    machine = type("Machine", (StoreMachine,), {"make_disk": staticmethod(make_disk)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=scaled(examples),
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[phase for phase in Phase if shrink or phase is not Phase.shrink],
        ),
    )
