"""`move`, `archive`, `unarchive` and `delete`."""

import click

from perdure.errors import BrokenNodeError
from perdure.model import Uri
from perdure.surfaces.asking import ONE_OBJECT, as_json, ask_first, without_asking
from perdure.surfaces.nodes.completing import archived_names, node_names
from perdure.surfaces.nodes.describing import gist, version_line
from perdure.surfaces.nodes.opening import NAMES, Memory, with_memory
from perdure.surfaces.telling import shown, tell_json, tell_line

_REASON = click.option(
    "--reason", metavar="TEXT", default="", help="Why; it stands in the history."
)


@click.command("move", epilog=NAMES)
@click.argument("node", shell_complete=node_names)
@click.argument("to", shell_complete=node_names)
@_REASON
@as_json(ONE_OBJECT)
@with_memory
def move_command(memory: Memory, node: str, to: str, reason: str, *, as_json: bool) -> None:
    """Give a node another name.

    Links and edges to it follow, and so does its history. If TO is a folder, or ends with a slash,
    the node keeps its own name there.
    """
    old = memory.node_place(node)
    memory.node(old)
    new = _target(memory, old, to)
    memory.context.nodes.because(reason).move_node(str(old), str(new), memory.request)
    moved = memory.node(new)
    if as_json:
        tell_json({"from_uri": str(old), "uri": moved.uri, "version": moved.version})
    else:
        tell_line(version_line(moved.uri, moved.version))


def _target(memory: Memory, old: Uri, to: str) -> Uri:
    if not to.endswith("/"):
        new = memory.place(to)
        if new.is_node or not new.child(old.name).is_node:
            return memory.node_place(to)
    return memory.place(to).child(old.name)


@click.command("archive", epilog=NAMES)
@click.argument("node", shell_complete=node_names)
@_REASON
@as_json(ONE_OBJECT)
@with_memory
def archive_command(memory: Memory, node: str, reason: str, *, as_json: bool) -> None:
    """Put a node away, so that nobody finds it.

    Its files stay where they are. `perdure list --archived` shows it, and `perdure unarchive`
    takes it back into use.
    """
    place = memory.node_place(node)
    memory.node(place)
    memory.context.nodes.because(reason).archive_node(str(place), memory.request)
    if as_json:
        tell_json({"uri": str(place), "archived": True})
    else:
        tell_line(f"{place} is archived")


@click.command("unarchive", epilog=NAMES)
@click.argument("node", shell_complete=archived_names)
@_REASON
@as_json(ONE_OBJECT)
@with_memory
def unarchive_command(memory: Memory, node: str, reason: str, *, as_json: bool) -> None:
    """Take an archived node back into use."""
    place = memory.node_place(node)
    memory.context.nodes.because(reason).unarchive_node(str(place), memory.request)
    if as_json:
        tell_json({"uri": str(place), "archived": False})
    else:
        tell_line(f"{place} is in use again")


@click.command("delete", epilog=NAMES)
@click.argument("node", shell_complete=node_names)
@_REASON
@without_asking
@as_json(ONE_OBJECT)
@with_memory
def delete_command(memory: Memory, node: str, reason: str, *, yes: bool, as_json: bool) -> None:
    """Remove a node.

    Its edges go with it. What it was stays in the history: `perdure read NODE --at MOMENT`.
    """
    place = memory.node_place(node)
    memory.context.nodes.reach.changed(str(place), memory.request)
    if memory.is_nothing(place):
        raise memory.absent(place)
    if not yes:
        ask_first(f"this removes {place}: {_says(memory, place)}", "nothing was removed")
    memory.context.nodes.because(reason).delete_node(str(place), memory.request)
    if as_json:
        tell_json({"uri": str(place), "deleted": True})
    else:
        tell_line(f"{place} is deleted")


def _says(memory: Memory, place: Uri) -> str:
    try:
        stored = memory.reader.load(place)
    except BrokenNodeError:
        stored = None
    return "something that can't be read" if stored is None else shown(gist(stored.node))
