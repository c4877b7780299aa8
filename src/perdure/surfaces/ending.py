"""How a command ends: with which exit code, and what is said of arguments that can't be."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from io import UnsupportedOperation

import click

from perdure.surfaces.telling import shown

INTERRUPTED = 130
"""As a shell says it of who was ended by SIGINT."""
PIPE_CLOSED = 141
"""As a shell says it of who was ended by SIGPIPE."""

_FIX = "Fix: "
_SHOWS_HELP: tuple[type[Exception], ...] = tuple(
    filter(None, [getattr(click.exceptions, "NoArgsIsHelpError", None)])
)
"""What click raises if nothing is said; before 8.2, it ended by itself."""


def ended(run: Callable[[], object]) -> int:
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


def forget_output() -> None:
    """Let nothing complain when what is left in the buffer is written at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(UnsupportedOperation):  # it goes to no file
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
