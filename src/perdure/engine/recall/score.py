"""The score of a candidate: its weights, and a function for each of its terms.

Each function looks at all candidates and adds its term to some of them. Last comes validity: what
holds first, and a superseded hit after its successors.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from perdure.dataclass import dataclass, replace
from perdure.engine.recall.question import ParsedQuestion
from perdure.engine.recall.result import Hit, TraceStep
from perdure.errors import DamageError
from perdure.index.rows import LazyPayload
from perdure.model import SeedHit
from perdure.model.values import JSON

if TYPE_CHECKING:
    from perdure.engine.recall.periods import TimeSpan

_SHORT = 35
"""Longer messages, in words, lend and borrow less."""


@dataclass(frozen=True, slots=True)
class RetrievalConfig:
    """The weights of the score.

    A score is the sum of its terms, each in units of the best match by words. The weights were
    chosen on conversations between people and with assistants; docs/reference/recall.md lists what
    each one gains.
    """

    candidates: int = 150
    """Passages that each search returns."""

    vector: float = 0.2
    """The weight of similar meaning where words can be trusted; where they can't, it is 1."""
    cosine_floor: float = 0.2
    """The cosine of two unrelated texts."""
    cosine_one: float = 0.8
    """The cosine of two texts that say the same."""
    cover_least: float = 0.35
    """Below this share of the question's words, by rarity, the best match is not trusted."""
    cover_most: float = 0.55
    """Above this share it is fully trusted."""
    least_trust: float = 0.005
    """The least weight of words."""
    cover_of_note: float = 0.3
    """The larger share that a note needs: people answer in the words of the question."""
    one_word: float = 0.5
    """The factor for a match of only one of several words."""

    answer: float = 0.8
    """The share that a message borrows from the previous one, if that ends with a question."""
    before: float = 0.1
    """The share that it borrows if the previous one does not."""
    after: float = 0.3
    """The share that it borrows from the next one."""
    second_before: float = 0.15
    """The share that it borrows from the last but one."""
    lenders: int = 50
    """How many of the best candidates lend to their neighbours."""

    whole: float = 0.75
    """The weight of the match of the whole node or session."""
    date: float = 0.8
    """The gain of a passage from a time that the question names."""
    exact_days: int = 10
    """A longer time, such as a month, either matches or does not."""
    near_days: float = 4.0
    """A shorter time that is missed by this many days counts about a third."""
    vague_days: int = 100
    """A longer time is vague, and counts `vague`."""
    vague: float = 0.3
    speaker: float = 0.2
    """The gain of a message by a speaker whom the question names."""
    party: float = 0.4
    """The gain of a message in a session where that speaker takes part."""
    assistant: float = 0.5
    """The loss of an assistant's message, unless the question addresses the assistant."""

    relation: float = 0.1
    """The share of its score that a node lends to related nodes."""
    related: int = 5
    """How many of the best nodes lend to related ones."""
    hotness: float = 0.02
    """The gain of the newest memory."""
    half_life_days: float = 30.0
    """The age, from the newest, at which that gain is half."""
    parent: float = 0.01
    """The gain of a passage if the summary of its node or folder is as near as possible."""
    expanded: int = 3
    """How many nodes and folders with near summaries are opened."""
    children: int = 5
    """How many passages are taken from each of them."""
    lapsed: float = 0.5
    """The share of its score that the first hit which does not hold retains; each further one
    retains this share of the previous share."""
    former: float = 0.3
    """The gain of a former statement if the question is about another time than now."""
    project: float = 0.3
    """The gain of a memory of the project of the question."""
    person: float = 0.15
    """The gain of a memory of the person, in a project."""
    candidates_in_project: int = 400
    """As `candidates`, in a project, where a task is long and shares words with many passages."""
    lenders_in_project: int = 200
    """As `lenders`, in a project."""
    agent: float = 0.45
    """The share that an agent's message retains in a project: most report its progress."""
    lasting: float = 0.4
    """The gain, in a project, of a message that certainly states something lasting."""


CONFIG = RetrievalConfig()

Key = tuple[str, int]
"""A session and the number of a message, or a node and the number of a passage."""


class PassageFacts(NamedTuple):
    """The fields of a payload that the score uses."""

    key: Key | None
    """The message; None for a passage of a note."""
    passage: int
    speaker: str
    role: str
    party: tuple[str, ...]
    """The speakers of its session."""
    short: float
    """The share that a message lends and borrows: 1, or less if it is long."""
    asks: bool
    """Whether the message ends with a question."""
    near: tuple[int, ...]
    """The numbers of the records at which the neighbouring messages begin."""
    date: datetime | None
    lines: tuple[int, int] | None
    cid: JSON
    project: JSON
    lasting: float | None


def _facts(payload: Mapping[str, JSON]) -> PassageFacts:
    try:
        get = dict(payload.items()).get
        message, passage, date, lasting = map(get, ("message", "passage", "date", "lasting"))
        near, length = get("near") or (), max(1, int(get("length") or 1))  # type: ignore[arg-type] # as it was put
        return PassageFacts(
            key=(f"{get('session_id')}#", message) if isinstance(message, int) else None,
            passage=passage if isinstance(passage, int) else 0,
            speaker=str(get("speaker") or ""),
            role=str(get("role") or ""),
            party=tuple(get("party") or ()),  # type: ignore[arg-type] # of texts, as it was put
            short=min(1.0, _SHORT / length),
            asks=get("asks") is True,
            near=tuple(number for number in near if number >= 0),  # type: ignore[misc,union-attr,operator] # as before
            date=datetime.fromisoformat(date) if isinstance(date, str) else None,
            lines=_lines(get("lines")),
            cid=get("cid"),
            project=get("project"),
            lasting=lasting if isinstance(lasting, float) else None,
        )
    except (TypeError, ValueError) as error:
        raise DamageError(
            f"a record of the index can't be read: {error}. Fix: run `perdure index verify --heal`."
        ) from error


def _lines(value: JSON) -> tuple[int, int] | None:
    match value:
        case (int(first), int(last)):
            return first, last
    return None


def facts_of(payload: Mapping[str, JSON]) -> PassageFacts:
    """Return the facts of a payload; a `LazyPayload` caches them."""
    if type(payload) is not LazyPayload:
        return _facts(payload)
    if not isinstance(payload.derived, PassageFacts):
        payload.derived = _facts(payload)
    return payload.derived


class PassageCandidate:
    """A message, or a passage of a note, that may answer the question."""

    __slots__ = ("cosine", "facts", "hit", "key", "terms", "words")

    def __init__(self, key: Key, hit: SeedHit, facts: PassageFacts) -> None:
        self.key = key
        self.hit = hit
        """Its best passage."""
        self.facts = facts
        self.words = 0.0
        """How well it matches by words; 0 if it does not."""
        self.cosine: float | None = None
        """Its cosine to the question; None if it is not among the nearest."""
        self.terms: dict[str, float] = {}

    @classmethod
    def of(cls, hit: SeedHit) -> "PassageCandidate":
        facts = facts_of(hit.payload)
        return cls(facts.key or (hit.uri, facts.passage), hit, facts)

    @property
    def score(self) -> float:
        return sum(self.terms.values())


class PassageCandidates:
    """The candidates found so far, each once."""

    def __init__(self) -> None:
        self._by_key: dict[Key, PassageCandidate] = {}
        self.all: Collection[PassageCandidate] = self._by_key.values()

    def add_by_words(self, hits: Iterable[SeedHit]) -> None:
        for hit in hits:
            candidate = self.add(hit)
            if hit.score > candidate.words:
                candidate.words, candidate.hit = hit.score, hit

    def add_by_vector(self, hits: Iterable[SeedHit]) -> None:
        for hit in hits:
            candidate = self.add(hit)
            if candidate.cosine is None or hit.score > candidate.cosine:
                candidate.cosine = hit.score
                if not candidate.words:
                    candidate.hit = hit

    def add(self, hit: SeedHit) -> PassageCandidate:
        facts = facts_of(hit.payload)
        key = facts.key or (hit.uri, facts.passage)
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = PassageCandidate(key, hit, facts)
        return found


_DAY = timedelta(days=1)


def nearness(cosine: float) -> float:
    """Return how near two texts are, from 0 for unrelated ones to 1 for two that say the same."""
    span = CONFIG.cosine_one - CONFIG.cosine_floor
    return min(1.0, max(0.0, (cosine - CONFIG.cosine_floor) / span))


def trust(covered: float, held: int, asked: ParsedQuestion) -> float:
    """Return how far the words of a question can be trusted to find the answer, from 0 to 1.

    The best match decides: the share of the question that it covers, and whether it has more than
    one word of several.
    """
    if held <= 1 < len(asked.words):
        covered *= CONFIG.one_word
    span = CONFIG.cover_most - CONFIG.cover_least
    return min(1.0, max(0.0, (covered - CONFIG.cover_least) / span))


def by_relevance(found: Collection[PassageCandidate], trusted: float) -> float:
    """Score candidates by their own text; return the best match by words, which counts 1.

    A weak arm leaves its weight to the other, and both together never count more than 1. Words
    always count a little, because a text may have no vector.
    """
    best = max((candidate.words for candidate in found), default=0.0) or 1.0
    weight = CONFIG.vector + (1 - CONFIG.vector) * (1 - trusted)
    for candidate in found:
        words = max(trusted, CONFIG.least_trust) * candidate.words / best
        if words:
            candidate.terms["words"] = words
        near = nearness(candidate.cosine) if candidate.cosine is not None else 0.0
        if near:
            candidate.terms["meaning"] = (1 - words) * weight * near
    return best


def lent(candidate: PassageCandidate) -> float:
    """Return how much of its relevance a message lends to its neighbours."""
    terms = candidate.terms
    return (terms.get("words", 0.0) + terms.get("meaning", 0.0)) * candidate.facts.short


def by_neighbours(found: Collection[PassageCandidate]) -> None:
    """Let a message borrow from its neighbours: an answer follows its question."""
    lending = {each.key: (lent(each), each.facts.asks) for each in found if each.terms}
    nothing = (0.0, False)
    for candidate in found:
        node, number = candidate.key
        before, asked = lending.get((node, number - 1), nothing)
        borrowed = before * (CONFIG.answer if asked else CONFIG.before)
        borrowed += CONFIG.after * lending.get((node, number + 1), nothing)[0]
        borrowed += CONFIG.second_before * lending.get((node, number - 2), nothing)[0]
        if borrowed:
            candidate.terms["neighbours"] = borrowed * candidate.facts.short


def by_whole(found: Collection[PassageCandidate], wholes: Mapping[str, float], unit: float) -> None:
    """Score candidates by the match of their whole node; a note of one passage is its own whole.

    `unit` is the match that counts 1.
    """
    own: dict[str, float] = defaultdict(float)
    for candidate in found:
        own[candidate.hit.uri] = max(own[candidate.hit.uri], candidate.words)
    for candidate in found:
        whole = wholes.get(candidate.hit.uri, 0.0) or own[candidate.hit.uri]
        if whole:
            candidate.terms["whole"] = CONFIG.whole * whole / unit


def by_date(found: Collection[PassageCandidate], times: Sequence["TimeSpan"]) -> None:
    """Score candidates that are from a time that the question names."""
    for candidate in found:
        date = candidate.facts.date
        if date is not None:
            fit = max(_fits(date, span) for span in times)
            if fit > _LEAST:
                candidate.terms["date"] = CONFIG.date * fit


_LEAST = 0.001


def _fits(date: datetime, span: "TimeSpan") -> float:
    """Return how well a date fits: 1 within the span, less outside, little if the span is vague."""
    start, end = _in_the_year_of(date, span) if span.recurring else (span.start, span.end)
    gap = max((start - date) / _DAY, (date - end) / _DAY, 0.0)
    days = (end - start) / _DAY
    if days > CONFIG.vague_days:
        return CONFIG.vague if gap == 0 else 0.0
    if days > CONFIG.exact_days:
        return 1.0 if gap == 0 else 0.0
    return math.exp(-gap / CONFIG.near_days)


def _in_the_year_of(date: datetime, span: "TimeSpan") -> tuple[datetime, datetime]:
    """Return a yearly span in the year of a date."""
    try:
        start = span.start.replace(year=date.year)
        return start, start + (span.end - span.start)
    except (ValueError, OverflowError):  # the 29th of February, the last year that there is
        return span.start, span.end


def by_speaker(found: Collection[PassageCandidate], asked: ParsedQuestion) -> None:
    """Score messages by speakers whom the question names, and sessions where they take part."""
    parties = {candidate.facts.party for candidate in found}
    names = {name for party in parties for name in party}
    named = {name for name in names if _names(asked.text, name)}
    if not named:
        return
    there = {party: len(named.intersection(party)) for party in parties}
    most = max(there.values())
    for candidate in found:
        facts = candidate.facts
        if facts.speaker in named:
            candidate.terms["speaker"] = CONFIG.speaker
        if there[facts.party]:
            candidate.terms["party"] = CONFIG.party * there[facts.party] / most


def _names(question: str, name: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", question, re.IGNORECASE))


def by_role(found: Collection[PassageCandidate], asked: ParsedQuestion) -> None:
    """Demote an assistant's messages, unless the question addresses it.

    An assistant that has a name of its own counts as a speaker.
    """
    if asked.to_assistant:
        return
    for candidate in found:
        if candidate.facts.role == "assistant" == candidate.facts.speaker:
            candidate.terms["role"] = -CONFIG.assistant


def by_hotness(found: Collection[PassageCandidate]) -> None:
    """Promote the newest note a little, and older ones less. Messages are not affected."""
    notes = [candidate for candidate in found if not candidate.facts.role]
    dates = {candidate.key: candidate.facts.date for candidate in notes}
    newest = max((date for date in dates.values() if date is not None), default=None)
    for candidate in notes:
        date = dates[candidate.key]
        if newest is not None and date is not None:
            halvings = (newest - date) / _DAY / CONFIG.half_life_days
            candidate.terms["hotness"] = CONFIG.hotness * 0.5**halvings


def by_former(found: Collection[PassageCandidate]) -> None:
    """Promote former statements, for a question about another time.

    `ValidityOrder` removes the term from a hit that is not of that time.
    """
    for candidate in found:
        if _FORMER in candidate.hit.uri:
            candidate.terms["former"] = CONFIG.former


def by_project(found: Collection[PassageCandidate], project: str) -> None:
    """Promote memories of the project of the question, and less those of the person.

    Messages of an agent are demoted, and those that state something lasting are promoted.
    """
    for candidate in found:
        terms, facts = candidate.terms, candidate.facts
        if facts.project == project:
            terms["project"] = CONFIG.project
        elif not facts.role and "/memories/" in candidate.hit.uri:
            terms["project"] = CONFIG.person
        if facts.lasting is not None:
            terms["lasting"] = CONFIG.lasting * facts.lasting
        if facts.role == "assistant":
            terms.pop("role", None)
            terms["role"] = -(1 - CONFIG.agent) * candidate.score


_FORMER = "/memories/former/"
_UNRELATED = frozenset(
    {"whole", "date", "speaker", "party", "role", "hotness", "former", "project", "lasting"}
)
"""Terms that do not make a passage relevant by themselves."""


def best_first(found: Iterable[PassageCandidate]) -> list[PassageCandidate]:
    """Return the relevant candidates, best first."""
    relevant = [
        (-sum(each.terms.values()), each.hit.id, each)  # its score
        for each in found
        if not _UNRELATED.issuperset(each.terms)
    ]
    return [each for _, _, each in sorted(relevant)]


def distinct(ranked: Iterable[PassageCandidate]) -> Iterator[PassageCandidate]:
    """Yield candidates in their order, the same text of one node once.

    The same text in two sessions is two candidates.
    """
    seen: set[tuple[str, str]] = set()
    for candidate in ranked:
        text = (candidate.hit.uri, candidate.hit.text)
        if text not in seen:
            seen.add(text)
            yield candidate


# ---------------------------------------------------------------- validity
Successors = Callable[[Hit], Sequence[Hit]]
"""Returns what superseded a hit, newest first."""


def holds(hit: Hit, now: datetime) -> bool:
    """Whether a hit holds. A message holds even if the clock of its session was ahead."""
    begun = hit.session_id or hit.valid_from is None or hit.valid_from <= now
    return bool(begun) and (hit.valid_until is None or now < hit.valid_until)


class ValidityOrder:
    """Orders the hits of one question so that those that hold come first.

    A hit that does not hold comes later, and is never left out. Its successors take its place. If
    the question is about the time when it held, it keeps its place, and its successors follow.
    Successors are looked up only for the first `most` hits that do not hold, because no others can
    be among the results.
    """

    def __init__(
        self,
        asked: ParsedQuestion,
        now: datetime,
        successors: Successors,
        *,
        most: int,
    ) -> None:
        self._asked = asked
        self._now = now
        self._successors = successors
        self._most = most
        self._seen: set[tuple[str, str]] = set()
        """What was yielded, or waits in the heap."""
        self._waiting: list[tuple[float, int, Hit]] = []
        self._numbers = count()
        self._demoted = self._former = 0

    def ordered(self, hits: Iterable[Hit]) -> Iterator[Hit]:
        """Yield hits, given best first; reads no more of them than needed."""
        for hit in hits:
            if self._waiting:
                yield from self._due(hit.score)
            if self._is_new(hit):
                yield from self._placed(hit)
        yield from self._due(float("-inf"))

    def steps(self) -> Iterator[TraceStep]:
        if self._former:
            text = f"{self._former} that do not hold now, {self._demoted} demoted"
            yield TraceStep("validity", text)

    # ------------------------------------------------------------ hits that do not hold
    def _placed(self, hit: Hit) -> Iterator[Hit]:
        """Yield a hit, or its successors while it waits."""
        if holds(hit, self._now):
            yield hit
            return
        former = replace(hit, holds=False)
        if self._is_wanted(former):
            yield former
            yield from reversed(self._after(former, former.score))
            return
        demoted = self._demote(former)
        for each in self._after(former, demoted.score):
            if each.holds:
                yield _scored(each, former.score)
            else:
                self._wait(each)
        self._wait(demoted)

    def _after(self, hit: Hit, score: float) -> list[Hit]:
        """Return the successors of a hit that are new, with a score."""
        self._former += 1
        if self._former > self._most:
            return []
        found = [each for each in self._successors(hit) if self._is_new(each)]
        return [_scored(replace(each, holds=holds(each, self._now)), score) for each in found]

    def _demote(self, hit: Hit) -> Hit:
        """Return a hit with a share of its score, which shrinks with each demoted hit."""
        self._demoted += 1
        terms = {name: value for name, value in hit.score_terms.items() if name != "former"}
        own = sum(terms.values())
        terms["validity"] = -max(own, 0.0) * (1 - CONFIG.lapsed**self._demoted)
        return replace(hit, score=sum(terms.values()), score_terms=terms)

    def _is_wanted(self, hit: Hit) -> bool:
        """Whether the question is about a time when a hit held, other than now."""
        is_over = hit.valid_until is not None and hit.valid_until <= self._now
        if self._asked.asks_for_past and is_over:
            return True
        return any(
            _overlaps(hit, span) and not _contains(span, self._now) for span in self._asked.times
        )

    # ------------------------------------------------------------ waiting
    def _is_new(self, hit: Hit) -> bool:
        key = hit.uri, hit.snippet
        is_seen = key in self._seen
        self._seen.add(key)
        return not is_seen

    def _wait(self, hit: Hit) -> None:
        heappush(self._waiting, (-hit.score, next(self._numbers), hit))

    def _due(self, score: float) -> Iterator[Hit]:
        """Yield the waiting hits whose score is at least this one."""
        while self._waiting and -self._waiting[0][0] >= score:
            yield heappop(self._waiting)[2]


def _scored(hit: Hit, score: float) -> Hit:
    return replace(hit, score=score, score_terms={"supersedes": score})


def _contains(span: "TimeSpan", now: datetime) -> bool:
    return span.start <= now < span.end


def _overlaps(hit: Hit, span: "TimeSpan") -> bool:
    began = hit.valid_from is None or hit.valid_from < span.end
    return began and (hit.valid_until is None or span.start < hit.valid_until)
