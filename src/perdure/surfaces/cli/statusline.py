"""`perdure statusline`."""

import os
import sys
from contextlib import suppress

import click

from perdure.agents.hooks import deadline, home_of
from perdure.agents.status_line import StatusLineInput, status_line
from perdure.surfaces import out

_SECONDS = 2.0
_MOST_BYTES = 65_536


@click.command("statusline")
def statusline_command() -> None:
    """Print one line about memory here, for the status line of Claude Code.

    Shows how many memories the project has, how many lines this session was shown and used, when
    something was last saved and, if enabled, today's runs of the background model. Reads the JSON
    of Claude Code from stdin, if there is any. Does not open the memory; on any error, prints
    nothing and exits with 0.
    """
    with suppress(Exception), deadline(_SECONDS, lambda: None):  # an agent shows it
        home = home_of(os.environ)
        if home is not None:
            given = b"" if sys.stdin.isatty() else sys.stdin.buffer.read(_MOST_BYTES)
            out.line(status_line(StatusLineInput.parse(home, given, os.getcwd())))  # noqa: PTH109 - as a text
