"""Take in what an archive holds: as our own history, if it is one with ours, or as another's.

Nothing is believed before all of the archive was checked. Then it depends on how the two stand:

- there is none here yet: its segments become ours, byte for byte, all at once;
- ours is its beginning: what it has more is appended, as it is there;
- it is the beginning of ours: there is nothing to do;
- anything else is another's. Its entries are said again, in our log and in their order. Its names
  are kept apart, below `@` and its id, so that none of ours can change. How far we got stands in
  our log with them, so the same is never taken in twice.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from holdfast.artifacts.archive import Archive, encode_opening, read_archive, refusing
from holdfast.artifacts.arrival import arrive, clear, open_arriving
from holdfast.artifacts.catalogue import Catalogue
from holdfast.artifacts.cid import CID
from holdfast.artifacts.draft import Content, Draft
from holdfast.artifacts.entry import (
    Bind,
    Entry,
    Imported,
    Lift,
    Put,
    Register,
    Result,
    Sweep,
    Tombstone,
    decode,
    decode_all,
    encode,
)
from holdfast.artifacts.frame import FIRST_SEAL, encode_head, salt_of, seal
from holdfast.artifacts.journal import Journal
from holdfast.artifacts.keys import PublicKey
from holdfast.artifacts.log import Stream
from holdfast.artifacts.records import only_puts, raw_entries
from holdfast.artifacts.segment import HEADER_BYTES, End, Frame
from holdfast.artifacts.state import IndexState
from holdfast.artifacts.store import ArtifactStore
from holdfast.artifacts.survey import SLICE, Placed, Window, is_whole, placed, whole_records
from holdfast.artifacts.sweep import Sweeper
from holdfast.artifacts.verify import Progress
from holdfast.errors import ArchiveError, InvalidArtifactError
from holdfast.faults import explain

if TYPE_CHECKING:
    from holdfast.artifacts.canonical import Value

_MOST_AT_ONCE = 8 << 20
_IMPORTED = 9
_SWEEP = 8
_ORIGIN = ("history", "position", "time")
_BEFORE = "before"
_CHANGED = "the archive was changed while it was being taken in. Fix: take it in again."


class How(Enum):
    """How an archive was taken in."""

    RESTORED = "restored"
    """There was nothing here; now there is the same history."""
    CONTINUED = "continued"
    """Ours was its beginning, and is now as long as it."""
    KNOWN = "known"
    """It has nothing that we had not."""
    REPLAYED = "replayed"
    """It is another's, and what it has stands in our log now, with where it is from."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What taking in an archive did."""

    how: How
    history: bytes
    """That of the archive."""
    position: int
    """The last one of the archive."""
    entries: int
    """How many our log has more for it."""
    state: IndexState
    """Ours, afterwards."""


def import_archive(
    store: ArtifactStore,
    source: BinaryIO,
    *,
    public_key: PublicKey | None = None,
    progress: Progress | None = None,
) -> Taken:
    """Check a whole archive, and then take in what is new in it.

    With a public key, only if its owner signed the archive. That is to be wished where it goes on
    with our own history: then it is believed as we are, and also sweeps what it says was swept.
    `ArchiveError` if it can't be taken in; nothing was changed then. After a power cut, do it
    again.
    """
    shown = progress or (lambda _done, _all: None)
    archive = read_archive(
        source,
        public_key=public_key,
        progress=lambda done, whole: shown(done, whole // 2 * 3),
    )
    return _Import(store, archive, shown).run()


class _OvertakenError(Exception):
    """Another process has taken in some of the same archive."""


class _Import:
    def __init__(self, store: ArtifactStore, archive: Archive, progress: Progress) -> None:
        self._store = store
        self._journal: Journal = store._journal  # noqa: SLF001 - this is the store's own verb
        self._disk = store.disk
        self._archive = archive
        self._progress = progress
        self._how = How.REPLAYED
        self._entries = 0

    def run(self) -> Taken:
        if self._archive.hash is not self._store._hash:  # noqa: SLF001 - as before
            raise ArchiveError(
                "the archive names content by another hash than this store. Fix: take it in with a "
                f"store that was made with hash={self._archive.hash}."
            )
        self._journal.commit(self._take, alone=True)
        if self._how is How.RESTORED:
            self._journal.rebuild()
        if self._how is How.REPLAYED:
            self._replay()
        whole = 3 * self._archive.size
        self._progress(whole, whole)
        archive = self._archive
        return Taken(
            self._how, archive.history, archive.end.position, self._entries, self._store.current()
        )

    def _show(self, position: int) -> None:
        size = self._archive.size
        share = size * position // self._archive.end.position
        self._progress(2 * size + share, 3 * size)

    # ------------------------------------------------------------ what is one with ours
    def _take(self, _: Draft) -> None:
        """Take it in if it is one with our history, while the lock is held."""
        with self._explained():
            clear(self._disk)
            self._how = self._relation()
            if self._how is How.RESTORED:
                self._restore()
            elif self._how is How.CONTINUED:
                self._continue()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise explain(error, self._disk.whereabouts, "the log") from error

    def _relation(self) -> How:
        log, theirs = self._journal.log, self._archive.end
        if not log.history:
            return How.RESTORED
        ours = log.end
        if not ours.position:
            raise ArchiveError(
                f"the history in {self._disk.whereabouts!a} was begun and has nothing in it, so it "
                "can become no other one. Fix: choose an empty folder, or put something first."
            )
        if log.history != self._archive.history:
            return How.REPLAYED
        if ours.position < theirs.position:
            seals = self._archive.seals({ours.position})
            return How.CONTINUED if seals.get(ours.position) == ours.seal else How.REPLAYED
        return How.KNOWN if self._our_seal(theirs.position) == theirs.seal else How.REPLAYED

    def _our_seal(self, position: int) -> bytes | None:
        log = self._journal.log
        for frame in log.frames(log.start_of(position - 1)):
            if frame.head.last_position >= position:
                return frame.seal if frame.head.last_position == position else None
        return None

    def _restore(self) -> None:
        """Write all segments and check them once more; only then do they become a history."""
        archive = self._archive
        sections = archive.sections
        hasher = sha256(encode_opening([section.size() for section in sections.values()]))
        done = 2 * archive.size
        for number, section in sections.items():
            file = open_arriving(self._disk, number)
            for at in range(0, section.size(), SLICE):
                data = section.read(at, SLICE)
                hasher.update(data)
                file.write(at, [data])
                done += len(data)
                self._progress(done, 3 * archive.size)
            file.sync()
            file.close()
        hasher.update(archive.footer)
        if hasher.digest() != archive.digest:
            clear(self._disk)
            raise ArchiveError(_CHANGED)
        arrive(self._disk)
        self._entries = archive.end.position

    def _continue(self) -> None:
        """Append what is missing. If this is cut short, what was appended stays, and is right."""
        begin = self._journal.log.end.position
        for frame in self._archive.frames(after=begin):
            self._append(frame)
            self._show(frame.head.last_position)
        end = self._journal.log.end
        if end[2:] != self._archive.end[2:]:
            raise ArchiveError(_CHANGED)
        self._entries = end.position - begin

    def _append(self, frame: Frame) -> None:
        log = self._journal.log
        _check_place(log.end, frame)
        packed = encode_head(frame.head, salt_of(log.history))
        if seal(log.end.seal, packed, frame.records) != frame.seal:
            raise ArchiveError(_CHANGED)
        sweeper = self._sweeper(frame)
        self._journal.append_as(frame, whole_records(frame.records), self._payload(frame))
        if sweeper is not None:
            sweeper.erase()

    def _payload(self, frame: Frame) -> list[bytes | Stream]:
        length = frame.head.payload_length
        if length <= SLICE:
            return [b"".join(self._contents(frame))]
        return [Stream(length, lambda: self._contents(frame))]

    def _contents(self, frame: Frame) -> Iterator[bytes]:
        window = Window(self._archive.sections[frame.segment])
        for put in placed(frame):
            if self._archive.survey.is_swept(put):
                yield from (bytes(len(data)) for data in window.slices(put.place, put.length))
            else:
                yield from self._checked(window, put)

    def _checked(self, window: Window, put: Placed) -> Iterator[bytes]:
        """Yield content that is what it was when all was checked; raise if it is not."""
        if put.length <= SLICE:
            if not is_whole(window, put, self._archive.hash):
                raise ArchiveError(_CHANGED)
            yield window.read(put.place, put.length)
            return
        hasher = self._archive.hash.hasher()
        for data in window.slices(put.place, put.length):
            hasher.update(data)
            yield data
        if hasher.digest() != put.digest:
            raise ArchiveError(_CHANGED)

    def _sweeper(self, frame: Frame) -> Sweeper | None:
        """Return what erases with us what this commit sweeps; None if it is no sweep."""
        if frame.records[0] != _SWEEP:
            return None
        (sweep,) = decode_all(frame.records)
        if not isinstance(sweep, Sweep):
            raise ArchiveError(_CHANGED)
        index = self._journal.index
        hidden = ((digest, index.last_hidden(digest, row)) for digest, row in index.rows())
        dead = {digest for digest, since in hidden if 0 < since <= sweep.horizon}
        named = {cid.digest for cid in sweep.cids}
        kept = [CID(digest, self._archive.hash) for digest in dead - named]
        draft = Draft(index, self._archive.hash, self._journal.log.end.position)
        sweeper = Sweeper(self._disk, self._journal, self._archive.hash)
        sweeper.plan(draft, sweep.horizon, kept)
        if draft.records != [frame.records]:
            sweeper.finish()
            raise ArchiveError(
                f"entry {frame.head.last_position} of the archive sweeps what was not to be swept. "
                "Fix: none; no store has written this."
            )
        return sweeper

    # ------------------------------------------------------------ what is another's
    def _replay(self) -> None:
        cursors = _Cursors(self._journal, self._archive.history)
        while True:
            cursor = self._begin(cursors)
            if cursor.position >= self._archive.end.position:
                break
            try:
                self._replay_from(cursor, cursors)
            except _OvertakenError:
                continue
        if not self._entries:
            self._how = How.KNOWN

    def _begin(self, cursors: "_Cursors") -> Imported:
        """Return how far the archive was taken in already."""
        cursors.follow(self._journal.refresh().position)
        last = self._archive.end.position
        known = {at: said for at, said in cursors.seals.items() if 0 < at <= last}
        if self._archive.seals(set(known)) != known:
            raise ArchiveError(
                f"the history {self._archive.history.hex()} is not the one of which a part was "
                "taken in before: it was changed since, or has gone on in two places. Fix: take in "
                "an archive of the other one."
            )
        fork = self._fork()
        newest = max(cursors.seals, default=0)
        if newest >= fork[0]:
            fork = newest, cursors.seals.get(newest, FIRST_SEAL)
        return Imported(self._archive.history, *fork)

    def _fork(self) -> tuple[int, bytes]:
        """Return the last commit that both have: the first ones, if it is a copy of ours."""
        log, fork = self._journal.log, (0, FIRST_SEAL)
        if log.history == self._archive.history:
            for ours, theirs in zip(
                log.frames(log.start_of(0)), self._archive.frames(), strict=False
            ):
                if ours.seal != theirs.seal:
                    break
                fork = theirs.head.last_position, theirs.seal
        return fork

    def _replay_from(self, cursor: Imported, cursors: "_Cursors") -> None:
        before = cursor
        replay = _Replay(self._archive, cursor, self._checked)
        for batch in replay.batches():
            self._commit(batch, before, cursors)
            before = batch.cursor
            self._show(before.position)

    def _commit(self, batch: "_Batch", before: Imported, cursors: "_Cursors") -> None:
        written = 0

        def plan(draft: Draft) -> None:
            nonlocal written
            cursors.follow(self._journal.log.end.position)
            if max(cursors.seals, default=0) > before.position:
                raise _OvertakenError
            batch.plan(draft, self._store.catalogue)
            if draft.records or batch.cursor != before:
                draft.append(batch.cursor)
            written = len(draft.records)

        self._journal.commit(plan, alone=True)
        self._entries += written


def _check_place(end: End, frame: Frame) -> None:
    here = (frame.segment, frame.offset)
    if here not in {end[:2], (end.segment + 1, HEADER_BYTES)}:
        raise ArchiveError(
            f"entry {frame.head.first_position} is at another place in the archive than it would "
            "be here. Fix: take the archive in to an empty folder."
        )


class _Cursors:
    """How far another history was taken in, as our log tells.

    An `Imported` that ends its commit is such a cursor. One inside a commit was said by the other
    history, of those that it had taken in itself.
    """

    def __init__(self, journal: Journal, history: bytes) -> None:
        self._journal = journal
        self._history = history
        self._end: End | None = None
        self.seals: dict[int, bytes] = {}

    def follow(self, until: int) -> None:
        """Take in what our log has up to a position."""
        log = self._journal.log
        if self._end is None:
            self._end = log.start_of(0)
        if self._end.position >= until:
            return
        for frame in log.frames(self._end):
            self._take_in(frame)
            self._end = frame.end
            if frame.head.last_position >= until:
                return

    def _take_in(self, frame: Frame) -> None:
        if only_puts(frame) is not None:
            return
        *_, (kind, body) = raw_entries(frame.records)
        if kind == _IMPORTED:
            entry = decode(kind, body)
            if isinstance(entry, Imported) and entry.history == self._history:
                self.seals[entry.position] = entry.seal


# ---------------------------------------------------------------- saying it again
class _Batch:
    """What becomes one commit of ours."""

    def __init__(self, cursor: Imported) -> None:
        self.cursor = cursor
        self.size = 0
        self.acts: list[Content | Entry] = []

    def add(self, act: Content | Entry, size: int) -> None:
        self.acts.append(act)
        self.size += size

    def plan(self, draft: Draft, catalogue: Catalogue) -> None:
        if any(isinstance(act, Register | Result) for act in self.acts):
            catalogue.follow()
        for act in self.acts:
            match act:
                case Content():
                    draft.put(act)
                case Register(sid, _):
                    if catalogue.structure(sid) is None:
                        draft.append_once(act)
                case Result(sid, cid):
                    if cid not in {known for known, _ in catalogue.results(sid)}:
                        draft.append_once(act)
                case _:
                    draft.append(act)


class _Found(NamedTuple):
    """Content, and the segment that it is in."""

    segment: int
    put: Placed


Check = Callable[[Window, Placed], Iterator[bytes]]


class _Replay:
    """The entries of another's log after a position, as we say them."""

    def __init__(self, archive: Archive, cursor: Imported, check: Check) -> None:
        self._archive = archive
        self._cursor = cursor
        self._check = check
        self._hidden: set[bytes] = set()
        """What the other log itself does not show at its end."""
        lifted = self._look_ahead()
        self._lifted = self._find(lifted - self._hidden)

    def _look_ahead(self) -> set[bytes]:
        """Learn what is hidden in the end; return what was lifted. Refuse what can't be said."""
        hidden, lifted = self._hidden, set()
        for frame in self._archive.frames():
            if only_puts(frame) is not None:
                hidden.difference_update(put.digest for put in placed(frame))
                continue
            for position, entry in _entries(frame):
                match entry:
                    case Put(cid):
                        hidden.discard(cid.digest)
                    case Tombstone(cid, _):
                        hidden.add(cid.digest)
                    case Sweep(_, cids):
                        hidden.update(cid.digest for cid in cids)
                    case Lift(cid):
                        hidden.discard(cid.digest)
                        if position > self._cursor.position:
                            lifted.add(cid.digest)
                    case Bind() if position > self._cursor.position:
                        _check_sayable(self._said(entry, position, frame))
        return lifted

    def _find(self, wanted: set[bytes]) -> Mapping[bytes, _Found]:
        """Return where content is that was hidden when it was passed, and is no longer."""
        if not wanted:
            return {}
        return {
            put.digest: _Found(frame.segment, put)
            for frame in self._archive.frames()
            for put in placed(frame)
            if put.digest in wanted and not self._archive.survey.is_swept(put)
        }

    def batches(self) -> Iterator[_Batch]:
        """Yield commits of bounded size, but for content that alone is larger.

        The content of a commit may come before the rest of it, but never after: names, structures
        and results of one commit stay in one.
        """
        batch = _Batch(self._cursor)
        for frame in self._archive.frames(after=self._cursor.position):
            for found in self._contents(frame):
                if batch.acts and batch.size + found.put.length > _MOST_AT_ONCE:
                    yield batch
                    batch = _Batch(batch.cursor)
                batch.add(self._content(found), found.put.length)
            for said, length in self._others(frame):
                batch.add(said, length)
            at = frame.head.last_position
            batch.cursor = Imported(self._archive.history, at, frame.seal)
            if batch.size >= _MOST_AT_ONCE:
                yield batch
                batch = _Batch(batch.cursor)
        if batch.acts or batch.cursor.position == self._archive.end.position:
            yield batch

    def _contents(self, frame: Frame) -> Iterator[_Found]:
        for put in placed(frame):
            if put.digest not in self._hidden and not self._archive.survey.is_swept(put):
                yield _Found(frame.segment, put)
        if self._lifted and only_puts(frame) is None:
            for _, entry in _entries(frame):
                if isinstance(entry, Lift) and entry.cid.digest in self._lifted:
                    yield self._lifted[entry.cid.digest]

    def _content(self, found: _Found) -> Content:
        put, section = found.put, self._archive.sections[found.segment]
        if put.length > SLICE:
            stream = Stream(put.length, lambda: self._check(Window(section), put))
            return Content(put.cid, put.crc, stream)
        data = section.read(put.place, put.length)
        if self._archive.hash.digest(data) != put.digest:
            raise ArchiveError(_CHANGED)
        return Content(put.cid, put.crc, data)

    def _others(self, frame: Frame) -> Iterator[tuple[Entry, int]]:
        if only_puts(frame) is not None:
            return
        for position, entry in _entries(frame):
            match entry:
                case Bind():
                    said = self._said(entry, position, frame)
                    yield said, len(encode(said))
                case Register() | Result() | Imported():
                    yield entry, len(encode(entry))

    def _said(self, bind: Bind, position: int, frame: Frame) -> Bind:
        """Return how we say it: under a name of its own, and with where it is from."""
        history = self._archive.history
        given = bind.circumstances
        before = {key: given[key] for key in (*_ORIGIN, _BEFORE) if key in given}
        said: dict[str, Value] = {key: given[key] for key in given if key not in before}
        if before:
            said[_BEFORE] = before
        said |= dict(zip(_ORIGIN, (history, position, frame.head.time), strict=True))
        return Bind(f"@{history.hex()}/{bind.name}", bind.cid, said)


def _entries(frame: Frame) -> Iterator[tuple[int, Entry]]:
    with refusing():
        entries = decode_all(frame.records)
    return enumerate(entries, frame.head.first_position)


def _check_sayable(bind: Bind) -> None:
    try:
        encode(bind)
    except InvalidArtifactError as error:
        raise ArchiveError(
            f"what the archive says of {bind.name[:80]!a} can't be said again: {error}. Fix: none; "
            "no store has written this."
        ) from error
