"""`perdure list` and `perdure tree`."""

import shutil
import sys
from collections.abc import Iterator, Sequence

import click

from perdure import Entry, Memory, SessionInfo
from perdure.app.project_state import identity_named
from perdure.model import Uri
from perdure.model.request import spelled
from perdure.surfaces import out
from perdure.surfaces.cli.completion import folder_names
from perdure.surfaces.cli.options import NAMES, OBJECT_PER_LINE, Moment, at_moment, with_memory
from perdure.surfaces.out import (
    counted,
    cut_to,
    gist,
    local_date,
    node_json,
    padded_to,
    picked,
    shown,
    sized,
    styled,
    width_of,
)

_LEAST_GIST = 20
_SESSIONS = "sessions"
_PROJECT = 3
_OF_SESSIONS = "id title date messages bytes project?"
_BROKEN = " (broken by an edit; see `perdure repair`)"


@click.command("list", epilog=NAMES)
@click.argument("folder", default="", shell_complete=folder_names)
@click.option("--archived", is_flag=True, help="List the archived nodes below FOLDER instead.")
@click.option("--project", metavar="NAME", help="Only nodes of a project, by name or folder.")
@at_moment
@with_memory(OBJECT_PER_LINE)
def list_command(  # noqa: PLR0913 - one for each option
    memory: Memory,
    folder: str,
    at: Moment | None,
    project: str | None,
    *,
    archived: bool,
    as_json: bool,
) -> None:
    """List the contents of a folder.

    FOLDER defaults to the folder of your memories. Each line has the name, the version, the date of
    the last change, and the title or the abstract. Sessions have title, date and size, and are
    listed newest first.
    """
    reading = memory if at is None else memory.at(at)
    of = None if project is None else memory.projects.at(identity_named(project))
    found = reading.list(folder, archived=archived, project=of)
    if of is None and memory.name(memory.uri(folder)) == _SESSIONS and not archived:
        _print_sessions(found, reading.sessions(), as_json=as_json)
        return
    if as_json:
        out.json(*map(entry_json, found))
        return
    heads = ("name", "version", "updated", "project", "about")
    if not _print_fitted(heads, [(*_row(each), gist_of(each)) for each in found]):
        name = memory.name(memory.uri(folder))
        out.mention(f"{name} has no archived nodes" if archived else f"{name} is empty")


def _print_sessions(
    found: Sequence[Entry], sessions: Sequence[SessionInfo], *, as_json: bool
) -> None:
    """Print sessions, newest first; then folders without messages."""
    entries = {entry.uri: entry for entry in found}
    known = {each.uri: each for each in sessions if each.uri in entries}
    others = [entry for uri, entry in entries.items() if uri not in known]
    if as_json:
        rest = dict.fromkeys(_OF_SESSIONS.rstrip("?").split())
        out.json(
            *(
                {**entry_json(entries[uri]), **picked(each, _OF_SESSIONS)}
                for uri, each in known.items()
            ),
            *({**entry_json(entry), **rest} for entry in others),
        )
        return
    rows = [
        *(
            (
                f"{entries[uri].name}/",
                local_date(each.date),
                str(each.messages),
                each.project,
                sized(each.bytes),
                shown(each.title),
            )
            for uri, each in known.items()
        ),
        *((*_row(entry), "", gist_of(entry)) for entry in others),
    ]
    heads = ("name", "date", "messages", "project", "size", "title")
    if not _print_fitted(heads, rows):
        out.mention(f"{_SESSIONS} is empty")


def _print_fitted(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Print a table whose last column is cut to the terminal; return whether it has rows."""
    if not any(row[_PROJECT] for row in rows):  # then leave the column out
        heads, *rows = [(*row[:_PROJECT], *row[_PROJECT + 1 :]) for row in (heads, *rows)]
    columns = zip(heads[:-1], *(row[:-1] for row in rows), strict=False)
    room = room_beside(sum(max(map(width_of, column)) + 2 for column in columns))
    return out.table(heads, ((*row[:-1], cut_to(room, row[-1])) for row in rows))


def _row(entry: Entry) -> tuple[str, str, str, str]:
    if entry.node is None:
        return f"{entry.name}/", "", "", ""
    node = entry.node
    return entry.name, str(node.version), local_date(node.date) if node.date else "", node.project


def gist_of(entry: Entry) -> str:
    if entry.node is not None:
        return shown(gist(entry.node)) + (_BROKEN if entry.node.problems else "")
    return shown(entry.problem) if entry.problem else counted(entry.nodes, "node")


def room_beside(used: int) -> int:
    """Return how wide the last column may be; only a terminal limits it."""
    if not sys.stdout.isatty():
        return sys.maxsize
    return max(_LEAST_GIST, shutil.get_terminal_size().columns - used)


def entry_json(entry: Entry) -> dict[str, object]:
    unknown = ("title", "abstract", "status", "version", "created_at", "updated_at", "project")
    node = (
        {
            "uri": entry.uri,
            **dict.fromkeys(unknown),
            "problems": [entry.problem] if entry.problem else [],
        }
        if entry.node is None
        else node_json(entry.node)
    )
    return {"kind": "folder" if entry.is_folder else "node", **node, "nodes": entry.nodes}


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
