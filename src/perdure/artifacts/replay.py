"""Say again, in our log, what the log of another history says.

- Content is put, unless the other log itself hides it in the end. Nothing of ours is hidden.
- Structures and results are told, unless we know them.
- A name is bound below `@` and the id of its history, with where it is from: `history`, `position`
  and `time`. What an entry says under these keys already, because it came from a third history, is
  kept under `before`.
- `Imported` is repeated. Snapshots and sweeps are the other's own, and are not; nor is what a
  later version may have added.

Each commit ends with how far it goes: an `Imported` in the last place is ours, one before that is
the other's.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from perdure.artifacts.archive import Archive, refusing
from perdure.artifacts.catalogue import Catalogue
from perdure.artifacts.draft import Content, Draft
from perdure.artifacts.entry import (
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
from perdure.artifacts.frame import FIRST_SEAL
from perdure.artifacts.journal import Journal
from perdure.artifacts.log import Stream
from perdure.artifacts.names import foreign_name, is_foreign
from perdure.artifacts.records import only_puts, raw_entries
from perdure.artifacts.segment import End, Frame
from perdure.artifacts.store import ArtifactStore
from perdure.artifacts.survey import SLICE, Placed, placed
from perdure.errors import ArchiveError, InvalidArtifactError

if TYPE_CHECKING:
    from perdure.artifacts.canonical import Value

_MOST_AT_ONCE = 8 << 20
_IMPORTED = 9
_ORIGIN = ("history", "position", "time")
_BEFORE = "before"


class _OvertakenError(Exception):
    """Another process has taken in some of the same archive."""


class Replay:
    """Takes in what an archive has more than was taken in of it before."""

    def __init__(self, store: ArtifactStore, archive: Archive, show: Callable[[int], None]) -> None:
        self._store = store
        self._journal: Journal = store._journal  # noqa: SLF001 - this is the store's own verb
        self._archive = archive
        self._show = show
        self._cursors = _Cursors(self._journal, archive.history)
        self._entries = 0

    def run(self) -> int:
        """Return how many entries our log has more for it."""
        while True:
            cursor = self._begin()
            if cursor.position >= self._archive.end.position:
                return self._entries
            try:
                self._replay_from(cursor)
            except _OvertakenError:
                continue

    def _begin(self) -> Imported:
        """Return how far the archive was taken in already."""
        cursors = self._cursors
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
        if cursors.newest >= fork[0]:
            fork = cursors.newest, cursors.seals.get(cursors.newest, FIRST_SEAL)
        return Imported(self._archive.history, *fork)

    def _fork(self) -> tuple[int, bytes]:
        """Return the last commit that both have; there is one if it began as a copy of ours."""
        log, fork = self._journal.log, (0, FIRST_SEAL)
        if log.history == self._archive.history:
            both = zip(log.frames(log.start_of(0)), self._archive.frames(), strict=False)
            for ours, theirs in both:
                if ours.seal != theirs.seal:
                    break
                fork = theirs.head.last_position, theirs.seal
        return fork

    def _replay_from(self, cursor: Imported) -> None:
        for batch in _Retelling(self._archive, cursor).batches():
            self._commit(batch, cursor)
            cursor = batch.cursor
            self._show(cursor.position)

    def _commit(self, batch: "_Batch", before: Imported) -> None:
        written = 0

        def plan(draft: Draft) -> None:
            nonlocal written
            self._cursors.follow(self._journal.log.end.position)
            if self._cursors.newest > before.position:
                raise _OvertakenError
            batch.plan(draft, self._store.catalogue)
            if draft.records or batch.cursor != before:
                draft.append(batch.cursor)
            written = len(draft.records)

        self._journal.commit(plan, alone=True)
        self._entries += written


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
        """By position."""

    @property
    def newest(self) -> int:
        return max(self.seals, default=0)

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


class _Retelling:
    """The entries of another's log after a position, as we say them."""

    def __init__(self, archive: Archive, cursor: Imported) -> None:
        self._archive = archive
        self._cursor = cursor
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
        put, archive = found.put, self._archive
        if put.length <= SLICE:
            return Content(put.cid, put.crc, b"".join(archive.content(found.segment, put)))
        slices = Stream(put.length, lambda: archive.content(found.segment, put))
        return Content(put.cid, put.crc, slices)

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
        name = bind.name if is_foreign(bind.name) else foreign_name(history, bind.name)
        return Bind(name, bind.cid, said)


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
