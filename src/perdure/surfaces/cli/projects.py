"""`perdure projects`."""

import click

from perdure import Memory, ReassignmentReport
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, with_memory
from perdure.surfaces.telling import counted, local_date, picked, shown

_FIELDS = "name identities sessions memories last"
_CHANGED = "project sessions memories stayed"


@click.group("projects", invoke_without_command=True)
@click.pass_context
def projects_command(context: click.Context) -> None:
    """List, name, merge, split and move projects.

    A project is what a repository or folder belongs to. It is found by the git remote, else the
    oldest commit, else the path of a folder. Without a command, they are listed.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_)


@projects_command.command("list")
@with_memory(OBJECT_PER_LINE)
def list_(memory: Memory, *, as_json: bool) -> None:
    """List the projects that memory knows, the one with the newest session first."""
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
        out.mention("memory knows no project yet")


@projects_command.command("name")
@click.argument("project")
@click.argument("name")
@with_memory()
def name_(memory: Memory, project: str, name: str, *, as_json: bool) -> None:
    """Give PROJECT another name. The old one goes on to lead to it."""
    _tell(memory.projects.rename(project, name), as_json=as_json)


@projects_command.command("merge")
@click.argument("project")
@click.argument("into")
@with_memory()
def merge(memory: Memory, project: str, into: str, *, as_json: bool) -> None:
    """Make PROJECT part of the project INTO, or of the folder INTO.

    `perdure projects split INTO PROJECT` undoes it.
    """
    _tell(memory.projects.merge(project, into), as_json=as_json)


@projects_command.command("split")
@click.argument("project")
@click.argument("into")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
@click.option("--folder", metavar="PATH", default="", help="The folder whose sessions go.")
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
    """Take a part of PROJECT out of it, as the project INTO.

    That is what was merged from INTO or, if you say so, some sessions or those of a folder, with
    the memories that rest on no other session. What is kept in the folder from now on goes to INTO,
    too.
    """
    _tell(memory.projects.split(project, into, sessions=sessions, folder=folder), as_json=as_json)


@projects_command.command("move")
@click.argument("project")
@click.argument("folder", default=".")
@with_memory()
def move(memory: Memory, project: str, folder: str, *, as_json: bool) -> None:
    """Let FOLDER belong to PROJECT; this folder, if you don't say.

    For a repository or folder that was moved, renamed or given another remote. What was kept there
    since goes to PROJECT, too.
    """
    _tell(memory.projects.move(project, folder), as_json=as_json)


def _tell(done: ReassignmentReport, *, as_json: bool) -> None:
    if as_json:
        out.json(picked(done, _CHANGED))
        return
    what = f"{counted(done.sessions, 'session')} and {counted(done.memories, 'memory')}"
    out.line(f"{done.project} has {what} more")
    for uri in done.stayed:
        out.mention(f"stays, because it rests on other sessions too: {shown(uri)}")
