"""Each guard is needed: without it, a memory is made that is false, or the wrong one's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from perdure.engine.learn import candidates, claims, events, findings, persons, prose, reminders
from tests.engine.test_extract_guards import everything

pytestmark = pytest.mark.search


@dataclass(frozen=True, slots=True)
class Guard:
    where: Any
    name: str
    open: Callable[..., object]
    """Stands in for the guard, and lets all pass."""
    text: str
    wrong: str
    """What is made of the text then."""


GUARDS = (
    Guard(persons, "verbatim", lambda _: [], "I live in the US.", "Ana lives in the them."),
    Guard(
        persons,
        "_is_passed_over",
        lambda _: False,
        "I always drink tea.",
        "Ana alwayses drink tea.",
    ),
    Guard(findings, "stands", lambda *_: True, "I like tea, I guess.", "Ana likes tea."),
    Guard(findings, "stands", lambda *_: True, "I like sun, but not in winter.", "Ana likes sun."),
    Guard(
        findings, "is_doubted", lambda _: False, "I probably like tea.", "Ana probably likes tea."
    ),
    Guard(
        claims,
        "opens_a_frame",
        lambda _: False,
        "Pretend with me. I live in Rome.",
        "Ana lives in Rome.",
    ),
    Guard(claims, "takes_back", lambda _: False, "I like jazz. NOT!", "Ana likes jazz."),
    Guard(claims, "correction", lambda _: 0, "I like Mondays (said no one).", "Ana likes Mondays."),
    Guard(claims, "is_serious", lambda _: True, "Oh great, I like tea.", "Ana likes tea."),
    Guard(claims, "_before_condition", len, "I like tea in case it is hot.", "Ana likes tea."),
    Guard(
        prose,
        "others_lines",
        lambda lines, _: [False] * len(lines),
        "Bob: I like whisky",
        "Ana likes whisky.",
    ),
    Guard(
        prose,
        "_is_aside",
        lambda *_: False,
        "I like <b onload=alert(1)>",
        "Ana likes <b onload=alert(1.",
    ),
    Guard(events, "_leans", lambda *_: False, "I quit in 2019.", "Ana quit in 2019."),
    Guard(
        reminders,
        "is_reported",
        lambda *_: False,
        "Tom told me: remember that the key is lost.",
        "The key is lost.",
    ),
)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda each: f"{each.name}-{each.text}")
def test_without_its_guard_a_false_memory_is_made(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert guard.wrong not in [each.content for each in everything(guard.text)]

    monkeypatch.setattr(guard.where, guard.name, guard.open)

    assert guard.wrong in [each.content for each in everything(guard.text)]


def test_without_an_owner_a_rule_reaches_all_users(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Always run `make lint` before you push"
    assert [each.owner_space for each in everything(text)] == ["user:ana"]

    monkeypatch.setattr(findings, "owner_space", lambda _, ctx: f"agent:{ctx.agent_id}")

    assert [each.owner_space for each in everything(text)] == ["agent:default"]


def test_unless_signs_are_spelt_two_languages_share_a_slug(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(candidates, "_spelt", lambda text: text)

    assert [each.slug for each in everything("I like C#. I like C.")] == ["c", "c"]
