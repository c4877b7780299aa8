"""What a memory is: frozen values, no I/O."""

from typing import TYPE_CHECKING

from holdfast.exports import exports

if TYPE_CHECKING:
    from holdfast.model.candidate import Action, CandidateMemory, WritePlan
    from holdfast.model.edge import MENTIONS, SUPERSEDED_BY, RelationEdge
    from holdfast.model.event import EventStatus, EventType, OutboxEvent
    from holdfast.model.node import ContextNode, ContextType, NodeStatus
    from holdfast.model.record import IndexRecord, Level, SeedHit
    from holdfast.model.request import RequestContext, Role, check_owner_space
    from holdfast.model.uri import Uri, check_slug, slugify
else:
    __getattr__ = exports(
        __name__,
        {
            "candidate": "Action CandidateMemory WritePlan",
            "edge": "MENTIONS SUPERSEDED_BY RelationEdge",
            "event": "EventStatus EventType OutboxEvent",
            "node": "ContextNode ContextType NodeStatus",
            "record": "IndexRecord Level SeedHit",
            "request": "RequestContext Role check_owner_space",
            "uri": "Uri check_slug slugify",
        },
    )

__all__ = [
    "MENTIONS",
    "SUPERSEDED_BY",
    "Action",
    "CandidateMemory",
    "ContextNode",
    "ContextType",
    "EventStatus",
    "EventType",
    "IndexRecord",
    "Level",
    "NodeStatus",
    "OutboxEvent",
    "RelationEdge",
    "RequestContext",
    "Role",
    "SeedHit",
    "Uri",
    "WritePlan",
    "check_owner_space",
    "check_slug",
    "slugify",
]
