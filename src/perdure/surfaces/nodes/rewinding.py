"""`restore` and `rewind`."""

import click

from perdure.artifacts import CID
from perdure.engine.rewinding import Fate, Step
from perdure.errors import InvalidCIDError
from perdure.model import Uri
from perdure.surfaces.asking import (
    OBJECT_PER_LINE,
    ONE_OBJECT,
    Moment,
    as_json,
    parse_moment,
    state_at,
)
from perdure.surfaces.nodes.describing import version_line
from perdure.surfaces.nodes.opening import NAMES, Memory, with_memory
from perdure.surfaces.noticing import record_edits
from perdure.surfaces.telling import counted, mention, tell_json, tell_line, tell_table

_CID_BEGINS = "baf"


def _version_or_moment(text: str) -> CID | Moment:
    if not text.startswith(_CID_BEGINS):
        return parse_moment(text)
    try:
        return CID.parse(text)
    except InvalidCIDError as error:
        raise click.BadParameter(str(error)) from error


@click.command("restore", epilog=NAMES)
@click.argument("node")
@click.argument("then", type=_version_or_moment)
@as_json(ONE_OBJECT)
@with_memory
def restore_command(memory: Memory, node: str, then: CID | Moment, *, as_json: bool) -> None:
    """Let a node be what it was.

    THEN is a date (2026-03-01, all of that day), a time, a position, or the CID of a content, as
    `perdure why` and `perdure history log` show them. It is written as the next version, and
    nothing is lost; a node that was deleted comes back.
    """
    place = memory.node_place(node)
    history = memory.context.recorded.history
    record_edits(memory.context.recorded)
    before = memory.known(place)
    wanted = then if isinstance(then, CID) else state_at(history, then)
    now = memory.context.memory.on_behalf_of(memory.request).restore(str(place), wanted)
    written = before is None or before.version != now.version
    if as_json:
        tell_json({"uri": now.uri, "version": now.version, "written": written})
        return
    tell_line(version_line(now.uri, now.version))
    if not written:
        mention("it was so already; nothing was written")


@click.command("rewind", epilog=NAMES)
@click.argument("then", type=parse_moment)
@click.argument("folder", default="")
@click.option("--apply", is_flag=True, help="Do it; otherwise it is only said.")
@as_json(OBJECT_PER_LINE)
@with_memory
def rewind_command(
    memory: Memory, then: Moment, folder: str, *, apply: bool, as_json: bool
) -> None:
    """Let all memories be what they were.

    THEN is a date (2026-03-01, all of that day), a time, or a position. What changed in FOLDER
    since says again what it said, what was deleted comes back, and what was new goes; without a
    folder, in all that is yours. It is one commit, and history keeps what was there before, so that
    a rewind can be rewound. Sessions stay. Without --apply it only says what it would do.
    """
    record_edits(memory.context.recorded)
    done = memory.context.memory.on_behalf_of(memory.request).rewind(
        state_at(memory.context.recorded.history, then),
        str(memory.place(folder)),
        dry_run=not apply,
    )
    if as_json:
        tell_json(*(_json(step, applied=apply) for step in done.steps))
        return
    rows = ((memory.name(Uri.parse(each.uri)), _fate(each)) for each in done.steps)
    if not tell_table(("node", "done" if apply else "what --apply does"), rows):
        tell_line("ok: nothing has changed since")
        return
    left = len(done.of(Fate.LEFT))
    changed = counted(len(done.steps) - left, "node")
    more = f"; {left} left as it was" if left else ""
    mention(
        f"{changed} rewound{more}" if apply else f"{changed} to rewind{more}; nothing was changed"
    )


def _fate(step: Step) -> str:
    return f"{step.fate.value}: {step.reason}" if step.reason else step.fate.value


def _json(step: Step, *, applied: bool) -> dict[str, object]:
    return {
        "uri": step.uri,
        "fate": step.fate.value,
        "reason": step.reason or None,
        "version": step.node.version if step.node else None,
        "applied": applied and step.fate is not Fate.LEFT,
    }
