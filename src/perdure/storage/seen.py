"""What was last seen of each text, so that a scan finds what others wrote since.

The table is derived. Without it everything is looked at again, and nothing else is lost.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from typing import Final, NamedTuple

from perdure.dataclass import dataclass, field
from perdure.errors import (
    AccessRefusedError,
    LinkRefusedError,
    NotTextError,
)
from perdure.files import Closeable
from perdure.sqlite import DerivedDatabase, Schema, SqliteFile
from perdure.storage.confined import modified_in
from perdure.storage.contract import ROOT, Skip, Stamp, StorageBackend, refuse_loss
from perdure.storage.locator import Locator

SEEN = "seen.sqlite"
"""The file of the table, beside a history."""
_BATCH = 256

UNKNOWN: Final = b""
"""The stamp of a text whose content must be compared; the digest of one that is not a text."""

_VERSION = 2
TABLES = Schema(
    name="the table of seen texts",
    version=_VERSION,
    statements=(
        """CREATE TABLE seen (
            directory TEXT NOT NULL, name TEXT NOT NULL, stamp BLOB NOT NULL,
            digest BLOB NOT NULL, PRIMARY KEY (directory, name)
        ) WITHOUT ROWID""",
        "CREATE TABLE note (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        f"PRAGMA user_version = {_VERSION}",
    ),
    loss="every text is then read once more",
)
_PUT = "INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?)"
_DROP = "DELETE FROM seen WHERE directory = ? AND name = ?"
_STAMPS = "SELECT directory, name, stamp FROM seen"
_ROWS = "SELECT directory, name, stamp, digest FROM seen"
_GOES_ON = "goes on at"
_RULE = "rule"
_LOOKED = "looked"
_LEAST_COMPARED = 500
"""So many contents are compared in any case, so that each check gets on."""


Stamps = Mapping[str, Mapping[str, Stamp]]
"""The stamps of texts, by directory and name."""


class Row(NamedTuple):
    key: str
    stamp: Stamp
    digest: bytes
    """The sha256 of its content; `UNKNOWN` if it is not a text."""


class Seen(Closeable):
    """The table. Threads and processes may share it; without a path it is in memory."""

    def __init__(self, path: str = "") -> None:
        self._file = DerivedDatabase(path, TABLES)
        self._stamps: dict[str, dict[str, Stamp]] = {}
        self.notes: Mapping[str, str] = {}
        """What was noted under each name, as of when the stamps were last asked for."""
        self._as_of: tuple[object, int] | None = None

    def close(self) -> None:
        self._file.close()

    def discard(self) -> None:
        """Begin with an empty table; no byte of the old one is left under its name."""
        self._file.discard()

    # ------------------------------------------------------------ reading
    def rows(self, keys: Iterable[str] | None = None) -> list[Row]:
        """Return the rows of some keys, or all of them."""
        if keys is None:
            return self._asked(_ROWS, [()])
        return self._asked(f"{_ROWS} WHERE directory = ? AND name = ?", map(_halves, keys))

    def newer(self, mtime: float, backend: StorageBackend) -> Iterator[str]:
        """Yield the keys of texts newer than a time; asked is one whose stamp does not tell."""
        for directory, stamps in self.stamps().items():
            for name, stamp in stamps.items():
                key, modified = _joined(directory, name), modified_in(stamp)
                if modified is None:
                    with suppress(FileNotFoundError):  # removed since it was seen
                        modified = backend.info(Locator(key)).mtime
                if modified is not None and modified > mtime:
                    yield key

    def size(self, most: int) -> int:
        """Return how many rows there are, counted as far as `most`."""
        return int(self._one("SELECT count(*) FROM (SELECT 1 FROM seen LIMIT ?)", most) or 0)

    @property
    def looked(self) -> float:
        """When the last check began that was given all the time it took; 0.0 if none was."""
        return float(self._one("SELECT value FROM note WHERE name = ?", _LOOKED) or 0.0)

    @property
    def has_unreadable(self) -> bool:
        """Whether a file that was seen is not a text, or may not be read."""
        return self._one("SELECT 1 FROM seen WHERE length(digest) = ? LIMIT 1", 0) is not None

    def note(self, name: str) -> str:
        """Return what was noted under a name; empty if nothing was."""
        return self._one("SELECT value FROM note WHERE name = ?", name) or ""

    def _one(self, asked: str, value: str | int) -> str | None:
        def ask(file: SqliteFile) -> str | None:
            with file.connection() as db:
                return next((str(found) for (found,) in db.execute(asked, (value,))), None)

        return self._file.run(ask)

    def stamps(self) -> Stamps:
        """Return the stamps by directory and name. Rows are read again if others changed them."""

        def load(file: SqliteFile) -> Stamps:
            with file.connection() as db:
                ((version,),) = db.execute("PRAGMA data_version")
                if self._as_of is None or self._as_of[0] is not db or self._as_of[1] != version:
                    stamps = defaultdict[str, dict[str, Stamp]](dict)
                    for directory, name, stamp in db.execute(_STAMPS):
                        stamps[directory][name] = stamp
                    self._stamps = dict(stamps)
                    self.notes = dict(db.execute("SELECT name, value FROM note"))
                    self._as_of = db, version
                return self._stamps

        return self._file.run(load)

    def _asked(self, statement: str, asked: Iterable[tuple[str, ...]]) -> list[Row]:
        def ask(file: SqliteFile) -> list[Row]:
            with file.connection() as db:
                found = (row for values in questions for row in db.execute(statement, values))
                return [Row(_joined(directory, name), *rest) for directory, name, *rest in found]

        questions = list(asked)
        return self._file.run(ask)

    # ------------------------------------------------------------ changing
    def put(self, rows: Iterable[Row]) -> None:
        self.change(list(rows), ())

    def change(
        self, rows: Sequence[Row], gone: Sequence[str], notes: Mapping[str, str] | None = None
    ) -> None:
        """Put rows and drop others in one transaction; it may be lost with the power."""
        noted = notes or {}

        def store(file: SqliteFile) -> None:
            with file.transaction(durable=False) as db:
                db.executemany(_DROP, map(_halves, gone))
                db.executemany(_PUT, ((*_halves(row.key), *row[1:]) for row in rows))
                db.executemany("INSERT OR REPLACE INTO note VALUES (?, ?)", noted.items())
            self._follow(rows, gone, noted)

        if rows or gone or notes:
            self._file.run(store)

    def _follow(self, rows: Sequence[Row], gone: Sequence[str], notes: Mapping[str, str]) -> None:
        """Keep what was read in step; who is looking at it keeps what they have."""
        touched = {_halves(key)[0] for key in (*gone, *(row.key for row in rows))}
        stamps = {directory: {**self._stamps.get(directory, {})} for directory in touched}
        for directory, name in map(_halves, gone):
            stamps[directory].pop(name, None)
        for row in rows:
            directory, name = _halves(row.key)
            stamps[directory][name] = row.stamp
        self._stamps = {**self._stamps, **stamps}
        self.notes = {**self.notes, **notes}


def _halves(key: str) -> tuple[str, str]:
    directory, _, name = key.rpartition("/")
    return directory, name


def _joined(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found. Once that is recorded, `settle` lets the next check know."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Found only by a check that looked at everything."""
    unreadable: tuple[str, ...] = ()
    """Directories that may not be read; once each, files that are not texts or may not be read."""
    closed: int = 0
    """How many of the unreadable are directories."""
    left: int = 0
    """How many texts were not looked at, or not compared, within the time; 0 if all were."""
    rows: tuple[Row, ...] = ()
    """What to remember of texts that were compared."""
    gone: tuple[str, ...] = ()
    """What to forget: texts that are not there any more."""
    goes_on: str = ""
    """The directory at which the next check begins."""
    rule: str = ""
    """Which files were taken."""

    @property
    def found(self) -> tuple[str, ...]:
        return (*self.removed, *self.changed, *self.new)


class Taking(NamedTuple):
    """Which files hold texts, by their keys."""

    matches: Skip
    rule: str
    """Differs where other files match; else a file that was seen is not asked about again."""


Expected = Callable[[Sequence[str]], Mapping[str, bytes | None]]
"""Returns the digests of what we last wrote at some keys; None where that is nothing."""


def settle(seen: Seen, checked: Checked, began: float | None = None) -> None:
    """Remember what a check found, once that is recorded; and since when nothing was missed."""
    before, notes = seen.notes, {} if began is None else {_LOOKED: repr(began)}
    if before.get(_GOES_ON, "") != checked.goes_on:
        notes[_GOES_ON] = checked.goes_on
    if not checked.left and before.get(_RULE, "") != checked.rule:
        notes[_RULE] = checked.rule
    if checked.rows or checked.gone or notes:
        seen.change(checked.rows, checked.gone, notes)


def check(  # noqa: PLR0913 - what is compared with what, and within which bounds
    backend: StorageBackend,
    seen: Seen,
    *,
    deadline: float | None = None,
    directory: Locator = ROOT,
    skip: Skip = lambda _: False,
    takes: Taking | None = None,
    expected: Expected | None = None,
    accept_removals: bool = False,
    clock: Callable[[], float] = time.monotonic,
    known: Stamps | None = None,
) -> Checked:
    """Compare every text with what was last seen of it. Nothing is changed, not even `seen`.

    Stamps are compared, and contents where stamps differ or can't tell. Without `expected`, a
    change is what differs from the content that was seen; else, what differs from that. After the
    `deadline`, a time of `clock`, the rest is left to the next check, which begins there; a
    directory that was begun is finished. Files that are not taken are never read, and removed if
    they were taken before. `known` are the stamps, if they were just asked for.

    `TextsGoneError` if more than a tenth of the texts are gone and were not moved, or all of them
    are, unless that is accepted.
    """
    found = _scan(backend, seen, _Bounds(directory, skip, takes, deadline, clock, known))
    asked = [*found.differing, *found.missing]
    ours = None if expected is None else expected(asked) if asked else {}
    before = {row.key: row for row in seen.rows(asked)} if asked else {}
    new, changed, rows = list[str](), list[str](), list[Row]()
    compared, closed = 0, len(found.unreadable)
    for key, stamp in found.differing.items():
        if compared >= _LEAST_COMPARED and found.bounds.is_late():
            break
        compared += 1
        digest, row = _digest(backend, key), before.get(key)
        if digest is None:  # removed since the scan met it, so the next one misses it
            continue
        seen_before = None if row is None else row.digest
        now = Row(key, stamp, digest)
        if now != row:
            rows.append(now)
        reference = seen_before if ours is None else ours.get(key)
        if digest == UNKNOWN:
            if seen_before != UNKNOWN:
                found.unreadable.append(key)
        elif digest != reference:
            (new if reference is None else changed).append(key)
    gone = [] if found.left else found.missing
    removed = [key for key in gone if ours is None or ours.get(key) is not None]
    if not accept_removals:
        arrived = set(new)
        moved = Counter(row.digest for row in rows if row.key in arrived)
        taken = [key for key in removed if takes is None or takes.matches(key)]
        there = [before[key] for key in taken if key in before]  # others may note it meanwhile
        if lost := [row.key for row in there if not was_moved(row.digest, moved)]:
            refuse_loss(backend, lost, known=found.met + len(lost), met=found.met)
    return Checked(
        new=tuple(sorted(new)),
        changed=tuple(sorted(changed)),
        removed=tuple(removed),
        unreadable=tuple(found.unreadable),
        closed=closed,
        left=found.left + len(found.differing) - compared,
        rows=tuple(rows),
        gone=tuple(gone),
        goes_on=found.goes_on,
        rule=takes.rule if takes else "",
    )


def was_moved(digest: bytes, moved: Counter[bytes]) -> bool:
    """Whether a text that is gone arrived elsewhere; each arrival counts once."""
    moved[digest] -= 1
    return moved[digest] >= 0


def _digest(backend: StorageBackend, key: str) -> bytes | None:
    try:
        return sha256(backend.read(Locator(key)).encode()).digest()
    except (FileNotFoundError, IsADirectoryError):
        return None
    except (NotTextError, LinkRefusedError, AccessRefusedError):
        return UNKNOWN


class _Bounds(NamedTuple):
    directory: Locator
    skip: Skip
    takes: Taking | None
    deadline: float | None
    clock: Callable[[], float]
    known: Stamps | None

    def is_late(self) -> bool:
        return self.deadline is not None and self.clock() > self.deadline


@dataclass(slots=True)
class _Scan:
    bounds: _Bounds
    is_other_rule: bool = False
    """Whether other files may be taken than when these were seen."""
    met: int = 0
    differing: dict[str, Stamp] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    goes_on: str = ""
    left: int = 0

    def compare(
        self, directory: str, stamps: Mapping[str, Stamp], known: Mapping[str, Stamp]
    ) -> None:
        if self.is_other_rule:
            names = [name for name in stamps if self._takes(_joined(directory, name))]
            stamps = {name: stamps[name] for name in names}
        self.met += len(stamps)
        if stamps == known and UNKNOWN not in stamps.values():
            return
        for name, stamp in stamps.items():
            if not stamp or known.get(name) != stamp:
                key = _joined(directory, name)
                if self._takes(key):
                    self.differing[key] = stamp
        self.missing += [_joined(directory, name) for name in known.keys() - stamps.keys()]

    def _takes(self, key: str) -> bool:
        return self.bounds.takes is None or self.bounds.takes.matches(key)


def _scan(backend: StorageBackend, seen: Seen, bounds: _Bounds) -> _Scan:
    """Look at every stamp, first from where the check before was out of time."""
    rule = bounds.takes.rule if bounds.takes else ""
    known, entered = seen.stamps() if bounds.known is None else bounds.known, set[str]()
    notes, deadline, clock = seen.notes, bounds.deadline, bounds.clock
    start = notes.get(_GOES_ON, "")
    found = _Scan(bounds, notes.get(_RULE, "") != rule)
    for skip in _passes(start, bounds.skip) if start else (bounds.skip,):
        for locator, stamps in backend.scan(bounds.directory, skip=skip):
            directory = locator.key
            if directory in entered:
                continue
            is_late = deadline is not None and clock() > deadline
            if is_late and not f"{start}/".startswith(f"{directory}/"):
                found.goes_on = directory
                found.left = max(1, sum(len(known[each]) for each in known.keys() - entered))
                return found
            entered.add(directory)
            if stamps is None:
                found.unreadable.append(directory)
            else:
                found.compare(directory, stamps, known.get(directory) or {})
    closed = tuple(f"{directory}/" for directory in found.unreadable)
    for directory in known.keys() - entered:
        if not f"{directory}/".startswith(closed):
            found.missing += [_joined(directory, name) for name in known[directory]]
    found.missing.sort()
    return found


def _passes(start: str, skip: Skip) -> Sequence[Skip]:
    """Return what leaves out the directories before `start`, then those from there on."""
    begin = tuple(start.split("/"))

    def skip_before(key: str) -> bool:
        parts = tuple(key.split("/"))
        return parts < begin[: len(parts)] or skip(key)

    def skip_rest(key: str) -> bool:
        return tuple(key.split("/")) >= begin or skip(key)

    return skip_before, skip_rest


def batches(locators: Iterable[Locator]) -> Iterator[list[Locator]]:
    """Yield as many as are recorded in one commit, and again."""
    rest = iter(locators)
    while batch := list(islice(rest, _BATCH)):
        yield batch
