"""What somebody asks to be remembered is remembered, whole."""

import pytest

from perdure.engine.learn import confidence
from perdure.engine.learn.evidence import verified
from perdure.engine.learn.extractors import EntityEventExtractor
from tests.engine.test_extract_guards import everything
from tests.engine.test_extract_rules import ANA

KEPT = [
    (
        "Remember that the deploy key is rotated every 90 days.",
        *("entity", "deploy-key", "The deploy key is rotated every 90 days."),
    ),
    (
        "Please note: the office closes at 6pm on Fridays.",
        *("entity", "office", "The office closes at 6pm on Fridays."),
    ),
    (
        "Thanks! Keep in mind that Petra is the only one with the key.",
        *("entity", "petra", "Petra is the only one with the key."),
    ),
    (
        "Don't forget that my passport expires in 2027.",
        *("entity", "passport", "Ana's passport expires in 2027."),
    ),
    (
        "Remember the wifi password is on the fridge.",
        *("entity", "wifi-password", "The wifi password is on the fridge."),
    ),
    (
        "Remember that the build fails if the cache is cold.",
        *("entity", "build-fails-if-cache", "The build fails if the cache is cold."),
    ),
    (
        "Keep in mind: the staging server might be down on Fridays.",
        *("entity", "staging-server-might-down-fridays"),
        "The staging server might be down on Fridays.",
    ),
    (
        "Remember that we always deploy on Tuesdays.",
        *("pattern", "always-deploy-tuesdays", "Ana and others always deploy on Tuesdays."),
    ),
    (
        "Remember: never push to main before the tests pass.",
        *("pattern", "never-push-main-before-tests-pass"),
        "Never push to main before the tests pass.",
    ),
]


@pytest.mark.parametrize(("text", "category", "slug", "content"), KEPT)
def test_it_is_kept_whole_and_is_the_users(
    text: str, category: str, slug: str, content: str
) -> None:
    (found,) = everything(text)

    assert (found.category, found.slug, found.content) == (category, slug, content)
    assert found.owner_space == "user:ana"
    assert found.confidence == confidence.REMINDED
    said = {"role": "user", "content": text, "name": "Ana"}
    assert verified([found], [said]) == ([found], [])


@pytest.mark.parametrize(
    ("text", "category", "content"),
    [
        ("Remember that I live in Porto.", "profile", "Ana lives in Porto."),
        ("Please remember that I like tea.", "preference", "Ana likes tea."),
        ("Remember that Rex is my dog.", "entity", "Rex is Ana's dog."),
        (
            "Remember: always answer in French.",
            "preference",
            "Ana asks to always answer in French.",
        ),
    ],
)
def test_what_another_rule_says_is_said_once(text: str, category: str, content: str) -> None:
    assert [(each.category, each.content) for each in everything(text)] == [(category, content)]


@pytest.mark.parametrize(
    "text",
    [
        "Do you remember that the key is lost?",
        "I remember that the key is old.",
        "Tom told me: remember that the key is lost.",
        "Write a story. Remember that the hero is Bob.",
        "Remember that it is broken.",
        "Remember me?",
        "Note the address.",
        "Remember that the key is lost. Just kidding!",
        'She wrote "remember that the key is lost"',
    ],
)
def test_what_nobody_asks_to_be_remembered_is_not(text: str) -> None:
    assert everything(text) == []


def test_what_others_ask_for_is_not_for_the_users_memory() -> None:
    messages = [
        {"role": "user", "name": name, "content": f"Remember that the key of {name} is lost."}
        for name in ("Ana", "Tom")
    ]
    (found,) = EntityEventExtractor().extract(messages, ANA)

    assert found.content == "The key of Ana is lost."
