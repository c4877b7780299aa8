"""`perdure projects`."""

import click

from perdure import Memory, ReassignmentReport
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, with_memory
from perdure.surfaces.out import counted, local_date, picked, shown

_FIELDS = "name identities sessions memories last"
_CHANGED = "project sessions memories stayed"


@click.group("projects", invoke_without_command=True)
@click.pass_context
def projects_command(context: click.Context) -> None:
    """List, name, merge, split and move projects.

    A repository or folder belongs to a project. It is identified by its Git remote, else by its
    oldest commit, else by its path. Without a command, lists the projects.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_)


@projects_command.command("list")
@with_memory(OBJECT_PER_LINE)
def list_(memory: Memory, *, as_json: bool) -> None:
    """List the projects, the one with the newest session first."""
    found = memory.projects.list()
    if as_json:
        out.json(*(picked(each, _FIELDS) for each in found))
        return
    rows = (
        (
            each.name,
            str(each.sessions),
            str(each.memories),
            local_date(each.last) if each.last else "",
            shown(", ".join(each.identities)),
        )
        for each in found
    )
    if not out.table(("project", "sessions", "memories", "last session", "also"), rows):
        out.mention("there are no projects yet")


@projects_command.command("name")
@click.argument("project")
@click.argument("name")
@with_memory()
def name_(memory: Memory, project: str, name: str, *, as_json: bool) -> None:
    """Rename PROJECT to NAME. The old name still refers to it."""
    _print(memory.projects.rename(project, name), as_json=as_json)


@projects_command.command("merge")
@click.argument("project")
@click.argument("into")
@with_memory()
def merge(memory: Memory, project: str, into: str, *, as_json: bool) -> None:
    """Merge PROJECT into the project INTO, or into that of the folder INTO.

    `perdure projects split INTO PROJECT` undoes it.
    """
    _print(memory.projects.merge(project, into), as_json=as_json)


@projects_command.command("split")
@click.argument("project")
@click.argument("into")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@click.option("--folder", metavar="PATH", default="", help="Split off the sessions of this folder.")
@with_memory()
def split(  # noqa: PLR0913 - an option each
    memory: Memory,
    project: str,
    into: str,
    sessions: tuple[str, ...],
    *,
    folder: str,
    as_json: bool,
) -> None:
    """Split a part of PROJECT off, as the project INTO.

    By default, that is what was merged from INTO. With SESSION or --folder, it is those sessions,
    with the memories that rest on no other session; later sessions of the folder belong to INTO,
    too.
    """
    _print(memory.projects.split(project, into, sessions=sessions, folder=folder), as_json=as_json)


@projects_command.command("move")
@click.argument("project")
@click.argument("folder", default=".")
@with_memory()
def move(memory: Memory, project: str, folder: str, *, as_json: bool) -> None:
    """Assign FOLDER, by default this one, to PROJECT.

    Use it for a repository or folder that was moved, renamed or given another remote. Memories that
    were stored there since are assigned to PROJECT, too.
    """
    _print(memory.projects.move(project, folder), as_json=as_json)


def _print(done: ReassignmentReport, *, as_json: bool) -> None:
    if as_json:
        out.json(picked(done, _CHANGED))
        return
    what = f"{counted(done.sessions, 'session')} and {counted(done.memories, 'memory')}"
    out.line(f"assigned to {done.project}: {what}")
    for uri in done.stayed:
        out.mention(f"stays, because it rests on other sessions too: {shown(uri)}")
