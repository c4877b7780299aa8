"""What the user stated before, on the occasion that it is for."""

from collections.abc import Sequence
from datetime import UTC, datetime

from perdure.context.reading import NodeReader
from perdure.engine.briefing import BriefingItem, filters_for, gathered
from perdure.engine.occasions import Occasion
from perdure.engine.recall.confirming import Confirming
from perdure.index.contract import KeptIndex
from perdure.model import RequestContext

_LOOKED_AT = 60
"""Notes that are looked at, the newest first, of those that have a word of the occasion."""
_REPEATED = frozenset({"rule", "rejected", "preference"})


def repeated(  # noqa: PLR0913 - what it is made of, for whom, and what it is about
    reader: NodeReader,
    index: KeptIndex,
    ctx: RequestContext,
    names: Sequence[str],
    occasion: Occasion,
    *,
    session: str = "",
) -> list[BriefingItem]:
    """Return the sentences of a project that an occasion calls for, the newest first.

    Of one message the likeliest to last comes, and the rest after all else. What was stated in the
    `session` alone is left out: its agent has it.
    """
    wanted, fits = occasion
    projects = tuple(dict.fromkeys((*names, "")))
    hits = index.noted(filters_for(index, ctx, projects), _LOOKED_AT, wanted) if wanted else []
    noted = gathered(hits, names, datetime.now(UTC), "occasions")
    confirming = Confirming(reader, ctx, projects)
    found = [
        item
        for item in noted.current()
        if item.kind in _REPEATED
        and fits(item.bare)
        and not (session and {session} == {name for name, _ in item.evidence})
        and confirming.confirmed(noted.hits[item.uri, item.message]) is not None
    ]
    newest = sorted(found, key=_newest)
    first = {(each.uri, each.message): each for each in reversed(newest)}
    newest.sort(key=lambda each: first[each.uri, each.message] is not each)
    return newest


def _newest(item: BriefingItem) -> tuple[float, float, str]:
    """Order by age; what one message states, by how likely it is to last."""
    return -item.date.timestamp() if item.date else 0.0, -item.score, item.bare
