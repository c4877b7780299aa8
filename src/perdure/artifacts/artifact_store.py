"""The artifact store: content by its CID, as of any log position."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from google_crc32c import value as crc32c

from perdure.artifacts.artifact import SID, Artifact, Derived, Literal
from perdure.artifacts.cid import CID, Codec, Hash
from perdure.artifacts.content_index import CommitDraft, Content, IndexRow
from perdure.artifacts.derivations import ActionCache, Derivation, Operations
from perdure.artifacts.disk import Disk, FolderDisk
from perdure.artifacts.entry import (
    ArtifactLocation,
    Bind,
    BlockSlice,
    IndexState,
    LogEntry,
    NewBinding,
    SnapshotAnchor,
)
from perdure.artifacts.log import SEGMENT_BYTES, Cut
from perdure.artifacts.recent_names import CATALOGUE
from perdure.artifacts.segment import segment_name
from perdure.artifacts.shared_log import ERASE_NOTE, SharedLog, milliseconds
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
    from perdure.artifacts.sweeper import Sweeper, SweepResult
    from perdure.artifacts.verification import Progress, Report

_DAMAGED = b"not what was put"
"""Returned for damaged bytes; compared by identity."""
_LARGE = 1 << 20
_MOST_VERIFIED = 1 << 17


class ArtifactStore(Closeable):
    """Content by its CID, visible as of a log position.

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
        self._shared_log = SharedLog(
            disk, hash, segment_bytes=segment_bytes, clock=clock, wait=wait
        )
        self._hash = self._shared_log.log.hash if self._shared_log.log.history else hash
        self._prefix = bytes(CID(bytes(32), self._hash, Codec.RAW))[:4]
        self._contents = ContentReader(disk, self._shared_log, self._hash)
        self.operations = Operations()
        """Register your own operations here."""
        if self._shared_log.has_file(ERASE_NOTE):
            with suppress(StorageError):  # not writable, or another process writes
                self._shared_log.commit(lambda _: self._sweeper().finish(), alone=True)

    @classmethod
    def open(cls, folder: Path | str, **options: object) -> "ArtifactStore":
        """Open the history in a folder; if there is none, the first put creates it."""
        return cls(FolderDisk(folder), **options)  # type: ignore[arg-type]

    @cached_property
    def catalogue(self) -> "Catalogue":
        """Names, structures and results; derived from the log."""
        from perdure.artifacts.catalogue import Catalogue  # noqa: PLC0415 - loads sqlite3

        return Catalogue(self, self.disk.path(CATALOGUE))

    @cached_property
    def _derivations(self) -> ActionCache:
        return ActionCache(self.catalogue, self.operations, self._hash, self.get, self._content)

    # ------------------------------------------------------------ putting
    def put(self, artifact: Artifact) -> tuple[CID, IndexState]:
        """Store an artifact; return the CID of its bytes, and a state that has it."""
        (cid,), state = self.put_many([artifact])
        return cid, state

    def put_many(self, artifacts: Iterable[Artifact]) -> tuple[list[CID], IndexState]:
        """Store them in one commit: all of them, or none."""
        puts = [self._prepare(artifact) for artifact in artifacts]

        def plan(draft: CommitDraft) -> None:
            for put in puts:
                if isinstance(put, Content):
                    draft.put(put)
                elif isinstance(put, Derivation):
                    put.plan(draft, self.catalogue, self._hash)

        state = self._shared_log.refresh()
        if self._contents.damaged:
            self._rewrite_damaged([put for put in puts if isinstance(put, Content)])
        if not all(isinstance(put, CID) or self._is_stored(put, state.position) for put in puts):
            state = self._shared_log.commit(plan)
            derived = [put for put in puts if isinstance(put, Derivation)]
            if derived:
                self.catalogue.follow()
            for derivation in derived:  # raises if its recorded result differs
                self._derivations.result_of(derivation.root)
        return [put if isinstance(put, CID) else CID(put.digest, self._hash) for put in puts], state

    def _prepare(self, artifact: object) -> Content | Derivation | CID:
        if isinstance(artifact, Literal):
            return self._content(artifact.data)
        if isinstance(artifact, Derived):
            return self._derivations.derive(artifact)
        raise InvalidArtifactError(
            f"{type(artifact).__name__} can't be put. Fix: put a Literal of bytes, or a Derived."
        )

    def _rewrite_damaged(self, contents: Sequence[Content]) -> None:
        """Write the contents again whose stored bytes were found damaged."""
        damaged = [each for each in contents if each.digest in self._contents.damaged]

        def plan(_: CommitDraft) -> None:
            for content in damaged:
                self._contents.rewrite(content.digest, content.data)

        if damaged:
            self._shared_log.commit(plan, alone=True)

    def _is_stored(self, put: Content | Derivation, position: int) -> bool:
        if isinstance(put, Derivation):
            return False
        row = self._find_digest(put.digest)
        return row is not None and self._shared_log.index.is_visible(put.digest, row, position)

    # ------------------------------------------------------------ results of derivations
    def record_results(self, results: Iterable[tuple[Derived, bytes]]) -> IndexState:
        """Record in one commit the results of derivations that the caller computed.

        The bytes of their literals are not stored: the structures name them.
        """
        recorded = [
            self._derivations.with_result(each, self._content(data)) for each, data in results
        ]

        def plan(draft: CommitDraft) -> None:
            for derivation in recorded:
                derivation.plan(draft, self.catalogue, self._hash)

        return self._shared_log.commit(plan)

    def results_of(self, sids: Sequence[SID]) -> list[bytes | None]:
        """Return the first result of each structure; None if it has none."""
        self._shared_log.refresh()
        self.catalogue.follow()
        first = self.catalogue.first_results(sids)
        cids = [first.get(sid) for sid in sids]
        data = iter(self.get_many([cid for cid in cids if cid is not None]))
        return [None if cid is None else next(data) for cid in cids]

    def record(self, changes: Sequence[NewBinding]) -> IndexState:
        """Store contents and bind names to them, in one commit."""
        contents = [
            None if change.content is None else self._content(change.content) for change in changes
        ]

        def plan(draft: CommitDraft) -> None:
            for content in contents:
                if content is not None:
                    draft.put(content)
            for change, content in zip(changes, contents, strict=True):
                cid = None if content is None else CID(content.digest, self._hash)
                draft.append(Bind(change.name, cid, change.circumstances))

        return self._shared_log.commit(plan)

    def _content(self, data: bytes) -> Content:
        hasher = sha256 if self._hash is Hash.SHA2_256 else self._hash.hasher
        return Content(self._prefix + hasher(data).digest(), crc32c(data), data)

    # ------------------------------------------------------------ getting
    def get(self, cid: CID, state: IndexState | None = None) -> bytes | None:
        """Return the bytes that the CID named in that state, or None if it named none.

        The bytes are verified: damaged ones raise `DamageError`. A state that is unknown or not
        retained raises `StateError`.
        """
        return self._get(cid, self._position(state))

    def _get(self, cid: CID, position: int) -> bytes | None:
        row = self._visible(cid, position)
        if row is None:
            return None
        data = self._contents.read(cid.digest, row)
        return data if data is not _DAMAGED else self._explain_damage(cid, row, position)

    def has(self, cid: CID, state: IndexState | None = None) -> bool:
        return self._visible(cid, self._position(state)) is not None

    def has_bytes(self, cid: CID) -> bool:
        """Whether the bytes are stored, hidden or not."""
        self._shared_log.refresh()
        return self._find(cid) is not None

    def get_many(self, cids: Sequence[CID], state: IndexState | None = None) -> list[bytes | None]:
        """Return the result of `get` for each, as of one state."""
        position = self._position(state)
        return [self._get(cid, position) for cid in cids]

    def has_many(self, cids: Sequence[CID], state: IndexState | None = None) -> list[bool]:
        """Return the result of `has` for each, as of one state."""
        position, index = self._position(state), self._shared_log.index
        try:
            found = [index.find(cid.digest) for cid in cids]
        except StaleIndexError:  # `_visible` rebuilds the index
            return [self._visible(cid, position) is not None for cid in cids]
        return [
            row is not None and self._is_ours(cid) and index.is_visible(cid.digest, row, position)
            for cid, row in zip(cids, found, strict=True)
        ]

    def locate(self, cid: CID, state: IndexState | None = None) -> ArtifactLocation | None:
        """Return where the bytes are in the log; None where `get` would return None."""
        row = self._visible(cid, self._position(state))
        return None if row is None else (BlockSlice(row.block, row.offset, row.length),)

    def _visible(self, cid: CID, position: int) -> IndexRow | None:
        row = self._find(cid)
        visible = row is not None and self._shared_log.index.is_visible(cid.digest, row, position)
        return row if visible else None

    def _is_ours(self, cid: CID) -> bool:
        return cid.hash is self._hash and cid.codec is Codec.RAW

    def _find(self, cid: CID) -> IndexRow | None:
        return self._find_digest(cid.digest) if self._is_ours(cid) else None

    def _find_digest(self, digest: bytes) -> IndexRow | None:
        try:
            return self._shared_log.index.find(digest)
        except StaleIndexError:  # the index is damaged: rebuild it from the log
            self._shared_log.rebuild()
            return self._shared_log.index.find(digest)

    def _explain_damage(self, cid: CID, row: IndexRow, position: int) -> bytes | None:
        self._shared_log.refresh()
        self._check_retained(position)
        if self._find(cid) is None:  # swept meanwhile
            return None
        raise DamageError(
            f"the bytes of {cid} in {segment_name(row.segment)} at byte {row.place} are not what "
            f"was put. Nothing else is affected. Fix: restore the file from a backup, or "
            "put the same content again."
        )

    def structure(self, sid: SID) -> bytes | None:
        """Return the structure that is registered as a SID, in canonical CBOR; None if none is."""
        self.catalogue.follow()
        return self.catalogue.structure(sid)

    # ------------------------------------------------------------ states
    def settle(self) -> IndexState:
        """Return the newest state, after what a writer that died left unfinished is settled."""
        return self._shared_log.settle()

    def current(self) -> IndexState:
        """Return the newest state; its position never decreases."""
        return self._shared_log.refresh()

    def last_commit(self, state: IndexState | None = None) -> IndexState:
        """Return the state after the last commit at or before a state; by default the newest."""
        position = self._position(state)
        current = self._shared_log.state
        if position == current.position:
            return current
        commit = self._shared_log.log.commit_before(position)
        taken = sum(at < commit for at in self._shared_log.index.snapshots)
        return IndexState(taken, commit)

    def _position(self, state: IndexState | None) -> int:
        current = self._shared_log.refresh()
        if state is None:
            return current.position
        snapshot, position = state
        if position > current.position or position < 0:
            raise FuturePositionError(
                f"the log ends with entry {current.position}, so there is no state at {position}. "
                "Fix: choose an earlier one."
            )
        snapshots = self._shared_log.index.snapshots
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
        horizon = self._shared_log.index.horizon
        if position < horizon:
            raise RetentionError(
                f"states before entry {horizon} are not retained any more, and {position} is one. "
                f"Fix: choose {horizon} or later."
            )

    def snapshot(self) -> IndexState:
        """Write the whole index, so that opening is fast, and record that in the log."""

        def plan(draft: CommitDraft) -> None:
            number = len(self._shared_log.index.snapshots) + 1
            end = self._shared_log.log.end
            draft.append(SnapshotAnchor(number, end.position, end.seal))
            if end.position:
                self._shared_log.save_table()

        return self._shared_log.commit(plan, alone=True)

    @property
    def hash(self) -> Hash:
        """The hash algorithm of this store's CIDs."""
        return self._hash

    @property
    def history(self) -> bytes:
        """The random id of the history; empty until something is put."""
        return self._shared_log.log.history

    @property
    def cuts(self) -> Sequence[Cut]:
        """The unfinished commits that were cut off the log since this store was opened."""
        return tuple(self._shared_log.cuts)

    # ------------------------------------------------------------ the log
    def log(self, after: int = 0) -> Iterator[LogEntry]:
        """Yield the entries after a position, in order, up to the current state."""
        self._shared_log.refresh()
        return self._shared_log.entries(after)

    def records(self, size: int) -> Iterator[tuple[int, list[bytes]]]:
        """Yield the time of each commit, and its encoded entries, for the first `size` entries."""
        end = self._shared_log.refresh().position
        if size > end:
            raise FuturePositionError(
                f"the log has {end} entries, fewer than {size}. Fix: choose an earlier state."
            )
        return self._shared_log.records(size)

    def tombstone(self, cid: CID, reason: str) -> IndexState:
        """Hide content from now on; earlier states still show it. Idempotent."""
        self._check_known(cid)
        return self._shared_log.commit(lambda draft: draft.hide(cid, reason))

    def lift(self, cid: CID) -> IndexState:
        """Remove a tombstone. Idempotent."""
        self._check_known(cid)
        return self._shared_log.commit(lambda draft: draft.show(cid))

    def _check_known(self, cid: CID) -> None:
        self._shared_log.refresh()
        if self._find(cid) is None:
            raise UnknownContentError(
                f"{cid} was never put here, or was erased. Fix: check the CID."
            )

    # ------------------------------------------------------------ maintenance
    def verify(self, progress: "Progress | None" = None) -> "Report":
        """Check every byte up to the current state, and report what is damaged."""
        from perdure.artifacts.verification import verify  # noqa: PLC0415 - as before

        return verify(self.disk, self._shared_log.refresh().position, progress)

    def find_unerased(self, cids: Collection[CID], until: int) -> set[CID]:
        """Return those of the contents of which bytes are left where they were put."""
        from perdure.artifacts.verification import find_unerased  # noqa: PLC0415 - as before

        self.current()
        return find_unerased(self._shared_log.log, cids, until)

    def gc(
        self, before: IndexState | int | None = None, pinned: Collection[CID] = ()
    ) -> "SweepResult":
        """Erase content that was tombstoned at or before a state, and drop all states before it.

        Content that a later state shows is retained, and so is pinned content. Without `before`,
        no state is dropped.
        """
        horizon = before if isinstance(before, int) else before and before.position
        sweeper = self._sweeper()

        def plan(draft: CommitDraft) -> None:
            least = self._shared_log.index.horizon
            sweeper.plan(draft, least if horizon is None else horizon, pinned)

        self._shared_log.commit(plan, alone=True, then=sweeper.erase)
        return sweeper.result()

    def erase(self, cids: Collection[CID], reason: str) -> "SweepResult":
        """Hide these contents and erase their bytes; all states are retained.

        No state shows the contents any more. Ignores contents that were never put or are erased,
        and those that are put again meanwhile. The result names what was swept. After a power cut,
        call it again.
        """
        ours = [cid for cid in cids if self._is_ours(cid)]

        def hide(draft: CommitDraft) -> None:
            for cid in sorted(ours):
                if self._shared_log.index.find(cid.digest) is not None:
                    draft.hide(cid, reason)

        self._shared_log.commit(hide, alone=True)
        sweeper = self._sweeper()
        self._shared_log.commit(
            lambda draft: sweeper.plan_only(draft, ours), alone=True, then=sweeper.erase
        )
        return sweeper.result()

    def _sweeper(self) -> "Sweeper":
        from perdure.artifacts.sweeper import Sweeper  # noqa: PLC0415 - as before

        return Sweeper(self.disk, self._shared_log, self._hash)

    # ------------------------------------------------------------ ending
    def close(self) -> None:
        """Close every file. Using the store afterwards raises `ClosedError`."""
        self._shared_log.close()
        if "catalogue" in self.__dict__:
            self.catalogue.close()


class ContentReader:
    """Reads contents by their rows; checks the checksum always, the hash the first time."""

    def __init__(self, disk: Disk, shared_log: SharedLog, algorithm: Hash) -> None:
        self._disk = disk
        self._shared_log = shared_log
        self._hash = algorithm
        self._verified: set[int] = set()
        self.damaged: set[bytes] = set()
        """The digests of contents whose bytes were found damaged."""

    def read(self, digest: bytes, row: IndexRow) -> bytes:
        """Return the bytes, or `_DAMAGED`."""
        data = self._bytes(row.segment, row.place, row.length)
        if crc32c(data) == row.crc and len(data) == row.length:
            place = row.segment << 48 | row.place
            if place in self._verified or self._is_right(digest, data, place):
                return data
        self.damaged.add(digest)
        return _DAMAGED

    def rewrite(self, digest: bytes, data: bytes) -> None:
        """Write damaged bytes of content again. Needs the lock."""
        row = self._shared_log.index.find(digest)
        if row is not None and row.length == len(data) and self.read(digest, row) is _DAMAGED:
            file = self._shared_log.log.file(row.segment)
            file.write(row.place, [data])
            file.sync()
        self.damaged.discard(digest)

    def _bytes(self, segment: int, place: int, length: int) -> bytes:
        try:
            file = self._shared_log.log.file(segment)
            if length > _LARGE and place + length > file.size():
                return b""
            return file.read(place, length)
        except OSError as error:
            name = segment_name(segment)
            raise storage_read_error(error, self._disk.whereabouts, name) from error

    def _is_right(self, digest: bytes, data: bytes, place: int) -> bool:
        if self._hash.digest(data) != digest:
            return False
        if len(self._verified) >= _MOST_VERIFIED:
            self._verified.clear()
        self._verified.add(place)
        return True
