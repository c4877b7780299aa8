"""`perdure watch`."""

import click

from perdure import Memory, WatchKind, WatchReport
from perdure.surfaces import out
from perdure.surfaces.cli.options import mention_edits, with_memory
from perdure.surfaces.cli.worker import until_signalled
from perdure.surfaces.out import counted, shown


@click.command("watch")
@with_memory("")
def watch_command(memory: Memory) -> None:
    """Take in what you edit by hand, as soon as it is saved.

    It watches the folder of the memory until it is told to end (SIGTERM or Ctrl-C). An edit becomes
    a version; a new note becomes a node. What is left alone is said.
    """
    with until_signalled() as ending:
        for each in memory.watch(ending):
            for edits in memory.edits():
                mention_edits(edits, memory.caller)
            _tell(memory, each)


def _tell(memory: Memory, report: WatchReport) -> None:
    name, what = report.names[0], report.kind.value
    match report.kind:
        case WatchKind.WATCHING:
            out.line(f"{what} {shown(name)}")
        case WatchKind.LEFT_OUT | WatchKind.LEFT_ALONE:
            out.mention(f"{what}: {shown(name)}: {shown(report.reason)}")
        case WatchKind.UNREADABLE | WatchKind.OLDER_COUNTS:
            out.mention(f"{memory.name(name)} {what}: {shown(report.reason)}")
        case _:
            names = ", ".join(map(memory.name, report.names))
            out.line(f"{counted(len(report.names), what)}: {names}")
