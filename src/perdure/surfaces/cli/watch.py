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
    """Record edits as soon as you save them.

    Watches the folder of the memory until SIGTERM or Ctrl-C. An edit becomes a version, and a new
    note becomes a node. Files that are left alone are reported.
    """
    with until_signalled() as ending:
        for each in memory.watch(ending):
            for edits in memory.edits():
                mention_edits(edits, memory.caller)
            _print(memory, each)


def _print(memory: Memory, report: WatchReport) -> None:
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
