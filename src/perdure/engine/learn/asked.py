"""The extractors that ask a model: what it found, tied to the messages that it was shown."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from perdure.engine.learn.contract import CandidateExtractor
from perdure.engine.learn.evidence import Evidence, cid_of
from perdure.engine.learn.persons import NOBODY, owner_of
from perdure.engine.learn.slugs import metadata_of, owner_space, slug_of, thing_of
from perdure.engine.learn.windows import (
    SCHEMA,
    Piece,
    Shown,
    Window,
    pieces_of,
    question,
    windows,
)
from perdure.engine.llm.contract import LLM
from perdure.errors import InvalidValueError
from perdure.model import CandidateMemory, RequestContext
from perdure.model.transcript import Message
from perdure.model.uri import PROFILE
from perdure.model.values import MAX_ABSTRACT, read_moment, shortened


@dataclass(frozen=True, slots=True)
class Item:
    """One statement, in the model's words but for who said it, when, and the names of contents."""

    category: str
    message: Message
    is_owner: bool
    evidence: tuple[Evidence, ...]
    """The statement itself first. Whether the quotes are there is not looked at."""
    place: int
    """Where in the message it stands; where the piece ends if it does not."""
    content: str
    about: str
    topic: str
    confidence: float
    date: datetime | None
    who: tuple[str, ...]

    @property
    def index(self) -> int:
        return self.evidence[0].message


def items_in(answer: Mapping[str, Any], window: Window) -> Iterator[Item]:
    """Yield the items of an answer that are about messages of the window, each for the first time.

    What was asked about before, and what stands where the next piece of a message begins, is left
    to the other question. An item about what the model was not shown is none.
    """
    names = _Names(window)
    for told in filter(_is_text, answer["items"]):
        shown = _at(told["message"], window)
        more = [(_at(each["message"], window), each["quote"]) for each in told["also"]]
        if shown is None or shown.is_before or any(other is None for other, _ in more):
            continue
        if not _is_of_the_next(told["quote"], shown.piece):
            others = [(other.piece, quote) for other, quote in more if other is not None]
            yield _item(told, [(shown.piece, told["quote"]), *others], names.said(told["who"]))


def _is_text(told: object) -> bool:
    """Whether UTF-8 can say it; not every model's answers are looked at for that."""
    try:
        json.dumps(told, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _at(number: float, window: Window) -> Shown | None:
    return window[int(number)] if 0 <= number < len(window) else None


def _is_of_the_next(quote: str, piece: Piece) -> bool:
    """Whether the words begin where the next piece of the message has begun, and stand in both."""
    found = piece.text.find(quote)
    return found >= 0 and piece.until < piece.end and piece.start + found >= piece.until


def _item(
    told: Mapping[str, Any], places: Sequence[tuple[Piece, str]], who: tuple[str, ...]
) -> Item:
    piece = places[0][0]
    return Item(
        category=told["category"],
        message=piece.message,
        is_owner=piece.is_owner,
        evidence=tuple(
            Evidence(each.index, cid_of(each.message.content), quote) for each, quote in places
        ),
        place=_place(told["quote"], piece),
        content=" ".join(told["content"].split()),
        about=told["about"],
        topic=told["topic"],
        confidence=float(min(1.0, max(0.0, told["confidence"]))),
        date=read_moment(told["date"].strip()),
        who=who,
    )


def _place(quote: str, piece: Piece) -> int:
    found = piece.text.find(quote)
    return piece.start + found if found >= 0 else piece.end


class _Names:
    """The names that stand in a window. A model may name others, and they are left out."""

    def __init__(self, window: Window) -> None:
        shown = ((each.piece.message.name, each.piece.text) for each in window)
        self._said = "\n".join(text for pair in shown for text in pair).casefold()

    def said(self, given: Sequence[str]) -> tuple[str, ...]:
        stripped = (each.strip() for each in given)
        return tuple(dict.fromkeys(each for each in stripped if each and self._has(each)))

    def _has(self, name: str) -> bool:
        return name.casefold() in self._said


@dataclass(frozen=True, slots=True)
class Draft:
    """What an extractor makes of an item."""

    item: Item
    category: str
    slug: str
    who: tuple[str, ...] = ()
    topic: str = ""


def items_of(
    llm: LLM, messages: Sequence[Mapping[str, object]], ctx: RequestContext
) -> Iterator[Item]:
    """Yield what the model finds in messages, all of which are looked at before it is asked."""
    said = [Message.from_mapping(message) for message in messages]
    for window in windows(_pieces(said, ctx)):
        answer = llm.complete_json(question(each.line for each in window), SCHEMA)
        yield from items_in(answer, window)


def candidates(drafts: Iterable[Draft], ctx: RequestContext) -> list[CandidateMemory]:
    """Return drafts as candidates, in the order of what was said, each once for a message.

    A draft that can't be one, as it says nothing or too much, is left out.
    """
    ordered = sorted(drafts, key=lambda each: (each.item.index, each.item.place))
    chosen = {
        (each.item.index, each.category, each.slug, each.item.content): each
        for each in reversed(ordered)
    }
    made = (_candidate(each, ctx) for each in reversed(chosen.values()))
    return [each for each in made if each is not None]


def named(item: Item) -> tuple[str, ...]:
    """Return who spoke, and whom they spoke of."""
    return tuple(dict.fromkeys(each for each in (item.message.name, *item.who) if each))


def slug_about(item: Item, prefix: str = "") -> str:
    """Return the slug of what an item is about; without that, of what it says."""
    return slug_of(item.about if item.about.strip() else item.content, prefix)


def _pieces(said: Sequence[Message], ctx: RequestContext) -> list[Piece]:
    is_owner = owner_of(said, ctx)
    return [
        piece
        for index, message in enumerate(said)
        for piece in pieces_of(index, message, is_owner=is_owner(message))
        if message.role != "system"
    ]


def _candidate(draft: Draft, ctx: RequestContext) -> CandidateMemory | None:
    item = draft.item
    try:
        return CandidateMemory(
            category=draft.category,
            content=item.content,
            slug=draft.slug,
            abstract=shortened(item.content, MAX_ABSTRACT),
            confidence=item.confidence,
            owner_space=owner_space(draft.category, ctx),
            when=item.date if draft.category == "event" else item.message.time,
            who=draft.who,
            quote=item.evidence[0].quote,
            speaker=item.message.speaker,
            metadata=metadata_of(item.evidence, draft.topic, ctx),
        )
    except InvalidValueError:  # says nothing, or more than a memory may hold
        return None


# ---------------------------------------------------------------- the extractors
class _ByAsking(ABC):
    """Makes candidates of what a model finds in messages."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    def extract(
        self, messages: Sequence[Mapping[str, object]], ctx: RequestContext
    ) -> list[CandidateMemory]:
        drafts = map(self._draft, items_of(self._llm, messages, ctx))
        return candidates(filter(None, drafts), ctx)

    @abstractmethod
    def _draft(self, item: Item) -> Draft | None:
        """Return what becomes of an item; None if it is of another extractor, or of none."""


class ProfileExtractor(_ByAsking):
    """Finds what the user says of themselves: name, home, work, family, languages, health.

    The profile has no slug; `metadata["topic"]` says what of it a candidate is.
    """

    def _draft(self, item: Item) -> Draft | None:
        if item.category != PROFILE or not item.is_owner:
            return None
        who = (item.message.name,) if item.message.name else ()
        return Draft(item, PROFILE, "", who, _topic(item) or "other")


def _topic(item: Item) -> str:
    """Return what of the profile it is, as a slug; empty if the model does not say."""
    return slug_of(item.topic) if item.topic.strip() else ""


class PreferenceExtractor(_ByAsking):
    """Finds what speakers like and dislike, and wishes that outlast the task."""

    def _draft(self, item: Item) -> Draft | None:
        if item.category != "preference" or item.message.role != "user":
            return None
        return Draft(item, "preference", slug_of(thing_of(item.about) or item.content), named(item))


class EntityEventExtractor(_ByAsking):
    """Finds who and what speakers tell of, and what happened, will happen or was decided.

    What somebody else than the owner says of themselves is of the entity that they are.
    """

    def _draft(self, item: Item) -> Draft | None:
        if item.message.role != "user":
            return None
        if item.category == "event":
            day = f"{item.date:%Y-%m-%d}" if item.date else ""
            topic = "decision" if item.topic.strip().casefold() == "decision" else "event"
            return Draft(item, "event", slug_about(item, day), named(item), topic)
        if item.category == "entity":
            return Draft(item, "entity", slug_about(item), item.who)
        if item.category == PROFILE and not item.is_owner:
            who = item.message.name or NOBODY
            return Draft(item, "entity", slug_of(who), (who,), _topic(item))
        return None


_SPEAKERS = {
    "skill": frozenset({"user", "assistant"}),
    "case": frozenset({"user", "assistant"}),
    "pattern": frozenset({"user"}),
}
"""Whose word counts for what. What a tool puts out is nobody's."""


class ProcedureExtractor(_ByAsking):
    """Finds commands and what they are for, errors with what helped, and how things are done.

    What a command is for and what helped are memories of the agent: they say how to work, not who
    somebody is. How somebody wants things done is theirs, as others have the same agent.
    """

    def _draft(self, item: Item) -> Draft | None:
        if item.message.role not in _SPEAKERS.get(item.category, ()):
            return None
        return Draft(item, item.category, slug_about(item))


def extractors(llm: LLM) -> tuple[CandidateExtractor, ...]:
    """Return one for each kind of memory, in the order in which they are asked.

    All ask the same questions. A model that remembers its answers is paid for them once.
    """
    return (
        ProfileExtractor(llm),
        PreferenceExtractor(llm),
        EntityEventExtractor(llm),
        ProcedureExtractor(llm),
    )
