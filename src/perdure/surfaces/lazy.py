"""Commands that are imported when they are asked for, and what the system refuses in them."""

import os
import sys
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from perdure.errors import PerdureError, StorageError, StorageFaultError
from perdure.faults import explain
from perdure.surfaces.ending import PIPE_CLOSED, ended, forget_output

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem[str]"]:
        """Complete the names of commands without importing any of them."""
        if incomplete.startswith("-") and incomplete:
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem

        return [
            CompletionItem(name, help=each.told)
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
                formatter.write_dl([(name.ljust(widest), each.told) for name, each in part.items()])

    def main(self, *args: Any, standalone_mode: bool = True, **settings: Any) -> Any:  # noqa: ANN401 - click's own
        """Run the command line, and end the process as `docs/reference/command-line.md` says."""
        run = partial(super().main, *args, standalone_mode=False, **settings)
        if not standalone_mode:
            return run()
        sys.exit(ended(run))

    def make_context(self, *args: Any, **settings: Any) -> click.Context:  # noqa: ANN401 - click's own
        try:
            return super().make_context(*args, **settings)
        except BrokenPipeError:  # as below; help is told before anything is invoked
            forget_output()
            sys.exit(PIPE_CLOSED)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except PerdureError:
            raise
        except BrokenPipeError:  # whoever read our answer has read enough
            forget_output()
            ctx.exit(PIPE_CLOSED)
        except OSError as error:
            raise _explained(error) from error


def _explained(error: OSError) -> StorageError:
    if isinstance(error.filename, str):
        return explain(error, *os.path.split(error.filename))
    forget_output()
    return StorageFaultError(
        f"the answer can't be written: the system said {error.strerror!a}. "
        "Fix: check where it goes."
    )
