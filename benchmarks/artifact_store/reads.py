"""What it costs to read, with every byte checked."""

import random
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import perdure
from artifact_store.peers import Git, Peer, opened
from artifact_store.races import OURS, Figure, Race, per, run
from artifact_store.scale import KIB, Scale, payloads
from perdure.artifacts import CID, ArtifactStore, IndexState, Literal
from perdure.artifacts.disk import FolderDisk
from perdure.artifacts.verification import verify as check

READS = 1_000
PEER = "SQLite"
FRESH = f"{OURS}, before a snapshot"

Places = list[int]

_Key = TypeVar("_Key")


def warm_get(folder: Path, scale: Scale) -> list[Figure]:
    """Get, one by one, what was read before."""
    batch = payloads(scale.stored, KIB)
    with (
        opened(folder) as peers,
        filled(folder / OURS, batch) as store,
        filled(folder / FRESH, batch) as fresh,
    ):
        store.snapshot()
        cids = [CID.of(data) for data in batch]
        contestants = {OURS: _each(store.get, cids), FRESH: _each(fresh.get, cids)}
        contestants |= {name: _filled_peer(peer, batch) for name, peer in peers.items()}
        everywhere = range(scale.stored)
        taken = run(contestants, lambda: random.sample(everywhere, READS), legs=5)
    title = f"warm get of 1 KiB, of {scale.stored:,}"
    return [Race(title, per(5 * READS, taken), PEER, {OURS: 1.0, FRESH: 1.0})]


def verify(folder: Path, scale: Scale) -> list[Figure]:
    """Hash everything again, and git too."""
    stores = [_verify(folder / str(size), count, size) for count, size in scale.verified]
    return [*stores, _verify_memory(folder / "memory", scale.stored // 20)]


def _verify(folder: Path, count: int, size: int) -> Race:
    batch = payloads(count, size)
    (folder / "git").mkdir(parents=True)
    git = Git(folder / "git")
    git.put_many(batch)
    with filled(folder / OURS, batch) as store:
        contestants: dict[str, Callable[[None], object]] = {
            "sha256": lambda _: [sha256(data).digest() for data in batch],
            OURS: lambda _: store.verify(),
            "git fsck": lambda _: git.verify(),
        }
        taken = run(contestants, lambda: None)
    git.close()
    title = f"verify {count * size >> 20} MiB in objects of {size // KIB} KiB, for each MiB"
    return Race(title, per(count * size / (1 << 20), taken), "sha256", {OURS: 2.0})


def _verify_memory(folder: Path, saves: int) -> Race:
    """Verify the history of a memory: commits of some 2 KB, mostly names, and few contents."""
    with perdure.open(user="ana", home=folder) as memory:
        for number in range(saves):
            text = f"Component {number % 37} is number {number}. " + "It was measured. " * (
                number % 20
            )
            memory.save(text, category="entity", slug=f"component-{number}")
    (history,) = {file.parent for file in folder.rglob("segment-*")}
    data = b"".join(file.read_bytes() for file in history.glob("segment-*"))
    contestants: dict[str, Callable[[None], object]] = {
        "sha256": lambda _: sha256(data).digest(),
        OURS: lambda _: check(FolderDisk(history)),
    }
    taken = run(contestants, lambda: None, clock=time.process_time)
    title = f"verify the history of {saves:,} saves, for each MiB"
    return Race(title, per(len(data) / (1 << 20), taken), "sha256", {OURS: 15.0})


def as_of(folder: Path, _: Scale) -> list[Figure]:
    """Get as of the oldest state and as of the newest, a thousand commits later."""
    batch = payloads(READS, KIB)
    cids = [CID.of(data) for data in batch]
    with filled(folder / OURS, batch) as store:
        oldest = store.current()
        for data in payloads(READS, KIB):
            store.put(Literal(data))
        before = _by_age("get of 1 KiB before a snapshot", store, cids, oldest)
        store.snapshot()
        return [before, _by_age("get of 1 KiB after a snapshot", store, cids, oldest)]


def _by_age(title: str, store: ArtifactStore, cids: list[CID], oldest: IndexState) -> Race:
    newest = store.current()
    old, new = "as of the oldest state", "as of the newest state"
    contestants = {
        new: _each(lambda cid: store.get(cid, newest), cids),
        old: _each(lambda cid: store.get(cid, oldest), cids),
    }
    taken = run(contestants, lambda: random.sample(range(READS), READS), legs=5)
    return Race(title, per(5 * READS, taken), new, {old: 1.2})


def filled(folder: Path, batch: Sequence[bytes], step: int = 1_000) -> ArtifactStore:
    """Open a store with these objects in it."""
    store = ArtifactStore.open(folder)
    for start in range(0, len(batch), step):
        store.put_many([Literal(data) for data in batch[start : start + step]])
    return store


def _filled_peer(peer: Peer, batch: Sequence[bytes]) -> Callable[[Places], object]:
    peer.put_many(batch)
    return _each(peer.get, [peer.key(data) for data in batch])


def _each(get: Callable[[_Key], object], keys: Sequence[_Key]) -> Callable[[Places], object]:
    return lambda places: [get(keys[place]) for place in places]
