"""How often a failed event is tried again, and when."""

from datetime import datetime, timedelta

from perdure.context.contract import OutboxStore
from perdure.model import OutboxEvent

MAX_RETRY = 5
"""So many retries are allowed; the failure of the last one buries the event."""
FIRST_WAIT_SECONDS = 1
LONGEST_WAIT_SECONDS = 60


def backoff(failures: int) -> timedelta:
    """Return how long to wait after one more failure on top of so many: twice as long each time."""
    doublings = min(failures, LONGEST_WAIT_SECONDS.bit_length())
    return timedelta(seconds=min(FIRST_WAIT_SECONDS << doublings, LONGEST_WAIT_SECONDS))


def fail(  # noqa: PLR0913, PLR0917 - what a worker has in its hands
    outbox: OutboxStore,
    event: OutboxEvent,
    uri: str,
    error: str,
    now: datetime,
    worker_id: str,
) -> bool:
    """Note that work on an event failed: it is tried again later, or it is dead.

    Return whether it is dead. `LeaseError` if another worker has it by now.
    """
    # Counted first, so that the dead-letter queue tells the last error and every failure. Until
    # the second step nobody else can take it, for it is to be tried later.
    wait = backoff(event.retry_count)
    outbox.increment_retry(event, uri, now + wait, worker_id=worker_id, error=error)
    dies = event.retry_count + 1 > MAX_RETRY
    if dies:
        outbox.move_to_dlq(event, uri, worker_id=worker_id)
    return dies
