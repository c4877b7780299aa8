"""Each check of the tools catches a server that breaks what it states."""

import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perdure.context.nodes import Nodes
from perdure.engine.browse import Browser
from perdure.engine.erasure_plan import ForgetReport
from perdure.engine.memory import Memory
from perdure.model import RequestContext, Uri
from perdure.surfaces.mcp import server, tools
from tests.bites import FAILED
from tests.surfaces.mcp.agents import in_process
from tests.surfaces.mcp.checks import CHECKS

pytestmark = pytest.mark.search

Break = Callable[[pytest.MonkeyPatch], None]


def answers_with(patch: pytest.MonkeyPatch, tool: str, **wrong: object) -> None:
    """Let a tool answer as it does, but for some wrong values."""
    real = getattr(tools.Tools, tool)
    patch.setattr(tools.Tools, tool, lambda *given, **more: {**real(*given, **more), **wrong})


def says_that_nothing_destroys(patch: pytest.MonkeyPatch) -> None:
    forget = replace(server.TOOLS["forget"], destroys=False)
    patch.setattr(server, "TOOLS", {**server.TOOLS, "forget": forget})


def writes_when_it_reads(patch: pytest.MonkeyPatch) -> None:
    read = Memory.read

    def touching(self: Memory, uri: str) -> Any:  # noqa: ANN401 - as it is
        node = read(self, uri)
        self._services.nodes.write_node(node.revised(content=f"{node.content}!"), self.caller)
        return read(self, uri)

    patch.setattr(Memory, "read", touching)


def says_nothing_of_tools(patch: pytest.MonkeyPatch) -> None:
    recall = replace(server.TOOLS["recall"], description="A tool.")
    patch.setattr(server, "TOOLS", {**server.TOOLS, "recall": recall})


def takes_any_argument(patch: pytest.MonkeyPatch) -> None:
    checked = server.checked

    def lenient(name: str, given: Any) -> Any:  # noqa: ANN401 - as it is
        return checked(name, {key: given[key] for key in given if key != "unheard_of"})

    patch.setattr(server, "checked", lenient)


def makes_a_new_memory_each_time(patch: pytest.MonkeyPatch) -> None:
    save, count = Memory.save, iter(range(999))

    def renamed(self: Memory, content: str, **more: Any) -> str:  # noqa: ANN401 - as it is
        return save(self, f"{content}{' ' * next(count)}", **more)

    patch.setattr(Memory, "save", renamed)


def always_says_that_it_wrote(patch: pytest.MonkeyPatch) -> None:
    answers_with(patch, "_remember", written=True)


def ignores_the_past(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Memory, "at", lambda self, _: self)


def leaves_the_index_behind(patch: pytest.MonkeyPatch) -> None:
    answers_with(patch, "_recall", hits=[])


def forgets_the_budget_of_json(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tools, "fits", lambda *_: True)


def forgets_the_budget_of_texts(patch: pytest.MonkeyPatch) -> None:
    recall = Memory.recall

    def generous(self: Memory, query: str, **more: Any) -> Any:  # noqa: ANN401 - as it is
        return recall(self, query, **{**more, "budget_tokens": 100_000})

    patch.setattr(Memory, "recall", generous)


def cuts_a_long_text_off(patch: pytest.MonkeyPatch) -> None:
    answers_with(patch, "_read", next_offset=None)


def does_not_say_that_it_is_data(patch: pytest.MonkeyPatch) -> None:
    answers_with(patch, "_read", notice="")


def leaves_the_text_out_of_the_json(patch: pytest.MonkeyPatch) -> None:
    call = tools.Tools.call

    def bare(self: tools.Tools, name: str, arguments: Any) -> Any:  # noqa: ANN401 - as it is
        answer, text = call(self, name, arguments)
        return {**answer, "text": ""}, text

    patch.setattr(tools.Tools, "call", bare)


def says_nothing_of_what_it_replaced(patch: pytest.MonkeyPatch) -> None:
    answers_with(patch, "_remember", replaced={})


def shows_orders_as_they_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        "perdure.engine.node_writes.make_safe",
        lambda text, reported, _: SimpleNamespace(content=text, metadata=reported, notes=()),
    )
    patch.setattr(tools, "presentable", lambda text: text)


def forgets_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Memory, "forget", lambda *_, **__: ForgetReport(archived=("it",)))


def deletes_what_it_should_put_away(patch: pytest.MonkeyPatch) -> None:
    def deleted(self: Memory, uri: str, **_: object) -> ForgetReport:
        return ForgetReport(archived=(self.delete(uri),))

    patch.setattr(Memory, "forget", deleted)


def puts_away_what_it_should_delete(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("perdure.context.nodes.Nodes.delete_node", Nodes.archive_node)


def tells_errors_as_they_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(server, "refusal", lambda error, *_: "".join(traceback.format_exception(error)))


def tells_paths(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(server, "refusal", lambda error, *_: f"{error!r} in /home/ana/x. Fix: none.")


def tells_controls(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(server, "visible", lambda text: f"{text}\x1b")


def reaches_everything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RequestContext, "reaches", lambda *_: True)


def looks_into_other_accounts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RequestContext, "may_see", lambda *_: True)
    patch.setattr(Browser, "place", lambda _, name: Uri.parse(name))


BITES: list[tuple[Break, str]] = [
    (says_that_nothing_destroys, "hints_are_true"),
    (writes_when_it_reads, "hints_are_true"),
    (says_nothing_of_tools, "each_description_says_when_to_use_it"),
    (takes_any_argument, "a_refusal_says_how_to_mend_it"),
    (makes_a_new_memory_each_time, "the_same_twice_is_there_once"),
    (always_says_that_it_wrote, "the_same_twice_is_there_once"),
    (ignores_the_past, "a_correction_is_the_next_version"),
    (leaves_the_text_out_of_the_json, "both_forms_of_an_answer_say_the_same"),
    (says_nothing_of_what_it_replaced, "a_correction_says_what_it_replaced"),
    (leaves_the_index_behind, "recall_knows_what_was_just_remembered"),
    (forgets_the_budget_of_json, "an_answer_stays_within_its_budget"),
    (forgets_the_budget_of_texts, "an_answer_stays_within_its_budget"),
    (cuts_a_long_text_off, "a_long_text_is_read_piece_by_piece"),
    (does_not_say_that_it_is_data, "memories_are_shown_as_data"),
    (shows_orders_as_they_are, "memories_are_shown_as_data"),
    (forgets_nothing, "what_is_forgotten_is_not_found"),
    (deletes_what_it_should_put_away, "what_is_forgotten_is_not_found"),
    (puts_away_what_it_should_delete, "deleting_is_only_done_if_asked_for"),
    (tells_errors_as_they_are, "a_refusal_says_how_to_mend_it"),
    (tells_paths, "a_refusal_says_how_to_mend_it"),
    (tells_controls, "a_refusal_says_how_to_mend_it"),
    (reaches_everything, "other_accounts_are_out_of_reach"),
    (looks_into_other_accounts, "other_accounts_are_out_of_reach"),
]


@pytest.mark.parametrize(
    ("breaks", "check"), BITES, ids=lambda each: getattr(each, "__name__", each)
)
def test_the_check_catches_it(
    breaks: Break, check: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    with in_process(tmp_path) as agent, pytest.raises(FAILED):
        CHECKS[check](agent, "topic")


def test_every_check_catches_a_broken_server() -> None:
    assert {check for _, check in BITES} == set(CHECKS)


@pytest.mark.parametrize("check", CHECKS)
def test_the_check_lets_an_honest_server_pass(check: str, tmp_path: Path) -> None:
    with in_process(tmp_path) as agent:
        CHECKS[check](agent, "topic")
