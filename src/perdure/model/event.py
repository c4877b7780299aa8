"""Something that happened to a node, on its way to the index."""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum

from perdure.dataclass import dataclass, field
from perdure.errors import InvalidValueError
from perdure.model.request import owner_space_at
from perdure.model.uri import Uri
from perdure.model.values import CUT, JSON, MAX_OVERVIEW, counted, encodable, frozen, moment, shown


class EventType(Enum):
    UPSERT_NODE = "upsert"
    UPSERT_DIRECTORY = "directory"
    DELETE_NODE = "delete"
    ARCHIVE_NODE = "archive"
    MOVE_NODE = "move"
    UPSERT_RELATIONS = "relation"


class EventStatus(Enum):
    PENDING = "pending"
    """Waiting, perhaps until a time."""
    PROCESSING = "processing"
    """A worker has it."""
    DEAD = "dead"
    """Tried too often; an operator decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEvent:
    """What a worker needs to bring the index up to date, without asking anybody else."""

    event_id: str
    event_type: EventType
    uri: str
    account_id: str
    owner_space: str = ""
    """Whose the node is, or was; by default as its URI says."""
    payload: Mapping[str, JSON] = field(default_factory=dict)
    created_at: datetime
    status: EventStatus = EventStatus.PENDING
    retry_count: int = 0
    next_retry_at: datetime | None = None
    last_error: str = ""
    """Why the last attempt failed; cut, however long it was."""

    def __post_init__(self) -> None:
        place = Uri.parse(self.uri)
        if not encodable(self.event_id, "event's id"):
            raise InvalidValueError("an event has an id. Fix: give it one.")
        for kind, value in ((EventType, self.event_type), (EventStatus, self.status)):
            if not isinstance(value, kind):
                raise InvalidValueError(f"{shown(value)} is no {kind.__name__}. Fix: use one.")
        if place.account != self.account_id:
            raise InvalidValueError(
                f"{self.uri!a} is not in the account {shown(self.account_id)}. "
                "Fix: register the event in the account of its node."
            )
        put = object.__setattr__
        put(self, "owner_space", owner_space_at(place, self.owner_space))
        put(self, "last_error", _told(self.last_error))
        put(self, "payload", frozen(self.payload, "payload"))
        put(self, "created_at", moment(self.created_at, "creation time"))
        counted(self.retry_count, "retry count")
        if self.next_retry_at is not None:
            put(self, "next_retry_at", moment(self.next_retry_at, "time of the next attempt"))


def _told(error: str) -> str:
    """Return the text of an error. Any text is accepted: to record a failure must not fail."""
    if not isinstance(error, str):
        raise InvalidValueError(f"the error is {shown(error)}. Fix: give what it says, as text.")
    text = error.encode(errors="backslashreplace").decode()
    return text if len(text) <= MAX_OVERVIEW else text[: MAX_OVERVIEW - len(CUT)] + CUT
