"""Answers about now: history can prove what they cite, and a disk that is full refuses none."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.engine.recall.result import RecallResult
from perdure.storage.reconciliation import record_external_edits
from tests.disks import refusing
from tests.engine.remembering import of, opened, save_all, uris
from tests.support.hints import texts_of

TABS = "ctx://local/users/ana/memories/preference/indentation"
FULL = [errno.EROFS, errno.EACCES, errno.ENOSPC]


@pytest.fixture(params=["semantic", "lexical"])
def context(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path, semantic=request.param == "semantic") as context:
        yield context


def edit(home: Path, old: str, new: str, slug: str = "indentation") -> None:
    names = (f"{slug.capitalize()}.md", f"{slug}/content.md")  # in either layout
    file = next(file for name in names for file in (home / ".perdure" / "memory").rglob(name))
    file.write_text(file.read_text().replace(old, new))


def two_moments(context: Context) -> IndexState:
    """Save, and something else later; return the earlier state."""
    save_all(of(context))
    then = IndexState(0, context.recorded.history.position())
    of(context).save("Prefers spaces now.", category="preference", slug="indentation")
    return then


def uris_of(result: RecallResult) -> list[str]:
    return [hit.uri for hit in result.hits]


# ---------------------------------------------------------------- what is cited
def test_an_edit_by_hand_is_in_history_when_it_is_cited(context: Context, tmp_path: Path) -> None:
    memory = of(context)
    save_all(memory)
    edit(tmp_path, "tabs over spaces", "spaces over tabs")

    hit = memory.recall("tabs or spaces").hits[0]

    versions = memory.history(TABS)
    assert [version.origin for version in versions] == ["save", "external"]
    assert str(versions[-1].cid) == hit.cid
    assert context.indexes.configured.follower.behind("local") == []


def test_an_edit_that_the_index_knows_already_is_in_history_too(
    context: Context, tmp_path: Path
) -> None:
    memory = of(context)
    save_all(memory)
    edit(tmp_path, "tabs over spaces", "spaces over tabs")
    context.indexes.configured.follower.rebuild("local")

    hit = memory.recall("tabs or spaces").hits[0]

    assert [str(version.cid) for version in memory.history(TABS)][1:] == [hit.cid]


@pytest.mark.usefixtures("agfs")
def test_an_edit_that_can_not_be_read_is_cited_as_it_was_before(
    context: Context, tmp_path: Path
) -> None:
    memory = of(context)
    save_all(memory)
    (before,) = memory.history(TABS)
    edit(tmp_path, "tabs", "tabs " * 25_000)

    assert memory.recall("tabs or spaces").hits[0].cid == str(before.cid)
    assert record_external_edits(context.recorded) == []
    assert memory.recall("tabs or spaces").hits[0].cid == str(before.cid)
    assert len(memory.history(TABS)) == 2


def test_nothing_is_recorded_where_nobody_edited(context: Context) -> None:
    memory = of(context)
    save_all(memory)
    before = context.recorded.history.position()

    memory.recall("tabs or spaces")

    assert context.recorded.history.position() == before


# ---------------------------------------------------------------- disks that take no more
@pytest.mark.parametrize("number", FULL)
@pytest.mark.parametrize("semantic", [True, False])
def test_what_can_only_be_read_is_still_found(tmp_path: Path, number: int, semantic: bool) -> None:  # noqa: FBT001 - a parameter
    with opened(tmp_path, semantic=semantic) as context:
        save_all(of(context))

    with refusing(number), opened(tmp_path, semantic=semantic) as context:
        result = of(context).recall("tabs or spaces")

    assert (result.hits[0].uri, result.index_lag) == (TABS, 0)
    assert result.semantic is semantic


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_an_index_that_can_not_be_brought_up_to_date_answers_as_it_is(
    tmp_path: Path, number: int
) -> None:
    with opened(tmp_path) as context:
        save_all(of(context))
        context.nodes.archive_node(TABS, of(context).caller)

    with refusing(number), opened(tmp_path) as context:
        result = of(context).recall("coffee")

    assert result.hits[0].uri.endswith("/coffee")
    assert result.index_lag > 0
    assert any("the index could not be brought up to date: " in note for note in texts_of(result))


def test_without_an_index_it_says_why_there_is_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as context:
        save_all(of(context))
    for file in tmp_path.rglob("*.sqlite"):
        file.unlink()

    with refusing(), opened(tmp_path) as context:
        result = of(context).recall("coffee")

    assert (result.hits, result.index_lag > 0) == ((), True)
    assert any("the index could not be brought up to date: " in note for note in texts_of(result))


def test_an_edit_that_can_not_be_recorded_gives_a_hint(tmp_path: Path) -> None:
    with opened(tmp_path) as context:
        save_all(of(context))
    edit(tmp_path, "tabs over spaces", "spaces over tabs")

    with refusing(), opened(tmp_path) as context:
        result = of(context).recall("tabs or spaces")

    assert result.index_lag == 1
    assert any(
        "an edit made outside Perdure could not be recorded: " in note for note in texts_of(result)
    )


@pytest.mark.parametrize("number", FULL)
@pytest.mark.parametrize("semantic", [True, False])
def test_the_past_is_found_there_too(tmp_path: Path, number: int, semantic: bool) -> None:  # noqa: FBT001 - a parameter
    with opened(tmp_path, semantic=semantic) as context:
        then = two_moments(context)
        before = of(context).recall("tabs or spaces", at=then)

    with refusing(number), opened(tmp_path, semantic=semantic) as context:
        result = of(context).recall("tabs or spaces", at=then)

    assert (result.hits, texts_of(result)) == (before.hits, texts_of(before))
    assert result.semantic is semantic


@pytest.mark.parametrize("number", FULL)
@pytest.mark.parametrize("semantic", [True, False])
def test_a_past_index_that_can_not_be_stored_is_built_in_memory(
    tmp_path: Path,
    number: int,
    semantic: bool,  # noqa: FBT001 - a parameter
) -> None:
    with opened(tmp_path, semantic=semantic) as context:
        then = two_moments(context)

    with refusing(number), opened(tmp_path, semantic=semantic) as context:
        results = [of(context).recall("tabs or spaces", at=then) for _ in range(2)]
    assert not list(tmp_path.rglob("past/*/*"))
    with opened(tmp_path, semantic=semantic) as context:
        stored = of(context).recall("tabs or spaces", at=then)

    for result in results:
        assert uris_of(result) == uris_of(stored)
        assert result.semantic is semantic
        (note,) = set(texts_of(result)) - set(texts_of(stored))
        assert note.startswith("the index of that state could not be stored: ")
        assert str(tmp_path) in note
        assert "Fix: " in note


def test_a_damaged_past_index_that_can_not_be_rebuilt_is_built_in_memory(tmp_path: Path) -> None:
    with opened(tmp_path) as context:
        then = two_moments(context)
        before = of(context).recall("tabs or spaces", at=then)
    (file,) = tmp_path.rglob("past/**/local.sqlite")
    file.write_bytes(b"x" * 9_000)

    with refusing(), opened(tmp_path) as context:
        result = of(context).recall("tabs or spaces", at=then)

    assert uris_of(result) == uris_of(before)
    assert any("the index of that state could not be stored: " in note for note in texts_of(result))


def test_when_the_disk_can_be_written_again_the_same_memory_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path) as context:
        save_all(of(context))
        context.nodes.archive_node(TABS, of(context).caller)

    with opened(tmp_path) as context:
        with refusing():
            assert of(context).recall("tabs").index_lag > 0
        result = of(context).recall("tabs")

    assert (result.index_lag, [hit.uri for hit in result.hits if hit.uri == TABS]) == (0, [])


# ---------------------------------------------------------------- foreign files
def test_a_folder_in_the_place_of_the_index_is_put_aside(tmp_path: Path) -> None:
    with opened(tmp_path) as context:
        save_all(of(context))
        before = of(context).recall("tabs").hits
    (file,) = tmp_path.rglob("index/**/local.sqlite")
    file.unlink()
    file.mkdir()
    (file / "mine.txt").write_text("of somebody")

    with opened(tmp_path) as context:
        result = of(context).recall("tabs")

        assert uris(of(context), "tabs") == [hit.uri for hit in before]
    assert result.hits == before
    assert texts_of(result) == (
        f"the index {str(file)!a} is damaged: it is a folder. It was built again",
    )
    (aside,) = file.parent.glob("local.sqlite-aside-*")
    assert (aside / "mine.txt").read_text() == "of somebody"
