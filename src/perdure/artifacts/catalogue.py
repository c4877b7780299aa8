"""Names, structures and results: read from the log, and kept in a file to be asked quickly.

All of it is derived. A file that is damaged, of another version, of another history or ahead of
its log is thrown away and made again; where none can be had, memory does.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from perdure.artifacts import canonical
from perdure.artifacts.artifact import SID, literal_structure
from perdure.artifacts.cid import CID
from perdure.artifacts.database import (
    Database,
    Facts,
    MemoryDatabase,
    halves,
    literal_sid,
    short,
)
from perdure.artifacts.state import Binding, IndexState, Logged
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
# It steps from name to name in one folder, however many versions each has.
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
_AFTER_EVERY_TEXT = b""  # to SQLite, bytes come after text
_BATCH = 20_000
_MOST_ASKED = 500
_ATTEMPTS = 3
_NO_END = 2**63 - 1

Answer = TypeVar("Answer")


class Source(Protocol):
    @property
    def history(self) -> bytes:
        """Which one it is; empty as long as nothing was logged."""

    def current(self) -> IndexState: ...

    def log(self, after: int = 0) -> Iterator[Logged]: ...


class Catalogue:
    """What a history says, by name. Threads and processes may share its file.

    An answer is as new as the last `follow`. A position inside a commit is answered as of the last
    whole one.
    """

    def __init__(self, source: Source, path: str | None = None, *, patience: float = 10.0) -> None:
        self._source = source
        self._path = path
        self._patience = patience
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        # Never held while the source is asked: it has locks of its own, and asks us under them.
        self._guard = threading.RLock()
        self._database: Database | None = None

    def close(self) -> None:
        """Let go of the file. The next question opens it again."""
        with self._held():
            if self._database is not None:
                self._database.close()
            self._database = None

    def __del__(self) -> None:
        if self._database is not None and self._pid == os.getpid():
            self._database.close()

    # ------------------------------------------------------------ following
    def follow(self) -> int:
        """Take in what the log has and the catalogue hasn't; return the position reached."""
        return self._surely(self._catch_up)

    def _catch_up(self) -> int:
        known, end = self._followed(), self._source.current().position
        if end == (known.cursor if known else 0):  # there may be nothing to make a file for
            return end
        for _ in range(_ATTEMPTS):
            facts = known or self._on(Database.facts)
            if facts.cursor > end:
                raise self._gone(_not_of_the_log())
            # Of what another process wrote, the last entry is looked at again, to see that it is
            # the log that was followed so far.
            after = facts.cursor if known else max(0, facts.cursor - 1)
            for batch in _batches(self._source.log(after=after)):
                facts = self._take_in(batch, end)
            if facts.cursor >= end:
                return facts.cursor
            known, end = None, self._source.current().position
        raise _unfollowable()

    def _take_in(self, batch: list[Logged], end: int) -> Facts:
        """Add entries; if there are none left up to `end`, the file has followed the log."""
        history = self._source.history

        def change(database: Database) -> Facts:
            facts = database.take_in(batch, history)
            before = database.followed
            if facts.cursor >= end and (before is None or before.cursor < facts.cursor):
                database.followed = facts
            return facts

        return self._on(change)

    def _followed(self) -> Facts | None:
        """Return how far we have followed, if we have, with the file that is open."""
        database = self._database if self._pid == os.getpid() else None
        return None if database is None else database.followed

    # ------------------------------------------------------------ names
    def bound(self, name: str, position: int) -> Binding | None:
        """Return the last binding of `name`; None if it was never bound."""
        found = self._bindings(_LAST, name, position)
        return found[0] if found else None

    def content(self, name: str, position: int) -> CID | None:
        """Return what `name` stood for; None if nothing."""
        wanted = _named(name, position)
        return self._answer(lambda database: _content(database.ask(_LAST, wanted)))

    def contents(self, names: Sequence[str], position: int) -> dict[str, CID | None]:
        found: dict[str, CID | None] = {}
        for start in range(0, len(names), _MOST_ASKED):
            asked = names[start : start + _MOST_ASKED]
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
        """Return the names with this beginning that stood for something, in key order."""
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
        """Return the first names that lie directly in a folder, in the order of `children`.

        Names come in the order of whole keys, where `a-b/x` is before `a/x`; so a name that is the
        beginning of another may come late, and is asked for.
        """

        def first(database: Database) -> list[str]:
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
        """Return what lies directly in a folder, in key order, and whether it is a folder.

        A folder is there while a name below it stands for something. Once that is known, what
        else is below it is passed over.
        """
        return self._answer(lambda database: sorted({*_children(database, folder, position)}))

    def any_below(self, folder: str, position: int) -> bool:
        return self._answer(lambda database: any(_names(database, _inside(folder), position)))

    def named_since(self, position: int, until: int | None = None) -> list[str]:
        """Return the names that were bound after a position, in key order.

        With `until`, later bindings do not count; so much of the log is followed.
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
        """Whether content was hidden, shown again or erased after a position, up to another."""
        query = "SELECT 1 FROM hidings WHERE position > ? AND position <= ? LIMIT 1"
        return bool(self._ask(query, (position, until)))

    def last_named(self) -> int:
        """Return the last position at which a name was bound."""
        followed = self._followed()
        return self._answer(Database.facts).bound if followed is None else followed.bound

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
        """Return each different content that a structure gave, and the first position with it.

        More than one is a fault of its operation.
        """
        query = "SELECT cid, min(position) FROM results WHERE sid = ? GROUP BY cid ORDER BY 2"
        return [(CID.from_bytes(cid), at) for cid, at in self._ask(query, (bytes(sid),))]

    def first_results(self, sids: Sequence[SID]) -> dict[SID, CID]:
        """Return the content that each structure gave first; those that gave none are left out."""
        query = "SELECT sid, cid, min(position) FROM results WHERE sid IN (%s) GROUP BY sid"
        rows = self._ask_for_each(query, sids)
        return {CID.from_bytes(sid): CID.from_bytes(cid) for sid, cid, _ in rows}

    def registered(self, sids: Sequence[SID]) -> set[SID]:
        known = self._among("structures", sids)
        others = [sid for sid in sids if sid not in known]
        return known | self._answer(
            lambda database: {sid for sid in others if _literal(database, sid) is not None}
        )

    def made(self, sids: Sequence[SID]) -> set[SID]:
        return self._among("results", sids)

    def _among(self, table: str, sids: Sequence[SID]) -> set[SID]:
        query = f"SELECT DISTINCT sid FROM {table} WHERE sid IN (%s)"  # noqa: S608 - our own names
        return {CID.from_bytes(sid) for (sid,) in self._ask_for_each(query, sids)}

    def _ask_for_each(self, query: str, sids: Sequence[SID]) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(sids), _MOST_ASKED):
            asked = tuple(map(bytes, sids[start : start + _MOST_ASKED]))
            yield from self._ask(query % ",".join("?" * len(asked)), asked)

    def position_at(self, milliseconds: int) -> int:
        """Return the position of the last commit at or before a time; 0 if there was none."""
        return self._answer(lambda database: _position_at(database, milliseconds))

    def commit_at(self, position: int) -> tuple[int, int]:
        """Return the last whole commit at a position, and its time; zeros if there was none."""
        rows = self._ask(_COMMIT, (position,))
        return rows[0] if rows else (0, 0)

    # ------------------------------------------------------------ keeping the file right
    def _ask(self, query: str, parameters: Mapping[str, object] | tuple[object, ...]) -> list[Any]:
        return self._answer(lambda database: database.ask(query, parameters))

    def _answer(self, ask: Callable[[Database], Answer]) -> Answer:
        def follow_and_ask() -> Answer:
            if self._followed() is None and self._catch_up() == 0:
                return _ask_nothing(ask)
            return self._on(ask)

        if self._followed() is not None:
            with suppress(_GoneError):
                return self._on(ask)
        return self._surely(follow_and_ask)

    def _surely(self, attempt: Callable[[], Answer]) -> Answer:
        """Run it; if the file is unusable, run it again with a new one."""
        for _ in range(_ATTEMPTS):
            with suppress(_GoneError):
                return attempt()
        with self._held():
            self.close()
            self._path = None
        try:
            return attempt()
        except _GoneError as error:
            raise _unfollowable() from error

    def _on(self, ask: Callable[[Database], Answer]) -> Answer:
        """Ask the file that is in place; `_GoneError` if it had to be given up."""
        with self._held():
            try:
                return ask(self._database or self._opened())
            except (DamageError, StorageError) as error:
                raise self._gone(error) from error
            except BaseException:
                self.close()
                raise

    def _held(self) -> AbstractContextManager[object]:
        if self._pid != os.getpid():  # a fork took our threads away
            self._start()
        return self._guard

    def _opened(self) -> Database:
        if self._database is None:
            path = self._path
            self._database = Database(path, self._patience) if path else MemoryDatabase()
        return self._database

    def _gone(self, error: PerdureError) -> Exception:
        """Let go of what can't be used: what is damaged is removed, what can't be had is left."""
        with self._held():
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
        return _GoneError()


def _ask_nothing(ask: Callable[[Database], Answer]) -> Answer:
    with closing(MemoryDatabase()) as database:
        return ask(database)


class _GoneError(Exception):
    """The file was given up."""


def _unfollowable() -> DamageError:
    return DamageError("the log does not lead to its own end. Fix: run `perdure history verify`.")


def _not_of_the_log() -> DamageError:
    return DamageError("the catalogue is not of its log. Fix: none needed; it is made again.")


# ---------------------------------------------------------------- rows
def _batches(log: Iterable[Logged]) -> Iterator[list[Logged]]:
    """Yield the entries by whole commits, many at a time."""
    batch: list[Logged] = []
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
        circumstances = canonical.decode(encoded)
    except (InvalidArtifactError, TypeError) as error:
        raise _not_of_the_log() from error
    if not isinstance(circumstances, Mapping):
        raise _not_of_the_log()
    return Binding(name, position, commit, when, content, circumstances)


def _content(rows: list[tuple[Any, ...]]) -> CID | None:
    return _cid(rows[0][3]) if rows else None


def _literal(database: Database, sid: SID) -> CID | None:
    """Return the content whose literal a SID names, if it was ever put."""
    for (content,) in database.ask(_LITERALS, {"sid": short(bytes(sid))}):
        cid = _cid(content)
        if cid is not None and literal_sid(cid.hash, content) == bytes(sid):
            return cid
    return None


def _contents(database: Database, names: Sequence[str], position: int) -> dict[str, CID | None]:
    query = _EACH_LAST.format(",".join(["(?, ?)"] * len(names)))
    asked = chain.from_iterable(map(halves, names))
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
    folder, name = halves(name)
    return {"folder": folder, "name": name, "at": position}


def _after(prefix: str) -> str | bytes:
    """Return what comes after all names with this beginning: the slash is followed by the 0."""
    if prefix and not prefix.endswith("/"):
        raise ValueError("names are asked for by folder. Fix: end the prefix with a slash.")
    return f"{prefix[:-1]}0" if prefix else _AFTER_EVERY_TEXT


Span = tuple[int, str, str, str | bytes]
"""A folder, its name, and from where to where names in it are meant."""


def _names(database: Database, prefix: str, position: int) -> Iterator[str]:
    """Yield the names with this beginning that stood for something, folder by folder."""
    for span in (*_own(database, prefix), *_below(database, prefix)):
        yield from _in_span(database, span, position)


def _own(database: Database, prefix: str) -> Iterator[Span]:
    """Yield where the texts are that lie directly in a folder: in the one above, with its name."""
    above, name = halves(f"{prefix}-")
    for (folder,) in database.ask("SELECT id FROM folders WHERE name = ?", (above,)):
        if prefix:
            yield folder, above, name[:-1], f"{name[:-2]}0"


def _below(database: Database, prefix: str) -> Iterator[Span]:
    for folder, name in database.ask(_FOLDERS, (prefix, _after(prefix))):
        yield folder, name, "", _AFTER_EVERY_TEXT


def _in_span(database: Database, span: Span, position: int) -> Iterator[str]:
    folder, above, start, stop = span
    wanted = {"folder": folder, "start": start, "stop": stop, "at": position}
    with database.connection() as db:
        for (name,) in db.execute(_NAMES, wanted):
            yield f"{above}{name}"


def _children(
    database: Database, folder: str, position: int, most: int | None = None
) -> Iterator[tuple[str, bool]]:
    """Yield what lies directly in a folder, and whether it is a folder.

    Of texts, and of folders with texts, the first ones by their whole keys, if `most` says so; a
    name may be both.
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


def _near(database: Database, span: Span, position: int) -> Iterator[tuple[str, bool]]:
    """Yield the folders right below one that have texts; of the root, the texts in it, too."""
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


def _position_at(database: Database, milliseconds: int) -> int:
    """Search, because times rise with positions."""
    found, low, high = 0, 1, database.facts().cursor
    while low <= high:
        middle = (low + high) // 2
        rows = database.ask(_COMMIT, (middle,))
        position, when = rows[0] if rows else (0, 0)
        if when <= milliseconds:
            found, low = max(found, position), middle + 1
        else:
            high = position - 1
    return found
