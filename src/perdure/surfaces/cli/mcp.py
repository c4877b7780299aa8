"""`perdure mcp`."""

import os
from contextlib import ExitStack

import click

from perdure.dataclass import replace
from perdure.model import Role
from perdure.surfaces.cli.options import caller_in, caller_options
from perdure.surfaces.mcp.server import Call, Server


@click.command("mcp")
@caller_options
def mcp_command(as_role: str | None, **options: str | None) -> None:
    """Serve memory to an agent, over the Model Context Protocol on stdin and stdout.

    `perdure install` configures agents to start this. It ends when stdin ends, or at SIGTERM or
    Ctrl-C. The first tool call opens the memory. The agent has the access of --user, unless
    --as-role gives more.
    """
    caller = caller_in({**options, "as_role": as_role})
    if as_role is None:
        caller = replace(caller, role=Role.MEMBER)
    with ExitStack() as stack:

        def open_tools() -> Call:
            from perdure.surfaces.mcp.tools import Tools

            return stack.enter_context(Tools(os.environ, caller)).call

        Server(os.environ, open_tools).serve()
