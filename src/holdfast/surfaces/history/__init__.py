"""`holdfast history`. Its commands are imported when they are asked for; no other one pays."""

import os
import sys
from importlib import import_module

import click

from holdfast.errors import HoldfastError, StorageError, StorageFaultError
from holdfast.faults import explain

_MODULES = {
    "log": "reading",
    "show": "reading",
    "diff": "reading",
    "blame": "reading",
    "restore": "restoring",
    "verify": "verifying",
    "prove": "proving",
    "gc": "sweeping",
    "export": "carrying",
    "import": "carrying",
    "adopt": "adopting",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _MODULES:
            return None
        module = import_module(f"{__name__}.{_MODULES[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except HoldfastError:
            raise
        except BrokenPipeError:  # whoever read our answer has read enough
            _forget_output()
            return None
        except OSError as error:
            raise _explained(error) from error


@click.group(cls=_Commands)
def history() -> None:
    """See, compare, restore and prove every version of every text.

    KEY names a text by its place in the memory: notes/plan.md. VERSION is a number that `log KEY`
    shows. A moment is a date (2026-03-01, all of that day), a time (2026-03-01T10:00:00Z; without
    a zone, in UTC) or a position that `log` shows.
    """


def _explained(error: OSError) -> StorageError:
    if isinstance(error.filename, str):
        return explain(error, *os.path.split(error.filename))
    return StorageFaultError(
        f"the answer can't be written: the system said {error.strerror!a}. "
        "Fix: check where it goes."
    )


def _forget_output() -> None:
    """Let nothing complain when what is left in the buffer is written at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
