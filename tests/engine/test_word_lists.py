"""The lists of words are found wherever the package is, and read whole."""

import pytest

from perdure.engine.learn import words
from perdure.engine.learn import english
from perdure.engine.tables import lists

FILES = ((english.__file__, "english.txt"), (words.__file__, "words.txt"))


@pytest.mark.parametrize("file", FILES)
def test_every_section_has_lines_and_no_comments(file: tuple[str, str]) -> None:
    found = lists(*file)

    assert found
    assert all(found.values())
    assert not [line for lines in found.values() for line in lines if line.startswith(("#", "["))]


def test_lines_keep_their_order() -> None:
    found = lists(english.__file__, "english.txt")

    assert " ".join(found["days"]).split()[::6] == ["monday", "sunday"]
