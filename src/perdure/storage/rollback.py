"""What a commit that is under way replaces, noted on a disk until it is done.

The note is durable before the first text changes, and durably cleared before the commit is
acknowledged. So one that is found tells of a commit that nobody was told was done; and one that is
not whole tells of a commit that had changed nothing yet.
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import NamedTuple

from perdure.artifacts.cid import CID
from perdure.artifacts.disk import Disk, File
from perdure.faults import explain
from perdure.storage.locator import Locator
from perdure.storage.undo import Replaced

ROLLBACK = "rollback"

_MAGIC = b"PDrb"
_HEAD = struct.Struct("<4sQQ32s")


class Rollback(NamedTuple):
    """How to undo a commit; without texts, none has changed anything."""

    number: int
    """Another one for each commit."""
    replaced: Sequence[Replaced] = ()
    texts: Mapping[CID, str] = {}
    """Those that were there before."""
    is_whole: bool = True


class RollbackFile:
    """The note of one tree."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def read(self) -> Rollback:
        """Return what is noted. Nobody needs to be alone for that."""
        with self._explained():
            try:
                file = self._disk.open(ROLLBACK)
            except FileNotFoundError:
                return Rollback(0)
            return _decoded(file.read(0, file.size()))

    def write(
        self, before: Mapping[Locator, str | None], after: Mapping[Locator, str | None]
    ) -> None:
        """Note what was there, durably, in place of what is noted."""
        said = [
            [locator.key, text, None if wanted is None else str(CID.of(wanted.encode()))]
            for locator, text in before.items()
            if (wanted := after[locator]) != text
        ]
        encoded = json.dumps(said, ensure_ascii=False).encode() if said else b""
        self._write(self.read().number + 1, encoded)

    def clear(self) -> None:
        """Note, durably, that nothing is under way; nothing of the texts is left there."""
        self._write(self.read().number, b"")

    def _write(self, number: int, said: bytes) -> None:
        with self._explained():
            file, is_new = self._opened()
            file.write(0, [_head(number, said), said])
            file.truncate(_HEAD.size + len(said))
            file.sync()
            if is_new:
                self._disk.sync()

    def _opened(self) -> tuple[File, bool]:
        try:
            return self._disk.open(ROLLBACK), False
        except FileNotFoundError:
            return self._disk.open(ROLLBACK, create=True), True

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise explain(error, self._disk.whereabouts, ROLLBACK) from error


def _head(number: int, said: bytes) -> bytes:
    digest = sha256(number.to_bytes(8) + said).digest()
    return _HEAD.pack(_MAGIC, number, len(said), digest)


def _decoded(data: bytes) -> Rollback:
    """Read a note; one that is not whole says nothing but its number."""
    if len(data) < _HEAD.size:
        return Rollback(0, is_whole=False)
    head = data[: _HEAD.size]
    magic, number, length, _ = _HEAD.unpack(head)
    said = data[_HEAD.size : _HEAD.size + length]
    if magic != _MAGIC or head != _head(number, said):
        return Rollback(number, is_whole=False)
    return _noted(number, json.loads(said)) if said else Rollback(number)


def _noted(number: int, said: Sequence[tuple[str, str | None, str | None]]) -> Rollback:
    replaced: list[Replaced] = []
    texts: dict[CID, str] = {}
    for key, text, after in said:
        before = None if text is None else CID.of(text.encode())
        if before is not None and text is not None:
            texts[before] = text
        replaced.append(Replaced(Locator(key), before, CID.parse(after) if after else None))
    return Rollback(number, replaced, texts)
