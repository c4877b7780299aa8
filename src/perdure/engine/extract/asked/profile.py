"""Who the owner of a memory is, as a model reads it."""

from collections.abc import Mapping, Sequence

from perdure.engine.extract.asked.asking import Draft, candidates, items_of
from perdure.engine.extract.asked.items import Item
from perdure.engine.extract.slugs import slug_of
from perdure.engine.llm.contract import LLM
from perdure.model import CandidateMemory, RequestContext
from perdure.model.uri import PROFILE


class ProfileExtractor:
    """Finds what the user says of themselves: name, home, work, family, languages, health.

    The profile has no slug; `metadata["topic"]` says what of it a candidate is.
    """

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    def extract(
        self, messages: Sequence[Mapping[str, object]], ctx: RequestContext
    ) -> list[CandidateMemory]:
        found = items_of(self._llm, messages, ctx)
        drafts = (_draft(each) for each in found if each.category == PROFILE and each.is_owner)
        return candidates(drafts, f"user:{ctx.user_id}", ctx)


def _draft(item: Item) -> Draft:
    return Draft(
        item=item,
        category=PROFILE,
        slug="",
        when=item.message.time,
        who=(item.message.name,) if item.message.name else (),
        topic=_topic(item),
    )


def _topic(item: Item) -> str:
    """Return what of the profile it is, as a slug; `other` if the model does not say."""
    return slug_of(item.topic) if item.topic.strip() else "other"
