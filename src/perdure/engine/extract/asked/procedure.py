"""What an agent learns from work, as a model reads it."""

from collections.abc import Mapping, Sequence

from perdure.engine.extract.asked.asking import Draft, candidates, items_of, slug_about
from perdure.engine.extract.asked.items import Item
from perdure.engine.extract.ownership import with_owners
from perdure.engine.llm.contract import LLM
from perdure.model import CandidateMemory, RequestContext

_SPEAKERS = {
    "skill": frozenset({"user", "assistant"}),
    "case": frozenset({"user", "assistant"}),
    "pattern": frozenset({"user"}),
}
"""Whose word counts for what. What a tool puts out is nobody's."""


class ProcedureExtractor:
    """Finds commands and what they are for, errors with what helped, and how things are done.

    What a command is for and what helped are memories of the agent: they say how to work, not who
    somebody is. How somebody wants things done is theirs, as others have the same agent.
    """

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    def extract(
        self, messages: Sequence[Mapping[str, object]], ctx: RequestContext
    ) -> list[CandidateMemory]:
        found = items_of(self._llm, messages, ctx)
        drafts = (
            _draft(each)
            for each in found
            if each.message.role in _SPEAKERS.get(each.category, frozenset())
        )
        return with_owners(candidates(drafts, f"agent:{ctx.agent_id}", ctx), ctx)


def _draft(item: Item) -> Draft:
    return Draft(
        item=item,
        category=item.category,
        slug=slug_about(item),
        when=item.message.time,
        who=(),
    )
