"""`mcp`."""

import os
from typing import TYPE_CHECKING, Unpack

import click

from perdure.errors import PackageMissingError
from perdure.surfaces.mcp.opened import Opened
from perdure.surfaces.nodes.opening import Caller, asked_by

if TYPE_CHECKING:
    from perdure.surfaces.mcp.server import Server


@click.command("mcp")
@asked_by
def mcp_command(**caller: Unpack[Caller]) -> None:
    """Let an agent use memory, over the Model Context Protocol on stdin and stdout.

    An agent starts this itself: `perdure install` tells it how. It ends with its input, or when it
    is told to. Memory is opened by the first tool that is called. The agent reaches what --user
    does and no more, unless --as-role says so.
    """
    with Opened(os.environ, caller) as opened:
        _server(opened).serve()


def _server(opened: Opened) -> "Server":
    try:
        from perdure.surfaces.mcp.server import Server
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "perdure":
            raise
        raise PackageMissingError(
            "what speaks the Model Context Protocol is not installed. "
            "Fix: pip install '.[mcp]' from a checkout."
        ) from error
    return Server(opened)
