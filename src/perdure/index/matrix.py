"""The vectors of an account in memory, searched exactly. Needs numpy and simsimd.

A copy of them beside the database, mapped into memory, saves a new process from reading rows. It is
optional: a copy that is damaged, or of another database, is ignored.
"""

import json
import os
import secrets
import sqlite3
import struct
from array import array
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np
from google_crc32c import value as crc32c
from numpy.typing import NDArray
from simsimd import cdist

from perdure.index import sql
from perdure.index.accounts import UNFINISHED, AccountDatabase, copy_of, remove_unfinished
from perdure.index.rows import (
    IndexChange,
    RowFilter,
    ScoredRows,
    best_rows,
    changes_from,
    last_change,
)
from perdure.index.vectors import squared_length

Numbers = NDArray[np.int64]
Vectors = NDArray[np.int8]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

COLUMNS = ("row", *sql.RECORD_COLUMNS, "squared")
"""The columns of each vector: its row, its filters, and its squared length."""
_AT = {name: at for at, name in enumerate(COLUMNS)}
_SPARSE = 8
"""If fewer than one vector in this many is admitted, those are gathered first."""
_CHUNK = 8192


class Matrix:
    """All vectors of one dimension, as of a change; those of removed rows are skipped."""

    def __init__(
        self, dimension: int, change: IndexChange, columns: Numbers, vectors: Vectors
    ) -> None:
        self.dimension = dimension
        self.change = change
        self._buffer = columns
        self._count = len(vectors)
        self._blocks = [vectors]
        self._alive: Mask = np.ones(len(vectors), np.bool_)
        self._last_query: tuple[bytes, Floats] = b"", np.empty(0)
        """The last query that was compared with all vectors, and their scores."""
        self.behind = 0
        """The number of rows added or removed since the copy on disk."""

    def __len__(self) -> int:
        return self._count

    @property
    def _columns(self) -> Numbers:
        return self._buffer[:, : self._count]

    # ------------------------------------------------------------ following
    def follow(
        self, columns: Numbers, vectors: Vectors, gone: Numbers, change: IndexChange
    ) -> None:
        """Add later rows, and skip removed ones from now on."""
        if len(vectors):
            self._add_columns(columns)
            self._add_vectors(vectors)
            self._alive = np.concatenate([self._alive, np.ones(len(vectors), np.bool_)])
            self._last_query = b"", np.empty(0)
        rows = self._columns[_AT["row"]]
        at = np.searchsorted(rows, gone)
        at = at[at < len(rows)]
        at = at[np.isin(rows[at], gone)]
        self._alive[at] = False
        self.behind += len(vectors) + len(at)
        self.change = change

    def _add_columns(self, columns: Numbers) -> None:
        end = self._count + columns.shape[1]
        if end > self._buffer.shape[1]:
            larger = np.empty((len(COLUMNS), end + end // 8), np.int64)
            larger[:, : self._count] = self._columns
            self._buffer = larger
        self._buffer[:, self._count : end] = columns
        self._count = end

    def _add_vectors(self, vectors: Vectors) -> None:
        """Add to the last block, unless it is large or the first, which may be a mapped file."""
        if len(self._blocks) > 1 and len(self._blocks[-1]) < _CHUNK:
            vectors = np.concatenate([self._blocks.pop(), vectors])
        self._blocks.append(vectors)

    def compact(self) -> "Matrix":
        vectors = np.concatenate(self._blocks)[self._alive]
        return Matrix(self.dimension, self.change, self._columns[:, self._alive], vectors)

    def encode(self) -> bytes:
        """Return the columns, then the vectors, of a compact matrix."""
        return self._columns.astype("<i8").tobytes() + self._blocks[0].tobytes()

    # ------------------------------------------------------------ searching
    def nearest(self, query: bytes, wanted: RowFilter, limit: int) -> tuple[Numbers, Floats]:
        """Return the nearest rows and their scores, with all whose score equals the last."""
        at = self._admitted(wanted)
        scores = self._scores(query, at)
        if limit < len(scores):
            least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
            near = np.flatnonzero(scores >= least)
            at, scores = at[near], scores[near]
        return self._columns[_AT["row"]][at], scores

    def _admitted(self, wanted: RowFilter) -> Numbers:
        mask = self._alive
        for name, numbers in wanted.numbers.items():
            mask = mask & _any_of(self._columns[_AT[name]], numbers)
        if wanted.times is not None:
            since, until = self._columns[_AT["since"]], self._columns[_AT["until"]]
            valid = np.zeros(len(mask), np.bool_)
            for first, last in wanted.times:
                valid |= (since <= last) & (first < until)
            mask = mask & valid & (since < until)
        return np.flatnonzero(mask)

    def _scores(self, query: bytes, at: Numbers) -> Floats:
        """Return the cosines of the query and the vectors at these positions.

        Unless few are admitted, all are computed and cached, because recall searches passages,
        summaries and their children with one query.
        """
        cached, known = self._last_query
        if cached == query:
            return known[at]
        lengths = self._columns[_AT["squared"]]
        if len(at) * _SPARSE < self._count:
            return _cosines(self._gathered(query, at), lengths[at], query)
        known = _cosines(
            np.concatenate([_dots(query, block) for block in self._blocks]), lengths, query
        )
        self._last_query = query, known
        return known[at]

    def _gathered(self, query: bytes, at: Numbers) -> Floats:
        found, first = [np.empty(0)], 0
        for block in self._blocks:
            here = at[(at >= first) & (at < first + len(block))] - first
            found.append(_dots(query, block[here]))
            first += len(block)
        return np.concatenate(found)


def _dots(query: bytes, vectors: Vectors) -> Floats:
    if not len(vectors):
        return np.empty(0)
    rows = np.frombuffer(query, np.int8)[np.newaxis]
    dots: Floats = np.asarray(cdist(rows, vectors, metric="dot"), np.float64)[0]
    return dots


def _cosines(dots: Floats, lengths: Numbers, query: bytes) -> Floats:
    cosines: Floats = dots / np.sqrt((lengths * squared_length(query)).astype(np.float64))
    return cosines


def _any_of(column: Numbers, numbers: frozenset[int]) -> Mask:
    if len(numbers) != 1:
        return np.isin(column, np.array(sorted(numbers), np.int64))
    (number,) = numbers
    same: Mask = column == number
    return same


# ---------------------------------------------------------------- reading
def read_rows(db: sqlite3.Connection, dimension: int, after: int) -> tuple[Numbers, Vectors]:
    found = db.execute(sql.VECTORS, (after, dimension))
    chunks = list(_chunks(found, dimension))
    if not chunks:
        return np.empty((len(COLUMNS), 0), np.int64), np.empty((0, dimension), np.int8)
    columns, vectors = zip(*chunks, strict=True)
    return np.concatenate(columns, axis=1), np.concatenate(vectors)


def _chunks(found: sqlite3.Cursor, dimension: int) -> Iterator[tuple[Numbers, Vectors]]:
    while rows := list(islice(found, _CHUNK)):
        *filed, blobs = zip(*rows, strict=True)
        vectors = np.frombuffer(b"".join(blobs), np.int8).reshape(len(rows), dimension)
        long = np.einsum("ij,ij->i", vectors, vectors, dtype=np.int64)
        flat = array("q")
        for column in filed:
            flat.extend(column)
        columns = np.frombuffer(flat, np.int64).reshape(len(filed), len(rows))
        yield np.concatenate([columns, long[np.newaxis]]), vectors


def gone_in(changes: list[IndexChange]) -> Numbers:
    rows = [row for change in changes for row in json.loads(change.gone)]
    return np.array(sorted(rows), np.int64)


_MAGIC = b"perdure vectors 1\n".ljust(24, b"\0")
_HEAD = struct.Struct("<24sqqqqqI4x")
_NUMBER = 8
_CHECKSUM = 8
"""Bytes at the end of the head."""
WORTH_A_COPY = 2_000
"""Fewer vectors than this are read from their rows as fast."""
_BEHIND = 8
"""A copy is replaced when one row in this many was added or removed."""


def nearest_rows(
    database: AccountDatabase, db: sqlite3.Connection, query: bytes, wanted: RowFilter, limit: int
) -> ScoredRows:
    """Return the rows of the nearest vectors with their scores, equal scores by id."""
    matrix = _up_to_date(database, db, len(query))
    rows, scores = matrix.nearest(query, wanted, limit)
    return best_rows(db, list(zip(rows.tolist(), scores.tolist(), strict=True)), limit)


def _up_to_date(database: AccountDatabase, db: sqlite3.Connection, dimension: int) -> Matrix:
    last = last_change(db, database.account)
    matrix: Matrix | None = database.matrices.get(dimension)
    if matrix is None or not _follow(database, db, matrix, last):
        matrix = load(copy_of(database.path, dimension), dimension)
        if matrix is None or not _follow(database, db, matrix, last):
            columns, vectors = read_rows(db, dimension, 0)
            matrix = Matrix(dimension, last, columns, vectors)
            matrix.behind = len(vectors)
    database.matrices[dimension] = matrix
    return matrix


def _follow(
    database: AccountDatabase, db: sqlite3.Connection, matrix: Matrix, last: IndexChange
) -> bool:
    """Update a matrix to the last change; return False if the log does not reach back to it."""
    mine = matrix.change
    if mine.is_same(last):
        return True
    changes = changes_from(db, database.account, mine.seq)
    if not changes or not mine.is_same(changes[0]):
        return False
    columns, vectors = read_rows(db, matrix.dimension, mine.rows)
    matrix.follow(columns, vectors, gone_in(changes[1:]), last)
    return True


# ---------------------------------------------------------------- the copy
def update_copy(database: AccountDatabase, dimension: int) -> None:
    """Write a copy of the vectors, if they are many and no copy is recent."""
    with database.reading():
        matrix: Matrix | None = database.matrices.get(dimension)
        if matrix is None or not _is_worth_it(matrix):
            return
        matrix.behind = 0
        copy = matrix.compact()
    with suppress(OSError):  # the copy is optional
        remove_unfinished(database.path)
        save(copy_of(database.path, dimension), copy)
        _confirm(database, copy)


def _confirm(database: AccountDatabase, copy: Matrix) -> None:
    """Use the copy; remove it if its change was deleted from the log meanwhile.

    Deleting an owner changes the log first and removes copies then, so this does the reverse.
    """
    path = copy_of(database.path, copy.dimension)
    with database.reading() as db:
        known = changes_from(db, database.account, copy.change.seq)
        if not known or not copy.change.is_same(known[0]):
            path.unlink(missing_ok=True)
        elif (fresh := load(path, copy.dimension)) is not None:
            database.matrices[copy.dimension] = fresh


def _is_worth_it(matrix: Matrix) -> bool:
    return len(matrix) >= WORTH_A_COPY and matrix.behind > len(matrix) // _BEHIND


def load(path: Path, dimension: int) -> Matrix | None:
    """Map a copy into memory; None if it is absent or damaged."""
    try:
        data: NDArray[np.uint8] = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError):
        return None
    head, body = data[: _HEAD.size], data[_HEAD.size :]
    if len(head) < _HEAD.size:
        return None
    magic, width, count, seq, token, rows, crc = _HEAD.unpack(head.tobytes())
    split = count * len(COLUMNS) * _NUMBER
    is_ours = (magic, width) == (_MAGIC, dimension) and len(body) == split + count * dimension
    if not is_ours or _crc(head.tobytes(), body) != crc:
        return None
    columns = body[:split].view("<i8").reshape(len(COLUMNS), count)
    vectors = body[split:].view(np.int8).reshape(count, dimension).view(np.ndarray)
    return Matrix(dimension, IndexChange(seq, token, rows), columns.astype(np.int64), vectors)


def save(path: Path, matrix: Matrix) -> None:
    """Write a compact matrix, then rename it into place, without a sync."""
    body, change = matrix.encode(), matrix.change
    values = (matrix.dimension, len(matrix), change.seq, change.token, change.rows)
    head = _HEAD.pack(_MAGIC, *values, 0)
    crc = _crc(head, np.frombuffer(body, np.uint8))
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}{UNFINISHED}")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_HEAD.pack(_MAGIC, *values, crc))
            file.write(body)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _crc(head: bytes, body: NDArray[np.uint8]) -> int:
    return int(crc32c(body)) ^ int(crc32c(head[: _HEAD.size - _CHECKSUM]))
