"""`perdure briefing`."""

from pathlib import Path

import click

from perdure import BriefingItem, Memory
from perdure.agents.moments import instructions_at
from perdure.surfaces import out
from perdure.surfaces.cli.options import ONE_OBJECT, as_json, with_project_memory
from perdure.surfaces.telling import picked


@click.command("briefing")
@click.option(
    "--budget", type=click.IntRange(1), default=294, metavar="TOKENS", help="At most so many; 294."
)
@as_json(ONE_OBJECT)
@with_project_memory
def briefing_command(memory: Memory, budget: int, *, as_json: bool) -> None:
    """Print what an agent gets when a session starts here.

    The project's rules come first, then decisions and what was rejected, facts and commands, what
    is open, and what is about you. What CLAUDE.md, AGENTS.md or GEMINI.md says here is left out.
    In a checkout, a line says if the code that it names moved or changed since; what holds on
    another branch, and what names only what is gone, is left out.
    """
    found = memory.briefing(budget_tokens=budget, known=instructions_at(str(Path.cwd())))
    if as_json:
        items = [_item(item) for item in found.items]
        out.json({"text": found.text, "tokens": found.tokens, "items": items})
        return
    out.text(found.text)
    if not found.items:
        out.mention("nothing is known that an agent should be told")


def _item(item: BriefingItem) -> dict[str, object]:
    return {
        **picked(item, "id kind text uri date message pinned"),
        "state": item.verdict.state,
        "note": item.verdict.note,
    }
