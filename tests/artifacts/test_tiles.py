from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.artifacts.merkle import (
    LARGEST_SIZE,
    Frontier,
    Node,
    Reader,
    consistency_nodes,
    frontier_nodes,
    inclusion_nodes,
    leaf_hash,
    leaf_hashes,
    node_hash,
    prove_consistency,
    prove_inclusion,
    reader_over,
    verify_consistency,
)
from perdure.artifacts.tiles import (
    TILE_WIDTH,
    Tile,
    hash_in_tile,
    new_tiles,
    tile_of,
    tiles_of,
)
from perdure.errors import ProofError

NO_SIZES: tuple[Any, ...] = (
    *(-1, LARGEST_SIZE + 1, 2**64, 10**5000, -(10**5000), True, 1.0, "1", None, b"1"),
)
LARGE = 70_000
EDGES = (1, 2, 3, 255, 256, 257, 511, 512, 513, 1000, 65_535, 65_536, 65_537, 65_792, LARGE)


@pytest.fixture(scope="module")
def large() -> Reader:
    return reader_over(leaf_hashes(number.to_bytes(4) for number in range(LARGE)))


def content(tile: Tile, reader: Reader) -> bytes:
    return b"".join(reader(node) for node in tile.nodes())


class Shelf:
    """Reads nodes out of the tiles that it was given, and knows which it opened."""

    def __init__(self, tiles: list[Tile], size: int, reader: Reader) -> None:
        self.size = size
        self.contents = {tile: content(tile, reader) for tile in tiles}
        self.opened: set[Tile] = set()

    def __call__(self, node: Node) -> bytes:
        tile = tile_of(node, self.size)
        self.opened.add(tile)
        return hash_in_tile(node, tile, self.contents[tile])


def naive_root(leaves: list[bytes]) -> bytes:
    """Return the root over a power of two of leaves, by the definition."""
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    return node_hash(naive_root(leaves[:middle]), naive_root(leaves[middle:]))


class TestTiles:
    def test_a_tree_has_the_tiles_of_the_specs_examples(self) -> None:
        tiles = list(new_tiles(0, 70_000))

        assert [tile for tile in tiles if tile.level == 0] == [
            *(Tile(0, index) for index in range(273)),
            Tile(0, 273, 112),
        ]
        assert [tile for tile in tiles if tile.level] == [Tile(1, 0), Tile(1, 1, 17), Tile(2, 0, 1)]
        assert list(new_tiles(0, 256)) == [Tile(0, 0), Tile(1, 0, 1)]
        assert list(new_tiles(0, 0)) == []

    def test_a_tile_holds_the_roots_of_the_full_tiles_below_it(self) -> None:
        entries = [number.to_bytes(4) for number in range(600)]
        leaves = [leaf_hash(entry) for entry in entries]
        reader = reader_over(leaves)

        assert content(Tile(1, 0, 2), reader) == naive_root(leaves[:256]) + naive_root(
            leaves[256:512]
        )
        assert content(Tile(0, 2, 88), reader) == b"".join(leaves[512:])

    def test_growth_makes_just_the_tiles_that_were_not_there(self) -> None:
        for old, new in product((0, *EDGES), EDGES):
            if old <= new:
                added = set(new_tiles(0, new)) - set(new_tiles(0, old))
                assert set(new_tiles(old, new)) == added

    def test_growth_that_shrinks_is_refused(self) -> None:
        for old, new in ((3, 2), (1, 0), (-1, 2), (-2, -1)):
            with pytest.raises(ProofError):
                list(new_tiles(old, new))

    def test_what_is_no_size_is_refused(self) -> None:
        for size in NO_SIZES:
            with pytest.raises(ProofError, match="size"):
                tile_of(Node(0, 0), size)
            with pytest.raises(ProofError, match="size"):
                frontier_nodes(size)
            with pytest.raises(ProofError, match="size"):
                list(new_tiles(0, size))
            with pytest.raises(ProofError, match="size"):
                list(new_tiles(size, 9))

    def test_the_last_leaf_of_a_largest_tree_has_a_tile(self) -> None:
        last = tile_of(Node(0, LARGEST_SIZE - 1), LARGEST_SIZE)

        assert last == Tile(0, 2**55 - 1, 255)
        with pytest.raises(ProofError):
            Tile(0, 2**55 - 1, 256)

    def test_every_node_of_a_tree_is_told_by_a_tile_of_it(self) -> None:
        for size in (1, 2, 255, 256, 257, 600):
            reader = reader_over(leaf_hashes(number.to_bytes(4) for number in range(size)))
            contents = {tile: content(tile, reader) for tile in new_tiles(0, size)}
            nodes = [Node(level, at) for level in range(10) for at in range(size >> level)]
            for node in nodes:
                tile = tile_of(node, size)
                assert hash_in_tile(node, tile, contents[tile]) == reader(node)
            assert tiles_of(nodes, size) == sorted(contents)

    @pytest.mark.parametrize("size", EDGES)
    def test_a_proof_of_inclusion_opens_just_the_tiles_that_were_named(
        self, large: Reader, size: int
    ) -> None:
        for index in {0, size // 3, size // 2, size - 1, min(255, size - 1), min(256, size - 1)}:
            tiles = tiles_of(inclusion_nodes(index, size), size)
            shelf = Shelf(tiles, size, large)
            path = prove_inclusion(shelf, index, size)
            assert path == prove_inclusion(large, index, size)
            assert shelf.opened == set(tiles) <= set(new_tiles(0, size))

    @pytest.mark.parametrize(("old", "new"), list(product(EDGES, EDGES)))
    def test_a_proof_of_consistency_opens_just_the_tiles_that_were_named(
        self, large: Reader, old: int, new: int
    ) -> None:
        if old > new:
            old, new = new, old
        tiles = tiles_of(consistency_nodes(old, new), new)
        shelf = Shelf(tiles, new, large)
        path = prove_consistency(shelf, old, new)
        assert path == prove_consistency(large, old, new)
        assert shelf.opened == set(tiles) <= set(new_tiles(0, new))
        roots = (Frontier.read(large, size).root() for size in (old, new))
        verify_consistency(old, next(roots), new, next(roots), path)

    @pytest.mark.parametrize("size", EDGES)
    def test_a_frontier_opens_just_the_tiles_that_were_named(
        self, large: Reader, size: int
    ) -> None:
        tiles = tiles_of(frontier_nodes(size), size)
        shelf = Shelf(tiles, size, large)

        assert Frontier.read(shelf, size) == Frontier.read(large, size)
        assert shelf.opened == set(tiles)

    @settings(deadline=None)
    @given(st.integers(1, LARGEST_SIZE), st.data())
    def test_a_proof_in_a_tree_of_any_size_needs_few_tiles(
        self, size: int, data: st.DataObject
    ) -> None:
        index = data.draw(st.integers(0, size - 1))
        tiles = tiles_of(inclusion_nodes(index, size), size)

        assert len(tiles) <= 2 * 8
        assert all(1 <= tile.width <= TILE_WIDTH for tile in tiles)
        assert all(tile.nodes()[-1].stop <= size for tile in tiles)

    @pytest.mark.parametrize(
        ("level", "index", "width"),
        [
            *((-1, 0, 1), (0, -1, 1), (0, 0, 0), (0, 0, 257), (0, 0, -1)),
            *((8, 0, 1), (10**9, 0, 1), (0, 2**55, 256), (0, 2**63, 1), (7, 128, 1)),
        ],
    )
    def test_a_tile_of_no_tree_can_not_be_named(self, level: int, index: int, width: int) -> None:
        with pytest.raises(ProofError):
            Tile(level, index, width)

    def test_a_node_outside_of_the_tree_has_no_tile(self) -> None:
        for node in (Node(0, 5), Node(1, 2), Node(3, 0)):
            with pytest.raises(ProofError, match="5 leaves"):
                tile_of(node, 5)

    @pytest.mark.parametrize(
        "node", [Node(0, 255), Node(0, 259), Node(1, 129), Node(2, 64), Node(8, 1), Node(7, 0)]
    )
    def test_a_node_outside_of_a_tile_is_refused(self, node: Node) -> None:
        with pytest.raises(ProofError, match="is not in"):
            hash_in_tile(node, Tile(0, 1, 3), bytes(3 * 32))

    @pytest.mark.parametrize("length", [0, 95, 97, 2 * 32, 256 * 32])
    def test_a_content_of_the_wrong_length_is_refused(self, length: int) -> None:
        with pytest.raises(ProofError, match=f"{length} bytes"):
            hash_in_tile(Node(0, 256), Tile(0, 1, 3), bytes(length))
