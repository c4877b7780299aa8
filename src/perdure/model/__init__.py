"""What a memory is: frozen values, no I/O."""

from typing import TYPE_CHECKING

from perdure.exports import exports

if TYPE_CHECKING:
    from perdure.model.candidate import Action, CandidateMemory, WritePlan
    from perdure.model.edge import MENTIONS, SUPERSEDED_BY, RelationEdge
    from perdure.model.event import EventStatus, EventType, OutboxEvent
    from perdure.model.node import ContextNode, ContextType, NodeStatus
    from perdure.model.record import IndexRecord, Level, SeedHit
    from perdure.model.request import RequestContext, Role, check_owner_space
    from perdure.model.uri import Uri, check_slug, slugify
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
