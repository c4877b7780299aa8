"""Who else can be asked: plain FTS5, numpy, chromadb, and LangGraph's store in memory.

All get the same texts, and the same vectors. One that is not installed is None.
"""

import importlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from perdure.engine.recall.question import parse_question
from recalling.memories import DIMENSION, Floats, StandIn
from recalling.timing import Ask

TOP = 10
_CHUNK = 1_000
_numbers = count()


def plain_fts5(texts: Sequence[str], questions: Sequence[str], folder: Path) -> Ask:
    """Return FTS5 with one row for each passage, asked for any of the words, by BM25.

    Which words these are is told beforehand, and costs it nothing.
    """
    now = datetime.now(UTC)
    asked = {
        each: " OR ".join(f'"{word}"' for word in parse_question(each, now).words)
        for each in questions
    }
    db = sqlite3.connect(folder / "plain.sqlite")
    db.execute("CREATE VIRTUAL TABLE said USING fts5(text, tokenize='porter unicode61')")
    db.executemany("INSERT INTO said VALUES (?)", ((text,) for text in texts))
    db.commit()
    query = f"SELECT rowid, text FROM said WHERE said MATCH ? ORDER BY rank LIMIT {TOP}"  # noqa: S608 - a constant
    return lambda question: db.execute(query, (asked[question],)).fetchall()


def brute_force(vectors: Floats, embedder: StandIn) -> Ask:
    def ask(question: str) -> object:
        scores = vectors @ embedder.vector(question)
        best = np.argpartition(scores, -TOP)[-TOP:]
        return best[np.argsort(-scores[best])]

    return ask


def chroma(texts: Sequence[str], vectors: Floats, embedder: StandIn) -> Ask | None:
    """Return a collection of chromadb with its default index, in memory."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    chromadb = _installed("chromadb")
    if chromadb is None:
        return None
    settings = chromadb.config.Settings(anonymized_telemetry=False)
    client = chromadb.EphemeralClient(settings)
    made = client.create_collection(f"said-{next(_numbers)}", embedding_function=None)
    for start in range(0, len(texts), _CHUNK):
        end = min(start + _CHUNK, len(texts))
        ids = [str(number) for number in range(start, end)]
        made.add(ids=ids, embeddings=vectors[start:end], documents=list(texts[start:end]))
    return lambda question: made.query(query_embeddings=[embedder.vector(question)], n_results=TOP)


def langgraph(texts: Sequence[str], vectors: Floats, embedder: StandIn) -> Ask | None:
    """Return LangGraph's store, which is told the vectors by its embed function."""
    memory = _installed("langgraph.store.memory")
    if memory is None:
        return None
    known = dict(zip(texts, vectors.tolist(), strict=True))

    def embed(asked: Sequence[str]) -> list[list[float]]:
        return [known.pop(text, None) or embedder.embed_texts([text])[0] for text in asked]

    store = memory.InMemoryStore(index={"dims": DIMENSION, "embed": embed, "fields": ["text"]})
    put = importlib.import_module("langgraph.store.base").PutOp
    for start in range(0, len(texts), _CHUNK):
        part = texts[start : start + _CHUNK]
        store.batch([put(("said",), str(start + n), {"text": text}) for n, text in enumerate(part)])
    return lambda question: store.search(("said",), query=question, limit=TOP)


def peers(
    texts: Sequence[str], questions: Sequence[str], folder: Path, embedder: StandIn
) -> dict[str, Ask]:
    """Return all that are installed, by name; say of the others that they are not."""
    vectors = np.stack([embedder.vector(text) for text in texts])
    found: dict[str, Ask] = {
        PLAIN: plain_fts5(texts, questions, folder),
        "numpy, brute force": brute_force(vectors, embedder),
    }
    others: dict[str, Callable[..., Ask | None]] = {"chromadb": chroma, "langgraph": langgraph}
    for name, make in others.items():
        peer = make(texts, vectors, embedder)
        if peer is None:
            print(f"  {name}: not installed")
        else:
            found[name] = peer
    return found


PLAIN = "plain FTS5"


def _installed(name: str) -> Any:  # noqa: ANN401 - whatever a peer has in it
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
