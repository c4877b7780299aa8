"""Outboxes as they ship: beside an index, and with the log of nodes that are written."""

import sqlite3
from collections.abc import Callable

from perdure.context.events import Clock, Siblings, no_siblings, utc_now
from perdure.context.links import Backlinks
from perdure.context.nodes import NodeDraft, Nodes
from perdure.context.reader import NodeReader
from perdure.engine.indexing.follower import IndexFollower, LogReader
from perdure.engine.indexing.indexer import Indexer
from perdure.engine.indexing.outbox_store import LogFeed, OutboxStore
from perdure.files import Closeable
from perdure.index.sql import EVENT_TABLE, Answer
from perdure.index.sqlite_index import SqliteIndex
from perdure.model import NodeStatus, RequestContext
from perdure.model.values import JSON
from perdure.sqlite import Schema, SqliteFile
from perdure.storage import TransactionalBackend
from perdure.storage.text_history import History

VERSION = 1
TABLES = Schema(
    name="the table of failures",
    version=VERSION,
    statements=(*EVENT_TABLE, f"PRAGMA user_version = {VERSION}"),
    loss="the index follows the log, so no change is lost",
)


class IndexOutbox(OutboxStore):
    """The events in the database of an index, without a log."""

    def __init__(
        self, path: str, *, clock: Clock = utc_now, siblings: Siblings = no_siblings
    ) -> None:
        self.index = SqliteIndex(path)
        super().__init__(lambda _: self.index, clock=clock, siblings=siblings)
        self.close: Callable[[], object] = self.index.close


class SqliteOutbox(Closeable, OutboxStore):
    """The events in a database of their own that nothing heals: it tells of what is wrong."""

    def __init__(
        self, path: str, *, clock: Clock = utc_now, siblings: Siblings = no_siblings
    ) -> None:
        super().__init__(lambda _: self, clock=clock, siblings=siblings)
        self._file = SqliteFile(path, TABLES)

    def close(self) -> None:
        self._file.close()

    def read_events(
        self, account_id: str, question: Callable[[sqlite3.Connection], Answer], absent: Answer
    ) -> Answer:
        del account_id, absent
        with self._file.connection() as db:
            return question(db)

    def change_events(
        self,
        account_id: str,
        action: Callable[[sqlite3.Connection], Answer],
        *,
        outlasts_power: bool = False,
    ) -> Answer:
        del account_id
        with self._file.transaction(durable=outlasts_power) as db:
            return action(db)

    def wipe_events(self, account_id: str) -> None:
        del account_id
        self._file.wipe()


class LoggedOutbox(OutboxStore):
    """The log of a history as events, for an index that follows it."""

    def __init__(
        self,
        history: History,
        reader: NodeReader,
        *,
        clock: Clock = utc_now,
        siblings: Siblings = no_siblings,
        index: SqliteIndex | None = None,
    ) -> None:
        self.index = SqliteIndex.in_memory() if index is None else index
        self._history = history
        # From -1 on, so that events are as for an index that exists from the start.
        feed = LogFeed(history, reader, lambda account: self.index.cursor(account) or -1)
        super().__init__(lambda _: self.index, feed, clock=clock, siblings=siblings)
        self.close: Callable[[], object] = self.index.close

    def pass_by(self, account_id: str) -> None:
        """Let the index have taken in all of an account, and forget its events."""
        self.index.replace(account_id, {}, cursor=self._history.position())
        self.delete_account_data(account_id)


def indexed_links(history: History, backend: TransactionalBackend, folder: str) -> IndexFollower:
    """Return links as they ship: in an index that follows the log."""
    reader = NodeReader(backend)
    log, index = LogReader(history, reader), SqliteIndex(folder)
    return IndexFollower(log, index, lambda: Indexer(reader, None))


class TellingNodes(Nodes):
    """Nodes that register what they write, so that an outbox without a log has events."""

    def __init__(
        self,
        backend: TransactionalBackend,
        outbox: OutboxStore,
        *,
        backlinks: Backlinks | None = None,
        clock: Clock = utc_now,
    ) -> None:
        super().__init__(backend, backlinks=backlinks, clock=clock)
        self._outbox = outbox

    def change(
        self, plan: Callable[[NodeDraft], None], ctx: RequestContext, **more: JSON
    ) -> NodeDraft:
        draft = super().change(plan, ctx, **more)
        active = [node for node in draft.written if node.status is NodeStatus.ACTIVE]
        self._outbox.register_writes(active, ctx)
        return draft
