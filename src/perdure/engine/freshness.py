"""The freshness of statements: whether what they name in a checkout still holds."""

from collections.abc import Sequence

from perdure.context.reader import NodeReader
from perdure.engine.learn.evidence import Support, support_of, text_of
from perdure.engine.learn.statements import cid_of
from perdure.engine.recall.result import Confirmation
from perdure.model import ContextNode, RequestContext, Uri
from perdure.model.anchors import (
    FIRST_NODE,
    UNCHECKED,
    AnchorChecker,
    AnchoredStatement,
    AnchorStatus,
    session_anchors,
)
from perdure.model.uri import kind_of

Lines = Sequence[tuple[str, int | None, str]]
"""Statements, each as its URI, its message in a session or None, and its text."""


def verdicts_on(
    lines: Lines,
    checkout: AnchorChecker | None,
    reader: NodeReader,
    ctx: RequestContext,
    seconds: float,
) -> tuple[AnchorStatus, ...]:
    """Return whether statements hold in a checkout; one out of reach names nothing in it."""
    if checkout is None:
        return (UNCHECKED,) * len(lines)
    nodes = Confirmation(reader, ctx)
    return tuple(checkout.check([_stated(nodes, *line) for line in lines], seconds))


def _stated(nodes: Confirmation, uri: str, message: int | None, text: str) -> AnchoredStatement:
    place = Uri.parse(uri)
    if message is None and not place.session:
        stored = nodes.stored(uri)
        if stored is None:
            return AnchoredStatement(text, "")
        return stated_in(stored.node, text, support_of(stored.node).get(cid_of(text), Support()))
    first = nodes.stored(str(Uri(place.account, ("sessions", place.session, FIRST_NODE))))
    if first is None:
        return AnchoredStatement(text, "")
    return AnchoredStatement(
        text, _kind(text), first.node.date, session_anchors(first.node.metadata)
    )


def _kind(text: str) -> str:
    from perdure.engine.learn.prose import scored  # noqa: PLC0415 - only messages need it

    likeliest = max(scored(text), key=lambda each: each.score, default=None)
    return likeliest.kind if likeliest else ""


def stated_in(node: ContextNode, text: str, support: Support) -> AnchoredStatement:
    """Return a statement of a node with what it names in a checkout."""
    kind = support.kind or text_of(node.metadata.get("kind")) or kind_of(node.category)
    return AnchoredStatement(text, kind, support.when or node.date, support.all_anchors)
