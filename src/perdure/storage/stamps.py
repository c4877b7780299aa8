"""The stamps of texts as they were last seen, so that a scan finds what others wrote since.

The table is derived. Without it every text is read again, and nothing else is lost.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from typing import Final, NamedTuple

from perdure.dataclass import dataclass, field
from perdure.errors import AccessRefusedError, LinkRefusedError, NotTextError
from perdure.files import Closeable
from perdure.sqlite import DerivedDatabase, Schema, SqliteFile
from perdure.storage.contract import ROOT, Skip, Stamp, StorageBackend, refuse_loss
from perdure.storage.locator import Locator
from perdure.storage.openat import modified_in

STAMPS_FILE = "seen.sqlite"
"""The file of the table, beside a history."""
_BATCH = 256

UNKNOWN: Final = b""
"""The stamp of a text whose content must be compared; the digest of a file that is not a text."""

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
_RESUME_AT = "goes on at"
_RULE = "rule"
_LAST_FULL_SCAN = "looked"
_LEAST_COMPARED = 500
"""Compare at least this many contents, so that each scan makes progress."""


Stamps = Mapping[str, Mapping[str, Stamp]]
"""The stamps of texts, by directory and name."""


class StampRow(NamedTuple):
    key: str
    stamp: Stamp
    digest: bytes
    """The sha256 of its content; `UNKNOWN` if it is not a text."""


class StampTable(Closeable):
    """The table. Threads and processes may share it; without a path it is in memory."""

    def __init__(self, path: str = "") -> None:
        self._file = DerivedDatabase(path, TABLES)
        self._stamps: dict[str, dict[str, Stamp]] = {}
        self.notes: Mapping[str, str] = {}
        """Values by name, as of the last call of `stamps`."""
        self._as_of: tuple[object, int] | None = None

    def close(self) -> None:
        self._file.close()

    def discard(self) -> None:
        """Start an empty table; no byte of the old one is left under its name."""
        self._file.discard()

    # ------------------------------------------------------------ reading
    def rows(self, keys: Iterable[str] | None = None) -> list[StampRow]:
        """Return the rows of some keys, or all of them."""
        where = "" if keys is None else " WHERE directory = ? AND name = ?"
        parameters: list[tuple[str, ...]] = [()] if keys is None else [*map(_split, keys)]

        def read(file: SqliteFile) -> list[StampRow]:
            with file.connection() as db:
                found = (row for each in parameters for row in db.execute(_ROWS + where, each))
                return [StampRow(_joined(folder, name), *rest) for folder, name, *rest in found]

        return self._file.run(read)

    def newer(self, mtime: float, backend: StorageBackend) -> Iterator[str]:
        """Yield the keys of texts newer than a time; the backend is asked if a stamp has none."""
        for directory, stamps in self.stamps().items():
            for name, stamp in stamps.items():
                key, modified = _joined(directory, name), modified_in(stamp)
                if modified is None:
                    with suppress(FileNotFoundError):  # removed since it was seen
                        modified = backend.info(Locator(key)).mtime
                if modified is not None and modified > mtime:
                    yield key

    def size(self, most: int) -> int:
        """Return the number of rows, counted up to `most`."""
        return int(self._one("SELECT count(*) FROM (SELECT 1 FROM seen LIMIT ?)", most) or 0)

    @property
    def last_full_scan(self) -> float:
        """When the last scan without a deadline began; 0.0 if there was none."""
        return float(self.note(_LAST_FULL_SCAN) or 0.0)

    @property
    def has_unreadable(self) -> bool:
        """Whether a file that was seen is not a text, or may not be read."""
        return self._one("SELECT 1 FROM seen WHERE length(digest) = ? LIMIT 1", 0) is not None

    def note(self, name: str) -> str:
        """Return the value that was stored under a name; empty if there is none."""
        return self._one("SELECT value FROM note WHERE name = ?", name) or ""

    def _one(self, query: str, parameter: str | int) -> str | None:
        def read(file: SqliteFile) -> str | None:
            with file.connection() as db:
                return next((str(found) for (found,) in db.execute(query, (parameter,))), None)

        return self._file.run(read)

    def stamps(self) -> Stamps:
        """Return the stamps by directory and name, read again if another process changed them."""

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

    # ------------------------------------------------------------ changing
    def put(self, rows: Iterable[StampRow]) -> None:
        self.change(list(rows), ())

    def change(
        self,
        rows: Sequence[StampRow],
        gone: Sequence[str],
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Put rows and drop others in one transaction; a power cut may undo it."""
        new_notes = notes or {}

        def store(file: SqliteFile) -> None:
            with file.transaction(durable=False) as db:
                db.executemany(_DROP, map(_split, gone))
                db.executemany(_PUT, ((*_split(row.key), *row[1:]) for row in rows))
                db.executemany("INSERT OR REPLACE INTO note VALUES (?, ?)", new_notes.items())
            self._update_loaded(rows, gone)
            self.notes = {**self.notes, **new_notes}

        if rows or gone or notes:
            self._file.run(store)

    def _update_loaded(self, rows: Sequence[StampRow], gone: Sequence[str]) -> None:
        """Apply a change to the loaded stamps, in new mappings: a scan may be using the old."""
        touched = {_split(key)[0] for key in (*gone, *(row.key for row in rows))}
        stamps = {directory: {**self._stamps.get(directory, {})} for directory in touched}
        for directory, name in map(_split, gone):
            stamps[directory].pop(name, None)
        for row in rows:
            directory, name = _split(row.key)
            stamps[directory][name] = row.stamp
        self._stamps = {**self._stamps, **stamps}


def _split(key: str) -> tuple[str, str]:
    directory, _, name = key.rpartition("/")
    return directory, name


def _joined(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


# ---------------------------------------------------------------- scans
@dataclass(frozen=True, slots=True)
class ScanResult:
    """What a scan found. Record the changes first, then call `save_scan`."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Empty if the scan did not reach every directory."""
    unreadable: tuple[str, ...] = ()
    """Directories that may not be read; once each, files that are not texts or may not be read."""
    closed: int = 0
    """How many of the unreadable are directories; they come first."""
    left: int = 0
    """How many texts were not scanned or compared before the deadline."""
    rows: tuple[StampRow, ...] = ()
    """Rows to store, of texts that were compared."""
    gone: tuple[str, ...] = ()
    """Keys to drop: their texts are not there any more."""
    resume_at: str = ""
    """The directory at which the next scan begins."""
    rule: str = ""
    """The rule of the file filter."""

    @property
    def found(self) -> tuple[str, ...]:
        return (*self.removed, *self.changed, *self.new)


class FileFilter(NamedTuple):
    """Which files hold texts, by their keys."""

    matches: Skip
    rule: str
    """Changes whenever other files match; while it is the same, seen files match."""


Expected = Callable[[Sequence[str]], Mapping[str, bytes | None]]
"""Returns the digests of what we last wrote at some keys; None where that is nothing."""


def save_scan(seen: StampTable, result: ScanResult, started: float | None = None) -> None:
    """Store the result of a scan, once its changes are recorded; `started` if it was a full one."""
    before, notes = seen.notes, {} if started is None else {_LAST_FULL_SCAN: repr(started)}
    if before.get(_RESUME_AT, "") != result.resume_at:
        notes[_RESUME_AT] = result.resume_at
    if not result.left and before.get(_RULE, "") != result.rule:
        notes[_RULE] = result.rule
    if result.rows or result.gone or notes:
        seen.change(result.rows, result.gone, notes)


def find_changes(  # noqa: PLR0913 - what is compared with what, and within which bounds
    backend: StorageBackend,
    seen: StampTable,
    *,
    deadline: float | None = None,
    directory: Locator = ROOT,
    skip: Skip = lambda _: False,
    file_filter: FileFilter | None = None,
    expected: Expected | None = None,
    accept_removals: bool = False,
    clock: Callable[[], float] = time.monotonic,
    known: Stamps | None = None,
) -> ScanResult:
    """Compare every text with what was last seen of it. Changes nothing, not even `seen`.

    Stamps are compared, and contents where stamps differ or can't tell. A change is a content that
    differs from what `expected` returns; without it, from what was seen. After the `deadline`, a
    time of `clock`, the rest is left to the next scan, which begins there; a directory that was
    begun is finished. Files that the filter does not match are never read, and count as removed if
    they matched before. `known` are the stamps of `seen`, if the caller has them.

    `TextsGoneError` if more than a tenth of the texts are gone and were not moved, or all of them
    are, unless that is accepted.
    """
    scan = _Scan(file_filter, deadline, clock, seen.stamps() if known is None else known)
    scan.run(backend, directory, skip, seen.notes)
    keys = [*scan.differing, *scan.missing]
    ours = None if expected is None else expected(keys) if keys else {}
    before = {row.key: row for row in seen.rows(keys)} if keys else {}
    new, changed, rows = list[str](), list[str](), list[StampRow]()
    compared, closed = 0, len(scan.unreadable)
    for key, stamp in scan.differing.items():
        if compared >= _LEAST_COMPARED and scan.is_late():
            break
        compared += 1
        digest, row = _digest(backend, key), before.get(key)
        if digest is None:  # removed since it was listed; the next scan misses it
            continue
        seen_before = None if row is None else row.digest
        now = StampRow(key, stamp, digest)
        if now != row:
            rows.append(now)
        reference = seen_before if ours is None else ours.get(key)
        if digest == UNKNOWN:
            if seen_before != UNKNOWN:
                scan.unreadable.append(key)
        elif digest != reference:
            (new if reference is None else changed).append(key)
    gone = [] if scan.left else scan.missing
    removed = [key for key in gone if ours is None or ours.get(key) is not None]
    if not accept_removals:
        arrived = set(new)
        moved = Counter(row.digest for row in rows if row.key in arrived)
        # A row may be missing because another process dropped it meanwhile.
        rows_gone = [before[key] for key in removed if key in before and scan.matches(key)]
        if lost := [row.key for row in rows_gone if not was_moved(row.digest, moved)]:
            refuse_loss(backend, lost, known=scan.met + len(lost), met=scan.met)
    return ScanResult(
        new=tuple(sorted(new)),
        changed=tuple(sorted(changed)),
        removed=tuple(removed),
        unreadable=tuple(scan.unreadable),
        closed=closed,
        left=scan.left + len(scan.differing) - compared,
        rows=tuple(rows),
        gone=tuple(gone),
        resume_at=scan.resume_at,
        rule=file_filter.rule if file_filter else "",
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


@dataclass(slots=True)
class _Scan:
    """A comparison of all stamps, and what differed so far."""

    file_filter: FileFilter | None
    deadline: float | None
    clock: Callable[[], float]
    known: Stamps
    met: int = 0
    differing: dict[str, Stamp] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    resume_at: str = ""
    left: int = 0

    def run(
        self, backend: StorageBackend, root: Locator, skip: Skip, notes: Mapping[str, str]
    ) -> None:
        """Compare every stamp, first from where the scan before reached its deadline."""
        known, entered, deadline, clock = self.known, set[str](), self.deadline, self.clock
        start = notes.get(_RESUME_AT, "")
        rule = self.file_filter.rule if self.file_filter else ""
        is_other_rule = notes.get(_RULE, "") != rule
        for each_skip in _passes(start, skip) if start else (skip,):
            for locator, stamps in backend.scan(root, skip=each_skip):
                directory = locator.key
                if directory in entered:
                    continue
                is_late = deadline is not None and clock() > deadline
                if is_late and not f"{start}/".startswith(f"{directory}/"):
                    self.resume_at = directory
                    self.left = max(1, sum(len(known[each]) for each in known.keys() - entered))
                    return
                entered.add(directory)
                if stamps is None:
                    self.unreadable.append(directory)
                    continue
                if is_other_rule:  # a file that was seen may not match any more
                    names = [name for name in stamps if self.matches(_joined(directory, name))]
                    stamps = {name: stamps[name] for name in names}  # noqa: PLW2901 - fewer of them
                self._compare(directory, stamps, known.get(directory) or {})
        closed = tuple(f"{directory}/" for directory in self.unreadable)
        for directory in known.keys() - entered:
            if not f"{directory}/".startswith(closed):
                self.missing += [_joined(directory, name) for name in known[directory]]
        self.missing.sort()

    def _compare(
        self, directory: str, stamps: Mapping[str, Stamp], known: Mapping[str, Stamp]
    ) -> None:
        self.met += len(stamps)
        if stamps == known and UNKNOWN not in stamps.values():
            return
        for name, stamp in stamps.items():
            if not stamp or known.get(name) != stamp:
                key = _joined(directory, name)
                if self.matches(key):
                    self.differing[key] = stamp
        self.missing += [_joined(directory, name) for name in known.keys() - stamps.keys()]

    def is_late(self) -> bool:
        return self.deadline is not None and self.clock() > self.deadline

    def matches(self, key: str) -> bool:
        return self.file_filter is None or self.file_filter.matches(key)


def _passes(start: str, skip: Skip) -> Sequence[Skip]:
    """Return filters for two passes: from the directory `start` on, then those before it."""
    begin = tuple(start.split("/"))

    def skip_before(key: str) -> bool:
        segments = tuple(key.split("/"))
        return segments < begin[: len(segments)] or skip(key)

    def skip_rest(key: str) -> bool:
        return tuple(key.split("/")) >= begin or skip(key)

    return skip_before, skip_rest


def batches(locators: Iterable[Locator]) -> Iterator[list[Locator]]:
    """Yield the locators in groups that are recorded in one commit each."""
    rest = iter(locators)
    while batch := list(islice(rest, _BATCH)):
        yield batch
