"""What statements name of a checkout, wherever they are kept, so that it can be checked."""

from collections.abc import Sequence

from perdure.context.reading import NodeReader
from perdure.engine.learn.evidence import Support, support_of, text_of
from perdure.engine.learn.statements import cid_of
from perdure.engine.recall.confirmation import Confirmation
from perdure.model import ContextNode, RequestContext, Uri
from perdure.model.anchors import (
    FIRST_NODE,
    UNCHECKED,
    Checkout,
    Stated,
    Verdict,
    session_anchors,
)
from perdure.model.uri import kind_of

Lines = Sequence[tuple[str, int | None, str]]
"""Statements, each by its URI, its message if it is of a session, and its text."""


def verdicts_on(
    lines: Lines, checkout: Checkout | None, reader: NodeReader, ctx: RequestContext, seconds: float
) -> tuple[Verdict, ...]:
    """Return whether lines hold in a checkout; what is out of reach names nothing of it."""
    if checkout is None:
        return (UNCHECKED,) * len(lines)
    confirming = Confirmation(reader, ctx)
    return tuple(checkout.checked([_stated(confirming, *line) for line in lines], seconds))


def _stated(confirming: Confirmation, uri: str, message: int | None, text: str) -> Stated:
    place = Uri.parse(uri)
    if message is None and not place.session:
        stored = confirming.stored(uri)
        if stored is None:
            return Stated(text, "")
        return stated_in(stored.node, text, support_of(stored.node).get(cid_of(text), Support()))
    first = confirming.stored(str(Uri(place.account, ("sessions", place.session, FIRST_NODE))))
    if first is None:
        return Stated(text, "")
    return Stated(text, _kind(text), first.node.date, session_anchors(first.node.metadata))


def _kind(text: str) -> str:
    from perdure.engine.learn.prose import scored  # noqa: PLC0415 - only messages need it

    likeliest = max(scored(text), key=lambda each: each.score, default=None)
    return likeliest.kind if likeliest else ""


def stated_in(node: ContextNode, text: str, support: Support) -> Stated:
    """Return a statement of a node with what it names of a checkout."""
    kind = support.kind or text_of(node.metadata.get("kind")) or kind_of(node.category)
    return Stated(text, kind, support.when or node.date, support.all_anchors)
