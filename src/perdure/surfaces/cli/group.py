"""A command group that imports a command when it is run, and the exit codes of the program."""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from io import UnsupportedOperation
from typing import TYPE_CHECKING, Any

import click

from perdure.errors import PerdureError, StorageError, StorageFaultError, storage_error
from perdure.surfaces.out import shown

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
    text = "\n".join(shown(line) if line else "" for line in error.format_message().split("\n"))
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
