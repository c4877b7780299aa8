"""`perdure repair`."""

import click

from perdure import Memory, RepairFinding
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, mention_edits, with_memory
from perdure.surfaces.out import counted, picked, shown


@click.command("repair")
@click.option("--apply", is_flag=True, help="Make the repairs, instead of listing them.")
@click.option(
    "--accept-removals",
    is_flag=True,
    help="Record removals even if more than a tenth of the files are gone.",
)
@with_memory(OBJECT_PER_LINE)
def repair_command(memory: Memory, *, apply: bool, accept_removals: bool, as_json: bool) -> None:
    """Find and repair damaged or edited nodes.

    Without --apply, lists what it would do, and changes nothing. An edit becomes the next version
    of its node; a note that was added to a folder becomes a node; a change that a crash interrupted
    is completed or removed.
    """
    done = memory.repair(apply=apply, accept_removals=accept_removals)
    for edits in memory.edits():
        mention_edits(edits, memory.caller)
    if as_json:
        out.json(
            *(
                {
                    **picked(each, "uri state action detail"),
                    "applied": apply and not each.needs_owner,
                }
                for each in done.findings
            )
        )
        return
    for deleted in done.ended:
        account = f"account {shown(deleted.account_id)}"
        space = f"{shown(deleted.owner_space)} in " if deleted.owner_space else ""
        out.line(f"completed the deletion of {space}{account}")
    rows = ((each.state.value, memory.name(each.uri), _about(each)) for each in done.findings)
    if not out.table(("state", "node", "done" if apply else "what --apply does"), rows):
        if not done.ended:
            out.line("ok: nothing to repair")
    elif apply:
        left = sum(each.needs_owner for each in done.findings)
        more = f"; {left} left for you to settle" if left else ""
        out.mention(f"repaired {len(done.findings) - left}{more}")
    else:
        out.mention(f"{counted(len(done.findings), 'finding')}; nothing was changed")


def _about(finding: RepairFinding) -> str:
    detail = f"; {shown(finding.detail)}" if finding.detail else ""
    return f"{finding.action.value}{detail}"
