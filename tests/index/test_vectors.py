"""Vectors of whole numbers: their scores are exact, in whatever order a machine adds."""

import math
import random
from array import array
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import InvalidValueError
from perdure.index.filters import digest, root_digest, stamp
from perdure.index.matrix import COLUMNS, Matrix
from perdure.index.rows import IndexChange, RowFilter
from perdure.index.vectors import (
    LARGEST,
    LONGEST,
    MAX_DIMENSION,
    components,
    quantise,
    squared_length,
)
from perdure.model import Level
from perdure.testing.index.fixtures import record, uri_of
from perdure.testing.index.reference import cosine

finite = st.floats(allow_nan=False, allow_infinity=False)
vectors = st.lists(finite, min_size=1, max_size=40)


def gauss(dimension: int, seed: int = 1) -> list[float]:
    chance = random.Random(seed)
    return [chance.gauss(0, 1) for _ in range(dimension)]


# ---------------------------------------------------------------- whole numbers


@given(vectors)
def test_the_largest_becomes_127_and_all_others_their_share_of_it(vector: list[float]) -> None:
    stored = components(quantise(vector))
    largest = max(map(abs, vector))
    if not largest:
        assert stored == ()
    elif not (largest in range(1, LARGEST + 1) and all(map(float.is_integer, vector))):
        assert stored == tuple(float(round(number / largest * LARGEST)) for number in vector)
        assert max(map(abs, stored)) == LARGEST


@given(vectors)
def test_a_quantised_vector_stays_as_it_is(vector: list[float]) -> None:
    stored = quantise(vector)

    assert quantise(components(stored)) == stored


@pytest.mark.parametrize("vector", [(3, 0, -4), (127, -127), (1,), (0, 0, 1.0), (-127.0, 5)])
def test_small_whole_numbers_stay_as_they_are(vector: tuple[float, ...]) -> None:
    assert components(quantise(vector)) == tuple(map(float, vector))


def test_halves_are_rounded_to_even() -> None:
    halves = (254.0, 1.0, 3.0, 5.0, -1.0, -3.0, -5.0)

    assert components(quantise(halves)) == (127, 0, 2, 2, 0, -2, -2)


@pytest.mark.parametrize("vector", [(), (0.0,), (0, 0, 0), (-0.0, 0.0)])
def test_what_has_no_direction_has_no_bytes(vector: tuple[float, ...]) -> None:
    assert quantise(vector) == b""


@pytest.mark.parametrize("dimension", [1, 2, 384, 1024, 1025, 1536, 4096, MAX_DIMENSION])
def test_no_vector_is_longer_than_its_bound(dimension: int) -> None:
    longest = [1.0] * dimension
    jagged = [1.0 if number % 2 else 0.508 for number in range(dimension)]
    for vector in (longest, jagged, gauss(dimension)):
        stored = quantise(vector)
        assert squared_length(stored) <= LONGEST**2
        assert len(stored) == dimension
        length = math.sqrt(math.fsum(number * number for number in vector))
        alike = sum(a * b for a, b in zip(components(stored), vector, strict=True)) / length
        assert alike / math.sqrt(squared_length(stored)) > 0.99


def test_whole_numbers_that_are_too_long_are_scaled() -> None:
    assert squared_length(quantise([127.0] * 1100)) <= LONGEST**2
    assert components(quantise([100.0] * 1100)) == (100.0,) * 1100


@pytest.mark.parametrize("tiny", [5e-324, 1e-300, 1e300, 1.7e308])
def test_the_size_of_numbers_does_not_matter(tiny: float) -> None:
    assert components(quantise((tiny, -tiny, 0.0))) == (127.0, -127.0, 0.0)


@pytest.mark.parametrize(
    "vector", [(math.nan,), (math.inf, 0), ("a",), (None,), None, (10**400,), [0.1] * 65_537]
)
def test_an_invalid_vector_is_refused(vector: Any) -> None:  # noqa: ANN401 - anything at all
    with pytest.raises(InvalidValueError, match=r"is not a vector\. Fix: "):
        quantise(vector)


# ---------------------------------------------------------------- exact sums

EXTREME = (
    [1.0] * 1024,
    [(-1.0) ** number for number in range(1024)],
    [1.0] * 4096,
    [1.0 if number < 512 else -1.0 for number in range(1024)],
)


@pytest.mark.parametrize("seed", range(8))
def test_floats_of_32_bits_add_up_exactly_in_any_order_and_any_chunks(seed: int) -> None:
    """Each partial sum is at most 4,095 squared, below 2**24: it is held without rounding."""
    chance = np.random.default_rng(seed)
    for vector in (*EXTREME, gauss(384, seed), gauss(1536, seed)):
        one = array("b", quantise(vector))
        other = array("b", quantise(gauss(len(vector), seed + 100) if seed % 2 else vector))
        exact = sum(a * b for a, b in zip(one, other, strict=True))
        order = chance.permutation(len(one))
        products = (np.array(one, np.float32) * np.array(other, np.float32))[order]
        cuts = np.sort(chance.integers(0, len(one), size=seed))
        chunks = [chunk.cumsum(dtype=np.float32)[-1:].sum() for chunk in np.split(products, cuts)]
        total = np.float32(0)
        for chunk in chunks:
            total = np.float32(total + chunk)

        assert abs(exact) <= LONGEST**2 < 2**24
        assert int(total) == exact
        assert int(np.array(one, np.float32)[order] @ np.array(other, np.float32)[order]) == exact


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_the_same_for_every_order_of_rows_and_blocks(seed: int) -> None:
    chance = random.Random(seed)
    stored = [quantise(gauss(96, number)) for number in range(600)]
    stored += stored[:50]
    query = quantise(gauss(96, 9999))
    expected = {row: cosine(query, vector) for row, vector in enumerate(stored, 1)}

    matrix = in_blocks(stored, sorted(chance.sample(range(1, len(stored)), seed)))
    rows, scores = matrix.nearest(query, RowFilter({}), len(stored))
    assert dict(zip(rows.tolist(), scores.tolist(), strict=True)) == expected

    rows, scores = matrix.nearest(query, RowFilter({}), 20)
    best = sorted(expected.values(), reverse=True)[19]
    assert dict(zip(rows.tolist(), scores.tolist(), strict=True)) == {
        row: score for row, score in expected.items() if score >= best
    }


def in_blocks(stored: list[bytes], cuts: list[int]) -> Matrix:
    """Return a matrix that came to be in several steps."""
    columns = np.zeros((len(COLUMNS), len(stored)), np.int64)
    columns[0] = np.arange(1, len(stored) + 1)
    columns[-1] = [squared_length(vector) for vector in stored]
    every = np.frombuffer(b"".join(stored), np.int8).reshape(len(stored), len(stored[0]))
    nothing = np.empty(0, np.int64)
    first, *ends = *cuts, len(stored)
    matrix = Matrix(len(stored[0]), IndexChange(1), columns[:, :first], every[:first])
    for start, end in zip(cuts, ends, strict=False):
        matrix.follow(columns[:, start:end], every[start:end], nothing, IndexChange(2))
    return matrix


def test_rows_that_went_are_passed_over() -> None:
    stored = [quantise(gauss(8, number)) for number in range(100)]
    matrix = in_blocks(stored, [40, 70])
    gone = np.array([1, 41, 99, 100, 555], np.int64)
    matrix.follow(
        np.empty((len(COLUMNS), 0), np.int64), np.empty((0, 8), np.int8), gone, IndexChange(3)
    )

    rows, _ = matrix.nearest(stored[0], RowFilter({}), 1000)
    assert sorted(rows.tolist()) == [row for row in range(1, 101) if row not in gone]
    rows, _ = matrix.compact().nearest(stored[0], RowFilter({}), 1000)
    assert sorted(rows.tolist()) == [row for row in range(1, 101) if row not in gone]


# ---------------------------------------------------------------- stamps


def test_a_stamp_is_the_same_in_any_order() -> None:
    some = [record(f"r{number}", text=str(number)) for number in range(5)]

    assert stamp(some) == stamp(some[::-1]) == stamp([*some, *some])
    assert len(stamp(some)) == 32


def test_everything_that_a_record_says_is_in_its_stamp() -> None:
    one = record("a", text="x", context="y", payload={"n": 1}, filters={"category": "c"})
    others = [
        replace(one, id="b"),
        replace(one, level=Level.OVERVIEW),
        replace(one, text="y", context="x"),
        replace(one, context=""),
        replace(one, payload={"n": 1.0}),
        replace(one, payload={"n": "1"}),
        replace(one, filters={**one.filters, "category": ""}),
        replace(one, vector=(1.0, 0.0, 1.0)),
        replace(one, vector=()),
    ]
    stamps = {stamp([each]) for each in (one, *others)}

    assert len(stamps) == 10
    assert stamp([one, others[0]]) not in stamps


def test_a_vector_is_stamped_in_its_quantised_form() -> None:
    one = record("a", vector=(0.5, 0.25, -0.5))

    assert digest(one) == digest(replace(one, vector=(127, 64, -127)))
    assert digest(one) != digest(replace(one, vector=(127, 63, -127)))


def test_the_root_tells_of_every_uri_and_stamp() -> None:
    stamps = {uri_of("a"): stamp([record("a")]), uri_of("b"): stamp([])}
    swapped = dict(zip(stamps, reversed(stamps.values()), strict=True))

    assert root_digest(stamps) == root_digest(dict(reversed(stamps.items())))
    assert (
        len(
            {
                root_digest(stamps),
                root_digest(swapped),
                root_digest({}),
                root_digest({uri_of("a"): ""}),
            }
        )
        == 4
    )
