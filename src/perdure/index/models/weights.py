"""The weights of a model, in the format that their makers use."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Weights = Mapping[str, Floats]

_LENGTH = 8
"""How many bytes say how long the header is."""


def read_weights(path: Path) -> Weights:
    """Return the arrays of single floats in a file of safetensors, by their names.

    The file is believed: whoever calls has compared its digest.
    """
    file = np.memmap(path, mode="r")
    start = _LENGTH + int.from_bytes(file[:_LENGTH].tobytes(), "little")
    header = json.loads(file[_LENGTH:start].tobytes())
    return {name: _array(file[start:], told) for name, told in header.items() if _is_float(told)}


def _is_float(told: Mapping[str, Any]) -> bool:
    return told.get("dtype") == "F32"


def _array(file: NDArray[np.uint8], told: Mapping[str, Any]) -> Floats:
    first, end = told["data_offsets"]
    # Copied, because nobody promises that floats begin where floats may.
    return np.frombuffer(file[first:end].tobytes(), "<f4").reshape(told["shape"])
