"""How well the rules do on labelled conversations that they were not made with."""

from dataclasses import replace
from pathlib import Path

import pytest

from perdure.engine.learn.evidence import verified
from perdure.engine.learn.extractors import (
    EntityEventExtractor,
    PreferenceExtractor,
    ProcedureExtractor,
    ProfileExtractor,
)
from tests.support.extract.scoring import Conversation, Score, conversations, score

FOLDER = Path(__file__).parents[2] / "data" / "conversations"
ALL = conversations(FOLDER)
HELD = [each for each in ALL if each.half == "held"]
EXTRACTORS = (
    ProfileExtractor(),
    PreferenceExtractor(),
    EntityEventExtractor(),
    ProcedureExtractor(),
)
SURE = ("entity", "event", "preference", "profile", "skill", "case")
"""Rules and decisions have other labels here than in memory: events and preferences."""


@pytest.fixture(scope="module")
def held() -> Score:
    return score(EXTRACTORS, HELD)


@pytest.mark.parametrize("category", SURE)
def test_what_is_written_of_conversations_that_were_held_back_is_right(
    held: Score, category: str
) -> None:
    assert held.precision(category) >= 0.8, held.misses


@pytest.mark.parametrize("conversation", ALL, ids=lambda each: each.name)
def test_every_candidate_has_evidence(conversation: Conversation) -> None:
    for extractor in EXTRACTORS:
        found = extractor.extract(conversation.messages, conversation.context)

        assert verified(found, conversation.messages) == (found, [])


# ---------------------------------------------------------------- the score
class Repeating(ProfileExtractor):
    """Finds everything twice."""

    def extract(self, messages, ctx):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
        return [each for found in super().extract(messages, ctx) for each in (found, found)]


def test_who_repeats_or_says_another_category_is_wrong() -> None:
    (given,) = (each for each in ALL if each.name == "tune-changing")
    once, twice = score([ProfileExtractor()], [given]), score([Repeating()], [given])

    assert twice.right == once.right
    assert twice.wrong["profile"] == once.right["profile"]
    other = replace(given, expected=tuple(replace(e, category="event") for e in given.expected))
    assert score([ProfileExtractor()], [other]).right == {}


def test_what_nobody_finds_is_missed() -> None:
    (given,) = (each for each in ALL if each.name == "tune-changing")
    nothing = score([], [given])

    assert nothing.recall() == 0
    assert len(nothing.misses) == len(given.expected)
