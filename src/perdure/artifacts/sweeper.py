"""Give the space back of content that no state that can be asked for shows, or that must go.

The log first records what goes; only then is it erased. So a process that puts the same content is
either before the sweep, so that it is not swept, or after it, so that its bytes are written again.
What was to be erased is noted beside the log until it is, so that a power cut delays it only.
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
_PLACE = struct.Struct("<QIQ")


@dataclass(frozen=True, slots=True)
class SweepResult:
    horizon: int
    """The first position that can still be asked for."""
    cids: tuple[CID, ...]
    size: int


class _Place(NamedTuple):
    place: int
    segment: int
    length: int


class Sweeper:
    def __init__(self, disk: Disk, journal: SharedLog, algorithm: Hash) -> None:
        self._disk = disk
        self._journal = journal
        self._hash = algorithm
        self._cids: tuple[CID, ...] = ()
        self._places: list[_Place] = []

    def plan(self, draft: CommitDraft, horizon: int, pinned: Collection[CID]) -> None:
        """Draft the sweep, and note what it will erase."""
        self.finish()
        self._check(horizon)
        index, kept = self._journal.index, _digests(pinned)
        dead = {
            digest: _Place(row.place, row.segment, row.length)
            for digest, row in index.rows()
            if 0 < index.last_hidden(digest, row) <= horizon and digest not in kept
        }
        self._draft(draft, horizon, dead)

    def plan_only(self, draft: CommitDraft, cids: Collection[CID]) -> None:
        """Draft a sweep of these, as far as they are hidden; no state is let go of for it."""
        self.plan_as(draft, Sweep(self._journal.index.horizon, tuple(cids)))

    def plan_as(self, draft: CommitDraft, sweep: Sweep) -> None:
        """Draft a sweep that another copy recorded, as far as what it names is hidden."""
        self.finish()
        self._check(sweep.horizon)
        index, named = self._journal.index, _digests(sweep.cids)
        rows = {digest: row for digest in named if (row := index.find(digest)) is not None}
        hidden = {
            digest: _Place(row.place, row.segment, row.length)
            for digest, row in rows.items()
            if index.last_hidden(digest, row)
        }
        self._draft(draft, sweep.horizon, hidden)

    def _check(self, horizon: int) -> None:
        now = self._journal.index.horizon
        if horizon > self._journal.log.end.position:
            raise FuturePositionError(
                f"the log ends with entry {self._journal.log.end.position}, so nothing can be kept "
                f"from entry {horizon} on. Fix: name a position that is in the log."
            )
        if horizon < now:
            raise RetentionError(
                f"states before entry {now} are gone already. Fix: name {now} or a later entry."
            )

    def _draft(self, draft: CommitDraft, horizon: int, rows: Mapping[bytes, _Place]) -> None:
        if not rows and horizon == self._journal.index.horizon:
            return
        self._cids = tuple(CID(digest, self._hash) for digest in sorted(rows))
        self._places = [rows[cid.digest] for cid in self._cids]
        sweep = Sweep(horizon, self._cids)
        self._write_note(draft.position, sweep)
        draft.append(sweep)

    def erase(self) -> None:
        """Erase what was drafted; the sweep is in the log now."""
        if self._cids or self._places:
            self._erase(self._places)

    def result(self) -> SweepResult:
        size = sum(place.length for place in self._places)
        return SweepResult(self._journal.index.horizon, self._cids, size)

    # ------------------------------------------------------------ the note
    def _write_note(self, position: int, sweep: Sweep) -> None:
        body = _NOTE.pack(position, self._mark_of(sweep))
        body += b"".join(_PLACE.pack(*place) for place in self._places)
        file = self._disk.open(ERASE_NOTE, create=True)
        file.truncate(0)
        file.write(0, [body + crc32c(body).to_bytes(4, "little")])
        file.sync()
        self._disk.sync()

    def _mark_of(self, sweep: Sweep) -> bytes:
        """Return what ties a note to one sweep of one history, and to no other."""
        return sha256(self._journal.log.history + encode(sweep)).digest()

    def finish(self) -> None:
        """Erase what an earlier sweep that was cut short had left."""
        try:
            file = self._disk.open(ERASE_NOTE)
        except FileNotFoundError:
            return
        self._erase(self._noted(file.read(0, file.size())))

    def _noted(self, note: bytes) -> list[_Place]:
        """Return the places that a note tells of, if its sweep is in the log."""
        body, crc = note[:-4], note[-4:]
        if len(body) < _NOTE.size or crc32c(body) != int.from_bytes(crc, "little"):
            return []  # it was not whole, so its sweep was never logged
        position, mark = _NOTE.unpack_from(body)
        swept = self._swept_at(position)
        if swept is None or self._mark_of(swept) != mark:
            return []
        places = body[_NOTE.size :]
        if len(places) != len(swept.cids) * _PLACE.size:
            return []
        return [_Place._make(fields) for fields in _PLACE.iter_unpack(places)]

    def _swept_at(self, position: int) -> Sweep | None:
        for logged in self._journal.entries(after=position - 1):
            return logged.entry if isinstance(logged.entry, Sweep) else None
        return None

    def _erase(self, places: list[_Place]) -> None:
        for segment in sorted({place.segment for place in places}):
            file = self._journal.log.file(segment)
            for place in places:
                if place.segment == segment:
                    file.erase(place.place, place.length)
            file.sync()
        with suppress(FileNotFoundError):
            self._disk.remove(ERASE_NOTE)


def _digests(cids: Collection[CID]) -> frozenset[bytes]:
    return frozenset(cid.digest for cid in cids)
