"""The demo says so if what it shows is broken: in the commands that it types, and in what it saves.

Each step of its own is run on a memory that was saved before, with a part of Perdure broken in
every process that it starts.
"""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from perdure.engine.memory import Memory
from perdure.engine.merge.joining import Joining, Judged
from perdure.engine.recall.result import RecallResult
from perdure.errors import NotShownError
from perdure.surfaces.demo import refusing
from perdure.surfaces.demo.changing import show_contradiction, show_edit, show_unmerging
from perdure.surfaces.demo.finding import show_recall, show_rewinding
from perdure.surfaces.demo.proving import show_rebuilding, show_verifying
from perdure.surfaces.demo.saving import show_saving
from perdure.surfaces.demo.stage import Stage
from perdure.surfaces.demo.talks import made_up_key

pytestmark = pytest.mark.search

Show = Callable[[Stage], None]


def saved_in(folder: Path) -> Stage:
    stage = Stage(folder, lambda _: None, made_up_key(), has_model=False)
    show_saving(stage)
    return stage


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return saved_in(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="module")
def misled(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Return what is saved by somebody who sees neither contradictions nor secrets."""
    judged = Joining.judged

    def agreeing(self: Joining, *given: object) -> Judged:
        return dataclasses.replace(judged(self, *given), against=())  # type: ignore[arg-type] # as it was called

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Joining, "judged", agreeing)
        patch.setattr("perdure.engine.masking.masked", lambda text: (text, []))
        return saved_in(tmp_path_factory.mktemp("misled"))


WITHOUT_BUDGET = """
    from perdure.engine import memory
    recall = memory.Memory.recall
    def generous(self, query, *, budget_tokens=None, **more):
        many = None if budget_tokens is None else 100_000
        return recall(self, query, budget_tokens=many, **more)
    memory.Memory.recall = generous
"""
CITING_ANOTHER = """
    from perdure.engine.recall import result
    init = result.Hit.__init__
    def shifted(self, *, message_indexes=(), **more):
        init(self, message_indexes=tuple(each + 1 for each in message_indexes), **more)
    result.Hit.__init__ = shifted
"""
WITHOUT_PAST = """
    from perdure.surfaces import asking
    asking.state_at = lambda history, when: history.store.current()
"""
WITHOUT_VALIDITY = """
    from perdure.engine import memory
    recall = memory.Memory.recall
    def timeless(self, query, *, valid_at=None, **more):
        return recall(self, query, **more)
    memory.Memory.recall = timeless
"""
WITHOUT_SWEEP = """
    from perdure.storage import sweep
    sweep.sweep = lambda recorded, *given, **more: []
"""
WITHOUT_UNMERGING = """
    from perdure.engine import memory
    from perdure.engine.unmerging import Unmerged
    memory.Memory.unmerge = lambda self, uri, statement="": Unmerged(uri, uri)
"""
SEEING_NO_DAMAGE = """
    from perdure.artifacts import verify
    verify.Report.ok = property(lambda self: True)
"""
INDEXING_HALF = """
    from perdure.index import passages
    cut = passages.cut
    passages.cut = lambda text, first_line=1: cut(text[: len(text) // 2], first_line)
"""
SEEING_NO_SECRETS = """
    from perdure.engine.validate import secrets
    secrets.secrets_in = lambda text: []
"""
SEEING_NO_ORDERS = """
    from perdure.engine.validate import instructions
    instructions.instructions_in = lambda text: []
"""
REACHING_ALL = """
    from perdure.model.request import RequestContext
    RequestContext.reaches = lambda self, owner_space: True
"""
LAST_WRITER_WINS = """
    from perdure.surfaces.nodes import writing
    import click
    take = click.Command.make_context
    def careless(self, name, args, **more):
        given = [word for word in args if word != "--version" and word != "1"]
        return take(self, name, [*given, "--replace"] if name == "write" else args, **more)
    click.Command.make_context = careless
"""
BROKEN: dict[str, tuple[Show, str, str]] = {
    "a budget that is ignored": (show_recall, WITHOUT_BUDGET, "at most 400 tokens"),
    "another message cited": (show_recall, CITING_ANOTHER, "cites the message that says it"),
    "the present for the past": (show_rewinding, WITHOUT_PAST, "'in SQLite.'"),
    "what holds for what held": (
        show_rewinding,
        WITHOUT_VALIDITY,
        "--valid-at .* 'Mara lives in Kiel.'",
    ),
    "a merge that stays": (show_unmerging, WITHOUT_UNMERGING, "says again what was superseded"),
    "damage that is not seen": (show_verifying, SEEING_NO_DAMAGE, "ended with 0, not with 1"),
    "half an index": (show_rebuilding, INDEXING_HALF, "the same answers, byte for byte"),
    "a late write": (refusing._show_late_write, LAST_WRITER_WINS, "ended with 0, not with 1"),
    "a secret taken": (refusing._show_secret, SEEING_NO_SECRETS, "ended with 0, not with 1"),
    "an order unmarked": (refusing._show_order, SEEING_NO_ORDERS, "is marked as quoted"),
    "somebody else's": (refusing._show_tenants, REACHING_ALL, "ended with 0, not with 1"),
    "an edit not seen": (show_edit, WITHOUT_SWEEP, "recorded 1 edit"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_step_whose_commands_are_broken_says_so(
    name: str, stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show, sabotage, told = BROKEN[name]
    (tmp_path / "sitecustomize.py").write_text(dedent(sabotage))
    paths = (str(tmp_path), os.environ.get("PYTHONPATH"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))

    with pytest.raises(NotShownError, match=told):
        show(stage)


def test_what_superseded_nothing_shows_no_contradiction(misled: Stage) -> None:
    with pytest.raises(NotShownError, match="Tuesday"):
        show_contradiction(misled)


def test_a_secret_that_was_kept_is_seen(misled: Stage) -> None:
    with pytest.raises(NotShownError, match=r"says 'api_key=\[secret: '"):
        refusing._show_secret(misled)


def test_an_answer_that_differs_in_the_last_digit_is_another(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    recall, times = Memory.recall, iter(range(1000))

    def drifting(self: Memory, query: str, **more: object) -> RecallResult:
        result = recall(self, query, **more)  # type: ignore[arg-type] # as it was called
        drift = next(times) * 1e-12
        hits = tuple(dataclasses.replace(hit, score=hit.score + drift) for hit in result.hits)
        return dataclasses.replace(result, hits=hits)

    monkeypatch.setattr(Memory, "recall", drifting)

    with pytest.raises(NotShownError, match="the same answers, byte for byte"):
        show_rebuilding(stage)
