"""Three-way merges of texts."""

from hypothesis import given
from hypothesis import strategies as st

from perdure.artifacts.lines import merge

LINES = st.lists(st.sampled_from("abcdef"), max_size=12).map("\n".join)


def test_changes_of_different_lines_are_both_there() -> None:
    merged = merge("a\nb\nc\nd\ne\n", "a\nB\nc\nd\ne\n", "a\nb\nc\nd\nE\n")

    assert merged == ("a\nB\nc\nd\nE\n", 0)


def test_the_same_change_on_both_sides_is_there_once() -> None:
    assert merge("a\nb\n", "a\nx\n", "a\nx\n") == ("a\nx\n", 0)


def test_a_line_added_on_one_side_and_one_removed_on_the_other() -> None:
    assert merge("a\nb\nc\nd\n", "a\nb\nc\nd\ne\n", "b\nc\nd\n") == ("b\nc\nd\ne\n", 0)


def test_different_changes_of_one_line_clash_and_both_are_there() -> None:
    merged = merge("a\nb\nc", "a\nmine\nc", "a\ntheirs\nc")

    assert merged.clashes == 1
    assert merged.text == "a\n<<<<<<< mine\nmine\n=======\ntheirs\n>>>>>>> theirs\nc"


def test_texts_without_a_common_base_clash() -> None:
    assert merge("", "x\n", "y\n").clashes == 1


@given(LINES, LINES)
def test_a_side_that_changed_nothing_takes_the_other(base: str, other: str) -> None:
    assert merge(base, base, other) == (other, 0)
    assert merge(base, other, base) == (other, 0)


@given(LINES, LINES, LINES)
def test_sides_can_be_swapped(base: str, mine: str, theirs: str) -> None:
    one, other = merge(base, mine, theirs), merge(base, theirs, mine)

    assert one.clashes == other.clashes
    if not one.clashes:
        assert one.text == other.text
