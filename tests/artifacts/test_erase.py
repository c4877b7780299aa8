"""Content that is erased is gone from every state and every byte; all else stays."""

import io
from collections.abc import Iterator

import pytest

from perdure.artifacts import CID, ArtifactStore, Literal, NewBinding
from perdure.artifacts.archive_transfer import ImportOutcome, export, import_archive
from perdure.artifacts.disk import Disk
from perdure.artifacts.entry import Sweep
from perdure.proofs.proof import Prover, verify_proof
from perdure.proofs.signing_keys import SigningKey
from tests.support.artifacts.memory_disk import MemoryDisk
from tests.support.artifacts.states import crash_states
from tests.support.artifacts.workloads import open_store, run

SECRET = b"The safe opens with 4711."
OTHER = b"Tea at four."


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def store(disk: MemoryDisk) -> Iterator[ArtifactStore]:
    with open_store(disk) as store:
        store.record([NewBinding("safe", SECRET), NewBinding("tea", OTHER)])
        yield store


def is_anywhere(disk: Disk, content: bytes) -> bool:
    files = (disk.open(name) for name in disk.names())
    return any(content in file.read(0, file.size()) for file in files)


def test_no_state_shows_it_no_byte_is_left_and_every_state_can_be_asked_for(
    store: ArtifactStore, disk: MemoryDisk
) -> None:
    then = store.current()
    assert is_anywhere(disk, SECRET)

    gone = store.erase([CID.of(SECRET)], "forgotten")

    assert (gone.cids, gone.size, gone.horizon) == ((CID.of(SECRET),), len(SECRET), 0)
    assert store.get_many([CID.of(SECRET), CID.of(OTHER)], then) == [None, OTHER]
    assert not is_anywhere(disk, SECRET)
    assert store.verify().ok


def test_twice_is_once_and_what_was_never_there_is_passed_over(store: ArtifactStore) -> None:
    store.erase([CID.of(SECRET)], "forgotten")
    after = store.current()

    assert store.erase([CID.of(SECRET), CID.of(b"never put")], "again").cids == ()
    assert store.current() == after


def test_who_puts_it_again_has_it_from_then_on(store: ArtifactStore) -> None:
    then = store.current()
    store.erase([CID.of(SECRET)], "forgotten")
    store.put(Literal(SECRET))

    assert store.get(CID.of(SECRET)) == SECRET
    assert store.get(CID.of(SECRET), then) is None


def test_what_was_hidden_and_not_erased_stays_where_it_is(store: ArtifactStore) -> None:
    then = store.current()
    store.tombstone(CID.of(OTHER), "not now")

    store.erase([CID.of(SECRET)], "forgotten")

    assert store.get(CID.of(OTHER), then) == OTHER


def test_a_copy_that_follows_the_log_erases_it_too() -> None:
    key = SigningKey.generate("test")
    mine, yours = MemoryDisk(), MemoryDisk()
    with ArtifactStore(mine) as here, ArtifactStore(yours) as there:
        here.record([NewBinding("safe", SECRET), NewBinding("tea", OTHER)])
        proof = Prover(here, key).prove(CID.of(OTHER))
        assert import_archive(there, archive(here)).outcome is ImportOutcome.RESTORED
        assert is_anywhere(yours, SECRET)
        here.erase([CID.of(SECRET)], "forgotten")

        assert import_archive(there, archive(here)).outcome is ImportOutcome.CONTINUED

        assert not is_anywhere(yours, SECRET)
        assert there.current() == here.current()
        assert list(there.log()) == list(here.log())
        assert there.verify().ok
        verify_proof(proof, key.public)
        assert Prover(there, key).checkpoint() == Prover(here, key).checkpoint()


def test_a_new_copy_never_has_it() -> None:
    with ArtifactStore(MemoryDisk()) as here, ArtifactStore(MemoryDisk()) as there:
        here.put(Literal(SECRET))
        here.erase([CID.of(SECRET)], "forgotten")
        source = archive(here)

        assert SECRET not in source.getvalue()
        assert import_archive(there, source).outcome is ImportOutcome.RESTORED
        assert there.verify().ok


def archive(store: ArtifactStore) -> io.BytesIO:
    target = io.BytesIO()
    export(store, target)
    target.seek(0)
    return target


@pytest.mark.search
def test_where_the_log_says_that_it_is_gone_it_is_once_the_store_was_opened() -> None:
    done = run(("put", "put many", "erase"))
    (gone,) = (logged.entry.cids[0] for logged in done.log if isinstance(logged.entry, Sweep))
    content = done.contents[gone]
    seen = {True: 0, False: 0}
    for state in crash_states(done.recording, since=done.last_step, most=200):
        disk = state.disk()
        with open_store(disk) as store:
            swept = any(isinstance(logged.entry, Sweep) for logged in store.log())
        assert not swept or not is_anywhere(disk, content), state.operations
        seen[swept] += 1

    assert min(seen.values()) > 10
