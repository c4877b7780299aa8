"""Which statements a change ends for sure, and which short sentences are rules."""

import pytest

from perdure.engine.learn.extractors import rule_statements
from perdure.engine.learn.judge import outdates

TO_VITEST, TO_PNPM = "We switched from Jest to Vitest.", "We switched from npm to pnpm."


@pytest.mark.parametrize(
    ("new", "old", "is_certain"),
    [
        (TO_VITEST, "Always use Jest for tests.", True),
        (TO_VITEST, "We use Jest for all unit tests.", True),
        (TO_VITEST, "Use Jest for snapshot tests.", False),
        (TO_PNPM, "Use npm for the legacy app.", False),
        ("We switched from Redis to Postgres.", "Use Redis for tests.", False),
    ],
)
def test_a_change_ends_what_names_only_what_the_tools_are_for(
    new: str,
    old: str,
    is_certain: bool,  # noqa: FBT001 - what is expected
) -> None:
    assert outdates(new, old) is is_certain


@pytest.mark.parametrize(
    ("text", "is_rule"),
    [
        ("Never use moment.js.", True),
        ("Always use pnpm.", True),
        ("Never use it.", False),
        ("Don't use that.", False),
        ("Do not commit.", False),
    ],
)
def test_a_short_rule_is_learned_if_it_names_something(
    text: str,
    is_rule: bool,  # noqa: FBT001 - what is expected
) -> None:
    assert bool(rule_statements([{"role": "user", "content": text}])) is is_rule
