"""Passages: whole paragraphs under one heading, each with the lines that it stands on."""

from hypothesis import given
from hypothesis import strategies as st

from perdure.index.records import CHARACTERS, passages, split_text

SENTENCE = "The quick brown fox jumps over the lazy dog. "
MARKDOWN = st.lists(
    st.one_of(
        st.sampled_from(["# A", "## B", "", "```", "~~~~", "text", SENTENCE * 30, "x" * 3_000]),
        st.text(max_size=200),
    ),
    max_size=12,
).map("\n".join)


@given(MARKDOWN)
def test_every_word_outside_headings_is_in_one_passage(text: str) -> None:
    found = passages(text)

    texts = " ".join(passage.text for passage in found)
    headings = {line for line in text.split("\n") if line.startswith("#")}
    for line in set(text.split("\n")) - headings:
        if len(line) < CHARACTERS // 3:
            assert line.strip("\n") in texts or not line.strip()
    assert sum(len(passage.text) for passage in found) <= len(text)


@given(MARKDOWN)
def test_the_lines_of_a_passage_are_those_that_it_says(text: str) -> None:
    lines = text.split("\n")

    for passage in passages(text):
        there = "\n".join(lines[passage.first_line - 1 : passage.last_line])
        assert passage.text in there
        assert len(passage.text) <= CHARACTERS


def test_a_short_note_is_one_passage() -> None:
    (passage,) = passages("Prefers tabs.\n\nAlso in Python.\n")

    assert passage.text == "Prefers tabs.\n\nAlso in Python."
    assert (passage.first_line, passage.last_line) == (1, 3)


def test_a_passage_never_reaches_over_a_heading() -> None:
    found = passages("# Trip\n\nBy train.\n\n## Food\n\nSoup.\n\n# Work\n\nLate.\n")

    assert [(p.text, p.headings, p.first_line) for p in found] == [
        ("By train.", ("Trip",), 3),
        ("Soup.", ("Trip", "Food"), 7),
        ("Late.", ("Work",), 11),
    ]


def test_a_hash_in_code_is_not_a_heading() -> None:
    (passage,) = passages("```sh\n# a comment\n\nls\n```\n")

    assert passage.headings == ()
    assert passage.text == "```sh\n# a comment\n\nls\n```"


def test_long_paragraphs_are_cut_at_the_ends_of_sentences() -> None:
    found = passages(SENTENCE * 100)

    assert len(found) >= 5
    assert all(passage.text.endswith(". ") for passage in found)


def test_what_has_no_words_has_no_passages() -> None:
    assert passages("") == passages("\n \n# Only a heading\n") == []


def test_plain_text_is_at_least_one_passage() -> None:
    assert [passage.text for passage in split_text("", 7)] == [""]
    assert [passage.first_line for passage in split_text("a\n" * 2_000, 7)][:1] == [7]
