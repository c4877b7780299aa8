"""A memory opened on a ground, with all that works on it; and an index that is a dictionary."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

from perdure.artifacts import CID
from perdure.context.contract import TenantStore
from perdure.context.nodes import Nodes, Relations
from perdure.context.tenancy import TenantNodes
from perdure.engine.indexing.follower import LogReader
from perdure.engine.namespaces import NamespaceManager
from perdure.engine.repair import Repair
from perdure.errors import BrokenNodeError, NodeNotFoundError
from perdure.model import ContextNode, EventType, OutboxEvent, RequestContext, Role, Uri
from perdure.storage.committer import Committer
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import History
from tests.support.context.crashes import (
    FolderGround,
    Ground,
    MemoryGround,
    NotesInFolder,
    NotesInMemory,
)
from tests.support.context.index_outbox import IndexOutbox, LoggedOutbox, TellingNodes

ACCOUNT = "acme"
ANA = RequestContext(ACCOUNT, "ana")
ADMIN = RequestContext(ACCOUNT, "boss", role=Role.ADMIN)
ROOT = RequestContext(ACCOUNT, "root", role=Role.ROOT)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
EVENING = datetime(2026, 3, 2, 20, tzinfo=UTC)

GROUNDS: Mapping[str, Callable[[Path], Ground]] = {
    "memory": MemoryGround,
    "device-local": FolderGround,
    "notes in memory": NotesInMemory,
    "notes on device-local": NotesInFolder,
}

WORKER_NEEDS = {
    "version",
    "cid",
    "title",
    "abstract",
    "overview",
    "context_type",
    "category",
    "level",
    "owner_space",
    "created_at",
    "updated_at",
}


class DictIndex:
    """What a worker would make of the events, without any search."""

    def __init__(self, contents: Mapping[str, CID] | None = None) -> None:
        self._contents = dict(contents or {})

    def contents(self, account_id: str) -> Mapping[str, CID]:
        return {uri: cid for uri, cid in self._contents.items() if _is_of(uri, account_id)}

    def take(self, events: Iterable[OutboxEvent]) -> "DictIndex":
        """Return the index as it is after these."""
        contents = dict(self._contents)
        for event in events:
            assert event.payload["owner_space"] == event.owner_space
            if event.event_type in {EventType.UPSERT_NODE, EventType.MOVE_NODE}:
                assert event.payload.keys() >= WORKER_NEEDS
                contents.pop(str(event.payload.get("from_uri")), None)
                contents[event.uri] = CID.parse(str(event.payload["cid"]))
            elif event.event_type in {EventType.DELETE_NODE, EventType.ARCHIVE_NODE}:
                contents.pop(event.uri, None)
        return DictIndex(contents)


def _is_of(uri: str, account_id: str) -> bool:
    return Uri.parse(uri).account == account_id


@dataclass(frozen=True, slots=True)
class Opened:
    backend: Recorded
    nodes: Nodes
    relations: Relations
    outbox: IndexOutbox | LoggedOutbox
    repair: Repair
    namespaces: NamespaceManager

    def read_all(self, uris: Iterable[str], ctx: RequestContext = ADMIN) -> dict[str, object]:
        """Return the nodes as `read_node` has them; those not in use as they lie there."""
        return {uri: self._read(uri, ctx) for uri in uris}

    def _read(self, uri: str, ctx: RequestContext) -> ContextNode | str | None:
        try:
            return self.nodes.read_node(uri, ctx)
        except BrokenNodeError:
            return "broken"
        except NodeNotFoundError:
            stored = self.nodes.load(Uri.parse(uri))
            return None if stored is None else stored.node

    def active(self, account_id: str = ACCOUNT) -> dict[str, CID]:
        """Return the content of each node that is in use."""
        places = self.nodes.walk(Uri(account_id))
        return {
            str(place): CID.of(self.nodes.active(place).node.content.encode())
            for place in places
            if self.nodes.is_active(place)
        }

    def events(self, account_id: str = ACCOUNT) -> list[OutboxEvent]:
        unfinished = self.outbox.list_unfinished(account_id)
        return [self.outbox._with_payload(event) for _, event in unfinished]

    def drain(self, account_id: str = ACCOUNT) -> list[OutboxEvent]:
        """Take all events out, as a worker does."""
        events = self.events(account_id)
        for event in events:
            self.outbox.mark_done(event, event.uri)
        if isinstance(self.outbox, LoggedOutbox):
            self.outbox.pass_by(account_id)
        return events


@contextmanager
def opened(
    ground: Ground,
    *,
    now: datetime = NOON,
    settle: bool = True,
    logged: bool = True,
    holders: Callable[[Mapping[str, TenantStore]], Mapping[str, TenantStore]] = dict,
) -> Iterator[Opened]:
    """Open a memory as a process that starts does, and let go of it as one that ends.

    Without `settle` it is one that was open all the while, and found nothing to settle. Events are
    those of the log; or, if not `logged`, registered by the nodes.
    """
    texts, disk = ground.texts(), ground.disk()
    with nullcontext() if settle else patch.object(Committer, "settle", lambda _: None):
        backend = Recorded(texts, History.on_disk(disk))
    outbox: IndexOutbox | LoggedOutbox = ground.outbox()
    nodes: Nodes = TellingNodes(backend, outbox, clock=lambda: now)
    if logged:
        nodes = Nodes(backend, clock=lambda: now)
        outbox = LoggedOutbox(backend.history, nodes, index=outbox.index)
    retained: Mapping[str, TenantStore] = {"nodes": TenantNodes(backend), "events": outbox}
    try:
        yield Opened(
            backend,
            nodes,
            Relations(nodes, nodes._backlinks),
            outbox,
            Repair(nodes),
            NamespaceManager(backend, holders(retained)),
        )
    finally:
        outbox.close()
        backend.close()


def check_logged(memory: Opened, before: Mapping[str, CID], position: int, moment: str) -> None:
    """Demand that the log names each node whose content changed: an index follows the log."""
    now = memory.active()
    changed = {uri for uri in now.keys() | before.keys() if now.get(uri) != before.get(uri)}
    logged = LogReader(memory.backend.history, memory.nodes).changed("acme", position)
    assert changed <= set(map(str, logged)), moment


def memory_uri(slug: str, user: str = "ana", account: str = ACCOUNT) -> str:
    return str(Uri(account, ("users", user, "memories", "preference", slug)))


def note(slug: str, text: str = "first", **more: object) -> ContextNode:
    """Return a node that says the same in each of its parts."""
    fields: dict[str, object] = {
        "abstract": f"{text}, in short",
        "overview": f"{text}, in some words",
    }
    fields |= more
    uri = fields.pop("uri", memory_uri(slug))
    return ContextNode(uri=str(uri), content=f"# {slug}\n\n{text}\n", **fields)  # type: ignore[arg-type] # the fields' own types
