"""A foreign file in a derived folder is quarantined and reported once; nothing is lost."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.engine import upkeep
from perdure.model import Uri
from perdure.model.uri import segment_of
from perdure.surfaces.cli import cli
from tests.engine.remembering import of, opened, save_all, uris
from tests.support.hints import texts_of


def a_file(path: Path) -> None:
    path.write_text("of somebody")


def a_fifo(path: Path) -> None:
    os.mkfifo(path)


def a_broken_link(path: Path) -> None:
    path.symlink_to("nowhere")


def a_folder(path: Path) -> None:
    path.mkdir()


COFFEE = Uri.parse("ctx://local/users/ana/memories/preference/coffee")
FOLDERS = [
    "index",
    "index/*",
    "vectors",
    "vectors/local",
    f"vectors/local/{segment_of('user:ana')}",
    "past",
    "past/*",
    "past/*/[0-9]*",
    "abstracts",
    f"abstracts/{Uri.parse('ctx://local/users/ana/memories').key}",
]


@pytest.fixture
def state(tmp_path: Path) -> IndexState:
    """Have a memory with everything that can be derived of it, and a moment of it."""
    with opened(tmp_path) as context:
        save_all(of(context))
        then = IndexState(0, context.recorded.history.position())
        of(context).save("Prefers spaces now.", category="preference", slug="indentation")
        of(context).recall("tabs", at=then)
        context.indexes.leading_to(COFFEE)
    return then


def taken(home: Path, place: str, other: Callable[[Path], None]) -> Path:
    """Put something else in the place of what is derived."""
    (history,) = (home / ".perdure" / "histories").glob("*")
    path = next(history.glob(place))
    path.rename(home / "moved away")
    other(path)
    return path


def asked(context: Context, then: IndexState) -> list[list[str]]:
    now = uris(of(context), "tabs or spaces")
    return [now, [hit.uri for hit in of(context).recall("tabs or spaces", at=then).hits]]


def asides(path: Path) -> list[Path]:
    return list(path.parent.glob(f"{path.name}-aside-*"))


@pytest.mark.parametrize(
    ("place", "other"),
    [
        *((place, a_file) for place in FOLDERS),
        *((place, other) for place in ("index", "vectors") for other in (a_fifo, a_broken_link)),
    ],
)
def test_it_is_put_aside_and_everything_is_found(
    tmp_path: Path, state: IndexState, place: str, other: Callable[[Path], None]
) -> None:
    with opened(tmp_path) as context:
        before = asked(context, state)
    path = taken(tmp_path, place, other)

    with opened(tmp_path) as context:
        of(context).save("Reads on trains.", category="preference", slug="reading")
        assert asked(context, state)[1] == before[1]
        assert of(context).recall("reads on trains").hits[0].uri.endswith("/reading")
        assert upkeep.verify_index(context.indexes.configured.follower, "local").holds
        context.indexes.configured.follower.rebuild("local")
        assert upkeep.verify_index(context.indexes.configured.follower, "local").holds

    (aside,) = asides(path)
    assert path.is_dir()
    assert os.path.lexists(aside)


@pytest.mark.parametrize("place", ["index", "index/*", "past", "past/*", "past/*/[0-9]*"])
def test_recall_says_so_once(tmp_path: Path, state: IndexState, place: str) -> None:
    path = taken(tmp_path, place, a_file)

    with opened(tmp_path) as context:
        ask = [texts_of(of(context).recall("tabs", at=state)) for _ in range(2)]

    reports = [note for notes in ask for note in notes if str(path) in note]
    assert len(reports) == 1
    assert f"It is now '{asides(path)[0].name}'" in reports[0]
    assert asides(path)[0].read_text() == "of somebody"


@pytest.mark.parametrize("place", ["vectors", "abstracts"])
def test_what_a_save_met_the_next_recall_tells(
    tmp_path: Path, state: IndexState, place: str
) -> None:
    del state
    path = taken(tmp_path, place, a_file)

    with opened(tmp_path) as context:
        of(context).save("Reads on trains.", category="preference", slug="reading")
        first, second = (of(context).recall("reads on trains") for _ in range(2))

    assert [str(path) in note for note in texts_of(first)] == [True]
    assert (first.semantic, texts_of(second)) == (True, ())


@pytest.mark.parametrize("other", [a_fifo, a_broken_link, a_folder])
@pytest.mark.parametrize("place", ["index/*/local.sqlite", "past/*/[0-9]*/local.sqlite"])
def test_in_the_place_of_an_index_too(
    tmp_path: Path, state: IndexState, place: str, other: Callable[[Path], None]
) -> None:
    with opened(tmp_path) as context:
        before = asked(context, state)
    path = taken(tmp_path, place, other)

    with opened(tmp_path) as context:
        assert asked(context, state) == before

    assert path.is_file()
    assert len(asides(path)) == 1


@pytest.mark.parametrize("other", [a_fifo, a_broken_link, a_folder])
@pytest.mark.parametrize("place", ["abstracts/**/.abstract.md"])
def test_in_the_place_of_a_derived_file_too(
    tmp_path: Path, state: IndexState, place: str, other: Callable[[Path], None]
) -> None:
    path = taken(tmp_path, place, other)

    with opened(tmp_path) as context:
        context.indexes.configured.follower.rebuild("local")
        context.indexes.leading_to(COFFEE)
        asked(context, state)

    assert path.is_file()


def test_a_link_to_a_folder_is_one(tmp_path: Path, state: IndexState) -> None:
    with opened(tmp_path) as context:
        before = asked(context, state)
    path = taken(tmp_path, "index", lambda path: path.symlink_to(tmp_path / "moved away"))

    with opened(tmp_path) as context:
        assert asked(context, state) == before

    assert (path.is_symlink(), asides(path)) == (True, [])


@pytest.mark.parametrize("place", FOLDERS)
def test_who_is_forgotten_is_forgotten_all_the_same(
    tmp_path: Path, state: IndexState, place: str
) -> None:
    del state
    taken(tmp_path, place, a_file)

    with opened(tmp_path) as context:
        for data in context.indexes.tenant_data().values():
            data.delete_by_owner_space("local", "user:ana")
            data.delete_account_data("local")


@pytest.mark.parametrize("place", ["index", "abstracts"])
@pytest.mark.parametrize(
    "command", [["index", "verify", "--heal"], ["index", "rebuild"], ["worker", "--once"]]
)
def test_commands_heal_it(
    tmp_path: Path,
    state: IndexState,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    command: list[str],
) -> None:
    del state
    taken(tmp_path, place, a_file)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PERDURE_HOME", raising=False)

    runs = [CliRunner().invoke(cli, words) for words in (command, ["index", "verify"])]

    assert [run.exit_code for run in runs] == [0, 0], [run.output for run in runs]
