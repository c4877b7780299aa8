"""The memories that ship, opened for the tenancy machine."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

from perdure.context.links import Backlinks, ScannedLinks
from perdure.context.node_files import CONTENT
from perdure.context.nodes import Nodes, Relations
from perdure.context.reader import NodeReader
from perdure.context.tenancy import TenantNodes
from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.engine.namespaces import NamespaceManager
from perdure.engine.repair import Repair
from perdure.model import Uri
from perdure.storage import StorageBackend, TransactionalBackend
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import History
from perdure.testing.storage.storage_suite import tree
from tests.support.artifacts.memory_disk import MemoryDisk
from tests.support.context.index_outbox import IndexOutbox, TellingNodes, indexed_links
from tests.support.context.memory_outbox import MemoryOutbox
from tests.support.context.tenancy import World


def open_in_memory() -> World:
    inner = MemoryBackend()
    backend = Recorded(inner, History.on_disk(MemoryDisk()))
    outbox = MemoryOutbox(siblings=NodeReader(backend).siblings)
    nodes = TellingNodes(backend, outbox)
    world = _world(inner, backend, nodes, outbox, ScannedLinks(nodes))
    world.snapshot = lambda: (dict(inner._texts), set(inner._mtimes))
    return world


def open_on_disk() -> World:
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        inner = DeviceLocalBackend(str(folder / "root"), str(folder / "home"))
        backend = Recorded(inner, History.open(str(folder / "history")))
        opened.callback(backend.close)
        outbox = IndexOutbox(str(folder / "index"), siblings=NodeReader(backend).siblings)
        opened.callback(outbox.close)
        links = indexed_links(backend.history, backend, str(folder / "links"))
        opened.callback(links.index.close)
        nodes = TellingNodes(backend, outbox, backlinks=links)
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
        namespaces=NamespaceManager(backend, {"nodes": TenantNodes(backend), "events": outbox}),
        repair=Repair(nodes),
        edit=edit,
    )
