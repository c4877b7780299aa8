"""`perdure list`."""

import shutil
import sys

import click

from perdure import Entry, Memory
from perdure.surfaces.asking import OBJECT_PER_LINE, Moment, as_json, at_moment
from perdure.surfaces.cli.caller import NAMES, with_memory
from perdure.surfaces.nodes.completing import folder_names
from perdure.surfaces.nodes.describing import day, gist, told_node
from perdure.surfaces.telling import (
    counted,
    cut_to,
    mention,
    shown,
    tell_json,
    tell_table,
    width_of,
)

_LEAST_GIST = 20
_BROKEN = " (an edit by hand broke it; `perdure repair` says how)"


@click.command("list", epilog=NAMES)
@click.argument("folder", default="", shell_complete=folder_names)
@click.option("--archived", is_flag=True, help="The nodes below that are put away, instead.")
@at_moment
@as_json(OBJECT_PER_LINE)
@with_memory
def list_command(
    memory: Memory, folder: str, at: Moment | None, *, archived: bool, as_json: bool
) -> None:
    """List what is in a folder.

    Without FOLDER, that of your memories. Each line has the name, the version, the day of the last
    change, and the title or the abstract.
    """
    reading = memory if at is None else memory.at(at)
    found = reading.list(folder, archived=archived)
    if as_json:
        tell_json(*map(entry_json, found))
        return
    rows = [_row(each) for each in found]
    heads = ("name", "version", "updated", "what it says")
    columns = zip(heads, *rows, strict=False)
    room = room_beside(sum(max(map(width_of, column)) + 2 for column in columns))
    fitted = ((*row, cut_to(room, gist_of(each))) for row, each in zip(rows, found, strict=True))
    if not tell_table(heads, fitted):
        name = memory.name(memory.uri(folder))
        mention(f"nothing {'archived ' if archived else ''}is in {name}")


def _row(entry: Entry) -> tuple[str, str, str]:
    if entry.node is None:
        return f"{entry.name}/", "", ""
    return entry.name, str(entry.node.version), day(entry.node.updated_at)


def gist_of(entry: Entry) -> str:
    if entry.node is not None:
        return shown(gist(entry.node)) + (_BROKEN if entry.node.problems else "")
    return shown(entry.problem) if entry.problem else counted(entry.nodes, "node")


def room_beside(used: int) -> int:
    """Return how wide the last column may be; anything but a terminal gets all of it."""
    if not sys.stdout.isatty():
        return sys.maxsize
    return max(_LEAST_GIST, shutil.get_terminal_size().columns - used)


def entry_json(entry: Entry) -> dict[str, object]:
    unknown = ("title", "abstract", "status", "version", "created_at", "updated_at")
    node = (
        {
            "uri": entry.uri,
            **dict.fromkeys(unknown),
            "problems": [entry.problem] if entry.problem else [],
        }
        if entry.node is None
        else told_node(entry.node)
    )
    return {"kind": "folder" if entry.is_folder else "node", **node, "nodes": entry.nodes}
