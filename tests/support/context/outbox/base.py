"""What every part of the outbox suite starts from."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from perdure.context.events import Clock, Siblings
from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.model import ContextNode, OutboxEvent, RequestContext, Uri
from perdure.testing.suite import Suite

SURVIVES_REOPENING = "survives_reopening"
"""Opening the same place again finds what was registered."""
CONCURRENT_WORKERS = "concurrent_workers"
"""Several processes can open the same place at the same time."""

ACCOUNT = "acme"
ANA = RequestContext(ACCOUNT, "ana")
BOB = RequestContext(ACCOUNT, "bob")
START = datetime(2026, 3, 2, 10, 0, 0, 123_456, tzinfo=UTC)


class HandClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, time: datetime = START) -> None:
        self.time = time

    def __call__(self) -> datetime:
        return self.time

    def go_on(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class Neighbours:
    """Tells of the nodes that it was given, whatever folder is asked for."""

    def __init__(self) -> None:
        self.answer: list[tuple[str, str]] = []

    def __call__(self, _node: ContextNode, _ctx: RequestContext) -> list[tuple[str, str]]:
        return self.answer


class OutboxBase(Suite):
    hooks = frozenset({"promises", "open_outbox"})
    known_promises = frozenset({SURVIVES_REOPENING, CONCURRENT_WORKERS})

    @staticmethod
    def open_outbox(place: Path, clock: Clock, siblings: Siblings) -> OutboxStore:
        """Open the outbox under test, on the empty folder `place` or on something of its own.

        The same place opened again, also in another process, is the same outbox, if that is
        promised. A process of its own is given this function by its name.
        """
        raise NotImplementedError("say how to open the outbox under test")

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        return tmp_path

    @pytest.fixture
    def clock(self) -> HandClock:
        return HandClock()

    @pytest.fixture
    def neighbours(self) -> Neighbours:
        return Neighbours()

    @pytest.fixture
    def outbox(
        self, place: Path, clock: HandClock, neighbours: Neighbours
    ) -> Iterator[OutboxStore]:
        with closing(self.open_outbox(place, clock, neighbours)) as outbox:
            yield outbox


@contextmanager
def closing(outbox: OutboxStore) -> Iterator[OutboxStore]:
    """Close an outbox at the end, if it is one that can be closed."""
    try:
        yield outbox
    finally:
        close = getattr(outbox, "close", None)
        if close is not None:
            close()


def memory(slug: str = "tabs", ctx: RequestContext = ANA, **fields: Any) -> ContextNode:  # noqa: ANN401 - the fields' own types
    return ContextNode(uri=uri_of(slug, ctx), **fields)


def uri_of(slug: str = "tabs", ctx: RequestContext = ANA) -> str:
    place = Uri(ctx.account_id, ("users", ctx.user_id, "memories", "preference", slug))
    return str(place)


def written(outbox: OutboxStore, slug: str = "tabs", ctx: RequestContext = ANA) -> OutboxEvent:
    return outbox.register_write(memory(slug, ctx), ctx)


def pending(outbox: OutboxStore, account: str = ACCOUNT) -> list[str]:
    return [event.event_id for _, event in outbox.list_pending(account)]


def dead(outbox: OutboxStore, account: str = ACCOUNT) -> list[str]:
    return [event.event_id for _, event in outbox.list_dead(account)]


def all_of(outbox: OutboxStore, account: str = ACCOUNT) -> set[str]:
    return {event.event_id for _, event in outbox.list_unfinished(account)}


def bury(outbox: OutboxStore, event: OutboxEvent, error: str = "") -> None:
    """Let an event fail once, and put it aside."""
    outbox.increment_retry(event, event.uri, error=error)
    outbox.move_to_dlq(event, event.uri)
