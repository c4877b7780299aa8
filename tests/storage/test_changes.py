import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.errors import NotTextError
from perdure.storage import (
    ABSENT,
    ConcurrentModificationError,
    Expectation,
    Locator,
    StorageBackend,
    content_hash,
)
from perdure.storage.changes import check_expectation, check_found, encode_text
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.vault import VaultBackend
from perdure.testing.requirement import requirement

NOTE = Locator("note.md")


class TestContentHash:
    @requirement("001-content-hash-sha256")
    def test_it_is_the_sha256_of_the_bytes(self) -> None:
        published = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

        assert content_hash(b"abc") == content_hash("abc") == published
        assert content_hash("") == hashlib.sha256(b"").hexdigest()

    @requirement("001-content-hash-sha256")
    def test_a_text_has_the_hash_of_its_utf_8(self) -> None:
        for text in ("é e\u0301", "line\r\nends\r", "\ufeff", "nul \0", "🗝"):
            assert content_hash(text) == hashlib.sha256(text.encode("utf-8")).hexdigest()

    @requirement("001-content-hash-sha256")
    def test_texts_that_look_alike_differ(self) -> None:
        texts = ("a", "a\n", "a\r\n", "\ufeffa", "a ", "A", "é", "e\u0301")

        assert len({content_hash(text) for text in texts}) == len(texts)


class TestEncodeText:
    def test_the_bytes_are_utf_8_and_nothing_is_translated(self) -> None:
        assert encode_text("é\r\n\r\ufeff", NOTE) == b"\xc3\xa9\r\n\r\xef\xbb\xbf"

    def test_half_a_character_is_refused_by_its_place(self) -> None:
        with pytest.raises(NotTextError, match=r"'note\.md'.*position 2.*'\\udc80'.*Fix: "):
            encode_text("ab\udc80", NOTE)

    @pytest.mark.parametrize("content", [b"bytes", None, 3, Path("a")])
    def test_what_is_no_text_is_refused(self, content: object) -> None:
        with pytest.raises(TypeError, match=r"'note\.md'.*not text"):
            encode_text(content, NOTE)  # type: ignore[arg-type]


class TestExpectation:
    @pytest.mark.parametrize("expect", [None, ABSENT, content_hash("a")])
    def test_a_hash_absence_or_nothing_can_be_expected(self, expect: Expectation) -> None:
        check_expectation(expect)

    @pytest.mark.parametrize(
        "expect",
        [
            *("", "a", "absent", "g" * 64, " " * 64, "\u0661" * 64),
            *(content_hash("a").upper(), content_hash("a")[1:], content_hash("a") * 2),
        ],
    )
    def test_a_hash_that_no_content_has_is_refused(self, expect: str) -> None:
        with pytest.raises(ValueError, match=r"content hash.*Fix: "):
            check_expectation(expect)

    @pytest.mark.parametrize(
        ("found", "expect"),
        [
            (None, None),
            (b"a", None),
            (None, ABSENT),
            (b"a", content_hash("a")),
            (b"", content_hash("")),
        ],
    )
    def test_what_was_expected_passes(self, found: bytes | None, expect: Expectation) -> None:
        check_found(found, expect, NOTE)

    @pytest.mark.parametrize(
        ("found", "expect", "message"),
        [
            (b"a", ABSENT, "expected nothing there, found sha256 ca978112ca1b"),
            (b"", ABSENT, "found sha256 e3b0c44298fc"),
            (None, content_hash("a"), "expected sha256 ca978112ca1b, found nothing there"),
            (None, content_hash(""), "found nothing there"),
            (b"b", content_hash("a"), "expected sha256 ca978112ca1b, found sha256 3e23e8160039"),
        ],
    )
    def test_anything_else_is_reported(
        self, found: bytes | None, expect: Expectation, message: str
    ) -> None:
        with pytest.raises(ConcurrentModificationError) as caught:
            check_found(found, expect, NOTE)

        assert "'note.md'" in str(caught.value)
        assert message in str(caught.value)
        assert "Nothing was changed. Fix: " in str(caught.value)


def device_local(place: Path) -> StorageBackend:
    return DeviceLocalBackend(str(place), str(place.with_name("home")))


def vault(place: Path) -> StorageBackend:
    place.mkdir()
    return VaultBackend(str(place), str(place.with_name("home")))


@pytest.mark.parametrize("open_backend", [device_local, vault])
class TestComparison:
    @requirement("001-compare-ignores-mtime")
    def test_a_touched_file_is_still_the_expected_one(
        self, tmp_path: Path, open_backend: Callable[[Path], StorageBackend]
    ) -> None:
        backend = open_backend(tmp_path / "store")
        backend.write(NOTE, "text")
        for moment in (0, 2_000_000_000):
            os.utime(tmp_path / "store" / "note.md", (moment, moment))

            backend.write(NOTE, "text", expect=content_hash("text"))

        os.utime(tmp_path / "store" / "note.md", (0, 0))
        backend.remove(NOTE, expect=content_hash("text"))

        assert not backend.exists(NOTE)

    @requirement("001-compare-ignores-mtime")
    def test_a_changed_file_under_an_old_time_is_not_the_expected_one(
        self, tmp_path: Path, open_backend: Callable[[Path], StorageBackend]
    ) -> None:
        backend = open_backend(tmp_path / "store")
        backend.write(NOTE, "text")
        file = tmp_path / "store" / "note.md"
        before = file.stat()
        file.write_bytes(b"edit")  # of the same length, behind the backend's back
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

        with pytest.raises(ConcurrentModificationError):
            backend.write(NOTE, "new", expect=content_hash("text"))
        with pytest.raises(ConcurrentModificationError):
            backend.remove(NOTE, expect=content_hash("text"))

        assert file.read_bytes() == b"edit"
