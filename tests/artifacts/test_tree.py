"""The tree on a disk; `python tests/artifacts/test_tree.py` prints how long it takes."""

import errno
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from google_crc32c import value as crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.artifacts import tree as tree_module
from perdure.artifacts.cid import CID
from perdure.artifacts.disk import Buffer, Disk, FolderDisk, FolderFile
from perdure.artifacts.entry import Bind, Put, encode
from perdure.artifacts.merkle import (
    EMPTY_ROOT,
    Node,
    leaf,
    leaf_hash,
    prove_consistency,
    prove_inclusion,
    reader_over,
    root_of,
    verify_consistency,
    verify_inclusion,
)
from perdure.artifacts.state import Logged
from perdure.artifacts.tiles import Edge, Tile, new_tiles
from perdure.artifacts.tree import Tree
from perdure.errors import DamageError, FuturePositionError, ProofError

NEVER = 10**9
CIDS = [CID.of(bytes([number])) for number in range(256)]


def entry_at(position: int, history: int = 0) -> Logged:
    at = Put(CIDS[position % 256], position, history, 7)
    return Logged(position, position, 1_767_225_600_000 + position // 3, at)


class Written:
    """A log that ends at `size`; from `fork` on it is another one's."""

    def __init__(self, size: int, fork: int = NEVER) -> None:
        self.size = size
        self.fork = fork
        self.asked: list[int] = []

    def __call__(self, after: int) -> Iterator[Logged]:
        self.asked.append(after)
        for position in range(after + 1, self.size + 1):
            yield entry_at(position, self.fork if position >= self.fork else 0)

    def leaves(self) -> list[bytes]:
        logged = ((each.time, encode(each.entry)) for each in self(0))
        return [leaf_hash(leaf(time, encoded)) for time, encoded in logged]


class Strict(Written):
    """A log that refuses to be asked for what comes after its end."""

    def __call__(self, after: int) -> Iterator[Logged]:
        if after > self.size:
            raise FuturePositionError("the log is not that long yet")
        return super().__call__(after)


LONG = 70_000
EDGES = (0, 1, 2, 15, 16, 17, 255, 256, 257, 511, 512, 513, 1000, 65_535, 65_536, 65_537, LONG)


def pairs(sizes: Sequence[int]) -> list[tuple[int, int]]:
    return [(old, new) for old, new in product(sizes, sizes) if old < new]


@pytest.fixture(scope="module")
def leaves() -> list[bytes]:
    return Written(LONG).leaves()


def seeded(seed: int) -> Random:
    return Random(seed)


def followed(folder: Path, log: Written) -> Tree:
    tree = Tree(FolderDisk(folder), log)
    tree.follow()
    return tree


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def put_back(folder: Path, contents: dict[str, bytes]) -> None:
    for path in folder.iterdir():
        path.unlink()
    for name, content in contents.items():
        (folder / name).write_bytes(content)


class TestLeaf:
    def test_it_is_the_time_in_eight_bytes_and_then_the_entry(self) -> None:
        assert leaf(0x0102, b"entry") == b"\x02\x01\0\0\0\0\0\0entry"

    @pytest.mark.parametrize("wrong", [-1, 2**64, True, 1.0, None, "1"])
    def test_a_time_that_can_not_be_is_refused(self, wrong: int) -> None:
        with pytest.raises(ProofError, match="time"):
            leaf(wrong, b"")


class TestEdge:
    def test_its_root_is_that_of_the_tree_however_it_grew(self, leaves: list[bytes]) -> None:
        for old, new in product(EDGES[:13], EDGES[:13]):
            if old <= new:
                edge = Edge().grown(leaves[:old])[0].grown(leaves[old:new])[0]
                assert edge.size == new
                assert edge.root() == root_of(leaves[:new])

    def test_what_is_added_to_the_levels_is_the_content_of_new_tiles(
        self, leaves: list[bytes]
    ) -> None:
        reader = reader_over(leaves[:1000])
        _, added = Edge().grown(leaves[:1000])
        for level, hashes in enumerate(added):
            tiles = [tile for tile in new_tiles(0, 1000) if tile.level == level]
            assert hashes == [reader(node) for tile in tiles for node in tile.nodes()]


class TestGrowth:
    def test_an_empty_log_has_the_empty_root(self, tmp_path: Path) -> None:
        tree = followed(tmp_path, Written(0))

        assert tree.size == 0
        assert tree.root(0) == EMPTY_ROOT
        assert list(tmp_path.iterdir()) == []

    def test_it_has_the_root_of_every_state_of_a_short_log(
        self, tmp_path: Path, leaves: list[bytes]
    ) -> None:
        tree = followed(tmp_path, Written(600))

        assert [tree.root(size) for size in range(601)] == [
            root_of(leaves[:size]) for size in range(601)
        ]

    def test_it_has_the_root_of_the_states_of_a_long_log(
        self, tmp_path: Path, leaves: list[bytes]
    ) -> None:
        followed(tmp_path, Written(LONG))
        tree = Tree(FolderDisk(tmp_path), Written(LONG))

        assert {size: tree.root(size) for size in EDGES} == {
            size: root_of(leaves[:size]) for size in EDGES
        }
        assert tree.faults == []

    @pytest.mark.parametrize(("old", "new"), [*pairs(EDGES[:13]), *pairs(EDGES[13:])])
    def test_it_catches_up_from_where_it_was(
        self, tmp_path: Path, leaves: list[bytes], old: int, new: int
    ) -> None:
        followed(tmp_path, Written(old))
        log = Written(new)
        tree = Tree(FolderDisk(tmp_path), log)

        assert tree.size == old
        assert tree.follow() == new
        assert log.asked == [max(0, old - 16)]
        assert tree.root(new) == root_of(leaves[:new])
        assert tree.faults == []

    def test_one_entry_at_a_time_makes_the_same_files(self, tmp_path: Path) -> None:
        log = Written(0)
        tree = Tree(FolderDisk(tmp_path / "slow"), log)
        for log.size in range(1, 530):
            tree.follow()
        followed(tmp_path / "fast", log)

        assert files(tmp_path / "slow") == files(tmp_path / "fast")

    def test_its_files_are_the_tiles_one_after_another(
        self, tmp_path: Path, leaves: list[bytes]
    ) -> None:
        followed(tmp_path, Written(1000))
        reader = reader_over(leaves[:1000])
        found = files(tmp_path)

        assert sorted(found) == ["head", "level-0", "level-1"]
        for tile in new_tiles(0, 1000):
            content = b"".join(map(reader, tile.nodes()))
            start = tile.index * Tile(0, 0).width * 32
            assert found[f"level-{tile.level}"][start : start + len(content)] == content

    def test_asking_for_more_than_it_has_makes_it_follow(self, tmp_path: Path) -> None:
        log = Written(10)
        tree = followed(tmp_path, log)
        log.size = 300

        assert tree.root(300) == root_of(log.leaves())
        assert tree.size == 300

    def test_asking_for_more_than_the_log_has_is_refused(self, tmp_path: Path) -> None:
        tree = followed(tmp_path, Written(10))

        with pytest.raises(FuturePositionError, match="10 entries, not 11"):
            tree.root(11)
        with pytest.raises(ProofError):
            tree.root(-1)

    def test_a_reader_of_an_old_state_knows_nothing_of_later_ones(self, tmp_path: Path) -> None:
        reader = followed(tmp_path, Written(600)).reader(300)

        assert reader(Node(0, 299))
        with pytest.raises(ProofError, match="300 leaves"):
            reader(Node(0, 300))
        with pytest.raises(ProofError, match="300 leaves"):
            reader(Node(8, 1))

    def test_its_proofs_hold(self, tmp_path: Path, leaves: list[bytes]) -> None:
        tree = followed(tmp_path, Written(LONG))
        sizes = [size for size in EDGES if size]
        for size in sizes:
            for index in {0, size // 3, size - 1}:
                path = prove_inclusion(tree.reader(size), index, size)
                verify_inclusion(leaves[index], index, size, path, root_of(leaves[:size]))
        for old, new in product(sizes, sizes):
            if old <= new:
                path = prove_consistency(tree.reader(new), old, new)
                verify_consistency(old, tree.root(old), new, tree.root(new), path)

    def test_it_keeps_few_tiles_in_memory(self, tmp_path: Path) -> None:
        tree = followed(tmp_path, Written(LONG))
        for index in range(0, LONG, 256):
            tree.reader(LONG)(Node(0, index))

        assert len(tree._tiles) <= tree_module._MOST_TILES

    def test_closed_and_used_again_it_opens_its_files_again(self, tmp_path: Path) -> None:
        tree = followed(tmp_path, Written(600))
        tree.close()

        assert tree.root(300) == root_of(Written(300).leaves())


class TestAnotherLog:
    """What the disk has may be of a log that was cut, put back from a copy, or another one."""

    @pytest.mark.parametrize("log_type", [Written, Strict])
    @pytest.mark.parametrize(("had", "has"), [(1, 0), (20, 3), (600, 599), (600, 512), (600, 20)])
    def test_a_tree_that_is_ahead_of_its_log_is_made_anew(
        self, tmp_path: Path, had: int, has: int, log_type: type[Written]
    ) -> None:
        followed(tmp_path, Written(had))
        log = log_type(has)
        tree = Tree(FolderDisk(tmp_path), log)

        assert tree.root(has) == root_of(log.leaves())
        assert tree.size == has
        assert len(tree.faults) == 1

    @pytest.mark.parametrize(("had", "fork"), [(1, 1), (20, 1), (600, 590), (600, 100), (512, 512)])
    @pytest.mark.parametrize("more", [0, 1, 300])
    def test_a_tree_of_another_log_is_made_anew(
        self, tmp_path: Path, had: int, fork: int, more: int
    ) -> None:
        followed(tmp_path, Written(had))
        log = Written(had + more, fork)
        tree = Tree(FolderDisk(tmp_path), log)

        assert tree.root(had) == root_of(log.leaves()[:had])
        assert tree.root(had + more) == root_of(log.leaves())
        again = Tree(FolderDisk(tmp_path), log)
        assert again.root(had + more) == root_of(log.leaves())
        assert again.faults == []

    def test_an_old_root_is_not_told_before_the_log_was_looked_at(self, tmp_path: Path) -> None:
        followed(tmp_path, Written(600))
        other = Written(700, fork=550)

        assert Tree(FolderDisk(tmp_path), other).root(600) == root_of(other.leaves()[:600])

    def test_what_was_remembered_of_another_log_is_forgotten(self, tmp_path: Path) -> None:
        log = Written(600)
        tree = followed(tmp_path, log)
        tree.root(200)
        log.fork = 100
        tree.follow()

        assert tree.root(200) == root_of(log.leaves()[:200])

    def test_what_a_shorter_log_left_over_is_never_read(self, tmp_path: Path) -> None:
        """A full tile of the old log stays behind the end of the new tree, and is not believed."""
        followed(tmp_path, Written(1024))
        old = files(tmp_path)
        log = Written(700, fork=600)
        followed(tmp_path, log)
        now = files(tmp_path)
        log.size = 800
        followed(tmp_path, log)
        grown = files(tmp_path)
        for names in product([old, now, grown], repeat=3):
            mixed = {
                name: of[name]
                for name, of in zip(("head", "level-0", "level-1"), names, strict=True)
            }
            put_back(tmp_path, mixed)
            assert_right(tmp_path, log)

    def test_an_entry_that_was_rewritten_in_the_middle_is_found_by_reading_all(
        self, tmp_path: Path
    ) -> None:
        log = Written(600)
        tree = followed(tmp_path, log)
        assert tree.first_change() is None

        def rewritten(after: int) -> Iterator[Logged]:
            return (entry_at(at.position, int(at.position in {257, 400})) for at in log(after))

        assert Tree(FolderDisk(tmp_path), rewritten).first_change() == 257
        (tmp_path / "level-0").write_bytes(bytes(600 * 32))
        assert tree.first_change() is None
        assert tree.faults == ["level-0: tile 0 is not what it was"]
        assert_right(tmp_path, log)

    def test_a_log_with_a_gap_is_refused(self, tmp_path: Path) -> None:
        def gap(after: int) -> Iterator[Logged]:
            return (each for each in Written(30)(after) if each.position != 7)

        tree = Tree(FolderDisk(tmp_path), gap)
        for _ in range(2):
            with pytest.raises(DamageError, match="entry 8 where 7 must follow"):
                tree.follow()
        assert tree.size == 0

    def test_damage_of_the_log_itself_is_passed_on_and_the_tree_kept(self, tmp_path: Path) -> None:
        followed(tmp_path, Written(300))

        def damaged(after: int) -> Iterator[Logged]:
            yield from Written(310)(after)
            raise DamageError("a frame fails its checksum")

        tree = Tree(FolderDisk(tmp_path), damaged)
        with pytest.raises(DamageError, match="a frame"):
            tree.follow()
        assert tree.faults == []
        assert Tree(FolderDisk(tmp_path), Written(310)).size >= 300


def assert_right(folder: Path, log: Written, also: Sequence[int] = ()) -> Tree:
    """Whatever is in the folder, the roots are the log's; and then the folder is in order."""
    leaves = log.leaves()
    tree = Tree(FolderDisk(folder), log)
    for size in {log.size, log.size // 2, *also}:
        assert tree.root(size) == root_of(leaves[:size])
    path = prove_inclusion(tree.reader(log.size), log.size // 3, log.size)
    verify_inclusion(leaves[log.size // 3], log.size // 3, log.size, path, root_of(leaves))
    again = Tree(FolderDisk(folder), log)
    assert again.root(log.size) == root_of(leaves)
    assert again.faults == []
    return tree


class TestDamage:
    LOG = Written(530)

    @pytest.fixture
    def whole(self, tmp_path: Path) -> dict[str, bytes]:
        followed(tmp_path, self.LOG)
        return files(tmp_path)

    def test_every_flipped_bit_of_the_head_is_noticed(
        self, tmp_path: Path, whole: dict[str, bytes]
    ) -> None:
        for bit in range(8 * len(whole["head"])):
            put_back(tmp_path, whole | {"head": flipped(whole["head"], bit)})
            tree = Tree(FolderDisk(tmp_path), Written(530))
            assert tree.size == 0
            assert tree.faults == ["the head fails its checksum"]
        assert_right(tmp_path, self.LOG)

    def test_a_flipped_bit_of_any_hash_is_noticed(
        self, tmp_path: Path, whole: dict[str, bytes]
    ) -> None:
        random = seeded(1)
        for name, level in (("level-0", 0), ("level-1", 8)):
            for index in range(len(whole[name]) // 32):
                bit = index * 256 + random.randrange(256)
                put_back(tmp_path, whole | {name: flipped(whole[name], bit)})
                tree = Tree(FolderDisk(tmp_path), self.LOG)
                expected = whole[name][32 * index : 32 * index + 32]
                assert tree.reader(530)(Node(level, index)) == expected
                assert len(tree.faults) == 1
                assert files(tmp_path) == whole

    @pytest.mark.parametrize("name", ["head", "level-0", "level-1"])
    def test_a_file_that_breaks_off_anywhere_is_noticed(
        self, tmp_path: Path, whole: dict[str, bytes], name: str
    ) -> None:
        length = len(whole[name])
        for kept in {*range(0, length, max(1, length // 40)), length - 1}:
            put_back(tmp_path, whole | {name: whole[name][:kept]})
            assert_right(tmp_path, self.LOG)
            put_back(tmp_path, whole | {name: whole[name][:kept] + bytes(length - kept)})
            assert_right(tmp_path, self.LOG)

    def test_any_file_may_be_missing(self, tmp_path: Path, whole: dict[str, bytes]) -> None:
        for kept in product([False, True], repeat=len(whole)):
            left = {name: whole[name] for name, keep in zip(whole, kept, strict=True) if keep}
            put_back(tmp_path, left)
            assert_right(tmp_path, self.LOG)

    def test_any_mix_of_states_is_noticed(self, tmp_path: Path) -> None:
        """After a power cut each file may be as it was at another time."""
        states = []
        for size in (1, 255, 256, 300, 530):
            followed(tmp_path, Written(size))
            states.append({"level-1": b"", **files(tmp_path)})
        for mixed in product(states, repeat=3):
            names = ("head", "level-0", "level-1")
            put_back(tmp_path, {name: of[name] for name, of in zip(names, mixed, strict=True)})
            assert_right(tmp_path, self.LOG, also=[255, 256, 300])

    def test_random_damage_is_noticed(self, tmp_path: Path, whole: dict[str, bytes]) -> None:
        random = seeded(2)
        for _ in range(150):
            damaged = {name: mangled(content, random) for name, content in whole.items()}
            put_back(tmp_path, damaged)
            assert_right(tmp_path, self.LOG, also=[random.randrange(531)])

    def test_damage_that_comes_while_it_is_open_is_noticed(self, tmp_path: Path) -> None:
        tree = followed(tmp_path, self.LOG)
        content = bytearray((tmp_path / "level-0").read_bytes())
        content[5000] ^= 1
        (tmp_path / "level-0").write_bytes(content)

        assert tree.root(200) == root_of(self.LOG.leaves()[:200])
        assert tree.faults == ["level-0: tile 0 is not what it was"]

    def test_a_disk_that_changes_what_is_written_is_an_error(self, tmp_path: Path) -> None:
        tree = Tree(Forgetful(tmp_path), self.LOG)

        with pytest.raises(DamageError, match="comes back changed"):
            tree.root(200)

    @pytest.mark.parametrize("name", ["head", "level-0", "level-1"])
    def test_a_file_that_can_not_be_read_is_made_anew(
        self, tmp_path: Path, whole: dict[str, bytes], name: str
    ) -> None:
        tree = Tree(BadSector(tmp_path, name), self.LOG)

        assert tree.root(200) == root_of(self.LOG.leaves()[:200])
        assert tree.root(530) == root_of(self.LOG.leaves())
        assert "can't be read" in tree.faults[0]
        assert files(tmp_path) == whole

    def test_a_head_of_a_later_version_is_not_believed(
        self, tmp_path: Path, whole: dict[str, bytes]
    ) -> None:
        body = b"PDtree\x02\x00" + whole["head"][8:48]
        head = body + tree_module._CRC.pack(crc32c(body))
        put_back(tmp_path, whole | {"head": head})

        assert Tree(FolderDisk(tmp_path), self.LOG).size == 0
        assert_right(tmp_path, self.LOG)

    def test_a_head_of_an_endless_tree_is_not_believed(self, tmp_path: Path) -> None:
        for size in (2**63, 2**63 - 1, 2**40):
            body = tree_module._HEAD.pack(b"PDtree\x01\x00", size, bytes(32))
            head = body + tree_module._CRC.pack(crc32c(body))
            put_back(tmp_path, {"head": head, "level-7": bytes(4096)})
            assert_right(tmp_path, self.LOG)


def flipped(value: bytes, bit: int) -> bytes:
    changed = bytearray(value)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def mangled(content: bytes, random: Random) -> bytes:
    at, length = random.randrange(len(content)), random.randrange(1, 600)
    how = random.randrange(6)
    if how == 0:
        return content[:at]
    if how == 1:
        return flipped(content, at * 8 + random.randrange(8))
    if how == 2:
        return (content[:at] + bytes(length) + content[at + length :])[: len(content)]
    if how == 3:
        return content[:at] + random.randbytes(length) + content[at:]
    if how == 4:
        return content + random.randbytes(length)
    return content


class Forgetful(FolderDisk):
    """Where what was written to level-0 always reads as zeros."""

    def open(self, name: str, *, create: bool = False) -> FolderFile:
        found = super().open(name, create=create)
        return found if name != "level-0" else Zeros(found)


class Zeros(FolderFile):
    def __init__(self, file: FolderFile) -> None:
        self._file = file
        self._descriptor = -1

    def read(self, offset: int, length: int) -> bytes:
        return bytes(length)

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        self._file.write(offset, buffers)


class BadSector(FolderDisk):
    """Where one file can't be read until it is written again."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path)
        self.bad = name

    def open(self, name: str, *, create: bool = False) -> FolderFile:
        found = super().open(name, create=create)
        return found if name != self.bad else BadFile(found, self)


class BadFile(FolderFile):
    def __init__(self, file: FolderFile, disk: BadSector) -> None:
        self._file = file
        self._disk = disk
        self._descriptor = -1

    def read(self, offset: int, length: int) -> bytes:
        if self._disk.bad:
            raise OSError(errno.EIO, "the disk failed")
        return self._file.read(offset, length)

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        self._disk.bad = ""
        self._file.write(offset, buffers)


class Failing(FolderDisk):
    """Takes so many writes, then none until more are allowed."""

    left = 0

    def open(self, name: str, *, create: bool = False) -> FolderFile:
        return FailingFile(super().open(name, create=create), self)


class FailingFile(FolderFile):
    def __init__(self, file: FolderFile, disk: Failing) -> None:
        self._file = file
        self._disk = disk
        self._descriptor = -1

    def read(self, offset: int, length: int) -> bytes:
        return self._file.read(offset, length)

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        if not self._disk.left:
            half = b"".join(buffers)
            self._file.write(offset, [half[: len(half) // 2]])
            raise OSError(errno.ENOSPC, "the disk is full")
        self._disk.left -= 1
        self._file.write(offset, buffers)


class TestFailingWrites:
    @pytest.mark.parametrize("writes", range(9))
    def test_a_write_that_fails_leaves_a_tree_that_is_right(
        self, tmp_path: Path, writes: int
    ) -> None:
        disk, log = Failing(tmp_path), Written(200)
        disk.left = writes
        tree = Tree(disk, log)
        sizes = (200, 5000, 5100, 9000)
        for log.size in sizes:
            try:
                tree.follow()
            except OSError:
                break
        assert_right(tmp_path, log)
        disk.left = 100
        log.size = 9300
        assert tree.root(9300) == root_of(log.leaves())
        assert_right(tmp_path, log)


class TestManyAtOnce:
    def test_trees_on_one_folder_do_not_disturb_each_other(self, tmp_path: Path) -> None:
        random = seeded(3)
        logs = [Written(0) for _ in range(4)]
        trees = [Tree(FolderDisk(tmp_path), log) for log in logs]
        leaves = Written(3000).leaves()
        for _ in range(60):
            at = random.randrange(4)
            logs[at].size = min(3000, logs[at].size + random.randrange(400))
            size = trees[at].follow()
            assert trees[at].root(size) == root_of(leaves[:size])
        assert_right(tmp_path, Written(3000))
        assert [tree.faults for tree in trees] == [[]] * 4

    def test_threads_may_share_one(self, tmp_path: Path) -> None:
        tree = Tree(FolderDisk(tmp_path), Written(3000))
        leaves = Written(3000).leaves()
        wrong: list[int] = []

        def ask(seed: int) -> None:
            random = seeded(seed)
            for _ in range(30):
                size = random.randrange(3001)
                if tree.root(size) != root_of(leaves[:size]):
                    wrong.append(size)

        run_all([partial(ask, seed) for seed in range(4)])

        assert wrong == []
        assert tree.faults == []

    def test_processes_may_follow_at_once(self, tmp_path: Path) -> None:
        context = multiprocessing.get_context("spawn")
        with context.Pool(3) as pool:
            roots = pool.map(root_in_process, [(str(tmp_path), size) for size in (20_000,) * 3])

        assert roots == [root_of(Written(20_000).leaves())] * 3
        assert_right(tmp_path, Written(20_000))


def run_all(tasks: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def root_in_process(given: tuple[str, int]) -> bytes:
    folder, size = given
    return Tree(FolderDisk(folder), Written(size)).root(size)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 700), st.booleans(), st.integers(0, 2)), max_size=8))
def test_whatever_happens_between_its_roots_are_the_logs(
    steps: list[tuple[int, bool, int]],
) -> None:
    """Growth, cuts and reopening, in any order, against the log itself."""
    with TemporaryDirectory() as folder:
        disk: Disk = FolderDisk(folder)
        log = Written(0)
        tree = Tree(disk, log)
        for size, reopen, fork in steps:
            log.size, log.fork = size, (size // 2 + 1 if fork == 0 else NEVER)
            if reopen:
                tree = Tree(disk, log)
            tree.follow()
            assert tree.size == size
            for some in {0, size // 3, size}:
                assert tree.root(some) == root_of(log.leaves()[:some])


def test_entries_with_names_are_leaves_like_others(tmp_path: Path) -> None:
    logged = Logged(1, 1, 5, Bind("notes/a.md", CIDS[0], {"who": "ana"}))
    tree = Tree(FolderDisk(tmp_path), lambda after: [logged][after:])

    assert tree.root(1) == leaf_hash(leaf(5, encode(logged.entry)))


# ---------------------------------------------------------------- how long it takes
def print_growth() -> None:
    """Print what following, opening and proving cost, from 10^3 to 10^6 entries."""
    sys.stdout.write(
        "   entries  log alone s   follow s   open ms   root ms  old root ms  proof ms\n"
    )
    for size in (10**3, 10**4, 10**5, 10**6):
        with TemporaryDirectory() as folder:
            sys.stdout.write(growth(Path(folder), Written(size)) + "\n")


def growth(folder: Path, log: Written) -> str:
    random, size = seeded(4), log.size
    reading = seconds(lambda: sum(1 for _ in log(0)))
    following = seconds(lambda: Tree(FolderDisk(folder), log).follow())
    opening = seconds(lambda: Tree(FolderDisk(folder), log))
    tree = Tree(FolderDisk(folder), log)
    rooting = seconds(lambda: tree.root(size))
    old = seconds(lambda: [tree.root(random.randrange(size)) for _ in range(20)]) / 20
    reader = tree.reader(size)
    proving = seconds(
        lambda: [prove_inclusion(reader, random.randrange(size), size) for _ in range(200)]
    )
    times = (1e3 * opening, 1e3 * rooting, 1e3 * old, 1e3 * proving / 200)
    return f"{size:10,}{reading:13.2f}{following:11.2f}" + "".join(
        f"{each:10.2f}" for each in times
    )


def seconds(task: Callable[[], object]) -> float:
    begin = time.perf_counter()
    task()
    return time.perf_counter() - begin


if __name__ == "__main__":
    print_growth()
