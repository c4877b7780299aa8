"""The Merkle tree of a log, kept on a disk, so that a proof need not read the whole log.

    head      how many leaves there are, and their root; with a checksum
    level-0   all leaf hashes, one after the other
    level-1   the root of each 256 of level-0 that are whole; and so on

So 256 hashes of a file are a tile. Nothing is believed because it was read: the tiles that are not
full must lead to the root in the head, a full one to the hash that the level above has of it, and
the last leaves must be the log's, times included. What fails this is made anew from the log. That
is why nothing here is ever synced, and why processes may follow the log at the same time: they
write the same bytes to the same places.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from struct import Struct
from threading import RLock

from google_crc32c import value as crc32c

from perdure.artifacts.disk import Disk, File
from perdure.artifacts.entry import encode
from perdure.artifacts.merkle import (
    HASH_BYTES,
    Frontier,
    Node,
    Reader,
    check_size,
    leaf,
    leaf_hashes,
)
from perdure.artifacts.state import Logged
from perdure.artifacts.tiles import (
    TILE_HEIGHT,
    TILE_WIDTH,
    Edge,
    hash_in_tile,
    split,
    tile_of,
    tile_roots,
)
from perdure.errors import DamageError, FuturePositionError, ProofError

Log = Callable[[int], Iterable[Logged]]
"""Gives the entries after a position, in order."""

_HEAD_NAME = "head"
_HEAD = Struct("<8sQ32s")
_CRC = Struct("<I")
_MAGIC = b"PDtree\x01\x00"
_CHUNK = 16 * TILE_WIDTH
_OVERLAP = 16
_MOST_TILES = 128
_HEAD_READS = 3


class _UnusableError(Exception):
    """What the disk has is not the tree of the log."""


class Tree:
    """The tree of all that `log` has given so far. It may be used by several threads."""

    def __init__(self, disk: Disk, log: Log) -> None:
        self._disk = disk
        self._log = log
        self._lock = RLock()
        self._files: dict[str, File] = {}
        self._tiles: dict[tuple[int, int], bytes] = {}
        self._recognised = False
        self.faults: list[str] = []
        """Why it had to be made anew, each time that it had."""
        self._edge = self._opened()

    @property
    def size(self) -> int:
        """How many entries it has; the log may have more."""
        return self._edge.size

    def follow(self) -> int:
        """Take in what the log has more, and return the size."""
        with self._lock:
            try:
                self._catch_up()
            except _UnusableError as error:
                self._make_anew(str(error))
            return self.size

    def root(self, size: int) -> bytes:
        """Return the root of the first `size` entries."""
        return Frontier.read(self.reader(size), size).root()

    def reader(self, size: int) -> Reader:
        """Return what reads the nodes of the tree of the first `size` entries.

        `FuturePositionError` if the log is not that long.
        """
        check_size(size, smallest=0)
        if size > self.size or not self._recognised:
            self.follow()
        if size > self.size:
            raise FuturePositionError(
                f"the log has {self.size} entries, not {size} yet. Fix: ask for an earlier state."
            )

        def read(node: Node) -> bytes:
            if node.stop > size:
                raise ProofError(f"a tree of {size} leaves has no {node}")
            return self._read(node)

        return read

    def first_change(self) -> int | None:
        """Return the first position at which the log is not what it was when it was followed.

        None if there is none. It reads the whole log, and so finds what `follow`, which looks at
        the last entries, does not: an entry in the middle that was rewritten with all its seals.
        """
        with self._lock:
            leaves = islice(self._leaves(0), self.follow())
            self._tiles = {}  # what the disk has is looked at, too
            try:
                changed = (at for at, found in enumerate(leaves) if found != self._hash(0, at))
                return next((index + 1 for index in changed), None)
            except _UnusableError as error:
                self._make_anew(str(error))
                return None

    def close(self) -> None:
        with self._lock:
            self._files = {}

    # ------------------------------------------------------------ growing
    def _catch_up(self) -> None:
        first = max(0, self.size - _OVERLAP)
        known = [self._hash(0, index) for index in range(first, self.size)]
        leaves = self._leaves(first)
        if self._begin_of(leaves, len(known)) != known:
            raise _UnusableError("it is not the tree of this log, or of more than the log has now")
        self._recognised = True
        self._take_in(leaves)

    def _make_anew(self, fault: str) -> None:
        self.faults.append(fault)
        self._files, self._tiles, self._edge = {}, {}, Edge()
        self._take_in(self._leaves(0))
        self._recognised = True

    def _leaves(self, after: int) -> Iterator[bytes]:
        entries = _in_order(self._log, after)
        return leaf_hashes(leaf(logged.time, encode(logged.entry)) for logged in entries)

    def _begin_of(self, leaves: Iterator[bytes], count: int) -> list[bytes]:
        try:
            return list(islice(leaves, count))
        except FuturePositionError:
            return []

    def _take_in(self, leaves: Iterator[bytes]) -> None:
        while chunk := list(islice(leaves, _CHUNK)):
            self._grow(chunk)

    def _grow(self, leaves: list[bytes]) -> None:
        edge, added = self._edge.grown(leaves)
        for level, hashes in enumerate(added):
            offset = (self.size >> level * TILE_HEIGHT) * HASH_BYTES
            self._file(_level_name(level), create=True).write(offset, [b"".join(hashes)])
        self._file(_HEAD_NAME, create=True).write(0, [_encode_head(edge)])
        self._edge = edge

    # ------------------------------------------------------------ reading
    def _read(self, node: Node) -> bytes:
        with self._lock:
            try:
                return self._read_once(node)
            except _UnusableError as error:
                self._make_anew(str(error))
                return self._read_again(node)

    def _read_again(self, node: Node) -> bytes:
        try:
            return self._read_once(node)
        except _UnusableError as error:
            raise DamageError(
                f"{self._disk.whereabouts}: what was written there comes back changed ({error}). "
                "Fix: check the disk."
            ) from error

    def _read_once(self, node: Node) -> bytes:
        tile = tile_of(node, self.size)
        full = tile.width == TILE_WIDTH
        content = (
            self._tile(tile.level, tile.index) if full else b"".join(self._edge.levels[tile.level])
        )
        return hash_in_tile(node, tile, content)

    def _hash(self, level: int, index: int) -> bytes:
        """Return a hash out of a file, or of the edge."""
        count = self.size >> level * TILE_HEIGHT
        place = index % TILE_WIDTH
        if index >= count - count % TILE_WIDTH:
            return self._edge.levels[level][place]
        tile = self._tile(level, index // TILE_WIDTH)
        return tile[place * HASH_BYTES : (place + 1) * HASH_BYTES]

    def _tile(self, level: int, index: int) -> bytes:
        """Return a full tile that leads to the root."""
        found = self._tiles.get((level, index))
        if found is not None:
            return found
        content = self._content(level, index * TILE_WIDTH, TILE_WIDTH)
        if tile_roots(split(content)) != [self._hash(level + 1, index)]:
            raise _UnusableError(f"{_level_name(level)}: tile {index} is not what it was")
        if len(self._tiles) >= _MOST_TILES:
            self._tiles.pop(next(iter(self._tiles)))
        self._tiles[level, index] = content
        return content

    def _content(self, level: int, first: int, count: int) -> bytes:
        length = count * HASH_BYTES
        try:
            content = self._file(_level_name(level)).read(first * HASH_BYTES, length)
        except OSError as error:
            raise _UnusableError(f"{_level_name(level)} can't be read: {error}") from error
        if len(content) != length:
            raise _UnusableError(f"{_level_name(level)} ends too early")
        return content

    def _opened(self) -> Edge:
        """Return the edge that the disk has; that of the empty tree if it has none to go by."""
        try:
            return self._edge_of(*self._head())
        except FileNotFoundError:
            return Edge()
        except _UnusableError as error:
            self.faults.append(str(error))
            return Edge()

    def _edge_of(self, size: int, root: bytes) -> Edge:
        levels: list[tuple[bytes, ...]] = []
        while count := size >> len(levels) * TILE_HEIGHT:
            width = count % TILE_WIDTH
            content = self._content(len(levels), count - width, width) if width else b""
            levels.append(tuple(split(content)))
        edge = Edge(size, tuple(levels))
        if edge.root() != root:
            raise _UnusableError("the last hashes do not lead to the root")
        return edge

    def _head(self) -> tuple[int, bytes]:
        for _ in range(_HEAD_READS):  # another process may be writing it just now
            try:
                data = self._file(_HEAD_NAME).read(0, _HEAD.size + _CRC.size)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise _UnusableError(f"the head can't be read: {error}") from error
            if data[_HEAD.size :] == _CRC.pack(crc32c(data[: _HEAD.size])):
                magic, size, root = _HEAD.unpack_from(data)
                if magic == _MAGIC and size < 1 << 63:
                    return size, root
        raise _UnusableError("the head fails its checksum")

    def _file(self, name: str, *, create: bool = False) -> File:
        found = self._files.get(name)
        if found is None:
            found = self._files[name] = self._disk.open(name, create=create)
        return found


def _in_order(log: Log, after: int) -> Iterator[Logged]:
    for position, logged in enumerate(log(after), after + 1):
        if logged.position != position:
            raise DamageError(
                f"the log gives entry {logged.position} where {position} must follow. "
                "Fix: verify the store."
            )
        yield logged


def _encode_head(edge: Edge) -> bytes:
    packed = _HEAD.pack(_MAGIC, edge.size, edge.root())
    return packed + _CRC.pack(crc32c(packed))


def _level_name(level: int) -> str:
    return f"level-{level}"
