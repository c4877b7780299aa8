"""`perdure briefing`."""

from pathlib import Path

import click

from perdure import BriefingItem, Memory
from perdure.agents.instruction_files import instruction_files
from perdure.harness.project import commit_time
from perdure.surfaces import out
from perdure.surfaces.cli.options import Moment, parse_moment, with_project_memory
from perdure.surfaces.out import picked


@click.command("briefing")
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=294,
    metavar="TOKENS",
    help="Print at most this many tokens. Default: 294.",
)
@click.option(
    "--at",
    metavar="MOMENT",
    help="As of a date, a time, a position, or a commit of this checkout.",
)
@with_project_memory()
def briefing_command(memory: Memory, budget: int, at: str | None, *, as_json: bool) -> None:
    """Print the briefing that an agent gets when a session starts here.

    The project's rules come first, then decisions and rejected alternatives, facts and commands,
    open tasks, and facts about you. It leaves out what CLAUDE.md, AGENTS.md and other files say
    that agents load by themselves, and names lines of those files that you contradicted since.
    With --at, it is the briefing of that moment; a commit stands for its commit time. In a
    checkout, a line says if the code that it names was moved or changed since; statements that
    hold on another branch, or whose code is gone, are left out.
    """
    moment = None if at is None else _moment(at)
    known = instruction_files(str(Path.cwd()))
    found = memory.briefing(budget_tokens=budget, known=known, at=moment)
    if as_json:
        items = [_item_json(item) for item in found.items]
        out.json({"text": found.text, "tokens": found.tokens, "items": items})
        return
    out.text(found.text)
    if not found.items:
        out.mention("the briefing is empty: memory has nothing for an agent here")
    for hint in found.hints:
        out.mention(hint.text)


def _moment(text: str) -> Moment:
    """Parse a date, a time, a position or a commit of this checkout."""
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


def _item_json(item: BriefingItem) -> dict[str, object]:
    return {
        **picked(item, "id kind text uri date message pinned contradicts"),
        "state": item.verdict.state,
        "note": item.verdict.note,
    }
