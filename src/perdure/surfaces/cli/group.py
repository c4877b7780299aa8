"""Commands that are imported when they are asked for, and how they end."""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from io import UnsupportedOperation
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from perdure.errors import PerdureError, StorageError, StorageFaultError, explain
from perdure.surfaces.out import shown

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

INTERRUPTED = 130
"""As a shell says it of who was ended by SIGINT."""
PIPE_CLOSED = 141
"""As a shell says it of who was ended by SIGPIPE."""

_FIX = "Fix: "
_SHOWS_HELP: tuple[type[Exception], ...] = tuple(
    filter(None, [getattr(click.exceptions, "NoArgsIsHelpError", None)])
)
"""What click raises if nothing is said; before 8.2, it ended by itself."""


def exit_code(run: Callable[[], object]) -> int:
    """Run a command line; say what was wrong with it, and return the exit code."""
    try:
        code = run()
    except click.UsageError as error:
        told = error if isinstance(error, _SHOWS_HELP) else _with_fix(error)
        told.show()
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
    """Return the error in words that do nothing to a terminal, and end with what to do."""
    said = "\n".join(shown(line) if line else "" for line in error.format_message().split("\n"))
    if _FIX not in said:
        path = error.ctx.command_path if error.ctx is not None else "perdure"
        said = f"{said.rstrip('.')}. {_FIX}`{path} --help` shows what it takes."
    return click.UsageError(said, error.ctx)


def discard_output() -> None:
    """Let nothing complain when what is left in the buffer is written at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(UnsupportedOperation):  # it goes to no file
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


class LazyCommand(NamedTuple):
    """A command that nobody has imported yet."""

    target: str
    """Its module and its name there, with a colon between."""
    help: str


Sections = Mapping[str, Mapping[str, LazyCommand]]
"""Commands by name, below the headings of the help."""
HIDDEN = ""
"""The heading of those that the help does not tell of."""


class LazyGroup(click.Group):
    """A group that lists its commands without importing them, and imports the one that is run."""

    def __init__(self, *, sections: Sections, **settings: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(**settings)
        self.sections = sections
        self._later = {name: each for part in sections.values() for name, each in part.items()}
        for name, each in self._later.items():
            self.add_command(click.Command(name, short_help=each.help))

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [name for name in self._later if name not in self.sections.get(HIDDEN, {})]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in self._later:
            return None
        module, _, name = self._later[cmd_name].target.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem[str]"]:
        """Complete the names of commands without importing any of them."""
        if incomplete.startswith("-") and incomplete:
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem

        return [
            CompletionItem(name, help=each.help)
            for name, each in self._later.items()
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        widest = max(map(len, self._later))
        for heading, part in self.sections.items():
            if heading == HIDDEN:
                continue
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), each.help) for name, each in part.items()])

    def main(self, *args: Any, standalone_mode: bool = True, **settings: Any) -> Any:  # noqa: ANN401 - click's own
        """Run the command line, and end the process as `docs/reference/command-line.md` says."""
        run = partial(super().main, *args, standalone_mode=False, **settings)
        if not standalone_mode:
            return run()
        sys.exit(exit_code(run))

    def make_context(self, *args: Any, **settings: Any) -> click.Context:  # noqa: ANN401 - click's own
        try:
            return super().make_context(*args, **settings)
        except BrokenPipeError:  # as below; help is told before anything is invoked
            discard_output()
            sys.exit(PIPE_CLOSED)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except PerdureError:
            raise
        except BrokenPipeError:  # whoever read our answer has read enough
            discard_output()
            ctx.exit(PIPE_CLOSED)
        except OSError as error:
            raise _explained(error) from error


def _explained(error: OSError) -> StorageError:
    if isinstance(error.filename, str):
        return explain(error, *os.path.split(error.filename))
    discard_output()
    return StorageFaultError(
        f"the answer can't be written: the system said {error.strerror!a}. "
        "Fix: check where it goes."
    )
