"""The seed's contract of put and get, on a disk in memory and on a real one."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from perdure.artifacts import (
    CID,
    ArtifactStore,
    BlockSlice,
    Codec,
    Derived,
    Hash,
    IndexState,
    Literal,
    NewBinding,
)
from perdure.artifacts.artifact import sid_of
from perdure.artifacts.disk import Disk, FolderDisk
from perdure.artifacts.entry import Bind, Lift, Put, Register, Result, SnapshotAnchor, Tombstone
from perdure.errors import (
    BeforeSnapshotError,
    ClosedError,
    DamageError,
    DeterminismError,
    FuturePositionError,
    InvalidArtifactError,
    OperationError,
    RetentionError,
    UnknownContentError,
    UnknownSnapshotError,
)
from perdure.testing.requirement import requirement
from tests.support.artifacts.memory_disk import MemoryDisk

NOISE = Random(1).randbytes(70_000)
HELLO = Literal(b"hello")
WORLD = Literal(b"world")
BOTH = Derived("concat", "1", (HELLO, WORLD))


@pytest.fixture(params=["memory", "folder"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    return MemoryDisk() if request.param == "memory" else FolderDisk(tmp_path / "history")


@pytest.fixture
def store(disk: Disk) -> Iterator[ArtifactStore]:
    with ArtifactStore(disk) as opened:
        yield opened


def kinds(store: ArtifactStore, after: int = 0) -> list[type]:
    return [type(logged.entry) for logged in store.log(after)]


class TestPut:
    @requirement("004-put-returns-cid-and-state", "004-index-state-pair", "004-put-retrievable")
    def test_put_returns_the_cid_and_a_state_that_holds_it(self, store: ArtifactStore) -> None:
        cid, state = store.put(HELLO)

        assert cid == CID.of(b"hello")
        assert state == IndexState(snapshot=0, position=1)
        assert store.get(cid, state) == b"hello"

    @requirement("004-put-dedup-writes-nothing", "004-put-dedup-needs-no-entry")
    @requirement("004-put-dedup-succeeds", "004-put-idempotent", "004-put-checks-current")
    def test_put_of_what_is_there_writes_nothing(self, store: ArtifactStore, disk: Disk) -> None:
        first = store.put(HELLO)
        before = disk.open("segment-00000001").read(0, 1 << 20)

        assert store.put(HELLO) == first
        assert disk.open("segment-00000001").read(0, 1 << 20) == before
        assert kinds(store) == [Put]

    @requirement("004-put-dedup-global", "004-agnostic-of-derivation")
    def test_equal_bytes_are_stored_once_wherever_they_come_from(
        self, store: ArtifactStore
    ) -> None:
        plain, _ = store.put(Literal(b"helloworld"))
        derived, _ = store.put(BOTH)

        assert derived == plain
        puts = [logged.entry for logged in store.log() if isinstance(logged.entry, Put)]
        assert [put.cid for put in puts].count(plain) == 1

    @requirement("004-put-appends-entry", "004-put-writes-bytes", "004-index-maps-cid")
    @requirement("004-location-is-slices", "004-slice-fields")
    def test_put_logs_one_entry_that_leads_from_the_cid_to_its_slice(
        self, store: ArtifactStore
    ) -> None:
        cid, _ = store.put(HELLO)

        (logged,) = store.log()
        assert isinstance(logged.entry, Put)
        assert logged.entry.cid == cid
        assert store.locate(cid) == (BlockSlice(block=1, offset=0, length=5),)

    @requirement("004-put-visible-at-position", "004-visible-only-up-to-current")
    def test_an_entry_is_seen_from_its_position_on_and_not_before(
        self, store: ArtifactStore
    ) -> None:
        _, before = store.put(HELLO)
        cid, after = store.put(WORLD)

        assert store.get(cid, before) is None
        assert store.get(cid, after) == b"world"

    @requirement("004-state-monotonic")
    def test_the_state_never_goes_back(self, store: ArtifactStore) -> None:
        states = [store.current()]
        for number in range(5):
            states.append(store.put(Literal(b"%d" % number))[1])
            states.append(store.current())
            states.append(store.snapshot())

        assert states == sorted(states)

    def test_put_many_is_one_commit(self, store: ArtifactStore) -> None:
        cids, state = store.put_many([HELLO, WORLD, HELLO])

        assert cids == [CID.of(b"hello"), CID.of(b"world"), CID.of(b"hello")]
        assert {logged.commit for logged in store.log()} == {state.position} == {2}

    def test_a_position_inside_a_commit_is_answered_as_of_the_last_whole_one(
        self, store: ArtifactStore
    ) -> None:
        (hello, world), state = store.put_many([HELLO, WORLD])

        assert store.get(hello, IndexState(0, state.position - 1)) is None
        assert store.get(hello, state) == b"hello"
        assert store.get(world, state) == b"world"

    def test_nothing_is_created_on_disk_before_the_first_put(self, tmp_path: Path) -> None:
        with ArtifactStore.open(tmp_path / "history") as store:
            assert store.get(CID.of(b"hello")) is None
            assert store.current() == IndexState(0, 0)
            assert list(store.log()) == []
        assert not (tmp_path / "history").exists()

    @pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1, 3_500_000])
    def test_content_of_any_size_is_put(self, store: ArtifactStore, size: int) -> None:
        data = Random(size).randbytes(size)

        cid, state = store.put(Literal(data))

        assert cid == CID.of(data)
        assert store.get(cid) == data
        assert store.put(Literal(data)) == (cid, state)

    def test_a_closed_store_says_so(self, store: ArtifactStore) -> None:
        cid, _ = store.put(HELLO)
        store.close()

        for use in (lambda: store.get(cid), lambda: store.put(WORLD), store.current):
            with pytest.raises(ClosedError):
                use()


class TestGet:
    @requirement("004-get-not-found", "004-never-bypass-index")
    def test_what_was_never_put_is_none(self, store: ArtifactStore) -> None:
        store.put(HELLO)

        assert store.get(CID.of(b"never")) is None
        assert store.locate(CID.of(b"never")) is None
        assert not store.has(CID.of(b"never"))

    def test_a_cid_of_another_kind_names_nothing_here(self, store: ArtifactStore) -> None:
        store.put(HELLO)

        assert store.get(CID(CID.of(b"hello").digest, Hash.BLAKE3)) is None
        assert store.get(CID(CID.of(b"hello").digest, codec=Codec.DAG_CBOR)) is None

    @requirement("004-get-verbatim", "004-get-exact-bytes", "004-get-content-addressed")
    @requirement("004-blocks-opaque")
    @pytest.mark.parametrize(
        "data",
        [b"", b"\0", b"\r\n\xff" * 1000, NOISE],
        ids=["empty", "nul", "line ends", "noise"],
    )
    def test_bytes_come_back_as_they_went_in(self, store: ArtifactStore, data: bytes) -> None:
        cid, _ = store.put_many([HELLO, Literal(data), WORLD])[0][1], None

        assert store.get(cid) == data

    @requirement("004-get-default-current")
    def test_without_a_state_get_answers_as_of_now(self, store: ArtifactStore) -> None:
        cid = CID.of(b"hello")
        assert store.get(cid) is None
        store.put(HELLO)
        assert store.get(cid) == b"hello"
        store.tombstone(cid, "no more")
        assert store.get(cid) is None

    @requirement("004-get-at-state", "004-get-resolves-prefix", "004-get-deterministic")
    @requirement("004-visible-only-in-prefix", "004-visible-if-all-hold", "004-same-get")
    @requirement("004-same-location", "004-put-bytes-immutable", "004-put-cid-stable")
    def test_every_state_answers_the_same_for_ever(self, store: ArtifactStore) -> None:
        cids = [CID.of(b"%d" % number) for number in range(20)]
        states = []
        for number in range(20):
            states.append(store.put(Literal(b"%d" % number))[1])
            if number % 7 == 3:
                states[-1] = store.snapshot()

        for _ in range(2):
            for number, state in enumerate(states):
                seen = [store.get(cid, state) is not None for cid in cids]
                assert seen == [place <= number for place in range(20)]
                blocks = [store.locate(cid, state) for cid in cids[: number + 1]]
                assert blocks == [store.locate(cid) for cid in cids[: number + 1]]
            store.snapshot()

    @requirement("004-get-never-mutates", "004-get-never-materializes", "004-two-operations")
    def test_get_changes_nothing_and_makes_nothing(self, tmp_path: Path) -> None:
        store = ArtifactStore.open(tmp_path)
        calls: list[int] = []

        def tell(*_: object) -> bytes:
            calls.append(1)
            return b"told"

        store.operations.register("tell", "1", tell)
        cid, _ = store.put(Derived("tell", "1"))
        files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

        assert store.get(cid) is not None
        assert store.get(CID.of(b"absent")) is None
        assert len(calls) == 1
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files

    def test_many_are_answered_as_one_by_one(self, store: ArtifactStore) -> None:
        cids, _ = store.put_many([Literal(b"%d" % number) for number in range(100)])
        store.tombstone(cids[3], "no more")
        store.snapshot()
        _, state = store.put(HELLO)
        store.put(WORLD)
        asked = [*cids, CID.of(b"never"), CID.of(b"hello"), CID.of(b"world"), cids[5]]

        for at in (None, state, IndexState(0, 100), IndexState(0, 0)):
            assert store.has_many(asked, at) == [store.has(cid, at) for cid in asked]
            assert store.get_many(asked, at) == [store.get(cid, at) for cid in asked]


class TestStates:
    def test_each_state_that_can_not_be_asked_for_has_its_own_error(
        self, store: ArtifactStore
    ) -> None:
        cid, _ = store.put(HELLO)
        store.put(WORLD)
        snapshot = store.snapshot()
        store.tombstone(cid, "no more")
        state = store.put(Literal(b"more"))[1]

        with pytest.raises(UnknownSnapshotError, match="newest is 1"):
            store.get(cid, IndexState(2, state.position))
        with pytest.raises(UnknownSnapshotError):
            store.get(cid, IndexState(-1, state.position))
        with pytest.raises(BeforeSnapshotError, match="entry 2, after 1"):
            store.get(cid, IndexState(1, 1))
        with pytest.raises(FuturePositionError, match="ends with entry 5"):
            store.get(cid, IndexState(0, 6))
        store.gc(before=snapshot)
        with pytest.raises(RetentionError, match="before entry 3"):
            store.get(cid, IndexState(0, 2))

    def test_a_snapshot_is_counted_and_noted_in_the_log(self, store: ArtifactStore) -> None:
        store.put(HELLO)

        assert store.snapshot() == IndexState(1, 2)
        assert store.snapshot() == IndexState(2, 3)
        anchors = [logged.entry for logged in store.log(after=1)]
        assert [(a.snapshot, a.position) for a in anchors if isinstance(a, SnapshotAnchor)] == [
            (1, 1),
            (2, 2),
        ]

    def test_an_empty_store_can_be_snapshot(self, store: ArtifactStore) -> None:
        assert store.snapshot() == IndexState(1, 1)
        cid, state = store.put(HELLO)
        assert store.get(cid, state) == b"hello"

    @requirement("004-state-replayable")
    def test_the_index_is_rebuilt_from_the_log(self, store: ArtifactStore, disk: Disk) -> None:
        cids, _ = store.put_many([Literal(b"%d" % number) for number in range(50)])
        store.tombstone(cids[3], "no more")
        store.snapshot()
        states = [IndexState(0, position) for position in range(53)]
        before = [store.has_many(cids, state) for state in states]
        store.close()
        for name in disk.names():
            if not name.startswith("segment-"):
                disk.remove(name)

        with ArtifactStore(disk) as again:
            assert [again.has_many(cids, state) for state in states] == before
            assert again.get(cids[4]) == b"4"


class TestTombstones:
    def test_a_tombstone_hides_from_its_position_on(self, store: ArtifactStore) -> None:
        cid, before = store.put(HELLO)
        hidden = store.tombstone(cid, "no more")
        shown = store.lift(cid)

        assert store.get(cid, before) == b"hello"
        assert store.get(cid, hidden) is None
        assert store.get(cid, shown) == b"hello"

    def test_hiding_and_showing_twice_is_once(self, store: ArtifactStore) -> None:
        cid, state = store.put(HELLO)

        assert store.lift(cid) == state
        hidden = store.tombstone(cid, "no more")
        assert store.tombstone(cid, "no more") == hidden

    def test_it_can_be_hidden_and_shown_any_number_of_times(self, store: ArtifactStore) -> None:
        cid, state = store.put(HELLO)
        states = [state]
        for _ in range(4):
            states += [store.tombstone(cid, "no more"), store.lift(cid)]
            if len(states) == 5:
                states.append(store.snapshot())

        seen = [store.has(cid, state) for state in states]
        assert seen == [True, False, True, False, True, True, False, True, False, True]

    def test_putting_what_is_hidden_shows_it_without_writing_it_again(
        self, store: ArtifactStore
    ) -> None:
        cid, _ = store.put(HELLO)
        place = store.locate(cid)
        hidden = store.tombstone(cid, "no more")

        _, state = store.put(HELLO)

        assert kinds(store) == [Put, Tombstone, Lift]
        assert store.get(cid, state) == b"hello"
        assert store.get(cid, hidden) is None
        assert store.locate(cid) == place

    def test_what_was_never_put_can_not_be_hidden(self, store: ArtifactStore) -> None:
        with pytest.raises(UnknownContentError):
            store.tombstone(CID.of(b"never"), "no more")
        with pytest.raises(UnknownContentError):
            store.lift(CID.of(b"never"))


class TestDerived:
    @requirement("004-put-registers-structure", "004-put-materializes", "004-put-lazy-artifact")
    @requirement("004-dag-by-sid", "004-put-caches-cid", "004-put-order")
    def test_a_derived_artifact_is_registered_created_and_put(self, store: ArtifactStore) -> None:
        cid, _ = store.put(BOTH)

        assert store.get(cid) == b"helloworld"
        assert kinds(store) == [Register, Put, Put, Put, Result]
        assert store.structure(sid_of(BOTH)) is not None
        assert store.structure(sid_of(HELLO)) is not None
        assert store.structure(sid_of(Literal(b"never"))) is None

    @requirement("004-put-reuses-sid", "004-put-uses-cached-cid")
    def test_what_was_derived_is_not_derived_again(self, store: ArtifactStore) -> None:
        calls = []

        def tell(*_: object) -> bytes:
            calls.append(1)
            return b"told"

        store.operations.register("tell", "1", tell)
        first = store.put(Derived("tell", "1"))

        assert store.put(Derived("tell", "1")) == first
        assert calls == [1]

    def test_a_known_result_counts_only_while_it_is_visible(self, store: ArtifactStore) -> None:
        cid, _ = store.put(BOTH)
        store.tombstone(cid, "no more")

        again, state = store.put(BOTH)

        assert again == cid
        assert store.get(cid, state) == b"helloworld"
        assert kinds(store).count(Register) == 1
        assert kinds(store).count(Result) == 1

    @requirement("004-put-materializes-children")
    def test_children_are_created_as_they_are_needed(self, store: ArtifactStore) -> None:
        inner = Derived("slice", "1", (BOTH,), {"offset": 3, "length": 4})
        outer = Derived("concat", "1", (inner, inner, Derived("hash", "1", (BOTH,))))

        cid, _ = store.put(outer)

        assert store.get(cid) == b"lowolowo" + CID.of(b"helloworld").digest

    def test_a_child_can_be_named_by_its_sid(self, store: ArtifactStore) -> None:
        store.put(BOTH)
        store.put(Literal(b"!"))

        cid, _ = store.put(Derived("concat", "1", (sid_of(BOTH), sid_of(Literal(b"!")))))

        assert store.get(cid) == b"helloworld!"

    def test_a_sid_that_is_not_registered_is_named(self, store: ArtifactStore) -> None:
        with pytest.raises(UnknownContentError, match="no artifact is registered"):
            store.put(Derived("concat", "1", (sid_of(BOTH),)))

    @requirement("004-cache-optional")
    def test_without_the_cache_the_answers_are_the_same(
        self, store: ArtifactStore, disk: Disk
    ) -> None:
        first, state = store.put(BOTH)
        store.close()
        if "catalogue.sqlite" in disk.names():
            disk.remove("catalogue.sqlite")

        with ArtifactStore(disk) as again:
            assert again.put(BOTH) == (first, state)
            assert again.get(first) == b"helloworld"

    @requirement("004-sid-independent-of-storage", "004-same-cid")
    def test_the_same_artifact_has_the_same_names_in_every_store(self, tmp_path: Path) -> None:
        with ArtifactStore.open(tmp_path / "a") as one, ArtifactStore.open(tmp_path / "b") as two:
            two.put(WORLD)
            assert one.put(BOTH)[0] == two.put(BOTH)[0]
            assert one.structure(sid_of(BOTH)) == two.structure(sid_of(BOTH))

    def test_two_results_for_one_structure_are_reported_and_both_retained(
        self, store: ArtifactStore
    ) -> None:
        results = iter([b"one", b"two"])
        store.operations.register("dice", "1", lambda *_: next(results))
        first, _ = store.put(Derived("dice", "1"))
        store.tombstone(first, "so that it is made again")

        with pytest.raises(DeterminismError, match=r"more than one result.*new version"):
            store.put(Derived("dice", "1"))

        store.lift(first)
        assert store.get(first) == b"one"
        assert store.get(CID.of(b"two")) == b"two"
        with pytest.raises(DeterminismError):
            store.put(Derived("dice", "1"))
        assert [fault.what for fault in store.verify().faults]

    @pytest.mark.search
    def test_a_chain_of_100_000_is_created(self, tmp_path: Path) -> None:
        artifact: Literal | Derived = HELLO
        for _ in range(100_000):
            artifact = Derived("utf8", "1", (artifact,))
        with ArtifactStore.open(tmp_path) as store:
            cid, _ = store.put(artifact)
            assert store.get(cid) == b"hello"

    def test_a_failing_operation_leaves_nothing(self, store: ArtifactStore) -> None:
        with pytest.raises(OperationError):
            store.put_many([HELLO, Derived("utf8", "1", (Literal(b"\xff"),))])

        assert store.current().position == 0


class TestNames:
    def test_contents_and_names_are_recorded_in_one_commit(self, store: ArtifactStore) -> None:
        state = store.record(
            [
                NewBinding("a.md", b"hello", {"actor": "Ana"}),
                NewBinding("b.md", None),
                NewBinding("c", b"hello"),
            ]
        )

        assert state == IndexState(0, 4)
        entries = [logged.entry for logged in store.log()]
        assert [entry for entry in entries if isinstance(entry, Bind)] == [
            Bind("a.md", CID.of(b"hello"), {"actor": "Ana"}),
            Bind("b.md", None),
            Bind("c", CID.of(b"hello")),
        ]


class TestTime:
    def test_recorded_times_never_run_backwards(self) -> None:
        times = iter([50, 40, 60])
        store = ArtifactStore(MemoryDisk(), clock=lambda: next(times))
        for data in (b"a", b"b", b"c"):
            store.put(Literal(data))

        assert [logged.time for logged in store.log()] == [50, 50, 60]


class TestCollection:
    def test_what_was_hidden_before_the_horizon_is_erased(
        self, store: ArtifactStore, disk: Disk
    ) -> None:
        cid, _ = store.put(Literal(b"secret" * 1000))
        retained, _ = store.put(HELLO)
        state = store.tombstone(cid, "forget")

        collected = store.gc(before=state)

        assert collected.cids == (cid,)
        assert collected.size == 6000
        assert b"secret" not in disk.open("segment-00000001").read(0, 1 << 20)
        assert store.get(cid) is None
        assert store.get(retained) == b"hello"
        assert store.verify().ok

    def test_content_that_a_retained_state_shows_stays_in_place(self, store: ArtifactStore) -> None:
        cid, before = store.put(HELLO)
        place = store.locate(cid)
        store.put(WORLD)
        store.tombstone(cid, "no more")

        assert store.gc(before=before).cids == ()
        assert store.get(cid, before) == b"hello"
        assert store.locate(cid, before) == place

    def test_what_is_pinned_is_retained(self, store: ArtifactStore) -> None:
        cid, _ = store.put(HELLO)
        state = store.tombstone(cid, "no more")

        assert store.gc(before=state, pinned={cid}).cids == ()
        store.lift(cid)
        assert store.get(cid) == b"hello"

    def test_what_was_swept_can_be_put_again(self, store: ArtifactStore) -> None:
        cid, _ = store.put(HELLO)
        state = store.tombstone(cid, "no more")
        store.gc(before=state)
        with pytest.raises(UnknownContentError):
            store.lift(cid)

        _, again = store.put(HELLO)

        assert store.get(cid, again) == b"hello"
        assert store.get(cid, IndexState(0, again.position - 1)) is None
        assert store.verify().ok

    def test_the_horizon_only_moves_forward_and_not_beyond_the_log(
        self, store: ArtifactStore
    ) -> None:
        store.put(HELLO)
        state = store.put(WORLD)[1]
        store.gc(before=state)

        with pytest.raises(RetentionError):
            store.gc(before=1)
        with pytest.raises(FuturePositionError):
            store.gc(before=100)

    def test_nothing_to_do_writes_nothing(self, store: ArtifactStore) -> None:
        state = store.put(HELLO)[1]

        assert store.gc().cids == ()
        assert store.current() == state


class TestMending:
    def test_putting_damaged_content_again_makes_it_right(self, disk: Disk) -> None:
        contents = [b"one" * 100, b"two" * 100, b"three" * 100]
        with ArtifactStore(disk) as store:
            cids, state = store.put_many(map(Literal, contents))
            file = disk.open("segment-00000001")
            at = file.read(0, 1 << 20).index(contents[0])
            file.write(at + 5, [b"X" * 400])
            for cid in cids[:2]:
                with pytest.raises(DamageError, match="put the same content again"):
                    store.get(cid)

            assert store.put(Literal(contents[0])) == (cids[0], state)
            assert store.put_many([Literal(contents[1]), HELLO])[0][0] == cids[1]

            assert store.get_many(cids) == contents
            assert store.verify().ok

    def test_only_artifacts_can_be_put(self, store: ArtifactStore) -> None:
        for wrong in (b"bytes", "text", None):
            with pytest.raises(InvalidArtifactError, match="Fix: put a Literal"):
                store.put(wrong)  # type: ignore[arg-type]
            with pytest.raises(InvalidArtifactError):
                store.put_many([HELLO, wrong])  # type: ignore[list-item]


class TestHashes:
    def test_a_store_keeps_the_hash_it_was_created_with(self, tmp_path: Path) -> None:
        with ArtifactStore.open(tmp_path, hash=Hash.BLAKE3) as store:
            cid, _ = store.put(HELLO)
        with ArtifactStore.open(tmp_path) as again:
            assert cid.hash is Hash.BLAKE3
            assert again.get(cid) == b"hello"
            assert again.put(WORLD)[0].hash is Hash.BLAKE3
            assert again.verify().ok


class TestTables:
    def test_a_table_is_written_when_much_came_since_the_last(self, tmp_path: Path) -> None:
        reader = ArtifactStore.open(tmp_path)
        with ArtifactStore.open(tmp_path) as writer:
            cids = []
            for start in range(0, 20_000, 5_000):
                many = [Literal(b"%d" % number) for number in range(start, start + 5_000)]
                cids += writer.put_many(many)[0]
                assert reader.has(cids[-1])

        assert [path.name for path in tmp_path.glob("table-*")] == ["table-0000000000020000"]
        with ArtifactStore.open(tmp_path) as again:
            for store in (again, reader):
                assert all(store.has_many(cids))
                assert store.get(cids[123]) == b"123"
                assert store.get_many(cids[::1000]) == [b"%d" % n for n in range(0, 20_000, 1000)]

    def test_a_damaged_table_is_rebuilt_and_never_answers(self, tmp_path: Path) -> None:
        with ArtifactStore.open(tmp_path) as store:
            cids, _ = store.put_many([Literal(b"%d" % number) for number in range(300)])
            store.snapshot()
        (table,) = tmp_path.glob("table-*")
        whole = table.read_bytes()
        for at in range(0, len(whole), 97):
            torn = bytearray(whole)
            torn[at] ^= 0x10
            table.write_bytes(bytes(torn))
            with ArtifactStore.open(tmp_path) as store:
                assert all(store.has_many(cids))
                assert store.get(cids[7]) == b"7"

    def test_many_are_answered_as_one_by_one(self, tmp_path: Path) -> None:
        with ArtifactStore.open(tmp_path) as store:
            cids, _ = store.put_many([Literal(b"%d" % number) for number in range(300)])
            store.tombstone(cids[5], "no more")
            store.snapshot()
            store.tombstone(cids[6], "no more")
            asked = [*cids, CID.of(b"never")]
            states = (None, IndexState(0, 100), IndexState(0, 301))
            has = [store.has_many(asked, at) for at in states]

            assert has == [[store.has(cid, at) for cid in asked] for at in states]
            assert [store.get_many(asked, at) for at in states] == [
                [store.get(cid, at) for cid in asked] for at in states
            ]
            assert has[0].count(False) == 3
