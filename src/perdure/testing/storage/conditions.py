"""Conditional writes, and `write_all`, which changes several texts at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from perdure.storage import (
    ABSENT,
    ConcurrentModificationError,
    Locator,
    StorageBackend,
    content_hash,
)
from perdure.testing.requirement import requirement
from perdure.testing.storage.storage_suite import FOLDER, NOTE, ROOT, StorageSuite, tree
from perdure.testing.storage.verbs import TEXTS


class ConditionTests(StorageSuite):
    def test_expecting_nothing_creates(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "first", expect=ABSENT)

        assert backend.read(NOTE) == "first"

    def test_expecting_nothing_never_overwrites(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "")
        with pytest.raises(ConcurrentModificationError):
            backend.write(NOTE, "second", expect=ABSENT)

        assert backend.read(NOTE) == ""

    def test_the_expected_text_is_replaced(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "é\r\n")
        backend.write(NOTE, "second", expect=content_hash("é\r\n"))

        assert backend.read(NOTE) == "second"

    @requirement("001-compare-by-hash")
    def test_another_text_is_never_replaced(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "theirs")
        with pytest.raises(ConcurrentModificationError):
            backend.write(NOTE, "mine", expect=content_hash("stale"))

        assert backend.read(NOTE) == "theirs"

    def test_expecting_a_text_where_nothing_is_fails(self, backend: StorageBackend) -> None:
        with pytest.raises(ConcurrentModificationError):
            backend.write(NOTE, "mine", expect=content_hash("stale"))

        assert tree(backend) == {}

    def test_a_condition_that_is_no_hash_is_refused(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "text")
        for nonsense in ("", "text", content_hash("text").upper(), content_hash("text") + "0"):
            with pytest.raises(ValueError, match="content hash"):
                backend.write(NOTE, "new", expect=nonsense)
            with pytest.raises(ValueError, match="content hash"):
                backend.remove(NOTE, expect=nonsense)

        assert backend.read(NOTE) == "text"

    def test_a_condition_does_not_excuse_a_wrong_place(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "text")
        with pytest.raises(IsADirectoryError):
            backend.write(FOLDER, "new", expect=ABSENT)
        with pytest.raises(NotADirectoryError):
            backend.write(NOTE.child("below.md"), "new", expect=ABSENT)

        assert tree(backend) == {FOLDER.key: None, NOTE.key: "text"}

    def test_the_expected_text_is_removed(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "text")
        backend.remove(NOTE, expect=content_hash("text"))

        assert not backend.exists(NOTE)

    def test_another_text_is_never_removed(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "theirs")
        with pytest.raises(ConcurrentModificationError):
            backend.remove(NOTE, expect=content_hash("stale"))

        assert backend.read(NOTE) == "theirs"

    def test_removing_an_expected_text_that_is_gone_fails(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "text")
        for absent in (FOLDER.child("other.md"), Locator("nowhere.md"), NOTE.child("below.md")):
            with pytest.raises(ConcurrentModificationError):
                backend.remove(absent, expect=content_hash("text"))

    def test_absence_can_not_be_removed(self, backend: StorageBackend) -> None:
        with pytest.raises(ValueError, match="absent"):
            backend.remove(NOTE, expect=ABSENT)

    def test_a_directory_has_no_content_to_expect(self, backend: StorageBackend) -> None:
        backend.mkdir(FOLDER)
        with pytest.raises(IsADirectoryError):
            backend.remove(FOLDER, expect=content_hash(""))

        assert backend.exists(FOLDER)

    def test_threads_lose_no_conditional_write(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "0")
        with ThreadPoolExecutor(4) as threads:
            for done in [threads.submit(count_up, backend, 10) for _ in range(4)]:
                done.result()

        assert backend.read(NOTE) == "40"


def count_up(backend: StorageBackend, times: int, locator: Locator = NOTE) -> None:
    """Add one to the number at `locator`, `times` times, while others may do the same."""
    for _ in range(times):
        while True:
            before = backend.read(locator)
            try:
                backend.write(locator, str(int(before) + 1), expect=content_hash(before))
            except ConcurrentModificationError:
                continue
            break


FIRST, SECOND, THIRD = SEVERAL = tuple(FOLDER.child(f"{name}.md") for name in "cab")
BEFORE = {FOLDER.key: None, NOTE.key: "before"}
"""The tree after `NOTE` was written as "before"."""


class WriteAllTests(StorageSuite):
    def test_all_of_several_texts_are_written(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "before")
        backend.write_all({NOTE: "after", FIRST: "one", Locator("top.md"): ""})

        assert tree(backend) == {
            FOLDER.key: None,
            NOTE.key: "after",
            FIRST.key: "one",
            "top.md": "",
        }

    def test_several_texts_come_back_byte_for_byte(self, backend: StorageBackend) -> None:
        changes = {FOLDER.child(f"{number}.md"): text for number, text in enumerate(TEXTS)}
        backend.write_all(changes)

        assert {locator: backend.read(locator) for locator in changes} == changes

    def test_directories_are_created_for_several_texts(self, backend: StorageBackend) -> None:
        backend.write_all({Locator("a/b/c.md"): "deep", Locator("a/d.md"): "d", NOTE: "text"})

        assert tree(backend) == {
            "a": None,
            "a/b": None,
            "a/b/c.md": "deep",
            "a/d.md": "d",
            FOLDER.key: None,
            NOTE.key: "text",
        }

    def test_texts_with_names_in_any_script_are_written_and_removed(
        self, backend: StorageBackend
    ) -> None:
        backend.write(Locator("mémoire/à garder.md"), "before")
        backend.write_all(
            {Locator("mémoire/à garder.md"): "after", Locator("mémoire/記憶/ß.md"): "new"},
            expect={Locator("mémoire/à garder.md"): content_hash("before")},
        )
        backend.write_all({Locator("mémoire/à garder.md"): None})

        assert tree(backend) == {
            "mémoire": None,
            "mémoire/記憶": None,
            "mémoire/記憶/ß.md": "new",
        }

    def test_no_changes_change_nothing(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "before")
        backend.write_all({})

        assert tree(backend) == BEFORE

    def test_more_texts_than_a_process_may_open_are_written(self, backend: StorageBackend) -> None:
        changes = {
            Locator(f"{name}/{number}/note.md"): f"{name}{number}"
            for number in range(150)
            for name in "ba"
        }
        backend.write_all(changes)

        found = {key: text for key, text in tree(backend).items() if text is not None}
        assert found == {locator.key: text for locator, text in changes.items()}

    # ------------------------------------------------------------ removing
    def test_texts_that_are_none_are_removed(self, backend: StorageBackend) -> None:
        backend.write_all({NOTE: "before", FIRST: "one", SECOND: "two"})
        backend.write_all({FIRST: None, THIRD: "three", SECOND: None})

        assert tree(backend) == {**BEFORE, THIRD.key: "three"}

    def test_a_text_that_is_gone_can_be_removed_among_several(
        self, backend: StorageBackend
    ) -> None:
        backend.write(NOTE, "before")
        backend.write_all(
            {
                FIRST: None,
                Locator("nowhere/at/all.md"): None,
                NOTE.child("below.md"): None,
                SECOND: "two",
            }
        )

        assert tree(backend) == {**BEFORE, SECOND.key: "two"}

    def test_a_directory_is_not_removed_among_several(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "before")
        backend.mkdir(Locator("empty"))
        for directory in (FOLDER, Locator("empty")):
            with pytest.raises(IsADirectoryError):
                backend.write_all({Locator("top.md"): "text", directory: None})

        assert tree(backend) == {**BEFORE, "empty": None}

    # ------------------------------------------------------------ conditions
    def test_several_texts_are_written_if_all_is_as_expected(self, backend: StorageBackend) -> None:
        backend.write_all({NOTE: "before", FIRST: "one"}, expect={NOTE: ABSENT, FIRST: None})
        backend.write_all(
            {NOTE: "after", FIRST: None, SECOND: "two", THIRD: "three"},
            expect={
                NOTE: content_hash("before"),
                FIRST: content_hash("one"),
                SECOND: ABSENT,
            },
        )

        assert tree(backend) == {
            FOLDER.key: None,
            NOTE.key: "after",
            SECOND.key: "two",
            THIRD.key: "three",
        }

    def test_one_condition_that_fails_keeps_all_texts_as_they_were(
        self, backend: StorageBackend
    ) -> None:
        backend.write(NOTE, "before")
        for place, expect in (
            (NOTE, ABSENT),
            (NOTE, content_hash("stale")),
            (SECOND, content_hash("stale")),
            (Locator("new/place.md"), content_hash("stale")),
        ):
            changes = {FIRST: "one", Locator("other/new.md"): "two", place: "after"}
            with pytest.raises(ConcurrentModificationError):
                backend.write_all(changes, expect={FIRST: ABSENT, place: expect})

            assert tree(backend) == BEFORE

    def test_an_expected_text_that_is_not_there_is_not_removed_among_several(
        self, backend: StorageBackend
    ) -> None:
        backend.write(NOTE, "before")
        for gone in (FIRST, Locator("nowhere/at/all.md"), NOTE):
            with pytest.raises(ConcurrentModificationError):
                backend.write_all({SECOND: "two", gone: None}, expect={gone: content_hash("stale")})

            assert tree(backend) == BEFORE

    def test_threads_lose_nothing_of_several_texts(self, backend: StorageBackend) -> None:
        backend.write_all({FIRST: "0", SECOND: "0"})
        with ThreadPoolExecutor(4) as threads:
            for done in [threads.submit(count_both, backend, 10) for _ in range(4)]:
                done.result()

        assert [backend.read(FIRST), backend.read(SECOND)] == ["40", "40"]

    # ------------------------------------------------------------ refused before anything changes
    def test_wrong_arguments_among_several_change_nothing(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "before")
        for changes, expect, error in (
            ({NOTE: "after", FIRST: "bad\ud800"}, {}, ValueError),
            ({NOTE: "after", FIRST: b"bytes"}, {}, TypeError),
            ({NOTE: "after", ROOT: "text"}, {}, IsADirectoryError),
            ({NOTE: "after", ROOT: None}, {}, IsADirectoryError),
            ({NOTE: "after", FIRST: "one"}, {FIRST: "no hash"}, ValueError),
            ({NOTE: "after", FIRST: None}, {FIRST: ABSENT}, ValueError),
            ({NOTE: "after"}, {FIRST: ABSENT}, ValueError),
        ):
            with pytest.raises(error):
                backend.write_all(changes, expect=expect)  # type: ignore[arg-type]

            assert tree(backend) == BEFORE

    def test_wrong_places_among_several_change_nothing(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "before")
        for place, error in (
            (FOLDER, IsADirectoryError),
            (NOTE.child("x.md"), NotADirectoryError),
            (NOTE.child("x", "y.md"), NotADirectoryError),
        ):
            with pytest.raises(error):
                backend.write_all({Locator("new/one.md"): "one", place: "text"})

            assert tree(backend) == BEFORE

    def test_a_text_can_not_lie_below_another_of_several(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "before")
        below = NOTE.child("deep", "below.md")
        for changes in ({NOTE: None, below: "text"}, {below: "text", NOTE: "after"}):
            with pytest.raises(NotADirectoryError):
                backend.write_all(changes)

            assert tree(backend) == BEFORE


def count_both(backend: StorageBackend, times: int) -> None:
    """Add one to two numbers at once, `times` times, while others may do the same."""
    for _ in range(times):
        while True:
            before = backend.read(FIRST)
            after = str(int(before) + 1)
            same = content_hash(before)
            try:
                backend.write_all({FIRST: after, SECOND: after}, expect={FIRST: same, SECOND: same})
            except ConcurrentModificationError:
                continue
            break
