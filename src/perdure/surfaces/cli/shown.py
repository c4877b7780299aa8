"""`perdure shown`."""

from collections.abc import Iterator

import click

from perdure import LineState, Memory, ShownEmission
from perdure.app.projects import identity_named
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, parse_time, with_memory
from perdure.surfaces.out import counted, local_time, picked, shown, shown_words, styled

_WHY_SILENT = {
    LineState.FORGOTTEN: "forgotten or erased since",
    LineState.GONE: "gone since, or out of your reach",
    LineState.CHANGED: "its words can't be found any more",
}
_FIELDS = "agent session moment reason tokens bytes project position blocked behind time=when"
_OF_A_LINE = "id uri message key state text?"


@click.command("shown")
@click.option("--last", is_flag=True, help="Only the last time that an agent was shown something.")
@click.option("--since", type=parse_time, metavar="TIME", help="Only since a date or a time.")
@click.option("--project", metavar="NAME", help="Only in this project, by name or folder.")
@with_memory(OBJECT_PER_LINE)
def shown_command(
    memory: Memory, since: str | None, project: str | None, *, last: bool, as_json: bool
) -> None:
    """Print what agents were shown, when and why.

    Without options, all that the last session was shown; with --session, what that one was. The
    words are read from history, as of then; what was forgotten or erased since is named, and not
    shown.
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
    behind = ", edits not looked for" if record.behind else ""
    yield f"  {shown(record.agent)} {shown(record.session)}{project}, {size}{behind}"
    for line in emission.lines:
        silent = _WHY_SILENT.get(line.state)
        yield f"  - {f'({silent})' if silent else shown_words(line.text)} {line.id}"
