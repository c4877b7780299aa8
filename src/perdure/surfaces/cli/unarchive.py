"""`perdure unarchive`."""

import click

from perdure import Memory
from perdure.surfaces.asking import ONE_OBJECT, as_json, with_reason
from perdure.surfaces.cli.caller import NAMES, with_memory
from perdure.surfaces.cli.completion import archived_names
from perdure.surfaces.telling import tell_json, tell_line


@click.command("unarchive", epilog=NAMES)
@click.argument("node", shell_complete=archived_names)
@with_reason
@as_json(ONE_OBJECT)
@with_memory
def unarchive_command(memory: Memory, node: str, reason: str, *, as_json: bool) -> None:
    """Take an archived node back into use."""
    uri = memory.unarchive(node, reason=reason)
    if as_json:
        tell_json({"uri": uri, "archived": False})
    else:
        tell_line(f"{uri} is in use again")
