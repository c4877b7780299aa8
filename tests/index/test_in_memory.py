"""An index in memory keeps everything until it is closed, and touches no disk."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from perdure.errors import ClosedError
from perdure.index.accounts import MAX_OPEN
from perdure.index.sqlite_index import SqliteIndex
from perdure.testing.index.fixtures import ACCOUNT, record, uri_of

NODE = uri_of("one")


@pytest.fixture
def index() -> Iterator[SqliteIndex]:
    with closing(SqliteIndex.in_memory()) as index:
        index.replace(ACCOUNT, {NODE: [record("id", NODE, "tea")]}, cursor=7)
        yield index


def test_no_account_has_to_make_room_for_others(index: SqliteIndex) -> None:
    for number in range(MAX_OPEN + 1):
        index.replace(f"other{number}", {}, cursor=1)

    assert index.cursor(ACCOUNT) == 7
    assert index.stamps(ACCOUNT).keys() == {NODE}


def test_both_sides_of_a_fork_go_on_with_it(index: SqliteIndex) -> None:
    child = os.fork()
    if not child:
        index.replace(ACCOUNT, {}, cursor=8)
        os._exit(index.cursor(ACCOUNT))

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 8
    assert index.cursor(ACCOUNT) == 7


def test_no_file_is_created(
    index: SqliteIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with closing(SqliteIndex.in_memory()) as other:
        other.replace(ACCOUNT, {NODE: [record("id", NODE, "tea")]}, cursor=1)
        assert other.check(ACCOUNT) == []
        assert other.size(ACCOUNT) == 0

    assert list(tmp_path.iterdir()) == []


def test_what_was_closed_is_gone(index: SqliteIndex) -> None:
    index.close()

    with pytest.raises(ClosedError):
        index.cursor(ACCOUNT)
