"""`perdure install`."""

import os
import sys

import click

from perdure.agents.clients import AGENTS, BUILTIN_MEMORY, STATUS_LINE
from perdure.agents.installation import Installation, is_open_choice, plan_installation
from perdure.surfaces import out
from perdure.surfaces.cli.options import ask_first, without_asking
from perdure.surfaces.out import counted, shown

_HINTS = {
    "claude-code": "restart Claude Code; `/hooks` and `/mcp` show it",
    "codex": "restart Codex and trust the hooks: `/hooks` and `/mcp` show them",
    "gemini-cli": "restart Gemini CLI; `/hooks` and `/mcp` show it",
    "opencode": "restart opencode; `opencode mcp list` shows the server",
    "cursor": "restart Cursor; its settings show the server and the hook",
    "agents-md": "agents that read this AGENTS.md know how to use memory",
}
_BUILT_IN = {
    "claude-code": "Claude Code has a memory of its own (MEMORY.md)",
    "codex": "Codex has a memory of its own",
}


@click.command("install")
@click.argument("agent", type=click.Choice(AGENTS))
@click.option("--dry-run", is_flag=True, help="Show what would be changed, and change nothing.")
@click.option("--uninstall", is_flag=True, help="Remove what was added, and nothing else.")
@click.option(
    "--history/--no-history", default=None, help="Index the agent's past sessions, or don't."
)
@click.option(
    "--builtin-memory",
    type=click.Choice(["on", "off"]),
    help="Leave the agent's own memory on, or switch it off.",
)
@click.option("--statusline", is_flag=True, help="Show memory in Claude Code's status line.")
@without_asking
def install_command(  # noqa: PLR0913 - an option each
    agent: str,
    *,
    dry_run: bool,
    uninstall: bool,
    history: bool | None,
    builtin_memory: str | None,
    statusline: bool,
    yes: bool,
) -> None:
    """Connect a coding agent with memory.

    Adds the MCP server, hooks and slash commands to the agent's config files of your user, and
    changes nothing else in them. Shows the changes first, and makes a backup. Running it twice
    changes nothing more. Then offers to index the agent's past sessions.
    """
    asks = not (yes or dry_run or uninstall) and sys.stdin.isatty()
    choices = {} if builtin_memory is None else {BUILTIN_MEMORY: builtin_memory == "off"}
    if asks and builtin_memory is None and is_open_choice(agent, os.environ, BUILTIN_MEMORY):
        question = f"{_BUILT_IN[agent]}. Keep it on beside Perdure?"
        choices[BUILTIN_MEMORY] = not click.confirm(question, default=True, err=True)
    if statusline:
        choices[STATUS_LINE] = True
    plan = plan_installation(agent, os.environ, uninstall=uninstall, choices=choices)
    _apply(plan, agent, dry_run=dry_run, uninstall=uninstall, yes=yes)
    if not (dry_run or uninstall):
        _offer_history(agent, history, asks=asks)


def _apply(plan: Installation, agent: str, *, dry_run: bool, uninstall: bool, yes: bool) -> None:
    for each in plan.left:
        out.mention(f"yours, and left alone: {shown(each)}")
    if not plan.changes:
        out.mention(f"{'not installed' if uninstall else 'already installed'}; nothing was changed")
        return
    for change in plan.changes:
        if diff := change.diff():
            out.diff(diff)
    if dry_run:
        out.mention("dry run: nothing was written")
        return
    if not yes:
        ask_first("this changes files of your agent, as shown above", "nothing was written")
    for change, backup in plan.apply():
        copy = f"; backup in {shown(str(backup))}" if backup else ""
        verb = "removed" if change.content is None else "wrote"
        out.line(f"{verb} {shown(str(change.found.path))}{copy}")
    out.mention("restart the agent" if uninstall else f"now {_HINTS[agent]}")


# ---------------------------------------------------------------- past sessions
def _offer_history(agent: str, wanted: bool | None, *, asks: bool) -> None:  # noqa: FBT001 - None asks
    """Index the agent's past sessions if the user wants it; if not, print how to do it later."""
    from perdure.agents.past_sessions import find_past_sessions, stays_here

    found = find_past_sessions(agent, os.environ)
    if not found.sessions or wanted is False:
        return
    number = counted(len(found.sessions), "past session")
    what = f"{number} of {counted(found.projects, 'project')}"
    if wanted is None and asks:
        here = stays_here(os.environ)
        terms = "nothing leaves this machine" if here else "their texts go to your embedding model"
        question = f"{what}; index now? about {found.seconds:,} s, {terms}"
        wanted = click.confirm(question, default=True, err=True)
    if wanted:
        index_sessions(agent)
    else:
        out.mention(f"{what}; to index them: `perdure import --history {agent}`")


def index_sessions(agent: str) -> None:
    """Index those past sessions of an agent that are new."""
    from perdure.agents.past_sessions import find_past_sessions, index_past_sessions

    found = find_past_sessions(agent, os.environ)
    if not found.sessions:
        out.mention("no past session is new")
        return
    try:
        with out.progress("indexing", lines=True) as show:
            done = index_past_sessions(found, os.environ, show)
    except KeyboardInterrupt:
        out.mention(f"stopped; `perdure import --history {agent}` continues from here")
        raise
    out.line(f"{counted(done.stored, 'session')} of {counted(found.projects, 'project')} indexed")
    if done.failed:
        out.mention(f"{counted(done.failed, 'session')} can't be read: see `perdure doctor`")
    if done.candidates:
        verb = "waits" if done.candidates == 1 else "wait"
        out.line(f"{counted(done.candidates, 'candidate')} {verb}: `perdure review`")
