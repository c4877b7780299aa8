"""The net: sentences of a session that may be worth keeping, scored by a small linear model.

The net is wide on purpose. An agent, a model or the user decides which of its candidates last;
only those that a rule of `rules` confirms are written without being asked about.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from perdure.dataclass import dataclass
from perdure.engine.learn.prose import Sentence, sentences, user_sentences
from perdure.engine.tables import table
from perdure.model.transcript import Message
from perdure.model.values import shortened, words_key
from perdure.patterns import later

_LONG_MESSAGE = 12
"""Sentences. A message with more is a description of a task rather than a remark."""
_CASED = frozenset({"capitals", "code"})
_CAPITAL = later(r"(?<!\\)[A-Z]")
_KIND_OF = (
    ("rejected", frozenset({"rejected"})),
    ("task", frozenset({"task"})),
    ("rule", frozenset({"widening", "every", "prohibition", "rule_word", "correction"})),
    ("decision", frozenset({"choice", "renaming", "contrast"})),
    ("preference", frozenset({"preference"})),
    ("rule", frozenset({"obligation"})),
    ("command", frozenset({"command"})),
    ("fact", frozenset({"practice", "location", "statement"})),
)


@dataclass(frozen=True, slots=True)
class Candidate:
    sentence: Sentence
    kind: str
    score: float
    """How likely it lasts, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The fitted model: one weight per feature, and the score from which a sentence is kept."""

    bias: float
    features: Mapping[str, float]
    threshold: float
    most: int
    """At most so many candidates of one session."""


def candidates(
    messages: Sequence[Message | Mapping[str, object]], weights: Weights | None = None
) -> list[Candidate]:
    """Return the sentences of a session that may last, in its order."""
    model = weights or fitted()
    once = {each.key: each for each in reversed(user_sentences(messages))}
    found = [_candidate(each, model) for each in once.values()]
    likely = (each for each in found if each.score >= model.threshold)
    best = sorted(likely, key=lambda each: -each.score)[: model.most]
    return sorted(best, key=lambda each: (each.sentence.message, each.sentence.start))


def scored(text: str) -> list[Candidate]:
    return [_candidate(each, fitted()) for each in sentences(text)]


_LONGEST_HINT = 120
"""Characters of the words that are shown; with the rest about 40 tokens."""
LIKELY = 0.21
"""The least score of a sentence that is worth a line; one without any pattern has 0.201."""


def prompt_hint(prompt: str) -> str:
    """Return a line about the sentence of a prompt that most likely lasts; empty if none does.

    The same words give the same line, so that a hook can show it once.
    """
    stated = _compiled("stated").values()

    def worth(each: Candidate) -> float:
        return each.score + any(pattern.search(each.sentence.plain.lower()) for pattern in stated)

    found = [each for each in scored(prompt) if "question" not in matched(each.sentence.plain)]
    best = max(found, key=worth, default=None)
    if best is None or worth(best) < LIKELY or not words_key(best.sentence.text):
        return ""
    words = shortened(" ".join(best.sentence.text.split()).rstrip("."), _LONGEST_HINT)
    return f"possibly lasting: {words}; `mcp__perdure__remember` it if so"


def _candidate(sentence: Sentence, model: Weights) -> Candidate:
    seen = matched(sentence.plain)
    return Candidate(sentence, kind_of(seen), score(features(sentence, seen), model))


def score(given: Mapping[str, float], model: Weights) -> float:
    total = model.bias + sum(model.features.get(name, 0.0) * value for name, value in given.items())
    return 1 / (1 + math.exp(-total))


def kind_of(seen: frozenset[str]) -> str:
    """Return the kind that the patterns of a sentence suggest; an agent may know better."""
    return next((kind for kind, names in _KIND_OF if names & seen), "fact")


def matched(plain: str) -> frozenset[str]:
    small = plain.lower()
    return frozenset(
        name
        for name, pattern in _compiled("patterns").items()
        if pattern.search(plain if name in _CASED else small)
    )


def features(sentence: Sentence, seen: frozenset[str] | None = None) -> dict[str, float]:
    """Return what the model knows of a sentence: its patterns, its length, where it stands."""
    count = len(sentence.plain.split())
    found = dict.fromkeys(matched(sentence.plain) if seen is None else seen, 1.0)
    found["short"] = float(count < 4)  # noqa: PLR2004 - words
    found["long"] = float(count > 30)  # noqa: PLR2004 - words
    found["length"] = math.log(1 + count) / 3
    found["opens session"] = float(sentence.message == 0)
    found["opens message"] = float(sentence.place == 0)
    found["ends message"] = float(sentence.place == sentence.of - 1)
    found["long message"] = min(1.0, sentence.of / _LONG_MESSAGE)
    return found


@cache
def _compiled(section: str) -> dict[str, re.Pattern[str]]:
    listed = table(__file__, "patterns.txt", section)
    # Small letters in both are found in half of the time that IGNORECASE takes.
    return {
        name: re.compile(
            text if name in _CASED else _CAPITAL.sub(lambda found: found[0].lower(), text)
        )
        for name, text in listed.items()
    }


@cache
def fitted() -> Weights:
    """Return the weights of `weights.json`, which says where they come from."""
    found = json.loads(Path(__file__).with_name("weights.json").read_text("utf-8"))
    return Weights(**{name: found[name] for name in Weights.__slots__})
