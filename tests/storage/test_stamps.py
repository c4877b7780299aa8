"""A check finds what others wrote, by stamps first, and takes no lost drive for a deletion."""

import os
import shutil
import sqlite3
import threading
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from perdure.errors import StorageUnavailableError, TextsGoneError
from perdure.storage import Locator
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.read_only import ReadOnly
from perdure.storage.recorded import Recorded
from perdure.storage.stamps import (
    UNKNOWN,
    ScanResult,
    StampRow,
    StampTable,
    find_changes,
    save_scan,
)
from perdure.storage.text_history import History, View
from perdure.storage.vault import VaultBackend
from perdure.testing.storage.verbs import scanned
from tests.support.artifacts.memory_disk import MemoryDisk

SECOND = 1_000_000_000


class Clock:
    """A clock that is a minute ahead of that of files."""

    def __call__(self) -> int:
        return time.time_ns() + 60 * SECOND


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    return folder


@pytest.fixture
def vault(tmp_path: Path, root: Path) -> VaultBackend:
    """Return a vault that is looked at a minute after everything was written."""
    backend = VaultBackend(str(root), str(tmp_path / "home"))
    backend.clock = Clock()
    return backend


@pytest.fixture
def seen(tmp_path: Path) -> Iterator[StampTable]:
    with StampTable(str(tmp_path / "seen.sqlite")) as table:
        yield table


class CountedReads(VaultBackend):
    reads = 0

    def read(self, locator: Locator) -> str:
        type(self).reads += 1
        return super().read(locator)


def write(root: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = root / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def look(vault: VaultBackend, seen: StampTable, **how: object) -> ScanResult:
    """Check, and remember what was found."""
    found = find_changes(vault, seen, **how)  # type: ignore[arg-type]
    save_scan(seen, found)
    return found


def names(found: ScanResult) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    return found.new, found.changed, found.removed


NOTHING: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] = ((), (), ())


class TestFinding:
    def test_new_changed_and_removed_texts_are_found_once(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        write(root, a="a", b="b", sub__c="c")
        assert names(look(vault, seen)) == (("a.md", "b.md", "sub/c.md"), (), ())

        write(root, a="A", sub__d="d")
        (root / "b.md").unlink()

        assert names(look(vault, seen)) == (("sub/d.md",), ("a.md",), ("b.md",))
        assert names(look(vault, seen)) == NOTHING

    def test_what_is_not_settled_is_found_again(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        write(root, a="a")

        assert find_changes(vault, seen).new == find_changes(vault, seen).new == ("a.md",)

    def test_an_unchanged_vault_is_not_read(
        self, tmp_path: Path, root: Path, seen: StampTable
    ) -> None:
        counted = CountedReads(str(root), str(tmp_path / "home"))
        counted.clock = Clock()
        write(root, **{f"n{number}": str(number) for number in range(50)})
        look(counted, seen)
        read = CountedReads.reads

        assert names(look(counted, seen)) == NOTHING
        assert CountedReads.reads == read == 50

    def test_a_sync_client_that_sets_every_time_changes_nothing(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        write(root, a="a", b="b")
        look(vault, seen)
        for path in root.iterdir():
            os.utime(path, ns=(7 * SECOND, 7 * SECOND))

        assert names(look(vault, seen)) == NOTHING

    def test_an_edit_that_keeps_size_and_time_of_modification_is_found(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        write(root, a="one")
        before = (root / "a.md").stat()
        look(vault, seen)

        write(root, a="two")
        os.utime(root / "a.md", ns=(before.st_atime_ns, before.st_mtime_ns))

        assert names(look(vault, seen)) == ((), ("a.md",), ())

    def test_another_file_in_the_same_place_is_found(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        write(root, a="one")
        look(vault, seen)
        write(root, b="two")
        (root / "b.md").replace(root / "a.md")

        assert names(look(vault, seen)) == ((), ("a.md",), ())

    def test_a_rename_is_new_and_removed(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        write(root, a="a")
        look(vault, seen)
        (root / "a.md").rename(root / "A.md")

        assert names(look(vault, seen)) == (("A.md",), (), ("a.md",))

    def test_a_file_becomes_a_folder_and_a_folder_a_file(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        write(root, file="f", folder__a="a")
        look(vault, seen)
        (root / "file.md").unlink()
        shutil.rmtree(root / "folder")
        (root / "file.md").mkdir()
        write(root / "file.md", b="b")
        (root / "folder").write_text("now a text")

        assert names(look(vault, seen)) == (
            ("file.md/b.md", "folder"),
            (),
            ("file.md", "folder/a.md"),
        )

    def test_a_decomposed_name_is_its_composed_key(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        spelled = unicodedata.normalize("NFD", "é")
        (root / f"{spelled}.md").write_text("one")
        folder = root / f"{spelled}tage"
        folder.mkdir()
        (folder / "x.md").write_text("x")

        assert look(vault, seen).new == ("é.md", "étage/x.md")
        assert names(look(vault, seen)) == NOTHING
        (root / f"{spelled}.md").write_text("two")
        assert look(vault, seen).changed == ("é.md",)
        (root / "é.md").write_text("composed")  # hides the other one, for every verb
        assert look(vault, seen).changed == ("é.md",)
        assert vault.read(Locator("é.md")) == "composed"

    def test_names_that_no_key_can_say_and_links_are_left_out(
        self, vault: VaultBackend, root: Path
    ) -> None:
        write(root, a="a")
        for name in ("b\\c", "d\ne", "x.perdure-tmp", "\u202e.md"):
            (root / name).write_text("no")
        (root / "link.md").symlink_to(root / "a.md")
        (root / "loop").symlink_to(root)
        os.mkfifo(root / "pipe.md")

        assert list(scanned(vault)) == ["a.md"]

    def test_what_is_not_text_is_reported_once(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        (root / "photo.jpg").write_bytes(b"\xff\xd8")

        assert look(vault, seen).unreadable == ("photo.jpg",)
        assert look(vault, seen) == ScanResult()
        assert seen.rows(["photo.jpg"])
        (root / "photo.jpg").write_text("words")
        assert look(vault, seen).changed == ("photo.jpg",)


class TestYoungFiles:
    def test_a_file_that_may_change_within_one_tick_has_no_stamp(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        write(root, a="one")
        vault.clock = lambda: (root / "a.md").stat().st_ctime_ns
        look(vault, seen)

        assert scanned(vault) == {"a.md": UNKNOWN}
        write(root, a="two")  # perhaps with the same times
        assert look(vault, seen).changed == ("a.md",)
        assert look(vault, seen).rows == ()

    def test_whole_seconds_are_trusted_later(self, root: Path, vault: VaultBackend) -> None:
        from perdure.storage.openat import _is_settled  # noqa: PLC0415 - no disk here counts so

        now = 100 * SECOND
        fine, coarse = now - SECOND + 1, now - SECOND

        assert _is_settled(fine, fine, now)
        assert not _is_settled(coarse, coarse, now)
        assert _is_settled(coarse - 2 * SECOND, coarse - 2 * SECOND, now)

    def test_a_time_that_is_yet_to_come_does_not_make_a_file_young_for_ever(
        self, vault: VaultBackend, root: Path
    ) -> None:
        write(root, a="a")
        os.utime(root / "a.md", (4e9, 4e9))

        assert scanned(vault)["a.md"]


class TestLoss:
    def vault_of(self, root: Path, count: int) -> None:
        write(root, **{f"n{number:03}": f"text {number}" for number in range(count)})

    def test_a_tenth_may_go_at_once_and_more_may_not(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        self.vault_of(root, 200)
        look(vault, seen)
        for number in range(20):
            (root / f"n{number:03}.md").unlink()
        assert len(look(vault, seen).removed) == 20

        for number in range(20, 39):
            (root / f"n{number:03}.md").unlink()
        write(root, n100="an edit beside")
        with pytest.raises(TextsGoneError, match=r"19 of 180 texts are gone .* Fix: restore them"):
            look(vault, seen)

        accepted = look(vault, seen, accept_removals=True)
        assert (len(accepted.removed), accepted.changed) == (19, ("n100.md",))
        assert names(look(vault, seen)) == NOTHING

    def test_a_folder_that_was_renamed_is_no_loss(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        self.vault_of(root / "one", 100)
        look(vault, seen)
        (root / "one").rename(root / "two")

        found = look(vault, seen)

        assert len(found.removed) == len(found.new) == 100

    def test_a_few_may_go_of_a_small_vault_but_not_all(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        self.vault_of(root, 8)
        look(vault, seen)
        for number in range(3):
            (root / f"n{number:03}.md").unlink()
        assert len(look(vault, seen).removed) == 3

        shutil.rmtree(root)
        root.mkdir()
        other = VaultBackend(str(root), str(root.parent / "other-home"))
        with pytest.raises(TextsGoneError):
            look(other, seen)

    def test_what_we_removed_ourselves_is_no_loss(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        self.vault_of(root, 100)
        look(vault, seen)
        for path in root.iterdir():
            path.unlink()

        def nothing(keys: Sequence[str]) -> Mapping[str, bytes | None]:
            return dict.fromkeys(keys)

        found = look(vault, seen, expected=nothing)
        assert (found.removed, len(found.gone)) == ((), 100)

    def test_a_root_that_is_gone_or_replaced_is_unavailable(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        write(root, a="a")
        look(vault, seen)
        root.rename(root.with_name("elsewhere"))
        with pytest.raises(StorageUnavailableError):
            look(vault, seen)
        root.mkdir()
        with pytest.raises(StorageUnavailableError):
            look(vault, seen)

        assert seen.rows(["a.md"])

    def test_what_is_in_a_folder_that_may_not_be_read_is_not_gone(
        self, vault: VaultBackend, root: Path, seen: StampTable, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(root, a="a", shut__b="b", shut__deep__c="c")
        look(vault, seen)
        opened = vault._open_below

        def refuse(key: str, flags: int) -> int:
            if key.startswith("shut"):
                raise PermissionError(13, "no")
            return opened(key, flags)

        monkeypatch.setattr(vault, "_open_below", refuse)
        write(root, a="A")

        found = look(vault, seen)
        assert (found.changed, found.removed, found.unreadable) == (("a.md",), (), ("shut",))


class TestDeadline:
    def vault_of(self, root: Path) -> None:
        for folder in "abcdef":
            write(root / folder, **{str(number): f"{folder}{number}" for number in range(3)})

    def test_out_of_time_the_next_check_goes_on(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        self.vault_of(root)
        look(vault, seen)
        for folder in "abcdef":
            write(root / folder, **{"0": "edited"})
        ticks = iter(range(1000))
        found: list[str] = []
        rounds = 0
        while True:
            deadline = next(ticks) + 3
            one = look(vault, seen, deadline=deadline, clock=lambda: next(ticks))
            found += one.changed
            rounds += 1
            assert rounds < 10
            if len(found) == 6:
                break
            assert one.left > 0
            assert one.removed == ()

        assert sorted(found) == [f"{folder}/0.md" for folder in "abcdef"]
        assert rounds > 1

    def test_removals_wait_for_a_check_of_everything(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        self.vault_of(root)
        look(vault, seen)
        (root / "a" / "0.md").unlink()
        ticks = iter(range(1000))

        assert look(vault, seen, deadline=1, clock=lambda: next(ticks)).removed == ()
        assert look(vault, seen).removed == ("a/0.md",)

    def test_a_check_goes_on_past_a_folder_that_is_gone(
        self, vault: VaultBackend, root: Path, seen: StampTable
    ) -> None:
        self.vault_of(root)
        ticks = iter(range(1000))
        stopped = look(vault, seen, deadline=2, clock=lambda: next(ticks))
        shutil.rmtree(root / stopped.resume_at)

        assert look(vault, seen).left == 0
        assert sorted(scanned(vault)) == sorted(row.key for row in seen.rows())


class TestTable:
    def test_rows_are_found_by_key(self, seen: StampTable) -> None:
        rows = [
            StampRow("a.md", b"1", b"x"),
            StampRow("f/b.md", b"2", b"y"),
            StampRow("c", b"", b""),
        ]
        seen.put(rows)

        assert seen.rows(["f/b.md"]) == [rows[1]]
        assert seen.rows(["f/nothing"]) == []
        assert {row.key for row in seen.rows()} == {"a.md", "f/b.md", "c"}
        assert seen.rows(["c", "absent"]) == [rows[2]]
        seen.change((), ["a.md"])
        assert {row.key for row in seen.rows()} == {"f/b.md", "c"}

    def test_what_another_process_put_is_seen(self, tmp_path: Path, seen: StampTable) -> None:
        assert not any(seen.stamps().values())
        with StampTable(str(tmp_path / "seen.sqlite")) as other:
            other.put([StampRow("f/a.md", b"1", b"x")])

            assert dict(seen.stamps()) == {"f": {"a.md": b"1"}}
            other.change((), ["f/a.md"])
            assert not any(seen.stamps().values())

    @pytest.mark.parametrize("harm", ["damaged", "removed", "a folder", "of something else"])
    def test_a_table_that_can_not_be_used_is_rebuilt(
        self, vault: VaultBackend, root: Path, tmp_path: Path, harm: str
    ) -> None:
        file = tmp_path / "seen.sqlite"
        write(root, a="a", b="b")
        with StampTable(str(file)) as seen:
            look(vault, seen)
        for each in tmp_path.glob("seen.sqlite*"):
            each.unlink()
        if harm == "damaged":
            file.write_bytes(b"SQLite format 3\0" + b"\1" * 5000)
        elif harm == "a folder":
            file.mkdir()
        elif harm == "of something else":
            with sqlite3.connect(file) as other:
                other.execute("CREATE TABLE mine (x)")
        with StampTable(str(file)) as seen:
            assert not seen.stamps()
            assert look(vault, seen).new == ("a.md", "b.md")
            assert seen.stamps()

    def test_a_table_that_is_removed_while_in_use_is_rebuilt(
        self, vault: VaultBackend, root: Path, tmp_path: Path, seen: StampTable
    ) -> None:
        write(root, a="a")
        look(vault, seen)
        for each in tmp_path.glob("seen.sqlite*"):
            each.unlink()

        assert look(vault, seen).new == ("a.md",)

    def test_many_may_check_at_once(self, vault: VaultBackend, root: Path, tmp_path: Path) -> None:
        write(root, **{f"n{number}": str(number) for number in range(40)})
        failed: list[BaseException] = []

        def work(number: int) -> None:
            try:
                with StampTable(str(tmp_path / "shared.sqlite")) as table:
                    for index in range(5):
                        write(root, **{f"n{number}": f"{number} {index}"})
                        look(vault, table)
            except BaseException as error:  # noqa: BLE001 - it is shown below
                failed.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert failed == []
        with StampTable(str(tmp_path / "shared.sqlite")) as table:
            look(vault, table)
            digests = {row.key: row.digest for row in table.rows()}
        assert digests == {path.name: sha256(path.read_bytes()).digest() for path in root.iterdir()}


class TestWrappers:
    def test_wrappers_scan_what_they_wrap(self) -> None:
        inner = MemoryBackend()
        recorded = Recorded(inner, History.on_disk(MemoryDisk()))
        state = recorded.commit({Locator("a/b.md"): "one", Locator("c.md"): "two"})

        assert scanned(recorded) == scanned(inner) == scanned(ReadOnly(recorded))
        past = scanned(View(recorded.history, state))
        assert past.keys() == scanned(inner).keys()
        assert past["c.md"] == sha256(b"two").digest()


def test_what_another_process_notes_meanwhile_is_removed_and_not_lost(
    vault: VaultBackend, root: Path, seen: StampTable
) -> None:
    write(root, one="1", two="2")
    look(vault, seen)
    (root / "one.md").unlink()

    def expected(keys: Sequence[str]) -> Mapping[str, bytes | None]:
        seen.change([], ["one.md"], {})  # as the other does, after our scan
        return dict.fromkeys(keys, b"as written")

    assert find_changes(vault, seen, expected=expected).removed == ("one.md",)
