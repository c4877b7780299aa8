"""Say again, in another store, what a log says of some names: their versions, and nothing else."""

from collections.abc import Callable, Iterator
from itertools import groupby

from google_crc32c import value as crc32c

from perdure.artifacts.cid import CID
from perdure.artifacts.disk import Disk
from perdure.artifacts.draft import Content, Draft
from perdure.artifacts.entry import Bind
from perdure.artifacts.state import Logged
from perdure.artifacts.store import ArtifactStore

Keep = Callable[[Logged, Bind], Bind | None]
"""Returns what is to be said of a name, if anything is."""


def extract(store: ArtifactStore, disk: Disk, keep: Keep, until: int) -> ArtifactStore:
    """Return a store on an empty disk that has the names that are kept, commit by commit.

    Each commit has the time that it had. Content that is hidden or gone is named, and not there.
    """
    times = [0]
    target = ArtifactStore.on(disk, hash=store.hash, clock=lambda: times[-1])
    for time, binds in _commits(store, keep, until):
        times.append(time)
        target._journal.commit(_plan(store, binds), alone=True)  # noqa: SLF001 - as others of us
    return target


def _commits(store: ArtifactStore, keep: Keep, until: int) -> Iterator[tuple[int, list[Bind]]]:
    logged = (each for each in store.log() if each.position <= until)
    for _, entries in groupby(logged, key=lambda each: each.commit):
        of_commit = list(entries)
        said = [(each, each.entry) for each in of_commit if isinstance(each.entry, Bind)]
        binds = [bind for bind in (keep(each, entry) for each, entry in said) if bind is not None]
        if binds:
            yield of_commit[0].time, binds


def _plan(store: ArtifactStore, binds: list[Bind]) -> Callable[[Draft], None]:
    contents = [
        content
        for cid in dict.fromkeys(bind.cid for bind in binds if bind.cid is not None)
        if (content := _content(store, cid)) is not None
    ]

    def plan(draft: Draft) -> None:
        for content in contents:
            draft.put(content)
        for bind in binds:
            draft.append(bind)

    return plan


def _content(store: ArtifactStore, cid: CID) -> Content | None:
    data = store.get(cid)
    return None if data is None else Content(bytes(cid), crc32c(data), data)
