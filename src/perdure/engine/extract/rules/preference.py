"""What people like, dislike, and always want done so."""

from collections.abc import Iterator, Mapping, Sequence

from perdure.engine.extract import confidence
from perdure.engine.extract.claims import hedged
from perdure.engine.extract.findings import Finding, Turn, candidates, turns_of
from perdure.engine.extract.likes import likes
from perdure.engine.extract.persons import sentence as as_sentence
from perdure.engine.extract.prose import Sentence
from perdure.engine.extract.requests import requests
from perdure.engine.extract.slugs import slug_of
from perdure.model import CandidateMemory, RequestContext


class PreferenceExtractor:
    """Finds what speakers like and dislike, and wishes that outlast the task."""

    def extract(
        self, messages: Sequence[Mapping[str, object]], ctx: RequestContext
    ) -> list[CandidateMemory]:
        turns = [turn for turn in turns_of(messages, ctx) if turn.message.role == "user"]
        found = (finding for turn in turns for claim in turn.claims for finding in _in(turn, claim))
        return candidates(found, f"user:{ctx.user_id}", ctx)


def _in(turn: Turn, claim: Sentence) -> Iterator[Finding]:
    taken = -1
    found = [*likes(claim, turn.who)]
    if turn.by_owner:
        found += requests(claim, turn.who)
    for wish in sorted(found, key=lambda wish: (wish.begin, -wish.finish)):
        if wish.begin < taken:
            continue
        taken = wish.finish
        unsure = hedged(claim, wish.begin, wish.finish)
        yield Finding(
            turn=turn,
            start=claim.start + wish.begin,
            end=claim.start + wish.finish,
            category="preference",
            content=as_sentence(wish.content),
            slug=slug_of(wish.about),
            confidence=confidence.weighed(wish.confidence, hedged=unsure),
            when=turn.message.time,
            who=(turn.message.name,) if turn.message.name else (),
        )
