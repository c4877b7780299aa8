"""The vectors of an account in memory, and the nearest of them. Needs numpy and simsimd."""

import json
import sqlite3
from array import array
from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from simsimd import cdist

from perdure.index.account import schema
from perdure.index.account.rows import Change, Wanted
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
            for first, last in wanted.times:
                held |= (since <= last) & (first < until)
            mask = mask & held & (since < until)
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
