"""Vectors as whole numbers, so that their scores are the same on every machine.

No component is beyond 127, and no vector longer than 4,095. Then whatever part of the products of
two vectors is added up, the sum is a whole number below 2**24, which even a float of 32 bits holds
exactly: in whatever order a machine adds, and however many at once, it comes to the same.
"""

import math
import sys
from array import array
from collections.abc import Sequence

from perdure.errors import InvalidValueError
from perdure.model.values import shown

LARGEST = 127
_SQUARES = [number * number for number in (*range(128), *range(-128, 0))]
"""Of each byte, taken as a signed number."""
LONGEST = 4095
MAX_DIMENSION = 65_536
_NO_ROOM = 1.5 * 2**52
_NEVER_TOO_LONG = (LONGEST // LARGEST) ** 2
"""Up to this dimension no vector can be too long, be all of its components the largest."""


def quantised(vector: Sequence[float] | bytes) -> bytes:
    """Return the direction of a vector as one signed byte for each component.

    What is of such whole numbers already stays as it is. A vector of zeros has no direction, and so
    no bytes.
    """
    if type(vector) is tuple and not vector:
        return b""
    if isinstance(vector, bytes):
        if squared(vector) > LONGEST**2:
            raise InvalidValueError(
                f"the vector is longer than {LONGEST:,}. Fix: let `quantised` make it of numbers."
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


def whole(kept: bytes) -> tuple[float, ...]:
    return tuple(map(float, array("b", kept)))


def squared(kept: bytes) -> int:
    return sum(map(_SQUARES.__getitem__, kept))


def _finite(vector: Sequence[float]) -> list[float]:
    try:
        numbers = list(map(float, vector))
    except (TypeError, ValueError, OverflowError):
        numbers = [math.nan]
    if len(numbers) > MAX_DIMENSION or not all(map(math.isfinite, numbers)):
        raise InvalidValueError(
            f"{shown(vector)} is no vector. Fix: give at most {MAX_DIMENSION:,} finite numbers."
        )
    return numbers


def _rounded(numbers: list[float]) -> bytes:
    """Round each to the nearest whole number, half to even, and return its lowest byte.

    So large a number is added that the floats have no room for fractions: the processor rounds, and
    what is left at the end of each float is the whole number, negative ones as bytes have them.
    """
    rounded = array("d", [number + _NO_ROOM for number in numbers]).tobytes()
    return rounded[0 if sys.byteorder == "little" else 7 :: 8]


def _scale(numbers: list[float], largest: float) -> float:
    """Return what the largest becomes, so that the length is within bounds also when rounded.

    To round moves each component by at most a half, and so the whole by half the square root of
    their number.
    """
    if len(numbers) <= _NEVER_TOO_LONG:
        return LARGEST
    length = _length([number / largest for number in numbers])
    return min(LARGEST, (LONGEST - math.sqrt(len(numbers)) / 2) / length)


def _is_short(numbers: list[float]) -> bool:
    return len(numbers) <= _NEVER_TOO_LONG or _length(numbers) <= LONGEST


def _length(numbers: list[float]) -> float:
    """Return a length; the sum is exact before it is rounded, and so the same everywhere."""
    return math.sqrt(math.fsum([number * number for number in numbers]))
