"""A memory that is too large to be embedded inline, and helpers that change its model."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import copytree

from perdure.app import Context
from perdure.engine.indexing import index_worker
from perdure.engine.indexing.follower import IndexUpdate
from perdure.engine.indexing.index_worker import Worker
from perdure.index.hashing_embedder import HashingEmbedder
from perdure.model import ContextNode
from tests.engine.remembering import ANA, opened

FOLDER = "ctx://local/users/ana/memories/preference"
MANY = 210
BY_MEANING = "photosynthetic"
"""A question that is similar to its answer, but shares no stem with it."""
ANSWER = "Photosynthesis."
OLD, NEW = 256, 512
"""Dimensions, by which two hashing embedders differ."""


class Counting(HashingEmbedder):
    """Counts the texts that it embeds, and fails on request."""

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.asked: Counter[str] = Counter()
        self.fails: Callable[[Sequence[str]], Exception | None] = lambda _: None

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        if error := self.fails(texts):
            raise error
        self.asked.update(texts)
        return super().embed_texts(texts)


def write(context: Context, **contents: str) -> None:
    nodes = [ContextNode(uri=f"{FOLDER}/{slug}", content=text) for slug, text in contents.items()]
    context.nodes.write_nodes(nodes, ANA)


def rewrite(context: Context, slug: str, content: str) -> None:
    node = context.nodes.read_node(f"{FOLDER}/{slug}", ANA)
    context.nodes.write_node(node.revised(content=content), ANA)


def have_many(home: Path) -> None:
    """Have a memory of more than 200 places, with an index of the old embedder."""
    with opened(home, embedder=HashingEmbedder(OLD)) as context:
        write(
            context,
            **{f"n{number}": f"Number {number} is about a thing." for number in range(MANY)},
        )
        write(context, leaf=ANSWER)
        context.indexes.configured.follower.rebuild("local")
        context.outbox.delete_account_data("local")  # all is done


def have_a_copy(home: Path, many: Path) -> None:
    """Have what another home has, which is quicker than to make it again."""
    copytree(many, home, symlinks=True, dirs_exist_ok=True)


def embedded_by(context: Context) -> int:
    """Return how many vectors the embedder of a memory had to make."""
    assert context.indexes.memo is not None
    return context.indexes.memo.embedded_count


def go_on(
    context: Context, goes_on: Callable[[], bool] = lambda: True, account: str = "local"
) -> IndexUpdate | None:
    """Do what `perdure worker` does for an index that is not built yet."""

    def answering() -> Worker | None:
        present = context.indexes.current(account)
        return Worker(context.outbox, present.follower) if present.is_interim else None

    wanted = context.indexes.configured.follower
    return index_worker.build_in_background(wanted, account, answering, goes_on, lambda _: None)


def after(steps: int, action: Callable[[], object] = lambda: None) -> Callable[[], bool]:
    """Continue for some steps; then call something, and stop."""
    seen = Counter[str]()

    def goes_on() -> bool:
        seen["step"] += 1
        if seen["step"] == steps:
            action()
        return seen["step"] < steps

    return goes_on


def at_step(step: int, action: Callable[[], object]) -> Callable[[], bool]:
    """Call something after a step, and continue to the end."""
    seen = Counter[str]()

    def goes_on() -> bool:
        seen["step"] += 1
        if seen["step"] == step:
            action()
        return True

    return goes_on
