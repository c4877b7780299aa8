"""What candidates are, what counts how much, and the parts of a score.

Each part looks at all candidates and gives some of them something.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from perdure.dataclass import dataclass
from perdure.engine.recall.question import ParsedQuestion
from perdure.errors import DamageError
from perdure.index.account.rows import Payload
from perdure.model import SeedHit
from perdure.model.values import JSON

if TYPE_CHECKING:
    from perdure.engine.recall.periods import TimeSpan

_SHORT = 35
"""Messages of more words than that lend and borrow less."""


@dataclass(frozen=True, slots=True)
class RetrievalConfig:
    """What counts how much when memories are ranked.

    A score is the sum of its parts, each in units of the best match by words. They were chosen on
    conversations between people and with assistants; docs/reference/recall.md says what each gives.
    """

    candidates: int = 150
    """Passages that each search looks at."""

    vector: float = 0.2
    """What nearness in meaning counts where words can be trusted; where they can't, it counts 1."""
    cosine_floor: float = 0.2
    """So near are two texts that have nothing to do with each other."""
    cosine_one: float = 0.8
    """So near are two that say the same."""
    cover_least: float = 0.35
    """Words can't be trusted if the best match has less than this of the question's, by rarity."""
    cover_most: float = 0.55
    """If it has more than this, they can."""
    least_trust: float = 0.005
    """So much words count in any case."""
    cover_of_note: float = 0.3
    """So much more a note must have than a message: people answer in the words of the question."""
    one_word: float = 0.5
    """If it has only one of several, that counts so much less."""

    answer: float = 0.8
    """The share that a message borrows of the one before it, if that one ends with a question."""
    before: float = 0.1
    """... if it does not."""
    after: float = 0.3
    """... of the one after it."""
    second_before: float = 0.15
    """... of the one before the one before it."""
    lenders: int = 50
    """So many of the best are asked what is beside them."""

    whole: float = 0.75
    """What a passage gets because of all else in its node or session."""
    date: float = 0.8
    """What it gets if it is from the time that the question names."""
    exact_days: int = 10
    """A longer time, such as a month, is met or missed."""
    near_days: float = 4.0
    """A shorter one that is missed by so many days counts about a third."""
    vague_days: int = 100
    """A longer time is named so vaguely that it counts for little."""
    vague: float = 0.3
    speaker: float = 0.2
    """What is said by somebody whom the question names."""
    party: float = 0.4
    """What is said where they take part."""
    assistant: float = 0.5
    """What an assistant's message loses, unless the question speaks to it."""

    relation: float = 0.1
    """The share of its score that a node lends to those that it is related to."""
    related: int = 5
    """So many of the best nodes are asked for their relations."""
    hotness: float = 0.02
    """What the newest memory gets for being so."""
    half_life_days: float = 30.0
    """After so many days that is half."""
    parent: float = 0.01
    """What a passage gets if the summary of its node or folder is as near as can be."""
    expanded: int = 3
    """So many folders and nodes whose summaries are near are opened."""
    children: int = 5
    """And so many passages are taken out of each."""
    lapsed: float = 0.5
    """The share that is left to what does not hold any more, or not yet; each further one has this
    share of that of the one before."""
    former: float = 0.3
    """What a former statement gets if the question is about another time than now."""
    project: float = 0.3
    """What a memory of the project gets that is asked in."""
    person: float = 0.15
    """What a memory of the person gets there, before what is general."""
    candidates_in_project: int = 400
    """Passages that each search looks at there: a task is long, and shares words with many."""
    lenders_in_project: int = 200
    """So many of the best are asked there what is beside them."""
    agent: float = 0.45
    """The share that is left there to what an agent said, which is mostly about its progress."""
    lasting: float = 0.4
    """What a message gets there that certainly says something which lasts."""


Key = tuple[str, int]
"""A session and which message of it, or a node and which passage of it."""


class PassageFacts(NamedTuple):
    """What a payload says that candidates are scored by."""

    key: Key | None
    """Which message it is of; None if it is of a note."""
    passage: int
    speaker: str
    role: str
    party: tuple[str, ...]
    """Who speaks in its session."""
    short: float
    """The share that a message lends and borrows: all of it, or less if it is long."""
    asks: bool
    """Whether the message ends with a question."""
    near: tuple[int, ...]
    """Where the message before begins, the one after, and the one after that; no other is one."""
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
    """Return what a payload says; one that an index keeps remembers it."""
    if type(payload) is not Payload:
        return _facts(payload)
    if not isinstance(payload.derived, PassageFacts):
        payload.derived = _facts(payload)
    return payload.derived


class PassageCandidate:
    """A message, or a passage of a note, that may be an answer."""

    __slots__ = ("cosine", "facts", "hit", "key", "terms", "words")

    def __init__(self, key: Key, hit: SeedHit, facts: PassageFacts) -> None:
        self.key = key
        self.hit = hit
        """The passage that speaks best for it."""
        self.facts = facts
        self.words = 0.0
        """How well it matches by words."""
        self.cosine: float | None = None
        """How near it is in meaning; None if it is not among the nearest."""
        self.terms: dict[str, float] = {}

    @classmethod
    def of(cls, hit: SeedHit) -> "PassageCandidate":
        told = facts_of(hit.payload)
        return cls(told.key or (hit.uri, told.passage), hit, told)

    @property
    def score(self) -> float:
        return sum(self.terms.values())


class PassageCandidates:
    """Everything that was found so far, each once."""

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
        told = facts_of(hit.payload)
        key = told.key or (hit.uri, told.passage)
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = PassageCandidate(key, hit, told)
        return found


_DAY = timedelta(days=1)


def nearness(cosine: float, config: RetrievalConfig) -> float:
    """Return how near two texts are, from 0 for any two to 1 for two that say the same."""
    span = config.cosine_one - config.cosine_floor
    return min(1.0, max(0.0, (cosine - config.cosine_floor) / span))


def trust(covered: float, held: int, plan: ParsedQuestion, config: RetrievalConfig) -> float:
    """Return how far the words of a question can be trusted to find what it asks for, 0 to 1.

    That is told by the best match: how much it covers of all that a passage could, and whether it
    holds more than one word of several.
    """
    if held <= 1 < len(plan.words):
        covered *= config.one_word
    span = config.cover_most - config.cover_least
    return min(1.0, max(0.0, (covered - config.cover_least) / span))


def by_relevance(
    found: Collection[PassageCandidate], trusted: float, config: RetrievalConfig
) -> float:
    """Score what candidates say themselves; return the best match by words, which counts 1.

    An arm that is weak leaves the word to the other, and both together never count more than 1.
    Words count a little in any case, for a text may have no vector.
    """
    best = max((candidate.words for candidate in found), default=0.0) or 1.0
    weight = config.vector + (1 - config.vector) * (1 - trusted)
    for candidate in found:
        words = max(trusted, config.least_trust) * candidate.words / best
        if words:
            candidate.terms["words"] = words
        near = nearness(candidate.cosine, config) if candidate.cosine is not None else 0.0
        if near:
            candidate.terms["meaning"] = (1 - words) * weight * near
    return best


def lent(candidate: PassageCandidate) -> float:
    """Return how much of its relevance a message lends to those beside it."""
    parts = candidate.terms
    return (parts.get("words", 0.0) + parts.get("meaning", 0.0)) * candidate.facts.short


def by_neighbours(found: Collection[PassageCandidate], config: RetrievalConfig) -> None:
    """Let a message borrow from those around it: an answer stands after its question."""
    lending = {each.key: (lent(each), each.facts.asks) for each in found if each.terms}
    nothing = (0.0, False)
    for candidate in found:
        node, number = candidate.key
        before, asked = lending.get((node, number - 1), nothing)
        borrowed = before * (config.answer if asked else config.before)
        borrowed += config.after * lending.get((node, number + 1), nothing)[0]
        borrowed += config.second_before * lending.get((node, number - 2), nothing)[0]
        if borrowed:
            candidate.terms["neighbours"] = borrowed * candidate.facts.short


def by_whole(
    found: Collection[PassageCandidate],
    wholes: Mapping[str, float],
    unit: float,
    config: RetrievalConfig,
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
            candidate.terms["whole"] = config.whole * whole / unit


def by_date(
    found: Collection[PassageCandidate], times: Sequence["TimeSpan"], config: RetrievalConfig
) -> None:
    """Score candidates that are from a time that the question names."""
    for candidate in found:
        date = candidate.facts.date
        if date is not None:
            fit = max(_fits(date, span, config) for span in times)
            if fit > _LEAST:
                candidate.terms["date"] = config.date * fit


_LEAST = 0.001


def _fits(date: datetime, span: "TimeSpan", config: RetrievalConfig) -> float:
    """Return how well a date fits: 1 within, less the farther away, little if the time is vague."""
    start, end = _in_the_year_of(date, span) if span.recurring else (span.start, span.end)
    gap = max((start - date) / _DAY, (date - end) / _DAY, 0.0)
    days = (end - start) / _DAY
    if days > config.vague_days:
        return config.vague if gap == 0 else 0.0
    if days > config.exact_days:
        return 1.0 if gap == 0 else 0.0
    return math.exp(-gap / config.near_days)


def _in_the_year_of(date: datetime, span: "TimeSpan") -> tuple[datetime, datetime]:
    """Return a span that comes every year as it was in the year of a date."""
    try:
        start = span.start.replace(year=date.year)
        return start, start + (span.end - span.start)
    except (ValueError, OverflowError):  # the 29th of February, the last year that there is
        return span.start, span.end


def by_speaker(
    found: Collection[PassageCandidate], plan: ParsedQuestion, config: RetrievalConfig
) -> None:
    """Score what is said by somebody whom the question names, and where they take part."""
    parties = {candidate.facts.party for candidate in found}
    names = {name for party in parties for name in party}
    named = {name for name in names if _names(plan.question, name)}
    if not named:
        return
    there = {party: len(named.intersection(party)) for party in parties}
    most = max(there.values())
    for candidate in found:
        told = candidate.facts
        if told.speaker in named:
            candidate.terms["speaker"] = config.speaker
        if there[told.party]:
            candidate.terms["party"] = config.party * there[told.party] / most


def _names(question: str, name: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", question, re.IGNORECASE))


def by_role(
    found: Collection[PassageCandidate], plan: ParsedQuestion, config: RetrievalConfig
) -> None:
    """Take from an assistant's long answers, unless the question speaks to it.

    An assistant that has a name is one of those who talk.
    """
    if plan.to_assistant:
        return
    for candidate in found:
        if candidate.facts.role == "assistant" == candidate.facts.speaker:
            candidate.terms["role"] = -config.assistant


def by_hotness(found: Collection[PassageCandidate], config: RetrievalConfig) -> None:
    """Give the newest note a little, and the others less the older they are.

    A message is as old as the conversation that it was part of, and no worse for it.
    """
    notes = [candidate for candidate in found if not candidate.facts.role]
    dates = {candidate.key: candidate.facts.date for candidate in notes}
    newest = max((date for date in dates.values() if date is not None), default=None)
    for candidate in notes:
        date = dates[candidate.key]
        if newest is not None and date is not None:
            halvings = (newest - date) / _DAY / config.half_life_days
            candidate.terms["hotness"] = config.hotness * 0.5**halvings


def by_former(found: Collection[PassageCandidate], config: RetrievalConfig) -> None:
    """Score former statements, for a question about another time.

    What then turns out not to be of that time loses it again.
    """
    for candidate in found:
        if _FORMER in candidate.hit.uri:
            candidate.terms["former"] = config.former


def by_project(found: Collection[PassageCandidate], project: str, config: RetrievalConfig) -> None:
    """Score what belongs to the project that is asked in, and less what belongs to the person.

    Of what was said there, the user's words count more than the agent's, and most of all rules,
    decisions and corrections.
    """
    for candidate in found:
        parts, told = candidate.terms, candidate.facts
        if told.project == project:
            parts["project"] = config.project
        elif not told.role and "/memories/" in candidate.hit.uri:
            parts["project"] = config.person
        if told.lasting is not None:
            parts["lasting"] = config.lasting * told.lasting
        if told.role == "assistant":
            parts.pop("role", None)
            parts["role"] = -(1 - config.agent) * candidate.score


_FORMER = "/memories/former/"
_UNRELATED = frozenset(
    {"whole", "date", "speaker", "party", "role", "hotness", "former", "project", "lasting"}
)
"""Services that by themselves say nothing of what a passage has to do with a question."""


def best_first(found: Iterable[PassageCandidate]) -> list[PassageCandidate]:
    """Return the candidates that have to do with a question, best first."""
    relevant = [
        (-sum(each.terms.values()), each.hit.id, each)  # its score
        for each in found
        if not _UNRELATED.issuperset(each.terms)
    ]
    return [each for _, _, each in sorted(relevant)]


def distinct(ranked: Iterable[PassageCandidate]) -> Iterator[PassageCandidate]:
    """Yield candidates in their order; what a node says twice is told once.

    The same words in two sessions are two things that were said.
    """
    seen: set[tuple[str, str]] = set()
    for candidate in ranked:
        said = (candidate.hit.uri, candidate.hit.text)
        if said not in seen:
            seen.add(said)
            yield candidate
