"""`perdure briefing`."""

from pathlib import Path

import click

from perdure import Memory
from perdure.agents.instruction_files import instruction_files
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
    is open, and what is about you. What CLAUDE.md, AGENTS.md and other files say that agents load
    by themselves is left out; a line of them that you contradicted since is named.
    """
    found = memory.briefing(budget_tokens=budget, known=instruction_files(str(Path.cwd())))
    if as_json:
        items = [
            picked(item, "id kind text uri date message pinned contradicts") for item in found.items
        ]
        out.json({"text": found.text, "tokens": found.tokens, "items": items})
        return
    out.text(found.text)
    if not found.items:
        out.mention("nothing is known that an agent should be told")
