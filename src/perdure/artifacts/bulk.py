"""Many rows of a table at once, by numpy; each step is one pass over all that is asked."""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from perdure.artifacts.table import Row, Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORTHWHILE = 64
"""How many must be asked for, before it pays."""

_WORDS = 12
"""A row is so many numbers of 64 bits: four of digest, then its fields, two in the last."""
_DIGEST_WORDS = 4
_SINCE = _DIGEST_WORDS
_PLACE = _DIGEST_WORDS + Row._fields.index("place")
_LENGTH = _DIGEST_WORDS + Row._fields.index("length")
_HIDDEN = _DIGEST_WORDS + Row._fields.index("hidden")
_HALF = 32


@cache
def is_available() -> bool:
    """Whether numpy is installed; it is loaded only when it is first needed."""
    return find_spec("numpy") is not None


class Spot(NamedTuple):
    """Where the bytes are of one of many that were asked for."""

    segment: int
    place: int
    length: int
    crc: int
    which: int


class Bulk:
    """A table as arrays."""

    def __init__(self, table: Table) -> None:
        import numpy as np  # noqa: PLC0415 - an optional dependency

        self.table = table
        self._prefixes: NDArray[np.uint64] = np.frombuffer(
            table.raw_prefixes(0, table.count), "<u8"
        )
        self._rows: NDArray[np.uint64] = np.frombuffer(
            table.raw_rows(0, table.count), "<u8"
        ).reshape(table.count, _WORDS)
        self._checked: NDArray[np.uint8] = np.frombuffer(table.checked, "u1")

    def any_of(self, digests: Sequence[bytes]) -> bool:
        """Whether any of these is there."""
        return bool(self._find(digests)[0].any())

    def visible(self, digests: Sequence[bytes], position: int) -> tuple[list[bool], list[int]]:
        """Say of each whether it can be seen, and of which this is not so easily told."""
        there, rows = self._find(digests)
        plain = rows[:, _HIDDEN] == 0
        seen = there & plain & (rows[:, _SINCE] <= position)
        return seen.tolist(), (there & ~plain).nonzero()[0].tolist()

    def spots(self, digests: Sequence[bytes], position: int) -> tuple[list[Spot], list[int]]:
        """Return where those lie that can be seen, and of which this is not so easily told."""
        there, rows = self._find(digests)
        plain = rows[:, _HIDDEN] == 0
        seen = (there & plain & (rows[:, _SINCE] <= position)).nonzero()[0]
        rows_seen = rows[seen]
        columns = (
            (rows_seen[:, -1] & 0xFFFFFFFF).tolist(),
            rows_seen[:, _PLACE].tolist(),
            rows_seen[:, _LENGTH].tolist(),
            (rows_seen[:, -1] >> _HALF).tolist(),
            seen.tolist(),
        )
        return list(map(Spot._make, zip(*columns, strict=True))), (
            (there & ~plain).nonzero()[0].tolist()
        )

    def _find(self, digests: Sequence[bytes]) -> "tuple[NDArray[np.bool_], NDArray[np.uint64]]":
        """Return which of these are there, and the numbers of a row for each."""
        import numpy as np  # noqa: PLC0415 - an optional dependency

        joined = np.frombuffer(b"".join(digests), "<u8").reshape(-1, _DIGEST_WORDS)
        prefixes = joined[:, 0].byteswap()
        self._check(prefixes)
        at = np.searchsorted(self._prefixes, prefixes)
        np.minimum(at, self.table.count - 1, out=at)
        rows = self._rows[at]
        there = rows[:, 0] == joined[:, 0]
        for word in range(1, _DIGEST_WORDS):
            there &= rows[:, word] == joined[:, word]
        # Two digests may share their first 8 bytes; those few are looked up one by one.
        for place in np.flatnonzero(~there & (self._prefixes[at] == prefixes)).tolist():
            found, is_there = self.table.place_of(digests[place])
            if is_there:
                rows[place], there[place] = self._rows[found], True
        return there, rows

    def _check(self, prefixes: "NDArray[np.uint64]") -> None:
        import numpy as np  # noqa: PLC0415 - an optional dependency

        # In two steps: numpy leaves a shift by all 64 bits undefined.
        half = self.table.shift // 2
        buckets = prefixes >> np.uint64(half) >> np.uint64(self.table.shift - half)
        for bucket in np.unique(buckets[self._checked[buckets] == 0]):
            self.table.check(int(bucket))
