"""The messages as rules read them, and what rules find as candidates."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from perdure.engine.extract.candidates import metadata_of, owner_space
from perdure.engine.extract.claims import claims, is_doubted, meant, stands
from perdure.engine.extract.evidence import Evidence
from perdure.engine.extract.persons import NOBODY, owner_of, sentence
from perdure.engine.extract.prose import Sentence, Statement, sentences
from perdure.model import CandidateMemory, RequestContext
from perdure.model.transcript import Message
from perdure.model.values import MAX_ABSTRACT, shortened

MAX_SAID = 600
"""Characters of what a candidate says; a rule that takes in more has gone astray."""
MAX_QUOTED = 2_000


@dataclass(frozen=True, slots=True)
class Turn:
    """A message and what it claims in the speaker's own words."""

    index: int
    message: Message
    by_owner: bool
    among_people: bool
    """Whether several people talk, so that "you" may be any of them."""
    sentences: tuple[Sentence, ...]
    meant: tuple[Sentence, ...]
    """Sentences without jokes, plays and what is taken back."""
    claims: tuple[Sentence, ...]

    @property
    def who(self) -> str:
        return self.message.name or NOBODY

    def finding(self, claim: Sentence, said: Statement, category: str, slug: str) -> "Finding":
        """Return what a claim of this message says, by its speaker and as of its time."""
        return Finding(
            turn=self,
            start=claim.start + said.begin,
            end=claim.start + said.finish,
            category=category,
            content=sentence(said.content),
            slug=slug,
            confidence=said.confidence,
            when=self.message.time,
            who=(self.message.name,) if self.message.name else (),
            topic=said.topic,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule found, from `start` to `end` of a message."""

    turn: Turn
    start: int
    end: int
    category: str
    content: str
    slug: str
    confidence: float
    when: datetime | None = None
    who: tuple[str, ...] = ()
    topic: str = ""
    is_whole: bool = False
    """It has all that its sentence says, a doubt as well."""
    also: tuple[tuple[Turn, int, int], ...] = field(default=())
    """More evidence, in other places."""


def turns_of(messages: Sequence[Mapping[str, object]], ctx: RequestContext) -> list[Turn]:
    said = [Message.from_mapping(message) for message in messages]
    is_owner = owner_of(said, ctx)
    among_people = len({each.name for each in said if each.role == "user"} - {""}) > 1
    turns = []
    for index, message in enumerate(said):
        found = sentences(message.content, _names_of(message, ctx))
        serious = tuple(meant(found))
        turns.append(
            Turn(
                index,
                message,
                is_owner(message),
                among_people,
                tuple(found),
                serious,
                tuple(claims(serious)),
            )
        )
    return turns


def candidates(findings: Iterable[Finding], ctx: RequestContext) -> list[CandidateMemory]:
    """Return findings as candidates, in the order of what was said, each once for a message."""
    ordered = sorted(findings, key=lambda each: (each.turn.index, each.start, each.end, each.slug))
    chosen = {
        (each.turn.index, each.category, each.slug, each.content): each
        for each in reversed(ordered)
        if _is_sound(each)
    }
    return [_candidate(each, ctx) for each in reversed(chosen.values())]


def _names_of(message: Message, ctx: RequestContext) -> tuple[str, ...]:
    return (*message.name.split(), message.name, ctx.user_id)


def _is_sound(found: Finding) -> bool:
    """Whether it says something, says no more than was said, and takes nobody for the assistant."""
    if not 0 < len(found.content) <= MAX_SAID or found.end - found.start > MAX_QUOTED:
        return False
    if found.turn.among_people and "the assistant" in found.content:
        return False
    return found.is_whole or _is_all(found)


def _is_all(found: Finding) -> bool:
    """Whether no doubt is left behind, and none is in it. That an event is not sure may be said."""
    said = found.turn.message.content[found.start : found.end]
    doubted = found.category != "event" and is_doubted(said)
    return not doubted and stands(found.turn.sentences, found.start, found.end)


def _candidate(found: Finding, ctx: RequestContext) -> CandidateMemory:
    message = found.turn.message
    places = ((found.turn, found.start, found.end), *found.also)
    evidence = [Evidence.at(turn.index, turn.message, start, end) for turn, start, end in places]
    return CandidateMemory(
        category=found.category,
        content=found.content,
        slug=found.slug,
        abstract=shortened(found.content, MAX_ABSTRACT),
        confidence=found.confidence,
        owner_space=owner_space(found.category, ctx),
        when=found.when,
        who=found.who,
        quote=evidence[0].quote,
        speaker=message.speaker,
        metadata=metadata_of(evidence, found.topic, ctx),
    )
