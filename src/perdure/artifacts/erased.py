"""Whether bytes that the log says are gone are really zeros."""

from collections.abc import Collection

from perdure.artifacts.cid import CID
from perdure.artifacts.store import ArtifactStore
from perdure.artifacts.survey import Window, is_erased, placed


def with_bytes_left(store: ArtifactStore, cids: Collection[CID], until: int) -> set[CID]:
    """Return those of which a byte is left where they were put, up to a position."""
    store.current()
    log = store._journal.log  # noqa: SLF001 - this is the store's own verb
    wanted = {bytes(cid): cid for cid in cids}
    left = set()
    for frame in log.frames(log.start_of(0)) if wanted else ():
        if frame.head.first_position > until:
            break
        for put in placed(frame):
            cid = wanted.get(put.cid)
            if cid is not None and put.position <= until:
                window = Window(log.file(frame.segment))
                if put.length and not is_erased(window, put):
                    left.add(cid)
    return left
