"""The catalogue: names, structures and results of the log, in a database.

It is derived. A file that is damaged, of another version, of another history or ahead of its log is
deleted and built again; where no file can be used, the database is in memory.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from perdure.artifacts.artifact import SID, decode_canonical, literal_structure
from perdure.artifacts.catalogue_file import (
    CatalogueFile,
    CatalogueHeader,
    CatalogueInMemory,
    literal_sid,
    short_hash,
    split_name,
)
from perdure.artifacts.cid import CID
from perdure.artifacts.entry import Binding, IndexState, LogEntry
from perdure.errors import (
    DamageError,
    InvalidArtifactError,
    InvalidCIDError,
    PerdureError,
    StorageError,
)
from perdure.sqlite import discard

_BINDINGS = """SELECT position, "commit",
        (SELECT time FROM commits WHERE position = binds."commit"), cid,
        (SELECT encoded FROM circumstances WHERE id = binds.circumstances) FROM binds
    WHERE folder = (SELECT id FROM folders WHERE name = :folder) AND name = :name
        AND position <= :at AND "commit" <= :at ORDER BY position"""
_LAST = f"{_BINDINGS} DESC LIMIT 1"
_EACH_LAST = """WITH asked(folder, name) AS (VALUES {}) SELECT asked.folder || asked.name, (
        SELECT cid FROM binds WHERE folder = (SELECT id FROM folders WHERE name = asked.folder)
            AND name = asked.name AND position <= ? AND "commit" <= ?
        ORDER BY position DESC LIMIT 1) FROM asked"""
# Steps from name to name in one folder, so that the number of versions does not matter.
_NAMES = """WITH RECURSIVE step(name) AS (
        SELECT min(name) FROM binds WHERE folder = :folder AND name >= :start AND name < :stop
        UNION ALL
        SELECT (SELECT min(name) FROM binds
            WHERE folder = :folder AND name > step.name AND name < :stop)
        FROM step WHERE step.name IS NOT NULL)
    SELECT name FROM step WHERE name IS NOT NULL AND (
        SELECT cid FROM binds WHERE folder = :folder AND name = step.name
            AND position <= :at AND "commit" <= :at
        ORDER BY position DESC LIMIT 1) IS NOT NULL"""
_FOLDERS = "SELECT id, name FROM folders WHERE name >= ? AND name < ? ORDER BY name"
_LITERALS = """SELECT cid FROM literals WHERE sid = :sid AND cid IS NOT NULL UNION ALL
    SELECT binds.cid FROM literals CROSS JOIN binds INDEXED BY binds_by_position
    WHERE sid = :sid AND literals.cid IS NULL AND binds.position > literals.position
        AND binds.position <= (SELECT min(position) FROM commits
            WHERE position >= literals.position)"""
_COMMIT = "SELECT position, time FROM commits WHERE position <= ? ORDER BY position DESC LIMIT 1"
_AFTER_EVERY_TEXT = b""  # SQLite sorts bytes after text
_BATCH = 20_000
_MOST_PARAMETERS = 500
_ATTEMPTS = 3
_NO_END = 2**63 - 1

Answer = TypeVar("Answer")


class LogSource(Protocol):
    @property
    def history(self) -> bytes:
        """The id of the history; empty until something is logged."""

    def current(self) -> IndexState: ...

    def log(self, after: int = 0) -> Iterator[LogEntry]: ...


class Catalogue:
    """Queries by name on a history. Threads and processes may share its file.

    A result is as new as the last `follow`. A position inside a commit means the last commit
    before it.
    """

    def __init__(
        self, source: LogSource, path: str | None = None, *, patience: float = 10.0
    ) -> None:
        self._source = source
        self._path = path
        self._patience = patience
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        # Never held during a call of the source, which calls the catalogue under its own locks.
        self._guard = threading.RLock()
        self._database: CatalogueFile | None = None

    def close(self) -> None:
        """Close the file. The next query opens it again."""
        with self._locked():
            if self._database is not None:
                self._database.close()
            self._database = None

    def __del__(self) -> None:
        if self._database is not None and self._pid == os.getpid():
            self._database.close()

    # ------------------------------------------------------------ following
    def follow(self) -> int:
        """Add the entries of the log that are missing; return the position reached."""
        return self._retry(self._catch_up)

    def _catch_up(self) -> int:
        known, end = self._followed(), self._source.current().position
        if end == (known.cursor if known else 0):  # an empty log needs no file
            return end
        for _ in range(_ATTEMPTS):
            header = known or self._on(CatalogueFile.header)
            if header.cursor > end:
                raise self._discarded(_not_of_the_log())
            # If another process wrote the file, its last entry is compared with the log again, to
            # check that it is the log that was followed so far.
            after = header.cursor if known else max(0, header.cursor - 1)
            for batch in _batches(self._source.log(after=after)):
                header = self._append(batch, end)
            if header.cursor >= end:
                return header.cursor
            known, end = None, self._source.current().position
        raise _unfollowable()

    def _append(self, batch: list[LogEntry], end: int) -> CatalogueHeader:
        """Add entries; once those up to `end` are there, the file has followed the log."""
        history = self._source.history

        def change(database: CatalogueFile) -> CatalogueHeader:
            header = database.append(batch, history)
            before = database.followed
            if header.cursor >= end and (before is None or before.cursor < header.cursor):
                database.followed = header
            return header

        return self._on(change)

    def _followed(self) -> CatalogueHeader | None:
        """Return the header after the last `follow` with the open file; None before that."""
        database = self._database if self._pid == os.getpid() else None
        return None if database is None else database.followed

    # ------------------------------------------------------------ names
    def last_binding(self, name: str, position: int) -> Binding | None:
        """Return the last binding of `name`; None if it was never bound."""
        found = self._bindings(_LAST, name, position)
        return found[0] if found else None

    def content(self, name: str, position: int) -> CID | None:
        """Return what `name` was bound to; None if to nothing."""
        wanted = _named(name, position)
        return self._answer(lambda database: _content(database.ask(_LAST, wanted)))

    def contents(self, names: Sequence[str], position: int) -> dict[str, CID | None]:
        found: dict[str, CID | None] = {}
        for start in range(0, len(names), _MOST_PARAMETERS):
            asked = names[start : start + _MOST_PARAMETERS]
            found |= self._answer(partial(_contents, names=asked, position=position))
        return found

    def versions(self, name: str, position: int) -> list[Binding]:
        """Return all bindings of `name`, oldest first."""
        return self._bindings(_BINDINGS, name, position)

    def _bindings(self, query: str, name: str, position: int) -> list[Binding]:
        wanted = _named(name, position)
        return self._answer(
            lambda database: [_binding(name, row) for row in database.ask(query, wanted)]
        )

    def count_versions(self, position: int) -> int:
        """Return the number of bindings of all names."""
        query = "SELECT count(*) FROM binds WHERE position <= ?"
        rows = self._ask(query, (position,))
        return int(rows[0][0]) if rows else 0

    def names(self, prefix: str, position: int) -> list[str]:
        """Return the bound names with this prefix, in key order."""
        return self._answer(lambda database: sorted(_names(database, prefix, position)))

    def ever_named(self, prefix: str, position: int) -> bool:
        """Whether a name with this prefix was bound up to a position."""
        query = (
            "SELECT 1 FROM binds INDEXED BY binds_by_position CROSS JOIN folders ON id = folder "
            "WHERE position <= ? AND folders.name || binds.name >= ? "
            "AND folders.name || binds.name < ? LIMIT 1"
        )
        return bool(self._ask(query, (position, prefix, _after(prefix))))

    def first_children(self, folder: str, position: int, most: int) -> list[str]:
        """Return the first names directly in a folder, in the order of `children`.

        The database sorts whole keys, where `a-b/x` is before `a/x`; a name that is a prefix of
        another may come late, and needs a query of its own.
        """

        def first(database: CatalogueFile) -> list[str]:
            found = {name for name, _ in _children(database, folder, position, most)}
            early = {
                name[:end]
                for name in found
                for end in range(len(_inside(folder)) + 1, len(name))
                if name[end] < "/"
            }
            for name in early:
                if any(_names(database, _inside(name), position)):
                    found.add(name)
            return sorted(found)[:most]

        return self._answer(first)

    def children(self, folder: str, position: int) -> list[tuple[str, bool]]:
        """Return the names directly in a folder, in key order, and whether each is a folder.

        A folder exists while a name below it is bound. Once one is found, the rest of the folder is
        skipped.
        """
        return self._answer(lambda database: sorted({*_children(database, folder, position)}))

    def any_below(self, folder: str, position: int) -> bool:
        return self._answer(lambda database: any(_names(database, _inside(folder), position)))

    def named_since(self, position: int, until: int | None = None) -> list[str]:
        """Return the names that were bound after a position, in key order.

        With `until`, later bindings are ignored, and the log is followed up to there.
        """
        followed = self._followed()
        if until is not None and (followed is None or followed.cursor < until):
            self.follow()
            followed = None
        if (followed.bound if followed else self.last_named()) <= position:
            return []
        query = (
            "SELECT DISTINCT folders.name || binds.name FROM binds INDEXED BY binds_by_position "
            "CROSS JOIN folders ON id = folder WHERE position > ? AND position <= ? ORDER BY 1"
        )
        last = _NO_END if until is None else until
        return [name for (name,) in self._ask(query, (position, last))]

    def hides_since(self, position: int, until: int) -> bool:
        """Whether content was hidden, lifted or erased after a position, up to another."""
        query = "SELECT 1 FROM hidings WHERE position > ? AND position <= ? LIMIT 1"
        return bool(self._ask(query, (position, until)))

    def last_named(self) -> int:
        """Return the last position at which a name was bound."""
        followed = self._followed()
        return self._answer(CatalogueFile.header).bound if followed is None else followed.bound

    # ------------------------------------------------------------ structures, results, times
    def structure(self, sid: SID) -> bytes | None:
        query = "SELECT encoded FROM structures WHERE sid = ? ORDER BY position LIMIT 1"
        rows = self._ask(query, (bytes(sid),))
        if rows:
            encoded: bytes = rows[0][0]
            return encoded
        found = self._answer(lambda database: _literal(database, sid))
        return None if found is None else literal_structure(found).encoded

    def results(self, sid: SID) -> list[tuple[CID, int]]:
        """Return each different result of a structure, and the first position with it.

        More than one means that its operation is not deterministic.
        """
        query = "SELECT cid, min(position) FROM results WHERE sid = ? GROUP BY cid ORDER BY 2"
        return [(CID.from_bytes(cid), at) for cid, at in self._ask(query, (bytes(sid),))]

    def first_results(self, sids: Sequence[SID]) -> dict[SID, CID]:
        """Return the first result of each structure; those without a result are omitted."""
        query = "SELECT sid, cid, min(position) FROM results WHERE sid IN (%s) GROUP BY sid"
        rows = self._ask_for_each(query, sids)
        return {CID.from_bytes(sid): CID.from_bytes(cid) for sid, cid, _ in rows}

    def registered(self, sids: Sequence[SID]) -> set[SID]:
        known = self._among("structures", sids)
        others = [sid for sid in sids if sid not in known]
        return known | self._answer(
            lambda database: {sid for sid in others if _literal(database, sid) is not None}
        )

    def with_results(self, sids: Sequence[SID]) -> set[SID]:
        return self._among("results", sids)

    def _among(self, table: str, sids: Sequence[SID]) -> set[SID]:
        query = f"SELECT DISTINCT sid FROM {table} WHERE sid IN (%s)"  # noqa: S608 - our own names
        return {CID.from_bytes(sid) for (sid,) in self._ask_for_each(query, sids)}

    def _ask_for_each(self, query: str, sids: Sequence[SID]) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(sids), _MOST_PARAMETERS):
            asked = tuple(map(bytes, sids[start : start + _MOST_PARAMETERS]))
            yield from self._ask(query % ",".join("?" * len(asked)), asked)

    def position_at(self, milliseconds: int) -> int:
        """Return the position of the last commit at or before a time; 0 if there was none."""
        return self._answer(lambda database: _position_at(database, milliseconds))

    def commit_at(self, position: int) -> tuple[int, int]:
        """Return the last commit at or before a position, and its time; zeros if there was none."""
        rows = self._ask(_COMMIT, (position,))
        return rows[0] if rows else (0, 0)

    # ------------------------------------------------------------ access to the file
    def _ask(self, query: str, parameters: Mapping[str, object] | tuple[object, ...]) -> list[Any]:
        return self._answer(lambda database: database.ask(query, parameters))

    def _answer(self, ask: Callable[[CatalogueFile], Answer]) -> Answer:
        def follow_and_ask() -> Answer:
            if self._followed() is None and self._catch_up() == 0:
                return _ask_nothing(ask)
            return self._on(ask)

        if self._followed() is not None:
            with suppress(_DiscardedError):
                return self._on(ask)
        return self._retry(follow_and_ask)

    def _retry(self, attempt: Callable[[], Answer]) -> Answer:
        """Call `attempt`; if the file is unusable, call it again with a new one, then in memory."""
        for _ in range(_ATTEMPTS):
            with suppress(_DiscardedError):
                return attempt()
        with self._locked():
            self.close()
            self._path = None
        try:
            return attempt()
        except _DiscardedError as error:
            raise _unfollowable() from error

    def _on(self, ask: Callable[[CatalogueFile], Answer]) -> Answer:
        """Query the file; `_DiscardedError` if it had to be discarded."""
        with self._locked():
            try:
                return ask(self._database or self._opened())
            except (DamageError, StorageError) as error:
                raise self._discarded(error) from error
            except BaseException:
                self.close()
                raise

    def _locked(self) -> AbstractContextManager[object]:
        if self._pid != os.getpid():  # a fork has none of our threads
            self._start()
        return self._guard

    def _opened(self) -> CatalogueFile:
        if self._database is None:
            path = self._path
            self._database = CatalogueFile(path, self._patience) if path else CatalogueInMemory()
        return self._database

    def _discarded(self, error: PerdureError) -> Exception:
        """Stop using the file: remove it if it is damaged, leave it if it can't be accessed."""
        with self._locked():
            database, path = self._database, self._path
            if isinstance(error, DamageError):
                if database is not None:
                    database.remove()
                elif path is not None:
                    discard(Path(path))
            elif path is None:
                self.close()
                return error
            elif database is None or database.is_in_place:
                self._path = None
            self.close()
        return _DiscardedError()


def _ask_nothing(ask: Callable[[CatalogueFile], Answer]) -> Answer:
    with closing(CatalogueInMemory()) as database:
        return ask(database)


class _DiscardedError(Exception):
    """The file is not used any more."""


def _unfollowable() -> DamageError:
    return DamageError("the log ends before its last position. Fix: run `perdure history verify`.")


def _not_of_the_log() -> DamageError:
    return DamageError("the catalogue is of another log. Fix: none needed; it is built again.")


# ---------------------------------------------------------------- rows
def _batches(log: Iterable[LogEntry]) -> Iterator[list[LogEntry]]:
    """Yield the entries in batches of whole commits."""
    batch: list[LogEntry] = []
    whole = 0
    for logged in log:
        batch.append(logged)
        if logged.position == logged.commit:
            whole = len(batch)
            if whole >= _BATCH:
                yield batch
                batch, whole = [], 0
    if whole:
        yield batch[:whole]


def _binding(name: str, row: tuple[Any, ...]) -> Binding:
    position, commit, when, _, encoded = row
    content = _content([row])
    try:
        circumstances = decode_canonical(encoded)
    except (InvalidArtifactError, TypeError) as error:
        raise _not_of_the_log() from error
    if not isinstance(circumstances, Mapping):
        raise _not_of_the_log()
    return Binding(name, position, commit, when, content, circumstances)


def _content(rows: list[tuple[Any, ...]]) -> CID | None:
    return _cid(rows[0][3]) if rows else None


def _literal(database: CatalogueFile, sid: SID) -> CID | None:
    """Return the content of the literal that a SID names, if it was ever put."""
    for (content,) in database.ask(_LITERALS, {"sid": short_hash(bytes(sid))}):
        cid = _cid(content)
        if cid is not None and literal_sid(cid.hash, content) == bytes(sid):
            return cid
    return None


def _contents(
    database: CatalogueFile, names: Sequence[str], position: int
) -> dict[str, CID | None]:
    query = _EACH_LAST.format(",".join(["(?, ?)"] * len(names)))
    asked = chain.from_iterable(map(split_name, names))
    rows = database.ask(query, (*asked, position, position))
    return {name: None if content is None else _cid(content) for name, content in rows}


def _cid(content: bytes | None) -> CID | None:
    try:
        return None if content is None else CID.from_bytes(content)
    except (InvalidCIDError, TypeError) as error:
        raise _not_of_the_log() from error


def _inside(folder: str) -> str:
    return f"{folder}/" if folder else ""


def _named(name: str, position: int) -> dict[str, object]:
    folder, name = split_name(name)
    return {"folder": folder, "name": name, "at": position}


def _after(prefix: str) -> str | bytes:
    """Return the end of the names with this prefix: the character after the slash is 0."""
    if prefix and not prefix.endswith("/"):
        raise ValueError("a prefix of names is a folder. Fix: end it with a slash.")
    return f"{prefix[:-1]}0" if prefix else _AFTER_EVERY_TEXT


Span = tuple[int, str, str, str | bytes]
"""The id and name of a folder, and a range of names in it."""


def _names(database: CatalogueFile, prefix: str, position: int) -> Iterator[str]:
    """Yield the bound names with this prefix, folder by folder."""
    for span in (*_own(database, prefix), *_below(database, prefix)):
        yield from _in_span(database, span, position)


def _own(database: CatalogueFile, prefix: str) -> Iterator[Span]:
    """Yield the span of the names directly in a folder; the folder above has them."""
    above, name = split_name(f"{prefix}-")
    for (folder,) in database.ask("SELECT id FROM folders WHERE name = ?", (above,)):
        if prefix:
            yield folder, above, name[:-1], f"{name[:-2]}0"


def _below(database: CatalogueFile, prefix: str) -> Iterator[Span]:
    for folder, name in database.ask(_FOLDERS, (prefix, _after(prefix))):
        yield folder, name, "", _AFTER_EVERY_TEXT


def _in_span(database: CatalogueFile, span: Span, position: int) -> Iterator[str]:
    folder, above, start, stop = span
    wanted = {"folder": folder, "start": start, "stop": stop, "at": position}
    with database.connection() as db:
        for (name,) in db.execute(_NAMES, wanted):
            yield f"{above}{name}"


def _children(
    database: CatalogueFile, folder: str, position: int, most: int | None = None
) -> Iterator[tuple[str, bool]]:
    """Yield the names directly in a folder, and whether each is a folder; one may be both.

    With `most`, only the first texts and the first folders, in the order of whole keys.
    """
    prefix = _inside(folder)
    for span in _own(database, prefix):
        texts = islice(_in_span(database, span, position), most)
        yield from ((name, False) for name in texts)
    last = ""
    for span in _below(database, prefix):
        child = span[1][len(prefix) :].partition("/")[0]
        if not child:
            yield from islice(_near(database, span, position), most and 2 * most)
        elif child != last and any(_in_span(database, span, position)):
            last = child
            yield f"{prefix}{child}", True


def _near(database: CatalogueFile, span: Span, position: int) -> Iterator[tuple[str, bool]]:
    """Yield the folders directly below one that have texts; for the root, also its texts."""
    folder, prefix, begin, stop = span
    start: str | None = begin
    while start is not None:
        begin, start = start, None
        for name in _in_span(database, (folder, prefix, begin, stop), position):
            child, slash, _ = name[len(prefix) :].partition("/")
            yield f"{prefix}{child}", bool(slash)
            if slash:
                start = f"{child}0"
                break


def _position_at(database: CatalogueFile, milliseconds: int) -> int:
    """Search by bisection: times never decrease with positions."""
    found, low, high = 0, 1, database.header().cursor
    while low <= high:
        middle = (low + high) // 2
        rows = database.ask(_COMMIT, (middle,))
        position, when = rows[0] if rows else (0, 0)
        if when <= milliseconds:
            found, low = max(found, position), middle + 1
        else:
            high = position - 1
    return found
