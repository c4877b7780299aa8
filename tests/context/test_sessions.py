"""A session is whose its first node says, to the last letter of the id."""

from pathlib import Path

import pytest

from perdure.app import open_context
from perdure.errors import AccessDeniedError
from perdure.model import ContextNode, RequestContext


def test_an_id_that_ends_in_a_space_keeps_its_session_for_itself(tmp_path: Path) -> None:
    spaced = RequestContext("local", "ana ", session_id="s")
    first, second = (f"ctx://local/sessions/s/{name}" for name in ("one", "two"))
    with open_context({"HOME": str(tmp_path), "USER": "root"}) as memory:
        nodes = [ContextNode(uri=uri, content="x") for uri in (first, second)]

        memory.nodes.write_nodes(nodes, spaced)

        for uri in (first, second):
            assert memory.nodes.read_node(uri, spaced).owner_space == "user:ana "
            with pytest.raises(AccessDeniedError):
                memory.nodes.read_node(uri, RequestContext("local", "ana", session_id="s"))
