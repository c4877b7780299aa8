"""`perdure rewind`."""

import click

from perdure import Memory, RewindOutcome, RewindStep
from perdure.surfaces import out
from perdure.surfaces.cli.options import NAMES, OBJECT_PER_LINE, Moment, parse_moment, with_memory
from perdure.surfaces.telling import counted, picked


@click.command("rewind", epilog=NAMES)
@click.argument("then", type=parse_moment)
@click.argument("folder", default="")
@click.option("--apply", is_flag=True, help="Do it; otherwise it is only said.")
@with_memory(OBJECT_PER_LINE)
def rewind_command(
    memory: Memory, then: Moment, folder: str, *, apply: bool, as_json: bool
) -> None:
    """Let all memories be what they were.

    THEN is a date (2026-03-01, all of that day), a time, or a position. What changed in FOLDER
    since says again what it said, what was deleted comes back, and what was new goes; without a
    folder, in all that is yours. It is one commit, and history keeps what was there before, so that
    a rewind can be rewound. Sessions stay. Without --apply it only says what it would do.
    """
    done = memory.rewind(then, folder, dry_run=not apply)
    if as_json:
        out.json(*(_json(step, applied=apply) for step in done.steps))
        return
    rows = (
        (memory.name(each.uri), ": ".join(filter(None, (each.outcome.value, each.reason))))
        for each in done.steps
    )
    if not out.table(("node", "done" if apply else "what --apply does"), rows):
        out.line("ok: nothing has changed since")
        return
    left = len(done.of(RewindOutcome.LEFT))
    changed = counted(len(done.steps) - left, "node")
    more = f"; {left} left as it was" if left else ""
    out.mention(
        f"{changed} rewound{more}" if apply else f"{changed} to rewind{more}; nothing was changed"
    )


def _json(step: RewindStep, *, applied: bool) -> dict[str, object]:
    return {
        **picked(step, "uri fate=outcome reason?"),
        "version": step.node.version if step.node else None,
        "applied": applied and step.outcome is not RewindOutcome.LEFT,
    }
