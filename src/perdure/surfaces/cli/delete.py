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
    """Remove a node.

    Its edges go with it. What it was stays in the history: `perdure read NODE --at MOMENT`.
    """
    found = memory.deletable(node)
    if not yes:
        says = "something that can't be read" if found.node is None else shown(gist(found.node))
        ask_first(f"this removes {found.uri}: {says}", "nothing was removed")
    uri = memory.delete(node, reason=reason)
    out.answer({"uri": uri, "deleted": True}, f"{uri} is deleted", as_json=as_json)
