"""The verbs that take events in, the same wherever they are kept."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime

from perdure.context.outbox import drafts
from perdure.context.outbox.drafts import Siblings, no_siblings
from perdure.context.outbox.moments import Clock, micros, utc_now
from perdure.model import ContextNode, EventType, OutboxEvent, RequestContext
from perdure.model.values import moment


class Registrar(ABC):
    def __init__(self, *, clock: Clock = utc_now, siblings: Siblings = no_siblings) -> None:
        self._clock = clock
        self._siblings = siblings

    def register_write(self, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        return self._registered(drafts.of_write(node, ctx, self._time()))

    def register_writes(
        self, nodes: Iterable[ContextNode], ctx: RequestContext
    ) -> list[OutboxEvent]:
        now = self._time()
        events = [drafts.of_write(node, ctx, now) for node in nodes]
        self._add(events)
        return events

    def register_delete(
        self, uri: str, ctx: RequestContext, *, owner_space: str = ""
    ) -> OutboxEvent:
        return self._registered(
            drafts.of_removal(EventType.DELETE_NODE, uri, owner_space, ctx, self._time())
        )

    def register_archive(
        self, uri: str, ctx: RequestContext, *, owner_space: str = ""
    ) -> OutboxEvent:
        return self._registered(
            drafts.of_removal(EventType.ARCHIVE_NODE, uri, owner_space, ctx, self._time())
        )

    def register_move(self, from_uri: str, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        return self._registered(drafts.of_move(from_uri, node, ctx, self._time()))

    def register_relations(self, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        return self._registered(drafts.of_relations(node, ctx, self._time()))

    def register_directory(self, node: ContextNode, ctx: RequestContext) -> OutboxEvent:
        return self._registered(drafts.of_directory(node, self._siblings, ctx, self._time()))

    def _registered(self, event: OutboxEvent) -> OutboxEvent:
        self._add((event,))
        return event

    @abstractmethod
    def _add(self, events: Sequence[OutboxEvent]) -> None:
        """Keep events after all that are there: all of them, or none."""

    def _time(self) -> datetime:
        return moment(self._clock(), "clock's time")

    def _now(self) -> int:
        return micros(self._time())
