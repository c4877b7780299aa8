"""`perdure archive`."""

from perdure import Memory
from perdure.surfaces import out
from perdure.surfaces.cli.completion import node_command
from perdure.surfaces.cli.options import with_memory, with_reason


@node_command("archive")
@with_reason
@with_memory()
def archive_command(memory: Memory, node: str, reason: str, *, as_json: bool) -> None:
    """Put a node away, so that nobody finds it.

    Its files stay where they are. `perdure list --archived` shows it, and `perdure unarchive`
    takes it back into use.
    """
    uri = memory.archive(node, reason=reason)
    out.answer({"uri": uri, "archived": True}, f"{uri} is archived", as_json=as_json)
