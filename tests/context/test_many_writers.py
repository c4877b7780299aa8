"""Eight processes write the same nodes: no update is lost, none is half seen, each is told once."""

import secrets
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from perdure.context.nodes import Nodes
from perdure.context.note_names import NoteNames
from perdure.context.note_table import NoteTable
from perdure.context.notes import NotesLayout
from perdure.errors import (
    ConcurrentModificationError,
    NodeExistsError,
    NodeNotFoundError,
    VersionMismatchError,
)
from perdure.model import ContextNode, RelationEdge
from perdure.storage import LockTiming, StorageBackend
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import History
from perdure.testing.storage.processes import finish, start
from tests.context.opened import ACCOUNT, ANA, memory_uri
from tests.support.context.index_outbox import LoggedOutbox
from tests.tiers import searched

WRITERS = 8
WRITES = searched(500)
READERS = 2
PATIENCE = 60
"""Seconds for each writer, on a machine where disks are slow and cores are few."""
URIS = tuple(memory_uri(f"node-{number}") for number in range(12))
TARGET = memory_uri("target")
AS_NOTES = "as-notes"
"""A file that tells every process that nodes are notes here."""


@contextmanager
def opened(folder: Path) -> Iterator[tuple[Nodes, LoggedOutbox]]:
    texts = DeviceLocalBackend(str(folder / "texts"), str(folder / "home"), LockTiming(timeout=100))
    history = History.open(str(folder / "home" / "history"))
    layout: StorageBackend = texts
    if (folder / AS_NOTES).exists():
        layout = NotesLayout(
            texts, NoteTable(str(folder / "places.sqlite")), NoteNames(ACCOUNT, "ana")
        )
    with Recorded(layout, history) as backend:
        nodes = Nodes(backend)
        yield nodes, LoggedOutbox(history, nodes)


def token_in(uri: str, token: str) -> ContextNode:
    """Return a node that says the same in each of its parts."""
    edge = RelationEdge(uri, TARGET, "supports", 0.5, token)
    return ContextNode(
        uri=uri,
        content=f"{token}\n" * 40,
        abstract=token,
        overview=token * 3,
        metadata={"token": token},
        relations=(edge,),
    )


def tokens(node: ContextNode) -> set[str]:
    return {
        *node.content.split(),
        node.abstract,
        node.overview[: len(node.overview) // 3],
        str(node.metadata["token"]),
        *(edge.reason for edge in node.relations),
    }


def update(nodes: Nodes, uri: str) -> None:
    """Write the next version of a node, whoever else does; read again for each that was faster."""
    while True:
        fresh = token_in(uri, secrets.token_hex(8))
        try:
            before = nodes.read_node(uri, ANA)
        except NodeNotFoundError:
            following = fresh
        else:
            following = before.revised(
                content=fresh.content,
                abstract=fresh.abstract,
                overview=fresh.overview,
                metadata=fresh.metadata,
                relations=fresh.relations,
            )
        try:
            nodes.write_node(following, ANA)
        except (VersionMismatchError, ConcurrentModificationError, NodeExistsError):
            continue
        return


def write(folder: Path, number: int) -> None:
    with opened(folder) as (nodes, _):
        for lock in range(WRITES):
            update(nodes, URIS[(number + lock * 5) % len(URIS)])


def read(folder: Path) -> None:
    """Read all nodes until somebody says that it is enough; none may ever be torn."""
    versions: Counter[str] = Counter()
    with opened(folder) as (nodes, _):
        while not (folder / "enough").exists():
            time.sleep(0.01)  # leaves the two cores to those who write
            for uri in URIS:
                try:
                    node = nodes.read_node(uri, ANA)
                except NodeNotFoundError:
                    assert not versions[uri], "a node went away"
                    continue
                assert len(tokens(node)) == 1, node
                assert node.version >= versions[uri], "a node became older"
                assert not node.problems
                versions[uri] = node.version
    assert sum(versions.values()) > len(URIS), "it saw nothing"


@pytest.mark.search
@pytest.mark.timeout(600)
@pytest.mark.parametrize("layout", ["agfs", "notes"])
def test_no_update_is_lost_torn_or_registered_twice(tmp_path: Path, layout: str) -> None:
    if layout == "notes":
        (tmp_path / AS_NOTES).touch()
    with opened(tmp_path) as (nodes, _):
        nodes.write_node(ContextNode(uri=TARGET, content="target"), ANA)
    began = time.monotonic()
    readers = [start(partial(read, tmp_path)) for _ in range(READERS)]

    writers = [start(partial(write, tmp_path, number)) for number in range(WRITERS)]
    for writer in writers:
        writer.join(PATIENCE)
    finish(writers)

    (tmp_path / "enough").touch()
    finish(readers)
    print(f"{WRITERS} x {WRITES} writes took {time.monotonic() - began:.1f} s")  # noqa: T201 - a figure to look at
    with opened(tmp_path) as (nodes, outbox):
        versions = [nodes.read_node(uri, ANA).version for uri in URIS]
        assert sum(versions) == WRITERS * WRITES
        reported = Counter(uri for uri, _ in outbox.list_pending(ACCOUNT))
        assert reported == {TARGET: 1} | dict(zip(URIS, versions, strict=True))
        assert [len(tokens(nodes.read_node(uri, ANA))) for uri in URIS] == [1] * len(URIS)
