"""The memories that ship, opened for the tenancy machine."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

from holdfast.context.backlinks import Backlinks, ScannedLinks
from holdfast.context.contract import OutboxStore
from holdfast.context.files import CONTENT
from holdfast.context.followed import FollowedLinks
from holdfast.context.nodes import Nodes
from holdfast.context.outbox import MemoryOutbox, SqliteOutbox
from holdfast.context.reading import NodeReader
from holdfast.context.relations import Relations
from holdfast.context.tenants import NodeData
from holdfast.engine.namespaces import NamespaceManager
from holdfast.engine.repair import Repair
from holdfast.model import Uri
from holdfast.storage import StorageBackend, TransactionalBackend
from holdfast.storage.backends.device_local import DeviceLocalBackend
from holdfast.storage.backends.memory import MemoryBackend
from holdfast.storage.history import History
from holdfast.storage.wrappers.journaled import Journaled
from holdfast.storage.wrappers.recorded import Recorded
from holdfast.testing.artifacts.memory_disk import MemoryDisk
from holdfast.testing.context.tenancy import World
from holdfast.testing.storage.base import tree


def open_in_memory() -> World:
    inner = MemoryBackend()
    backend = Journaled(inner, MemoryDisk())
    outbox = MemoryOutbox(siblings=NodeReader(backend).siblings)
    nodes = Nodes(backend, outbox)
    world = _world(inner, backend, nodes, outbox, ScannedLinks(nodes))
    world.snapshot = lambda: (dict(inner._texts), set(inner._mtimes))
    return world


def open_on_disk() -> World:
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        inner = DeviceLocalBackend(str(folder / "root"), str(folder / "home"))
        backend = Recorded(inner, History.open(str(folder / "history")))
        opened.callback(backend.close)
        outbox = SqliteOutbox(str(folder / "outbox.sqlite"), siblings=NodeReader(backend).siblings)
        opened.callback(outbox.close)
        links = FollowedLinks(backend.history, str(folder / "links.sqlite"))
        opened.callback(links.close)
        nodes = Nodes(backend, outbox, backlinks=links)
        world = _world(inner, backend, nodes, outbox, links)
        world.close = opened.pop_all().close
        return world


def _world(
    inner: StorageBackend,
    backend: TransactionalBackend,
    nodes: Nodes,
    outbox: OutboxStore,
    links: Backlinks,
) -> World:
    def edit(uri: str, text: str) -> None:
        file = nodes.file(Uri.parse(uri), CONTENT)
        inner.write(file, inner.read(file) + text)

    return World(
        nodes=nodes,
        relations=Relations(nodes, links),
        outbox=outbox,
        snapshot=lambda: tree(inner),
        namespaces=NamespaceManager(backend, {"nodes": NodeData(backend), "events": outbox}),
        repair=Repair(nodes, outbox),
        edit=edit,
    )
