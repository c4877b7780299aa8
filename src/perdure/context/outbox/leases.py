"""What holds for leases wherever they are kept."""

from perdure.context.outbox.moments import SECOND
from perdure.errors import InvalidValueError, LeaseError
from perdure.model import OutboxEvent
from perdure.model.values import counted, encodable

MAX_SECONDS = 366 * 24 * 3600
MAX_ERROR = 2_000
"""Characters of an error that are kept with an event."""


def lease_end(now: int, timeout_seconds: int) -> int:
    """Return when a lease that starts now lapses; one that can't be is refused."""
    if counted(timeout_seconds, "number of seconds of a lease", least=1) > MAX_SECONDS:
        raise InvalidValueError(
            f"a lease of {timeout_seconds} seconds is too long. Fix: {MAX_SECONDS} are the most."
        )
    return now + timeout_seconds * SECOND


def check_worker(worker_id: object) -> str:
    if not isinstance(worker_id, str) or not worker_id:
        raise InvalidValueError(f"{worker_id!r} is no worker. Fix: give it an id of text.")
    return encodable(worker_id, "worker's id")


def check_event_of(event: OutboxEvent, node_uri: str) -> None:
    """Refuse to do to one node's event what was meant for another's."""
    if event.uri != node_uri:
        raise InvalidValueError(
            f"the event {event.event_id!a} is of {event.uri!a}, not of {str(node_uri)[:200]!a}. "
            "Fix: give the event with the URI that it was listed with."
        )


def kept_error(error: str) -> str:
    """Return what is kept of an error's text. Nothing is refused: to note it must not fail."""
    return str(error)[:MAX_ERROR].encode(errors="replace").decode()


def lost(event: OutboxEvent, worker_id: str) -> LeaseError:
    return LeaseError(
        f"the event {event.event_id!a} of {event.uri!a} is leased to another worker than "
        f"{worker_id[:80]!a} by now; nothing was changed. Fix: leave it to that one, and next time "
        "extend the lease before it lapses."
    )
