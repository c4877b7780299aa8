"""`recall`: what memory has to say to a question."""

from collections.abc import Iterator
from typing import Annotated

from mcp_types import CallToolResult

from perdure import HintKind, RecallResult
from perdure import Hit as Found
from perdure.engine.validate.texts import presentable
from perdure.model.values import JSON, shortened, visible
from perdure.storage.sweep import sweep
from perdure.surfaces.mcp.answers import Hit, Recalled, answered
from perdure.surfaces.mcp.arguments import At, Budget, Filter, Query, TopK, ValidAt
from perdure.surfaces.mcp.budget import with_most
from perdure.surfaces.mcp.naming import state_of
from perdure.surfaces.mcp.opened import Opened
from perdure.surfaces.mcp.refusing import without_paths

NOTHING = "Memory has nothing to say to that."
_MOST_NOTES = 3
_LONGEST_NOTE = 160


class Recalling:
    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def recall(  # noqa: PLR0913, PLR0917 - a name for each, as a model sees them
        self,
        query: Query,
        top_k: TopK = 10,
        budget_tokens: Budget = 2000,
        at: At = "",
        valid_at: ValidAt = "",
        category: Filter = "",
    ) -> Annotated[CallToolResult, Recalled]:
        """Find what is remembered about something.

        Use it before you answer or decide anything that may depend on earlier conversations: what
        the user prefers, who and what they speak of, what was decided, how something was solved.
        Ask in the words of the question. Each hit has a URI to cite, to read on, or to ask why.
        """
        filters: dict[str, JSON] = {"category": category} if category else {}
        context = self._opened.context()
        state = None
        if at:
            sweep(context.recorded)  # what others edited is part of the past, too
            state = state_of(context.recorded.history, at)
        result = self._opened.memory().recall(
            query,
            top_k=top_k,
            budget_tokens=budget_tokens,
            at=state,
            valid_at=valid_at or None,
            filters=filters,
        )
        return answered(self._within(result, budget_tokens), result.context or NOTHING)

    def _within(self, result: RecallResult, budget: int) -> Recalled:
        """Return as many hits as the budget allows also for those who read JSON."""
        found, notes = result.left_out + len(result.hits), tuple(self._notes(result))

        def make(hits: tuple[Hit, ...]) -> Recalled:
            left = found - len(hits)
            return Recalled(hits=hits, left_out=left, index_lag=result.index_lag, notes=notes)

        return with_most(make, [_hit(each) for each in result.hits], budget)

    def _notes(self, result: RecallResult) -> Iterator[str]:
        """Yield what a model should know; that there could be a better index is for people."""
        hints = [hint.text for hint in result.hints if hint.kind is not HintKind.NO_MODEL]
        for text in hints[:_MOST_NOTES]:
            yield shortened(without_paths(text, self._opened.environ), _LONGEST_NOTE)


def _hit(found: Found) -> Hit:
    return Hit(
        uri=found.uri,
        title=presentable(found.title),
        text=presentable(found.snippet),
        where=found.where,
        category=found.category,
        date=found.date.date().isoformat() if found.date else "",
        holds=found.holds,
        validity=found.validity,
        speaker=presentable(found.speaker),
        session_id=visible(found.session_id),
        cid=found.cid,
        score=round(found.score, 4),
    )
