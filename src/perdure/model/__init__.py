"""What a memory is: frozen values, no I/O."""

from typing import TYPE_CHECKING

from perdure.plugins import exports

if TYPE_CHECKING:
    from perdure.model.candidate import CandidateMemory, WriteAction, WritePlan
    from perdure.model.node import (
        MENTIONS,
        SUPERSEDED_BY,
        ContextNode,
        ContextType,
        EventStatus,
        EventType,
        IndexRecord,
        Level,
        NodeStatus,
        OutboxEvent,
        RelationEdge,
        SeedHit,
    )
    from perdure.model.request import RequestContext, Role, check_owner_space
    from perdure.model.uri import Uri, check_slug, slugify
else:
    __getattr__ = exports(
        __name__,
        {
            "candidate": "WriteAction CandidateMemory WritePlan",
            "node": "MENTIONS SUPERSEDED_BY ContextNode ContextType EventStatus EventType "
            "NodeStatus OutboxEvent RelationEdge IndexRecord Level SeedHit",
            "request": "RequestContext Role check_owner_space",
            "uri": "Uri check_slug slugify",
        },
    )

__all__ = ["MENTIONS", "SUPERSEDED_BY", "ContextNode", "ContextType", "NodeStatus", "RelationEdge"]
__all__ += ["EventStatus", "EventType", "IndexRecord", "Level", "OutboxEvent", "SeedHit"]
__all__ += ["CandidateMemory", "RequestContext", "Role", "WriteAction", "WritePlan"]
__all__ += ["Uri", "check_owner_space", "check_slug", "slugify"]
