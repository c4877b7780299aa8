"""Whether a sentence claims something: no question, no supposition, no joke, no hearsay."""

import re
from collections.abc import Iterator, Sequence

from holdfast.engine.extract.prose import Sentence

_WHO = r"(?:i|you|we|they|he|she|it|there|this|that|my|your|the|anyone|somebody|people)"
_INVERTED = (
    r"(?:do|does|did|don't|didn't|am|is|are|was|were|isn't|aren't|can|could|can't"
    r"|should|shouldn't|would"
    r"|wouldn't|will|won't|shall|may|have|has|haven't)"
)
_ASKING = re.compile(
    rf"[\W_]*(?:(?:and|so|but|ok|oh|well|hey|hi|btw|also)\W+){{0,3}}(?:{_INVERTED}\s+{_WHO}\b"
    rf"|(?:what|which|who|whom|whose|when|where|why|how)(?:'s\b|\s+(?:\w+\s+)?{_INVERTED}\b))",
    re.IGNORECASE,
)
_PARTS = re.compile(r"[,;:]\s|\s[-\u2013\u2014]+\s")
_ASKED = re.compile(r"[?\uff1f][\"')\]\u201d\u2019*]{0,3}\s*\Z")
_SUPPOSED = re.compile(
    r"\b(?:if|imagine|suppose|supposing|pretend|assuming|assume|hypothetically|wish"
    r"|unless|as though"
    r"|let's say|in case|whether)\b",
    re.IGNORECASE,
)
_JOKE = re.compile(
    r"\b(?:jk|j/k|just kidding|kidding|joking|just joking|as a joke|sarcasm)\b|(?<!\w)/s\b",
    re.IGNORECASE,
)
_FEW_WORDS = 5
_OPENED = re.compile(
    r"(?:\A|[,;:.!?()*\u2026\u2013\u2014-]\s*|\s[-\u2013\u2014]+\s*|\b(?:and|but|so"
    r"|because|cause|cuz|also"
    r"|btw|by the way|though|although|while|plus|currently|personally|honestly"
    r"|actually|now|then|yes|no"
    r"|well|oh|ok|hi|hey|hello|since|i think|i guess|i suppose|i believe|i feel like"
    r"|is that|fact that"
    r"|you know|know that|these days|nowadays|lately|anyway|right now|yeah|again|today"
    r"|still|finally|maybe|perhaps|probably)\s+)\Z",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"(?P<who>[\w'-]{1,40})\s+(?:\w{1,20}\s+)?(?:says?|said|thinks?|thought|told|tells"
    r"|claims?|believes?|wrote"
    r"|writes|insists?|heard|hears|mentions?|mentioned|jokes?|joked|reckons?|asks?"
    r"|asked|knows?|argues?)"
    r"(?:\s+\w{1,20})?(?:\s*[,:]\s*|\s+(?:that\s+)?)\Z",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|i think|i guess|i suppose|i believe|might"
    r"|kind of|kinda|sort of"
    r"|not sure|more or less|i'd say)\b",
    re.IGNORECASE,
)
_BEFORE = 60
"""How many characters before a statement tell how it is meant."""


def claims(found: Sequence[Sentence]) -> list[Sentence]:
    """Return what is claimed: questions and jokes left out, and what follows an "if"."""
    serious = [
        sentence
        for sentence, following in zip(found, [*found[1:], None], strict=False)
        if not _JOKE.search(sentence.plain) and not (following and _only_a_joke(following))
    ]
    return [claim for sentence in serious for claim in _claimed(sentence)]


def opens(sentence: Sentence, position: int) -> bool:
    """Whether somebody begins to speak for themselves here, and reports nobody else's words."""
    before = sentence.plain[max(0, position - _BEFORE) : position]
    if position > _BEFORE:
        before = f" {before}"
    if not _OPENED.search(before) and before.strip():
        return False
    return not _is_reported(before)


def hedged(sentence: Sentence, begin: int, finish: int) -> bool:
    """Whether the speaker is not sure."""
    return _HEDGE.search(sentence.plain, max(0, begin - _BEFORE // 3), finish) is not None


def is_asked(text: str) -> bool:
    return _ASKING.match(text) is not None


def _is_reported(before: str) -> bool:
    match = _REPORTED.search(before)
    return match is not None and match["who"].lower() not in {"i", "we"}


def _only_a_joke(sentence: Sentence) -> bool:
    return _JOKE.search(sentence.plain) is not None and len(sentence.plain.split()) <= _FEW_WORDS


def _claimed(sentence: Sentence) -> Iterator[Sentence]:
    finish = _question_begins(sentence)
    supposed = _SUPPOSED.search(sentence.plain, 0, finish)
    if supposed:
        finish = supposed.start()
    if sentence.plain[:finish].strip():
        yield sentence.part(0, finish)


def _question_begins(sentence: Sentence) -> int:
    """Return where the question of a sentence begins; its end if it has none."""
    if is_asked(sentence.plain):
        return 0
    if not _ASKED.search(sentence.plain):
        return len(sentence.plain)
    last = 0
    for match in _PARTS.finditer(sentence.plain):
        last = match.end()
    return last if last and is_asked(sentence.plain[last:]) else 0
