"""The command line. Each command is imported when it is run, so that no other one costs time."""

import os
import re
import sys

import click

from perdure.errors import PerdureError
from perdure.surfaces import out
from perdure.surfaces.cli.group import HIDDEN, INTERRUPTED, LazyGroup
from perdure.surfaces.out import message_of, shown

_LINE_BREAK = r"\s*\n\s*"

SECTIONS = {
    "Memories": {
        "recall": "Search memory for an answer to a question.",
        "save": "Save a memory.",
        "remember": "Store one statement.",
        "review": "Accept or reject sentences of your sessions as memories.",
        "commit": "Store a conversation and learn from it.",
        "why": "Show the evidence for a memory.",
        "unmerge": "Undo a merge.",
        "write": "Write a node, or its next version.",
        "read": "Print the content of a node.",
        "edit": "Edit a node in your editor.",
        "list": "List the contents of a folder.",
        "tree": "Show all nodes below a folder.",
        "move": "Move or rename a node.",
        "archive": "Archive a node, so that recall no longer finds it.",
        "unarchive": "Return an archived node to use.",
        "delete": "Delete a node.",
        "restore": "Restore a node to an earlier state.",
        "rewind": "Rewind all memories to an earlier state.",
        "forget": "Archive a memory and hide its words, or erase it.",
        "relate": "Relate a node to another, or list its relations.",
        "import": "Import memories from another program, or a Perdure export.",
        "export": "Export the whole memory to FOLDER, with its history.",
    },
    "Agents": {
        "mcp": "Serve memory to an agent, over the Model Context Protocol on stdin and stdout.",
        "private": "Store nothing of an agent's session, from now until `off`.",
        "briefing": "Print the briefing that an agent gets when a session starts here.",
        "shown": "Show what agents were shown, when and why.",
        "statusline": "Print one line about memory here, for the status line of Claude Code.",
        "enforce": "Refuse tool calls of agents that break a rule.",
        "install": "Connect a coding agent with memory.",
    },
    "Projects": {
        "projects": "List, name, merge, split and move projects.",
        "plan": "Start, show and finish the plans of a project.",
        "queue": "List the open plans of all registered repositories.",
        "repo": "Register, list and unregister repositories.",
        "state-mode": "Show or change where the plans of projects are stored.",
    },
    "Upkeep": {
        "init": "Set up memory on this machine: a config file, and a working store.",
        "status": "Show what is stored where, and whether it is healthy.",
        "history": "Show, compare, restore and prove every version of every text.",
        "conflicts": "List and settle the conflict copies that sync clients create.",
        "lint": "Check the form of notes: fields, names, dates and links.",
        "store": "Decide which history a moved or copied memory has.",
        "migrate": "Copy the memory to another backend, with its history.",
        "repair": "Find and repair damaged or edited nodes.",
        "index": "Show, rebuild and verify the search index.",
        "worker": "Keep the index of every account up to date.",
        "watch": "Record edits as soon as you save them.",
        "models": "Install the embedding model, and list what is installed.",
        "cost": "Show how many tokens language models have used.",
        "outbox": "List, requeue and purge events that wait for the index.",
        "account": "Create, list and delete accounts.",
        "user": "Create, list and delete users.",
        "agent": "Create, list and delete agents.",
        "doctor": "Check where memory is stored, and whether everything works.",
        "completion": "Print a script that completes commands, options and node names in a shell.",
    },
    HIDDEN: {"hook": "Answer an event of an agent's session."},
}
_HISTORY = {
    "log": "Show what happened, or the versions of KEY.",
    "show": "Print the text of KEY, byte for byte.",
    "diff": "Show what changed in KEY from version A to B.",
    "blame": "Show which version wrote each line of KEY, and who.",
    "restore": "Write the text of an earlier VERSION of KEY as a new version.",
    "verify": "Check every byte of the history for damage.",
    "prove": "Prove that KEY had its text, and since when.",
    "gc": "Erase withdrawn content for good.",
}
_MODULES = {
    "history": "",
    "import": "import_",
    "queue": "plan",
    "state_mode": "plan",
    "tree": "list",
    "unarchive": "archive",
    **dict.fromkeys(("account", "user", "agent"), "tenants"),
}
"""The modules of commands that are not in a module of their own name."""


@click.group(
    cls=LazyGroup,
    sections=SECTIONS,
    modules=_MODULES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="perdure")
def cli() -> None:
    """Memory for AI agents that its owner can read, edit, search, rewind and prove.

    A node is one memory, skill or resource. Name yours as preference/indentation, profile,
    skills/NAME, resources/NAME or sessions/ID/NAME, and any other by its whole URI, ctx://...
    """


@click.group(
    "history",
    cls=LazyGroup,
    sections={"Commands": _HISTORY},
    modules={name: "history" for name in _HISTORY if name != "prove"},
)
def history_command() -> None:
    """Show, compare, restore and prove every version of every text.

    KEY is the path of a text in the memory: notes/plan.md. VERSION is a number that `log KEY`
    shows. A moment is a date (2026-03-01, all of that day), a time (2026-03-01T10:00:00Z; without
    a zone, in UTC) or a position that `log` shows.
    """


def main() -> None:
    """Run the command line. A `PerdureError` is printed as one line, without a traceback."""
    _open_closed_streams()
    try:
        cli()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except PerdureError as error:
        out.mention(f"perdure: {shown(re.sub(_LINE_BREAK, ' ', message_of(error)))}")
        sys.exit(1)


def _open_closed_streams() -> None:
    """Open the null device for each of stdin, stdout and stderr that the process lacks."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - open until the end
