"""`perdure delete`."""

from perdure import Memory
from perdure.surfaces import out
from perdure.surfaces.cli.completion import node_command
from perdure.surfaces.cli.options import (
    ask_first,
    with_memory,
    with_reason,
    without_asking,
)
from perdure.surfaces.out import gist, shown


@node_command("delete")
@with_reason
@without_asking
@with_memory()
def delete_command(memory: Memory, node: str, reason: str, *, yes: bool, as_json: bool) -> None:
    """Delete a node.

    Its edges are deleted too. Its versions stay in the history: `perdure read NODE --at MOMENT`.
    """
    found = memory.deletable(node)
    if not yes:
        about = "a node that can't be read" if found.node is None else shown(gist(found.node))
        ask_first(f"this deletes {found.uri}: {about}", "nothing was deleted")
    uri = memory.delete(node, reason=reason)
    out.answer({"uri": uri, "deleted": True}, f"{uri} is deleted", as_json=as_json)
