"""What people do to the folders of their memory, and what becomes of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.app import Context, open_context
from perdure.engine.repair import RepairState
from perdure.errors import BrokenNodeError
from perdure.model import ContextNode

pytestmark = pytest.mark.usefixtures("agfs")

URI = "ctx://local/users/ana/memories/note/tea"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Context]:
    with open_context({"HOME": str(tmp_path), "USER": "ana"}) as context:
        context.nodes.write_node(ContextNode(uri=URI, content="green"), context.request)
        yield context


@pytest.fixture
def users(tmp_path: Path) -> Path:
    return tmp_path / ".perdure/memory/accounts/local/users"


def test_bytes_that_are_not_text_are_not_overwritten(memory: Context, users: Path) -> None:
    content = users / "ana/memories/note/tea/content.md"
    content.write_bytes(b"caf\xe9")
    node = memory.nodes.read_node(URI, memory.request)

    with pytest.raises(BrokenNodeError, match="not UTF-8 text"):
        memory.nodes.write_node(node.revised(content="black"), memory.request)

    assert content.read_bytes() == b"caf\xe9"
    assert node.content == "green"


def test_a_node_belongs_to_whom_its_folder_says(memory: Context, users: Path) -> None:
    (users / "ana").rename(users / "bea")

    moved = memory.nodes.read_node(URI.replace("ana", "bea"), memory.request)

    assert (moved.owner_space, moved.content) == ("user:bea", "green")


def test_a_link_in_place_of_a_content_is_for_its_owner_to_settle(
    memory: Context, users: Path
) -> None:
    folder = users / "ana/memories/note/link"
    folder.mkdir()
    (folder / "content.md").symlink_to(users)

    for _ in range(2):
        (found,) = memory.repair.run(memory.request)
        assert found.state is RepairState.BROKEN
