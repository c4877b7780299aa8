"""People and things in the speakers' world, and what happens to them, as a model reads it."""

from collections.abc import Iterator, Mapping, Sequence

from perdure.engine.extract.asked.asking import Draft, candidates, items_of, named, slug_about
from perdure.engine.extract.asked.items import Item
from perdure.engine.extract.persons import NOBODY
from perdure.engine.extract.slugs import slug_of
from perdure.engine.llm.contract import LLM
from perdure.model import CandidateMemory, RequestContext
from perdure.model.uri import PROFILE

_DECISION = "decision"


class EntityEventExtractor:
    """Finds who and what speakers tell of, and what happened, will happen or was decided.

    What somebody else than the owner says of themselves is of the entity that they are.
    """

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    def extract(
        self, messages: Sequence[Mapping[str, object]], ctx: RequestContext
    ) -> list[CandidateMemory]:
        found = items_of(self._llm, messages, ctx)
        drafts = (draft for each in found if each.message.role == "user" for draft in _drafts(each))
        return candidates(drafts, f"user:{ctx.user_id}", ctx)


def _drafts(item: Item) -> Iterator[Draft]:
    if item.category == "event":
        yield _event(item)
    elif item.category == "entity":
        yield _entity(item)
    elif item.category == PROFILE and not item.is_owner:
        yield _other(item)


def _event(item: Item) -> Draft:
    day = f"{item.date:%Y-%m-%d}" if item.date else ""
    return Draft(
        item=item,
        category="event",
        slug=slug_about(item, day),
        when=item.date,
        who=named(item),
        topic=_DECISION if item.topic.strip().casefold() == _DECISION else "event",
    )


def _entity(item: Item) -> Draft:
    return Draft(
        item=item,
        category="entity",
        slug=slug_about(item),
        when=item.message.time,
        who=item.who,
    )


def _other(item: Item) -> Draft:
    who = item.message.name or NOBODY
    return Draft(
        item=item,
        category="entity",
        slug=slug_of(who),
        when=item.message.time,
        who=(who,),
        topic=slug_of(item.topic) if item.topic.strip() else "",
    )
