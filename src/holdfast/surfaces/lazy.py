"""Commands that are imported when they are asked for, and what the system refuses in them."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from io import UnsupportedOperation
from typing import Any, NamedTuple

import click

from holdfast.errors import HoldfastError, StorageError, StorageFaultError
from holdfast.faults import explain


class Later(NamedTuple):
    """A command that nobody has imported yet."""

    target: str
    """Its module and its name there, with a colon between."""
    told: str
    """The first sentence of its help."""


Sections = Mapping[str, Mapping[str, Later]]
"""Commands by name, below the headings of the help."""
HIDDEN = ""
"""The heading of those that the help does not tell of."""


class Commands(click.Group):
    """A group that lists its commands without importing them, and imports the one that is run."""

    def __init__(self, *, sections: Sections, **settings: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(**settings)
        self.sections = sections
        self._later = {name: each for part in sections.values() for name, each in part.items()}
        for name, each in self._later.items():
            self.add_command(click.Command(name, short_help=each.told))

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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        widest = max(map(len, self._later))
        for heading, part in self.sections.items():
            if heading == HIDDEN:
                continue
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), each.told) for name, each in part.items()])

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


def _explained(error: OSError) -> StorageError:
    if isinstance(error.filename, str):
        return explain(error, *os.path.split(error.filename))
    _forget_output()
    return StorageFaultError(
        f"the answer can't be written: the system said {error.strerror!a}. "
        "Fix: check where it goes."
    )


def _forget_output() -> None:
    """Let nothing complain when what is left in the buffer is written at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(UnsupportedOperation):  # it goes to no file
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
