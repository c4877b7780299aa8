"""JSON is read one element at a time, in bounds, whatever it says."""

import json
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.errors import UnreadableSourceError
from perdure.testing.suite import examples
from perdure.transfer import json_records
from perdure.transfer.json_records import JsonElement, MalformedJson, json_elements, json_lines

ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take none but short elements."""
    monkeypatch.setattr(json_records, "MOST_CHARACTERS", 40)


def values(text: bytes) -> list[object]:
    return [each.value for each in json_elements(BytesIO(text)) if isinstance(each, JsonElement)]


@settings(max_examples=examples(200), deadline=None)
@given(every=st.lists(ANY, max_size=5), ascii_only=st.booleans(), indent=st.sampled_from([None, 1]))
def test_elements_are_those_of_the_list(
    every: list[object], *, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(every, ensure_ascii=ascii_only, indent=indent)

    assert values(text.encode(errors="replace")) == json.loads(text.encode(errors="replace"))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "text", ['[1, "a\\\\", {"b": [2, "]"]}, "\\"]", []]', "[]", " [ 1 ] ", "[[1]]"]
)
def test_brackets_in_strings_and_lists_end_no_element(text: str) -> None:
    assert values(text.encode()) == json.loads(text)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "long",
    [
        '"' + "x" * 500 + '"',
        '"' + '\\"' * 300 + '"',
        "[" + "1," * 300 + "1]",
        '{"a": "' + "y" * 99 + '"}',
    ],
)
def test_an_element_that_is_too_long_is_malformed_and_skipped(long: str) -> None:
    found = list(json_elements(BytesIO(f'[1, {long}, "z"]'.encode())))

    assert found == [
        JsonElement(1, 1),
        MalformedJson(2, "it has more than 40 characters"),
        JsonElement(3, "z"),
    ]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (b'[1, {"a": }, 3]', [2]),
        (b"[1,, 3]", [2]),
        (b'[1, {"a": "b', [2]),
        (b"[1, " + b"[" * 100_000 + b"]" * 100_000 + b", 3]", [2]),
        (b"[1, " + b"9" * 5_000 + b", 3]", [2]),
    ],
)
def test_an_element_that_is_not_json_is_malformed(text: bytes, numbers: list[int]) -> None:
    found = list(json_elements(BytesIO(text)))

    assert [each.number for each in found if isinstance(each, MalformedJson)] == numbers
    assert found[0] == JsonElement(1, 1)


def test_a_list_that_can_not_be_held_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_records, "MOST_BYTES", 5)

    with pytest.raises(UnreadableSourceError, match=r"more than 5 bytes\. Fix: split it"):
        list(json_elements(BytesIO(b"[1, 2]")))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_other_encodings_are_read_by_their_mark(encoding: str) -> None:
    assert values('["é", 2]'.encode(encoding)) == ["é", 2]


def test_an_object_is_one_element_or_the_list_in_it() -> None:
    text = b'{"results": [1, 2]}'

    assert list(json_elements(BytesIO(text))) == [JsonElement(1, {"results": [1, 2]})]
    assert list(json_elements(BytesIO(text), keys=("results",))) == [
        JsonElement(1, 1),
        JsonElement(2, 2),
    ]
    assert list(json_elements(BytesIO(b"  "))) == []


def test_lines_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_records, "MOST_CHARACTERS", 40)
    text = b'\xef\xbb\xbf1\r\n\n"' + b"x" * 200 + b'"\n{\n"\xff"\n"end"'

    found = list(json_lines(BytesIO(text)))

    assert [each.number for each in found] == [1, 3, 4, 5, 6]
    assert [type(each) for each in found] == [
        JsonElement,
        MalformedJson,
        MalformedJson,
        MalformedJson,
        JsonElement,
    ]
