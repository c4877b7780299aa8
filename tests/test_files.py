"""Files are written whole, or left as they are; one process at a time has a lock."""

import os
from pathlib import Path

import pytest

from perdure.errors import ConcurrentModificationError
from perdure.files import locked, replace_unchanged


@pytest.mark.parametrize("before", [None, b"", b"old"])
@pytest.mark.parametrize("after", [None, b"new"])
def test_a_file_that_is_as_it_was_read_is_replaced(
    tmp_path: Path, before: bytes | None, after: bytes | None
) -> None:
    path = tmp_path / "file"
    if before is not None:
        path.write_bytes(before)

    replace_unchanged(path, before, after)

    assert (path.read_bytes() if path.exists() else None) == after
    assert [each.name for each in tmp_path.iterdir()] == ([] if after is None else ["file"])


@pytest.mark.parametrize("after", [None, b"new"])
def test_a_file_that_others_wrote_is_left(tmp_path: Path, after: bytes | None) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"theirs")

    for before in (None, b"", b"old"):
        with pytest.raises(ConcurrentModificationError, match="Fix: "):
            replace_unchanged(path, before, after)

    assert path.read_bytes() == b"theirs"
    assert len(list(tmp_path.iterdir())) == 1


def test_one_that_comes_at_the_last_moment_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, link = tmp_path / "file", os.link

    def late(finished: Path, target: Path) -> None:
        target.write_bytes(b"theirs")
        link(finished, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(ConcurrentModificationError):
        replace_unchanged(path, None, b"new")
    assert path.read_bytes() == b"theirs"


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)

    replace_unchanged(link, b"old", b"new")

    assert link.is_symlink()
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_lock_is_had_by_one(tmp_path: Path, *, is_folder: bool) -> None:
    path = tmp_path if is_folder else tmp_path / "new" / "lock"
    with locked(path) as first, locked(path, 0.06) as second:
        assert first is not None
        assert second is None
    with locked(path) as third:
        assert third is not None
