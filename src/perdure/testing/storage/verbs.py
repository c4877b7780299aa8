"""The verbs of a backend, `read_all` and `scan`, and hostile keys."""

import time
from pathlib import Path, PurePath

import pytest

from perdure.storage import (
    Capabilities,
    ConflictStrategy,
    Info,
    InvalidLocatorError,
    Locator,
    StorageBackend,
)
from perdure.testing.requirement import requirement
from perdure.testing.storage.storage_suite import (
    FOLDER,
    NOTE,
    ROOT,
    SURVIVES_REOPENING,
    StorageSuite,
    tree,
)
from perdure.testing.suite import when

TEXTS = (
    "",
    "plain",
    "no final newline\nhere",
    "windows\r\nline\r\nends\r\n",
    "old mac\rline\rends\r",
    "\ufeffmarked",
    "nul \x00 inside",
    "é e\u0301 漢字 🗝️",
    "long\n" * 40_000,
)


class VerbTests(StorageSuite):
    @requirement("000-resolve-joins-parts", "000-locator-key-normalized")
    def test_resolve_joins_its_parts(self, backend: StorageBackend) -> None:
        assert backend.resolve("notes", "/a//b/", "./c") == Locator("notes/a/b/c")

    @requirement("000-resolve-no-parts-is-root", "000-locator-root-key-empty")
    def test_resolve_without_parts_is_the_root(self, backend: StorageBackend) -> None:
        assert backend.resolve() == ROOT

    @requirement("000-resolve-dotdot-raises", "001-personal-unreachable-by-verbs")
    def test_resolve_refuses_an_upward_step(self, backend: StorageBackend) -> None:
        with pytest.raises(InvalidLocatorError):
            backend.resolve("notes", "..", "secret")

    @requirement(
        "000-write-round-trips",
        "000-read-returns-text",
        "000-text-is-the-currency",
        "001-device-local-bytes-mode",
    )
    def test_texts_come_back_byte_for_byte(self, backend: StorageBackend) -> None:
        for text in TEXTS:
            backend.write(NOTE, text)

            assert backend.read(NOTE) == text

    @requirement("000-write-returns-locator")
    def test_write_returns_where_it_wrote(self, backend: StorageBackend) -> None:
        assert backend.write(NOTE, "text") == NOTE

    def test_write_replaces_what_was_there(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "a longer first text")
        backend.write(NOTE, "second")

        assert backend.read(NOTE) == "second"
        assert backend.list(FOLDER) == [NOTE]

    def test_write_makes_the_directories_above(self, backend: StorageBackend) -> None:
        backend.write(Locator("a/b/c/d.md"), "deep")

        assert tree(backend) == {"a": None, "a/b": None, "a/b/c": None, "a/b/c/d.md": "deep"}

    def test_keys_do_not_share_their_texts(self, backend: StorageBackend) -> None:
        backend.write(Locator("a.md"), "a")
        backend.write(Locator("b.md"), "b")

        assert tree(backend) == {"a.md": "a", "b.md": "b"}

    @requirement("000-write-onto-directory-raises")
    def test_write_onto_a_directory_is_refused(self, backend: StorageBackend) -> None:
        backend.mkdir(FOLDER)
        with pytest.raises(IsADirectoryError):
            backend.write(FOLDER, "text")

        assert tree(backend) == {FOLDER.key: None}

    @requirement("000-write-onto-directory-raises")
    def test_write_onto_the_root_is_refused(self, backend: StorageBackend) -> None:
        with pytest.raises(IsADirectoryError):
            backend.write(ROOT, "text")

        assert tree(backend) == {}

    @requirement("000-write-below-file-raises")
    def test_write_below_a_text_is_refused(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "text")
        for below in (NOTE.child("x.md"), NOTE.child("x", "y.md")):
            with pytest.raises(NotADirectoryError):
                backend.write(below, "below")

        assert tree(backend) == {FOLDER.key: None, NOTE.key: "text"}

    @requirement("000-write-unencodable-raises")
    def test_half_characters_are_refused_and_leave_nothing(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "before")
        for locator in (NOTE, Locator("new/place.md")):
            with pytest.raises(ValueError, match="position 3"):
                backend.write(locator, "bad\ud800")

        assert tree(backend) == {FOLDER.key: None, NOTE.key: "before"}

    @requirement("000-text-is-the-currency")
    def test_write_takes_text_only(self, backend: StorageBackend) -> None:
        with pytest.raises(TypeError):
            backend.write(NOTE, b"bytes")  # type: ignore[arg-type]

        assert tree(backend) == {}

    @requirement("000-read-absent-raises", "000-read-absent-is-not-invalid")
    def test_reading_nothing_is_file_not_found(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "text")
        for absent in (Locator("nowhere.md"), FOLDER.child("other.md"), NOTE.child("below.md")):
            with pytest.raises(FileNotFoundError) as caught:
                backend.read(absent)

            assert not isinstance(caught.value, InvalidLocatorError)

    def test_reading_a_directory_is_refused(self, backend: StorageBackend) -> None:
        backend.mkdir(FOLDER)
        for directory in (FOLDER, ROOT):
            with pytest.raises(IsADirectoryError):
                backend.read(directory)

    @requirement("000-list-immediate-children", "000-list-returns-locators")
    def test_list_gives_the_immediate_children(self, backend: StorageBackend) -> None:
        backend.write(Locator("a/one.md"), "1")
        backend.write(Locator("a/b/two.md"), "2")
        backend.write(Locator("ab/three.md"), "3")

        assert backend.list(Locator("a")) == [Locator("a/b"), Locator("a/one.md")]
        assert backend.list(ROOT) == [Locator("a"), Locator("ab")]

    def test_list_is_in_key_order(self, backend: StorageBackend) -> None:
        names = ["b", "a", "Z", "a-b", "a.b", "ä", "10", "9", "é"]
        for name in names:
            backend.write(Locator(name), "")

        assert [child.key for child in backend.list(ROOT)] == sorted(names)

    @requirement("000-list-empty-directory")
    def test_list_of_an_empty_directory_is_empty(self, backend: StorageBackend) -> None:
        backend.mkdir(FOLDER)

        assert backend.list(FOLDER) == []

    @requirement("000-list-absent-is-empty")
    def test_list_of_nothing_or_of_a_text_is_empty(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "text")

        assert backend.list(NOTE) == []
        assert backend.list(NOTE.child("below")) == []
        assert backend.list(Locator("nowhere")) == []

    @requirement("000-exists-file", "000-exists-directory", "000-exists-absent")
    def test_exists_for_texts_and_directories_only(self, backend: StorageBackend) -> None:
        assert backend.exists(ROOT)
        assert backend.info(ROOT).is_dir
        assert not backend.exists(NOTE)
        backend.write(NOTE, "text")

        assert backend.exists(NOTE)
        assert backend.exists(FOLDER)
        assert not backend.exists(FOLDER.child("other.md"))
        assert not backend.exists(NOTE.child("below"))
        assert not backend.exists(Locator(NOTE.key[:-1]))

    @requirement("000-info-size-bytes", "000-info-locator", "000-info-is-dir")
    def test_info_counts_bytes_not_characters(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "é\r\n")

        info = backend.info(NOTE)

        assert (info.locator, info.is_dir, info.size) == (NOTE, False, 4)

    @requirement("000-info-size-zero-directory", "000-info-is-dir")
    def test_info_of_a_directory_has_no_size(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "text")

        for directory in (FOLDER, ROOT):
            info = backend.info(directory)

            assert (info.locator, info.is_dir, info.size) == (directory, True, 0)

    @requirement("000-info-mtime-epoch-seconds")
    def test_info_tells_when_a_text_changed(self, backend: StorageBackend) -> None:
        begun = time.time()
        backend.write(NOTE, "text")

        mtime = backend.info(NOTE).mtime

        assert isinstance(mtime, float)
        assert begun - 2 <= mtime <= time.time() + 2
        patience = time.monotonic() + 3  # some disks' clocks tick only every two seconds
        while backend.info(NOTE).mtime <= mtime:
            assert time.monotonic() < patience, "another write did not change the time"
            backend.write(NOTE, "another text")

    @requirement("000-info-absent-raises")
    def test_info_of_nothing_is_file_not_found(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "text")
        for absent in (Locator("nowhere"), NOTE.child("below")):
            with pytest.raises(FileNotFoundError):
                backend.info(absent)

    @requirement("000-mkdir-creates", "000-mkdir-returns-locator")
    def test_mkdir_makes_a_directory_and_those_above(self, backend: StorageBackend) -> None:
        assert backend.mkdir(Locator("a/b/c")) == Locator("a/b/c")
        assert tree(backend) == {"a": None, "a/b": None, "a/b/c": None}

    @requirement("000-mkdir-idempotent")
    def test_mkdir_again_changes_nothing(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "text")
        for directory in (FOLDER, FOLDER, ROOT):
            assert backend.mkdir(directory) == directory

        assert tree(backend) == {FOLDER.key: None, NOTE.key: "text"}

    @requirement("000-mkdir-onto-file-raises")
    def test_mkdir_onto_a_text_is_refused(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "text")
        with pytest.raises(FileExistsError):
            backend.mkdir(NOTE)

        assert backend.read(NOTE) == "text"

    def test_mkdir_below_a_text_is_refused(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "text")
        for below in (NOTE.child("x"), NOTE.child("x", "y")):
            with pytest.raises(NotADirectoryError):
                backend.mkdir(below)

        assert tree(backend) == {FOLDER.key: None, NOTE.key: "text"}

    def test_a_removed_text_is_gone(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "text")
        backend.write(FOLDER.child("other.md"), "stays")
        backend.remove(NOTE)

        assert tree(backend) == {FOLDER.key: None, FOLDER.child("other.md").key: "stays"}
        with pytest.raises(FileNotFoundError):
            backend.read(NOTE)

    def test_removing_nothing_is_file_not_found(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "text")
        for absent in (Locator("nowhere.md"), NOTE.child("below.md")):
            with pytest.raises(FileNotFoundError):
                backend.remove(absent)

        assert tree(backend) == {FOLDER.key: None, NOTE.key: "text"}

    def test_an_empty_directory_can_be_removed(self, backend: StorageBackend) -> None:
        backend.mkdir(Locator("a/b"))
        backend.remove(Locator("a/b"))

        assert tree(backend) == {"a": None}

    def test_a_directory_with_children_is_not_removed(self, backend: StorageBackend) -> None:
        backend.write(NOTE, "text")
        with pytest.raises(OSError, match="empty"):
            backend.remove(FOLDER)

        assert backend.read(NOTE) == "text"

    def test_the_root_is_not_removed(self, backend: StorageBackend) -> None:
        with pytest.raises(IsADirectoryError):
            backend.remove(ROOT)

        assert backend.exists(ROOT)

    @requirement("000-capabilities-declared", "001-conformance-any-backend")
    def test_the_backend_has_the_promised_capabilities(self, backend: StorageBackend) -> None:
        assert isinstance(backend.capabilities, Capabilities)
        assert backend.capabilities == self.promised_capabilities()

    def test_the_conflict_strategy_fits_the_capabilities(self, backend: StorageBackend) -> None:
        surfaces = backend.conflict_strategy is ConflictStrategy.SURFACE

        assert surfaces == backend.capabilities.conflict_files

    @requirement("000-no-path-crosses-seam", "001-verbs-speak-locators")
    def test_no_verb_hands_out_a_path(self, backend: StorageBackend) -> None:
        answers: list[object] = [backend.resolve("a"), backend.write(NOTE, "text")]
        answers += [backend.mkdir(FOLDER), backend.exists(NOTE), *backend.list(FOLDER)]
        info = backend.info(NOTE)
        answers += [info, info.locator, backend.read(NOTE)]

        assert not [answer for answer in answers if isinstance(answer, PurePath)]
        assert {type(answer) for answer in answers} == {Locator, bool, Info, str}

    @when(SURVIVES_REOPENING)
    def test_what_was_written_is_there_when_opened_again(
        self, backend: StorageBackend, place: Path
    ) -> None:
        backend.write(NOTE, "text")
        backend.mkdir(Locator("empty"))
        backend.write(Locator("gone.md"), "gone")
        backend.remove(Locator("gone.md"))

        assert tree(self.open_backend(place)) == {
            "empty": None,
            FOLDER.key: None,
            NOTE.key: "text",
        }


class ReadAllTests(StorageSuite):
    def test_read_all_returns_the_texts_by_name(self, backend: StorageBackend) -> None:
        texts = {"a.md": "a", "b.md": "b\r\n", ".c": "", "d é.md": "é"}
        for name, text in texts.items():
            backend.write(FOLDER.child(name), text)

        assert backend.read_all(FOLDER, texts) == texts

    def test_read_all_leaves_out_what_is_no_text_there(self, backend: StorageBackend) -> None:
        backend.write(FOLDER.child("a.md"), "a")
        backend.write(FOLDER.child("below", "b.md"), "b")

        found = backend.read_all(FOLDER, ["absent.md", "below", "a.md", ".."])

        assert found == {"a.md": "a"}
        assert backend.read_all(Locator("nowhere"), ["a.md"]) == {}
        assert backend.read_all(FOLDER.child("a.md"), ["a.md"]) == {}

    def test_read_all_reads_only_what_is_asked_for(self, backend: StorageBackend) -> None:
        backend.write(Locator("a.md"), "a")
        backend.write(Locator("b.md"), "b")

        assert backend.read_all(ROOT, ["b.md"]) == {"b.md": "b"}
        assert backend.read_all(ROOT, []) == {}


def scanned(backend: StorageBackend, directory: Locator = ROOT) -> dict[str, bytes]:
    """Return the stamp of each text below a directory, by its key."""
    return {
        here.child(name).key: stamp
        for here, stamps in backend.scan(directory)
        for name, stamp in (stamps or {}).items()
    }


class ScanTests(StorageSuite):
    def test_scan_meets_every_text_once(self, backend: StorageBackend) -> None:
        keys = ["a.md", "b/c.md", "b/d é.md", "b/e/.f", "b.md"]
        for key in keys:
            backend.write(Locator(key), key)
        backend.mkdir(Locator("empty"))

        assert sorted(scanned(backend)) == sorted(keys)
        assert sorted(scanned(backend, Locator("b"))) == ["b/c.md", "b/d é.md", "b/e/.f"]
        assert scanned(backend, Locator("nowhere")) == {}

    def test_scan_meets_directories_in_key_order(self, backend: StorageBackend) -> None:
        for key in ("z.md", "b/x/1.md", "b/a/1.md", "a/1.md", "b-c/1.md"):
            backend.write(Locator(key), key)

        met = [here.key for here, stamps in backend.scan() if stamps]

        assert [each for each in met if each != "b-c"] == ["", "a", "b/a", "b/x"]
        assert "b-c" in met[2:]

    def test_scan_enters_nothing_that_is_skipped(self, backend: StorageBackend) -> None:
        for key in ("a/1.md", "b/2.md", "b/c/3.md"):
            backend.write(Locator(key), key)
        asked: list[str] = []

        def skip(key: str) -> bool:
            asked.append(key)
            return key == "b"

        met = [
            here.child(name).key for here, found in backend.scan(skip=skip) for name in found or ()
        ]
        assert met == ["a/1.md"]
        assert asked == ["a", "b"]

    def test_stamps_tell_contents_apart(self, backend: StorageBackend) -> None:
        """Also those of one size, written within one tick of a clock."""
        stamps = set()
        for text in ("one", "two", "three", "four", "five"):
            backend.write(NOTE, text)
            stamp = scanned(backend)[NOTE.key]

            assert not stamp or stamp not in stamps
            stamps.add(stamp)


HOSTILE_KEYS = (
    "..",
    "../secret",
    "a/../../secret",
    "a/..",
    "/..",
    "a\\..\\b",
    "\\\\server\\share",
    "nul\x00byte",
    "bell\x07",
    "new\nline",
    "delete\x7f",
    "c1\x85control",
    "\ud800",
    "\uff0e\uff0e/fullwidth-dots",
    "\u2024\u2024/dot-leaders",
    "a\uff0fb-fullwidth-slash",
    "a\uff3cb-fullwidth-backslash",
    "zero\u200bwidth",
    "right\u202eto-left",
    "\ufeffmark",
    "line\u2028separator",
    "x" * 256,
    "é" * 128,
    "x" * 300 + "/short",
    "/".join("d" * 1000),
    "a/" * 1000 + "deep",
    "unfinished.perdure-tmp",
    "a.perdure-tmp/b",
)
"""Keys that must be refused."""


class KeyTests(StorageSuite):
    @requirement("000-key-never-leaves-root", "000-invalid-locator-everywhere")
    def test_hostile_keys_name_no_place(self, backend: StorageBackend) -> None:
        for key in HOSTILE_KEYS:
            with pytest.raises(InvalidLocatorError):
                backend.write(backend.resolve(key), "text")

        assert tree(backend) == {}

    @requirement("000-key-relativizes-leading-slash")
    def test_an_absolute_key_stays_inside(self, backend: StorageBackend) -> None:
        backend.write(backend.resolve("/etc/passwd"), "inside")

        assert tree(backend) == {"etc": None, "etc/passwd": "inside"}

    @requirement("000-locator-child-cannot-escape")
    def test_listed_places_lead_no_further_out(self, backend: StorageBackend) -> None:
        backend.write(Locator("a/b.md"), "text")
        (listed,) = backend.list(ROOT)
        with pytest.raises(InvalidLocatorError):
            listed.child("..", "..", "secret")

    def test_one_name_in_two_spellings_is_one_place(self, backend: StorageBackend) -> None:
        backend.write(backend.resolve("cafe\u0301", "e\u0301.md"), "text")

        assert backend.read(backend.resolve("caf\u00e9", "\u00e9.md")) == "text"
        assert tree(backend) == {"caf\u00e9": None, "caf\u00e9/\u00e9.md": "text"}

    def test_the_longest_allowed_names_work(self, backend: StorageBackend) -> None:
        keys = [
            "x" * 255,
            "x" * 254 + "y",
            "é" * 127,
            "/".join(["y" * 200] * 5),
            "/".join("z" * 500),
        ]
        for key in keys:
            backend.write(Locator(key), key)

        for key in keys:
            assert backend.read(Locator(key)) == key

    def test_odd_but_harmless_names_work(self, backend: StorageBackend) -> None:
        names = [" space ", "...", "..a", "a..", "~", "*?<>|:\"'", "%2e%2e", "-rf", "$HOME", "CON"]
        for name in names:
            backend.write(Locator(name), name)

        assert tree(backend) == {name: name for name in names}
