"""Files are read in bounds, and nothing outside of what was named."""

import os
import zipfile
from pathlib import Path

import pytest

from perdure.errors import AbsentError, UnreadableSourceError
from perdure.testing.importer import items_of, laid_out, read, refused_in
from perdure.transfer import source
from perdure.transfer.imports import FORMATS
from perdure.transfer.source import ImportSource
from tests.transfer import samples
from tests.transfer.samples import as_json

EXPORT = as_json([samples.BOAT])


def packed(path: Path, *files: tuple[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return path


def test_links_and_devices_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    outside = laid_out(tmp_path / "outside", {"secret.md": b"secret"})
    folder = laid_out(tmp_path / "notes", {"a.md": b"a", ".hidden/b.md": b"b", ".c.md": b"c"})
    (folder / "file.md").symlink_to(outside / "secret.md")
    (folder / "folder").symlink_to(outside)
    os.mkfifo(folder / "pipe.md")

    source = ImportSource(folder)

    assert [entry.name for entry in source.entries] == ["a.md"]
    assert sorted(source.links) == ["file.md", "folder", "pipe.md"]


def test_a_file_that_became_a_link_since_is_not_followed(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "notes", {"a.md": b"a"})
    outside = laid_out(tmp_path / "outside", {"secret.md": b"secret"})
    source = ImportSource(folder)
    (folder / "a.md").unlink()
    (folder / "a.md").symlink_to(outside / "secret.md")

    (finding,) = FORMATS["markdown"].items(source)

    assert finding in refused_in([finding])


def test_the_path_itself_may_be_a_link(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "notes", {"a.md": b"a"})
    (tmp_path / "link").symlink_to(folder)

    assert [entry.name for entry in ImportSource(tmp_path / "link").entries] == ["a.md"]


def test_a_path_that_is_not_there_or_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")

    with pytest.raises(AbsentError):
        ImportSource(tmp_path / "nothing")
    with pytest.raises(UnreadableSourceError, match="neither a file nor a folder"):
        ImportSource(tmp_path / "pipe")
    with pytest.raises(UnreadableSourceError, match="is unusable"):
        ImportSource(tmp_path / "circle")
    with pytest.raises(UnreadableSourceError, match="is the root folder"):
        ImportSource(Path("/"))


def test_a_folder_with_too_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MOST_FILES", 2)
    folder = laid_out(tmp_path, {f"{number}.md": b"x" for number in range(4)})

    with pytest.raises(UnreadableSourceError, match="more than 2 files"):
        ImportSource(folder)


def test_a_folder_that_can_not_be_listed_is_a_finding(tmp_path: Path) -> None:
    source = ImportSource(laid_out(tmp_path, {"a.md": b"a"}))
    source._note(PermissionError(13, "Permission denied", str(source.path / "sub")))

    assert source.unlisted == [("sub", "Permission denied")]


def test_an_archive_is_read_without_unpacking_it(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", ("data/conversations.json", EXPORT), ("chat.html", b"x"))

    assert len(items_of(read(FORMATS["chatgpt"], path))) == 1
    assert os.listdir(tmp_path) == ["a.zip"]  # noqa: PTH208 - as plain as it can be said


@pytest.mark.parametrize("name", ["../../conversations.json", "/etc/conversations.json"])
def test_a_hostile_name_in_an_archive_leads_nowhere(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)

    assert len(items_of(read(FORMATS["chatgpt"], packed(folder / "a.zip", (name, EXPORT))))) == 1
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a.zip"]


def test_an_archive_that_would_grow_out_of_proportion_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", ("conversations.json", b"[" + b" " * 9_000_000 + b"]"))

    (finding,) = read(FORMATS["chatgpt"], path)

    assert "would unpack to" in refused_in([finding])[0].what


def test_a_file_with_too_many_bytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MOST_BYTES", 100)

    found = read(FORMATS["chatgpt"], laid_out(tmp_path, {"conversations.json": EXPORT}))

    assert "more than 100 bytes" in refused_in(found)[0].what


def test_a_damaged_archive_is_a_finding(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", ("conversations.json", EXPORT * 50))
    data = bytearray(path.read_bytes())
    for at in range(60, 200):
        data[at] ^= 0x55
    path.write_bytes(data)

    found = read(FORMATS["chatgpt"], path)

    assert "can't be unpacked" in refused_in(found)[-1].what


def test_an_archive_whose_list_is_damaged_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", ("conversations.json", EXPORT))
    data = path.read_bytes()
    path.write_bytes(data.replace(b"PK\x01\x02", b"PK\x01\x03"))

    with pytest.raises(UnreadableSourceError, match="damaged archive"):
        ImportSource(path)


def test_an_encrypted_file_of_an_archive_is_a_finding(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", ("conversations.json", EXPORT))
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)

    assert "encrypted" in refused_in(read(FORMATS["chatgpt"], path))[0].what
