"""`perdure state-mode`."""

import os

import click

from perdure.app.projects import state_modes
from perdure.harness.state import NAMES
from perdure.surfaces import out
from perdure.surfaces.cli.options import as_json
from perdure.surfaces.cli.plan import in_folder

_OLD_NAME = "vault"


@click.command("state-mode")
@click.argument("mode", required=False, type=click.Choice(sorted(NAMES)))
@click.option("--here", is_flag=True, help="Set it for this checkout only, above the machine's.")
@as_json()
@in_folder
def state_mode_command(mode: str | None, cwd: str, *, here: bool, as_json: bool) -> None:
    """Show or change where the plans of projects are stored.

    With MODE backend, they are stored in a synced backend, for all machines that share it; with
    local, in the .harness folder of each checkout.
    """
    if mode == _OLD_NAME:
        out.mention("vault is the old name of backend; backend is written")
    now = state_modes(os.environ, cwd, mode, here=here)
    if as_json:
        out.json(now._asdict())
    else:
        source = "checkout" if now.checkout else "machine" if now.machine else "default"
        out.line(f"{now.mode}, set by the {source}")
