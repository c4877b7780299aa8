"""`perdure tree`."""

from collections.abc import Iterator, Sequence

import click

from perdure import Entry, Memory
from perdure.app.projects import identity_named
from perdure.model import Uri
from perdure.model.request import spelled
from perdure.surfaces import out
from perdure.surfaces.cli.completion import folder_names
from perdure.surfaces.cli.list import entry_json, gist_of, room_beside
from perdure.surfaces.cli.options import NAMES, OBJECT_PER_LINE, Moment, at_moment, with_memory
from perdure.surfaces.out import counted, cut_to, padded_to, styled, width_of

_WIDEST_NAME = 60


@click.command("tree", epilog=NAMES)
@click.argument("folder", default="", shell_complete=folder_names)
@click.option("--project", metavar="NAME", help="Only nodes of a project, by name or folder.")
@at_moment
@with_memory(OBJECT_PER_LINE)
def tree_command(
    memory: Memory, folder: str, at: Moment | None, project: str | None, *, as_json: bool
) -> None:
    """Show all nodes below a folder.

    FOLDER defaults to the folder of your memories; / is the whole account.
    """
    of = None if project is None else memory.projects.at(identity_named(project))
    found = (memory if at is None else memory.at(at)).tree(folder, project=of)
    if as_json:
        out.json(*(entry_json(each) for each in _every(found.below)))
        return
    lines = list(_lines(found.below, ""))
    widest = min(max((width_of(name) for name, _ in lines), default=0), _WIDEST_NAME)
    room = room_beside(widest + 2)
    out.write(f"{styled(found.name, bold=True)}\n")
    for name, entry in lines:
        gist = cut_to(room, gist_of(entry))
        dim = styled(gist, dim=True) if entry.node is None else gist
        out.write(f"{padded_to(widest, name)}  {dim}\n")
    out.write(f"\n{counted(found.nodes, 'node')}\n")
    if not folder and project is None and at is None and memory.has_resources():
        out.mention("notes and other resources: `perdure tree resources`")


def _every(entries: Sequence[Entry]) -> Iterator[Entry]:
    for entry in entries:
        yield entry
        yield from _every(entry.below)


def _lines(entries: Sequence[Entry], before: str) -> Iterator[tuple[str, Entry]]:
    for entry in entries:
        place, last = Uri.parse(entry.uri), entry is entries[-1]
        slash = "/" if entry.below or not place.is_node else ""
        yield f"{before}{'└── ' if last else '├── '}{spelled(place.name)}{slash}", entry
        yield from _lines(entry.below, before + ("    " if last else "│   "))
