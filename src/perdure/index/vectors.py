"""Vectors of 8-bit integers, so that scores are the same on every machine.

No component exceeds 127, and no vector is longer than 4,095. So any partial sum of the products of
two vectors is an integer below 2**24, which a 32-bit float represents exactly: the order in which a
machine adds, and its vector width, do not matter.
"""

import math
import sys
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, cast

from perdure.artifacts import Derived, Literal
from perdure.artifacts.artifact import Value, encode_canonical, sid_of
from perdure.errors import (
    DamageError,
    EmbeddingError,
    InvalidValueError,
    PerdureError,
    StaleIndexError,
)
from perdure.files import Quarantine
from perdure.index.contract import Embedder
from perdure.model.uri import segment_of
from perdure.model.values import plain, shown

if TYPE_CHECKING:
    from perdure.artifacts import ArtifactStore

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


_OPERATION = ("embed", "1")
_BATCH = 256
_SAMPLE = "a text that nobody could object to"
_MOST_OPEN = 8


class VectorMemo:
    """Returns the quantised vectors of texts, stored or embedded now."""

    def __init__(
        self, folder: Path, embedder: Embedder, quarantine: Quarantine | None = None
    ) -> None:
        self._folder = folder
        self._quarantine = quarantine or Quarantine(folder)
        self._open: OrderedDict[Path, ArtifactStore] = OrderedDict()
        self._embedder = embedder
        self._parameters = _parameters(embedder)
        self.embedded_count = 0
        """The number of texts that were embedded here because they were not stored."""

    def vectors(self, account_id: str, owner_space: str, texts: Sequence[str]) -> list[bytes]:
        """Return the vector of each text; new ones are stored, a damaged store is replaced."""
        folder = memo_folder(self._folder, account_id, owner_space)
        try:
            return self._look_up(folder, texts)
        except (DamageError, StaleIndexError):
            self._discard(folder)
            return self._look_up(folder, texts)

    def store(self, account_id: str, owner_space: str, vectors: Mapping[str, bytes]) -> None:
        """Store vectors that this embedder computed earlier."""
        store = self._store(memo_folder(self._folder, account_id, owner_space))
        pairs = list(vectors.items())
        for start in range(0, len(pairs), _BATCH):
            some = pairs[start : start + _BATCH]
            store.record_results((self._artifact(text), vector) for text, vector in some)

    def _look_up(self, folder: Path, texts: Sequence[str]) -> list[bytes]:
        wanted, store = list(dict.fromkeys(texts)), self._store(folder)
        found: dict[str, bytes] = {}
        for start in range(0, len(wanted), _BATCH):
            found |= self._batch(store, wanted[start : start + _BATCH])
        return [found[text] for text in texts]

    def _discard(self, folder: Path) -> None:
        store = self._open.pop(folder, None)
        if store is not None:
            store.close()
        _remove(folder)

    def close(self) -> None:
        """Close all stores; they are opened again on demand."""
        while self._open:
            self._open.popitem()[1].close()

    def is_available(self) -> bool:
        try:
            self.check_embedder()
        except PerdureError:
            return False
        return True

    def check_embedder(self) -> None:
        """Embed a sample text; raises what the embedder raises."""
        embed(self._embedder, [_SAMPLE])

    def _batch(self, store: "ArtifactStore", texts: Sequence[str]) -> dict[str, bytes]:
        artifacts = [self._artifact(text) for text in texts]
        known = store.results_of([sid_of(each) for each in artifacts])
        missing = [at for at, vector in enumerate(known) if vector is None]
        if missing:
            fresh = embed(self._embedder, [texts[at] for at in missing])
            vectors = [quantise(vector) for vector in fresh]
            store.record_results(zip([artifacts[at] for at in missing], vectors, strict=True))
            self.embedded_count += len(missing)
            for at, vector in zip(missing, vectors, strict=True):
                known[at] = vector
        return {
            text: vector for text, vector in zip(texts, known, strict=True) if vector is not None
        }

    def _artifact(self, text: str) -> Derived:
        return Derived(*_OPERATION, (Literal(text.encode()),), self._parameters)

    def _store(self, folder: Path) -> "ArtifactStore":
        """Return the store in a folder; the last few used stay open. A removed one is created."""
        from perdure.artifacts import ArtifactStore  # noqa: PLC0415 - only embedding needs it

        store = self._open.pop(folder, None)
        if store is not None and not folder.is_dir():
            store.close()
            store = None
        self._quarantine.clear_folder(folder)
        self._open[folder] = store = store or ArtifactStore.open(folder)
        while len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)[1].close()
        return store


def embed(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    """Embed texts; any error of an embedder that is not a `PerdureError` is `EmbeddingError`."""
    try:
        return embedder.embed_texts(texts)
    except PerdureError:
        raise
    except Exception as error:  # a plug-in may raise anything
        raise EmbeddingError(
            f"the embedder failed: {type(error).__name__}: {error}. Fix: repair it, or use another."
        ) from error


class MemoFolders:
    """The stores of tenants, for deletion."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def delete_account_data(self, account_id: str) -> int:
        return _remove(self._folder / segment_of(account_id))

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        return _remove(memo_folder(self._folder, account_id, owner_space))


def memo_folder(folder: Path, account_id: str, owner_space: str) -> Path:
    return folder / segment_of(account_id) / segment_of(owner_space)


def embedder_id(embedder: Embedder) -> str:
    """Return a unique name of an embedder: its model, and a digest of its parameters."""
    digest = sha256(encode_canonical(_parameters(embedder))).hexdigest()[:16]
    return f"{segment_of(str(embedder.parameters.get('model', 'model')))}-{digest}"


def _parameters(embedder: Embedder) -> Mapping[str, Value]:
    return cast("Mapping[str, Value]", plain(dict(embedder.parameters)))


def _remove(folder: Path) -> int:
    if not folder.is_dir():
        return 0
    from shutil import rmtree  # noqa: PLC0415 - 2 ms that readers save

    rmtree(folder)
    return 1
