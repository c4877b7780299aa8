"""`why`: what a memory rests on."""

from collections.abc import Iterator
from datetime import date
from typing import Annotated

from mcp_types import CallToolResult

from perdure.engine.validate.texts import presentable
from perdure.engine.why.provenance import Claim, Provenance
from perdure.engine.why.provenance import Former as Before
from perdure.model.values import visible
from perdure.surfaces.mcp.answers import Explained, Former, Quote, Statement, answered
from perdure.surfaces.mcp.arguments import Budget, Name
from perdure.surfaces.mcp.budget import with_most
from perdure.surfaces.mcp.naming import node_of
from perdure.surfaces.mcp.opened import Opened

_MOST_EVIDENCE = 5
_MOST_FORMER = 5


class Explaining:
    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def why(self, uri: Name, budget_tokens: Budget = 2000) -> Annotated[CallToolResult, Explained]:
        """Say why memory says something: who said it, where, and what it superseded.

        Use it when the user doubts a memory, when two contradict each other, or before you rely on
        one for something that matters. Evidence is looked up anew each time.
        """
        place = node_of(uri, self._opened.request)
        found = self._opened.memory().why(str(place))

        def make(statements: tuple[Statement, ...]) -> Explained:
            return _explained(found, statements)

        return answered(with_most(make, [_statement(each) for each in found.claims], budget_tokens))


def _explained(found: Provenance, statements: tuple[Statement, ...]) -> Explained:
    return Explained(
        uri=found.uri,
        title=presentable(found.title),
        kind=found.kind.value,
        version=found.version,
        holds=found.holds,
        source=visible(found.source),
        statements=statements,
        superseded=tuple(map(_former, found.superseded[:_MOST_FORMER])),
        superseded_by=tuple(each.uri for each in found.superseded_by[:_MOST_FORMER]),
        left_out=len(found.claims) - len(statements),
    )


def _statement(claim: Claim) -> Statement:
    quotes = list(_quotes(claim))
    return Statement(
        text=presentable(claim.text),
        origin="said" if claim.extracted else "written",
        since=_day(claim.since),
        confidence=claim.confidence,
        holds=claim.holds,
        evidence=tuple(quotes[:_MOST_EVIDENCE]),
        out_of_reach=claim.out_of_reach,
    )


def _quotes(claim: Claim) -> Iterator[Quote]:
    for said in claim.said:
        for quote in said.quotes:
            yield Quote(
                session=visible(said.session),
                message=quote.message,
                speaker=presentable(said.speaker),
                quote=presentable(quote.text),
                holds=quote.holds,
                trouble=visible(quote.trouble),
            )


def _former(former: Before) -> Former:
    return Former(
        uri=former.uri,
        text=presentable(former.text),
        reason=presentable(former.reason),
        valid_until=_day(former.valid_until),
    )


def _day(moment: date | None) -> str:
    return moment.isoformat()[:10] if moment else ""
