"""Keys from hostile hands."""

import pytest

from perdure.storage import InvalidLocatorError, Locator, StorageBackend
from perdure.testing.requirement import requirement
from perdure.testing.storage.base import ROOT, StorageSuite, tree

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
"""None of these may name a place."""


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
