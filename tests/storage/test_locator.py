import contextlib
import os
import pickle
import posixpath
import unicodedata
from collections.abc import Callable
from pathlib import Path, PurePath

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perdure.storage import InvalidLocatorError, Locator, normalize_key
from perdure.storage.locator import (
    MAX_KEY_BYTES,
    MAX_SEGMENT_BYTES,
    TEMPORARY_SUFFIX,
    children_named,
    is_key_segment,
)
from perdure.testing.requirement import requirement

ROOT = Locator("")

CHARACTERS = st.characters(exclude_categories=())  # halves of characters too
PIECES = st.sampled_from(
    (
        *("/", "//", ".", "..", "./", "../", "a", "notes", "x.md", "y/" * 500, "x" * 254),
        *("\\", "\0", "\n", "\x7f", "\x85", "\u2028", "\u200b", "\u202e", "\ufeff", "\ud800"),
        *("\u2024", "\u2025", "\uff0e", "\uff0f", "\uff3c", "\u2100", TEMPORARY_SUFFIX),
        *("\u00e9", "e\u0301", "\u0301", "\u00e9" * 127, "\U0001f511"),
    )
)
KEYS = st.lists(PIECES | CHARACTERS, max_size=12).map("".join)
FILE_NAMES = KEYS.map(lambda key: key.replace("/", "-").replace("\0", "-")).filter(
    lambda name: name not in {"", ".", ".."} and len(name.encode("utf-8", "surrogatepass")) <= 255
)
"""Whatever a file system could give us for the name of an entry."""


class TestKey:
    @requirement("000-key-drops-empty-segments")
    @pytest.mark.parametrize("key", ["a//b", "a/b/", "a/b//", "a///b", "//a/b", "/a//b/"])
    def test_empty_segments_are_dropped(self, key: str) -> None:
        assert normalize_key(key) == "a/b"

    @requirement("000-key-drops-dot-segments")
    @pytest.mark.parametrize("key", ["./a/b", "a/./b", "a/b/.", "././a/././b/./.", "/./a/b"])
    def test_single_dots_are_dropped(self, key: str) -> None:
        assert normalize_key(key) == "a/b"

    @pytest.mark.parametrize("key", ["", "/", "//", ".", "./", "/.", "././/."])
    def test_nothing_but_dots_and_slashes_is_the_root(self, key: str) -> None:
        assert normalize_key(key) == ""

    @requirement("000-key-relativizes-leading-slash")
    @pytest.mark.parametrize("key", ["/etc/passwd", "///etc/passwd", "/./etc/passwd"])
    def test_a_leading_slash_counts_from_the_root(self, key: str) -> None:
        assert normalize_key(key) == "etc/passwd"

    @requirement("000-key-rejects-dotdot")
    @pytest.mark.parametrize(
        "key",
        ["..", "../a", "a/..", "a/../b", "/..", "a/b/../../..", "./..", "a/..//b", "a/../"],
    )
    def test_an_upward_step_is_refused_wherever_it_stands(self, key: str) -> None:
        with pytest.raises(InvalidLocatorError, match=r"'\.\.' segment.*Fix: "):
            normalize_key(key)

    @requirement("000-key-keeps-other-segments")
    @pytest.mark.parametrize(
        "key",
        [
            *("a", "a/b/c.md", "...", "..a/a../.hidden", " a /b ", "a:b/c*d?", "~/-rf/$HOME"),
            *("A/a", "x" * 255, "Caf\u00e9/\u6f22\u5b57/\U0001f511"),
        ],
    )
    def test_every_other_segment_is_retained_in_order(self, key: str) -> None:
        assert normalize_key(key) == key

    @pytest.mark.parametrize(
        "key",
        [
            *("a\\b", "a\0b", "a\tb", "a\x1fb", "a\x7fb", "a\x9fb", "a\u2028b", "a\u2029b"),
            *("a\u200bb", "a\u2060b", "\ufeffa", "a\u202eb", "a\u2066b", "a\ud800b", "a\udcffb"),
        ],
    )
    def test_a_character_that_misleads_is_refused_by_its_number(self, key: str) -> None:
        unsafe = next(c for c in key if c not in "ab")

        with pytest.raises(InvalidLocatorError, match=f"U\\+{ord(unsafe):04X}"):
            normalize_key(key)

    @pytest.mark.parametrize(
        "key", ["\uff0e\uff0e", "\u2025", ".\u2024", "\uff0e", "a\uff0fb", "a\uff3cb", "\u2100"]
    )
    def test_a_look_alike_of_a_dot_or_a_separator_is_refused(self, key: str) -> None:
        with pytest.raises(InvalidLocatorError, match="may be read as"):
            normalize_key(key)

    def test_two_spellings_of_a_letter_are_one_key(self) -> None:
        assert normalize_key("cafe\u0301") == normalize_key("caf\u00e9") == "caf\u00e9"

    @pytest.mark.parametrize("longest", ["x" * MAX_SEGMENT_BYTES, "\u00e9" * 127 + "x"])
    def test_a_name_is_measured_in_bytes(self, longest: str) -> None:
        assert normalize_key(f"a/{longest}") == f"a/{longest}"
        with pytest.raises(InvalidLocatorError, match="256 bytes"):
            normalize_key(f"a/{longest}x")

    @pytest.mark.parametrize("filler", ["x", "\u00e9"])
    def test_a_whole_key_is_measured_in_bytes(self, filler: str) -> None:
        size = len(filler.encode())
        longest = "/".join([filler * (200 // size)] * 5) + "/" + "y" * (MAX_KEY_BYTES - 1005)

        assert len(normalize_key(longest).encode()) == MAX_KEY_BYTES
        with pytest.raises(InvalidLocatorError, match=f"longer than {MAX_KEY_BYTES} bytes"):
            normalize_key(f"{longest}y")

    @pytest.mark.parametrize(
        "key", [f"a{TEMPORARY_SUFFIX}", TEMPORARY_SUFFIX, f"a{TEMPORARY_SUFFIX}/b"]
    )
    def test_the_ending_of_unfinished_files_is_reserved(self, key: str) -> None:
        with pytest.raises(InvalidLocatorError, match="reserved"):
            normalize_key(key)

    @pytest.mark.parametrize("key", [None, b"a", 3, Path("a"), ("a", "b")])
    def test_a_key_is_text(self, key: object) -> None:
        with pytest.raises(TypeError, match="text"):
            normalize_key(key)  # type: ignore[arg-type]

    def test_a_refusal_shows_the_key_on_one_short_line(self) -> None:
        with pytest.raises(InvalidLocatorError) as caught:
            normalize_key("new\nline\u202e/" + "x" * 5000)

        assert str(caught.value).isascii()
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 250

    @requirement("000-key-never-leaves-root")
    @settings(deadline=None)
    @given(KEYS)
    @example("a/\u0301/../b")
    def test_any_text_is_refused_or_names_a_place_inside(self, key: str) -> None:
        try:
            normal = normalize_key(key)
        except InvalidLocatorError:
            return
        segments = normal.split("/") if normal else []

        assert normalize_key(normal) == normal
        assert not {"", ".", ".."} & set(segments)
        assert posixpath.normpath(f"/store/{normal}") == f"/store/{normal}".rstrip("/")
        assert unicodedata.is_normalized("NFC", normal)
        assert all(len(segment.encode()) <= MAX_SEGMENT_BYTES for segment in segments)

    @requirement("000-locator-key-normalized")
    @settings(deadline=None)
    @given(KEYS, KEYS)
    def test_however_a_locator_is_built_it_has_the_same_key(self, above: str, below: str) -> None:
        with contextlib.suppress(InvalidLocatorError):
            expected = normalize_key(f"{above}/{below}")
            parent = Locator(above)

            assert Locator(f"{above}/{below}").key == expected
            assert parent.child(below).key == expected
            assert parent.contains(parent.child(below))
            assert ROOT.child(above, below).key == expected
            assert ROOT.child(*parent.child(below).parts).key == expected


class TestLocator:
    @requirement("000-locator-frozen")
    def test_it_can_not_be_changed(self) -> None:
        locator = Locator("a/b")
        for name in ("key", "name", "parts", "other"):
            with pytest.raises((AttributeError, TypeError)):
                setattr(locator, name, "c")
        with pytest.raises((AttributeError, TypeError)):
            del locator.key

        assert locator == Locator("a/b")

    @requirement("000-locator-hashable")
    def test_equal_keys_are_equal_places(self) -> None:
        one, other = Locator("notes/caf\u00e9"), Locator("/notes//./cafe\u0301/")

        assert one == other
        assert hash(one) == hash(other)
        assert {one: "text"}[other] == "text"
        assert one != Locator("notes")
        assert one not in set[object]({"notes/caf\u00e9", None})

    @requirement("000-locator-is-not-a-path", "001-io-only-through-verbs")
    @pytest.mark.parametrize("use", [os.fspath, os.stat, os.listdir, open, Path])
    def test_the_operating_system_does_not_take_it_for_a_path(
        self, use: Callable[[object], object]
    ) -> None:
        assert not issubclass(Locator, str | bytes | PurePath | os.PathLike)
        with pytest.raises(TypeError):
            use(Locator("a"))

    @requirement("000-locator-has-no-io", "001-locator-namespace-only", "001-io-only-through-verbs")
    def test_it_offers_names_and_nothing_else(self) -> None:
        offered = {name for name in dir(Locator) if not name.startswith("_")}

        assert offered == {"key", "parts", "name", "parent", "child", "contains"}

    @requirement("000-locator-root-key-empty")
    @requirement("000-locator-root-parts-empty", "000-locator-root-name-empty")
    def test_the_root_has_no_name(self) -> None:
        assert (ROOT.key, ROOT.parts, ROOT.name) == ("", (), "")
        assert ROOT.parent == ROOT

    @requirement("000-locator-parts", "000-locator-name")
    def test_parts_and_name_come_from_the_key(self) -> None:
        locator = Locator("/notes/./2026/today.md")

        assert locator.parts == ("notes", "2026", "today.md")
        assert locator.name == "today.md"
        assert Locator("single").parts == ("single",)
        assert Locator("single").name == "single"

    @requirement("000-locator-child-appends")
    def test_a_child_lies_below(self) -> None:
        assert Locator("notes").child("2026", "today.md") == Locator("notes/2026/today.md")
        assert ROOT.child("notes") == Locator("notes")
        assert Locator("notes").child() == Locator("notes")

    @requirement("000-locator-child-normalizes")
    def test_the_parts_of_a_child_are_normalized(self) -> None:
        child = Locator("notes").child("/a//", "./b", "", "cafe\u0301/.")

        assert child.key == "notes/a/b/caf\u00e9"

    @requirement("000-locator-child-cannot-escape")
    @pytest.mark.parametrize("part", ["..", "../..", "a/../..", "/..", "../notes"])
    def test_a_child_can_not_escape(self, part: str) -> None:
        with pytest.raises(InvalidLocatorError):
            Locator("notes").child(part)
        with pytest.raises(InvalidLocatorError):
            Locator("notes").child("a", part, "b")

    @requirement("000-locator-str-is-key")
    @pytest.mark.parametrize("key", ["", "a", "a/b.md", "caf\u00e9"])
    def test_as_text_it_is_its_key(self, key: str) -> None:
        assert str(Locator(key)) == key
        assert f"{Locator(key)}" == key

    def test_a_parent_is_one_step_up(self) -> None:
        assert Locator("a/b/c").parent == Locator("a/b")
        assert Locator("a").parent == ROOT

    def test_it_contains_itself_and_what_lies_below(self) -> None:
        notes = Locator("notes")

        assert notes.contains(notes)
        assert notes.contains(Locator("notes/a/b"))
        assert ROOT.contains(notes)
        assert not notes.contains(ROOT)
        assert not notes.contains(Locator("notes-old"))

    def test_order_is_the_order_of_keys(self) -> None:
        keys = ["b", "a/b", "a", "", "a-b", "\u00e4"]

        assert [locator.key for locator in sorted(map(Locator, keys))] == sorted(keys)

    def test_it_can_be_sent_to_another_process(self) -> None:
        assert pickle.loads(pickle.dumps(Locator("a/b"))) == Locator("a/b")  # noqa: S301 - our own


class TestChildren:
    @staticmethod
    def expected(parent: Locator, names: list[str]) -> list[Locator]:
        """Return what asking `Locator` about each name by itself gives."""
        children = set()
        for name in names:
            composed = unicodedata.normalize("NFC", name)
            with contextlib.suppress(InvalidLocatorError):
                child = parent.child(composed)
                if child.parts == (*parent.parts, composed):
                    children.add(child)
        return sorted(children)

    @settings(deadline=None)
    @given(st.lists(FILE_NAMES, unique=True))
    @example(["b", "a"])
    @example(["caf\u00e9", "cafe\u0301", "a"])
    @example([f"a{TEMPORARY_SUFFIX}", "a"])
    @example(["\udcff", "a"])
    def test_listed_names_are_those_that_a_locator_accepts(self, names: list[str]) -> None:
        for parent in (ROOT, Locator("notes/2026"), Locator("/".join(["p" * 200] * 4))):
            assert children_named(parent, names) == self.expected(parent, names)

    @pytest.mark.parametrize("letter", ["p", "\u00e9"])
    @pytest.mark.parametrize("name", ["x" * 100, "\u00e9" * 50], ids=["plain", "accents"])
    def test_a_name_that_makes_the_key_too_long_is_left_out(self, letter: str, name: str) -> None:
        parent = Locator("/".join([letter * (200 // len(letter.encode()))] * 5))
        with pytest.raises(InvalidLocatorError):
            parent.child(name)

        assert children_named(parent, [name, "short"]) == [parent.child("short")]

    @pytest.mark.parametrize(
        "name", ["", ".", "..", "a/b", "/a", "a/", "e\u0301", "a\\b", "\ud800"]
    )
    def test_not_every_text_is_a_segment(self, name: str) -> None:
        assert not is_key_segment(name)

    @settings(deadline=None)
    @given(FILE_NAMES)
    def test_a_segment_is_a_name_that_a_locator_keeps(self, name: str) -> None:
        try:
            is_same = Locator(name).parts == (name,)
        except InvalidLocatorError:
            is_same = False

        assert is_key_segment(name) == is_same
