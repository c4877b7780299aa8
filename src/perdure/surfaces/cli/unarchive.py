"""`perdure unarchive`."""

from perdure import Memory
from perdure.surfaces import out
from perdure.surfaces.cli.completion import archived_names, node_command
from perdure.surfaces.cli.options import with_memory, with_reason


@node_command("unarchive", complete=archived_names)
@with_reason
@with_memory()
def unarchive_command(memory: Memory, node: str, reason: str, *, as_json: bool) -> None:
    """Take an archived node back into use."""
    uri = memory.unarchive(node, reason=reason)
    out.answer({"uri": uri, "archived": False}, f"{uri} is in use again", as_json=as_json)
