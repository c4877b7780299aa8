"""Archives that are damaged, and such as are meant to do harm: refused, and nothing is changed."""

import io
import random
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from google_crc32c import extend as extend_crc32c

from perdure.artifacts import CID, ArtifactStore, Codec, Derived, Literal, NewBinding
from perdure.artifacts.archive_format import read_archive
from perdure.artifacts.archive_transfer import export, import_archive
from perdure.artifacts.entry import (
    Bind,
    Entry,
    Lift,
    Put,
    Register,
    SnapshotAnchor,
    Sweep,
    Tombstone,
    UnknownEntry,
    encode,
)
from perdure.artifacts.segment import salt_of
from perdure.errors import ArchiveError
from tests import tiers
from tests.artifacts.archives import (
    Commit,
    assemble,
    dismantle,
    exported,
    open_store,
    redigested,
)
from tests.support.artifacts import MemoryDisk

pytestmark = pytest.mark.search

MUTATIONS = tiers.searched(20_000)
SECRET = b"a secret"


@cache
def small() -> bytes:
    """Return an archive with every kind of entry, in several segments."""
    with open_store(MemoryDisk()) as store:
        cid, _ = store.put(Literal(SECRET))
        store.put(Literal(b"x" * 1800))
        store.put(Derived("concat", "1", (Literal(b"one"), Literal(b"two"))))
        store.snapshot()
        store.tombstone(cid, "why")
        store.gc(before=store.current())
        store.record([NewBinding("name", b"text", {"who": ["Ana", 1, 2.5, None]})])
        unknown = UnknownEntry(9, bytes(range(16)))
        store._shared_log.commit(lambda draft: draft.append(unknown), alone=True)
        return exported(store)


def refused(data: bytes) -> bool:
    try:
        read_archive(io.BytesIO(data))
    except ArchiveError:
        return True
    return False


class TestDamage:
    def test_every_bit_flip_is_refused(self) -> None:
        data = bytearray(small())
        for bit in range(8 * len(data)):
            data[bit // 8] ^= 1 << bit % 8
            assert refused(bytes(data)), bit
            data[bit // 8] ^= 1 << bit % 8

    def test_every_bit_flip_is_refused_even_if_the_digest_fits(self) -> None:
        data = bytearray(small())
        for at in range(len(data) - 32):
            data[at] ^= 1 << at % 8
            assert refused(redigested(bytes(data))), at
            data[at] ^= 1 << at % 8

    def test_every_length_but_its_own_is_refused(self) -> None:
        data = small()
        for length in range(len(data)):
            assert refused(data[:length])
            assert length < 64 or refused(redigested(data[:length]))
        assert refused(data + b"\0")
        assert refused(redigested(data + b"\0"))

    @pytest.mark.parametrize("data", [b"", b"PDarchiv", bytes(1000), b"PDarchiv" * 100])
    def test_what_is_no_archive_is_refused(self, data: bytes) -> None:
        assert refused(data)

    def test_a_later_version_is_refused(self) -> None:
        data = small()
        later = redigested(data[:8] + b"\2\0" + data[10:])

        with pytest.raises(ArchiveError, match="version 2"):
            read_archive(io.BytesIO(later))


# ---------------------------------------------------------------- well sealed, and yet wrong
def commit(*entries: Entry, payload: bytes = b"", time: int = 1, epoch: int = 1) -> Commit:
    return Commit(b"".join(map(encode, entries)), payload, time, epoch, len(entries))


def put(content: bytes, offset: int = 0) -> Put:
    with open_store(MemoryDisk()) as store:
        store.put(Literal(content))
        (logged,) = store.log()
    assert isinstance(logged.entry, Put)
    return Put(logged.entry.cid, offset, logged.entry.length, logged.entry.crc)


X = CID.of(b"x")
PUT = commit(put(b"x"), payload=b"x")
HIDE = commit(Tombstone(X, ""))
STRUCTURE = b"\x83\x01\x67literal\xd8\x2a\x58\x25\x00" + bytes(X)
DEEP = b"\x81" * 200 + b"\x00"
DIGEST = bytes(32)

FORGED: dict[str, list[Commit]] = {
    "content that is another": [commit(put(b"x"), payload=b"y")],
    "content that is zeros and was never swept": [commit(put(b"x"), payload=b"\0")],
    "content beyond the payload": [commit(put(b"x", 5), payload=b"x")],
    "content longer than the payload": [commit(put(b"xy"), payload=b"x")],
    "payload that nobody speaks of": [commit(put(b"x"), payload=b"xy")],
    "payload in a commit without content": [commit(Bind("a", None), payload=b"y")],
    "content that is there twice": [commit(put(b"x"), put(b"x"), payload=b"x")],
    "content of another hash": [
        commit(Put(CID(DIGEST, CID(DIGEST).hash, Codec.DAG_CBOR), 0, 0, 0))
    ],
    "more entries than it says": [PUT._replace(entries=2)],
    "fewer entries than it says": [commit(Bind("a", None), Bind("b", None))._replace(entries=1)],
    "an entry that breaks off": [commit(Bind("a", None))._replace(records=b"\3\4\0\0\0ab")],
    "no entry at all": [Commit(b"", b"", 1, 1, 1)],
    "a time after all times": [commit(Bind("a", None), time=1 << 63)],
    "an epoch after all epochs": [commit(Bind("a", None), epoch=1 << 63)],
    "a log that goes back in time": [PUT._replace(time=5), commit(Bind("a", None), time=4)],
    "a name that is no text": [commit(UnknownEntry(3, b"\x83\x01\xf6\xa0"))],
    "circumstances without end": [commit(UnknownEntry(3, b"\x83\x61a\xf6" + DEEP))],
    "a number of bytes that nobody has": [commit(UnknownEntry(3, b"\x83\x5b" + b"\xff" * 8))],
    "a structure under a wrong name": [
        commit(Register(CID.of(b"?", codec=Codec.DAG_CBOR), STRUCTURE))
    ],
    "a snapshot of another log": [PUT, commit(SnapshotAnchor(1, 1, DIGEST))],
    "a second snapshot first": [commit(SnapshotAnchor(2, 0, DIGEST))],
    "a snapshot that is not alone": [commit(SnapshotAnchor(1, 0, DIGEST), Bind("a", None))],
    "a sweep of the future": [PUT, HIDE, commit(Sweep(3, ()))],
    "a sweep of what is not hidden": [
        commit(put(b"x"), payload=b"\0"),
        commit(Sweep(1, (X,))),
    ],
    "a sweep of what is hidden later": [
        commit(put(b"x"), payload=b"\0"),
        commit(Sweep(1, (X,))),
        HIDE,
    ],
    "a sweep of what was swept already": [
        commit(put(b"x"), payload=b"\0"),
        HIDE,
        commit(Sweep(0, (X,))),
        commit(Sweep(0, (X,))),
    ],
    "a sweep of what was shown again": [
        commit(put(b"x"), payload=b"\0"),
        HIDE,
        commit(Lift(X)),
        commit(Sweep(3, (X,))),
    ],
    "a sweep that is not alone": [
        commit(put(b"x"), payload=b"\0"),
        HIDE,
        commit(Sweep(2, (X,)), Bind("a", None)),
    ],
    "a sweep back": [PUT, HIDE, commit(Sweep(2, ())), commit(Sweep(1, ()))],
    "swept content whose bytes are there": [PUT, HIDE, commit(Sweep(2, (X,)))],
}


class TestForged:
    """All hashes, seals and checksums of these are right."""

    def test_a_valid_archive_can_be_assembled_like_this(self) -> None:
        assert assemble(*dismantle(small())) == small()
        assert not refused(assemble(DIGEST[:16], [[PUT, HIDE]]))
        for horizon in range(3):  # whether states are let go of or not
            swept = [PUT._replace(payload=b"\0"), HIDE, commit(Sweep(horizon, (X,)))]
            assert not refused(assemble(DIGEST[:16], [swept]))

    @pytest.mark.parametrize("what", FORGED)
    def test_what_no_store_would_write_is_refused(self, what: str) -> None:
        forged = assemble(DIGEST[:16], [FORGED[what]])

        with open_store(MemoryDisk()) as store:
            with pytest.raises(ArchiveError):
                import_archive(store, io.BytesIO(forged))
            assert store.current() == (0, 0)

    @pytest.mark.parametrize("segments", [[[]], [[PUT], []], [[], [PUT]]])
    def test_a_segment_without_commits_is_refused(self, segments: list[list[Commit]]) -> None:
        assert refused(assemble(DIGEST[:16], segments))

    def test_a_log_without_its_beginning_is_refused(self) -> None:
        data = assemble(DIGEST[:16], [[PUT], [HIDE]])
        first, second = struct.unpack_from("<QQ", data, 16)
        cut = struct.pack("<8sHHIQ", data[:8], 1, 0, 1, second) + data[32 + first :]

        assert refused(redigested(cut))

    def test_an_extension_of_our_own_log_can_not_sweep_what_was_never_put(self) -> None:
        ghost = CID.of(b"ghost")
        with open_store(MemoryDisk()) as store:
            store.put(Literal(b"ours"))
            history, ((first, *_),) = dismantle(exported(store))
            later = first.time
            forged = [
                first,
                commit(Tombstone(ghost, ""), time=later),
                commit(Sweep(2, (ghost,)), time=later),
            ]

            with pytest.raises(ArchiveError, match="sweeps content that was not hidden"):
                import_archive(store, io.BytesIO(assemble(history, [forged])))

            assert "erase" not in store.disk.names()
            assert store.get(CID.of(b"ours")) == b"ours"
            store.put(Literal(b"more"))
            assert store.verify().ok

    def test_unknown_entries_are_retained(self) -> None:
        data = assemble(DIGEST[:16], [[PUT, commit(UnknownEntry(77, b"later"))]])
        with open_store(MemoryDisk()) as restored:
            import_archive(restored, io.BytesIO(data))
            assert exported(restored) == data


# ---------------------------------------------------------------- at random
def mutate(data: bytes, dice: random.Random) -> bytes:
    """Return it with something changed, moved, doubled or missing."""
    at = dice.randrange(len(data))
    length = dice.choice([1, 1, 2, 4, 8, 32, 128])
    piece = data[at : at + length]
    return dice.choice(
        [
            data[:at] + dice.randbytes(len(piece)) + data[at + length :],
            data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :],
            data[:at] + data[at + length :],
            data[:at] + piece + data[at:],
            data[:at] + dice.choice([b"\0", b"\xff"]) * len(piece) + data[at + length :],
        ]
    )


def mutants(seed: int, count: int) -> Iterator[bytes]:
    """Yield archives that are wrong somewhere: half of them with a digest that fits, and half of
    those sealed as if a store had written them.
    """  # noqa: D205 - one sentence
    dice = random.Random(tiers.seed(seed))
    data = small()
    history, segments = dismantle(data)
    for number in range(count):
        if number % 4 < 2:
            yield mutate(data, dice)
        elif number % 4 == 2:
            yield redigested(mutate(data, dice))
        else:
            yield assemble(history, _mutated(segments, dice))


def _mutated(segments: list[list[Commit]], dice: random.Random) -> list[list[Commit]]:
    changed = [list(commits) for commits in segments]
    commits = dice.choice(changed)
    at = dice.randrange(len(commits))
    found = commits[at]
    commits[at] = dice.choice(
        [
            found._replace(records=mutate(found.records, dice)),
            found._replace(records=mutate(found.records, dice)),
            found._replace(payload=mutate(found.payload or b"?", dice)),
            found._replace(time=dice.getrandbits(64), epoch=dice.getrandbits(63)),
            found._replace(entries=dice.getrandbits(4)),
            dice.choice(commits),
        ]
    )
    return changed


def test_whatever_is_changed_is_refused_or_is_an_archive() -> None:
    accepted = {data for data in mutants(seed=1, count=MUTATIONS) if not refused(data)}

    assert MUTATIONS // 2_000 < len(accepted) < MUTATIONS // 10
    for data in accepted:
        with open_store(MemoryDisk()) as store:
            import_archive(store, io.BytesIO(data))
            assert store.verify().ok
            assert exported(store) == data
            store.catalogue.follow()
            store.put(Literal(b"and on"))


def test_what_is_refused_leaves_nothing(tmp_path: Path) -> None:
    with ArtifactStore.open(tmp_path / "history") as store:
        for data in mutants(seed=2, count=400):
            if not refused(data):
                continue
            with pytest.raises(ArchiveError):
                import_archive(store, io.BytesIO(data))
        assert store.current() == (0, 0)
        assert not [name for name in store.disk.names() if name.startswith(("seg", "arr"))]


# ---------------------------------------------------------------- memory
def peak(act: Callable[[], object]) -> int:
    """Return how many bytes were in use at most while this was done."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    dice = random.Random(tiers.seed(3))
    with ArtifactStore.open(tmp_path / "there") as there:
        there.put(Literal(dice.randbytes(48 << 20)))

        def write() -> None:
            with path.open("wb") as target:
                export(there, target)

        assert peak(write) < 8 << 20

    with ArtifactStore.open(tmp_path / "restored") as here, path.open("rb") as archive:
        assert peak(lambda: import_archive(here, archive)) < 12 << 20
        assert here.current().position == 1


LENGTHS = {"records": (36, 4), "payload": (40, 8)}


@pytest.mark.parametrize("part", LENGTHS)
@pytest.mark.parametrize("bits", [20, 29, 32, 40, 64])
def test_lengths_that_are_not_there_take_no_memory(part: str, bits: int) -> None:
    data = small()
    history, _ = dismantle(data)
    offset, size = LENGTHS[part]
    length = ((1 << min(bits, 8 * size)) - 1).to_bytes(size, "little")
    at = data.index(b"PDfr")
    head = data[at : at + offset] + length + data[at + offset + size : at + 52]
    checksum = extend_crc32c(salt_of(history), head).to_bytes(4, "little")
    forged = redigested(data[:at] + head + checksum + data[at + 56 :])

    assert peak(lambda: refused(forged)) < 4 << 20
    assert refused(forged)


@pytest.mark.parametrize("at", [12, 16, 24])
def test_segments_that_are_not_there_take_no_memory(at: int) -> None:
    data = small()
    forged = redigested(data[:at] + b"\xff\xff\xff\x7f" + data[at + 4 :])

    assert peak(lambda: refused(forged)) < 4 << 20
    assert refused(forged)
