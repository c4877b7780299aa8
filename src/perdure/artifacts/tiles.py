"""Tiles: how a Merkle tree that only grows is cut into pieces that never change.

As C2SP's tlog-tiles has it: a piece holds 256 neighbouring hashes of every eighth level, and tells
those of the seven levels above them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from perdure.artifacts.merkle import HASH_BYTES, Frontier, Node, check_size, parents
from perdure.errors import ProofError

TILE_HEIGHT = 8
TILE_WIDTH = 1 << TILE_HEIGHT


@dataclass(frozen=True, slots=True, order=True)
class Tile:
    """Up to 256 neighbouring hashes of every eighth level, as C2SP's tlog-tiles lays them out.

    Its content is the hashes of the nodes `(8 * level, 256 * index)` and on, one after another. A
    narrower tile is the beginning of the full one that it grows into.
    """

    level: int
    index: int
    width: int = TILE_WIDTH

    def __post_init__(self) -> None:
        if not 1 <= self.width <= TILE_WIDTH:
            raise ProofError(f"a tile is 1 to {TILE_WIDTH} hashes wide")
        Node(self.level * TILE_HEIGHT, self.index * TILE_WIDTH + self.width - 1)  # its last one

    def nodes(self) -> list[Node]:
        """Return the nodes whose hashes are its content."""
        first = self.index * TILE_WIDTH
        return [Node(self.level * TILE_HEIGHT, first + place) for place in range(self.width)]


def tile_of(node: Node, size: int) -> Tile:
    """Return the one tile from which a tree of `size` leaves tells the hash of `node`."""
    check_size(size)
    if node.stop > size:
        raise ProofError(f"a tree of {size} leaves has no {node}")
    level, height = divmod(node.level, TILE_HEIGHT)
    index = (node.index << height) // TILE_WIDTH
    return Tile(level, index, _width(level, index, size))


def tiles_of(nodes: Iterable[Node], size: int) -> list[Tile]:
    """Return the tiles that tell the hashes of `nodes`, each once and in order."""
    return sorted({tile_of(node, size) for node in nodes})


def new_tiles(old: int, new: int) -> Iterator[Tile]:
    """Yield the tiles of a tree that it did not have, or had narrower, when it was smaller."""
    check_size(old, smallest=0)
    check_size(new, smallest=old)
    level = 0
    while stop := new >> level * TILE_HEIGHT:
        start = old >> level * TILE_HEIGHT
        if start < stop:
            for index in range(start // TILE_WIDTH, (stop - 1) // TILE_WIDTH + 1):
                yield Tile(level, index, _width(level, index, new))
        level += 1


def hash_in_tile(node: Node, tile: Tile, content: bytes) -> bytes:
    """Return the hash of `node`, told from the content of the tile that `tile_of` names."""
    level, height = divmod(node.level, TILE_HEIGHT)
    start = (node.index << height) - tile.index * TILE_WIDTH
    stop = start + (1 << height)
    if level != tile.level or start < 0 or stop > tile.width:
        raise ProofError(f"{node} is not in {tile}")
    if len(content) != tile.width * HASH_BYTES:
        raise ProofError(f"{tile} can't have a content of {len(content)} bytes")
    hashes = split(content[start * HASH_BYTES : stop * HASH_BYTES])
    while len(hashes) > 1:
        hashes = parents(hashes)
    return hashes[0]


@dataclass(frozen=True, slots=True)
class Edge:
    """The right edge of a tree: of each level the last hashes, which make no full tile yet."""

    size: int = 0
    levels: tuple[tuple[bytes, ...], ...] = ()

    def root(self) -> bytes:
        roots = (Frontier().extend(hashes).roots for hashes in reversed(self.levels))
        return Frontier(self.size, tuple(root for some in roots for root in some)).root()

    def grown(self, leaves: list[bytes]) -> tuple["Edge", list[list[bytes]]]:
        """Return the edge with more leaves, and what they add to each level."""
        levels, fresh = list(self.levels), leaves
        added: list[list[bytes]] = []
        while fresh:
            level = len(added)
            added.append(fresh)
            row = [*(levels[level] if level < len(levels) else ()), *fresh]
            full = len(row) - len(row) % TILE_WIDTH
            levels[level : level + 1] = [tuple(row[full:])]
            fresh = tile_roots(row[:full])
        return Edge(self.size + len(leaves), tuple(levels)), added


def tile_roots(hashes: list[bytes]) -> list[bytes]:
    """Return the root of each full tile in a row of them."""
    for _ in range(TILE_HEIGHT):
        hashes = parents(hashes)
    return hashes


def split(content: bytes) -> list[bytes]:
    """Return the hashes that stand one after another in the content of a tile."""
    return [content[at : at + HASH_BYTES] for at in range(0, len(content), HASH_BYTES)]


def _width(level: int, index: int, size: int) -> int:
    return min(TILE_WIDTH, (size >> level * TILE_HEIGHT) - index * TILE_WIDTH)
