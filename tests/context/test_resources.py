"""What an account shares may lie in any depth: a node can have nodes below it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.app import Context, open_context
from perdure.model import ContextNode

SHARED = "ctx://local/resources"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Context]:
    with open_context({"HOME": str(tmp_path), "USER": "ana"}) as context:
        yield context


def write(memory: Context, *uris: str) -> None:
    memory.nodes.write_nodes([ContextNode(uri=uri, content="x") for uri in uris], memory.request)


def listed(memory: Context, uri: str) -> list[str]:
    return memory.nodes.list_children(uri, memory.request)


def test_the_folders_that_led_to_a_deleted_node_go_with_it(memory: Context) -> None:
    write(memory, f"{SHARED}/a/b/c")

    memory.nodes.delete_node(f"{SHARED}/a/b/c", memory.request)

    assert listed(memory, SHARED) == []


def test_a_folder_that_still_holds_a_node_stays(memory: Context) -> None:
    write(memory, f"{SHARED}/a/b/c", f"{SHARED}/a/d")

    memory.nodes.delete_node(f"{SHARED}/a/b/c", memory.request)

    assert listed(memory, f"{SHARED}/a") == [f"{SHARED}/a/d"]


def test_an_archived_node_does_not_hide_the_nodes_below_it(memory: Context) -> None:
    write(memory, f"{SHARED}/p", f"{SHARED}/p/q", f"{SHARED}/r")

    memory.nodes.archive_node(f"{SHARED}/p", memory.request)
    memory.nodes.archive_node(f"{SHARED}/r", memory.request)

    assert listed(memory, SHARED) == [f"{SHARED}/p"]
    assert listed(memory, f"{SHARED}/p") == [f"{SHARED}/p/q"]


def test_who_only_reads_needs_no_index(memory: Context, tmp_path: Path) -> None:
    write(memory, f"{SHARED}/a")
    memory.memory.settle()
    (index,) = tmp_path.rglob("index/*/*.sqlite")
    memory.close()
    index.write_bytes(b"garbage" * 1000)

    with open_context({"HOME": str(tmp_path), "USER": "ana"}) as again:
        assert again.reader.read_node(f"{SHARED}/a", again.request).content == "x"
        assert again.relation_reader.get_edges(f"{SHARED}/a", again.request) == []
