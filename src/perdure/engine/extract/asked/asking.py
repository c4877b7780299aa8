"""From messages to what a model found in them, and from that to candidates."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from perdure.engine.extract.asked.items import Item, items_in
from perdure.engine.extract.asked.question import SCHEMA, question
from perdure.engine.extract.asked.windows import Piece, pieces_of, windows
from perdure.engine.extract.persons import owner_of
from perdure.engine.extract.slugs import slug_of
from perdure.engine.llm.contract import LLM
from perdure.errors import InvalidValueError
from perdure.model import CandidateMemory, RequestContext
from perdure.model.transcript import Message
from perdure.model.values import JSON, MAX_ABSTRACT, shortened


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What an extractor makes of an item."""

    item: Item
    category: str
    slug: str
    when: datetime | None
    who: tuple[str, ...]
    topic: str = ""


def items_of(
    llm: LLM, messages: Sequence[Mapping[str, object]], ctx: RequestContext
) -> Iterator[Item]:
    """Yield what the model finds in messages, all of which are looked at before it is asked."""
    said = [Message.from_mapping(message) for message in messages]
    for window in windows(_pieces(said, ctx)):
        answer = llm.complete_json(question(each.line for each in window), SCHEMA)
        yield from items_in(answer, window)


def candidates(
    drafts: Iterable[Draft], owner_space: str, ctx: RequestContext
) -> list[CandidateMemory]:
    """Return drafts as candidates, in the order of what was said, each once for a message.

    A draft that can't be one, as it says nothing or too much, is left out.
    """
    ordered = sorted(drafts, key=lambda each: (each.item.index, each.item.place))
    chosen = {
        (each.item.index, each.category, each.slug, each.item.content): each
        for each in reversed(ordered)
    }
    made = (_candidate(each, owner_space, ctx) for each in reversed(chosen.values()))
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


def _candidate(draft: Draft, owner_space: str, ctx: RequestContext) -> CandidateMemory | None:
    item = draft.item
    metadata: dict[str, JSON] = {"evidence": [each.as_json() for each in item.evidence]}
    metadata |= {"topic": draft.topic} if draft.topic else {}
    metadata |= {"session_id": ctx.session_id} if ctx.session_id else {}
    try:
        return CandidateMemory(
            category=draft.category,
            content=item.content,
            slug=draft.slug,
            abstract=shortened(item.content, MAX_ABSTRACT),
            confidence=item.confidence,
            owner_space=owner_space,
            when=draft.when,
            who=draft.who,
            quote=item.evidence[0].quote,
            speaker=item.message.speaker,
            metadata=metadata,
        )
    except InvalidValueError:  # says nothing, or more than a memory may hold
        return None
