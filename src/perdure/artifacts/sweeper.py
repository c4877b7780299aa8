"""Sweeps: erasing the bytes of content that no retained state shows, or that must be erased.

The log records a sweep before the bytes are erased. A process that puts the same content does so
either before the sweep, which then spares it, or after it, and then writes the bytes again. A note
beside the log lists what is to be erased until that is done, so that a power cut only delays it.
"""

import struct
from collections.abc import Collection, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple

from google_crc32c import value as crc32c

from perdure.artifacts.cid import CID, Hash
from perdure.artifacts.content_index import CommitDraft
from perdure.artifacts.disk import Disk
from perdure.artifacts.entry import Sweep, encode
from perdure.artifacts.shared_log import ERASE_NOTE, SharedLog
from perdure.dataclass import dataclass
from perdure.errors import FuturePositionError, RetentionError

_NOTE = struct.Struct("<Q32s")
_EXTENT = struct.Struct("<QIQ")


@dataclass(frozen=True, slots=True)
class SweepResult:
    horizon: int
    """The first position that is retained."""
    cids: tuple[CID, ...]
    size: int


class _Extent(NamedTuple):
    """Where the bytes of a content are."""

    place: int
    segment: int
    length: int


class Sweeper:
    """One sweep: drafted under the lock, then erased once it is in the log."""

    def __init__(self, disk: Disk, shared_log: SharedLog, algorithm: Hash) -> None:
        self._disk = disk
        self._shared_log = shared_log
        self._hash = algorithm
        self._cids: tuple[CID, ...] = ()
        self._extents: list[_Extent] = []

    def plan(self, draft: CommitDraft, horizon: int, pinned: Collection[CID]) -> None:
        """Draft a sweep of what was hidden at or before `horizon`, and write the note."""
        self.finish()
        self._check(horizon)
        index, spared = self._shared_log.index, _digests(pinned)
        dead = {
            digest: _Extent(row.place, row.segment, row.length)
            for digest, row in index.rows()
            if 0 < index.last_hidden(digest, row) <= horizon and digest not in spared
        }
        self._draft(draft, horizon, dead)

    def plan_only(self, draft: CommitDraft, cids: Collection[CID]) -> None:
        """Draft a sweep of those of these contents that are hidden; no state is dropped."""
        self.plan_as(draft, Sweep(self._shared_log.index.horizon, tuple(cids)))

    def plan_as(self, draft: CommitDraft, sweep: Sweep) -> None:
        """Draft a sweep that another copy recorded, of those of its contents that are hidden."""
        self.finish()
        self._check(sweep.horizon)
        index, named = self._shared_log.index, _digests(sweep.cids)
        rows = {digest: row for digest in named if (row := index.find(digest)) is not None}
        hidden = {
            digest: _Extent(row.place, row.segment, row.length)
            for digest, row in rows.items()
            if index.last_hidden(digest, row)
        }
        self._draft(draft, sweep.horizon, hidden)

    def _check(self, horizon: int) -> None:
        now = self._shared_log.index.horizon
        if horizon > self._shared_log.log.end.position:
            raise FuturePositionError(
                f"the log ends with entry {self._shared_log.log.end.position}, so states "
                f"from entry {horizon} on can't be retained. Fix: choose a position in the log."
            )
        if horizon < now:
            raise RetentionError(
                f"states before entry {now} were dropped already. Fix: choose {now} or later."
            )

    def _draft(self, draft: CommitDraft, horizon: int, rows: Mapping[bytes, _Extent]) -> None:
        if not rows and horizon == self._shared_log.index.horizon:
            return
        self._cids = tuple(CID(digest, self._hash) for digest in sorted(rows))
        self._extents = [rows[cid.digest] for cid in self._cids]
        sweep = Sweep(horizon, self._cids)
        self._write_note(draft.position, sweep)
        draft.append(sweep)

    def erase(self) -> None:
        """Erase what was drafted. The sweep must be in the log."""
        if self._cids or self._extents:
            self._erase(self._extents)

    def result(self) -> SweepResult:
        size = sum(each.length for each in self._extents)
        return SweepResult(self._shared_log.index.horizon, self._cids, size)

    # ------------------------------------------------------------ the note
    def _write_note(self, position: int, sweep: Sweep) -> None:
        body = _NOTE.pack(position, self._mark_of(sweep))
        body += b"".join(_EXTENT.pack(*each) for each in self._extents)
        file = self._disk.open(ERASE_NOTE, create=True)
        file.truncate(0)
        file.write(0, [body + crc32c(body).to_bytes(4, "little")])
        file.sync()
        self._disk.sync()

    def _mark_of(self, sweep: Sweep) -> bytes:
        """Return a hash that ties a note to one sweep of one history."""
        return sha256(self._shared_log.log.history + encode(sweep)).digest()

    def finish(self) -> None:
        """Erase what an interrupted sweep has left."""
        try:
            file = self._disk.open(ERASE_NOTE)
        except FileNotFoundError:
            return
        self._erase(self._noted(file.read(0, file.size())))

    def _noted(self, note: bytes) -> list[_Extent]:
        """Return the extents in a note, if its sweep is in the log."""
        body, crc = note[:-4], note[-4:]
        if len(body) < _NOTE.size or crc32c(body) != int.from_bytes(crc, "little"):
            return []  # incomplete, so its sweep was never logged
        position, mark = _NOTE.unpack_from(body)
        swept = self._swept_at(position)
        if swept is None or self._mark_of(swept) != mark:
            return []
        extents = body[_NOTE.size :]
        if len(extents) != len(swept.cids) * _EXTENT.size:
            return []
        return [_Extent._make(fields) for fields in _EXTENT.iter_unpack(extents)]

    def _swept_at(self, position: int) -> Sweep | None:
        for logged in self._shared_log.entries(after=position - 1):
            return logged.entry if isinstance(logged.entry, Sweep) else None
        return None

    def _erase(self, extents: list[_Extent]) -> None:
        for segment in sorted({extent.segment for extent in extents}):
            file = self._shared_log.log.file(segment)
            for extent in extents:
                if extent.segment == segment:
                    file.erase(extent.place, extent.length)
            file.sync()
        with suppress(FileNotFoundError):
            self._disk.remove(ERASE_NOTE)


def _digests(cids: Collection[CID]) -> frozenset[bytes]:
    return frozenset(cid.digest for cid in cids)
