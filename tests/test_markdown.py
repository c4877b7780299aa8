"""Any text is read as CommonMark and Obsidian read it, in time that grows with its length."""

import gc
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perdure import markdown
from perdure.markdown import (
    aliases,
    blocks,
    code_fences,
    finding,
    headings,
    links,
    marks,
    tags,
    tasks,
    title,
    without_code,
    without_markers,
)
from perdure.testing.suite import examples

MARKDOWN = st.lists(
    st.sampled_from(
        [
            *("# a", "## b #", " # c", "#d", "===", "---", "- e", "  - f", "1. g", "> h", "```"),
            *(
                "~~~ py",
                "    code",
                "\t",
                "",
                "",
                "",
                "i",
                "j | k",
                "- | -",
                "<div>",
                "<!--",
                "-->",
            ),
            *("$$", "%%", "[l]: m", "[[n#o|p]]", "`", "[q](r.md)", "#tag", "\\[[s]]", "$t$", "***"),
            *("- [ ] u", "x ^id", "\ufeff", "|:-|", "![[v]]", "\x0b\u2028", "a\r", "\r# w", "$ $"),
            *(
                "````",
                "  ```",
                "- ```",
                "> ```",
                "# a | b",
                "\ufeff# q",
                "``` | b",
                "<pre>",
                "</pre>",
                "<b> x",
            ),
            *("## y\r", "```\r", "---\r", "2. z", "$$ a $$", "-", "- # a", "   ~~~", "<!-- b -->"),
            *("`a` [[b]]", "``", "`` ` `` [[c]]", "`[[d]]`", "`` [[e]] `"),
        ]
    ),
    max_size=12,
).map("\n".join)


# ---------------------------------------------------------------- blocks
@given(MARKDOWN | st.text(max_size=80))
@settings(max_examples=examples(500))
@example("---\na: 1\n---\n# b\n")
def test_blocks_have_every_line_that_is_not_blank_once(text: str) -> None:
    found = blocks(text)
    _, body = markdown.split(text)
    at, seen = len(text) - len(body), ""
    for block in found:
        assert at <= block.start < block.end
        assert not text[at : block.start].strip("\ufeff \t\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
        at = block.end
        seen += text[block.start : block.end]
    assert "".join(seen.split()) == "".join(body.removeprefix("\ufeff").split())


@given(MARKDOWN)
@settings(max_examples=examples(500))
def test_what_is_read_without_the_parser_is_read_as_with_it(text: str) -> None:
    """The short ways of `marks`, `headings` and `blocks` must agree with markdown-it-py."""
    top = [each._replace(content="") for each in blocks(text) if not each.depth]
    assert [*marks(text)] == [each for each in top if each.kind in {"heading", "fence"}]
    assert [*headings(text)] == [each for each in top if each.kind == "heading"]
    inside = [each for each in blocks(text) if each.kind in markdown._INLINE]
    exact = [each for block in inside for each in markdown._pieces_in(text, block.start, block.end)]
    kinds = {"wiki", "link", "tag"}
    assert [each for each in markdown._pieces(text) if each.kind in kinds] == [
        each for each in exact if each.kind in kinds
    ]
    if not markdown._STRUCTURE.search(text) and not text.startswith("\ufeff"):
        starts = [0, *(each.end() for each in markdown._LINE_END.finditer(text))]
        starts += [len(text)] if starts[-1] < len(text) else []
        parsed = markdown._parsed(text, 0, starts, 0)
        assert tuple(each._replace(depth=0) for each in parsed) == blocks(text)


def test_blocks_name_their_kind() -> None:
    text = (
        "# T\n\np\nq\n\n"
        "```py x\nc\n```\n\n    i\n\n$$\na\n=\n$$\n%%\n# no\n%%\n<div>\nh\n</div>\n\n"
        "|a|\n|-|\n|b|\n\n***\n- l\n  > - m\n"
    )
    kinds = ["heading", "paragraph", "fence", "code", "math", "comment", "html", "table", "rule"]

    assert [each.kind for each in blocks(text)] == [*kinds, "paragraph", "paragraph"]
    assert [each.depth for each in blocks(text)][-2:] == [2, 5]


def test_a_fence_has_its_content_and_its_words() -> None:
    text = "- a\n  ~~~~ py x\n  b\n  ~~~\n  ~~~~\n- c `` ``` ``\n"
    (fence,) = (each for each in blocks(text) if each.kind == "fence")

    assert (fence.info, fence.content) == ("py x", "b\n~~~\n")
    assert (fence.first_line, fence.last_line) == (2, 5)


# ---------------------------------------------------------------- headings
def test_headings_have_levels_titles_and_places() -> None:
    text = "---\nx: 1\n---\nabove\n\nA\n===\na\n\n### B *b* ##\n```\n# no\n```\n## C\n> # quoted\n"
    found = [*headings(text)]

    assert [(each.level, each.info, each.first_line) for each in found] == [
        (1, "A", 6),
        (3, "B *b*", 10),
        (2, "C", 14),
    ]
    assert text[found[1].end : found[2].start] == "```\n# no\n```\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\ntitle:  My  note \n---\n# H\n", "My note"),
        ("---\ntitle: 7\n---\n", "7"),
        ("---\ntitle: [\n---\n# H [[x|y]]\n", "H y"),
        ("## Sub\n\n# Top\n", "Top"),
        ("## Sub\n", "name"),
        ("", "name"),
    ],
)
def test_a_title_is_that_of_the_frontmatter_or_heading_or_name(text: str, said: str) -> None:
    assert title(text, "name") == said


# ---------------------------------------------------------------- links, tags
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[Note]]", ("Note", "", "", "", False, "wikilink")),
        ("[[ Note #A#B| an alias ]]", ("Note", "A#B", "", "an alias", False, "wikilink")),
        ("![[a/b.png|200]]", ("a/b.png", "", "", "200", True, "wikilink")),
        ("[[Note#^b-1]]", ("Note", "", "b-1", "", False, "wikilink")),
        ("[[#Here]]", ("", "Here", "", "", False, "wikilink")),
        ("|a|b|\n|-|-|\n|[[N\\|x]]|y|", ("N", "", "", "x", False, "wikilink")),
        ("[t](a%20b.md#h)", ("a b.md", "h", "", "t", False, "markdown")),
        ("[t [u] `]`](<a b.md> 'x')", ("a b.md", "", "", "t [u] `]`", False, "markdown")),
        ("![alt](p(1).png)", ("p(1).png", "", "", "alt", True, "markdown")),
        ("> - [t](a.md#^id)", ("a.md", "", "id", "t", False, "markdown")),
    ],
)
def test_a_link_has_target_heading_and_alias(text: str, said: tuple[object, ...]) -> None:
    (link,) = links(text)

    assert link[:6] == said
    assert text[link.start : link.end].startswith(("[", "!["))
    assert text[link.start : link.end].endswith(("]]", ")"))


@pytest.mark.parametrize(
    "text",
    [
        "`[[a]]`",
        "``a ` [[a]]``",
        "`a\n[[a]]`",
        "```\n[[a]]\n```",
        "- x\n\n  ~~~\n  [[a]]\n",
        "    [[a]]",
        "$[[a]]$",
        "$$\n[[a]]\n$$",
        "%%[[a]]%%",
        "%%\n\n[[a]]\n%%",
        "<!-- [[a]] -->",
        "x <!-- [[a]] --> y",
        "\\[[a]]",
        "[[]] [[a\nb]] [[|x]]",
        "[a](https://b.c) [a](mailto:b@c.d) <https://a.b/[[x]]> [a](//b)",
        "[a]\n\n(b.md)",
    ],
)
def test_what_is_no_link_is_not_taken_for_one(text: str) -> None:
    assert links(text) == []


def test_a_property_may_link_to_a_note() -> None:
    (link,) = links("---\nup: '[[b]]' # [c](d.md)\n---\n`[[e]]`\n")

    assert (link.target, link.line) == ("b", 2)


def test_links_in_one_line_each_have_their_place() -> None:
    text = "---\na: 1\n---\n[![[b]] x](c.md) $5 and $6 [[d]] `e`\n\n50%% [[f]]\n"
    found = links(text)

    assert [each.target for each in found] == ["c.md", "b", "d", "f"]
    assert [each.line for each in found] == [4, 4, 4, 6]
    assert text[found[2].start : found[2].end] == "[[d]]"


def test_tags_are_those_of_obsidian() -> None:
    text = (
        "---\ntags: [a, '#b', 2026]\ntag: c, d\n---\n# H #e\n"
        "#f/g. #1 #1a (#no) x#no `#no` [[#no]]\n"
        "#é_ü #🎉 #F/G #h/ https://x.y/#no\n"
    )
    assert tags(text) == ["a", "b", "c", "d", "e", "f/g", "1a", "é_ü", "🎉", "h"]


def test_aliases_are_a_list_or_one_text() -> None:
    assert aliases("---\naliases:\n  - A b\n  - 7\n---\n") == ["A b", "7"]
    assert aliases("---\nalias: A b, c\n---\n") == ["A b", "c"]
    assert aliases("text") == []


# ---------------------------------------------------------------- tasks, ids
def test_tasks_are_items_with_a_box() -> None:
    text = "- [ ] a\n  - [x] b\n1. [/] c\n> * [X] d\n```\n- [ ] no\n```\n[ ] no\n-[ ] no\n- [x]no\n"
    found = tasks(text)

    assert [(each.text, each.done, each.mark, each.line) for each in found] == [
        ("a", False, " ", 1),
        ("b", True, "x", 2),
        ("c", False, "/", 3),
        ("d", True, "X", 4),
    ]


# ---------------------------------------------------------------- code
CODE = st.lists(st.sampled_from(["x", "# y", "- z", "", "`` ` ``"]), max_size=3)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Return a text whose code is closed, and indented as its fence is."""
    lines: list[str] = []
    for _ in range(draw(st.integers(0, 4))):
        lines += draw(st.sampled_from([["a", ""], ["# b", ""], ["- c"], ["1. d"], [""]]))
        indent = {"-": "  ", "1": "   "}.get(lines[-1][:1], "")
        fence = draw(st.sampled_from(["```", "~~~", "````"]))
        code = [f"{fence} py", *draw(CODE), fence]
        lines += [f"{indent}{line}" if line else "" for line in code]
        lines.append("")
    return "\n".join(lines)


@given(documents())
@settings(max_examples=examples(200))
@example("> ```\n> a\n> ```\nb\n")
@example("- ```\n  a\n  ```\n")
@example("a\n```\nb\n\n")
def test_code_is_found_line_by_line_as_the_parser_finds_it(text: str) -> None:
    code = [(each.start, each.end) for each in blocks(text) if each.kind == "fence"]
    found = [(each.start, each.end) for each in code_fences(text)]
    if code and not [*code_fences(text)][-1].is_closed:
        assert found[-1][1] == len(text)
        code, found = code[:-1], found[:-1]
    assert found == code


def test_what_is_not_code_stays_in_its_line() -> None:
    assert without_code("a\n- ```py\n  b\n  ```\nc\n~~~\nd") == "a\n\n\n\nc\n\n"


@given(MARKDOWN | st.text(max_size=80))
@settings(max_examples=examples(300))
def test_any_text_is_read_by_every_reader(text: str) -> None:
    for read in (blocks, links, tags, tasks, without_code, finding, aliases):
        read(text)
    title(text, "name")
    assert len(text.split("\n")) == len(without_code(text).split("\n"))


# ---------------------------------------------------------------- time
HOSTILE = {
    "a line": "a" * 1_000_000,
    "words": "ab c " * 200_000,
    "links": "[[a]] " * 20_000,
    "markdown links": "[a](b.md) " * 20_000,
    "open brackets": "[" * 200_000,
    "open links": "[[a" * 60_000,
    "closers": "](" * 60_000,
    "open destinations": "[a](b" * 60_000,
    "open titles": '[a](b "' * 30_000,
    "nested destinations": "[a](" + "(" * 60_000,
    "ticks": "".join("`" * n + " " for n in range(600)),
    "one tick": "` `` " * 30_000,
    "dollars": "$a " * 60_000,
    "double dollars": "$$ a\n" * 10_000,
    "percents": "%% a %" * 20_000,
    "comments": "<!-- a " * 20_000,
    "tags": "<a " * 40_000,
    "stars": "*a **b_ " * 20_000,
    "quotations": ("> " * 500 + "a\n") * 100,
    "deep quotations": "> " * 50_000 + "a",
    "deep lists": "\n".join("  " * n + "- a" for n in range(400)),
    "lists in quotations": "> - " * 20_000,
    "quoted lines": ("> " * 60 + "a\n") * 2_000,
    "lines": "a\n" * 40_000,
    "items": "- a\n" * 8_000,
    "definitions": "".join(f"[r{n}]: x\n" for n in range(10_000)),
    "a wide table": "|" * 5_000 + "\n" + "|-" * 5_000 + "\n" + "|\n" * 500,
    "hashes": "#" * 200_000,
    "hash words": "#a " * 60_000,
    "boxes": "- [ ] a\n" * 5_000,
    "ids": "a ^b\n\n" * 10_000,
    "escapes": "\\" * 200_000,
    "underlines": "a\n=\n" * 5_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_reading_takes_time_in_proportion_to_the_length(name: str) -> None:
    """Four times the text takes about four times as long, not sixteen times, and never seconds."""
    text = HOSTILE[name]

    def seconds(part: str, read: Callable[[str], object]) -> float:
        blocks.cache_clear()
        gc.disable()  # one collection of all that the tests before left takes longer than this
        try:
            started = time.process_time()
            read(part)
            return time.process_time() - started
        finally:
            gc.enable()

    def outline(text: str) -> object:
        return [*marks(text)], title(text, ""), without_code(text), without_markers(text)

    for read in (links, tags, tasks, blocks, outline):
        whole = seconds(text, read)
        assert whole < 5
        if whole > 0.25:
            part = max(seconds(text[: len(text) // 4], read) for _ in range(2))
            assert whole < 9 * part, f"{read}: {part:.3f} s, {whole:.3f} s"


def test_a_note_of_fifty_megabytes_is_read_with_a_finding() -> None:
    text = "# a\n\n" + ("some words of prose " * 250 + "`x` [[link]]\n\n") * 10_000
    assert len(text) > 50_000_000

    started = time.process_time()
    assert [each.info for each in headings(text)] == ["a"]
    assert len(links(text)) == 10_000
    assert time.process_time() - started < 10
    assert "Fix: split the note." in str(finding(text))
    assert finding(text[:100_000]) is None


def test_what_is_nested_too_deep_keeps_its_links() -> None:
    text = "> " * 200 + "deep [[link]]\n"

    assert [each.target for each in links(text)] == ["link"]


def test_a_text_without_blocks_to_tell_apart_needs_no_parser() -> None:
    """Importing markdown-it-py takes 50 ms, and hooks read such texts."""
    program = """
import sys
from perdure.markdown import headings, links, tags, title, without_code
text = "# Title\\n\\n- an [[item]] `x`\\n- #tag\\n\\n## More\\n\\n```\\n# no\\n```\\n[a](b.md)\\n"
assert len([*headings(text)]) == 2 and len(links(text)) == 2 and tags(text) == ["tag"]
assert title(text, "") == "Title" and "# no" not in without_code(text)
assert "markdown_it" not in sys.modules, "the parser was imported"
"""
    subprocess.run([sys.executable, "-c", program], check=True)
