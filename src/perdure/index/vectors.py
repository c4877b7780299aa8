"""Vectors of 8-bit integers, so that scores are the same on every machine.

No component exceeds 127, and no vector is longer than 4,095. So any partial sum of the products of
two vectors is an integer below 2**24, which a 32-bit float represents exactly: the order in which a
machine adds, and its vector width, do not matter.
"""

import math
import sys
from array import array
from collections.abc import Sequence

from perdure.errors import InvalidValueError
from perdure.model.values import shown

LARGEST = 127
_SQUARES = [number * number for number in (*range(128), *range(-128, 0))]
"""The square of each byte, as a signed number."""
LONGEST = 4095
MAX_DIMENSION = 65_536
_NO_FRACTION = 1.5 * 2**52
_NEVER_TOO_LONG = (LONGEST // LARGEST) ** 2
"""Up to this dimension no vector can be too long."""


def quantise(vector: Sequence[float] | bytes) -> bytes:
    """Return the direction of a vector, one signed byte per component.

    A vector of such integers stays as it is. A vector of zeros has no direction: it is empty.
    """
    if type(vector) is tuple and not vector:
        return b""
    if isinstance(vector, bytes):
        if squared_length(vector) > LONGEST**2:
            raise InvalidValueError(
                f"the vector is longer than {LONGEST:,}. Fix: quantise it from floats."
            )
        return vector
    numbers = _finite(vector)
    largest = max(max(numbers, default=0.0), -min(numbers, default=0.0))
    if not largest:
        return b""
    if 1 <= largest <= LARGEST:
        same = _rounded(numbers)
        if array("b", same).tolist() == numbers and _is_short(numbers):
            return same
    scale = _scale(numbers, largest)
    return _rounded([number / largest * scale for number in numbers])


def components(vector: bytes) -> tuple[float, ...]:
    return tuple(map(float, array("b", vector)))


def squared_length(vector: bytes) -> int:
    return sum(map(_SQUARES.__getitem__, vector))


def _finite(vector: Sequence[float]) -> list[float]:
    try:
        numbers = list(map(float, vector))
    except (TypeError, ValueError, OverflowError):
        numbers = [math.nan]
    if len(numbers) > MAX_DIMENSION or not all(map(math.isfinite, numbers)):
        raise InvalidValueError(
            f"{shown(vector)} is not a vector. Fix: give at most {MAX_DIMENSION:,} finite numbers."
        )
    return numbers


def _rounded(numbers: list[float]) -> bytes:
    """Round each number to the nearest integer, half to even, and return its lowest byte.

    Adding a number so large that a float has no bits for a fraction lets the processor round; the
    lowest bits of the sum are the integer in two's complement.
    """
    rounded = array("d", [number + _NO_FRACTION for number in numbers]).tobytes()
    return rounded[0 if sys.byteorder == "little" else 7 :: 8]


def _scale(numbers: list[float], largest: float) -> float:
    """Return the target of the largest component, so that the rounded vector is not too long.

    Rounding moves each component by at most 1/2, so the length by half the root of their number.
    """
    if len(numbers) <= _NEVER_TOO_LONG:
        return LARGEST
    length = _length([number / largest for number in numbers])
    return min(LARGEST, (LONGEST - math.sqrt(len(numbers)) / 2) / length)


def _is_short(numbers: list[float]) -> bool:
    return len(numbers) <= _NEVER_TOO_LONG or _length(numbers) <= LONGEST


def _length(numbers: list[float]) -> float:
    """Return the length; the sum is rounded once, so it is the same on every machine."""
    return math.sqrt(math.fsum([number * number for number in numbers]))
