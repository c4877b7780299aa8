"""A database that is gone, cut off, flipped or something else: it is healed, or an error has a fix.

No text is lost by it: texts are files, and their versions are in the log.
"""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure import HintKind
from perdure.errors import PerdureError
from perdure.testing.suite import examples
from tests.engine.erase.homes import root
from tests.engine.remembering import opened

pytestmark = pytest.mark.search


def _flip(path: Path, dice: random.Random, times: int = 1, stop: int | None = None) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(times):
        data[dice.randrange(stop or len(data))] ^= 1 << dice.randrange(8)
    path.write_bytes(data)


def _spoil_schema(path: Path, dice: random.Random) -> None:
    data = bytearray(path.read_bytes())
    begin = data.find(b"CREATE ")
    data[dice.randrange(begin, begin + 60)] = 0xFF
    path.write_bytes(data)


def _put_folder(path: Path, _: random.Random) -> None:
    path.unlink()
    path.mkdir()
    (path / "theirs").write_text("kept", encoding="utf-8")


DAMAGES: dict[str, Callable[[Path, random.Random], object]] = {
    "deleted": lambda path, _: path.unlink(),
    "emptied": lambda path, _: path.write_bytes(b""),
    "cut off": lambda path, _: os.truncate(path, path.stat().st_size // 2),
    "cut in a page": lambda path, _: os.truncate(path, path.stat().st_size * 2 // 3 + 17),
    "flipped in its head": lambda path, dice: _flip(path, dice, stop=100),
    "flipped in its schema": _spoil_schema,
    "flipped": _flip,
    "flipped often": lambda path, dice: _flip(path, dice, 40),
    "a folder": _put_folder,
    "something else": lambda path, _: path.write_text("no database " * 999, encoding="utf-8"),
}
VERBS = ("read", "recall", "save", "recall")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("whole") / "home"
    with opened(home, semantic=False) as context:
        memory = root(context)
        memory.save("Prefers tabs over spaces.", category="preference", slug="one")
        memory.save("Drinks coffee, see [[one]].", category="preference", slug="two")
        memory.recall("tabs")
    return home


@pytest.mark.parametrize("damage", DAMAGES)
def test_it_is_healed_or_an_error_has_a_fix(damage: str, whole: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with opened(home, semantic=False):
        pass  # a store is known by its folder
    for number in range(examples(1)):
        for database in sorted(path.relative_to(whole) for path in whole.rglob("*.sqlite")):
            shutil.rmtree(home)
            shutil.copytree(whole, home)
            DAMAGES[damage](home / database, random.Random(number))
            for verb in VERBS:
                try:
                    _try(home, verb)
                except PerdureError as error:
                    assert "Fix:" in str(error)  # noqa: PT017 - or nothing is raised
            assert (home / database).exists()
            with opened(home, semantic=False) as context:
                history = context.recorded.history
                assert root(context).read("preference/two").content.startswith("Drinks coffee")
                assert history.store.verify().ok


def _try(home: Path, verb: str) -> None:
    with opened(home, semantic=False) as context:
        memory = root(context)
        if verb == "read":
            assert memory.read("preference/one").content == "Prefers tabs over spaces."
        elif verb == "save":
            memory.save("Likes trains.", category="preference", slug="three")
        else:
            result = memory.recall("tabs")
            assert result.hits or result.index_lag or result.hints, "silently nothing"


@pytest.fixture
def home(whole: Path, tmp_path: Path) -> Path:
    with opened(tmp_path / "home", semantic=False):
        pass  # a store is known by its folder
    shutil.rmtree(tmp_path / "home")
    return shutil.copytree(whole, tmp_path / "home")


def _index_in(home: Path) -> Path:
    (index,) = home.rglob("lexical-*/*.sqlite")
    return index


def _replace_in_index(home: Path, old: bytes, new: bytes, count: int = -1) -> None:
    data = _index_in(home).read_bytes()
    assert old in data
    _index_in(home).write_bytes(data.replace(old, new, count))


def test_a_save_succeeds_while_the_index_is_damaged(home: Path) -> None:
    _index_in(home).write_bytes(b"no database " * 999)
    with opened(home, semantic=False) as context:
        root(context).save("Likes trains.", category="preference", slug="three")

        assert root(context).recall("trains").hits


def test_a_link_that_the_index_lost_is_followed_by_a_move(home: Path) -> None:
    _replace_in_index(home, b"one[[", b"onf[[", 1)
    with opened(home, semantic=False) as context:
        memory = root(context)
        memory.move("preference/one", "preference/tabs")

        assert "[[Tabs|one]]" in memory.read("preference/two").content


def test_a_date_that_is_none_is_damage_and_the_index_is_rebuilt(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with opened(home, semantic=False) as context:
        message = {"role": "user", "content": "I like trains.", "time": "2026-03-02T10:00:00Z"}
        root(context).commit_session([message], session_id="monday")
        assert root(context).recall("trains").hits
    _replace_in_index(home, b"2026-03-02T10", b"2026-03-02T1O")
    with opened(home, semantic=False) as context:
        result = root(context).recall("trains")

    assert result.hits
    assert HintKind.INDEX_REBUILT in {hint.kind for hint in result.hints}


def test_a_home_copied_while_it_is_written_is_opened_with_all_before(tmp_path: Path) -> None:
    """The copy has no one moment; what was acknowledged before it began is in it."""
    home, copy = tmp_path / "home", tmp_path / "copy"
    with opened(home, semantic=False) as context:
        memory = root(context)
        memory.save("Prefers tabs over spaces.", category="preference", slug="one")
        child = os.fork()
        if child == 0:
            with opened(home, semantic=False) as other:
                for number in range(10_000):
                    root(other).save(f"Number {number}.", category="preference", slug="two")
        try:
            for _ in range(examples(2)):
                shutil.copytree(home, copy, dirs_exist_ok=True)
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)
    shutil.rmtree(home)
    copy.rename(home)
    with opened(home, semantic=False) as context:
        memory = root(context)
        memory.repair()
        assert memory.read("preference/one").content == "Prefers tabs over spaces."
        assert memory.recall("tabs").hits
        memory.save("Likes trains.", category="preference", slug="three")
        assert memory.recall("trains").hits
