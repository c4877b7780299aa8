"""`perdure move`."""

import click

from perdure import Memory
from perdure.surfaces.asking import ONE_OBJECT, as_json, with_reason
from perdure.surfaces.cli.caller import NAMES, with_memory
from perdure.surfaces.cli.completion import node_names
from perdure.surfaces.nodes.describing import version_line
from perdure.surfaces.telling import tell_json, tell_line


@click.command("move", epilog=NAMES)
@click.argument("node", shell_complete=node_names)
@click.argument("to", shell_complete=node_names)
@with_reason
@as_json(ONE_OBJECT)
@with_memory
def move_command(memory: Memory, node: str, to: str, reason: str, *, as_json: bool) -> None:
    """Give a node another name.

    Links and edges to it follow, and so does its history. If TO is a folder, or ends with a slash,
    the node keeps its own name there.
    """
    old = memory.uri(node)
    moved = memory.move(node, to, reason=reason)
    if as_json:
        tell_json({"from_uri": old, "uri": moved.uri, "version": moved.version})
    else:
        tell_line(version_line(moved.uri, moved.version))
