"""The judge that asks, with one fault each."""

import re
from dataclasses import replace

import pytest

from perdure.engine.learn import asking
from perdure.engine.learn import judge as rules

Patch = pytest.MonkeyPatch


def asks_about_everything(patch: Patch) -> None:
    compare = rules.compare
    patch.setattr(asking, "compare", lambda *two: replace(compare(*two), only_words=True))


def takes_names_for_words(patch: Patch) -> None:
    patch.setattr(rules, "_names", lambda _: [])


def takes_limits_for_words(patch: Patch) -> None:
    patch.setattr(rules, "_LIMITS", frozenset())


def takes_states_for_words(patch: Patch) -> None:
    patch.setattr(rules, "_GROUPS", [])


def does_not_care_how_much_more_is_said(patch: Patch) -> None:
    patch.setattr(rules, "_MOST_WORDS", 99)


def does_not_care_when(patch: Patch) -> None:
    patch.setattr(rules, "_PAST", re.compile("(?!)"))


def pays_for_anything(patch: Patch) -> None:
    patch.setattr(asking, "WORTH_ASKING", 0.0)


def asks_in_the_order_that_was_given(patch: Patch) -> None:
    patch.setattr(asking, "sorted", list, raising=False)


def shows_statements_as_they_are(patch: Patch) -> None:
    patch.setattr(asking, "line_of", lambda value: str(value["statement"]))


def tells_reasons_as_they_are(patch: Patch) -> None:
    patch.setattr(asking, "visible", lambda text: text)
