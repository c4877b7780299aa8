"""Frontmatter is for display: a body comes back to the letter, and people's lines stay."""

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.context import frontmatter
from perdure.errors import InvalidValueError

TEXTS = st.text(max_size=60)
LINES = st.sampled_from(["", "title: x\n", "a: 1\r\nb: 2\r\n", "# only a comment\n"])


@given(LINES, TEXTS)
@example("", "---\n")
@example("", "---\r\nno end")
@example("", "\ufeff---\n---\n")
@example("a: 1\n", "---\nb: 2\n---\n")
@example("a: 1\n", "")
def test_what_was_joined_is_split_again(lines: str, body: str) -> None:
    assert frontmatter.split(frontmatter.join(lines, body)) == (lines, body)


def test_without_lines_there_are_no_fences_but_where_they_are_needed() -> None:
    assert frontmatter.join("", "text") == "text"
    assert frontmatter.join("", "---\ntext") == "---\n---\n---\ntext"


@given(TEXTS)
@example('"quoted" \\ and: colons # hashes')
@example("👨‍👩‍👧 family")
@example("line\u2028separator\u0085 \x7f\ufeff\ufffe")
@example("\U000e0001tag")
def test_any_title_is_yaml_that_says_it(title: str) -> None:
    lines = frontmatter.generate(title)
    frontmatter.check(lines)

    assert yaml.safe_load(lines) == {"title": title, "aliases": [title]}
    assert frontmatter.split(frontmatter.join(lines, "body")) == (lines, "body")


@pytest.mark.parametrize(
    ("text", "lines", "body"),
    [
        ("text", "", "text"),
        ("", "", ""),
        ("---", "", "---"),
        ("----\ntext", "", "----\ntext"),
        ("\n---\na: 1\n---\n", "", "\n---\na: 1\n---\n"),
        ("---\na: 1\n---", "a: 1\n", ""),
        ("---\na: 1\n--- \nb", "a: 1\n", "b"),
        ("---\r\na: 1\r\n---\r\nb\r\n", "a: 1\r\n", "b\r\n"),
        ("\ufeff---\na: 1\n---\nb", "a: 1\n", "b"),
        ("---\na: '---'\n---\n---\n", "a: '---'\n", "---\n"),
        ("---\n---\nb", "", "b"),
    ],
)
def test_a_file_is_split_at_its_fences(text: str, lines: str, body: str) -> None:
    assert frontmatter.split(text) == (lines, body)


@pytest.mark.parametrize(
    "text", ["---\n", "---\na: 1\n", "---\r\na: 1\r\n ---\r\n", "---\n--- x\n"]
)
def test_frontmatter_without_an_end_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError, match="no end"):
        frontmatter.split(text)


@pytest.mark.parametrize("lines", ["", "# a comment\n", "a: 1\n", "a: [1, 'b']\r\nc: |\r\n  d\r\n"])
def test_a_mapping_is_fine(lines: str) -> None:
    frontmatter.check(lines)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("a: [\n", "line 3"),
        ("a: 1\n b: 2\n", "line 3"),
        ("a: 'x\n", "YAML"),
        ("- a\n", "names and values"),
        ("text\n", "names and values"),
        ("a: 1\n---\nb: 2\n", "---"),
        ("---\na: 1\n", "---"),
        ("a: !!python/object/apply:os.getcwd []\n", "YAML"),
        ("a: 2026-99-99\n", "YAML"),
        ("a: \x07\n", "YAML"),
        pytest.param("a: " + "[" * 5_000 + "\n", "levels deep", id="nested"),
        ("? {a: 1}\n: 2\n", "YAML"),
    ],
)
def test_what_is_no_mapping_is_refused(lines: str, said: str) -> None:
    with pytest.raises(InvalidValueError, match=said) as refusal:
        frontmatter.check(lines)

    assert "Fix: " in str(refusal.value)


def test_the_title_of_today_takes_the_place_of_the_old_one() -> None:
    old = frontmatter.generate("Old")

    assert frontmatter.spliced(old, old, "New") == frontmatter.generate("New")
    assert frontmatter.spliced(f"{old}tags: [a] # x\n", old, "New") == (
        frontmatter.generate("New") + "tags: [a] # x\n"
    )


@pytest.mark.parametrize(
    "lines", ["", "title: Mine\n", 'x: 1\ntitle: "Old"\naliases:\n  - "Old"\n']
)
def test_lines_that_somebody_changed_stay(lines: str) -> None:
    assert frontmatter.spliced(lines, frontmatter.generate("Old"), "New") == lines
