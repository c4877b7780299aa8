"""The lists of words are found wherever the package is, and read whole."""

import pytest

from perdure.engine.wordlists import word_lists

FILES = (("perdure.engine.merge", "english.txt"), ("perdure.engine.extract", "words.txt"))


@pytest.mark.parametrize("file", FILES)
def test_every_section_has_lines_and_no_comments(file: tuple[str, str]) -> None:
    found = word_lists(*file)

    assert found
    assert all(found.values())
    assert not [line for lines in found.values() for line in lines if line.startswith(("#", "["))]


def test_lines_keep_their_order() -> None:
    found = word_lists("perdure.engine.merge", "english.txt")

    assert " ".join(found["days"]).split()[::6] == ["monday", "sunday"]
