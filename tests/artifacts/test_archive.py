"""Export and import: the same history on another machine."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.artifacts import (
    CID,
    ArtifactStore,
    Derived,
    Hash,
    IndexState,
    Literal,
    NewBinding,
)
from perdure.artifacts.archive_format import read_archive
from perdure.artifacts.archive_transfer import ImportOutcome, ImportSummary, export, import_archive
from perdure.artifacts.disk import Disk, FolderDisk
from perdure.artifacts.entry import Bind
from perdure.errors import (
    ArchiveError,
    DamageError,
    RetentionError,
    StorageFullError,
)
from perdure.proofs.proof import log_root
from tests.artifacts.archives import (
    LARGE,
    exported,
    literal,
    live,
    live_on,
    open_store,
)
from tests.support.artifacts import MemoryDisk


@pytest.fixture(params=["memory", "folder"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    return MemoryDisk() if request.param == "memory" else FolderDisk(tmp_path / "history")


@pytest.fixture
def there() -> Iterator[ArtifactStore]:
    """Open the store of another machine."""
    with open_store(MemoryDisk()) as opened:
        yield opened


@pytest.fixture
def here(disk: Disk) -> Iterator[ArtifactStore]:
    with open_store(disk) as opened:
        yield opened


def take(store: ArtifactStore, data: bytes) -> ImportSummary:
    return import_archive(store, io.BytesIO(data))


def answers(store: ArtifactStore, cids: list[CID]) -> list[object]:
    """Return all that can be asked of a store, at every state."""
    end = store.current()
    found: list[object] = []
    for position in range(end.position + 1):
        for snapshot in range(end.snapshot + 1):
            try:
                state = IndexState(snapshot, position)
                found += [store.get_many(cids, state), [store.locate(c, state) for c in cids]]
            except LookupError as error:
                found.append(str(error))
    return found


def binds(store: ArtifactStore) -> list[Bind]:
    return [logged.entry for logged in store.log() if isinstance(logged.entry, Bind)]


class TestRestored:
    """Into an empty place."""

    def test_it_is_the_same_history(self, there: ArtifactStore, here: ArtifactStore) -> None:
        cids = live(there, large=True)

        taken = take(here, exported(there))

        assert taken == ImportSummary(
            ImportOutcome.RESTORED,
            there.history,
            there.current().position,
            there.current().position,
            there.current(),
        )
        assert here.history == there.history
        assert list(here.log()) == list(there.log())
        assert answers(here, cids) == answers(there, cids)
        assert here.get(CID.of(LARGE)) == LARGE
        assert here.verify().ok

    def test_it_is_there_when_the_store_is_opened_again(
        self, there: ArtifactStore, here: ArtifactStore, disk: Disk
    ) -> None:
        live(there)
        take(here, exported(there))
        here.close()

        with open_store(disk) as again:
            assert list(again.log()) == list(there.log())
            assert again.cuts == ()

    def test_its_segments_are_those_of_the_other(
        self, there: ArtifactStore, here: ArtifactStore
    ) -> None:
        live(there)

        take(here, exported(there))

        names = [name for name in here.disk.names() if name.startswith("segment-")]
        assert len(names) > 2
        assert names == [name for name in there.disk.names() if name.startswith("segment-")]

    def test_it_goes_on_like_any_other(self, there: ArtifactStore, here: ArtifactStore) -> None:
        live(there)
        take(here, exported(there))

        cid, state = here.put(Literal(b"new"))

        assert here.get(cid, state) == b"new"
        assert state.position == there.current().position + 1
        assert here.verify().ok

    def test_a_thread_that_waits_for_the_first_put_sees_it(
        self, there: ArtifactStore, here: ArtifactStore, disk: Disk
    ) -> None:
        (cid, *_) = live(there)
        with open_store(disk) as early:
            take(here, exported(there))

            assert early.get(cid) == there.get(cid)
            early.put(Literal(b"early"))

        assert here.get(CID.of(b"early")) == b"early"

    def test_a_derived_artifact_is_known(self, there: ArtifactStore, here: ArtifactStore) -> None:
        live(there)

        take(here, exported(there))

        before = here.current()
        cid, after = here.put(Derived("concat", "1", (Literal(b"one"), Literal(b"two"))))
        assert (cid, after) == (CID.of(b"onetwo"), before)

    def test_a_history_that_was_only_begun_is_not_replaced(self, there: ArtifactStore) -> None:
        live(there)
        with open_store(MemoryDisk()) as begun:
            begun.put(Literal(b"x"))
            head = begun.disk.open("segment-00000001").read(0, 128)
        disk = MemoryDisk({"segment-00000001": head})

        with open_store(disk) as store, pytest.raises(ArchiveError, match="was begun"):
            take(store, exported(there))

        assert disk.files()["segment-00000001"] == head

    def test_another_hash_is_refused(self, there: ArtifactStore) -> None:
        live(there)
        store = ArtifactStore(MemoryDisk(), hash=Hash.BLAKE3)

        with store, pytest.raises(ArchiveError, match="another hash"):
            take(store, exported(there))

    def test_blake3_is_taken_in_by_a_store_of_blake3(self) -> None:
        pytest.importorskip("blake3")
        with (
            ArtifactStore(MemoryDisk(), hash=Hash.BLAKE3) as there,
            ArtifactStore(MemoryDisk(), hash=Hash.BLAKE3) as here,
        ):
            cid, _ = there.put(Literal(b"hello"))
            take(here, exported(there))

            assert here.get(cid) == b"hello"


class TestExport:
    def test_the_same_state_gives_the_same_bytes_everywhere(
        self, there: ArtifactStore, here: ArtifactStore
    ) -> None:
        live(there, large=True)
        data = exported(there)

        take(here, data)

        assert exported(there) == exported(here) == data

    def test_it_says_what_it_wrote(self, there: ArtifactStore) -> None:
        live(there)
        target = io.BytesIO()

        summary = export(there, target)

        data = target.getvalue()
        assert summary.history == there.history
        assert summary.state == there.current()
        assert summary.root == log_root(there, there.current().position)
        assert summary.size == len(data)
        assert summary.digest == data[-32:]

    def test_it_may_begin_anywhere_in_a_file(self, there: ArtifactStore) -> None:
        live(there)
        target = io.BytesIO(b"before")
        target.seek(6)
        export(there, target)
        target.seek(6)

        assert read_archive(target).state == there.current()

    def test_there_must_be_something(self, there: ArtifactStore) -> None:
        with pytest.raises(ArchiveError, match="nothing in it"):
            exported(there)

    def test_what_was_swept_is_not_in_it_even_if_its_bytes_are_still_there(
        self, there: ArtifactStore
    ) -> None:
        secret, _ = there.put(Literal(b"a secret of many bytes"))
        there.tombstone(secret, "private")
        before = there.disk.open("segment-00000001").read(0, 4096)
        there.gc(before=there.current())
        data = exported(there)

        place = before.index(b"a secret")
        there.disk.open("segment-00000001").write(place, [b"a secret of many bytes"])

        assert exported(there) == data
        assert b"a secret" not in data

    def test_damaged_content_is_not_exported(self, there: ArtifactStore) -> None:
        live(there)
        file = there.disk.open("segment-00000001")
        at = file.read(0, 4096).index(literal(0).data)
        file.write(at, [b"?"])

        with pytest.raises(DamageError, match="can't be exported"):
            exported(there)

    def test_what_is_swept_meanwhile_is_reported(self, there: ArtifactStore) -> None:
        cid, _ = there.put(Literal(LARGE * 2))

        class Sweeping(io.BytesIO):
            def write(self, data: object) -> int:
                if there.has(cid):
                    there.tombstone(cid, "now")
                    there.gc(before=there.current())
                return super().write(data)  # type: ignore[arg-type]

        with pytest.raises(ArchiveError, match="export again"):
            export(there, Sweeping())

    def test_a_target_may_take_a_little_at_a_time(self, there: ArtifactStore) -> None:
        live(there)

        class Slow(io.BytesIO):
            def write(self, data: object) -> int:
                return super().write(memoryview(data)[:100])  # type: ignore[arg-type]

        target = Slow()
        export(there, target)

        assert target.getvalue() == exported(there)

    def test_progress_goes_to_the_end(self, there: ArtifactStore, here: ArtifactStore) -> None:
        live(there, large=True)
        seen: list[tuple[int, int]] = []

        target = io.BytesIO()
        export(there, target, progress=lambda done, whole: seen.append((done, whole)))
        assert seen == sorted(seen)
        assert seen[-1] == (len(target.getvalue()),) * 2

        seen.clear()
        target.seek(0)
        import_archive(here, target, progress=lambda done, whole: seen.append((done, whole)))
        assert seen == sorted(seen)
        assert {whole for _, whole in seen} == {3 * len(target.getvalue())}
        assert seen[-1][0] == seen[-1][1]


class TestContinued:
    """Ours is the beginning of it."""

    def test_what_is_missing_is_appended(self, there: ArtifactStore, here: ArtifactStore) -> None:
        cids = live(there)
        take(here, exported(there))
        before = here.current().position
        live_on(there, cids)
        data = exported(there)

        taken = take(here, data)

        assert (taken.outcome, taken.entries) == (
            ImportOutcome.CONTINUED,
            there.current().position - before,
        )
        assert here.current() == there.current()
        assert answers(here, cids) == answers(there, cids)
        assert exported(here) == data
        assert here.verify().ok

    def test_large_content_is_appended(self, there: ArtifactStore, here: ArtifactStore) -> None:
        live(there)
        take(here, exported(there))
        cid, _ = there.put(Literal(LARGE))
        there.put_many([Literal(LARGE[:-1]), Literal(LARGE[:-2])])

        take(here, exported(there))

        assert here.get(cid) == LARGE
        assert exported(here) == exported(there)

    def test_what_it_swept_is_erased_here_too(
        self, there: ArtifactStore, here: ArtifactStore
    ) -> None:
        secret, _ = there.put(Literal(b"a secret of many bytes"))
        take(here, exported(there))
        assert b"a secret" in here.disk.open("segment-00000001").read(0, 4096)
        there.tombstone(secret, "private")
        there.gc(before=there.current())

        take(here, exported(there))

        assert b"a secret" not in here.disk.open("segment-00000001").read(0, 4096)
        assert here.get(secret) is None
        assert "erase" not in here.disk.names()

    def test_a_store_with_longer_segments_keeps_the_others_boundaries(
        self, there: ArtifactStore
    ) -> None:
        cids = live(there)
        with ArtifactStore(MemoryDisk(), segment_bytes=1 << 20) as here:
            take(here, exported(there))
            live_on(there, cids)
            take(here, exported(there))

            assert exported(here) == exported(there)
            here.put(Literal(b"more"))
            assert here.verify().ok

    def test_it_is_there_when_the_store_is_opened_again(
        self, there: ArtifactStore, here: ArtifactStore, disk: Disk
    ) -> None:
        cids = live(there)
        take(here, exported(there))
        live_on(there, cids)
        take(here, exported(there))
        here.close()

        with open_store(disk) as again:
            assert list(again.log()) == list(there.log())
            assert again.cuts == ()


class TestKnown:
    """It is the beginning of ours, or the same."""

    def test_the_same_twice_is_once(self, there: ArtifactStore, here: ArtifactStore) -> None:
        live(there)
        data = exported(there)
        take(here, data)

        taken = take(here, data)

        assert (taken.outcome, taken.entries, taken.state) == (
            ImportOutcome.KNOWN,
            0,
            there.current(),
        )

    def test_an_older_one_changes_nothing(self, there: ArtifactStore, here: ArtifactStore) -> None:
        cids = live(there)
        old = exported(there)
        live_on(there, cids)
        new = exported(there)
        take(here, new)

        assert take(here, old).outcome is ImportOutcome.KNOWN
        assert exported(here) == new

    def test_ones_own_archive_changes_nothing(self, here: ArtifactStore) -> None:
        live(here)

        assert take(here, exported(here)).outcome is ImportOutcome.KNOWN


class TestForeign:
    """It is of another history."""

    def test_it_is_refused_and_nothing_is_changed(
        self, there: ArtifactStore, here: ArtifactStore
    ) -> None:
        here.record([NewBinding("a/note", b"ours")])
        live(there)
        before = exported(here)

        with pytest.raises(ArchiveError, match=r"of another history.*Fix: "):
            take(here, exported(there))

        assert exported(here) == before
        assert here.verify().ok

    def test_a_copy_that_went_another_way_is_refused(
        self, there: ArtifactStore, here: ArtifactStore
    ) -> None:
        live(there)
        take(here, exported(there))
        here.record([NewBinding("a/note", b"ours")])
        there.record([NewBinding("a/note", b"theirs")])
        before = exported(here)
        for _ in range(2):
            with pytest.raises(ArchiveError, match="both were continued"):
                take(here, exported(there))
            there.put(Literal(b"more"))

        assert exported(here) == before


class TestSource:
    def test_a_pipe_is_refused(self, here: ArtifactStore) -> None:
        class Pipe(io.BytesIO):
            def tell(self) -> int:
                raise io.UnsupportedOperation

        with pytest.raises(ArchiveError, match="save it to a file"):
            import_archive(here, Pipe(b"x"))

    def test_one_that_gives_little_at_a_time_is_read(
        self, there: ArtifactStore, here: ArtifactStore
    ) -> None:
        class Slow(io.BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                return super().read(min(size or 0, 100))

        live(there)

        assert import_archive(here, Slow(exported(there))).outcome is ImportOutcome.RESTORED

    @pytest.mark.parametrize(
        "relation", [ImportOutcome.RESTORED, ImportOutcome.CONTINUED, ImportOutcome.KNOWN]
    )
    def test_one_that_changes_after_it_was_checked_changes_nothing(
        self, there: ArtifactStore, here: ArtifactStore, relation: ImportOutcome
    ) -> None:
        cids = live(there)
        if relation is ImportOutcome.CONTINUED:
            take(here, exported(there))
        live_on(there, cids)
        there.put(Literal(LARGE))
        data = exported(there)
        if relation is ImportOutcome.KNOWN:
            take(here, data)
        source = io.BytesIO(data)

        def change(done: int, whole: int) -> None:
            if done * 3 == whole * 2:
                source.getbuffer()[data.index(LARGE) + 5] ^= 1

        if relation is ImportOutcome.KNOWN:
            assert import_archive(here, source, progress=change).outcome is ImportOutcome.KNOWN
        else:
            with pytest.raises(ArchiveError, match="was changed"):
                import_archive(here, source, progress=change)
        assert here.verify().ok
        assert take(here, data).outcome is relation
        assert here.get(CID.of(LARGE)) == LARGE


def test_a_disk_that_is_full_is_reported(there: ArtifactStore) -> None:
    live(there)

    class Full(MemoryDisk):
        def rename(self, old: str, new: str) -> None:
            raise OSError(28, "full")

    with open_store(Full()) as store:
        with pytest.raises(StorageFullError):
            take(store, exported(there))
        assert store.current() == (0, 0)


def test_states_that_are_no_longer_retained_are_not_with_the_copy(
    there: ArtifactStore, here: ArtifactStore
) -> None:
    cids = live(there)
    take(here, exported(there))

    with pytest.raises(RetentionError):
        here.get(cids[0], IndexState(0, 1))
