"""The command line: the groups of commands, and the exit codes of the program.

Each command is imported when it is run, so that no other one costs time.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from io import UnsupportedOperation
from typing import TYPE_CHECKING, Any

import click

from perdure.errors import PerdureError, StorageError, StorageFaultError, storage_error
from perdure.surfaces import out
from perdure.surfaces.out import message_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

INTERRUPTED = 130
"""The exit code that a shell reports for a process ended by SIGINT."""
PIPE_CLOSED = 141
"""The exit code that a shell reports for a process ended by SIGPIPE."""
HIDDEN = ""
"""The heading of commands that the help does not list."""

_FIX = "Fix: "
_SHOWS_HELP: tuple[type[Exception], ...] = tuple(
    filter(None, [getattr(click.exceptions, "NoArgsIsHelpError", None)])
)
"""What click raises where a group gets no command; before 8.2, click exited by itself."""


class LazyGroup(click.Group):
    """A group that lists its commands without importing them.

    `sections` maps the headings of the help to the commands below them, each with its one-line
    help. The command NAME is `NAME_command` of the module NAME in `perdure.surfaces.cli`, unless
    `modules` names another module there; an empty name is the package itself.
    """

    def __init__(
        self,
        *,
        sections: Mapping[str, Mapping[str, str]],
        modules: Mapping[str, str],
        **settings: Any,  # noqa: ANN401 - click's own
    ) -> None:
        super().__init__(**settings)
        self.sections = sections
        self._modules = modules
        self._help = {name: text for part in sections.values() for name, text in part.items()}
        for name, text in self._help.items():
            self.add_command(click.Command(name, short_help=text))

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [name for name in self._help if name not in self.sections.get(HIDDEN, {})]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in self._help:
            return None
        name = cmd_name.replace("-", "_")
        module = import_module(f"{__package__}.{self._modules.get(name, name)}".rstrip("."))
        command: click.Command = getattr(module, f"{name}_command")
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem[str]"]:
        """Complete the names of commands without importing any of them."""
        if incomplete.startswith("-") and incomplete:
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem

        return [
            CompletionItem(name, help=text)
            for name, text in self._help.items()
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        widest = max(map(len, self._help))
        for heading, part in self.sections.items():
            if heading != HIDDEN:
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(widest), text) for name, text in part.items()])

    def main(self, *args: Any, standalone_mode: bool = True, **settings: Any) -> Any:  # noqa: ANN401 - click's own
        """Run the command line; exit with a code of `docs/reference/command-line.md`."""
        run = partial(super().main, *args, standalone_mode=False, **settings)
        if not standalone_mode:
            return run()
        sys.exit(exit_code(run))

    def make_context(self, *args: Any, **settings: Any) -> click.Context:  # noqa: ANN401 - click's own
        try:
            return super().make_context(*args, **settings)
        except BrokenPipeError:  # as in `invoke`; help is printed before a command is invoked
            discard_output()
            sys.exit(PIPE_CLOSED)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except PerdureError:
            raise
        except BrokenPipeError:  # the reader of our output has closed it
            discard_output()
            ctx.exit(PIPE_CLOSED)
        except OSError as error:
            raise _explained(error) from error


def exit_code(run: Callable[[], object]) -> int:
    """Run a command line, print its error if there is one, and return the exit code."""
    try:
        code = run()
    except click.UsageError as error:
        (error if isinstance(error, _SHOWS_HELP) else _with_fix(error)).show()
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            return INTERRUPTED
        click.echo("nothing was done", err=True)
        return 1
    return code if isinstance(code, int) else 0


def _with_fix(error: click.UsageError) -> click.UsageError:
    """Return the error with control characters escaped, and with a fix at its end."""
    text = "\n".join(out.shown(line) if line else "" for line in error.format_message().split("\n"))
    if _FIX not in text:
        path = error.ctx.command_path if error.ctx is not None else "perdure"
        text = f"{text.rstrip('.')}. {_FIX}see `{path} --help`."
    return click.UsageError(text, error.ctx)


def discard_output() -> None:
    """Send what is left in the buffer of stdout to the null device, so that no error follows."""
    null = os.open(os.devnull, os.O_WRONLY)
    with suppress(UnsupportedOperation):  # stdout is not a file
        os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _explained(error: OSError) -> StorageError:
    if isinstance(error.filename, str):
        return storage_error(error, *os.path.split(error.filename))
    discard_output()
    return StorageFaultError(
        f"the output can't be written: the system reported {error.strerror!a}. "
        "Fix: check where it goes."
    )


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
        out.mention(f"perdure: {out.shown(re.sub(_LINE_BREAK, ' ', message_of(error)))}")
        sys.exit(1)


def _open_closed_streams() -> None:
    """Open the null device for each of stdin, stdout and stderr that the process lacks."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - open until the end
