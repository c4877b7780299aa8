"""`perdure briefing`."""

from pathlib import Path

import click

from perdure import BriefingItem, Memory
from perdure.agents.instruction_files import instruction_files
from perdure.harness.projects import commit_time
from perdure.surfaces import out
from perdure.surfaces.cli.options import Moment, parse_moment, with_project_memory
from perdure.surfaces.out import picked


@click.command("briefing")
@click.option(
    "--budget", type=click.IntRange(1), default=294, metavar="TOKENS", help="At most so many; 294."
)
@click.option(
    "--at",
    metavar="MOMENT",
    help="As it was then: a date, a time, a position, or a commit of this checkout.",
)
@with_project_memory()
def briefing_command(memory: Memory, budget: int, at: str | None, *, as_json: bool) -> None:
    """Print what an agent gets when a session starts here.

    The project's rules come first, then decisions and what was rejected, facts and commands, what
    is open, and what is about you. What CLAUDE.md, AGENTS.md and other files say that agents load
    by themselves is left out; a line of them that you contradicted since is named.
    With --at, it is what was known then; a commit means the time that it was committed.
    In a checkout, a line says if the code that it names moved or changed since; what holds on
    another branch, and what names only what is gone, is left out.
    """
    when = None if at is None else _moment(at)
    known = instruction_files(str(Path.cwd()))
    found = memory.briefing(budget_tokens=budget, known=known, at=when)
    if as_json:
        items = [_item(item) for item in found.items]
        out.json({"text": found.text, "tokens": found.tokens, "items": items})
        return
    out.text(found.text)
    if not found.items:
        out.mention("nothing is known that an agent should be told")
    for hint in found.hints:
        out.mention(hint.text)


def _moment(text: str) -> Moment:
    """Read a date, a time or a position; anything else must name a commit of this checkout."""
    try:
        return parse_moment(text)
    except click.BadParameter as error:
        committed = commit_time(str(Path.cwd()), text)
        if committed is None:
            raise click.BadParameter(
                f"{str(error.message).rstrip('.')}, or a commit of this checkout.",
                param_hint="--at",
            ) from error
        return committed.isoformat()


def _item(item: BriefingItem) -> dict[str, object]:
    return {
        **picked(item, "id kind text uri date message pinned contradicts"),
        "state": item.verdict.state,
        "note": item.verdict.note,
    }
