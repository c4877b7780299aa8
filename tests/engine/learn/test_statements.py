"""Statements are taken from a page and put into it; all else stays to the letter."""

from datetime import date
from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perdure.engine.learn import statements
from perdure.engine.learn.statements import Statement
from perdure.testing.suite import examples

NEW = "- Ana swims.\n"
PARTS = {
    "- Ana sings.\n": ["Ana sings."],
    "* Ana knits.  \n": ["Ana knits."],
    "+   Ana runs.\n": ["Ana runs."],
    "- to do:\n  - nested\n    - deeper\n": ["to do:\n- nested\n  - deeper"],
    "- code:\n  ```sh\n  - no item\n\n  # nor this\n  ```\n": [
        "code:\n```sh\n- no item\n\n# nor this\n```"
    ],
    "- one\n\n  two\n": ["one\n\ntwo"],
    "- steps:\n  1. one\n  2. two\n": ["steps:\n1. one\n2. two"],
    "- [ ] buy milk\n- [x] sell eggs\n": ["[ ] buy milk", "[x] sell eggs"],
    "- Ana plays. (since 2026-03-02)\n": ["Ana plays."],
    "- Ana reads. (since 2026-99-02)\n": ["Ana reads. (since 2026-99-02)"],
    "- Ana\u2028- writes\x0b- and\x0c- paints\x85- a lot\n": [
        "Ana\u2028- writes\x0b- and\x0c- paints\x85- a lot"
    ],
    "- Ana cooks.\r\n  well\r\n": ["Ana cooks.\nwell"],
    "Somebody wrote this.\nIn two lines.\n": ["Somebody wrote this.\nIn two lines."],
    "1. first\n2. second\n": ["1. first\n2. second"],
    "Run this:\n```\n- make\n\n- wait\n```\n": ["Run this:\n```\n- make\n\n- wait\n```"],
    "> - quoted\n": ["> - quoted"],
    # what is no statement
    "# Heading\n": [],
    "Heading\n===\n": [],
    "Heading\n---\n": [],
    "---\n": [],
    "* * *\n": [],
    "- - -\n": [],
    "| a | b |\n|---|---|\n| - 1 | 2 |\n": [],
    "```\n- no item\n\nno text\n```\n": [],
    "~~~~ md\n```\n- no item\n~~~\n~~~~\n": [],
    "<!-- - no item -->\n": [],
    "<!--\n- no item\n\nno text\n-->\n": [],
    "[^1]: a footnote\n": [],
    "    - code\n": [],
}
TOPS = ("", "---\ntags:\n- no item\n---\n", "# Ana\n\n", "---\n\n")

parts = st.lists(st.sampled_from(list(PARTS)), min_size=1, max_size=6)
LINES = (
    *(
        "- a",
        "  b",
        "text",
        "---",
        "===",
        "```",
        "~~~~",
        "<!--",
        "-->",
        "",
        "",
        "    x",
        "# h",
        "| t",
    ),
    *(
        "* * *",
        "1. n",
        " - c",
        "\tq",
        "> d",
        "- ```",
        "  ```",
        "- e\r",
        "-",
        "...",
        "k: v",
        "[^1]: f",
    ),
)
by_lines = st.lists(st.sampled_from(LINES), max_size=12).map("\n".join)
structured = by_lines | st.text(
    st.sampled_from("-*+#`~|<>!=_()[]:.1a \t\r\n\x0b\u2028"), max_size=60
)
texts = st.one_of(structured, st.text(max_size=40), st.sampled_from(list(PARTS)))
texts = texts.filter(lambda text: bool(text.strip()))
quick = settings(max_examples=examples(100), deadline=None)


def page(chosen: list[str], top: str = "") -> tuple[str, list[str]]:
    """Return a page with some parts, and all that it says; it begins with an item."""
    items = ["- Ana hums.\n", *chosen]
    # an item ends where the next thing is not indented, so code must not come right after one
    content = "\n".join(
        "<!-- -->\n\n" + part if part.startswith("    ") else part for part in items
    )
    return top + content, ["Ana hums.", *(text for part in chosen for text in PARTS[part])]


def texts_of(content: str) -> list[str]:
    return [each.text for each in statements.statements(content)]


def lines(content: str) -> list[str]:
    """Return the lines of a page to the letter, without the empty ones."""
    return [line for line in content.split("\n") if line.strip(" \t\r")]


def without_lines(content: str, gone: Statement) -> list[str]:
    return [*lines(content[: gone.start]), *lines(content[gone.end :])]


# ---------------------------------------------------------------- reading
@pytest.mark.parametrize("part", PARTS, ids=ascii)
def test_a_page_says_its_items_and_paragraphs(part: str) -> None:
    content, wanted = page([part])

    assert texts_of(content) == wanted


@quick
@given(chosen=parts, top=st.sampled_from(TOPS))
def test_what_stands_together_is_read_as_it_is_alone(chosen: list[str], top: str) -> None:
    content, wanted = page(chosen, top)

    assert texts_of(content) == wanted


@quick
@given(chosen=parts)
def test_a_page_reads_the_same_with_the_line_ends_of_another_system(chosen: list[str]) -> None:
    content, wanted = page([part.replace("\r", "") for part in chosen if "\r" not in part])

    assert texts_of(content.replace("\n", "\r\n")) == wanted


@quick
@given(content=st.one_of(structured, st.text(max_size=60)))
def test_every_text_is_read_and_nothing_stands_twice(content: str) -> None:
    found = statements.statements(content)

    assert bool(found) == bool(content.strip(" \t\r\n"))
    ends = [0, *(each.end for each in found)]
    assert all(end <= each.start < each.end for end, each in zip(ends, found, strict=False))


def test_a_page_without_a_list_is_one_statement() -> None:
    content = "# Tea\n\nAna likes tea.\n\n1. green\n2. black\n"

    assert texts_of(content) == [content.strip()]


def test_the_day_since_which_it_holds_is_not_part_of_a_statement() -> None:
    (found,) = statements.statements("- Ana sings. (since 2026-03-02)\n")

    assert (found.text, found.since) == ("Ana sings.", date(2026, 3, 2))
    assert (
        found.cid
        == statements.cid_of("Ana sings.")
        == statements.cid_of(" Ana sings. (since 2025-01-01)")
    )


# ---------------------------------------------------------------- writing
@quick
@given(text=texts, since=st.none() | st.dates())
@example(text="---", since=None)
@example(text="- -", since=None)
@example(text="a\n\n\n    b", since=date(2026, 1, 1))
@example(text="a (since 2026-01-01)  (since 2026-01-02)", since=None)
def test_an_item_has_its_evidence(text: str, since: date | None) -> None:
    (found,) = statements.statements(statements.item(text, since))

    assert found.is_item
    assert found.text == statements.plain(text) == statements.plain(found.text)
    assert found.since == since or since is None
    assert found.cid == statements.cid_of(text)


@quick
@given(text=texts)
def test_what_is_alone_is_one_statement(text: str) -> None:
    (found,) = statements.statements(statements.alone(text))

    assert found.text == statements.plain(text)


@quick
@given(chosen=parts, top=st.sampled_from(TOPS), ended=st.booleans())
def test_what_is_added_comes_last_and_all_else_stays(
    chosen: list[str], top: str, *, ended: bool
) -> None:
    content, wanted = page(chosen, top)
    content = content if ended else content.rstrip("\n")

    made = statements.inserted(content, NEW)

    assert made.startswith(content)
    assert lines(made) == [*lines(content), NEW.strip()]
    assert texts_of(made) == [*wanted, "Ana swims."]


@quick
@given(chosen=parts, top=st.sampled_from(TOPS), choice=st.integers(0))
def test_what_is_put_before_a_statement_moves_nothing(
    chosen: list[str], top: str, choice: int
) -> None:
    content, wanted = page(chosen, top)
    known = statements.statements(content)
    number = choice % len(known)

    made = statements.inserted(content, NEW, known[number])

    assert texts_of(made) == [*wanted[:number], "Ana swims.", *wanted[number:]]
    assert made.startswith(content[: known[number].start])
    assert made.endswith(content[known[number].start :])


@quick
@given(chosen=parts, top=st.sampled_from(TOPS), choice=st.integers(0))
def test_what_is_taken_out_takes_nothing_along(chosen: list[str], top: str, choice: int) -> None:
    content, _ = page(chosen, top)
    known = statements.statements(content)
    gone = known[choice % len(known)]

    made = statements.without(content, gone)

    kept = [line for line in lines(made) if line != "<!-- -->"]
    assert kept == [line for line in without_lines(content, gone) if line != "<!-- -->"]
    if any(each.is_item for each in known if each != gone):
        assert texts_of(made) == [each.text for each in known if each != gone]


@quick
@given(chosen=parts, top=st.sampled_from(TOPS), choice=st.integers(0))
def test_what_is_put_in_the_place_of_another_leaves_the_rest(
    chosen: list[str], top: str, choice: int
) -> None:
    content, _ = page(chosen, top)
    known = statements.statements(content)
    number = choice % len(known)

    made = statements.replaced(content, known[number], NEW)

    texts = [each.text for each in known]
    assert texts_of(made) == [*texts[:number], "Ana swims.", *texts[number + 1 :]]
    assert made.startswith(content[: known[number].start])
    assert made.endswith(content[known[number].end :].lstrip("\r\n"))


@quick
@given(chosen=parts, top=st.sampled_from(TOPS))
def test_what_was_added_can_be_taken_out_again(chosen: list[str], top: str) -> None:
    content, _ = page(chosen, top)
    made = statements.inserted(content, NEW)

    (added,) = (each for each in statements.statements(made) if each.text == "Ana swims.")

    assert statements.without(made, added) == content


@quick
@given(content=structured, choice=st.integers(0))
@example(content="- a\n```\n", choice=0)
@example(content="- a\n<!--", choice=0)
@example(content="text\n\n    code\n\n- a", choice=0)
@example(content="text\n- a\n---", choice=1)
@example(content="one\n- a\ntwo", choice=1)
def test_any_page_keeps_what_it_says(content: str, choice: int) -> None:
    known = statements.statements(content)
    if not any(each.is_item for each in known):
        return
    texts = [each.text for each in known]
    number = choice % len(known)
    others = [*texts[:number], *texts[number + 1 :]]

    assert sorted(texts_of(statements.inserted(content, NEW))) == sorted([*texts, "Ana swims."])
    assert sorted(texts_of(statements.replaced(content, known[number], NEW))) == sorted(
        [*others, "Ana swims."]
    )
    left = statements.without(content, known[number])
    if any(each.is_item for each in statements.statements(left)):
        assert texts_of(left) == others


def test_the_gap_that_something_leaves_is_closed() -> None:
    content = "# Ana\n\n- one\n\n- two\n\n- three\n"
    one, two, three = statements.statements(content)

    assert statements.without(content, one) == "# Ana\n\n- two\n\n- three\n"
    assert statements.without(content, two) == "# Ana\n\n- one\n\n- three\n"
    assert statements.without(content, three) == "# Ana\n\n- one\n\n- two\n"


@pytest.mark.parametrize(
    "content",
    [
        "\n" * 200_000 + "- a",
        " " * 200_000 + "a",
        "- a" + " (since 2026-01-01)" * 20_000,
        "- a\n" * 30_000,
        "```\n" * 50_000,
        "<!--" * 50_000,
        "- " + "(" * 200_000,
        "-" * 200_000,
        "- " * 100_000 + "a",
        "---\na:" + "\n--" * 60_000,
    ],
    ids=lambda text: ascii(text[:8]),
)
def test_a_page_is_read_in_a_time_like_its_length(content: str) -> None:
    begun = process_time()
    statements.inserted(content, NEW)
    statements.cid_of(content)

    assert process_time() - begun < 5
