"""Writes that expect something, alone and against each other."""

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
from perdure.testing.storage.base import FOLDER, NOTE, StorageSuite, tree


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
    """Add one to the number at `locator`, so often, whoever else does."""
    for _ in range(times):
        while True:
            before = backend.read(locator)
            try:
                backend.write(locator, str(int(before) + 1), expect=content_hash(before))
            except ConcurrentModificationError:
                continue
            break
