"""Whether a save takes longer when more is there already."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from perdure.app import Context
from perdure.model import ContextNode, Uri
from saving import texts
from saving.bare import Same
from saving.turns import Taken, in_turns, opened

CATEGORIES = ("preference", "entity", "event", "case", "pattern")
EACH = 1_000
"""So many memories everybody has, if there are several."""
CHUNK = 5
BARE = "the same files and commits"

Place = Callable[[int], str]


def in_one_folder(number: int) -> str:
    return f"ctx://local/users/ana/memories/event/n{number:07}"


def among_many(number: int) -> str:
    """Return where a node is if everybody has a thousand, in several folders; Ana has the first."""
    user = "ana" if number < EACH else f"u{number // EACH}"
    return f"ctx://local/users/{user}/memories/{CATEGORIES[number % 5]}/n{number:07}"


def sampled(place: Place, sizes: Sequence[int], saves: int) -> tuple[dict[int, Taken], Taken]:
    """Return what a save takes in memories of these sizes, in turns; and the same written bare."""
    with ExitStack() as stack:
        writers: dict[str, Callable[[str], object]] = {}
        memories = [stack.enter_context(opened()) for _ in sizes]
        for size, (context, _) in zip(sizes, memories, strict=True):
            begun = time.perf_counter()
            fill(context, place, size)
            print(f"  {size:,} written in {time.perf_counter() - begun:.0f} s", flush=True)
            writers[str(size)] = _saving(context)
        context, home = memories[0]
        bare = Same(home / "bare", a_note(context, home))
        stack.callback(bare.close)
        given = [texts.memory(10**9 + number) for number in range(saves)]
        taken = in_turns({**writers, BARE: bare.write}, given, CHUNK)
    return {size: taken[str(size)] for size in sizes}, taken[BARE]


def fill(context: Context, place: Place, size: int) -> None:
    """Write nodes in commits of a thousand, and index each commit."""
    for begin in range(0, size, EACH):
        batch = [_node(place, number) for number in range(begin, min(begin + EACH, size))]
        owner = batch[0].place.path[1]
        context.nodes.write_nodes(batch, replace(context.request, user_id=owner))
        context.memory.settle()


def _node(place: Place, number: int) -> ContextNode:
    return ContextNode(uri=place(number), content=texts.memory(number))


def _saving(context: Context) -> Callable[[str], object]:
    return lambda text: context.memory.save(text, category="event")


def a_note(context: Context, home: Path) -> Path:
    """Save once more, so that everything is open; return the file of that memory."""
    uri = context.memory.save(texts.memory(10**8), category="event")
    return home / ".perdure/memory" / context.nodes.path_of(Uri.parse(uri))
