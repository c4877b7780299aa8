"""What it costs to put, until the bytes would survive a power cut."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

from artifact_store.peers import FlatFile, opened
from artifact_store.races import OURS, Figure, Race, Reading, per, run
from artifact_store.scale import KIB, MIB, Scale, payloads
from perdure.artifacts import ArtifactStore, Literal

BARE = "sha256, write, fdatasync"
PUTS = 20
THREADS = 16
FLAT_BYTES = 64 * MIB

Batch = Sequence[bytes]


def one_caller(folder: Path, scale: Scale) -> list[Figure]:
    """Put one after the other."""
    with opened(folder) as peers, ArtifactStore.open(folder / OURS) as store:
        flat = FlatFile(folder, FLAT_BYTES)
        contestants = {BARE: _each(flat.put), OURS: _each(_putter(store))}
        contestants |= {name: _each(peer.put) for name, peer in peers.items()}
        taken = run(contestants, lambda: payloads(PUTS, KIB), legs=scale.legs)
        flat.close()
    seconds = per(PUTS * scale.legs, taken)
    return [
        Race("durable put of 1 KiB, one caller", seconds, BARE, {OURS: 1.3}),
        _first(seconds),
    ]


def many_callers(folder: Path, scale: Scale) -> list[Figure]:
    """Put from many threads at once, into a store of their own."""
    one, many = f"{OURS}, one caller", f"{OURS}, {THREADS} threads"
    with (
        ArtifactStore.open(folder / "one") as alone,
        ArtifactStore.open(folder / "many") as shared,
        ThreadPoolExecutor(THREADS) as threads,
    ):
        put_each = _each(_putter(shared))

        def together(batch: Batch) -> None:
            list(threads.map(put_each, [batch[at::THREADS] for at in range(THREADS)]))

        contestants = {one: _each(_putter(alone)), many: together}
        taken = run(
            contestants, lambda: payloads(PUTS * THREADS, KIB), legs=max(1, scale.legs // 4)
        )
    seconds = per(PUTS * THREADS * max(1, scale.legs // 4), taken)
    return [Race("durable put of 1 KiB, many callers", seconds, one, {many: 1 / 3})]


def batches(folder: Path, _: Scale) -> list[Figure]:
    """Put many in one commit."""
    figures: list[Figure] = []
    with opened(folder) as peers, ArtifactStore.open(folder / OURS) as store:
        flat = FlatFile(folder, FLAT_BYTES)
        contestants = {BARE: flat.put_many, OURS: _batch_putter(store)}
        contestants |= {name: peer.put_many for name, peer in peers.items()}
        for count, size, limit in ((1_000, KIB, 2.5), (32, 64 * KIB, 1.4)):
            title = f"batch of {count:,} x {size // KIB} KiB, for each"
            taken = run(contestants, lambda count=count, size=size: payloads(count, size))  # type: ignore[misc]
            seconds = per(count, taken)
            figures += [Race(title, seconds, BARE, {OURS: limit}), _first(seconds)]
        flat.close()
    return figures


def known(folder: Path, _: Scale) -> list[Figure]:
    """Put what is there. The limit is for 64 KiB: below, Python's own calls outweigh the hash."""
    figures: list[Figure] = []
    written = 0
    with ArtifactStore.open(folder / OURS) as store:
        for count, size, limit in ((500, KIB, None), (100, 64 * KIB, 1.5), (20, MIB, None)):
            batch = payloads(count, size)
            store.put_many([Literal(data) for data in batch])
            contestants = {"sha256": _each(_hash), OURS: _each(_putter(store))}
            before = _bytes_written()
            taken = run(contestants, lambda batch=batch: batch, legs=4)  # type: ignore[misc]
            written += _bytes_written() - before
            title = f"put of {size // KIB} KiB that is known"
            seconds = per(4 * count, taken)
            figures.append(Race(title, seconds, "sha256", {OURS: limit} if limit else {}))
    return [*figures, Reading("written by puts of what is known", written, "bytes", 0)]


def _each(put: Callable[[bytes], object]) -> Callable[[Batch], None]:
    def put_each(batch: Batch) -> None:
        for data in batch:
            put(data)

    return put_each


def _putter(store: ArtifactStore) -> Callable[[bytes], object]:
    return lambda data: store.put(Literal(data))


def _batch_putter(store: ArtifactStore) -> Callable[[Batch], object]:
    return lambda batch: store.put_many([Literal(data) for data in batch])


def _hash(data: bytes) -> bytes:
    return sha256(data).digest()


def _first(seconds: dict[str, float]) -> Reading:
    peers = {name: taken for name, taken in seconds.items() if name not in {BARE, OURS}}
    fastest = min(peers, key=peers.__getitem__)
    return Reading(f"  {OURS} / {fastest}", seconds[OURS] / peers[fastest], "x", 1.0)


def _bytes_written() -> int:
    """Return what this process has handed to the system to write, ever."""
    counters = dict(
        line.split(": ") for line in Path("/proc/self/io").read_text("ascii").splitlines()
    )
    return int(counters["wchar"])
