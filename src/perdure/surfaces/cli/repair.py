"""`perdure repair`."""

from collections.abc import Sequence

import click

from perdure import Deleted, Memory, RepairFinding
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, mention_edits, with_memory
from perdure.surfaces.telling import counted, picked, shown


@click.command("repair")
@click.option("--apply", is_flag=True, help="Do it; otherwise it is only said.")
@click.option(
    "--accept-removals",
    is_flag=True,
    help="Record also that more than a tenth of the files are gone.",
)
@with_memory(OBJECT_PER_LINE)
def repair_command(memory: Memory, *, apply: bool, accept_removals: bool, as_json: bool) -> None:
    """Find what is wrong with nodes, and mend it.

    Without --apply it says what it would do, and changes nothing. An edit made by hand becomes the
    next version; a note that somebody put into a folder becomes a node; what a crash left
    unfinished is finished, or removed.
    """
    done = memory.repair(apply=apply, accept_removals=accept_removals)
    for edits in memory.edits():
        mention_edits(edits, memory.caller)
    if as_json:
        out.json(*(_json(finding, applied=apply) for finding in done.findings))
        return
    for each in done.ended:
        out.line(f"ended the deletion of {_tenant(each)}")
    rows = ((each.state.value, memory.name(each.uri), _about(each)) for each in done.findings)
    if out.table(("state", "node", "done" if apply else "what --apply does"), rows):
        _sum_up(done.findings, applied=apply)
    elif not done.ended:
        out.line("ok: nothing is wrong")


def _about(finding: RepairFinding) -> str:
    detail = f"; {shown(finding.detail)}" if finding.detail else ""
    return f"{finding.action.value}{detail}"


def _sum_up(found: Sequence[RepairFinding], *, applied: bool) -> None:
    if not applied:
        out.mention(f"{counted(len(found), 'finding')}; nothing was changed")
        return
    left = sum(finding.needs_owner for finding in found)
    more = f"; {left} only you can settle" if left else ""
    out.mention(f"mended {len(found) - left}{more}")


def _tenant(deleted: Deleted) -> str:
    account = f"account {shown(deleted.account_id)}"
    return f"{shown(deleted.owner_space)} in {account}" if deleted.owner_space else account


def _json(finding: RepairFinding, *, applied: bool) -> dict[str, object]:
    done = applied and not finding.needs_owner
    return {**picked(finding, "uri state action detail"), "applied": done}
