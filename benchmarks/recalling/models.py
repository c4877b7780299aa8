"""What one embedding of the real model costs, on sentences that people wrote."""

import json
import os
import statistics
import time
from itertools import cycle
from pathlib import Path

from perdure.errors import PerdureError
from perdure.index.contract import Embedder

_WRITTEN = Path(__file__).parents[1] / "paraphrases.json"
_WORDS = 35
"""As many as the messages of the corpus have on average."""
_SAMPLE = 512


def minilm(models: Path) -> Embedder | None:
    """Return the model that is installed in a folder; None if none is, or it can't be run."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when the package is imported
    from perdure.index.minilm import MiniLMEmbedder, require_model  # noqa: PLC0415 - see above

    try:
        model = MiniLMEmbedder(require_model(models))
        model.embed_texts(["warm"])
    except PerdureError as error:
        print(f"  MiniLM: not installed ({error})")
        return None
    return model


def of_a_question(model: Embedder) -> float:
    """Return the median seconds that the embedding of a question takes."""
    taken = []
    for written in json.loads(_WRITTEN.read_text())["questions"][:100]:
        begun = time.perf_counter()
        model.embed_texts([written["question"]])
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def of_a_passage(model: Embedder) -> float:
    """Return the seconds that a passage takes, when many are embedded together."""
    sentences = cycle(each["text"] for each in json.loads(_WRITTEN.read_text())["memories"])
    texts = []
    for number in range(_SAMPLE):
        words: list[str] = []
        while len(words) < _WORDS:
            words += next(sentences).split()
        texts.append(" ".join([str(number), *words[:_WORDS]]))
    begun = time.perf_counter()
    model.embed_texts(texts)
    return (time.perf_counter() - begun) / len(texts)
