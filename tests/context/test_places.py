"""The table of notes: which file holds which place, and what lies below a place."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.context.layouts.places import Places, Row

names = st.text("ab-.0%_é", min_size=1, max_size=3)
keys = st.lists(names, min_size=1, max_size=4).map("/".join)


@given(st.sets(keys, max_size=12), keys)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_children_are_the_first_names_below(tmp_path: Path, found: set[str], above: str) -> None:
    with Places(str(tmp_path / "places.sqlite")) as places:
        places.clear()
        places.change(Row(place, f"{number}.md") for number, place in enumerate(found))

        for place in (above, ""):
            prefix = f"{place}/" if place else ""
            below = {key[len(prefix) :] for key in found if key.startswith(prefix)}
            assert places.children(place) == sorted({key.partition("/")[0] for key in below})


def test_names_that_differ_by_case_or_form_are_of_one_file(tmp_path: Path) -> None:
    with Places(str(tmp_path / "places.sqlite")) as places:
        places.change([Row("a", "Ünder.md")])

        for spelled in ("ünder.md", "Ünder.md", "ÜNDER.MD"):
            assert places.at_path(spelled) == Row("a", "Ünder.md")


def test_of_names_that_differ_by_case_the_same_one_comes_first(tmp_path: Path) -> None:
    with Places(str(tmp_path / "places.sqlite")) as places:
        places.change([Row("a", "Note.md"), Row("b", "note.md"), Row("c", "NOTE.md")])

        for row in places.rows():
            assert places.at_path(row.path) == row
