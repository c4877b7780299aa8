"""The command line. Every command is imported when it is asked for; no other one pays."""

import os
import re
import sys

import click

from perdure.errors import PerdureError
from perdure.surfaces import out
from perdure.surfaces.cli.group import HIDDEN, INTERRUPTED, LazyCommand, LazyGroup
from perdure.surfaces.out import message_of, shown

_HERE = "perdure.surfaces"
_LINE_BREAK = r"\s*\n\s*"


def _command(name: str, told: str) -> LazyCommand:
    return LazyCommand(f"{_HERE}.cli.{name}:{name}_command", told)


def _tenants(name: str, told: str) -> LazyCommand:
    return LazyCommand(f"{_HERE}.cli.tenants:{name}_command", told)


SECTIONS = {
    "Memories": {
        "recall": _command("recall", "Find what memory has to say to a question."),
        "save": _command("save", "Remember one thing."),
        "remember": _command("remember", "Keep one statement."),
        "review": _command("review", "Decide what is worth keeping."),
        "commit": _command("commit", "Keep a conversation, and learn from it."),
        "why": _command("why", "Say why memory says what it says."),
        "unmerge": _command("unmerge", "Undo a merge."),
        "write": _command("write", "Write a node, or the next version of one."),
        "read": _command("read", "Print the content of a node."),
        "edit": _command("edit", "Change a node in your editor."),
        "list": _command("list", "List what is in a folder."),
        "tree": _command("tree", "Show all nodes below a folder."),
        "move": _command("move", "Give a node another name."),
        "archive": _command("archive", "Put a node away, so that nobody finds it."),
        "unarchive": _command("unarchive", "Take an archived node back into use."),
        "delete": _command("delete", "Remove a node."),
        "restore": _command("restore", "Let a node be what it was."),
        "rewind": _command("rewind", "Let all memories be what they were."),
        "forget": _command("forget", "Put away what nobody is to find; or erase it."),
        "relate": _command("relate", "Relate a node to another, or list its relations."),
        "import": LazyCommand(
            f"{_HERE}.cli.import_:import_command",
            "Take in what other programs remember, or a memory that was exported.",
        ),
        "export": _command(
            "export", "Write the whole memory into FOLDER: Markdown, and its history."
        ),
    },
    "Agents": {
        "mcp": _command(
            "mcp", "Let an agent use memory, over the Model Context Protocol on stdin and stdout."
        ),
        "private": _command("private", "Keep nothing of an agent's session, from now until `off`."),
        "briefing": _command("briefing", "Print what an agent gets when a session starts here."),
        "shown": _command("shown", "Print what agents were shown, when and why."),
        "statusline": _command(
            "statusline", "Print one line about memory here, for the status line of Claude Code."
        ),
        "enforce": _command("enforce", "Let agents not break a rule."),
        "install": _command("install", "Connect a coding agent with memory, in its own config."),
    },
    "Projects": {
        "projects": _command("projects", "List, name, merge, split and move projects."),
        "plan": _command("plan", "Begin, show and finish the plans of a project."),
        "queue": _command("queue", "Say what is to do: the plans of all registered repositories."),
        "repo": _command("repo", "Register, list and unregister repositories."),
        "state-mode": _command("state_mode", "Say who keeps the plans of projects, or change it."),
    },
    "Upkeep": {
        "init": _command(
            "init", "Set up memory on this machine: a config file, and a store that works."
        ),
        "status": _command("status", "Say what is stored where, and how it stands with it."),
        "history": _command(
            "history", "See, compare, restore and prove every version of every text."
        ),
        "conflicts": _command(
            "conflicts", "List and settle the copies that sync clients leave of files."
        ),
        "lint": _command("lint", "Find what is wrong with notes by their own words."),
        "store": _command("store", "Decide which history a moved or copied memory has."),
        "migrate": _command("migrate", "Copy the memory to another backend, with its history."),
        "repair": _command("repair", "Find what is wrong with nodes, and mend it."),
        "index": _command("index", "Look after the index by which memories are found."),
        "worker": _command("worker", "Keep the index up to date, for all accounts."),
        "watch": _command("watch", "Take in what you edit by hand, as soon as it is saved."),
        "models": _command(
            "models",
            "Install the model that finds memories by their meaning, and see what is installed.",
        ),
        "cost": _command("cost", "Show how many tokens language models have used."),
        "outbox": _command("outbox", "Look after what the index was not told of yet."),
        "account": _tenants("account", "Make, list and delete accounts."),
        "user": _tenants("user", "Make, list and delete users."),
        "agent": _tenants("agent", "Make, list and delete agents."),
        "doctor": _command("doctor", "Say where memory is kept and whether all is well."),
        "completion": _command(
            "completion", "Print what makes a shell complete commands, options and names of nodes."
        ),
    },
    HIDDEN: {"hook": _command("hook", "Answer an agent at a turn of its session.")},
}


@click.group(
    cls=LazyGroup, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="perdure")
def cli() -> None:
    """Memory for AI agents that its owner can read, edit, search, rewind and prove.

    A node is one memory, skill or resource. Yours are named as preference/indentation, profile,
    skills/NAME, resources/NAME or sessions/ID/NAME; any other by its whole URI, ctx://...
    """


def main() -> None:
    """Run the command line; an error of ours is one line, not a traceback."""
    _open_what_is_closed()
    try:
        cli()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except PerdureError as error:
        out.mention(f"perdure: {shown(re.sub(_LINE_BREAK, ' ', message_of(error)))}")
        sys.exit(1)


def _open_what_is_closed() -> None:
    """Give who was started without stdin, stdout or stderr ones that lead nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - as long as we run
