"""How long the first question about a moment takes, by how much has changed since."""

import time
from collections.abc import Sequence

from perdure.app import Context
from perdure.artifacts import IndexState
from perdure.context.nodes import Nodes
from perdure.engine.past import Copying
from recalling.corpus import Corpus
from recalling.memories import ACCOUNT, asking_for, unread_outbox

CHANGED = (10, 100, 1_000)
_MOST_BATCH = 250


def first_questions(context: Context, corpus: Corpus, questions: Sequence[str]) -> None:
    """Change more and more notes, and ask each time about the state before: copied, and built."""
    state = IndexState(0, context.recorded.history.position())
    changed = 0
    for count in CHANGED:
        _change(context, corpus, range(changed, count))
        changed = count
        context.memory.recall(questions[0])
        copied, again = _asked(context, questions, state)
        built = _built(context, questions, state)
        print(
            f"  {count:5,} notes since: first {copied * 1e3:7.0f} ms, built {built * 1e3:7.0f} ms "
            f"({built / copied:4.1f}x), second {again * 1e3:5.0f} ms ({copied / again:5.1f}x)",
            flush=True,
        )


def _change(context: Context, corpus: Corpus, numbers: range) -> None:
    """Write notes, many in a commit."""
    made = [corpus.note(f"later{number}").node(ACCOUNT) for number in numbers]
    with unread_outbox() as outbox:
        nodes = Nodes(context.recorded, outbox)
        for start in range(0, len(made), _MOST_BATCH):
            nodes.write_nodes(made[start : start + _MOST_BATCH], asking_for(ACCOUNT))


def _asked(context: Context, questions: Sequence[str], state: IndexState) -> tuple[float, float]:
    """Return the seconds of the first question about a moment, and of the second."""
    _forget(context)
    taken = []
    for question in questions[:2]:
        begun = time.perf_counter()
        context.memory.recall(question, at=state)
        taken.append(time.perf_counter() - begun)
    return taken[0], taken[1]


def _built(context: Context, questions: Sequence[str], state: IndexState) -> float:
    """Return the seconds of the first question if nothing is copied."""
    make, Copying.make = Copying.make, lambda *_: None  # type: ignore[method-assign]
    try:
        return _asked(context, questions, state)[0]
    finally:
        Copying.make = make  # type: ignore[method-assign]


def _forget(context: Context) -> None:
    context.indexes.tenant_data()["past indexes"].delete_account_data(ACCOUNT)
