"""One encoding for each value."""

import math
from contextlib import suppress

import cbor2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.artifacts.artifact import Value, decode_canonical, encode_canonical
from perdure.artifacts.cid import CID
from perdure.errors import InvalidArtifactError

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary()
    | st.binary(min_size=32, max_size=32).map(CID)
)
VALUES: st.SearchStrategy[Value] = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(VALUES)
def test_what_is_encoded_is_decoded_to_the_same(value: Value) -> None:
    encoded = encode_canonical(value)
    decoded = decode_canonical(encoded)

    assert encode_canonical(decoded) == encoded
    assert decoded == value


@given(st.dictionaries(st.text(), SCALARS, min_size=2), st.randoms())
def test_the_order_of_keys_does_not_matter(value: dict[str, Value], random: object) -> None:
    backwards = dict(reversed(value.items()))

    assert encode_canonical(backwards) == encode_canonical(value)


def test_keys_are_ordered_by_length_then_bytes() -> None:
    assert encode_canonical({"b": 1, "aa": 2, "a": 3}).hex() == "a3616103616201626161" + "02"


def test_numbers_are_as_short_as_they_can_be_and_floats_never() -> None:
    assert encode_canonical(1).hex() == "01"
    assert encode_canonical(1.0).hex() == "fb3ff0000000000000"


def test_a_link_is_written_as_other_tools_write_it() -> None:
    cid = CID.of(b"")

    assert encode_canonical(cid) == bytes.fromhex("d82a582500") + bytes(cid)


def deep(levels: int) -> Value:
    value: Value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, 2**64, -(2**64) - 1, "\ud800", {1: 2}, {"a": object()}, {1, 2}, deep(200)],
)
def test_what_has_no_canonical_form_is_refused(value: Value) -> None:
    with pytest.raises(InvalidArtifactError):
        encode_canonical(value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        cbor2.dumps({"b": 1, "a": 2}),  # keys out of order
        bytes.fromhex("1801"),  # a number longer than it need be
        bytes.fromhex("f93c00"),  # a short float
        bytes.fromhex("0101"),  # something behind it
        bytes.fromhex("9f01ff"),  # of indefinite length
        cbor2.dumps(cbor2.CBORTag(42, b"no link")),
        cbor2.dumps(cbor2.CBORTag(43, b"")),
        cbor2.dumps(cbor2.CBORSimpleValue(99)),
        bytes.fromhex("81" * 5000 + "01"),
        bytes.fromhex("9b7fffffffffffffff"),  # claims to be enormous
    ],
)
def test_what_is_not_canonical_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidArtifactError):
        decode_canonical(data)


@given(st.binary(max_size=40))
@example(b"\xa1\x01\x02")
@example(b"\xc0\x61\x30")
def test_any_bytes_are_canonical_or_refused(data: bytes) -> None:
    with suppress(InvalidArtifactError):
        assert encode_canonical(decode_canonical(data)) == data
