"""Each test of editing catches an editor that breaks what it states."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from perdure import toml
from perdure.agents import entries, jsonc
from perdure.errors import InvalidValueError
from tests.bites import FAILED
from tests.surfaces.install import test_editing as tests

pytestmark = pytest.mark.search

THEIRS = {"model": "é", "hooks": {"Stop": [{"hooks": [{"command": "say"}]}]}, "last": [1]}
Break = Callable[[pytest.MonkeyPatch], None]
SHOWN = (*(FAILED if isinstance(FAILED, tuple) else (FAILED,)), InvalidValueError, ValueError)


def rewrites_everything(patch: pytest.MonkeyPatch) -> None:
    added = jsonc._added

    def rewritten(text: str, *more: Any) -> str:  # noqa: ANN401 - as it is
        return json.dumps(json.loads(added(text, *more)), indent=2)

    patch.setattr(jsonc, "_added", rewritten)


def adds_each_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(entries, "_our_positions", lambda _: [])


def leaves_a_comma(patch: pytest.MonkeyPatch) -> None:
    def left(text: str, container: Any, number: int) -> str:  # noqa: ANN401 - as it is
        gone = container.elements[number]
        return text[: gone.start] + text[gone.end :]

    patch.setattr(jsonc, "_without_one", left)


def leaves_what_it_created(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(entries, "_without_empty", lambda text, _: text)


def ends_lines_its_own_way(patch: pytest.MonkeyPatch) -> None:
    of = jsonc.JsonStyle.of
    patch.setattr(
        jsonc.JsonStyle,
        "of",
        classmethod(lambda cls, text: jsonc.JsonStyle("\n", of(text).unit, of(text).is_one_line)),
    )


def indents_its_own_way(patch: pytest.MonkeyPatch) -> None:
    of = jsonc.JsonStyle.of
    patch.setattr(
        jsonc.JsonStyle,
        "of",
        classmethod(lambda cls, text: jsonc.JsonStyle(of(text).newline, " ", of(text).is_one_line)),
    )


def takes_away_comments(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(jsonc, "_ENDS_IN_COMMENT", jsonc.re.compile("never"))  # type: ignore[attr-defined] # it is imported there


def takes_any_server_for_its_own(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(entries, "is_our_server", lambda entry: entry is not None)


def takes_only_its_own_words_for_its_own(patch: pytest.MonkeyPatch) -> None:
    ours = {"type": "stdio", "command": "/opt/bin/perdure", "args": ["mcp"]}
    patch.setattr(entries, "is_our_server", lambda entry: entry == ours)


def removes_the_hooks_of_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(entries, "is_our_hook", lambda entry: "perdure" in str(entry))


def trusts_what_it_wrote(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(toml, "_checked", lambda _, document, *__: document.as_string())


def accepts_anything(patch: pytest.MonkeyPatch) -> None:
    for kind in (entries.JsonFile, entries.TomlFile):
        patch.setattr(kind, "add", lambda _, text: entries.EditedText(text))


def in_and_out() -> None:
    for wanted in (tests.SETTINGS, tests.SERVERS):
        for indent in (None, "\t"):
            tests.check_in_and_out(THEIRS, indent, wanted, "\n")


def each(text: str) -> Callable[[], None]:
    return lambda: tests.test_what_is_no_config_is_refused(text)


BITES: list[tuple[Break, Callable[[], None]]] = [
    (rewrites_everything, in_and_out),
    (leaves_a_comma, in_and_out),
    (leaves_what_it_created, in_and_out),
    (adds_each_time, in_and_out),
    (ends_lines_its_own_way, lambda: tests.check_ends_of_lines(THEIRS, 2, tests.SETTINGS)),
    (indents_its_own_way, tests.test_what_is_added_is_laid_out_as_the_rest),
    (takes_away_comments, lambda: tests.test_comments_and_trailing_commas_stay(tests.SERVERS)),
    (takes_any_server_for_its_own, tests.test_a_name_that_is_taken_is_left_to_its_owner),
    (takes_only_its_own_words_for_its_own, tests.test_an_entry_that_its_owner_adapted_stays_so),
    (
        removes_the_hooks_of_others,
        tests.test_a_hook_that_others_stand_beside_is_taken_out_alone,
    ),
    (
        trusts_what_it_wrote,
        lambda: tests.test_a_toml_that_can_not_be_changed_is_refused("mcp_servers = {}\n"),
    ),
    (accepts_anything, each("{")),
]


@pytest.mark.parametrize(("breaks", "test"), BITES, ids=[breaks.__name__ for breaks, _ in BITES])
def test_the_test_catches_it(
    breaks: Break, test: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    with pytest.raises(SHOWN):
        test()
