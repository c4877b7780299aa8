"""Who the owner of a memory is."""

from collections.abc import Iterator, Mapping, Sequence

from perdure.engine.extract.facts import facts
from perdure.engine.extract.findings import Finding, Turn, candidates, turns_of
from perdure.engine.extract.persons import sentence
from perdure.model import CandidateMemory, RequestContext
from perdure.model.uri import PROFILE


class ProfileExtractor:
    """Finds what the user says of themselves: name, home, work, family, languages, health.

    The profile has no slug; `metadata["topic"]` says what of it a candidate is.
    """

    def extract(
        self, messages: Sequence[Mapping[str, object]], ctx: RequestContext
    ) -> list[CandidateMemory]:
        turns = [turn for turn in turns_of(messages, ctx) if turn.by_owner]
        found = (finding for turn in turns for finding in _findings(turn))
        return candidates(found, f"user:{ctx.user_id}", ctx)


def _findings(turn: Turn) -> Iterator[Finding]:
    for claim in turn.claims:
        for fact in facts(claim, turn.who):
            yield Finding(
                turn=turn,
                start=claim.start + fact.begin,
                end=claim.start + fact.finish,
                category=PROFILE,
                content=sentence(fact.content),
                slug="",
                confidence=fact.confidence,
                when=turn.message.time,
                who=(turn.message.name,) if turn.message.name else (),
                topic=fact.topic,
            )
