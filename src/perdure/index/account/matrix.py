"""The vectors of an account in memory, and the nearest of them. Needs numpy and simsimd.

A copy beside the database, mapped into memory, saves a new process from reading them row by row.
Nothing depends on it: one that is not whole, or not of this database, is passed over.
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

from perdure.index.account import schema
from perdure.index.account.file import UNFINISHED, AccountFile, copy_of, remove_unfinished
from perdure.index.account.rows import Change, Scored, Wanted, best, changes_from, last_change
from perdure.index.vectors import squared

Numbers = NDArray[np.int64]
Vectors = NDArray[np.int8]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

COLUMNS = ("row", *schema.FILED, "squared")
"""What is known of each vector: its row, what it is filed under, and the square of its length."""
_AT = {name: at for at, name in enumerate(COLUMNS)}
_FEW = 8
"""If less than one in so many is wanted, it is quicker to gather these."""
_CHUNK = 8192
_MAGIC = b"perdure vectors 1\n".ljust(24, b"\0")
_HEAD = struct.Struct("<24sqqqqqI4x")
_NUMBER = 8
_CHECKSUM = 8
"""Bytes at the end of the head."""
WORTH_A_COPY = 2_000
"""Fewer vectors than this are read as fast from their rows."""
_BEHIND = 8
"""A copy is made anew when one row in so many came or went since."""


class Matrix:
    """All vectors of one dimension, as of a change; those of rows that went are passed over."""

    def __init__(self, dimension: int, change: Change, columns: Numbers, vectors: Vectors) -> None:
        self.dimension = dimension
        self.change = change
        self._room = columns
        self._count = len(vectors)
        self._parts = [vectors]
        self._alive: Mask = np.ones(len(vectors), np.bool_)
        self._asked: tuple[bytes, Floats] = b"", np.empty(0)
        """The last query that was put to all vectors, and how near they are."""
        self.behind = 0
        """How many rows came or went since it was made; at some point it is best made anew."""

    def __len__(self) -> int:
        return self._count

    @property
    def _columns(self) -> Numbers:
        return self._room[:, : self._count]

    # ------------------------------------------------------------ following
    def follow(self, columns: Numbers, vectors: Vectors, gone: Numbers, change: Change) -> None:
        """Take in rows that came, which are all later, and leave out those that went."""
        if len(vectors):
            self._add_columns(columns)
            self._add_vectors(vectors)
            self._alive = np.concatenate([self._alive, np.ones(len(vectors), np.bool_)])
            self._asked = b"", np.empty(0)
        rows = self._columns[_AT["row"]]
        at = np.searchsorted(rows, gone)
        at = at[at < len(rows)]
        at = at[np.isin(rows[at], gone)]
        self._alive[at] = False
        self.behind += len(vectors) + len(at)
        self.change = change

    def _add_columns(self, columns: Numbers) -> None:
        end = self._count + columns.shape[1]
        if end > self._room.shape[1]:
            larger = np.empty((len(COLUMNS), end + end // 8), np.int64)
            larger[:, : self._count] = self._columns
            self._room = larger
        self._room[:, self._count : end] = columns
        self._count = end

    def _add_vectors(self, vectors: Vectors) -> None:
        """Add to the last part, unless it is the one that may be a file, or large."""
        if len(self._parts) > 1 and len(self._parts[-1]) < _CHUNK:
            vectors = np.concatenate([self._parts.pop(), vectors])
        self._parts.append(vectors)

    def compact(self) -> "Matrix":
        vectors = np.concatenate(self._parts)[self._alive]
        return Matrix(self.dimension, self.change, self._columns[:, self._alive], vectors)

    def encode(self) -> bytes:
        """Return columns, then vectors, of a matrix that is compact."""
        return self._columns.astype("<i8").tobytes() + self._parts[0].tobytes()

    # ------------------------------------------------------------ searching
    def nearest(self, query: bytes, wanted: Wanted, most: int) -> tuple[Numbers, Floats]:
        """Return rows and scores of the `most` nearest, with all that are as near as the last."""
        at = self._admitted(wanted)
        scores = self._scores(query, at)
        if most < len(scores):
            least = np.partition(scores, len(scores) - most)[len(scores) - most]
            near = np.flatnonzero(scores >= least)
            at, scores = at[near], scores[near]
        return self._columns[_AT["row"]][at], scores

    def _admitted(self, wanted: Wanted) -> Numbers:
        mask = self._alive
        for name, numbers in wanted.numbers.items():
            mask = mask & _any_of(self._columns[_AT[name]], numbers)
        if wanted.times is not None:
            since, until = self._columns[_AT["since"]], self._columns[_AT["until"]]
            held = np.zeros(len(mask), np.bool_)
            for time in wanted.times:
                held |= (since <= time) & (time < until)
            mask = mask & held
        return np.flatnonzero(mask)

    def _scores(self, query: bytes, at: Numbers) -> Floats:
        """Return the cosine of the query to each vector at these places.

        Unless few are wanted it is reckoned for all of them, and remembered: who asks once asks
        for passages, for summaries, and for what is below these.
        """
        asked, known = self._asked
        if asked == query:
            return known[at]
        lengths = self._columns[_AT["squared"]]
        if len(at) * _FEW < self._count:
            return _cosines(self._gathered(query, at), lengths[at], query)
        known = _cosines(
            np.concatenate([_dots(query, part) for part in self._parts]), lengths, query
        )
        self._asked = query, known
        return known[at]

    def _gathered(self, query: bytes, at: Numbers) -> Floats:
        found, first = [np.empty(0)], 0
        for part in self._parts:
            here = at[(at >= first) & (at < first + len(part))] - first
            found.append(_dots(query, part[here]))
            first += len(part)
        return np.concatenate(found)


def _dots(query: bytes, vectors: Vectors) -> Floats:
    if not len(vectors):
        return np.empty(0)
    asked = np.frombuffer(query, np.int8)[np.newaxis]
    dots: Floats = np.asarray(cdist(asked, vectors, metric="dot"), np.float64)[0]
    return dots


def _cosines(dots: Floats, lengths: Numbers, query: bytes) -> Floats:
    cosines: Floats = dots / np.sqrt((lengths * squared(query)).astype(np.float64))
    return cosines


def _any_of(column: Numbers, numbers: frozenset[int]) -> Mask:
    if len(numbers) != 1:
        return np.isin(column, np.array(sorted(numbers), np.int64))
    (number,) = numbers
    same: Mask = column == number
    return same


# ---------------------------------------------------------------- reading
def read_rows(db: sqlite3.Connection, dimension: int, after: int) -> tuple[Numbers, Vectors]:
    found = db.execute(schema.VECTORS, (after, dimension))
    chunks = list(_chunks(found, dimension))
    if not chunks:
        return np.empty((len(COLUMNS), 0), np.int64), np.empty((0, dimension), np.int8)
    columns, vectors = zip(*chunks, strict=True)
    return np.concatenate(columns, axis=1), np.concatenate(vectors)


def _chunks(found: sqlite3.Cursor, dimension: int) -> Iterator[tuple[Numbers, Vectors]]:
    while rows := list(islice(found, _CHUNK)):
        *filed, kept = zip(*rows, strict=True)
        vectors = np.frombuffer(b"".join(kept), np.int8).reshape(len(rows), dimension)
        long = np.einsum("ij,ij->i", vectors, vectors, dtype=np.int64)
        flat = array("q")
        for column in filed:
            flat.extend(column)
        columns = np.frombuffer(flat, np.int64).reshape(len(filed), len(rows))
        yield np.concatenate([columns, long[np.newaxis]]), vectors


def gone_in(changes: list[Change]) -> Numbers:
    rows = [row for change in changes for row in json.loads(change.gone)]
    return np.array(sorted(rows), np.int64)


def load(path: Path, dimension: int) -> Matrix | None:
    """Map the copy; None if there is none, or a bit of it is not as it was written."""
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
    return Matrix(dimension, Change(seq, token, rows), columns.astype(np.int64), vectors)


def save(path: Path, matrix: Matrix) -> None:
    """Write a compact matrix wholly, then put it in its place; the power may undo that."""
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


def nearest(
    file: AccountFile, db: sqlite3.Connection, query: bytes, wanted: Wanted, most: int
) -> Scored:
    """Return the rows of the nearest vectors, with their scores."""
    matrix = _up_to_date(file, db, len(query))
    rows, scores = matrix.nearest(query, wanted, most)
    return best(db, list(zip(rows.tolist(), scores.tolist(), strict=True)), most)


# ---------------------------------------------------------------- in step with the file
def _up_to_date(file: AccountFile, db: sqlite3.Connection, dimension: int) -> Matrix:
    last = last_change(db, file.account)
    matrix = file.matrices.get(dimension)
    if matrix is None or not _follow(file, db, matrix, last):
        matrix = load(copy_of(file.path, dimension), dimension)
        if matrix is None or not _follow(file, db, matrix, last):
            columns, vectors = read_rows(db, dimension, 0)
            matrix = Matrix(dimension, last, columns, vectors)
            matrix.behind = len(vectors)
    file.matrices[dimension] = matrix
    return matrix


def _follow(file: AccountFile, db: sqlite3.Connection, matrix: Matrix, last: Change) -> bool:
    """Bring a matrix up to date; return whether that can be done from where it is."""
    mine = matrix.change
    if mine.is_same(last):
        return True
    changes = changes_from(db, file.account, mine.seq)
    if not changes or not mine.is_same(changes[0]):
        return False
    columns, vectors = read_rows(db, matrix.dimension, mine.rows)
    matrix.follow(columns, vectors, gone_in(changes[1:]), last)
    return True


# ---------------------------------------------------------------- the copy
def keep_copy(file: AccountFile, dimension: int) -> None:
    """Write a copy of the vectors, if they are many and there is none, or one far behind."""
    with file.reading():
        matrix = file.matrices.get(dimension)
        if matrix is None or not _is_worth_it(matrix):
            return
        matrix.behind = 0
        copy = matrix.compact()
    with suppress(OSError):  # a copy that can't be written is one that is not there
        remove_unfinished(file.path)
        save(copy_of(file.path, dimension), copy)
        _confirm(file, copy)


def _confirm(file: AccountFile, copy: Matrix) -> None:
    """Go on with the copy; remove it if all that it knows of was deleted meanwhile.

    Whoever deletes an owner does so first, and removes the copies then; so here it is the other
    way round.
    """
    path = copy_of(file.path, copy.dimension)
    with file.reading() as db:
        known = changes_from(db, file.account, copy.change.seq)
        if not known or not copy.change.is_same(known[0]):
            path.unlink(missing_ok=True)
        elif (fresh := load(path, copy.dimension)) is not None:
            file.matrices[copy.dimension] = fresh


def _is_worth_it(matrix: Matrix) -> bool:
    return len(matrix) >= WORTH_A_COPY and matrix.behind > len(matrix) // _BEHIND
