"""What each of the four extractors finds by rules."""

import pytest

from perdure.engine.learn.evidence import verified
from perdure.engine.learn.extractors import (
    EXTRACTORS,
    CandidateExtractor,
    EntityEventExtractor,
    PreferenceExtractor,
    ProcedureExtractor,
    ProfileExtractor,
)
from perdure.model import CandidateMemory, RequestContext
from perdure.testing.requirement import requirement

ANA = RequestContext("acme", "ana", session_id="one")


def found(extractor: CandidateExtractor, text: str, name: str = "Ana") -> list[CandidateMemory]:
    messages = [{"role": "user", "content": text, "name": name, "time": "2026-03-02T10:00:00Z"}]
    candidates = extractor.extract(messages, ANA)
    assert verified(candidates, messages) == (candidates, [])
    return candidates


def contents(extractor: CandidateExtractor, text: str) -> list[str]:
    return [each.content for each in found(extractor, text)]


@requirement("003-extract-four-extractors")
def test_there_is_one_for_each_kind_of_memory() -> None:
    kinds = [type(each) for each in EXTRACTORS]

    assert kinds == [
        ProfileExtractor,
        PreferenceExtractor,
        EntityEventExtractor,
        ProcedureExtractor,
    ]


@requirement("003-extract-profile")
@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("I live in Porto, by the way.", "Ana lives in Porto."),
        ("I moved to Bergen.", "Ana now lives in Bergen."),
        ("I moved: I live in Lisbon now.", "Ana lives in Lisbon."),
        ("Well, I work as a nurse.", "Ana works as a nurse."),
        ("I'm vegan.", "Ana is vegan."),
        ("My sister Mia is a nurse.", "Ana's sister Mia is a nurse."),
    ],
)
def test_who_the_user_is(text: str, content: str) -> None:
    (profile,) = found(ProfileExtractor(), text)

    assert (profile.category, profile.slug, profile.content) == ("profile", "", content)


@requirement("003-extract-preference")
def test_what_users_like() -> None:
    (tabs,) = found(PreferenceExtractor(), "I prefer tabs over spaces.")
    (coffee,) = found(PreferenceExtractor(), "I don't like coffee.")

    assert (tabs.content, tabs.slug) == ("Ana prefers tabs over spaces.", "tabs-over-spaces")
    assert (coffee.content, coffee.slug) == ("Ana does not like coffee.", "coffee")


@requirement("003-extract-entity-event")
def test_facts_and_what_happened() -> None:
    extractor = EntityEventExtractor()

    assert contents(extractor, "My dog is called Rex.") == ["Ana's dog is called Rex."]
    assert contents(extractor, "I'm using zsh on this machine.") == [
        "I'm using zsh on this machine."
    ]
    (event,) = found(extractor, "I went to Rome yesterday.")
    assert (event.category, event.content) == ("event", "Ana went to Rome on 2026-03-01.")


@requirement("003-extract-procedure")
def test_rules_decisions_and_commands() -> None:
    extractor = ProcedureExtractor()
    (rule,) = found(extractor, "From now on, never push to main.")
    (decision,) = found(extractor, "Use pnpm instead of npm.")
    (command,) = found(extractor, "To run the tests, use `make test`.")

    assert (rule.category, rule.metadata["kind"], rule.owner_space) == (
        "pattern",
        "rule",
        "user:ana",
    )
    assert (decision.category, decision.metadata["kind"]) == ("pattern", "decision")
    assert (command.category, command.slug, command.owner_space) == (
        "skill",
        "make-test",
        "agent:default",
    )


@pytest.mark.parametrize(
    "text",
    [
        "Should we use pnpm instead of npm?",
        "For now, use pnpm instead of npm.",
        "The log says:\nnever use this port again",
        "```\nnever push to main\n```",
        "Just this once, never mind the linter and push it.",
    ],
)
def test_questions_pastes_and_what_is_for_now_are_not_written(text: str) -> None:
    assert [each for one in EXTRACTORS for each in found(one, text)] == []


def test_what_others_say_of_themselves_is_not_the_profile() -> None:
    assert found(ProfileExtractor(), "I live in Rome.", "Tom")
    messages = [
        {"role": "user", "content": "Hi all.", "name": "Ana"},
        {"role": "user", "content": "I live in Rome.", "name": "Tom"},
    ]

    assert ProfileExtractor().extract(messages, ANA) == []
    (entity,) = EntityEventExtractor().extract(messages, ANA)
    assert entity.content == "Tom lives in Rome."
