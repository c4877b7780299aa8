"""Verification of every byte of a history.

It does not need a store that can be opened: it reads the segments directly, and continues after
damage.
"""

from collections.abc import Callable, Collection, Iterator

from perdure.artifacts.cid import CID, Hash
from perdure.artifacts.disk import Disk, File
from perdure.artifacts.entry import KINDS, Entry, Result, SnapshotAnchor, Sweep, decode
from perdure.artifacts.log import Log, MarkFile
from perdure.artifacts.segment import (
    ALIGNMENT,
    HEADER_BYTES,
    SEAL_BYTES,
    Frame,
    LogEnd,
    ReadWindow,
    SegmentHeader,
    SegmentReader,
    damaged_puts,
    decode_header,
    is_erased,
    segment_name,
    segment_number,
    split_records,
    stored_puts,
)
from perdure.dataclass import dataclass
from perdure.errors import DamageError, storage_read_error

_DECODED_KINDS = frozenset(KINDS[each] for each in (Result, SnapshotAnchor, Sweep))
Progress = Callable[[int, int], None]
"""Called with the number of bytes done, and the total."""


@dataclass(frozen=True, slots=True)
class HistoryFault:
    """Bytes that are not as they were written."""

    what: str
    where: str
    position: int
    """The entry, or the last one before the damage."""
    cid: CID | None = None
    """The content that is lost, if it is a single one."""


@dataclass(frozen=True, slots=True)
class Report:
    commits: int
    entries: int
    contents: int
    """How many contents are intact."""
    size: int
    position: int
    """The last position before the first fault."""
    faults: tuple[HistoryFault, ...]

    @property
    def ok(self) -> bool:
        return not self.faults


def verify(disk: Disk, until: int | None = None, progress: Progress | None = None) -> Report:
    """Read every segment and hash every content.

    `until` is the last position that was acknowledged; by default that of the mark, if it is
    readable. What follows is not checked, as another process may be writing it.
    """
    try:
        if until is None:
            until = _acknowledged(disk)
        return _Verification(disk, until, progress or (lambda _done, _all: None)).run()
    except OSError as error:
        raise storage_read_error(
            error, disk.whereabouts, str(error.filename or "a segment")
        ) from error


def _acknowledged(disk: Disk) -> int | None:
    file = MarkFile.open(disk)
    mark = file.read() if file else None
    return mark.position if mark and mark.position else None


class _Verification:
    def __init__(self, disk: Disk, until: int | None, progress: Progress) -> None:
        self._disk = disk
        self._until = until
        self._progress = progress
        self._size = 0
        self._commits = 0
        self._entries = 0
        self._contents = 0
        self._position = 0
        self._broken = False
        self._faults: list[HistoryFault] = []
        self._lost: dict[CID, list[HistoryFault]] = {}
        self._results: dict[CID, CID] = {}
        self._seals: dict[int, bytes] = {}

    def run(self) -> Report:
        numbers = sorted(n for n in map(segment_number, self._disk.names()) if n is not None)
        files = {number: self._disk.open(segment_name(number)) for number in numbers}
        total = sum(file.size() for file in files.values())
        end: LogEnd | None = None
        for number, file in files.items():
            end = self._segment(number, file, end)
            self._size += file.size()
            self._progress(self._size, total)
            if self._is_done(end):
                break
        if self._until is not None and self._position < self._until and not self._broken:
            self._fault(f"entry {self._until} was acknowledged, but the log ends before it", "log")
        faults = self._faults + [fault for lost in self._lost.values() for fault in lost]
        faults.sort(key=lambda fault: fault.position)
        counts = (self._commits, self._entries, self._contents)
        return Report(*counts, self._size, self._position, tuple(faults))

    def _is_done(self, end: LogEnd | None) -> bool:
        return self._until is not None and end is not None and end.position >= self._until

    def _segment(self, number: int, file: File, before: LogEnd | None) -> LogEnd | None:
        name = segment_name(number)
        try:
            header = decode_header(file.read(0, HEADER_BYTES))
        except DamageError as damage:
            if self._until is None and not self._commits and file.size() <= HEADER_BYTES:
                return before  # never used
            self._fault(f"{damage}; nothing in this segment can be read", f"{name} at byte 0")
            return before
        end = LogEnd.of(header)
        if (before is None and number != 1) or (before is not None and before[2:] != end[2:]):
            self._fault(f"it does not follow entry {self._position}", f"{name} at byte 0")
        window = ReadWindow(file)
        frame = None
        for frame in self._frames(file, header, end):
            self._frame(window, frame, header.hash)
            if self._until is not None and frame.head.last_position >= self._until:
                break
        return frame.end if frame else end

    def _frames(self, file: File, header: SegmentHeader, end: LogEnd) -> Iterator[Frame]:
        reader = SegmentReader(file, header.history)
        frame = None
        while True:
            try:
                for frame in reader.frames(end):
                    yield frame
            except DamageError as damage:
                end = frame.end if frame else end
                found = self._resume(reader, end, header.number, damage)
            else:
                return
            if found is None:
                return
            yield found
            end, frame = found.end, None

    def _resume(
        self, reader: SegmentReader, end: LogEnd, number: int, damage: DamageError
    ) -> Frame | None:
        """Record the damage after `end`, and return the next readable frame."""
        later = reader.search(end)
        # The bytes after the last frame may be a commit that never finished.
        if later is not None or (self._until is not None and end.position < self._until):
            self._fault(str(damage), f"{segment_name(number)} at byte {end.offset}")
        return None if later is None else reader.frame_at(number, later)

    def _frame(self, window: ReadWindow, frame: Frame, algorithm: Hash) -> None:
        head = frame.head
        last = head.last_position
        self._commits += 1
        self._entries += head.entries
        if not self._broken:
            self._position = last
        ending = frame.payload + head.payload_length + SEAL_BYTES
        if ending % ALIGNMENT and any(window.read(ending, -ending % ALIGNMENT)):
            where = f"{segment_name(frame.segment)} at byte {ending}"
            self._faults.append(
                HistoryFault("the padding of a commit is not empty", where, self._position)
            )
        puts, others = split_records(
            frame, _DECODED_KINDS
        )  # decoding all entries would take five times as long
        damaged = damaged_puts(window, frame, puts, algorithm)
        self._contents += len(puts) - len(damaged)
        for put in damaged:
            cid = CID.from_bytes(put.cid)
            place = f"{segment_name(frame.segment)} at byte {put.place}"
            fault = HistoryFault("the content is not what was put", place, put.position, cid)
            self._lost.setdefault(cid, []).append(fault)
        for position, kind, body in others:
            self._entry(position, decode(kind, body))
        self._seals = {last: frame.seal}

    def _entry(self, position: int, entry: Entry) -> None:
        match entry:
            case Sweep(_, cids):
                for cid in cids:
                    self._lost.pop(cid, None)
            case Result(sid, cid):
                first = self._results.setdefault(sid, cid)
                if first != cid:
                    what = f"{sid} has two results, {first} and {cid}"
                    self._faults.append(HistoryFault(what, f"entry {position}", position))
            case SnapshotAnchor(number, at, seal) if self._seals.get(at, seal) != seal:
                what = f"snapshot {number} was taken of another log"
                self._faults.append(HistoryFault(what, f"entry {position}", position))

    def _fault(self, what: str, where: str) -> None:
        self._broken = True
        self._faults.append(HistoryFault(what, where, self._position))


def find_unerased(log: Log, cids: Collection[CID], until: int) -> set[CID]:
    """Return those contents of which bytes are left where they were put, up to a position."""
    wanted = {bytes(cid): cid for cid in cids}
    left = set()
    for frame in log.frames(log.start_of(0)) if wanted else ():
        if frame.head.first_position > until:
            break
        for put in stored_puts(frame):
            cid = wanted.get(put.cid)
            if cid is not None and put.position <= until:
                window = ReadWindow(log.file(frame.segment))
                if put.length and not is_erased(window, put):
                    left.add(cid)
    return left
