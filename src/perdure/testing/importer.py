"""The contract of an import format, as a suite that every implementation can run.

class TestMyFormat(FormatSuite):
    promises = frozenset({JSON_FILES})
    files = {"export.json": b"..."}
    more = {"export.json": b"..."}
    spoiled = {"export.json": b"..."}

    @staticmethod
    def open_format() -> Format:
        return MyFormat()
"""

import codecs
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.dataclass import fields, replace
from perdure.testing.suite import Suite, examples, when
from perdure.transfer.contract import Format, ImportFinding, ImportItem, SessionItem
from perdure.transfer.source import ImportSource

JSON_FILES = "JSON"
"""A promise: the files are JSON, where byte order marks and line breaks have no meaning."""

Files = Mapping[str, bytes]

STRANGE: Mapping[str, Files] = {
    "nothing": {"empty.json": b"", "empty.jsonl": b""},
    "something else": {
        "package.json": b'{"name": "a", "version": "1"}',
        "log.jsonl": b'{"a": 1}\n',
    },
    "no text": {"a.json": bytes(range(256)), "a.jsonl": bytes(range(256)), "a.txt": b"\0"},
    "only text": {"notes.txt": b"hello"},
}
FRAGMENTS = (
    *(b'"', b"{", b"}", b"[", b"]", b",", b":", b"\n", b"\\", b"null", b"1e999", b"-1", b"NaN"),
    *(b'"\\ud800"', b"\xff\xfe", b"\0", b"\xef\xbb\xbf", b"[" * 3_000, b"9" * 5_000, b"{}", b"[]"),
    *(b'{"type":', b'"id":', b'"uuid":', b'"parent":', b'"content":', b"true", b'""', b"../"),
)

ODD: tuple[object, ...] = (
    None,
    True,
    2**70,
    1e308,
    float("nan"),
    "",
    "\ud83d",
    "x\0\n",
    [],
    [[]],
    {},
    {"a": []},
)
"""Values of all types, to replace a value of another type."""
CHANGES = st.tuples(st.floats(0, 1), st.integers(0, 40), st.sampled_from(FRAGMENTS))
"""The position, the number of removed bytes, and what is inserted."""


def damaged(data: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    text = bytearray(data)
    for share, length, fragment in changes:
        start = int(share * len(text))
        text[start : start + length] = fragment
    return bytes(text)


def mistyped(data: bytes, spot: int, odd: object) -> bytes:
    """Return JSON, or lines of JSON, with an odd value in the place with number `spot`."""
    try:
        values = [json.loads(data)]
    except ValueError:
        values = [json.loads(line) for line in data.splitlines()]
    places = [*_places_in(values)]
    holder, key = places[spot % len(places)]
    holder[key] = odd
    return b"\n".join(json.dumps(each).encode() for each in values)


def _places_in(value: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - any JSON
    """Yield every place inside a value: its container, and the key or index in that."""
    if isinstance(value, dict | list):
        for key in [*value] if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places_in(value[key])


def found_in(format_: Format, files: Files) -> list[ImportItem | ImportFinding]:
    """Return the items and findings of a folder with these files."""
    with TemporaryDirectory() as place:
        return read(format_, laid_out(Path(place) / "source", files))


def read(format_: Format, path: Path) -> list[ImportItem | ImportFinding]:
    with closing(ImportSource(path)) as source:
        return list(format_.items(source))


def detects(format_: Format, files: Files) -> bool:
    with TemporaryDirectory() as place:
        return format_.detect(ImportSource(laid_out(Path(place) / "source", files)))


def laid_out(folder: Path, files: Files) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def items_of(found: list[ImportItem | ImportFinding]) -> list[ImportItem]:
    return [each for each in found if isinstance(each, ImportItem)]


def refused_in(found: list[ImportItem | ImportFinding]) -> list[ImportFinding]:
    return [each for each in found if isinstance(each, ImportFinding) and each.refused]


def placeless(items: list[ImportItem]) -> list[ImportItem]:
    return [replace(item, where="") for item in items]


def texts_in(value: object) -> Iterator[str]:
    """Yield every text in an item or a finding."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for pair in value.items() for each in pair for text in texts_in(each))
    elif isinstance(value, tuple):
        yield from (text for each in value for text in texts_in(each))
    elif isinstance(value, ImportItem | ImportFinding):
        for field in fields(value):
            yield from texts_in(getattr(value, field.name))


class FormatSuite(Suite):
    """The tests that every format must pass."""

    hooks = frozenset({"promises", "open_format", "files", "more", "spoiled"})
    known_promises = frozenset({JSON_FILES})

    files: ClassVar[Files]
    """Files with at least two items."""
    more: ClassVar[Files]
    """The same files after an item was added, or an item has grown."""
    spoiled: ClassVar[Files]
    """The same files with something unusable before the last item."""

    @staticmethod
    def open_format() -> Format:
        """Return the format under test."""
        raise NotImplementedError("return the format under test")

    @pytest.fixture
    def format_(self) -> Format:
        return self.open_format()

    # ---------------------------------------------------------------- detection
    def test_it_knows_its_files(self, format_: Format) -> None:
        assert detects(format_, self.files)

    def test_it_takes_no_other_files_for_its_own(self, format_: Format) -> None:
        assert [name for name, files in STRANGE.items() if detects(format_, files)] == []

    # ---------------------------------------------------------------- items
    def test_it_finds_what_is_there(self, format_: Format) -> None:
        found = found_in(format_, self.files)

        assert len(items_of(found)) > 1
        assert refused_in(found) == []
        assert all(item.source == format_.name and item.file for item in items_of(found))

    def test_every_item_has_an_id_of_its_own(self, format_: Format) -> None:
        found = [(type(item), item.source_id) for item in items_of(found_in(format_, self.files))]

        assert all(source_id for _, source_id in found)
        assert len(set(found)) == len(found)

    def test_the_same_files_give_the_same_items(self, format_: Format) -> None:
        assert found_in(format_, self.files) == found_in(format_, self.files)

    def test_what_is_added_comes_after_what_was_there(self, format_: Format) -> None:
        before = items_of(found_in(format_, self.files))
        after = {
            (type(item), item.source_id): item for item in items_of(found_in(format_, self.more))
        }

        assert placeless(list(after.values())) != placeless(before)
        for item in before:
            grown = after[type(item), item.source_id]
            if isinstance(item, SessionItem) and isinstance(grown, SessionItem):
                assert grown.messages[: len(item.messages)] == item.messages

    def test_it_reads_an_archive_like_a_folder(self, format_: Format, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in self.files.items():
                archive.writestr(name, data)

        assert read(format_, tmp_path / "export.zip") == found_in(format_, self.files)

    @when(JSON_FILES)
    def test_a_byte_order_mark_and_line_breaks_mean_nothing(self, format_: Format) -> None:
        marked = {
            name: codecs.BOM_UTF8 + data.replace(b"\n", b"\r\n")
            for name, data in self.files.items()
        }

        assert found_in(format_, marked) == found_in(format_, self.files)

    # ---------------------------------------------------------------- unusable files
    def test_unusable_items_are_findings_and_the_rest_is_read(self, format_: Format) -> None:
        whole = placeless(items_of(found_in(format_, self.files)))
        found = found_in(format_, self.spoiled)

        assert placeless(items_of(found)) == whole
        refused = refused_in(found)
        assert refused
        assert all(each.file and each.what and each.fix for each in refused)

    def test_no_file_is_answered_with_an_untyped_error(self) -> None:
        @settings(max_examples=examples(60), deadline=None)
        @given(changes=st.lists(CHANGES, min_size=1, max_size=4), which=st.integers(0))
        def spoil(changes: list[tuple[float, int, bytes]], which: int) -> None:
            files = dict(self.files)
            name = sorted(files)[which % len(files)]
            files[name] = damaged(files[name], changes)

            for found in found_in(self.open_format(), files):
                assert all(text.encode() is not None for text in texts_in(found))

        spoil()

    @when(JSON_FILES)
    def test_a_value_of_another_type_is_a_finding_at_most(self) -> None:
        @settings(max_examples=examples(60), deadline=None)
        @given(which=st.integers(0), spot=st.integers(0), odd=st.sampled_from(ODD))
        def mistype(which: int, spot: int, odd: object) -> None:
            files = dict(self.files)
            name = sorted(files)[which % len(files)]
            files[name] = mistyped(files[name], spot, odd)

            for found in found_in(self.open_format(), files):
                assert all(text.encode() is not None for text in texts_in(found))

        mistype()
