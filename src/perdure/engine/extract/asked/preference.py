"""What people like, dislike, and always want done so, as a model reads it."""

import re
from collections.abc import Mapping, Sequence

from perdure.engine.extract.asked.asking import Draft, candidates, items_of, named
from perdure.engine.extract.asked.items import Item
from perdure.engine.extract.slugs import slug_of
from perdure.engine.extract.words import either, words_of
from perdure.engine.llm.contract import LLM
from perdure.model import CandidateMemory, RequestContext

_ATTITUDES = words_of("attitudes")
_ATTITUDE = re.compile(rf"\b(?:{either(_ATTITUDES)})(?!\w)", re.IGNORECASE)


class PreferenceExtractor:
    """Finds what speakers like and dislike, and wishes that outlast the task."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    def extract(
        self, messages: Sequence[Mapping[str, object]], ctx: RequestContext
    ) -> list[CandidateMemory]:
        found = items_of(self._llm, messages, ctx)
        drafts = (
            _draft(each)
            for each in found
            if each.category == "preference" and each.message.role == "user"
        )
        return candidates(drafts, f"user:{ctx.user_id}", ctx)


def _draft(item: Item) -> Draft:
    return Draft(
        item=item,
        category="preference",
        slug=slug_of(_thing(item.about) or item.content),
        when=item.message.time,
        who=named(item),
    )


def _thing(about: str) -> str:
    """Return what is liked or disliked without that word, so that both have one slug."""
    plain = " ".join(about.replace("\u2019", "'").split())
    return _ATTITUDE.sub(" ", plain).strip() or plain
