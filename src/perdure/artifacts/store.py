"""The artifact store: put once, for ever; get as of any moment."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from google_crc32c import value as crc32c

from perdure.artifacts.artifact import SID, Artifact, Derived, Literal
from perdure.artifacts.cid import CID, Codec, Hash
from perdure.artifacts.derivations import Derivation, Derivations, Operations
from perdure.artifacts.disk import Disk, FolderDisk
from perdure.artifacts.entry import Bind, SnapshotAnchor
from perdure.artifacts.index import Content, Draft
from perdure.artifacts.journal import NOTE, Journal, milliseconds
from perdure.artifacts.log import SEGMENT_BYTES, Cut
from perdure.artifacts.named import CATALOGUE
from perdure.artifacts.segment import segment_name
from perdure.artifacts.state import ArtifactLocation, BlockSlice, Change, IndexState, Logged
from perdure.artifacts.table import Row
from perdure.errors import (
    BeforeSnapshotError,
    DamageError,
    FuturePositionError,
    InvalidArtifactError,
    RetentionError,
    StaleIndexError,
    StorageError,
    UnknownContentError,
    UnknownSnapshotError,
    storage_read_error,
)
from perdure.files import Closeable

if TYPE_CHECKING:
    from perdure.artifacts.catalogue import Catalogue
    from perdure.artifacts.sweep import Collected, Sweeper
    from perdure.artifacts.verify import Progress, Report


_WRONG = b"not what was put"
"""Marks damaged bytes; compared by identity."""
_LARGE = 1 << 20
_MOST_TOUCHED = 1 << 17


class ArtifactStore(Closeable):
    """Content by its CID, visible as of a log position, for ever.

    Any number of threads and processes may use one history at the same time. `put` returns when
    its content would survive a power cut. `get` takes no lock, materializes nothing and changes
    nothing.
    """

    def __init__(
        self,
        disk: Disk,
        *,
        hash: Hash = Hash.SHA2_256,  # noqa: A002 - the standard's own word
        segment_bytes: int = SEGMENT_BYTES,
        clock: Callable[[], int] = milliseconds,
        wait: float = 10.0,
    ) -> None:
        self.disk = disk
        self._journal = Journal(disk, hash, segment_bytes=segment_bytes, clock=clock, wait=wait)
        self._hash = self._journal.log.hash if self._journal.log.history else hash
        self._prefix = bytes(CID(bytes(32), self._hash, Codec.RAW))[:4]
        self._contents = Contents(disk, self._journal, self._hash)
        self.operations = Operations()
        """Register your own here."""
        if self._journal.has_file(NOTE):
            with suppress(StorageError):  # not writable for us, or another process writes
                self._journal.commit(lambda _: self._sweeper().finish(), alone=True)

    @classmethod
    def open(cls, folder: Path | str, **options: object) -> "ArtifactStore":
        """Open the history in a folder; if there is none, the first put makes it."""
        return cls(FolderDisk(folder), **options)  # type: ignore[arg-type]

    @cached_property
    def catalogue(self) -> "Catalogue":
        """Names, structures and results; derived from the log."""
        from perdure.artifacts.catalogue import Catalogue  # noqa: PLC0415 - who asks for it pays

        return Catalogue(self, self.disk.path(CATALOGUE))

    @cached_property
    def _derivations(self) -> Derivations:
        return Derivations(self.catalogue, self.operations, self._hash, self.get, self._content)

    # ------------------------------------------------------------ putting
    def put(self, artifact: Artifact) -> tuple[CID, IndexState]:
        """Make an artifact real; the CID is that of its bytes, the state one that holds it."""
        (cid,), state = self.put_many([artifact])
        return cid, state

    def put_many(self, artifacts: Iterable[Artifact]) -> tuple[list[CID], IndexState]:
        """Put them all in one commit: either all are there or none."""
        given = list(artifacts)
        for artifact in given:
            _check_artifact(artifact)
        puts = [
            self._content(artifact.data)
            if isinstance(artifact, Literal)
            else self._derivations.begin(artifact)
            for artifact in given
        ]

        def plan(draft: Draft) -> None:
            for put in puts:
                if isinstance(put, Content):
                    draft.put(put)
                elif isinstance(put, Derivation):
                    put.plan(draft, self.catalogue, self._hash)

        state = self._journal.refresh()
        if self._contents.damaged:
            self._mend([put for put in puts if isinstance(put, Content)])
        if not all(self._is_there(put, state.position) for put in puts):
            state = self._journal.commit(plan)
            derived = [put for put in puts if isinstance(put, Derivation)]
            if derived:
                self.catalogue.follow()
            for derivation in derived:  # raises if its recorded result differs
                self._derivations.result_of(derivation.root)
        return [put if isinstance(put, CID) else CID(put.digest, self._hash) for put in puts], state

    def _mend(self, contents: Sequence[Content]) -> None:
        """Where the stored bytes of these were found to be wrong, make them right again."""
        damaged = [each for each in contents if each.digest in self._contents.damaged]

        def plan(_: Draft) -> None:
            for content in damaged:
                self._contents.mend(content.digest, content.data)

        if damaged:
            self._journal.commit(plan, alone=True)

    def _is_there(self, put: Content | Derivation | CID, position: int) -> bool:
        if isinstance(put, Content):
            return self._is_visible(put.cid[4:], position)
        return isinstance(put, CID)

    # ------------------------------------------------------------ what others made
    def remember(self, made: Iterable[tuple[Derived, bytes]]) -> IndexState:
        """Note in one commit what derivations gave; for what is made many at a time, elsewhere.

        The bytes of their literals are not put: the structures name them.
        """
        recorded = [self._derivations.recorded(each, self._content(data)) for each, data in made]

        def plan(draft: Draft) -> None:
            for derivation in recorded:
                derivation.plan(draft, self.catalogue, self._hash)

        return self._journal.commit(plan)

    def remembered(self, sids: Sequence[SID]) -> list[bytes | None]:
        """Return what each structure gave, the first time; None if it was never made."""
        self._journal.refresh()
        self.catalogue.follow()
        first = self.catalogue.first_results(sids)
        cids = [first.get(sid) for sid in sids]
        data = iter(self.get_many([cid for cid in cids if cid is not None]))
        return [None if cid is None else next(data) for cid in cids]

    def record(self, changes: Sequence[Change]) -> IndexState:
        """Put the contents and bind the names to them, all in one commit."""
        contents = [
            None if change.content is None else self._content(change.content) for change in changes
        ]

        def plan(draft: Draft) -> None:
            for content in contents:
                if content is not None:
                    draft.put(content)
            for change, content in zip(changes, contents, strict=True):
                cid = None if content is None else CID(content.digest, self._hash)
                draft.append(Bind(change.name, cid, change.circumstances))

        return self._journal.commit(plan)

    def _content(self, data: bytes) -> Content:
        hasher = sha256 if self._hash is Hash.SHA2_256 else self._hash.hasher
        return Content(self._prefix + hasher(data).digest(), crc32c(data), data)

    # ------------------------------------------------------------ getting
    def get(self, cid: CID, state: IndexState | None = None) -> bytes | None:
        """Return the bytes that the CID named in that state, or None if it named none.

        They are checked: wrong bytes are never returned. A state that can't be asked for is a
        `StateError`, never None.
        """
        return self._get(cid, self._position(state))

    def _get(self, cid: CID, position: int) -> bytes | None:
        row = self._find_visible(cid, position)
        if row is None:
            return None
        data = self._contents.read(cid.digest, row)
        return data if data is not _WRONG else self._explain_wrong_bytes(cid, row, position)

    def has(self, cid: CID, state: IndexState | None = None) -> bool:
        return self._has(cid, self._position(state))

    def _has(self, cid: CID, position: int) -> bool:
        return self._is_ours(cid) and self._is_visible(cid.digest, position)

    def is_kept(self, cid: CID) -> bool:
        """Whether the bytes are there, be they hidden or not."""
        self._journal.refresh()
        return self._find(cid) is not None

    def get_many(self, cids: Sequence[CID], state: IndexState | None = None) -> list[bytes | None]:
        """Return what `get` would for each, all as of one state."""
        position = self._position(state)
        return [self._get(cid, position) for cid in cids]

    def has_many(self, cids: Sequence[CID], state: IndexState | None = None) -> list[bool]:
        """Return what `has` would for each, all as of one state."""
        position, index = self._position(state), self._journal.index
        try:
            found = [index.find(cid.digest) for cid in cids]
        except StaleIndexError:  # as `has` says
            return [self._has(cid, position) for cid in cids]
        return [
            row is not None and self._is_ours(cid) and index.is_visible(cid.digest, row, position)
            for cid, row in zip(cids, found, strict=True)
        ]

    def locate(self, cid: CID, state: IndexState | None = None) -> ArtifactLocation | None:
        """Return where the bytes are, as the log tells it; None where `get` would return None."""
        row = self._find_visible(cid, self._position(state))
        return None if row is None else (BlockSlice(row.block, row.offset, row.length),)

    def _is_visible(self, digest: bytes, position: int) -> bool:
        row = self._find_digest(digest)
        return row is not None and self._journal.index.is_visible(digest, row, position)

    def _find_visible(self, cid: CID, position: int) -> Row | None:
        row = self._find(cid)
        visible = row is not None and self._journal.index.is_visible(cid.digest, row, position)
        return row if visible else None

    def _is_ours(self, cid: CID) -> bool:
        return cid.hash is self._hash and cid.codec is Codec.RAW

    def _find(self, cid: CID) -> Row | None:
        return self._find_digest(cid.digest) if self._is_ours(cid) else None

    def _find_digest(self, digest: bytes) -> Row | None:
        try:
            return self._journal.index.find(digest)
        except StaleIndexError:  # the index is damaged: build another one from the log
            self._journal.rebuild()
            return self._journal.index.find(digest)

    def _explain_wrong_bytes(self, cid: CID, row: Row, position: int) -> bytes | None:
        self._journal.refresh()
        self._check_retained(position)
        if self._find(cid) is None:  # swept since we looked
            return None
        raise DamageError(
            f"the bytes of {cid} in {segment_name(row.segment)} at byte {row.place} are not what "
            f"was put. Nothing else is touched by this. Fix: restore the file from a backup, or "
            "put the same content again."
        )

    def structure(self, sid: SID) -> bytes | None:
        """Return what is registered under a SID, in its canonical form; None if nothing is."""
        self.catalogue.follow()
        return self.catalogue.structure(sid)

    # ------------------------------------------------------------ states
    def settled(self) -> IndexState:
        """Return the newest state, once what a writer left that died is settled."""
        return self._journal.settled()

    def current(self) -> IndexState:
        """Return the newest state; it never goes back."""
        return self._journal.refresh()

    def whole(self, state: IndexState | None = None) -> IndexState:
        """Return the last whole commit at or before a state; without one, the newest."""
        position = self._position(state)
        current = self._journal.state
        if position == current.position:
            return current
        commit = self._journal.commit_before(position)
        taken = sum(at < commit for at in self._journal.index.snapshots)
        return IndexState(taken, commit)

    def _position(self, state: IndexState | None) -> int:
        current = self._journal.refresh()
        if state is None:
            return current.position
        snapshot, position = state
        if position > current.position or position < 0:
            raise FuturePositionError(
                f"the log ends with entry {current.position}, so there is no state at {position}. "
                "Fix: ask for an earlier one."
            )
        snapshots = self._journal.index.snapshots
        if not 0 <= snapshot <= len(snapshots):
            raise UnknownSnapshotError(
                f"no snapshot {snapshot} was taken; the newest is {len(snapshots)}. Fix: use a "
                "state that this store returned."
            )
        if snapshot and position < snapshots[snapshot - 1]:
            raise BeforeSnapshotError(
                f"snapshot {snapshot} was taken at entry {snapshots[snapshot - 1]}, after "
                f"{position}. Fix: name an earlier snapshot, or 0."
            )
        self._check_retained(position)
        return position

    def _check_retained(self, position: int) -> None:
        horizon = self._journal.index.horizon
        if position < horizon:
            raise RetentionError(
                f"states before entry {horizon} are no longer retained, and {position} is one. "
                f"Fix: ask for {horizon} or later."
            )

    def snapshot(self) -> IndexState:
        """Write the index whole, so that opening is fast, and note it in the log."""

        def plan(draft: Draft) -> None:
            number = len(self._journal.index.snapshots) + 1
            end = self._journal.log.end
            draft.append(SnapshotAnchor(number, end.position, end.seal))
            if end.position:
                self._journal.save_table()

        return self._journal.commit(plan, alone=True)

    @property
    def hash(self) -> Hash:
        """How contents are named here."""
        return self._hash

    @property
    def history(self) -> bytes:
        """Which history it is; empty as long as nothing was put."""
        return self._journal.log.history

    @property
    def cuts(self) -> Sequence[Cut]:
        """What was cut off from the log since this store was opened, if anything."""
        return tuple(self._journal.cuts)

    # ------------------------------------------------------------ the log
    def log(self, after: int = 0) -> Iterator[Logged]:
        """Yield the entries after a position, in order, up to the current state."""
        self._journal.refresh()
        return self._journal.entries(after)

    def records(self, size: int) -> Iterator[tuple[int, list[bytes]]]:
        """Yield the first `size` entries as the log has them, with the time of each commit."""
        end = self._journal.refresh().position
        if size > end:
            raise FuturePositionError(
                f"the log has {end} entries, not {size} yet. Fix: ask for an earlier state."
            )
        return self._journal.records(size)

    def tombstone(self, cid: CID, reason: str) -> IndexState:
        """Hide content from now on; earlier states still show it. Twice is once."""
        self._check_known(cid)
        return self._journal.commit(lambda draft: draft.hide(cid, reason))

    def lift(self, cid: CID) -> IndexState:
        """Take a tombstone away. Twice is once."""
        self._check_known(cid)
        return self._journal.commit(lambda draft: draft.show(cid))

    def _check_known(self, cid: CID) -> None:
        self._journal.refresh()
        if self._find(cid) is None:
            raise UnknownContentError(
                f"{cid} was never put here, or its bytes are gone. Fix: check the CID."
            )

    # ------------------------------------------------------------ keeping
    def verify(self, progress: "Progress | None" = None) -> "Report":
        """Look at every byte up to the current state, and say what is damaged."""
        from perdure.artifacts.verify import verify  # noqa: PLC0415 - as before

        return verify(self.disk, self._journal.refresh().position, progress)

    def with_bytes_left(self, cids: Collection[CID], until: int) -> set[CID]:
        """Return the contents of which a byte is left where they were put, up to a position."""
        from perdure.artifacts.verify import with_bytes_left  # noqa: PLC0415 - as before

        self.current()
        return with_bytes_left(self._journal.log, cids, until)

    def gc(
        self, before: IndexState | int | None = None, pinned: Collection[CID] = ()
    ) -> "Collected":
        """Erase what was tombstoned at or before a state, and let go of all states before it.

        What a state from there on shows is kept where it is, and so is what is pinned. Without
        `before`, no further state is let go of.
        """
        horizon = before if isinstance(before, int) else before and before.position
        sweeper = self._sweeper()

        def plan(draft: Draft) -> None:
            least = self._journal.index.horizon
            sweeper.plan(draft, least if horizon is None else horizon, pinned)

        self._journal.commit(plan, alone=True, then=sweeper.erase)
        return sweeper.collected()

    def erase(self, cids: Collection[CID], reason: str) -> "Collected":
        """Hide these contents and erase their bytes; every state can still be asked for.

        None of them shows the contents any more. What was never put, or is gone, is passed over;
        so is what is put again meanwhile. The result names what was swept.
        After a power cut, do it again.
        """
        ours = [cid for cid in cids if self._is_ours(cid)]

        def hide(draft: Draft) -> None:
            for cid in sorted(ours):
                if self._journal.index.find(cid.digest) is not None:
                    draft.hide(cid, reason)

        self._journal.commit(hide, alone=True)
        sweeper = self._sweeper()
        self._journal.commit(
            lambda draft: sweeper.plan_only(draft, ours), alone=True, then=sweeper.erase
        )
        return sweeper.collected()

    def _sweeper(self) -> "Sweeper":
        from perdure.artifacts.sweep import Sweeper  # noqa: PLC0415 - as before

        return Sweeper(self.disk, self._journal, self._hash)

    # ------------------------------------------------------------ ending
    def close(self) -> None:
        """Let go of every file. Using the store afterwards is a `ClosedError`."""
        self._journal.close()
        if "catalogue" in self.__dict__:
            self.catalogue.close()


class Contents:
    """Reads what rows speak of. The checksum is always compared, the whole hash the first time."""

    def __init__(self, disk: Disk, journal: Journal, algorithm: Hash) -> None:
        self._disk = disk
        self._journal = journal
        self._hash = algorithm
        self._touched: set[int] = set()
        self.damaged: set[bytes] = set()
        """Of what the bytes were found to be wrong."""

    def read(self, digest: bytes, row: Row) -> bytes:
        """Return the bytes, or `_WRONG`."""
        data = self._bytes(row.segment, row.place, row.length)
        if crc32c(data) == row.crc and len(data) == row.length:
            touch = row.segment << 48 | row.place
            if touch in self._touched or self._is_right(digest, data, touch):
                return data
        self.damaged.add(digest)
        return _WRONG

    def mend(self, digest: bytes, data: bytes) -> None:
        """Write damaged bytes of content again. Only while the lock is held."""
        row = self._journal.index.find(digest)
        if row is not None and row.length == len(data) and self.read(digest, row) is _WRONG:
            file = self._journal.log.file(row.segment)
            file.write(row.place, [data])
            file.sync()
        self.damaged.discard(digest)

    def _bytes(self, segment: int, place: int, length: int) -> bytes:
        try:
            file = self._journal.log.file(segment)
            if length > _LARGE and place + length > file.size():
                return b""
            return file.read(place, length)
        except OSError as error:
            name = segment_name(segment)
            raise storage_read_error(error, self._disk.whereabouts, name) from error

    def _is_right(self, digest: bytes, data: bytes, touch: int) -> bool:
        if self._hash.digest(data) != digest:
            return False
        if len(self._touched) >= _MOST_TOUCHED:
            self._touched.clear()
        self._touched.add(touch)
        return True


def _check_artifact(artifact: object) -> None:
    if not isinstance(artifact, Literal | Derived):
        raise InvalidArtifactError(
            f"{type(artifact).__name__} can't be put. Fix: put a Literal of bytes, or a Derived."
        )
