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

    It says how many memories the project has, how many lines this session was shown and used, when
    something was last saved and, if it is on, today's runs of the background model. The JSON of
    Claude Code is read from stdin, if there is any. Memory is not opened; whatever goes wrong, it
    prints nothing and ends with 0.
    """
    with suppress(Exception), deadline(_SECONDS, lambda: None):  # an agent shows it
        home = home_of(os.environ)
        if home is not None:
            given = b"" if sys.stdin.isatty() else sys.stdin.buffer.read(_MOST_BYTES)
            out.line(status_line(StatusLineInput.parse(home, given, os.getcwd())))  # noqa: PTH109 - as a text
