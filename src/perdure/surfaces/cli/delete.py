"""`perdure delete`."""

import click

from perdure import Memory
from perdure.surfaces.asking import ONE_OBJECT, as_json, ask_first, with_reason, without_asking
from perdure.surfaces.cli.caller import NAMES, with_memory
from perdure.surfaces.cli.completion import node_names
from perdure.surfaces.nodes.describing import gist
from perdure.surfaces.telling import shown, tell_json, tell_line


@click.command("delete", epilog=NAMES)
@click.argument("node", shell_complete=node_names)
@with_reason
@without_asking
@as_json(ONE_OBJECT)
@with_memory
def delete_command(memory: Memory, node: str, reason: str, *, yes: bool, as_json: bool) -> None:
    """Remove a node.

    Its edges go with it. What it was stays in the history: `perdure read NODE --at MOMENT`.
    """
    found = memory.deletable(node)
    if not yes:
        says = "something that can't be read" if found.node is None else shown(gist(found.node))
        ask_first(f"this removes {found.uri}: {says}", "nothing was removed")
    uri = memory.delete(node, reason=reason)
    if as_json:
        tell_json({"uri": uri, "deleted": True})
    else:
        tell_line(f"{uri} is deleted")
