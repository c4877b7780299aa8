"""Memories for the tests of recall: real storage, a real index, and a quick embedder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perdure.app import Context, open_context
from perdure.engine.memory import Memory
from perdure.index.contract import Embedder
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.model import RequestContext, Role

ANA = RequestContext("local", "ana")
BOB = RequestContext("local", "bob", agent_id="helper")
ADMIN = RequestContext("local", "root", role=Role.ADMIN)
EVE = RequestContext("elsewhere", "ana")

PREFERENCES = {
    "indentation": "Prefers tabs over spaces in every language.",
    "coffee": "Drinks coffee black, never after noon.",
    "travel": "Takes the night train rather than a plane.",
}


@contextmanager
def opened(
    home: Path, *, embedder: Embedder | None = None, semantic: bool = True
) -> Iterator[Context]:
    """Open the memory of a home; with a hashing embedder, unless another or none is asked for."""
    if not semantic:
        embedder = None  # and no model is in that home
    elif embedder is None:
        embedder = HashingEmbedder()
    with open_context({"HOME": str(home), "USER": "ana"}, embedder=embedder) as context:
        yield context


def of(context: Context, request: RequestContext = ANA) -> Memory:
    return context.memory.for_caller(request)


def save_all(memory: Memory) -> None:
    for slug, text in PREFERENCES.items():
        memory.save(text, category="preference", slug=slug)


def uris(memory: Memory, question: str) -> list[str]:
    return [hit.uri for hit in memory.recall(question).hits]
