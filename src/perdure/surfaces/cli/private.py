"""`perdure private`."""

import os
from pathlib import Path

import click

from perdure.agents.hooks import home_of
from perdure.agents.switches import private_state, set_private, terminal_session
from perdure.errors import ConfigError, NodeNotFoundError
from perdure.surfaces import out
from perdure.surfaces.cli.options import ONE_OBJECT, as_json


@click.command("private")
@click.argument("action", type=click.Choice(("on", "off", "status")), default="status")
@click.option("--session", metavar="ID", default="", help="Which session; by default the newest.")
@as_json(ONE_OBJECT)
def private_command(action: str, *, session: str, as_json: bool) -> None:
    """Keep nothing of an agent's session, from now until `off`.

    It is the session in which this is called or, from a terminal, the newest one in this folder.
    Meanwhile memory gives it nothing either. In the session itself, `/private on` does the same.
    """
    session, folder, home = session or terminal_session(os.environ), str(Path.cwd()), _home()
    if action != "status" and not set_private(home, folder, session, is_on=action == "on"):
        raise NodeNotFoundError(
            "no agent has called a hook in this folder. Fix: name the session with --session ID, "
            "or type `/private on` in it."
        )
    state = private_state(home, folder, session)
    if as_json:
        out.json({"private": state})
    else:
        out.line("private: nothing of this session is kept" if state else "not private")


def _home() -> Path:
    home = home_of(os.environ)
    if home is None:
        raise ConfigError("neither PERDURE_HOME nor HOME is set. Fix: set PERDURE_HOME.")
    return home
