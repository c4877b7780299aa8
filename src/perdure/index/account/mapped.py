"""A copy of an account's vectors beside its database, mapped into memory by whoever searches.

It saves a new process from reading them row by row. Nothing depends on it: one that is not whole,
or not of this database, is passed over.
"""

import os
import secrets
import struct
from pathlib import Path

import numpy as np
from google_crc32c import value as crc32c
from numpy.typing import NDArray

from perdure.index.account.changes import Change
from perdure.index.account.copies import UNFINISHED
from perdure.index.account.matrix import COLUMNS, Matrix

_MAGIC = b"perdure vectors 1\n".ljust(24, b"\0")
_HEAD = struct.Struct("<24sqqqqqI4x")
_NUMBER = 8
_CHECKSUM = 8
"""Bytes at the end of the head."""


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
    """Return the checksum of a copy, without that of its own four bytes."""
    return int(crc32c(body)) ^ int(crc32c(head[: _HEAD.size - _CHECKSUM]))
