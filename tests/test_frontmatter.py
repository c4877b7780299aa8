"""Properties are read within limits, one by one or all at once."""

import time
from datetime import UTC, date, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perdure.errors import InvalidValueError
from perdure.frontmatter import (
    JSON,
    _own_value,
    as_json,
    entries,
    frontmatter,
    join,
    properties,
    quoted,
    render_property,
    split,
    value_of,
)
from perdure.testing.suite import examples

TEXTS = st.text(max_size=60)
LINES = st.sampled_from(["", "title: x\n", "a: 1\r\nb: 2\r\n", "# only a comment\n"])
LINES_OF_A_NOTE = (
    *("a: 1", "b: x y", 'c: "q"', "d:", "  - e", "  - {f: 1}", "g: [h, i]", "# j", "", "k: 'l'"),
    *(
        "m: 2026-01-02",
        "n: 0x1f",
        "o: 1e3",
        "p: ~",
        "q: yes",
        "r: |",
        "  s",
        "t: 1_000",
        "u: {v: w}",
    ),
)
YAMLISH = st.text(st.sampled_from("ab:-[]{}&*!|>#'\"?%@`,.~<=0123 \n\r\t\ufeffé\x07"), max_size=80)


# ---------------------------------------------------------------- the fences
@given(LINES, TEXTS)
@example("", "---\n")
@example("", "---\r\nno end")
@example("", "\ufeff---\n---\n")
@example("a: 1\n", "---\nb: 2\n---\n")
@example("a: 1\n", "")
def test_what_was_joined_is_split_again(lines: str, body: str) -> None:
    assert split(join(lines, body)) == (lines, body)


def test_without_lines_there_are_no_fences_but_where_they_are_needed() -> None:
    assert join("", "text") == "text"
    assert join("", "---\n---\n") == "---\n---\n---\n---\n"


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
def test_a_text_is_split_at_its_fences(text: str, lines: str, body: str) -> None:
    assert split(text) == (lines, body)


@pytest.mark.parametrize(
    "text", ["---\n", "---\na: 1\n", "---\r\na: 1\r\n ---\r\n", "---\n--- x\n"]
)
def test_frontmatter_without_an_end_is_a_finding_and_all_of_it_is_body(text: str) -> None:
    found = frontmatter(text)

    assert found[:3] == ({}, "", text)
    assert "no end" in str(found.finding)


# ---------------------------------------------------------------- values
@pytest.mark.parametrize(
    ("lines", "values"),
    [
        ("", {}),
        ("# a comment\n", {}),
        ("a: 1\n", {"a": 1}),
        ("a: [1, 'b']\r\nc: |\r\n  d\r\n", {"a": [1, "b"], "c": "d\n"}),
        ("a: yes\nb: true\nc: ~\nd:\n", {"a": "yes", "b": True, "c": None, "d": None}),
        ("a: 0x1F\nb: 0o17\nc: -1.5e3\nd: .5\n", {"a": 31, "b": 15, "c": -1500.0, "d": 0.5}),
        ("a: 1e999\nb: '1'\nc: 1.2.3\n", {"a": "1e999", "b": "1", "c": "1.2.3"}),
        ("a: 2026-03-01\nb: 2026-02-30\n", {"a": date(2026, 3, 1), "b": "2026-02-30"}),
        ("a: 2026-03-01 10:30\n", {"a": datetime(2026, 3, 1, 10, 30)}),  # noqa: DTZ001 - as written
        ("a: 2026-03-01T10:30:00 Z\n", {"a": datetime(2026, 3, 1, 10, 30, tzinfo=UTC)}),
        ("1: x\ntrue: y\n", {"1": "x", "true": "y"}),
        ("a: &x [1]\nb: *x\n", {"a": [1], "b": [1]}),
        ("a: !!str 1\nb: !!int '2'\n", {"a": "1", "b": 2}),
        ("{a: 1, b: {c: [d]}}\n", {"a": 1, "b": {"c": ["d"]}}),
        (f"a: {'1' * 5_000}\n", {"a": "1" * 5_000}),
    ],
)
def test_values_are_those_of_the_core_schema_and_dates(lines: str, values: object) -> None:
    assert properties(lines) == values


LAUGHS = "a: &a [x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 4)}]\n" for n in range(8)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)}\n  <<: [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)
)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("a: [\n", "line 3"),
        ("a: 1\n b: 2\n", "line 3"),
        ("a: 'x\n", "YAML"),
        ("- a\n", "names to values"),
        ("text\n", "names to values"),
        ("a: 1\n...\nb: 2\n", "YAML"),
        ("a: 1\n---\nb: 2\n", "---"),
        ("---\na: 1\n", "---"),
        ("a: !!python/object/apply:os.getcwd []\n", "tag"),
        ("a: !!set {a}\n", "tag"),
        ("a: !mine b\n", "tag"),
        ("a: !!int x\n", "tag"),
        ("a: \x07\n", "YAML"),
        ("a: \ud800\n", "YAML"),
        ("? {a: 1}\n: 2\n", "not text"),
        ("a: 1\na: 2\n", "twice, line 3"),
        ("b: *a\n", "undefined alias"),
        ("a: &a [*a]\n", "undefined alias"),
        pytest.param("a: " + "[" * 5_000 + "\n", "levels deep", id="nested"),
        pytest.param(LAUGHS, "values", id="laughs"),
        pytest.param(MERGES, "merge key", id="merges"),
        pytest.param("a: &a x\n" + "b: [" + "*a, " * 40 + "]\n", "aliases", id="aliases"),
        pytest.param("a: [" + "1, " * 5_000 + "]\n", "values", id="values"),
        pytest.param(f"a: {'x' * 70_000}\n", "characters", id="long"),
    ],
)
def test_what_cannot_be_read_is_a_finding_and_its_body_is_there(lines: str, said: str) -> None:
    with pytest.raises(InvalidValueError, match=said) as refusal:
        properties(lines)

    found = frontmatter(f"---\n{lines.replace('---', '')}---\nbody")
    assert "Fix: " in str(refusal.value)
    assert found.body == "body"


@given(TEXTS | YAMLISH, TEXTS)
@settings(max_examples=examples(400))
def test_any_text_is_read(lines: str, body: str) -> None:
    for text in (lines, f"---\n{lines}\n---\n{body}"):
        found = frontmatter(text)

        assert text.endswith(found.body)
        assert found.lines in text
        assert found.finding is None or "Fix: " in found.finding


@pytest.mark.parametrize(
    "unit", ["a", "[", "{a: ", "- ", "&a ", "*a ", "? ", "a: &a *a\n", "'", "|\n", "---\n", "<<: "]
)
def test_reading_takes_milliseconds_whatever_it_says(unit: str) -> None:
    text = f"---\na: {unit * (60_000 // len(unit))}\n---\n"
    started = time.process_time()
    frontmatter(text)

    assert time.process_time() - started < 0.25


# ---------------------------------------------------------------- line by line
NAMES = st.sampled_from(["a", "title", "tags", "it's", "null", "é", "x: y", "#"])
JSONS: st.SearchStrategy[JSON] = st.recursive(
    st.booleans() | st.integers(-(10**12), 10**12) | TEXTS | st.sampled_from(["1", "no", "a: b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@given(JSONS)
@settings(max_examples=examples(300))
@example("2026-03-02")
@example([{"a": "b: c"}, {"d": [1, "2"]}])
def test_a_value_that_was_written_is_read_with_and_without_the_parser(value: JSON) -> None:
    raw = render_property("a", value, "\n")
    (entry,) = entries(raw)

    assert value_of(entry) == value
    assert as_json(properties(raw)["a"]) == value


@given(YAMLISH | st.lists(st.sampled_from(LINES_OF_A_NOTE), max_size=8).map("\n".join))
@settings(max_examples=examples(500))
def test_what_is_read_line_by_line_is_what_the_parser_reads(lines: str) -> None:
    found = [*entries(lines)]

    assert "".join(entry.raw for entry in found) == lines
    try:
        whole = properties(lines)
    except InvalidValueError:
        return
    for entry in found:
        try:
            value = _own_value(entry.raw) if entry.name else None
        except ValueError:  # then the parser reads it
            continue
        if entry.name in whole:
            assert as_json(whole[entry.name]) == value


@given(TEXTS)
@example('"quoted" \\ and: colons # hashes')
@example("👨‍👩‍👧 family")
@example("line\u2028separator\u0085 \x7f\ufeff\ufffe")
@example("\U000e0001tag")
def test_any_text_can_be_quoted(text: str) -> None:
    assert properties(f"a: {quoted(text)}\n") == {"a": text}
