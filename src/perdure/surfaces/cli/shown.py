"""`perdure shown`."""

from collections.abc import Iterator

import click

from perdure import LineState, Memory, ShownEmission
from perdure.app.project_state import identity_named
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, parse_time, with_memory
from perdure.surfaces.out import counted, local_time, picked, shown, shown_words, styled

_HIDDEN = {
    LineState.FORGOTTEN: "forgotten or erased since",
    LineState.GONE: "deleted since, or not accessible to you",
    LineState.CHANGED: "its text can't be found any more",
}
_FIELDS = "agent session moment reason tokens bytes project position blocked behind time=when"
_OF_A_LINE = "id uri message key state text?"


@click.command("shown")
@click.option("--last", is_flag=True, help="Show only what was shown last.")
@click.option("--since", type=parse_time, metavar="TIME", help="Only since a date or a time.")
@click.option("--project", metavar="NAME", help="Only in this project, by name or folder.")
@with_memory(OBJECT_PER_LINE)
def shown_command(
    memory: Memory, since: str | None, project: str | None, *, last: bool, as_json: bool
) -> None:
    """Show what agents were shown, when and why.

    By default, shows this for the last session; with --session, for that one. The text is read from
    history, as of that time; lines that were forgotten or erased since are named, but not shown.
    """
    session = memory.caller.session_id
    slug = None if project is None else identity_named(project).slug
    found = memory.shown(session=session, since=since, project=slug, last=last)
    if found and not (session or since or project is not None):
        found = tuple(each for each in found if each.record.session == found[-1].record.session)
    for each in found:
        if as_json:
            out.json(
                {
                    **picked(each.record, _FIELDS),
                    "lines": [picked(line, _OF_A_LINE) for line in each.lines],
                }
            )
            continue
        for line in _lines(each):
            out.line(line)
    if not found:
        out.mention("no agent was shown anything")


def _lines(emission: ShownEmission) -> Iterator[str]:
    record = emission.record
    why = f": {shown(record.reason)}" if record.reason else ""
    size = f"{counted(record.tokens, 'token')}, {counted(record.bytes, 'byte')}"
    yield styled(f"{local_time(record.when)} {record.moment}{why}", bold=True)
    project = f" in {shown(record.project)}" if record.project else ""
    behind = ", edits not checked" if record.behind else ""
    yield f"  {shown(record.agent)} {shown(record.session)}{project}, {size}{behind}"
    for line in emission.lines:
        reason = _HIDDEN.get(line.state)
        yield f"  - {f'({reason})' if reason else shown_words(line.text)} {line.id}"
