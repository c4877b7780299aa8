"""`repair`."""

import click

from perdure.engine.namespaces import Deleted
from perdure.engine.repair import Action, Finding
from perdure.model import Role, Uri
from perdure.surfaces.asking import OBJECT_PER_LINE, as_json
from perdure.surfaces.nodes.opening import Memory, with_memory
from perdure.surfaces.noticing import record_edits
from perdure.surfaces.telling import counted, mention, shown, tell_json, tell_line, tell_table


@click.command("repair")
@click.option("--apply", is_flag=True, help="Do it; otherwise it is only said.")
@as_json(OBJECT_PER_LINE)
@with_memory
def repair_command(memory: Memory, *, apply: bool, as_json: bool) -> None:
    """Find what is wrong with nodes, and mend it.

    Without --apply it says what it would do, and changes nothing. An edit made by hand becomes the
    next version; a note that somebody put into a folder becomes a node; what a crash left
    unfinished is finished, or removed.
    """
    context, request = memory.context, memory.request
    if apply:
        record_edits(context.recorded)
    ended = context.namespaces.resume(request) if apply and request.role is Role.ROOT else []
    found = context.repair.run(request) if apply else context.repair.examine(request)
    if as_json:
        tell_json(*(_json(finding, applied=apply) for finding in found))
        return
    for each in ended:
        tell_line(f"ended the deletion of {_whose(each)}")
    rows = ((each.state.value, memory.name(Uri.parse(each.uri)), _about(each)) for each in found)
    if tell_table(("state", "node", "done" if apply else "what --apply does"), rows):
        _sum_up(found, applied=apply)
    elif not ended:
        tell_line("ok: nothing is wrong")


def _about(finding: Finding) -> str:
    detail = f"; {shown(finding.detail)}" if finding.detail else ""
    return f"{finding.action.value}{detail}"


def _sum_up(found: list[Finding], *, applied: bool) -> None:
    if not applied:
        mention(f"{counted(len(found), 'finding')}; nothing was changed")
        return
    left = sum(finding.action is Action.TELL for finding in found)
    more = f"; {left} only you can settle" if left else ""
    mention(f"mended {len(found) - left}{more}")


def _whose(deleted: Deleted) -> str:
    account = f"account {shown(deleted.account_id)}"
    return f"{shown(deleted.owner_space)} in {account}" if deleted.owner_space else account


def _json(finding: Finding, *, applied: bool) -> dict[str, object]:
    return {
        "uri": finding.uri,
        "state": finding.state.value,
        "action": finding.action.value,
        "detail": finding.detail,
        "applied": applied and finding.action is not Action.TELL,
    }
