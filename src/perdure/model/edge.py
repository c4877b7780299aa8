"""An edge: how one node stands to another."""

from dataclasses import dataclass
from datetime import UTC, datetime

from perdure.errors import InvalidValueError
from perdure.model.uri import Uri, check_slug
from perdure.model.values import MAX_ABSTRACT, bounded, moment, share

MENTIONS = "mentions"
"""The type of the edges that `[[links]]` in a content are; nobody writes those."""

SUPERSEDED_BY = "superseded_by"
"""The type of the edges from what held once to what holds in its place."""

_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class RelationEdge:
    """Directed and weighted. Start, target and type tell it from every other."""

    from_uri: str
    to_uri: str
    relation_type: str
    weight: float = 1.0
    reason: str = ""
    created_at: datetime = _EPOCH
    """Set when it is first written."""

    def __post_init__(self) -> None:
        start, target = Uri.parse(self.from_uri), Uri.parse(self.to_uri)
        for place in (start, target):
            if not place.is_node:
                raise InvalidValueError(
                    f"{str(place)!a} is a folder of nodes. Fix: relate a node in it."
                )
        if start.account != target.account:
            raise InvalidValueError(
                f"an edge from {self.from_uri!a} to {self.to_uri!a} would leave its account. "
                "Fix: relate nodes of one account."
            )
        if start == target:
            raise InvalidValueError(
                f"{self.from_uri!a} can't be related to itself. Fix: name another node."
            )
        check_slug(self.relation_type, "a type of relation")
        put = object.__setattr__
        put(self, "weight", share(self.weight, "weight"))
        put(self, "reason", bounded(self.reason, MAX_ABSTRACT, "reason"))
        put(self, "created_at", moment(self.created_at, "creation time"))

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.from_uri, self.to_uri, self.relation_type
