"""An index in files of SQLite, one for each account, for any number of threads and processes."""

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Self, TypeVar

from perdure.errors import DamageError, PackageMissingError
from perdure.files import Closeable, Quarantine
from perdure.index.account import failures, schema
from perdure.index.account.edit import Edit, damaged_uris, duplicate, publish
from perdure.index.account.file import (
    TURN,
    AccountFile,
    AccountFiles,
    AccountsInMemory,
    clear,
    remove_copies,
    turn,
)
from perdure.index.account.rows import (
    Change,
    KnownRows,
    Names,
    Prepared,
    Scored,
    Wanted,
    best,
    hit_of,
    last_change,
    owners,
    prepare,
    read,
    rows_of,
    wanted_in,
)
from perdure.index.contract import Filters
from perdure.index.filters import (
    LEVEL,
    URI,
    Sought,
    check_cursor,
    check_nodes,
    check_unlogged,
    sought,
)
from perdure.index.vectors import quantised
from perdure.index.words import any_of, check_weight, check_words, idf, stems
from perdure.model import IndexRecord, SeedHit, Uri, check_owner_space
from perdure.model.record import ACCOUNT
from perdure.model.uri import check_id
from perdure.model.values import count
from perdure.sqlite import InMemoryDatabase, SqliteFile, UnsyncedDatabase

_SOME_MORE = 256
_MOST = 2**31

Told = TypeVar("Told")
_Moment = tuple[AccountFile, sqlite3.Connection, Change]


class SqliteIndex(Closeable):
    """A `KeptIndex` that survives the process and the machine.

    A power cut may take the newest changes, each with its cursor, so that the log tells what is to
    be made again; what was deleted of an account or an owner stays deleted. A change that concerns
    several accounts is whole in each of them.
    """

    def __init__(
        self, folder: str, way: Quarantine | None = None, kind: type[SqliteFile] = SqliteFile
    ) -> None:
        self._files = AccountFiles(folder, way=way, kind=kind)
        self._keeps_copies = kind is SqliteFile
        self._asked = threading.local()
        """What a thread asks its questions of while they are answered as of one moment."""

    @classmethod
    def in_memory(cls) -> Self:
        """Return an empty index that touches no disk, and is gone when it is closed."""
        index = cls(os.devnull, kind=InMemoryDatabase)
        index._files = AccountsInMemory()
        return index

    def close(self) -> None:
        """Let go of all files; every other verb is `ClosedError` from now on."""
        self._files.close()

    # ------------------------------------------------------------ changes
    def upsert(self, records: Sequence[IndexRecord]) -> None:
        by_account: dict[str, list[Prepared]] = {}
        for record in records:
            by_account.setdefault(str(record.filters[ACCOUNT]), []).append(prepare(record))
        for account, fresh in by_account.items():
            self._edit(account, partial(Edit.add, records=fresh))

    def delete(self, ids: Sequence[str]) -> None:
        gone = list(ids)
        for account in self._files.accounts() if gone else ():
            self._edit(account, lambda edit: edit.remove_ids(gone))

    def replace(
        self,
        account_id: str,
        nodes: Mapping[str, Sequence[IndexRecord]],
        *,
        cursor: int | None = None,
        expect: int | None = None,
        unlogged: Collection[str] = (),
    ) -> None:
        account = check_id(account_id, "account")
        check_unlogged(unlogged, nodes)
        fresh = [prepare(record) for record in check_nodes(account, nodes)]
        if cursor is not None:
            count(cursor, "cursor")

        def put(edit: Edit) -> None:
            check_cursor(edit.cursor, expect)
            edit.remove_uris(nodes)
            edit.add(fresh)
            edit.mark(nodes, unlogged)

        self._edit(account, put, cursor)

    def _edit(
        self, account: str, action: Callable[[Edit], object], cursor: int | None = None
    ) -> None:
        def change(file: AccountFile) -> None:
            with file.changing(outlasts_power=False) as db:
                edit = Edit(db, account)
                action(edit)
                edit.finish(cursor)

        self._files.use(account, change)

    # ------------------------------------------------------------ events
    def look_at_events(
        self, account_id: str, question: Callable[[sqlite3.Connection], Told], absent: Told
    ) -> Told:
        """Ask the table of what failed; if the account has no file, it is empty."""
        return self._ask(account_id, lambda _, db, __: question(db), absent)

    def change_events(
        self,
        account_id: str,
        action: Callable[[sqlite3.Connection], Told],
        *,
        outlasts_power: bool = False,
    ) -> Told:
        """Change the table of what failed, in one transaction."""

        def change(file: AccountFile) -> Told:
            with file.changing(outlasts_power=outlasts_power) as db:
                return action(db)

        return self._files.use(check_id(account_id, "account"), change)

    def wipe_events(self, account_id: str) -> None:
        self._files.ask(check_id(account_id, "account"), AccountFile.wipe, None)

    def making(self, account_id: str, *, wait: bool) -> AbstractContextManager[bool]:
        """Let one process or thread at a time make an account's index; say whether it is us."""
        self._files.free_way()
        return turn(self._turn_of(check_id(account_id, "account")), wait=wait)

    def _turn_of(self, account: str) -> Path:
        return self._files.path_of(account).with_suffix(TURN)

    # ------------------------------------------------------------ tenants
    def delete_account_data(self, account_id: str) -> int:
        """As promised; and no byte of it is left in a file.

        The file goes too, unless another process has it open; then it stays, with nothing in it.
        One that is too damaged to be emptied goes in any case, and counts as nothing.
        """
        account = check_id(account_id, "account")
        try:
            return self._files.ask(account, _forget_account, 0)
        except DamageError:
            self._files.discard(account)
            return 0
        finally:
            remove_copies(self._files.path_of(account))
            clear(self._turn_of(account))

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        """As promised; and no byte of it is left in a file, nor of what was deleted before."""
        account, owner = check_id(account_id, "account"), check_owner_space(owner_space)
        return self._files.ask(account, lambda file: _forget_owner(file, owner), 0)

    def scrub(self, account_id: str) -> None:
        """Leave no byte in a file of what was deleted before."""
        account = check_id(account_id, "account")
        self._files.ask(account, _scrub, None)

    # ------------------------------------------------------------ duplicates
    def duplicate(self, account_id: str, folder: str) -> "SqliteIndex":
        """Return an index in another folder that holds what this one does of an account.

        It is not durable before it is adopted.
        """
        account = check_id(account_id, "account")
        other = SqliteIndex(folder, kind=UnsyncedDatabase)
        self._files.ask(account, lambda file: duplicate(file, other.path_of(account)), None)
        return other

    def adopt(self, account_id: str, other: "SqliteIndex") -> bool:
        """Take over the file of an account from an index that is closed; False if we have one."""
        account = check_id(account_id, "account")
        return publish(other.path_of(account), self.path_of(account))

    def path_of(self, account_id: str) -> Path:
        return self._files.path_of(account_id)

    # ------------------------------------------------------------ searches
    def search_by_vector(
        self, query_vector: Sequence[float], filters: Filters, top_k: int
    ) -> list[SeedHit]:
        return self._nearest(query_vector, sought(filters), top_k, None)

    def search_children(
        self, parent_uri: str, query_vector: Sequence[float], filters: Filters, top_k: int
    ) -> list[SeedHit]:
        parent = str(Uri.parse(parent_uri))
        return self._nearest(query_vector, sought(filters), top_k, parent)

    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> list[SeedHit]:
        return (
            self._by_words(words, filters, top_k, check_weight(context_weight), KnownRows.hits)
            or []
        )

    def match(self, words: Sequence[str], filters: Filters, top_k: int) -> dict[str, float]:
        return self._by_words(words, filters, top_k, 1.0, KnownRows.matches) or {}

    def _by_words(
        self,
        words: Sequence[str],
        filters: Filters,
        top_k: int,
        weight: float,
        told: Callable[[KnownRows, sqlite3.Connection, Scored], Told],
    ) -> Told | None:
        """Tell of the best by words; None if there is nothing to look for, or to look in."""
        wanted, most = sought(filters), count(top_k, "number of hits")
        expression = any_of(check_words(words))
        if not expression or not most:
            return None

        def find(file: AccountFile, db: sqlite3.Connection, last: Change) -> Told | None:
            asked = {"words": expression, "weight": weight}
            file.known.follow(db, last)
            return told(file.known, db, _best_by_words(db, asked, wanted_in(db, wanted), most))

        return self._ask(wanted.account, find, None)

    def _nearest(
        self, query_vector: Sequence[float], wanted: Sought, top_k: int, parent: str | None
    ) -> list[SeedHit]:
        query, most = quantised(query_vector), count(top_k, "number of hits")
        if not query or not most:
            return []
        nearest = _searching_vectors()

        def find(file: AccountFile) -> list[SeedHit]:
            with file.reading() as db:
                scored = nearest.nearest(file, db, query, wanted_in(db, wanted, parent), most)
                file.known.follow(db, last_change(db, file.account))
                found = file.known.hits(db, scored)
            if self._keeps_copies:
                nearest.keep_copy(file, len(query))
            return found

        return self._files.ask(wanted.account, find, [])

    # ------------------------------------------------------------ what is kept
    def _ask(
        self,
        account_id: str,
        question: Callable[[AccountFile, sqlite3.Connection, Change], Told],
        absent: Told,
    ) -> Told:
        """Ask an account's file as of one moment, if its log is what was written for it."""
        moment: _Moment | None = getattr(self._asked, "moment", None)
        if moment is not None and moment[0].account == account_id:
            with moment[0].understood():
                return question(*moment)

        def told(file: AccountFile) -> Told:
            with file.reading() as db:
                return question(file, db, last_change(db, file.account))

        return self._files.ask(check_id(account_id, "account"), told, absent)

    def at_once(self, account_id: str, question: Callable[[], Told]) -> Told:
        def told(file: AccountFile) -> list[Told]:
            with file.at_once() as db:
                self._asked.moment = file, db, last_change(db, file.account)
                try:
                    return [question()]
                finally:
                    self._asked.moment = None

        if getattr(self._asked, "moment", None) is not None:
            return question()
        none: list[Told] = []
        found = self._files.ask(check_id(account_id, "account"), told, none)
        return found[0] if found else question()

    def cursor(self, account_id: str) -> int:
        return self._ask(account_id, lambda _, __, last: last.cursor, 0)

    def owner_spaces(self, account_id: str) -> frozenset[str]:
        def told(_: AccountFile, db: sqlite3.Connection, __: Change) -> frozenset[str]:
            found = [db.execute(schema.NAME, (owner,)).fetchone() for owner in owners(db)]
            return frozenset(value for (value,) in found)

        return self._ask(account_id, told, frozenset())

    def ceiling(self, account_id: str, words: Sequence[str]) -> float:
        given = [word for word in check_words(words) if stems(word)]

        def told(file: AccountFile, db: sqlite3.Connection, last: Change) -> float:
            count = _passages(file, db, last)
            hits = [_number(db, schema.PASSAGES_WITH, any_of([word])) for word in given]
            return sum(idf(count, each) for each in hits) if count else 0.0

        return self._ask(account_id, told, 0.0)

    def look(self, ids: Sequence[str], filters: Filters) -> list[SeedHit]:
        wanted = sought(filters)

        def told(file: AccountFile, db: sqlite3.Connection, last: Change) -> list[SeedHit]:
            file.known.follow(db, last)
            return file.known.look(db, ids, wanted_in(db, wanted).condition or "1")

        return self._ask(wanted.account, told, [])

    def noted(
        self, filters: Filters, top_k: int, names: Collection[str] | None = None
    ) -> list[SeedHit]:
        if names is None:
            return self._unscored(schema.NOTED, filters, most=top_k)
        query = schema.NOTED.replace("{0}", f"{{0}} AND {schema.NAMING}")
        return self._unscored(query, filters, most=top_k, names=json.dumps(sorted(names)))

    def _unscored(self, query: str, filters: Filters, **asked: object) -> list[SeedHit]:
        wanted = sought(filters)

        def told(_: AccountFile, db: sqlite3.Connection, __: Change) -> list[SeedHit]:
            condition = wanted_in(db, wanted).condition or "1"
            return [hit_of(row) for row in db.execute(query.format(condition), asked)]

        return self._ask(wanted.account, told, [])

    def leading_to(self, account_id: str, names: Collection[str]) -> list[str]:
        def leading(file: AccountFile, db: sqlite3.Connection, _: Change) -> list[str]:
            # A link that is missed stays broken in the owner's text, so the table is checked first.
            ((found,), *_more) = db.execute("PRAGMA integrity_check(named)")
            if found != "ok":
                raise file.damage(f"SQLite finds {found[:200]!a}")
            return [uri for (uri,) in db.execute(schema.LEADING, (json.dumps(sorted(names)),))]

        return self._ask(account_id, leading, [])

    def read(self, account_id: str, ids: Sequence[str]) -> dict[str, IndexRecord]:
        def told(file: AccountFile) -> dict[str, IndexRecord]:
            with file.reading() as db:
                rows = json.dumps([row for row, _ in rows_of(db, Names(db), ids)])
                found = db.execute(schema.WHOLE_OF, {"rows": rows})
                records = [read(file.account, row).record for row in found]
            return {record.id: record for record in records}

        return self._files.ask(check_id(account_id, "account"), told, {})

    def vectors(self, account_id: str, owner_space: str) -> list[tuple[IndexRecord, bytes]]:
        """Return the records of an owner, or of what an account shares, that have vectors."""

        def told(file: AccountFile) -> list[tuple[IndexRecord, bytes]]:
            with file.reading() as db:
                owner = Names(db).find(owner_space)
                found = db.execute(schema.WHOLE_BY_OWNER, (owner,))
                rows = [read(file.account, row) for row in found]
                return [(whole.record, whole.vector) for whole in rows if whole.vector]

        return self._files.ask(check_id(account_id, "account"), told, [])

    def stamps(self, account_id: str) -> dict[str, str]:
        return self._ask(account_id, lambda _, db, __: dict(db.execute(schema.STAMPS)), {})

    def folders(self, account_id: str) -> dict[str, str]:
        """Return the stamps of folders, which have an overview each."""

        def told(_: AccountFile, db: sqlite3.Connection, __: Change) -> dict[str, str]:
            found = db.execute(schema.STAMPS_WITH_OVERVIEW)
            return {uri: stamp for uri, stamp in found if not Uri.parse(uri).is_node}

        return self._ask(account_id, told, {})

    def places(self, account_id: str) -> int:
        """Return of how many URIs there are records."""
        return self._ask(account_id, lambda _, db, __: _number(db, schema.COUNT_STAMPS), 0)

    def size(self, account_id: str) -> int:
        return self._files.size_of(check_id(account_id, "account"))

    def unlogged(self, account_id: str) -> frozenset[str] | None:
        def told(_: AccountFile, db: sqlite3.Connection, __: Change) -> frozenset[str] | None:
            marked = dict(db.execute(schema.UNLOGGED))
            return None if 0 in marked else frozenset(marked.values())

        none: frozenset[str] | None = frozenset()
        return self._ask(account_id, told, none)

    def is_undisturbed(self, account_id: str) -> bool:
        """Whether all that was read was as of some moment, also where nobody is to be stopped."""
        account = check_id(account_id, "account")
        return self._files.ask(account, lambda file: file.is_undisturbed, absent=True)

    def check(self, account_id: str) -> list[str]:
        """As promised. An account whose file is gone has nothing to check; its cursor is 0."""
        return self._files.ask(check_id(account_id, "account"), damaged_uris, [])


def _best_by_words(
    db: sqlite3.Connection, asked: Mapping[str, object], wanted: Wanted, most: int
) -> Scored:
    """Return the rows that have one of the words and are wanted, by BM25 among their kind."""
    found: Scored = []
    of_levels = wanted.numbers.get(LEVEL)
    for kind, levels in schema.KINDS.items():
        if of_levels is None or not of_levels.isdisjoint(levels):
            condition = wanted.among(levels).condition
            query = schema.BEST_BY_WORDS_OF if condition else schema.BEST_BY_WORDS
            if URI in wanted.numbers:  # to find the rows of few takes less than to look at all
                few = db.execute(schema.ROWS_OF_LEVEL.format(condition), levels[:1])
                query = schema.BEST_BY_WORDS_AMONG
                condition = ", ".join([str(row) for (row,) in few])
                if not condition:
                    continue
            found += _best_of_kind(db, query.format(kind=kind, condition=condition), asked, most)
    return best(db, found, most) if len(found) > most else found


def _best_of_kind(
    db: sqlite3.Connection, query: str, asked: Mapping[str, object], most: int
) -> Scored:
    """Return the best of one kind, and all that are as good as the last of them."""
    limit = min(most, _MOST) + _SOME_MORE
    found = db.execute(query, {**asked, "most": limit}).fetchall()
    if len(found) == limit and found[-1][1] == found[most - 1][1]:
        found = db.execute(query, {**asked, "most": -1}).fetchall()
    return [(row, -score) for row, score in found]


def _passages(file: AccountFile, db: sqlite3.Connection, last: Change) -> int:
    """Return how many passages there are; they are counted once for each change."""
    if file.passages is None or not last.is_same(file.passages[0]):
        file.passages = last, _number(db, schema.COUNT_PASSAGES)
    return file.passages[1]


def _number(db: sqlite3.Connection, question: str, *asked: str) -> int:
    ((count,),) = db.execute(question, asked)
    return int(count)


def _searching_vectors() -> ModuleType:
    try:
        from perdure.index.account import nearest  # noqa: PLC0415 - numpy is an optional dependency
    except ImportError as error:
        raise PackageMissingError(
            f"vectors can't be searched: {error.name} is not installed. "
            "Fix: pip install '.[vectors]' from a checkout, or search by text."
        ) from error
    return nearest


# ---------------------------------------------------------------- forgetting
def _forget_account(file: AccountFile) -> int:
    with file.changing() as db:
        count = _number(db, schema.COUNT)
        for statement in schema.REMOVE_ALL:
            db.execute(statement)
    remove_copies(file.path)
    file.wipe()
    file.retire()
    return count


def _forget_owner(file: AccountFile, owner_space: str) -> int:
    """Forget an owner, and the log: who has a copy of the vectors will look at everything."""
    with file.changing() as db:
        edit = Edit(db, file.account)
        count = edit.remove_owner(owner_space)
        edit.finish()
        for statement in schema.FORGET_UNLOGGED:
            db.execute(statement)
        asked = {"account": file.account, "owner": owner_space}
        db.execute(failures.DELETE_OWNER, asked)
    _scrub(file)
    return count


def _scrub(file: AccountFile) -> None:
    with file.changing() as db:
        db.execute(schema.DROP_CHANGES, (last_change(db, file.account).seq - 1,))
        db.execute(schema.DROP_UNUSED_NAMES)
        for statement in schema.MERGE_WORDS:
            db.execute(statement)
    remove_copies(file.path)
    file.wipe()
