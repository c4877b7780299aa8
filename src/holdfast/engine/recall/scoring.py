"""The parts of a score. Each looks at all candidates and gives some of them something."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from holdfast.engine.recall.candidates import Candidate, Candidates
from holdfast.engine.recall.config import RetrievalConfig
from holdfast.engine.recall.planning import Plan
from holdfast.engine.recall.times import Span
from holdfast.model import ContextType, Uri

_DAY = timedelta(days=1)


def nearness(cosine: float, config: RetrievalConfig) -> float:
    """Return how near two texts are, from 0 for any two to 1 for two that say the same."""
    span = config.cosine_one - config.cosine_floor
    return min(1.0, max(0.0, (cosine - config.cosine_floor) / span))


def trust(best: float, held: int, plan: Plan, ceiling: float, config: RetrievalConfig) -> float:
    """Return how far the words of a question can be trusted to find what it asks for, 0 to 1.

    That is told by the best match: how much it has of all that a passage could have, and whether
    it has more than one word of several.
    """
    covered = best / ceiling if ceiling else 0.0
    if held <= 1 < len(plan.words):
        covered *= config.one_word
    span = config.cover_most - config.cover_least
    return min(1.0, max(0.0, (covered - config.cover_least) / span))


def by_relevance(found: Candidates, trusted: float, config: RetrievalConfig) -> float:
    """Score what candidates say themselves; return the best match by words, which counts 1.

    An arm that is weak leaves the word to the other, and both together never count more than 1.
    """
    best = max((candidate.words for candidate in found), default=0.0) or 1.0
    weight = config.vector + (1 - config.vector) * (1 - trusted)
    for candidate in found:
        words = trusted * candidate.words / best
        candidate.parts["words"] = words
        if candidate.cosine is not None:
            candidate.parts["meaning"] = (1 - words) * weight * nearness(candidate.cosine, config)
    return best


def lent(candidate: Candidate, config: RetrievalConfig) -> float:
    """Return how much of its relevance a message lends to those beside it."""
    own = candidate.parts.get("words", 0.0) + candidate.parts.get("meaning", 0.0)
    return own * min(1.0, config.short / candidate.length)


def by_neighbours(found: Candidates, config: RetrievalConfig) -> None:
    """Let a message borrow from those around it: an answer stands after its question."""
    by_key = {candidate.key: candidate for candidate in found}
    for candidate in found:
        node, number = candidate.key
        borrowed = 0.0
        for at, share in ((-1, config.before), (1, config.after), (-2, config.second_before)):
            beside = by_key.get((node, number + at))
            if beside is not None:
                asked = at == -1 and beside.asks
                borrowed += (config.answer if asked else share) * lent(beside, config)
        if borrowed:
            takes = min(1.0, config.short / candidate.length)
            candidate.parts["neighbours"] = takes * borrowed


def by_whole(
    found: Candidates, wholes: Mapping[str, float], unit: float, config: RetrievalConfig
) -> None:
    """Score candidates by all that their node says; a note of one passage is its own whole.

    `unit` is what counts 1.
    """
    own: dict[str, float] = defaultdict(float)
    for candidate in found:
        own[candidate.hit.uri] = max(own[candidate.hit.uri], candidate.words)
    for candidate in found:
        whole = wholes.get(candidate.hit.uri, 0.0) or own[candidate.hit.uri]
        if whole:
            candidate.parts["whole"] = config.whole * whole / unit


def by_date(found: Candidates, plan: Plan, config: RetrievalConfig) -> None:
    """Score candidates that are from a time that the question names."""
    for candidate in found:
        date = candidate.date
        if date is not None and plan.times:
            fit = max(_fits(date, span, config) for span in plan.times)
            if fit > _LEAST:
                candidate.parts["date"] = config.date * fit


_LEAST = 0.001


def _fits(date: datetime, span: Span, config: RetrievalConfig) -> float:
    """Return how well a date fits: 1 within, less the farther away, little if the time is vague."""
    start, end = _in_the_year_of(date, span) if span.recurring else (span.start, span.end)
    if start is None or end is None:
        within = (start is None or date >= start) and (end is None or date < end)
        return config.vague if within else 0.0
    gap = max((start - date) / _DAY, (date - end) / _DAY, 0.0)
    days = (end - start) / _DAY
    if days > config.vague_days:
        return config.vague if gap == 0 else 0.0
    if days > config.exact_days:
        return 1.0 if gap == 0 else 0.0
    return math.exp(-gap / config.near_days)


def _in_the_year_of(date: datetime, span: Span) -> tuple[datetime | None, datetime | None]:
    """Return a span that comes every year as it was in the year of a date."""
    if span.start is None or span.end is None:
        return span.start, span.end
    try:
        start = span.start.replace(year=date.year)
        return start, start + (span.end - span.start)
    except (ValueError, OverflowError):  # the 29th of February, the last year that there is
        return span.start, span.end


def by_speaker(found: Candidates, plan: Plan, config: RetrievalConfig) -> None:
    """Score what is said by somebody whom the question names, and where they take part."""
    speakers = {name for candidate in found for name in candidate.party}
    named = {name for name in speakers if _names(plan.question, name)}
    if not named:
        return
    most = max(len(named.intersection(candidate.party)) for candidate in found) or 1
    for candidate in found:
        if candidate.told("speaker") in named:
            candidate.parts["speaker"] = config.speaker
        if there := len(named.intersection(candidate.party)):
            candidate.parts["party"] = config.party * there / most


def _names(question: str, name: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", question, re.IGNORECASE))


def by_role(found: Candidates, plan: Plan, config: RetrievalConfig) -> None:
    """Take from an assistant's long answers, unless the question speaks to it.

    An assistant that has a name is one of those who talk.
    """
    if plan.to_assistant:
        return
    for candidate in found:
        if candidate.told("role") == "assistant" == candidate.told("speaker"):
            candidate.parts["role"] = -config.assistant


def by_kind(found: Candidates, plan: Plan, config: RetrievalConfig) -> None:
    for candidate in found:
        if plan.types and ContextType.of(Uri.parse(candidate.hit.uri)) in plan.types:
            candidate.parts["kind"] = config.kind


def by_phrase(found: Candidates, plan: Plan, config: RetrievalConfig) -> None:
    """Score passages that say all that the question quotes, to the letter."""
    phrases = [phrase.casefold() for phrase in plan.phrases]
    for candidate in found:
        if phrases and all(phrase in candidate.hit.text.casefold() for phrase in phrases):
            candidate.parts["phrase"] = config.phrase


def by_hotness(found: Candidates, config: RetrievalConfig) -> None:
    """Give the newest note a little, and the others less the older they are.

    A message is as old as the conversation that it was part of, and no worse for it.
    """
    notes = [candidate for candidate in found if not candidate.told("role")]
    dates = {candidate.key: candidate.date for candidate in notes}
    newest = max((date for date in dates.values() if date is not None), default=None)
    for candidate in notes:
        date = dates[candidate.key]
        if newest is not None and date is not None:
            halvings = (newest - date) / _DAY / config.half_life_days
            candidate.parts["hotness"] = config.hotness * 0.5**halvings


_RELEVANT = ("words", "meaning", "neighbours", "relation", "parent")
"""The parts without which a passage has nothing to do with a question."""


def ranked(found: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates, best first; the same texts are kept once, the best of them."""
    seen: set[tuple[str, str]] = set()
    best: list[Candidate] = []
    relevant = (each for each in found if any(each.parts.get(name) for name in _RELEVANT))
    for candidate in sorted(relevant, key=lambda each: (-each.score, each.hit.id)):
        said = (candidate.told("speaker"), " ".join(candidate.hit.text.split()))
        if said not in seen:
            seen.add(said)
            best.append(candidate)
    return best
