"""Whether a sentence claims something: no question, no supposition, no joke, no hearsay."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from perdure.engine.extract.frames import opens_a_frame
from perdure.engine.extract.prose import Sentence
from perdure.engine.extract.retractions import correction, is_serious, takes_back

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
_TAG = re.compile(
    rf"[\W_]*{_INVERTED}\s(?:i|we|he|she|it|they|there|that|this)\W*\Z", re.IGNORECASE
)
_BREAK = re.compile(r"[;:,]\s|\s(?:and|but|so|because)\s|\s[-\u2013\u2014]+\s", re.IGNORECASE)
_NEW_THOUGHT = re.compile(r"(?:[;:]|[,\s](?:so|and|then))\Z", re.IGNORECASE)
_ASKED = re.compile(r"[?\uff1f][\"')\]\u201d\u2019*]{0,3}\s*\Z")
_SUPPOSED = re.compile(
    r"\b(?:if|imagine|suppose|supposing|pretend|assuming|assume|hypothetically|wish"
    r"|unless|as though"
    r"|let's say|in case|whether)\b",
    re.IGNORECASE,
)
_OPENED = re.compile(
    r"(?:\A|[,;:.!?()*\u2026\u2013\u2014-]\s*|\s[-\u2013\u2014]+\s*|\b(?:and|but|so"
    r"|because|cause|cuz|also"
    r"|btw|by the way|though|although|while|plus|currently|personally|honestly"
    r"|actually|now|then|yes|no"
    r"|well|oh|ok|hi|hey|hello|since|i think|i guess|i suppose|i believe|i feel like"
    r"|is that|fact that"
    r"|remember|remember that|note that|in mind|in mind that|forget|forget that|aware that"
    r"|you know|know that|these days|nowadays|lately|anyway|right now|yeah|again|today"
    r"|still|finally|maybe|perhaps|probably)\s+)\Z",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"(?P<who>[\w'-]{1,40})\s+(?:\w{1,20}\s+)?(?:says?|said|thinks?|thought|told|tells"
    r"|claims?|believes?|wrote"
    r"|writes|insists?|heard|hears|mentions?|mentioned|jokes?|joked|reckons?|asks?"
    r"|asked|knows?|argues?|goes|(?:is|was|were|are)\s(?:all\s)?like)"
    r"(?:\s+\w{1,20})?(?:\s*[,:]\s*|\s+(?:that\s+)?)\Z",
    re.IGNORECASE,
)
_ACCORDING = re.compile(r"\baccording\sto\s[^,;:.]{1,40},?\s*\Z", re.IGNORECASE)
_HEDGE = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|i think|i guess|i suppose|i believe|might"
    r"|kind of|kinda|sort of"
    r"|not sure|more or less|i'd say)\b",
    re.IGNORECASE,
)
_BEFORE = 60
"""How many characters before a statement tell how it is meant."""


def meant(found: Sequence[Sentence]) -> list[Sentence]:
    """Return what is meant as it is said: no joke, no play, and not taken back by what follows."""
    played = (at for at, sentence in enumerate(found) if opens_a_frame(sentence.plain))
    own = found[: next(played, len(found))]
    return [
        sentence.part(begin, len(sentence.plain))
        for sentence, following in zip_longest(own, own[1:])
        if is_serious(sentence.plain) and not (following and takes_back(following.plain))
        if (begin := correction(sentence.plain)) is not None
    ]


def claims(serious: Sequence[Sentence]) -> list[Sentence]:
    """Return what is claimed: questions left out, and what hangs on an "if"."""
    return [claim for sentence in serious for claim in _claimed(sentence)]


def opens(sentence: Sentence, position: int) -> bool:
    """Whether somebody begins to speak for themselves here, and reports nobody else's words."""
    before = sentence.plain[max(0, position - _BEFORE) : position]
    if position > _BEFORE:
        before = f" {before}"
    if not _OPENED.search(before) and before.strip():
        return False
    return not _is_reported(before)


def is_reported(sentence: Sentence, position: int) -> bool:
    """Whether somebody else's words begin here."""
    return _is_reported(sentence.plain[max(0, position - _BEFORE) : position])


def hedged(sentence: Sentence, begin: int, finish: int) -> bool:
    """Whether the speaker is not sure."""
    return _HEDGE.search(sentence.plain, max(0, begin - _BEFORE // 3), finish) is not None


def is_asked(text: str) -> bool:
    return _ASKING.match(text) is not None


def _is_reported(before: str) -> bool:
    if _ACCORDING.search(before):
        return True
    match = _REPORTED.search(before)
    return match is not None and match["who"].lower() not in {"i", "we"}


def _claimed(sentence: Sentence) -> Iterator[Sentence]:
    finish = _question_begins(sentence)
    supposed = _SUPPOSED.search(sentence.plain, 0, finish)
    if supposed:
        finish = _before_condition(sentence.plain[: supposed.start()].rstrip())
    if sentence.plain[:finish].strip():
        yield sentence.part(0, finish)


def _before_condition(before: str) -> int:
    """Return where the clause begins that a condition belongs to; it is not claimed without it."""
    if _NEW_THOUGHT.search(before):
        return len(before)
    clause = 0
    for match in _BREAK.finditer(before.rstrip(",:-(\u2013\u2014 ")):
        clause = match.start()
    return clause


def _question_begins(sentence: Sentence) -> int:
    """Return where the question of a sentence begins; its end if it has none."""
    if is_asked(sentence.plain):
        return 0
    if not _ASKED.search(sentence.plain):
        return len(sentence.plain)
    last = 0
    for match in _PARTS.finditer(sentence.plain):
        last = match.end()
    asked = sentence.plain[last:]
    return last if last and is_asked(asked) and not _TAG.match(asked) else 0
