"""`perdure archive` and `perdure unarchive`."""

from perdure import Memory
from perdure.surfaces import out
from perdure.surfaces.cli.completion import archived_names, node_command
from perdure.surfaces.cli.options import with_memory, with_reason


@node_command("archive")
@with_reason
@with_memory()
def archive_command(memory: Memory, node: str, reason: str, *, as_json: bool) -> None:
    """Archive a node, so that recall no longer finds it.

    Its files stay where they are. `perdure list --archived` lists archived nodes, and
    `perdure unarchive` returns one to use.
    """
    uri = memory.archive(node, reason=reason)
    out.answer({"uri": uri, "archived": True}, f"{uri} is archived", as_json=as_json)


@node_command("unarchive", complete=archived_names)
@with_reason
@with_memory()
def unarchive_command(memory: Memory, node: str, reason: str, *, as_json: bool) -> None:
    """Return an archived node to use."""
    uri = memory.unarchive(node, reason=reason)
    out.answer({"uri": uri, "archived": False}, f"{uri} is in use again", as_json=as_json)
