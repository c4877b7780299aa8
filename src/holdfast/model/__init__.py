"""What a memory is: frozen values, no I/O."""

from holdfast.model.candidate import Action, CandidateMemory, WritePlan
from holdfast.model.edge import MENTIONS, RelationEdge
from holdfast.model.event import EventStatus, EventType, OutboxEvent
from holdfast.model.node import ContextNode, ContextType, NodeStatus
from holdfast.model.record import IndexRecord, Level, SeedHit
from holdfast.model.request import RequestContext, Role, check_owner_space
from holdfast.model.uri import Uri, check_slug, slugify

__all__ = [
    "MENTIONS",
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
