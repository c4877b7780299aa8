"""Six sessions of a real agent: memory does not eat itself, and what was forgotten stays so."""

import json
import re
from collections.abc import Iterable

import pytest

from perdure import INTRODUCTION
from tests.clients.clients import Client, clients
from tests.clients.models import Call, Request

pytestmark = pytest.mark.clients

QUESTION = "Which database did we decide to use for the harbour project?"
_FENCED = re.compile(r"^(`{3,})memory [^\n]*\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
_NOTICE = re.escape(INTRODUCTION[:27])
_MARK = r"\[perdure-(?:begin|end)-\w+\]"
_OURS = re.compile(rf"{_NOTICE}|{_MARK}|memory ctx://")
_BEGINS = re.compile(
    rf"\s*(<[\w-]+>|\w+ hook additional context: )*({_NOTICE}|{_MARK}(</[\w-]+>)*$)"
)
"""How what we say begins or ends, in the wrappers of the agents."""


def briefings_in(request: Request) -> int:
    """Return how many characters of memories a model was shown."""
    return sum(len(found[0]) for text in request.texts for found in _FENCED.finditer(text))


def echo_in(request: Request) -> int:
    """Return how many of them are our own words again."""
    return sum(map(_echo_in_text, request.texts))


def _echo_in_text(text: str) -> int:
    bodies = [found[2] for found in _FENCED.finditer(text)]
    lines = [line for line in _FENCED.sub("", text).splitlines() if not _BEGINS.match(line)]
    return sum(len(each) for each in (*bodies, *lines) if _OURS.search(each))


def words_in(requests: Iterable[Request], word: str) -> int:
    return sum(each.text.lower().count(word) for each in requests)


def report(client: Client, what: str, figures: object) -> None:
    """Leave the figures of this run where the report of the night finds them."""
    print(f"{client.kind.name}: {what} in each session: {json.dumps(figures)}")  # noqa: T201


@clients()
def test_memory_never_recalls_what_it_injected(client: Client) -> None:
    client.run("We decided to use PostgreSQL for the harbour project.", "Noted.")
    asked = Call("recall", {"query": QUESTION})
    output = [client.run(QUESTION, asked, "PostgreSQL.").model.turns for _ in range(5)]
    figures = [(max(map(echo_in, each)), max(map(briefings_in, each))) for each in output]
    report(client, "echo, of all that was told", figures)

    assert [echo for echo, _ in figures] == [0] * 5


@clients()
def test_what_the_user_forgot_is_in_no_later_request(client: Client) -> None:
    named = {"category": "health", "slug": "allergy"}
    stored = Call("remember", {"text": "Ana is allergic to penicillin.", **named})
    client.run("Please remember that Ana is allergic to penicillin.", stored, "I will.")
    gone = Call("forget", {"uri": "health/allergy", "reason": "Ana asked"})
    client.run("Please forget what I said about the medicine.", gone, "It is forgotten.")
    asked = Call("recall", {"query": "medicine that Ana is allergic to"})
    later = [
        client.run("Which medicine is Ana allergic to?", asked, "I do not know.").model.requests
        for _ in range(4)
    ]
    figures = [words_in(each, "penicillin") for each in later]
    report(client, "forgotten words", figures)

    assert figures == [0] * 4
