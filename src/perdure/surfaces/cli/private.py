"""`perdure private`."""

import os
from pathlib import Path

import click

from perdure.agents.hooks import home_of
from perdure.agents.switches import set_private, switches_at, terminal_session
from perdure.errors import ConfigError, NodeNotFoundError
from perdure.model.trust import OptOut
from perdure.surfaces import out
from perdure.surfaces.cli.options import as_json


@click.command("private")
@click.argument("action", type=click.Choice(("on", "off", "status")), default="status")
@click.option("--session", metavar="ID", default="", help="The session. Default: the newest.")
@as_json()
def private_command(action: str, *, session: str, as_json: bool) -> None:
    """Store nothing of an agent's session, from now until `off`.

    Applies to the session that runs this command or, in a terminal, to the newest session in this
    folder. Until `off`, the session gets nothing from memory either. In the session itself,
    `/private on` does the same. `status` shows which settings apply here, and why.
    """
    session, folder, home = session or terminal_session(os.environ), str(Path.cwd()), _home()
    if action != "status" and not set_private(home, folder, session, is_on=action == "on"):
        raise NodeNotFoundError(
            "no agent has called a hook in this folder. Fix: name the session with --session ID, "
            "or type `/private on` in it."
        )
    found = switches_at(home, os.environ, folder, session)
    if as_json:
        reasons = {"use": _reason(found.use), "contribute": _reason(found.contribute)}
        out.json({"private": found.private, **reasons})
        return
    out.line("private: nothing of this session is stored" if found.private else "not private")
    for reason, what in ((found.use, "use memory"), (found.contribute, "contribute to it")):
        if reason not in {None, OptOut.PRIVATE}:
            out.line(f"sessions here do not {what}: {_reason(reason)}")


def _reason(reason: OptOut | None) -> str | None:
    return None if reason is None else reason.value


def _home() -> Path:
    home = home_of(os.environ)
    if home is None:
        raise ConfigError("neither PERDURE_HOME nor HOME is set. Fix: set PERDURE_HOME.")
    return home
