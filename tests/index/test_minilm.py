"""The model that Perdure builds computes what its makers' does, and each text alone."""

import os
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
import tokenizers

from perdure.errors import InvalidValueError, ModelDamagedError, PackageMissingError
from perdure.index.minilm import (
    GRAPH,
    MAX_CHARACTERS,
    TOKENIZER,
    WEIGHTS,
    InstalledModel,
    MiniLMEmbedder,
    ModelRuntime,
    Pin,
)
from perdure.index.model_graph import read_weights
from perdure.testing.embedder import cosine, embed
from tests.index.bert_reference import Reference

SENTENCES = (
    "Ana prefers tabs over spaces.",
    "Which indentation does Ana like?",
    "The plumber came on Tuesday to fix the sink.",
    "Who repaired the kitchen tap?",
    "We moved to Lisbon in the spring of 2019.",
    "Before the move, they lived near the harbour in Hamburg.",
    "My daughter is allergic to peanuts!",
    "The deploy failed because the certificate had expired.",
    "Renew TLS certificates thirty days ahead.",
    "lol ok",
    "Yes.",
    "",
    "He ran his first marathon in under four hours.",
    "Interest rates were raised by a quarter of a point.",
    "def add(a, b): return a + b",
    "SELECT name FROM users WHERE id = 42;",
    "Grandmother's recipe needs six eggs, flour, sugar and a pinch of salt.",
    "How do I bake the cake that grandma used to make?",
    "The cat slept on the warm radiator all afternoon.",
    "Photosynthesis turns light into chemical energy.",
    "Please call me Sam, not Samuel.",
    "The user's name is Samuel, but he goes by Sam.",
    "El tren sale a las ocho de la mañana.",
    "Der Zug fährt um acht Uhr ab.",
    "日本語の文です。",
    "https://example.org/a/b?c=d#e",
    "Meeting notes: budget approved; hire two engineers; revisit in Q3.",
    "I'm so happy that I finally passed the exam :)",
    "The quick brown fox jumps over the lazy dog.",
    "Version 2.4.1 drops support for Python 3.8.",
    "It rained on day one. " * 20,
    "A note about nothing in particular, which goes on for a while. " * 30,
)


@pytest.fixture(scope="session")
def reference(published: Path) -> dict[str, Any]:
    """Return the vectors of all sentences by the weights as they were published."""
    tokenizer = tokenizers.Tokenizer.from_file(str(published / TOKENIZER))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    model = Reference(read_weights(published / WEIGHTS))
    return {text: model.embed(tokenizer.encode(text).ids) for text in SENTENCES}


@pytest.fixture
def minilm(model: InstalledModel) -> MiniLMEmbedder:
    return MiniLMEmbedder(model)


def test_vectors_are_those_of_the_published_weights(
    minilm: MiniLMEmbedder, reference: dict[str, Any]
) -> None:
    vectors = minilm.embed_texts(SENTENCES)
    near = [
        cosine(vector, reference[text]) for text, vector in zip(SENTENCES, vectors, strict=True)
    ]

    assert float(np.mean(near)) > 0.997
    assert min(near) > 0.99


def test_how_near_texts_are_is_what_the_published_weights_say(
    minilm: MiniLMEmbedder, reference: dict[str, Any]
) -> None:
    vectors = dict(zip(SENTENCES, minilm.embed_texts(SENTENCES), strict=True))
    off = [
        abs(cosine(vectors[a], vectors[b]) - float(reference[a] @ reference[b]))
        for a, b in combinations(SENTENCES, 2)
    ]

    assert float(np.mean(off)) < 0.006
    assert max(off) < 0.04


def test_meaning_counts_for_more_than_words(minilm: MiniLMEmbedder) -> None:
    question, answer, words = minilm.embed_texts(
        ["How do I fix a flat tyre?", "Repairing a punctured wheel", "How do I fix a price?"]
    )

    assert cosine(question, answer) > cosine(question, words)


@pytest.mark.parametrize("threads", [2, 3, 16])
def test_the_number_of_threads_changes_nothing(model: InstalledModel, threads: int) -> None:
    alone = MiniLMEmbedder(model, threads=1).embed_texts(SENTENCES)

    assert MiniLMEmbedder(model, threads).embed_texts(SENTENCES) == alone
    assert MiniLMEmbedder(model, threads).embed_texts(SENTENCES[::-1]) == alone[::-1]


def test_beyond_256_tokens_nothing_counts(minilm: MiniLMEmbedder) -> None:
    # Two of the tokens are the beginning and the end.
    within = "word " * 254

    assert embed(minilm, f"{within} and so on") == embed(minilm, within)
    assert embed(minilm, "word " * 253 + "end") != embed(minilm, within)


def test_a_text_without_words_for_very_long_is_cut(minilm: MiniLMEmbedder) -> None:
    assert embed(minilm, " " * MAX_CHARACTERS + "tabs") == embed(minilm, "")


def test_what_a_vector_depends_on_is_in_the_parameters(
    minilm: MiniLMEmbedder, model: InstalledModel
) -> None:
    other = replace(model, files={**model.files, GRAPH: Pin(1, "0" * 64)})

    assert minilm.parameters == {
        "model": "all-MiniLM-L6-v2",
        "digest": sha256((model.folder / GRAPH).read_bytes()).hexdigest(),
        "tokenizer": sha256((model.folder / TOKENIZER).read_bytes()).hexdigest(),
        "dimension": 384,
        "max_tokens": 256,
        "max_characters": MAX_CHARACTERS,
        "pooling": "mean",
        "quantisation": "int8 per channel",
    }
    assert MiniLMEmbedder(other).parameters != minilm.parameters
    assert MiniLMEmbedder(model, threads=7).parameters == minilm.parameters


@pytest.mark.parametrize("threads", [0, -1])
def test_an_invalid_number_of_threads_is_refused(model: InstalledModel, threads: int) -> None:
    with pytest.raises(InvalidValueError, match="threads"):
        MiniLMEmbedder(model, threads)


# ---------------------------------------------------------------- what may be missing
@pytest.mark.parametrize("package", ["numpy", "onnxruntime", "tokenizers"])
def test_a_missing_package_is_named_and_how_to_get_it(
    minilm: MiniLMEmbedder, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(PackageMissingError, match=rf"{package}.*pip install '\.\[minilm\]'"):
        minilm.embed_texts(["tabs"])


@pytest.mark.parametrize("name", [GRAPH, TOKENIZER])
def test_a_changed_bit_is_noticed(model: InstalledModel, tmp_path: Path, name: str) -> None:
    damaged = replace(model, folder=copytree(model.folder, tmp_path / "model"))
    content = bytearray((damaged.folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (damaged.folder / name).write_bytes(content)

    with pytest.raises(ModelDamagedError, match=f"{name}.*perdure models install"):
        MiniLMEmbedder(damaged).embed_texts(["tabs"])


def test_a_file_that_is_gone_is_noticed(model: InstalledModel, tmp_path: Path) -> None:
    with pytest.raises(ModelDamagedError, match="perdure models install"):
        MiniLMEmbedder(replace(model, folder=tmp_path)).embed_texts(["tabs"])


@pytest.mark.parametrize("broken", [GRAPH, TOKENIZER])
def test_a_file_that_is_not_a_model_raises_our_error(model: InstalledModel, broken: str) -> None:
    files = {name: b"\0" if name == broken else model.read(name) for name in (GRAPH, TOKENIZER)}

    with pytest.raises(ModelDamagedError, match="can't be read"):
        ModelRuntime(files[GRAPH], files[TOKENIZER])


def test_nothing_heavy_is_imported_before_the_first_text() -> None:
    script = """
import sys, perdure.index.minilm, perdure.index.minilm
heavy = {"numpy", "onnxruntime", "tokenizers", "urllib.request", "subprocess"}
print(sorted(heavy & set(sys.modules)))
"""

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)

    assert done.stdout == b"[]\n"


REPORTING = """
import sys
from pathlib import Path
from perdure.index.minilm import MiniLMEmbedder
from perdure.index.minilm import require_model
MiniLMEmbedder(require_model(Path(sys.argv[1]))).embed_texts(["tabs"])
"""


def test_nothing_is_noted_down_about_the_user(model: InstalledModel, tmp_path: Path) -> None:
    command = [sys.executable, "-c", REPORTING, str(model.folder.parent)]
    # No home but this one, and nothing that says that these are tests, when onnxruntime is quiet.
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}

    done = subprocess.run(command, env=environment, capture_output=True, check=True)

    assert (done.stdout, done.stderr) == (b"", b"")
    assert list(tmp_path.iterdir()) == []
