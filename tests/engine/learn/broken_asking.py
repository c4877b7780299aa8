"""The judge that asks, with one fault each."""

from dataclasses import replace

import pytest

from perdure.engine.learn import asking
from perdure.engine.learn import judge as rules

Patch = pytest.MonkeyPatch


def asks_about_everything(patch: Patch) -> None:
    compare = rules.compare
    patch.setattr(asking, "compare", lambda *two: replace(compare(*two), only_words=True))


def takes_names_for_words(patch: Patch) -> None:
    patch.setattr(comparing, "is_fixed", lambda _: False)


def takes_limits_for_words(patch: Patch) -> None:
    patch.setattr(comparing, "_LIMITS", frozenset())


def takes_states_for_words(patch: Patch) -> None:
    patch.setattr(comparing, "EXCLUSIVE", {})


def does_not_care_who_is_first(patch: Patch) -> None:
    patch.setattr(comparing, "_is_swapped", lambda _: False)


def does_not_care_how_much_more_is_said(patch: Patch) -> None:
    patch.setattr(comparing, "_MOST", 99)


def does_not_care_when(patch: Patch) -> None:
    patch.setattr(comparing, "unlike", lambda _: None)


def pays_for_anything(patch: Patch) -> None:
    patch.setattr(asking, "WORTH_ASKING", 0.0)


def asks_in_the_order_that_was_given(patch: Patch) -> None:
    patch.setattr(asking, "sorted", list, raising=False)


def shows_statements_as_they_are(patch: Patch) -> None:
    patch.setattr(asking, "line_of", lambda value: str(value["statement"]))


def tells_reasons_as_they_are(patch: Patch) -> None:
    patch.setattr(asking, "visible", lambda text: text)
