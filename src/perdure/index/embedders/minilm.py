"""The embedding model that Perdure installs: all-MiniLM-L6-v2, on this machine's CPUs."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from threading import Lock

from perdure.errors import InvalidValueError
from perdure.index.embedders.model_files import (
    DIMENSION,
    GRAPH,
    MAX_CHARACTERS,
    MAX_TOKENS,
    TOKENIZER,
    InstalledModel,
    ModelRuntime,
)
from perdure.index.words import check_texts
from perdure.model.values import JSON


class MiniLMEmbedder:
    """Loads the model with the first text.

    Each text is computed alone and in one thread, so that its vector depends on nothing else.
    `threads` texts are computed at once; by default, as many as this process has CPUs. Only the
    first 256 tokens of a text are used.
    """

    def __init__(self, model: InstalledModel, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise InvalidValueError(f"threads is {threads}. Fix: give 1 or more.")
        self._model = model
        self._threads = threads or _processors()
        self._loading = Lock()

    @property
    def parameters(self) -> Mapping[str, JSON]:
        return {
            "model": self._model.name,
            "digest": self._model.digest,
            "tokenizer": self._model.files[TOKENIZER].sha256,
            "dimension": DIMENSION,
            "max_tokens": MAX_TOKENS,
            "max_characters": MAX_CHARACTERS,
            "pooling": "mean",
            "quantisation": "int8 per channel",
        }

    @property
    def dimension(self) -> int:
        return DIMENSION

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts; `ModelDamagedError` or `PackageMissingError` if the model can't run."""
        given = check_texts(texts)
        longest_first = sorted(dict.fromkeys(given), key=len, reverse=True)
        vectors = dict(zip(longest_first, self._embed_all(longest_first), strict=True))
        return [list(vectors[text]) for text in given]

    def _embed_all(self, texts: Sequence[str]) -> list[list[float]]:
        threads = min(self._threads, len(texts))
        if threads <= 1:
            return [self._embed(text) for text in texts]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(self._embed, texts))

    def _embed(self, text: str) -> list[float]:
        vector: list[float] = self._runtime().embed(text).tolist()
        return vector

    def _runtime(self) -> ModelRuntime:
        with self._loading:
            return self._loaded

    @cached_property
    def _loaded(self) -> ModelRuntime:
        return ModelRuntime(self._model.read(GRAPH), self._model.read(TOKENIZER))


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
