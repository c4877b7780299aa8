"""`perdure archive`."""

import click

from perdure import Memory
from perdure.surfaces.asking import ONE_OBJECT, as_json, with_reason
from perdure.surfaces.cli.caller import NAMES, with_memory
from perdure.surfaces.cli.completion import node_names
from perdure.surfaces.telling import tell_json, tell_line


@click.command("archive", epilog=NAMES)
@click.argument("node", shell_complete=node_names)
@with_reason
@as_json(ONE_OBJECT)
@with_memory
def archive_command(memory: Memory, node: str, reason: str, *, as_json: bool) -> None:
    """Put a node away, so that nobody finds it.

    Its files stay where they are. `perdure list --archived` shows it, and `perdure unarchive`
    takes it back into use.
    """
    uri = memory.archive(node, reason=reason)
    if as_json:
        tell_json({"uri": uri, "archived": True})
    else:
        tell_line(f"{uri} is archived")
