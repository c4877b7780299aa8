"""`perdure mcp`."""

import os
from contextlib import ExitStack

import click

from perdure.dataclass import replace
from perdure.model import Role
from perdure.surfaces.cli.options import caller_in, caller_options
from perdure.surfaces.mcp.server import Server, ToolSet


@click.command("mcp")
@caller_options
def mcp_command(as_role: str | None, **options: str | None) -> None:
    """Let an agent use memory, over the Model Context Protocol on stdin and stdout.

    An agent starts this itself: `perdure install` tells it how. It ends with its input, or when it
    is told to. Memory is opened by the first tool that is called. The agent reaches what --user
    does and no more, unless --as-role says so.
    """
    caller = caller_in({**options, "as_role": as_role})
    if as_role is None:
        caller = replace(caller, role=Role.MEMBER)
    with ExitStack() as stack:

        def opened() -> ToolSet:
            from perdure.surfaces.mcp.tools import Tools

            return stack.enter_context(Tools(os.environ, caller))

        Server(os.environ, opened).serve()
