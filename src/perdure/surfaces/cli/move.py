"""`perdure move`."""

import click

from perdure import Memory
from perdure.surfaces import out
from perdure.surfaces.cli.completion import node_command, node_names
from perdure.surfaces.cli.options import with_memory, with_reason
from perdure.surfaces.out import version_line


@node_command("move")
@click.argument("to", shell_complete=node_names)
@with_reason
@with_memory()
def move_command(memory: Memory, node: str, to: str, reason: str, *, as_json: bool) -> None:
    """Move or rename a node.

    Links and edges to it are updated, and its history follows. If TO is a folder, or ends with a
    slash, the node is moved into that folder under its own name.
    """
    old = memory.uri(node)
    moved = memory.move(node, to, reason=reason)
    out.answer(
        {"from_uri": old, "uri": moved.uri, "version": moved.version},
        version_line(moved.uri, moved.version),
        as_json=as_json,
    )
