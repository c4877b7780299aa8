"""Names made from content."""

import hashlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.artifacts.cid import CID, Codec, Hash
from perdure.errors import InvalidCIDError

PUBLISHED = {
    b"": "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
    b"hello world": "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e",
}
"""What IPFS tools print for these bytes, as raw blocks."""

CIDS = st.builds(
    CID, st.binary(min_size=32, max_size=32), st.sampled_from(Hash), st.sampled_from(Codec)
)


@pytest.mark.parametrize(("data", "text"), PUBLISHED.items())
def test_names_are_those_that_other_tools_give(data: bytes, text: str) -> None:
    assert str(CID.of(data)) == text


def test_the_digest_is_what_sha256sum_prints() -> None:
    assert CID.of(b"text").digest.hex() == hashlib.sha256(b"text").hexdigest()


def test_the_empty_input_of_blake3_has_its_published_digest() -> None:
    digest = CID.of(b"", Hash.BLAKE3).digest

    assert digest.hex() == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"


@given(st.binary())
def test_the_same_bytes_have_the_same_name(data: bytes) -> None:
    assert CID.of(data) == CID.of(bytes(bytearray(data)))


@given(CIDS)
def test_a_name_survives_being_written_down(cid: CID) -> None:
    assert CID.parse(str(cid)) == cid
    assert CID.from_bytes(bytes(cid)) == cid


@given(CIDS, st.integers(0, 35), st.integers(1, 255))
def test_a_changed_byte_is_another_name_or_none(cid: CID, at: int, flip: int) -> None:
    changed = bytearray(bytes(cid))
    changed[at] ^= flip
    try:
        assert CID.from_bytes(bytes(changed)) != cid
    except InvalidCIDError:
        assert at < 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "b",
        "B" + PUBLISHED[b""][1:],
        PUBLISHED[b""].upper(),
        PUBLISHED[b""] + "=",
        PUBLISHED[b""] + "a",
        PUBLISHED[b""][:-1],
        PUBLISHED[b""][:-1] + "v",
        "Qm" + "a" * 44,
        "\u0131" * 59,
    ],
)
def test_any_other_text_is_refused_with_the_fix(text: str) -> None:
    with pytest.raises(InvalidCIDError, match="Fix:"):
        CID.parse(text)


@given(st.text() | st.text(alphabet="abcdefghijklmnopqrstuvwxyz234567", min_size=58, max_size=59))
def test_a_text_that_is_read_is_the_one_that_would_be_written(text: str) -> None:
    with suppress(InvalidCIDError):
        assert str(CID.parse(text)) == text


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_digest_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(InvalidCIDError):
        CID(b"x" * length)
