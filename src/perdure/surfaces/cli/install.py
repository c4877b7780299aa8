"""`perdure install`."""

import os

import click

from perdure.agents.entries import AGENTS
from perdure.agents.install import plan_installation
from perdure.surfaces import out
from perdure.surfaces.cli.options import ask_first
from perdure.surfaces.telling import shown

_HINTS = {
    "claude-code": "start Claude Code anew; `/hooks` and `/mcp` show it",
    "codex": "start Codex anew, and let it trust the hooks: `/hooks` and `/mcp` show it",
    "gemini-cli": "start Gemini CLI anew; `/hooks` and `/mcp` show it",
    "opencode": "start opencode anew; `opencode mcp list` shows the server",
    "cursor": "start Cursor anew; its settings show the server and the hook",
    "agents-md": "agents that read this AGENTS.md know of memory",
}


@click.command("install")
@click.argument("agent", type=click.Choice(AGENTS))
@click.option("--dry-run", is_flag=True, help="Show what would be changed, and change nothing.")
@click.option("--uninstall", is_flag=True, help="Take back what was added, and nothing else.")
@click.option("--yes", "-y", is_flag=True, help="Don't ask.")
def install_command(agent: str, *, dry_run: bool, uninstall: bool, yes: bool) -> None:
    """Tell a coding agent of memory, in its own config.

    Adds the MCP server and hooks to the files of your user; all else in them stays as it is, to the
    letter. Shows first what will change, and keeps a backup. Twice is once.
    """
    plan = plan_installation(agent, os.environ, uninstall=uninstall)
    if not plan.changes:
        done = "is not there, and nothing was" if uninstall else "is there already, and nothing was"
        out.mention(f"it {done} changed")
        return
    for change in plan.changes:
        if told := change.diff():
            out.diff(told)
    if dry_run:
        out.mention("nothing is written; this is what would be")
        return
    if not yes:
        ask_first("this changes files of your agent, as shown above", "nothing was written")
    for change, backup in plan.apply():
        kept = f"; as it was, it is in {shown(str(backup))}" if backup else ""
        verb = "removed" if change.content is None else "wrote"
        out.line(f"{verb} {shown(str(change.found.path))}{kept}")
    out.mention("start it anew" if uninstall else f"now {_HINTS[agent]}")
