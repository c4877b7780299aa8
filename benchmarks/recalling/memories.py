"""Memories to ask, written through the verbs that everybody uses."""

import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from perdure.app import Context, open_context
from perdure.context.nodes import Nodes
from perdure.engine.memory import Memory
from perdure.engine.sessions import Sessions
from perdure.index.contract import Embedder
from perdure.model import ContextNode, RequestContext, Role
from perdure.model.values import JSON
from recalling.corpus import Note, Session

ACCOUNT = "local"
DIMENSION = 384
_BATCH = 250
"""Nodes that are written in one commit."""
Floats = NDArray[np.float32]


class StandIn:
    """Vectors as long as MiniLM's, in no time: each word has a direction, a text is their sum."""

    def __init__(self) -> None:
        generator = np.random.default_rng(5)
        self._directions: Floats = generator.standard_normal((4096, DIMENSION), np.float32)
        self._known: dict[str, int] = {}
        self.spent = 0.0
        """Seconds that it took, all in all."""

    @property
    def parameters(self) -> Mapping[str, JSON]:
        return {"model": "stand-in", "version": 1, "dimension": DIMENSION}

    @property
    def dimension(self) -> int:
        return DIMENSION

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        begun = time.perf_counter()
        made = [self.vector(text).tolist() for text in texts]
        self.spent += time.perf_counter() - begun
        return made

    def vector(self, text: str) -> Floats:
        places = [self._place(word) for word in text.split()] or [0]
        total = self._directions[places].sum(axis=0)
        unit: Floats = total / np.float32(np.linalg.norm(total))
        return unit

    def _place(self, word: str) -> int:
        place = self._known.get(word)
        if place is None:
            place = self._known[word] = zlib.crc32(word.encode()) % len(self._directions)
        return place


def environment(home: Path, *, lexical: bool = False) -> dict[str, str]:
    """Return what a user has set whose home is this folder; with `lexical`, there is no model."""
    if lexical:
        config = home / "config.toml"
        config.write_text('[embedding]\nprovider = "none"\n')
    return {"HOME": str(home), "PERDURE_HOME": str(home), "USER": "ana"}


@contextmanager
def opened(home: Path, embedder: Embedder | None = None) -> Iterator[Context]:
    """Open the memory in a folder; without an embedder, words are all that is compared."""
    environ = environment(home, lexical=embedder is None)
    with open_context(environ, embedder=embedder) as context:
        yield context


@contextmanager
def folder() -> Iterator[Path]:
    """Give a folder on this disk, and take it away."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as home:
        yield Path(home)


class _Gathered:
    """Takes the nodes that a session is kept as, so that those of many are written together."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._found: list[ContextNode] = []

    def because(self, reason: str) -> Self:
        del reason
        return self

    def __getattr__(self, name: str) -> object:
        return getattr(self._nodes, name)

    def write_nodes(self, nodes: Iterable[ContextNode], ctx: RequestContext) -> None:
        self._found += nodes
        if len(self._found) >= _BATCH:
            self.flush(ctx)

    def flush(self, ctx: RequestContext) -> None:
        self._nodes.because("session").write_nodes(self._found, ctx)
        self._found = []


def asking_for(account: str) -> RequestContext:
    return RequestContext(account, "ana", role=Role.ROOT)


def of_account(context: Context, account: str) -> Memory:
    return context.memory.for_caller(asking_for(account))


def write(context: Context, passages: Iterable[Session | Note], account: str = ACCOUNT) -> None:
    """Write the nodes that `commit_session` and `save` would, many in a commit, and index none."""
    gathered = _Gathered(Nodes(context.recorded))
    request = asking_for(account)
    sessions = Sessions(gathered)  # type: ignore[arg-type] # all that it asks nodes for
    for each in passages:
        if isinstance(each, Session):
            sessions.archive(each.messages, each.id, request)
        else:
            gathered.write_nodes([each.node(account)], request)
    gathered.flush(request)
