"""The log and its index together, shared between threads and processes.

Threads that commit queue; the first of them commits for all that wait, in one frame. Readers take
no lock: they see the last state that was published.
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
from perdure.artifacts.disk import UNWRITABLE, Buffer, Disk, Held, holder_of, take_in_time
from perdure.artifacts.entry import Entry, decode_all, raw_entries, whole_records
from perdure.artifacts.entry import decode as decode_entry
from perdure.artifacts.index import Draft, Index, remove_tables
from perdure.artifacts.log import SEGMENT_BYTES, Cut, Log
from perdure.artifacts.mark import Mark, MarkFile, boot_of, decode, finish, has_arrived
from perdure.artifacts.segment import HISTORY_BYTES, End, Frame
from perdure.artifacts.state import IndexState, Logged
from perdure.errors import (
    ClosedError,
    DamageError,
    LockTimeout,
    StaleIndexError,
    StorageError,
    storage_error,
)

LOCK = "lock"
NOTE = "erase"
"""Says what a sweep has yet to erase."""

_LONGEST_PAUSE = 0.05
_REMEMBERED_ENDS = 256
"""How many of the last commits are found again without reading their segment."""

Plan = Callable[[Draft], None]


def milliseconds() -> int:
    return time_ns() // 1_000_000


class _Request:
    """A thread waits for this commit."""

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
    """A commit of which it is not known whether it became durable."""

    position: int
    records: bytes
    requests: list[_Request]
    """Those that still wait."""


class Journal:
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
        self._make_locks()
        self._closed = False
        self._epoch: int | None = None
        self._boot = boot_of(disk)
        self._mark: MarkFile | None = None
        self._seen = b""
        self._broken: str | None = None
        self._attempt: _Attempt | None = None
        self._appended: tuple[Frame | None, Mapping[int, Entry]] = (None, {})
        """The records of the last frame that was appended here, and entries of them."""
        self._ends: deque[End] = deque(maxlen=_REMEMBERED_ENDS)
        self.cuts: list[Cut] = []
        self._open()
        _journals.add(self)

    def _make_locks(self) -> None:
        self._queue: deque[_Request] = deque()
        self._queueing = Lock()
        self._leader: _Request | None = None
        self._leading = Lock()
        self._taking_in = RLock()

    def reset_after_fork(self) -> None:
        """Go on in a fork, where the threads that held the locks do not exist."""
        self._make_locks()
        self._attempt = None
        self._broken = self._broken or "it was forked"

    # ------------------------------------------------------------ opening
    def _open(self) -> None:
        """Read the state from disk, and settle what a writer left, unless one is at it."""
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
        with suppress(OSError):  # derived, and perhaps not ours to remove
            remove_tables(self._disk)
        self._read(tables=False)

    def _read(self, *, tables: bool) -> None:
        self.log = Log(self._disk, self._segment_bytes)
        self.index = Index()
        self._ends.clear()
        self._epoch = None
        self._mark = MarkFile.open(self._disk)
        if self.log.begin() and tables:
            self.index.load(self._disk, self.log)
            if self.index.end.position:
                self.log.end = self.index.end
                self._ends.append(self.index.end)
        if self.log.segments() or has_arrived(self._disk):
            held = self._try_lock()
            if held is None:
                self._follow_unlocked()
            else:
                try:
                    self._settle(thorough=True)
                finally:
                    held.release()
            return
        mark = self._mark.read() if self._mark else None
        if mark is not None and mark.position:
            raise self.log.missing(mark.position)

    def _try_lock(self) -> Held | None:
        try:
            return self._disk.lock(LOCK)
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            return None  # not ours to write; reading needs no lock

    def _follow_unlocked(self) -> None:
        if not self.log.history:  # it is being begun just now
            return
        mark = self._mark.read() if self._mark else None
        if mark is not None and mark.history == self.log.history:
            self.log.follow(mark.position, self._apply)
            return
        try:
            for frame in self.log.frames(self.log.end):
                self._apply(frame)
                self.log.end = frame.end
        except DamageError:  # being written just now, or for a writer to settle
            return

    def _apply(self, frame: Frame) -> None:
        self.index.apply(frame, self.log.hash)
        self._ends.append(frame.end)

    def _is_settled(self) -> bool:
        """Whether no other process wrote, or began to, since we last looked."""
        mark = self._mark
        return mark is not None and mark.raw() == self._seen and self.log.is_at_end()

    def _settle(self, *, thorough: bool) -> None:
        if not self.log.history:
            finish(self._disk)
        self._mark = self._mark or MarkFile.create(self._disk)
        mark = self._mark.read()
        before = self.log.end.position
        with self._taking_in:
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
        """Return the current state, with what other processes have committed."""
        if self._broken is not None:
            self._reopen()
        mark = self._mark
        try:
            if mark is None or mark.raw() != self._seen:
                self._take_in()
        except StaleIndexError:
            self.rebuild()
        except OSError as error:
            raise self._explained(error) from error
        return self.state

    def _take_in(self) -> None:
        with self._taking_in:
            if self._mark is None:
                self._mark = MarkFile.open(self._disk)
                if self._mark is None:
                    return
            raw = self._mark.raw()
            mark = decode(raw)
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
        """Take a table that another process has written in place of a tail that grew long."""
        index = Index()
        index.load(self._disk, self.log)
        if index.end.position > self.index.table_position:
            for frame in self.log.frames(index.end):
                if frame.head.last_position > self.log.end.position:
                    break
                index.apply(frame, self.log.hash)
            self.index = index

    def entries(self, after: int) -> Iterator[Logged]:
        """Yield the entries after a position, in order, up to the state as it is now."""
        try:
            yield from self._entries(after)
        except OSError as error:
            raise self._explained(error) from error

    def _entries(self, after: int) -> Iterator[Logged]:
        stop = self.state.position
        if after >= stop:
            return
        for frame in self._frames_after(after):
            head, last = frame.head, frame.head.last_position
            if last > after:
                for position, entry in enumerate(self._decoded(frame), head.first_position):
                    if position > after:
                        yield Logged(position, last, head.time, entry)
            if last >= stop:
                return
        raise self.log.missing(stop)

    def _decoded(self, frame: Frame) -> list[Entry]:
        """Return the entries of a frame; those of the last that was appended here are known."""
        appended, entries = self._appended
        if appended is None or frame.records != appended.records:
            return decode_all(frame.records)
        raw = enumerate(raw_entries(frame.records))
        return [entries[n] if n in entries else decode_entry(*each) for n, each in raw]

    def records(self, stop: int) -> Iterator[tuple[int, list[bytes]]]:
        """Yield the time of each commit up to a position, and its entries as the log has them."""
        try:
            for frame in self._frames_after(0) if stop else ():
                entries = whole_records(frame.records)
                yield frame.head.time, entries[: stop - frame.head.first_position + 1]
                if frame.head.last_position >= stop:
                    return
        except OSError as error:
            raise self._explained(error) from error

    def _frames_after(self, position: int) -> Iterator[Frame]:
        """Yield the frames in which what follows a position is, and perhaps some before them."""
        appended, index = self._appended[0], self.index
        follows = appended and appended.head.first_position == position + 1
        if appended and follows and appended.end == self.log.end:  # as nearly always
            yield appended
            return
        last = index.last_in_table(self.log) if position < index.table_position else None
        if last is not None and last.head.first_position <= position + 1 <= last.end.position:
            yield last
            yield from self.log.frames(last.end)
        else:
            yield from self.log.frames(self._end_before(position))

    def _end_before(self, position: int) -> End:
        """Return an end of a commit at or before a position, the nearest that is known."""
        for end in reversed(tuple(self._ends)):
            if end.position <= position:
                return end
        return self.log.start_of(position)

    def commit_before(self, position: int) -> int:
        """Return the last position of the last commit that was whole at a position."""
        if position <= 0:
            return 0
        end = self._end_before(position)
        if end.position < position:
            for frame in self.log.frames(end):
                if frame.head.last_position > position:
                    break
                end = frame.end
        return end.position

    def _reopen(self) -> None:
        self._check_open()
        with self._leading, self._taking_in:
            if self._broken is not None:
                self._open()

    def rebuild(self) -> None:
        """Rebuild the index from the log alone, and remove the tables."""
        with self._leading, self._taking_in:
            self._read_without_tables()
            self._publish()
            self._broken = None

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the store is closed. Fix: open it again.")

    def close(self) -> None:
        with self._leading:
            if self._broken is None and self.index.is_worth_a_table:
                with suppress(OSError, StaleIndexError):  # derived; the next one takes it in
                    self._leave_table()
            self._closed = True
            self._broken = "it is closed"
            self.log.forget_files()

    def _leave_table(self) -> None:
        """Write a table, so that the next process reads a shorter log, unless another writes."""
        held = self._disk.lock(LOCK)
        if held is None:
            return
        try:
            if self.log.is_at_end():
                self.save_table()
        finally:
            held.release()

    # ------------------------------------------------------------ writing
    def settled(self) -> IndexState:
        """Return the newest state, once what a writer that died left is settled.

        The lock is taken only if the mark or the end of the log is not as it was.
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
        """Do what `plan` drafts and return the state after it, when it is durable.

        The plan is run while the lock is held, on the newest state, together with others unless
        it wants to be alone. If it raises, nothing of it is done. A plan that drafts nothing
        writes nothing. `then` is called after it, while the lock is still held.
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
        """Queue; return whether this thread is the leader, because there is none."""
        with self._queueing:
            self._queue.append(request)
            if self._leader is not None:
                return False
            self._leader = request
            return True

    def _lead(self, own: _Request) -> None:
        """Serve all that wait until our own request is done, then let the next one lead."""
        with self._leading:
            while not own.done:
                self._serve(own)
        self._hand_over()

    def _hand_over(self) -> None:
        with self._queueing:
            while self._queue and self._queue[0].done:
                self._queue.popleft()
            self._leader = self._queue[0] if self._queue else None
            if self._leader is not None:
                self._leader.woken.release()

    def _leave(self, request: _Request) -> None:
        """Withdraw a request that is not taken yet, and let another thread lead."""
        with self._queueing:
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
            self._settle_attempt()
            requests = self._take_requests()
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
        except OSError as error:
            self._fail(requests or [own], error)
        except Exception as error:  # noqa: BLE001 - it is raised in the thread that asked
            _tell(requests or [own], error)
        except BaseException:
            # An interrupt is for this thread; the others are served by the next leader.
            self._put_off([request for request in requests if request is not own])
            raise

    def _put_off(self, requests: list[_Request]) -> None:
        """Leave these to the next leader, unless they turn out to be done."""
        self._broken = self._broken or "it was interrupted"
        waiting = [request for request in requests if not request.done]
        if self._attempt is None:
            self._queue.extendleft(reversed(waiting))
        else:
            self._attempt = self._attempt._replace(requests=waiting)

    def _settle_attempt(self) -> None:
        """Find out whether a commit that was interrupted is in the log after all."""
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

    def _take_requests(self) -> list[_Request]:
        requests: list[_Request] = []
        while self._queue:
            if requests and (self._queue[0].alone or requests[0].alone):
                break
            request = self._queue.popleft()
            if not request.done:  # it may have failed before
                requests.append(request)
        return requests

    def _commit(self, requests: list[_Request]) -> None:
        draft = Draft(self.index, self._algorithm, self.log.end.position)
        for request in requests:
            begun = draft.begin()
            try:
                request.plan(draft)
            except StaleIndexError:
                raise
            except OSError as error:
                draft.undo(begun)
                request.error = self._explained(error)
            except Exception as error:  # noqa: BLE001 - it is raised in the thread that asked
                draft.undo(begun)
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

    def _append(self, draft: Draft) -> None:
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
        with self._taking_in:
            if draft.only_puts:
                self.index.add(frame, log.end, draft.puts, log.hash)
                self._ends.append(log.end)
            else:
                self._apply(frame)
            self._write_mark()
            self._publish()
            self._broken = None
        self._appended = frame, draft.entries
        if self.index.is_long:
            with suppress(OSError):  # derived; the commit stands, and the next one tries again
                self.save_table()
        self._attempt = None

    def _create(self) -> None:
        """Begin the history. The mark is there first: should the rest fail, it tells when."""
        history = os.urandom(HISTORY_BYTES)
        self._mark = self._mark or MarkFile.create(self._disk)
        self._seen = self._mark.write(Mark(history, 0, 0, self._boot))
        self.log.create(history, self._algorithm)

    def append_as(self, frame: Frame, payload: Sequence[Buffer]) -> None:
        """Append a frame as another copy of this history has it. Only while the lock is held."""
        self._broken = "a commit failed"
        appended = self.log.append_as(frame, payload)
        with self._taking_in:
            self._apply(appended)
            self._epoch = None
            self._write_mark()
            self._publish()
            self._broken = None

    def save_table(self) -> None:
        """Write the index whole. Only while the lock is held."""
        with self._taking_in:
            self.index.save(self._disk, self.log.history, self.log.hash)

    def _fail(self, requests: list[_Request], error: OSError) -> None:
        """Raise the error in all that wait; the next call reads the state from disk again."""
        self._broken = self._broken or str(error)
        for request in requests:
            _tell([request], self._explained(error))

    def has_file(self, name: str) -> bool:
        try:
            return name in self._disk.names()
        except OSError as error:
            raise self._explained(error) from error

    def _explained(self, error: OSError) -> StorageError:
        if isinstance(error, StorageError):
            return error
        return storage_error(error, self._disk.whereabouts, str(error.filename or "the log"))

    def _lock(self) -> Held:
        held = self._disk.lock(LOCK) or take_in_time(
            partial(self._disk.lock, LOCK), self._wait, _LONGEST_PAUSE
        )
        if held is None:
            raise LockTimeout(
                f"the history in {self._disk.whereabouts!a} is being written by "
                f"{holder_of(self._disk.path(LOCK))}, and was for {self._wait:g} s. "
                "Fix: wait for it to finish, or end that process."
            )
        return held


_journals: WeakSet[Journal] = WeakSet()


def _go_on_in_a_fork() -> None:
    for journal in list(_journals):
        journal.reset_after_fork()


os.register_at_fork(after_in_child=_go_on_in_a_fork)


def _tell(requests: list[_Request], error: Exception) -> None:
    for request in requests:
        if not request.done:
            request.error = error
            request.finish()
