"""The rules that write without being asked: patterns whose sentences were judged to last."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from perdure.engine.learn.prose import Sentence, user_sentences
from perdure.engine.tables import entries
from perdure.model.transcript import Message

_FEWEST, _MOST = 4, 45
"""Words of a sentence that a rule writes."""
_KINDS = frozenset({"decision", "rule", "fact", "preference"})
_QUESTION = re.compile(
    r"\?[\"')]*\s*$|^(?:why|what|how|where|which|who|did|does|do you|do we|is|are|could|would|"
    r"should|will|was|were|have|has|can you)\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(r"\bcan we (?:move|change|rename|replace|switch)\b", re.IGNORECASE)
_PASSING = re.compile(
    r"\b(?:this time|for now|right now|today|just this once|temporarily|possibly|maybe|perhaps"
    r"|i guess|presumably|i assume|i'm (?:looking|theorizing)|i see|when i|commit message|whoops"
    r"|the latter|the former|go ahead and (?:update|modify|fix)|error|failed|fails)\b"
    r"|^(?:instead of|so that|which|because|or|to use|a review)\b",
    re.IGNORECASE,
)
_DANGLING = re.compile(
    r"(?:they|it|that|these|those|this)\b(?! (?:is (?:not )?an?|project|app|repo)\b)", re.I
)


@dataclass(frozen=True, slots=True)
class Written:
    """What a rule writes: the sentence, the rule's name, and the words to keep."""

    sentence: Sentence
    kind: str
    rule: str
    text: str
    start: int
    """Where the words begin in the message; they may begin a sentence earlier."""


def written(messages: Sequence[Message | Mapping[str, object]]) -> list[Written]:
    """Return what the rules write of a session, in the order in which it was said."""
    found: list[Written] = []
    before: Sentence | None = None
    for sentence in user_sentences(messages):
        lead = before if before is not None and _leads(before, sentence) else None
        before = sentence
        if _DANGLING.match(sentence.text) and lead is None:
            continue  # what it is about is not said
        if fits := rule_for(sentence):
            found.append(_worded(sentence, lead, *fits))
    return found


def rule_for(sentence: Sentence) -> tuple[str, str] | None:
    plain = sentence.plain
    if not _FEWEST <= len(plain.split()) <= _MOST or plain.count("`") or "\u201c" in plain:
        return None
    if _PASSING.search(plain) or (_QUESTION.search(plain) and not _REQUEST.search(plain)):
        return None
    return next(((kind, name) for kind, name, pattern in _rules() if pattern.search(plain)), None)


def _leads(before: Sentence, sentence: Sentence) -> bool:
    return before.message == sentence.message and not before.text.endswith(("?", ":"))


def _worded(sentence: Sentence, lead: Sentence | None, kind: str, rule: str) -> Written:
    """Return a sentence, with the one before it if its subject stands there."""
    if lead is None or not _DANGLING.match(sentence.text):
        return Written(sentence, kind, rule, sentence.text, sentence.start)
    return Written(sentence, kind, rule, f"{lead.text} {sentence.text}", lead.start)


@cache
def _rules() -> list[tuple[str, str, re.Pattern[str]]]:
    path = Path(__file__).with_name("rules.txt")
    return [
        (kind, name, re.compile(text, re.IGNORECASE))
        for kind, name, text in entries(path)
        if kind in _KINDS
    ]
