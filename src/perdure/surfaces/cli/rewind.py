"""`perdure rewind`."""

import click

from perdure import Memory, RewindOutcome
from perdure.surfaces import out
from perdure.surfaces.cli.options import NAMES, OBJECT_PER_LINE, Moment, parse_moment, with_memory
from perdure.surfaces.out import counted, picked


@click.command("rewind", epilog=NAMES)
@click.argument("then", type=parse_moment)
@click.argument("folder", default="")
@click.option("--apply", is_flag=True, help="Rewind, instead of listing what would change.")
@with_memory(OBJECT_PER_LINE)
def rewind_command(
    memory: Memory, then: Moment, folder: str, *, apply: bool, as_json: bool
) -> None:
    """Rewind all memories to an earlier state.

    THEN is a date (2026-03-01, all of that day), a time, or a position. In FOLDER, or in all that
    is yours, changed nodes get their earlier text, deleted ones are created again, and new ones are
    deleted. All of it is one commit, and a rewind can be rewound. Sessions stay. Without --apply,
    lists what it would do, and changes nothing.
    """
    done = memory.rewind(then, folder, dry_run=not apply)
    if as_json:
        for step in done.steps:
            version = step.node.version if step.node else None
            applied = apply and step.outcome is not RewindOutcome.LEFT
            out.json(
                {**picked(step, "uri fate=outcome reason?"), "version": version, "applied": applied}
            )
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
