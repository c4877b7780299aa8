"""The log and its index, shared between threads and processes.

Threads that commit form a queue; the first of them commits for all that wait, in one frame. Readers
take no lock: they see the last state that was published.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock, RLock
from time import time_ns
from typing import NamedTuple
from weakref import WeakSet

from perdure.artifacts.cid import Hash
from perdure.artifacts.content_index import CommitDraft, ContentIndex, remove_tables
from perdure.artifacts.disk import UNWRITABLE, Buffer, Disk, DiskLock, acquire_within, lock_holder
from perdure.artifacts.entry import (
    Entry,
    IndexState,
    LogEntry,
    decode,
    decode_all,
    raw_entries,
    whole_records,
)
from perdure.artifacts.log import (
    SEGMENT_BYTES,
    Cut,
    Log,
    Mark,
    MarkFile,
    boot_of,
    decode_mark,
    finish_arrival,
    has_arrived,
)
from perdure.artifacts.segment import HISTORY_BYTES, Frame
from perdure.errors import (
    ClosedError,
    DamageError,
    LockTimeout,
    StaleIndexError,
    StorageError,
    storage_error,
)

LOCK = "lock"
ERASE_NOTE = "erase"
"""The file that lists what a sweep has yet to erase."""

_LONGEST_PAUSE = 0.05

Plan = Callable[[CommitDraft], None]


def milliseconds() -> int:
    return time_ns() // 1_000_000


class _Request:
    """A commit that a thread waits for."""

    __slots__ = ("alone", "done", "error", "plan", "state", "then", "woken")

    def __init__(self, plan: Plan, *, alone: bool, then: Callable[[], None] | None = None) -> None:
        self.plan = plan
        self.alone = alone
        self.then = then
        self.woken = Lock()
        self.woken.acquire()
        self.done = False
        self.error: Exception | None = None
        self.state = IndexState(0, 0)

    def finish(self) -> None:
        self.done = True
        self.woken.release()


class _Attempt(NamedTuple):
    """A commit that may or may not be durable."""

    position: int
    records: bytes
    requests: list[_Request]
    """The requests that still wait."""


class SharedLog:
    """The log and its content index. Its state is that of the last commit that was published."""

    def __init__(
        self,
        disk: Disk,
        algorithm: Hash = Hash.SHA2_256,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        clock: Callable[[], int] = milliseconds,
        wait: float = 10.0,
    ) -> None:
        self._disk = disk
        self._algorithm = algorithm
        self._segment_bytes = segment_bytes
        self._clock = clock
        self._wait = wait
        self._create_locks()
        self._closed = False
        self._epoch: int | None = None
        self._boot = boot_of(disk)
        self._mark: MarkFile | None = None
        self._seen = b""
        self._broken: str | None = None
        self._attempt: _Attempt | None = None
        self._appended: tuple[Frame | None, Mapping[int, Entry]] = (None, {})
        """The last frame that this process appended, and its decoded entries."""
        self.cuts: list[Cut] = []
        self._open()
        _open_logs.add(self)

    def _create_locks(self) -> None:
        self._queue: deque[_Request] = deque()
        self._queue_lock = Lock()
        self._leader: _Request | None = None
        self._leader_lock = Lock()
        self._state_lock = RLock()

    def reset_after_fork(self) -> None:
        """Reset the locks in a forked process, which has none of the threads that held them."""
        self._create_locks()
        self._attempt = None
        self._broken = self._broken or "it was forked"

    # ------------------------------------------------------------ opening
    def _open(self) -> None:
        """Read the state from disk; settle what a dead writer left, unless another process does."""
        try:
            self._read(tables=True)
        except StaleIndexError:
            self._read_without_tables()
        except OSError as error:
            self._broken = str(error)
            raise self._explained(error) from error
        self._publish()
        self._broken = None

    def _read_without_tables(self) -> None:
        with suppress(OSError):  # derived, and perhaps not writable
            remove_tables(self._disk)
        self._read(tables=False)

    def _read(self, *, tables: bool) -> None:
        self.log = Log(self._disk, self._segment_bytes)
        self.index = ContentIndex()
        self._epoch = None
        self._mark = MarkFile.open(self._disk)
        if self.log.begin() and tables:
            self.index.load(self._disk, self.log)
            if self.index.end.position:
                self.log.end = self.index.end
                self.log.ends.append(self.index.end)
        if self.log.segments() or has_arrived(self._disk):
            held = self._try_lock()
            if held is None:
                self._follow_unlocked()
                return
            try:
                self._settle(thorough=True)
            finally:
                held.release()
            return
        mark = self._mark.read() if self._mark else None
        if mark is not None and mark.position:
            raise self.log.missing(mark.position)

    def _try_lock(self) -> DiskLock | None:
        try:
            return self._disk.lock(LOCK)
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            return None  # not writable; reading needs no lock

    def _follow_unlocked(self) -> None:
        if not self.log.history:  # another process is creating it
            return
        mark = self._mark.read() if self._mark else None
        if mark is not None and mark.history == self.log.history:
            self.log.follow(mark.position, self._apply)
            return
        with suppress(DamageError):  # unfinished; a writer settles it
            for frame in self.log.frames(self.log.end):
                self._apply(frame)
                self.log.end = frame.end

    def _apply(self, frame: Frame) -> None:
        self.index.apply(frame, self.log.hash)
        self.log.ends.append(frame.end)

    def _is_settled(self) -> bool:
        """Whether no other process wrote, or began to, since the last check."""
        mark = self._mark
        return mark is not None and mark.raw() == self._seen and self.log.is_at_end()

    def _settle(self, *, thorough: bool) -> None:
        if not self.log.history:
            finish_arrival(self._disk)
        self._mark = self._mark or MarkFile.create(self._disk)
        mark = self._mark.read()
        before = self.log.end.position
        with self._state_lock:
            self.log.settle(mark, self._apply, thorough=thorough)
            self.cuts += self.log.cuts
            self.log.cuts = []
            if self.log.end.position != before:
                self._epoch = None  # another process wrote since our last commit
            now = (self.log.history, self.log.end.position)
            if self.log.history and (mark is None or mark[:2] != now):
                self._write_mark()
            self._publish()

    def _write_mark(self) -> None:
        if self._mark is None:
            self._mark = MarkFile.create(self._disk)
        end = self.log.end
        mark = Mark(self.log.history, end.position, end.segment, self._boot)
        self._seen = self._mark.write(mark)

    def _publish(self) -> None:
        self.state = IndexState(len(self.index.snapshots), self.log.end.position)

    # ------------------------------------------------------------ reading
    def refresh(self) -> IndexState:
        """Return the current state, including commits of other processes."""
        if self._broken is not None:
            self._check_open()
            with self._leader_lock, self._state_lock:
                if self._broken is not None:
                    self._open()
        mark = self._mark
        try:
            if mark is None or mark.raw() != self._seen:
                self._follow()
        except StaleIndexError:
            self.rebuild()
        except OSError as error:
            raise self._explained(error) from error
        return self.state

    def _follow(self) -> None:
        with self._state_lock:
            if self._mark is None:
                self._mark = MarkFile.open(self._disk)
                if self._mark is None:
                    return
            raw = self._mark.raw()
            mark = decode_mark(raw)
            if mark is None or not self.log.begin() or mark.history != self.log.history:
                return
            if mark.position > self.log.end.position:
                self.log.follow(mark.position, self._apply)
                self._epoch = None
                self._publish()
                if self.index.is_long:
                    self._renew_index()
            self._seen = raw

    def _renew_index(self) -> None:
        """Load a table that another process has written, instead of a long tail."""
        index = ContentIndex()
        index.load(self._disk, self.log)
        if index.end.position > self.index.table_position:
            for frame in self.log.frames(index.end):
                if frame.head.last_position > self.log.end.position:
                    break
                index.apply(frame, self.log.hash)
            self.index = index

    def entries(self, after: int) -> Iterator[LogEntry]:
        """Yield the entries after a position, in order, up to the current state."""
        stop = self.state.position
        try:
            for frame in self._frames_after(after) if after < stop else ():
                head, last = frame.head, frame.head.last_position
                if last > after:
                    for position, entry in enumerate(self._decoded(frame), head.first_position):
                        if position > after:
                            yield LogEntry(position, last, head.time, entry)
                if last >= stop:
                    return
        except OSError as error:
            raise self._explained(error) from error
        if after < stop:
            raise self.log.missing(stop)

    def _decoded(self, frame: Frame) -> list[Entry]:
        """Return the entries of a frame; of the last one appended here, most are not decoded."""
        appended, entries = self._appended
        if appended is None or frame.records != appended.records:
            return decode_all(frame.records)
        raw = enumerate(raw_entries(frame.records))
        return [entries[n] if n in entries else decode(*each) for n, each in raw]

    def records(self, stop: int) -> Iterator[tuple[int, list[bytes]]]:
        """Yield the time of each commit up to a position, and its encoded entries."""
        try:
            for frame in self._frames_after(0) if stop else ():
                entries = whole_records(frame.records)
                yield frame.head.time, entries[: stop - frame.head.first_position + 1]
                if frame.head.last_position >= stop:
                    return
        except OSError as error:
            raise self._explained(error) from error

    def _frames_after(self, position: int) -> Iterator[Frame]:
        """Yield the frames that contain the entries after a position, perhaps with earlier ones."""
        appended, index = self._appended[0], self.index
        follows = appended and appended.head.first_position == position + 1
        if appended and follows and appended.end == self.log.end:  # the usual case
            yield appended
            return
        last = index.last_in_table(self.log) if position < index.table_position else None
        if last is not None and last.head.first_position <= position + 1 <= last.end.position:
            yield last
            yield from self.log.frames(last.end)
        else:
            yield from self.log.frames(self.log.end_before(position))

    def rebuild(self) -> None:
        """Rebuild the index from the log alone, and remove the tables."""
        with self._leader_lock, self._state_lock:
            self._read_without_tables()
            self._publish()
            self._broken = None

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the store is closed. Fix: open it again.")

    def close(self) -> None:
        with self._leader_lock:
            if self._broken is None and self.index.is_worth_a_table:
                with suppress(OSError, StaleIndexError):  # derived; the next process reads the log
                    self._save_last_table()
            self._closed = True
            self._broken = "it is closed"
            self.log.forget_files()

    def _save_last_table(self) -> None:
        """Write a table, so that the next process reads less of the log, unless another writes."""
        held = self._disk.lock(LOCK)
        if held is None:
            return
        try:
            if self.log.is_at_end():
                self.save_table()
        finally:
            held.release()

    # ------------------------------------------------------------ writing
    def settle(self) -> IndexState:
        """Return the newest state, after what a writer that died left unfinished is settled.

        Takes the lock only if the mark or the end of the log has changed.
        """
        self._check_open()
        try:
            if self._broken is None and self._attempt is None and self._is_settled():
                return self.state
        except OSError as error:
            raise self._explained(error) from error
        return self.commit(lambda _: None)

    def commit(
        self, plan: Plan, *, alone: bool = False, then: Callable[[], None] | None = None
    ) -> IndexState:
        """Commit what `plan` drafts, and return the state after it when it is durable.

        The plan runs under the lock, on the newest state, together with the plans of other threads
        unless it is to be `alone`. If it raises, none of it is committed. A plan that drafts
        nothing writes nothing. `then` is called after it, still under the lock.
        """
        request = _Request(plan, alone=alone, then=then)
        try:
            if not self._join(request):
                request.woken.acquire()
            if not request.done:
                self._lead(request)
        except BaseException:
            self._leave(request)
            raise
        if request.error is not None:
            raise request.error
        return request.state

    def _join(self, request: _Request) -> bool:
        """Join the queue; return whether this thread becomes its leader."""
        with self._queue_lock:
            self._queue.append(request)
            if self._leader is not None:
                return False
            self._leader = request
            return True

    def _lead(self, own: _Request) -> None:
        """Serve the queue until our own request is done, then let the next thread lead."""
        with self._leader_lock:
            while not own.done:
                self._serve(own)
        self._hand_over()

    def _hand_over(self) -> None:
        with self._queue_lock:
            while self._queue and self._queue[0].done:
                self._queue.popleft()
            self._leader = self._queue[0] if self._queue else None
            if self._leader is not None:
                self._leader.woken.release()

    def _leave(self, request: _Request) -> None:
        """Withdraw a request that is still in the queue, and let another thread lead."""
        with self._queue_lock:
            with suppress(ValueError):
                self._queue.remove(request)
            leads = self._leader is request
        if leads:
            self._hand_over()

    def _serve(self, own: _Request) -> None:
        """Commit the first requests of the queue together."""
        requests: list[_Request] = []
        try:
            self._check_open()
            if self._broken is not None:
                self._open()
            self._resolve_attempt()
            requests = self._next_requests()
            held = self._lock()
            try:
                if not self._is_settled():
                    self._settle(thorough=False)
                self._commit(requests)
            finally:
                held.release()
        except StaleIndexError:
            self._put_off(requests)
            self._read_without_tables()
            self._publish()
        except OSError as error:  # the next call reads the state from disk again
            self._broken = self._broken or str(error)
            _fail_all(requests or [own], self._explained(error))
        except Exception as error:  # noqa: BLE001 - raised in the requesting threads
            _fail_all(requests or [own], error)
        except BaseException:
            # An interrupt is for this thread; the next leader serves the others.
            self._put_off([request for request in requests if request is not own])
            raise

    def _put_off(self, requests: list[_Request]) -> None:
        """Leave these to the next leader, unless they are in the log after all."""
        self._broken = self._broken or "it was interrupted"
        waiting = [request for request in requests if not request.done]
        if self._attempt is None:
            self._queue.extendleft(reversed(waiting))
        else:
            self._attempt = self._attempt._replace(requests=waiting)

    def _resolve_attempt(self) -> None:
        """Find out whether an interrupted commit is in the log."""
        attempt, self._attempt = self._attempt, None
        if attempt is None or not attempt.requests:
            return
        if attempt.position <= self.state.position:
            start = self.log.start_of(attempt.position - 1)
            for frame in self.log.frames(start):
                if frame.head.first_position >= attempt.position:
                    if frame.records == attempt.records:
                        self._done(attempt.requests)
                    break
        self._queue.extendleft(reversed([r for r in attempt.requests if not r.done]))

    def _next_requests(self) -> list[_Request]:
        requests: list[_Request] = []
        while self._queue:
            if requests and (self._queue[0].alone or requests[0].alone):
                break
            request = self._queue.popleft()
            if not request.done:  # it may have failed
                requests.append(request)
        return requests

    def _commit(self, requests: list[_Request]) -> None:
        draft = CommitDraft(self.index, self._algorithm, self.log.end.position)
        for request in requests:
            begun = draft.savepoint()
            try:
                request.plan(draft)
            except StaleIndexError:
                raise
            except OSError as error:
                draft.roll_back(begun)
                request.error = self._explained(error)
            except Exception as error:  # noqa: BLE001 - raised in the requesting thread
                draft.roll_back(begun)
                request.error = error
        if draft.records:
            self._append(draft)
        self._done(requests)

    def _done(self, requests: list[_Request]) -> None:
        for request in requests:
            request.state = self.state
            if request.then is not None and request.error is None:
                request.then()
            request.finish()

    def _append(self, draft: CommitDraft) -> None:
        """Make a draft durable, then visible."""
        log, before = self.log, self.log.end
        if not log.history:
            self._create()
        records = b"".join(draft.records)
        self._attempt = _Attempt(before.position + 1, records, [])
        if self._epoch is None:
            self._epoch = before.epoch + 1
        self._broken = "a commit failed"
        time = max(self._clock(), before.time)
        frame = log.append(time, self._epoch, len(draft.records), records, draft.payload)
        with self._state_lock:
            if draft.only_puts:
                self.index.add(frame, log.end, draft.puts, log.hash)
                log.ends.append(log.end)
            else:
                self._apply(frame)
            self._write_mark()
            self._publish()
            self._broken = None
        self._appended = frame, draft.entries
        if self.index.is_long:
            with suppress(OSError):  # derived; the next commit tries again
                self.save_table()
        self._attempt = None

    def _create(self) -> None:
        """Create the history. The mark comes first: it shows a creation that failed."""
        history = os.urandom(HISTORY_BYTES)
        self._mark = self._mark or MarkFile.create(self._disk)
        self._seen = self._mark.write(Mark(history, 0, 0, self._boot))
        self.log.create(history, self._algorithm)

    def append_as(self, frame: Frame, payload: Sequence[Buffer]) -> None:
        """Append a frame as another copy of this history has it. Needs the lock."""
        self._broken = "a commit failed"
        appended = self.log.append_as(frame, payload)
        with self._state_lock:
            self._apply(appended)
            self._epoch = None
            self._write_mark()
            self._publish()
            self._broken = None

    def save_table(self) -> None:
        """Write the whole index as a table. Needs the lock."""
        with self._state_lock:
            self.index.save(self._disk, self.log.history, self.log.hash)

    def has_file(self, name: str) -> bool:
        try:
            return name in self._disk.names()
        except OSError as error:
            raise self._explained(error) from error

    def _explained(self, error: OSError) -> StorageError:
        if isinstance(error, StorageError):
            return error
        return storage_error(error, self._disk.whereabouts, str(error.filename or "the log"))

    def _lock(self) -> DiskLock:
        held = self._disk.lock(LOCK) or acquire_within(
            partial(self._disk.lock, LOCK), self._wait, _LONGEST_PAUSE
        )
        if held is None:
            raise LockTimeout(
                f"{lock_holder(self._disk.path(LOCK))} has been writing the history in "
                f"{self._disk.whereabouts!a} for over {self._wait:g} s. "
                "Fix: wait for it to finish, or end that process."
            )
        return held


_open_logs: WeakSet[SharedLog] = WeakSet()


def _reset_after_fork() -> None:
    for shared_log in list(_open_logs):
        shared_log.reset_after_fork()


os.register_at_fork(after_in_child=_reset_after_fork)


def _fail_all(requests: list[_Request], error: Exception) -> None:
    for request in requests:
        if not request.done:
            request.error = error
            request.finish()
