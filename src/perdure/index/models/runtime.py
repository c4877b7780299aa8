"""Runs an installed model: the only part that meets onnxruntime and tokenizers."""

import os
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from perdure.errors import ModelDamagedError, PackageMissingError
from perdure.index.models.published import MAX_TOKENS

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

MAX_CHARACTERS = 20_000
"""What is beyond is not looked at; of most texts, 256 tokens are the first 1,200 characters."""

_SPEAK_OF_ERRORS_ONLY = 3
_NO_REPORTS = "ORT_DISABLE_TELEMETRY"


class Runtime:
    """A model in memory. It can be used by several threads at once."""

    def __init__(self, graph: bytes, tokenizer: bytes) -> None:
        packages = load_packages()
        self._array = packages.numpy.array
        try:
            self._session = packages.onnxruntime.InferenceSession(
                graph, _options(packages.onnxruntime), providers=["CPUExecutionProvider"]
            )
            self._tokenizer = packages.tokenizers.Tokenizer.from_buffer(tokenizer)
        except Exception as error:  # neither package has an error of its own for this
            raise ModelDamagedError(
                f"the model can't be read: {str(error)[:200]!a}. "
                "Fix: install a current onnxruntime, then run `perdure models install`."
            ) from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def embed(self, text: str) -> "NDArray[float32]":
        """Return the vector of a text, which has unit length."""
        tokens = self._array([self._tokenizer.encode(text[:MAX_CHARACTERS]).ids])
        vector: NDArray[float32] = self._session.run(None, {"tokens": tokens})[0][0]
        return vector


def _options(onnxruntime: Any) -> Any:  # noqa: ANN401 - onnxruntime has no types
    """Compute each text in the thread that asks: sums are then always added in the same order."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _SPEAK_OF_ERRORS_ONLY
    return options


@dataclass(frozen=True, slots=True)
class Packages:
    numpy: Any
    onnxruntime: Any
    tokenizers: Any


def load_packages() -> Packages:
    """Import what a model runs on; `PackageMissingError` if it is not installed.

    The makers of onnxruntime have it report to them, from 1.29 on, unless it is told not to before
    it is imported. It is told, also if somebody else has imported it by then.
    """
    os.environ.setdefault(_NO_REPORTS, "1")
    try:
        packages = Packages(*map(import_module, ("numpy", "onnxruntime", "tokenizers")))
    except ImportError as error:
        raise PackageMissingError(
            f"the embedding model needs a package that can't be imported: {error}. "
            "Fix: pip install '.[minilm]' from a checkout."
        ) from error
    packages.onnxruntime.disable_telemetry_events()
    return packages
