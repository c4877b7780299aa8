"""The log: frames in segments, each made durable by one sync; and its mark.

Only a process that holds the lock changes it. The next writer settles what a writer that died left:
a complete frame is made durable and retained, an incomplete one is cut off. A frame that was
acknowledged is never cut off.

The mark is how far the log was acknowledged. It is written after each sync, and never synced
itself: after a power cut it can be behind, but never ahead. Readers in other processes follow it; a
frame beyond it is not acknowledged yet.

The restore of a whole history into an empty folder is atomic by these files:

    arriving-00000002   a segment that is being written; no other process reads it
    arriving-mark       what the mark will be
    arrived             the first segment; if it exists, all others are complete and durable

Segments are renamed to their final names only when all are complete, the first one last: without it
there is no history. The next process that finds `arrived` finishes the renames.
"""

import struct
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple

from google_crc32c import value as crc32c

from perdure.artifacts.cid import Hash
from perdure.artifacts.disk import Buffer, Disk, File
from perdure.artifacts.recent_names import MARK
from perdure.artifacts.segment import (
    FIRST_SEAL,
    HEAD_BYTES,
    HEADER_BYTES,
    MAGIC,
    SEAL_BYTES,
    Frame,
    FrameHead,
    LogEnd,
    ReadWindow,
    SegmentHeader,
    SegmentReader,
    damaged_puts,
    decode_header,
    encode_head,
    records_checksum,
    salt_of,
    seal,
    segment_name,
    segment_number,
    stored_puts,
)
from perdure.errors import DamageError

# ---------------------------------------------------------------- the mark
_ARRIVED = "arrived"
_ARRIVING = "arriving-"
_ARRIVING_MARK = "arriving-mark"

_MARK_MAGIC = b"PDmk"
_MARK = struct.Struct("<4sIQ16s16s")
_CRC = struct.Struct("<I")
_MARK_BYTES = _MARK.size + _CRC.size


class Mark(NamedTuple):
    history: bytes
    position: int
    segment: int
    boot: bytes = b""
    """Identifies the boot of the machine at which it was written."""


class MarkFile:
    def __init__(self, file: File) -> None:
        self._file = file

    @classmethod
    def open(cls, disk: Disk) -> "MarkFile | None":
        try:
            return cls(disk.open(MARK))
        except FileNotFoundError:
            return None

    @classmethod
    def create(cls, disk: Disk) -> "MarkFile":
        return cls(disk.open(MARK, create=True))

    def raw(self) -> bytes:
        """Return its bytes, to see whether it changed."""
        return self._file.read(0, _MARK_BYTES)

    def read(self) -> Mark | None:
        """Return the mark; None if it is empty or damaged."""
        return decode_mark(self.raw())

    def write(self, mark: Mark) -> bytes:
        """Write the mark and return its bytes."""
        packed = _MARK.pack(_MARK_MAGIC, mark.segment, mark.position, mark.history, mark.boot)
        data = packed + _CRC.pack(crc32c(packed))
        self._file.write(0, [data])
        return data


def decode_mark(data: bytes) -> Mark | None:
    packed, crc = data[: _MARK.size], data[_MARK.size :]
    if len(crc) != _CRC.size or _CRC.unpack(crc)[0] != crc32c(packed):
        return None
    magic, segment, position, history, boot = _MARK.unpack(packed)
    return Mark(history, position, segment, boot) if magic == _MARK_MAGIC else None


def boot_of(disk: Disk) -> bytes:
    """Return the id of this boot of the machine as a mark has it."""
    return sha256(disk.boot.encode()).digest()[:16] if disk.boot else b""


# ---------------------------------------------------------------- a history that arrives
def open_arriving(disk: Disk, number: int) -> File:
    """Return a file for a segment; no process reads it before `complete_arrival`."""
    return disk.open(f"{_ARRIVING}{number:08d}", create=True)


def clear_arriving(disk: Disk) -> None:
    """Remove an incomplete restore. Needs the lock."""
    left = [name for name in disk.names() if name.startswith(_ARRIVING)]
    for name in left:
        disk.remove(name)
    if left:
        disk.sync()


def complete_arrival(disk: Disk, mark: Mark) -> None:
    """Make a history of the segments, all of which are synced. Needs the lock."""
    file = disk.open(_ARRIVING_MARK, create=True)
    MarkFile(file).write(mark)
    file.sync()
    disk.sync()
    disk.rename(f"{_ARRIVING}{1:08d}", _ARRIVED)
    disk.sync()
    finish_arrival(disk)


def has_arrived(disk: Disk) -> bool:
    return _ARRIVED in disk.names()


def finish_arrival(disk: Disk) -> None:
    """Rename the segments of a history that has arrived, if there is one.

    Needs the lock. If it is interrupted, call it again.
    """
    names = disk.names()
    if _ARRIVED not in names:
        return
    for name in names:
        if name.startswith(_ARRIVING) and name != _ARRIVING_MARK:
            disk.rename(name, segment_name(int(name.removeprefix(_ARRIVING))))
    _acknowledge(disk)
    disk.sync()
    disk.rename(_ARRIVED, segment_name(1))
    disk.sync()
    disk.remove(_ARRIVING_MARK)


def _acknowledge(disk: Disk) -> None:
    """Write a mark that says that all of it is durable, so that no process writes it again.

    Into the existing file, which other processes have open; synced this once.
    """
    source = disk.open(_ARRIVING_MARK)
    file = disk.open(MARK, create=True)
    file.write(0, [source.read(0, source.size())])
    file.sync()


# ---------------------------------------------------------------- the log
SEGMENT_BYTES = 64 << 20

_SMALLEST_RESERVE = 1 << 18
_LARGEST_RESERVE = 1 << 22
_LARGE = 1 << 17
"""For a frame of this size or more, no space is reserved: writing it extends the file."""
_MOST_OPEN_FILES = 64
_SLICE = 1 << 20
_PADDING = bytes(8)
_BLANK = bytes(HEAD_BYTES)
_MOST_ENDS = 256
_SECTOR = 512
"""Disks write a sector as a whole, so a torn header affects at most these bytes."""

Apply = Callable[[Frame], None]
"""Called with each new frame, in order."""


class Cut(NamedTuple):
    """A commit that was cut off: it never finished and was never acknowledged."""

    after: int
    """The last position that is retained."""
    segment: str
    offset: int
    length: int
    reason: str


class Log:
    def __init__(self, disk: Disk, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._disk = disk
        self._segment_bytes = segment_bytes
        self._files: dict[int, File] = {}
        self._reserved = 0
        self._begun = 0
        self._salt = 0
        self.history = b""
        """Empty until the first segment exists."""
        self.hash = Hash.SHA2_256
        self.end = LogEnd(0, 0, 0, 0, 0, FIRST_SEAL)
        self.ends: deque[LogEnd] = deque(maxlen=_MOST_ENDS)
        """The ends of the last commits, which can be found without reading their segment."""
        self.cuts: list[Cut] = []

    # ------------------------------------------------------------ opening
    def segments(self) -> list[int]:
        numbers = (segment_number(name) for name in self._disk.names())
        return sorted(number for number in numbers if number is not None)

    def begin(self) -> bool:
        """Read the first segment's header; return whether there is a valid one."""
        if self.history:
            return True
        try:
            header = self._header(1)
        except (FileNotFoundError, DamageError):
            return False
        self.history, self.hash = header.history, header.hash
        self._salt = salt_of(header.history)
        self.end = LogEnd.of(header)
        return True

    def _header(self, number: int) -> SegmentHeader:
        header = decode_header(self.file(number).read(0, HEADER_BYTES))
        if header.number != number or (self.history and header.history != self.history):
            raise DamageError(f"{segment_name(number)} is a segment of another history")
        return header

    def file(self, number: int) -> File:
        found = self._files.get(number)
        if found is None:
            if len(self._files) >= _MOST_OPEN_FILES:
                self._files.pop(next(iter(self._files)))
            found = self._files[number] = self._disk.open(segment_name(number))
        return found

    def forget_files(self) -> None:
        """Drop the open files, so that each is opened again when it is used."""
        self._files = {}
        self._reserved = 0

    # ------------------------------------------------------------ reading
    def frames(self, end: LogEnd) -> Iterator[Frame]:
        while True:
            reader = SegmentReader(self.file(end.segment), self.history)
            for frame in reader.frames(end):
                yield frame
                end = frame.end
            following = self._following(end)
            if following is None:
                return
            end = following

    def _following(self, end: LogEnd) -> LogEnd | None:
        """Return the start of the segment after `end`; None if there is none."""
        try:
            header = self._header(end.segment + 1)
        except FileNotFoundError:
            return None
        begin = LogEnd.of(header)
        if begin[2:] != end[2:]:
            raise DamageError(
                f"{segment_name(header.number)} follows on entry {header.position}, but the log "
                f"before it ends with entry {end.position}"
            )
        return begin

    def follow(self, position: int, apply: Apply) -> None:
        """Apply the frames up to a position that was acknowledged."""
        if self.end.position >= position or not self.begin():
            return
        for frame in self.frames(self.end):
            apply(frame)
            self.end = frame.end
            if frame.head.last_position >= position:
                return
        raise self.missing(position)

    def reaches(self, end: LogEnd, last: int) -> bool:
        """Whether the log reaches `end`, and its last frame there is the one at `last`."""
        try:
            if last == 0:
                return LogEnd.of(self._header(end.segment)) == end
            return SegmentReader(self.file(end.segment), self.history).ends_at(last, end)
        except (FileNotFoundError, DamageError):
            return False

    def last_before(self, end: LogEnd, last: int) -> Frame | None:
        """Return the frame at `last`, if it seems to be the last before `end`."""
        if last == 0:
            return None
        frame = SegmentReader(self.file(end.segment), self.history).frame_at(end.segment, last)
        return frame if frame is not None and frame.end == end else None

    def is_at_end(self) -> bool:
        """Whether nothing follows the end, judged by the next bytes on disk.

        A writer cuts off the reserved space before it begins another segment, so there is no other
        one while this has space left.
        """
        end = self.end
        return bool(self.history) and self.file(end.segment).read(end.offset, HEAD_BYTES) == _BLANK

    def start_of(self, after: int) -> LogEnd:
        """Return the start of the segment that has the entry after a position."""
        # Another process may be creating the next one.
        numbers = [number for number in self.segments() if number <= self.end.segment]
        low, high = 0, len(numbers) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._header(numbers[middle]).position <= after:
                low = middle
            else:
                high = middle - 1
        return LogEnd.of(self._header(numbers[low]))

    def end_before(self, position: int) -> LogEnd:
        """Return the nearest known end of a commit at or before a position."""
        for end in reversed(tuple(self.ends)):
            if end.position <= position:
                return end
        return self.start_of(position)

    def commit_before(self, position: int) -> int:
        """Return the last position of the last commit at or before a position."""
        if position <= 0:
            return 0
        end = self.end_before(position)
        if end.position < position:
            for frame in self.frames(end):
                if frame.head.last_position > position:
                    break
                end = frame.end
        return end.position

    # ------------------------------------------------------------ settling
    def settle(self, mark: Mark | None, apply: Apply, *, thorough: bool) -> None:
        """Apply every complete frame, and leave the log ready to be appended to.

        Needs the lock. `thorough` also checks the bytes after the last frame.
        """
        if not self.begin() and not self._settle_first(mark):
            return
        ours = mark if mark and mark.history == self.history else None
        acknowledged = ours.position if ours else 0
        # Bytes written since the machine started may be readable but not durable.
        boot = boot_of(self._disk)
        is_doubtful = ours is not None and (not boot or ours.boot == boot)
        last, damage = self._apply_new(apply)
        try:
            if last is not None:
                self._advance(last.segment)
                if last.head.last_position > acknowledged:
                    self._make_durable(last, is_doubtful=is_doubtful)
                apply(last)
                self.end = last.end
            self._advance()
            if thorough:
                self._sync_segment(is_doubtful=is_doubtful)
            if thorough and damage is None:
                self._check_end()
        except DamageError as error:
            damage = error
        if damage is not None:
            self._cut(damage, acknowledged)
        if self.end.position < acknowledged:
            raise self.missing(acknowledged)

    def _apply_new(self, apply: Apply) -> tuple[Frame | None, DamageError | None]:
        """Apply all new frames but the last; return that one, and the damage after it.

        A frame that another one follows was durable before that was begun; the last one may not be.
        """
        last: Frame | None = None
        try:
            for frame in self.frames(self.end):
                if last is not None:
                    apply(last)
                    self.end = last.end
                last = frame
        except DamageError as damage:
            return last, damage
        return last, None

    def _sync_segment(self, *, is_doubtful: bool) -> None:
        """Make a segment durable, as it must be before its first frame is written."""
        if self.end.offset == HEADER_BYTES and is_doubtful:
            file = self.file(self.end.segment)
            file.write(0, [file.read(0, HEADER_BYTES)])
            file.sync()
        self._disk.sync()

    def _check_end(self) -> None:
        """Raise `DamageError` if anything follows the end."""
        if self.segments()[-1] > self.end.segment:
            raise DamageError(f"{segment_name(self.end.segment + 1)} is missing")
        if not self._reader().is_blank(self.end.offset):
            raise DamageError("bytes that are not a frame follow the last one")

    def _advance(self, last: int | None = None) -> None:
        """Advance to the last segment that was begun, even if it has no frame; or to `last`."""
        with suppress(DamageError):  # never begun; `_cut` removes it
            while self.end.segment != last and (following := self._following(self.end)):
                self.end = following

    def _make_durable(self, frame: Frame, *, is_doubtful: bool) -> None:
        """Check a frame that may not have been acknowledged, and write it again if in doubt."""
        file = self.file(frame.segment)
        stop = frame.offset + frame.head.length
        ending = frame.offset + frame.head.seal_offset + SEAL_BYTES
        window = ReadWindow(file, ending - SEAL_BYTES)
        padding = file.read(ending, stop - ending)
        if any(padding) or damaged_puts(window, frame, stored_puts(frame), self.hash):
            raise DamageError("the payload of the last frame is incomplete")
        if not is_doubtful:  # it was read from the disk itself; writing it again is only a risk
            return
        # Written again, because after a failed sync a second one would write nothing.
        for at in range(frame.offset, stop, _SLICE):
            file.write(at, [file.read(at, min(_SLICE, stop - at))])
        file.sync()

    def _cut(self, damage: DamageError, acknowledged: int) -> None:
        """Cut off the bytes after the end, if they can only be a commit that never finished."""
        end = self.end
        later = self._reader().search(end) is not None
        following = [number for number in self.segments() if number > end.segment]
        if following and not later and acknowledged <= end.position:
            later = not self._remove_unused(following)
        if later or acknowledged > end.position:
            raise self._refusal(damage, later=later)
        file = self.file(end.segment)
        length = file.size() - end.offset
        file.truncate(end.offset)
        file.sync()
        self._reserved = 0
        name = segment_name(end.segment)
        if length > 0:
            self.cuts.append(Cut(end.position, name, end.offset, length, str(damage)))

    def _remove_unused(self, numbers: Sequence[int]) -> bool:
        """Remove these segments if none of them has a frame; return whether that was done."""
        before = self.end._replace(offset=0, position=self.end.position - 1)
        if any(
            SegmentReader(self.file(n), self.history).search(before) is not None for n in numbers
        ):
            return False
        for number in reversed(numbers):
            name = segment_name(number)
            length = self.file(number).size()
            self._files.pop(number).close()
            self._disk.remove(name)
            self._disk.sync()
            self.cuts.append(Cut(self.end.position, name, 0, length, "it was never used"))
        return True

    def _settle_first(self, mark: Mark | None) -> bool:
        """Remove a first segment that was never begun; return whether there is another one."""
        numbers = self.segments()
        if not numbers:
            if mark and mark.position:
                raise self.missing(mark.position)
            return False
        was_used = bool(mark and mark.position) or numbers != [1]
        if was_used or self._was_begun(self.file(1)):
            raise DamageError(
                f"{segment_name(1)} in {self._disk.whereabouts!a} is missing or its header is "
                "damaged, so nothing after it can be trusted. Fix: restore the file from a backup."
            )
        self._files.pop(1).close()
        self._disk.remove(segment_name(1))
        self._disk.sync()
        return False

    def _was_begun(self, file: File) -> bool:
        """Whether a segment with an unreadable header has a frame or other bytes after it."""
        first = file.read(HEADER_BYTES, len(MAGIC))
        return first == MAGIC or not SegmentReader(file, b"").is_blank(_SECTOR)

    def _reader(self) -> SegmentReader:
        return SegmentReader(self.file(self.end.segment), self.history)

    def _refusal(self, damage: DamageError, *, later: bool) -> DamageError:
        end = self.end
        more = " Commits after it are readable." if later else ""
        return DamageError(
            f"{segment_name(end.segment)} in {self._disk.whereabouts!a} is damaged at byte "
            f"{end.offset}, after entry {end.position}: {damage}. All before it is intact.{more} "
            "Fix: restore the file from a backup, or run `perdure history verify` to see what can "
            "be saved."
        )

    def missing(self, position: int) -> DamageError:
        return DamageError(
            f"the log in {self._disk.whereabouts!a} ends with entry {self.end.position}, but entry "
            f"{position} was acknowledged. Fix: restore the newest segment from a backup; or, to "
            "continue without the missing entries, remove the file 'mark'."
        )

    # ------------------------------------------------------------ writing
    def append(
        self, time: int, epoch: int, entries: int, records: bytes, payload: Sequence[Buffer]
    ) -> Frame:
        """Write a frame and return when it is durable. Needs the lock."""
        end = self.end
        lengths = len(records), sum(map(len, payload))
        head = FrameHead(
            end.position + 1, time, epoch, entries, *lengths, records_checksum(records)
        )
        if end.offset + head.length > self._reserved:
            end = self._make_room(head.length)
        return self._write(end, head, records, payload)

    def append_as(self, frame: Frame, payload: Sequence[Buffer]) -> Frame:
        """Write a frame with the head, and in the segment, that another copy of the log has."""
        end = self.end
        if frame.segment > end.segment:
            self.file(end.segment).truncate(end.offset)
            end = self._begin_segment(end)
        return self._write(end, frame.head, frame.records, payload)

    def _write(
        self, end: LogEnd, head: FrameHead, records: bytes, payload: Sequence[Buffer]
    ) -> Frame:
        segment, offset, position, _, _, before = end
        packed = encode_head(head, self._salt)
        sealed = seal(before, packed, records)
        seal_offset, length = head.seal_offset, head.length
        ending = sealed + _PADDING[: length - seal_offset - SEAL_BYTES]
        file = self.file(segment)
        frame = Frame(segment, offset, head, records, sealed)
        if offset == HEADER_BYTES:  # its creator may have died before syncing it
            self._sync_segment(is_doubtful=segment != self._begun)
        file.write(end.offset, [packed, records, *payload, ending])
        file.sync()
        position += head.entries
        self.end = LogEnd(segment, offset + length, position, head.time, head.epoch, sealed)
        return frame

    def _make_room(self, length: int) -> LogEnd:
        end = self.end
        if end.offset + length > self._segment_bytes and end.offset > HEADER_BYTES:
            self.file(end.segment).truncate(end.offset)
            end = self._begin_segment(end)
        if end.offset + length > self._reserved and length < _LARGE:
            step = min(max(end.offset // 4, _SMALLEST_RESERVE), _LARGEST_RESERVE)
            needed = end.offset + length
            self._reserved = max(needed, min(needed + step, self._segment_bytes))
            self.file(end.segment).reserve(self._reserved)
        return end

    def _begin_segment(self, end: LogEnd) -> LogEnd:
        number = end.segment + 1
        header = SegmentHeader(
            self.history, self.hash, number, end.position, end.time, end.epoch, end.seal
        )
        file = self._disk.open(segment_name(number), create=True)
        file.write(0, [header.encode()])
        file.sync()
        self._files[number] = file
        self._begun = number
        self._reserved = 0
        self.end = LogEnd.of(header)
        return self.end

    def create(self, history: bytes, algorithm: Hash) -> None:
        """Create the first segment of a new history. Needs the lock."""
        self.history, self.hash, self._salt = history, algorithm, salt_of(history)
        self._begin_segment(self.end)
