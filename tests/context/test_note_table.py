"""The table of notes: which file holds which place, and what lies below a place."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.context.node_files import CONTENT, FILES, META
from perdure.context.note_names import NoteNames, in_place
from perdure.context.note_table import NoteRow, NoteTable
from perdure.context.notes import NotesLayout
from perdure.storage import Locator
from perdure.storage.contract import UNREADABLE, walk
from perdure.storage.redo import read_text
from perdure.storage.vault import VaultBackend

names = st.text("ab-.0%_é", min_size=1, max_size=3)
keys = st.lists(names, min_size=1, max_size=4).map("/".join)


@given(st.sets(keys, max_size=12), keys)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_children_are_the_first_names_below(tmp_path: Path, found: set[str], above: str) -> None:
    with NoteTable(str(tmp_path / "places.sqlite")) as places:
        places.clear()
        places.change(NoteRow(place, f"{number}.md") for number, place in enumerate(found))

        for place in (above, ""):
            prefix = f"{place}/" if place else ""
            below = {key[len(prefix) :] for key in found if key.startswith(prefix)}
            assert places.children(place) == sorted({key.partition("/")[0] for key in below})


def test_names_that_differ_by_case_or_form_are_of_one_file(tmp_path: Path) -> None:
    with NoteTable(str(tmp_path / "places.sqlite")) as places:
        places.change([NoteRow("a", "Ünder.md")])

        for spelled in ("ünder.md", "Ünder.md", "ÜNDER.MD"):
            assert places.at_path(spelled) == NoteRow("a", "Ünder.md")


def test_of_names_that_differ_by_case_the_same_one_comes_first(tmp_path: Path) -> None:
    with NoteTable(str(tmp_path / "places.sqlite")) as places:
        places.change([NoteRow("a", "Note.md"), NoteRow("b", "note.md"), NoteRow("c", "NOTE.md")])

        for row in places.rows():
            assert places.at_path(row.path) == row


@given(st.sets(keys, max_size=12), keys)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_many_places_are_asked_for_at_once(tmp_path: Path, found: set[str], above: str) -> None:
    with NoteTable(str(tmp_path / "places.sqlite")) as places:
        places.clear()
        places.change(NoteRow(place, f"{number}.md") for number, place in enumerate(found))

        assert {row.place for row in places.among([*found, "nothing", *found])} == found
        for place in (above, ""):
            below = {key for key in found if not place or f"{key}/".startswith(f"{place}/")}
            assert places.below(place) == sorted(below, key=lambda key: key.split("/"))


def placed(path: str) -> str:
    place = in_place("acme", path)
    assert place is not None
    return place


class TestLayout:
    """What a layout answers from the table is what reading every file would say."""

    @pytest.fixture
    def vault(self, tmp_path: Path) -> Path:
        folder = tmp_path / "vault"
        folder.mkdir()
        return folder

    @pytest.fixture
    def layout(self, tmp_path: Path, vault: Path) -> NotesLayout:
        backend = VaultBackend(str(vault), str(tmp_path / "home"))
        for path in ("One.md", "Folder/Two.md", "Folder.md", "Perdure/Preferences/Tabs.md"):
            backend.write(Locator(path), f"# {path}\n")
        return NotesLayout(backend, NoteTable(), NoteNames("acme", "ana"), Locator("Perdure"))

    def test_texts_of_a_note_are_looked_at_together(self, layout: NotesLayout, vault: Path) -> None:
        one, two = map(Locator, map(placed, ("One.md", "Folder/Two.md")))
        places = [each.child(name) for each in (one, two) for name in FILES]
        layout.read(one.child(META))
        (vault / "Folder" / "Two.md").write_bytes(b"\xff")

        found = layout.look([*places, Locator(placed("None.md")).child(CONTENT)])

        assert [*found.values()][-1] is None
        assert {place: found[place] for place in places} == {
            place: read_text(layout, place) for place in places
        }
        assert found[one.child(CONTENT)] == "# One.md\n"
        assert found[two.child(CONTENT)] is UNREADABLE

    def test_nodes_below_are_those_that_a_walk_finds(self, layout: NotesLayout) -> None:
        walked = {each.parent.key for each in walk(layout, Locator("")) if each.name == META}

        assert set(layout.below("")) == walked
        assert "accounts/acme/users/ana/memories/preference/tabs" in walked
        assert layout.below(placed("Folder.md")) == [
            placed("Folder.md"),
            placed("Folder/Two.md"),
        ]

    def test_notes_in_place_are_in_use_while_their_file_is_there(
        self, layout: NotesLayout, vault: Path
    ) -> None:
        places = [placed(path) for path in ("One.md", "Folder/Two.md", "None.md")]
        assert layout.in_use(places) == dict(zip(places, [True, True, False], strict=True))

        (vault / "One.md").unlink()
        assert layout.in_use(places[:1]) == {places[0]: False}


def test_a_row_that_takes_the_place_of_a_dropped_one_stays(tmp_path: Path) -> None:
    with NoteTable(str(tmp_path / "places.sqlite")) as places:
        places.change([NoteRow("a/b", "One.md", unsure=True)])
        places.change([NoteRow("a/b", "One.md")], ["a/b"])

        assert places.rows() == [NoteRow("a/b", "One.md")]


def test_nothing_is_left_of_a_place_that_was_dropped(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    with NoteTable(str(path)) as places:
        places.change(
            [NoteRow("secret-folder/b", "One.md", aliases="secret-alias"), NoteRow("c", "C.md")]
        )
        places.change([], ["secret-folder/b"])
        places.wipe()

        assert places.children("") == ["c"]
        assert places.named("secret-alias") == []
    assert b"secret" not in path.read_bytes()
