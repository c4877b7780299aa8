"""A Markdown text is told by its title, its lead and its headings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.markdown import headings
from perdure.model.values import MAX_ABSTRACT, MAX_OVERVIEW
from perdure.transfer.items import document_abstract, document_outline


@pytest.mark.parametrize(
    ("text", "abstract"),
    [
        ("# A ##\n\nFirst line\nsecond line.\n\nAnother.", "A: First line second line."),
        ("Title\n=====\n\nLead.", "Title: Lead."),
        ("---\ntitle: x\n---\n\n## B\n- list\n\nProse.", "B: Prose."),
        ("\ufeff# C\r\n\r\nLead.\r\n", "C: Lead."),
        ("```\n# code\n```\nText.", "name: Text."),
        ("![image](x)\n> quote\n| a |\n", "name"),
        ("", "name"),
        ("#hashtag is prose", "name: #hashtag is prose"),
    ],
)
def test_an_abstract_is_title_and_lead(text: str, abstract: str) -> None:
    assert document_abstract(text, "name") == abstract


def test_an_outline_has_the_headings_by_their_levels() -> None:
    text = "## A\n~~~\n# no\n~~~~\n### B\n\nC\n---\n#\n# D\n"

    assert [(each.level, each.info) for each in headings(text)] == [
        *((2, "A"), (3, "B"), (2, "C"), (1, ""), (1, "D"))
    ]
    assert document_outline(text) == "  - A\n    - B\n  - C\n- D\n"


@given(text=st.text(alphabet="# \n-=`~ab\r\t|>", max_size=300))
def test_any_text_has_an_abstract_and_an_outline_in_bounds(text: str) -> None:
    assert len(document_abstract(text, "name")) <= MAX_ABSTRACT
    assert len(document_outline(text)) <= MAX_OVERVIEW


def test_a_long_outline_is_cut_between_headings() -> None:
    outline = document_outline("# heading\n\n" * 2_000)

    assert len(outline) <= MAX_OVERVIEW
    assert outline.endswith("- heading\n…\n")
