"""`perdure state-mode`."""

import os

import click

from perdure.app.project_state import state_modes
from perdure.harness.state_files import NAMES
from perdure.surfaces import out
from perdure.surfaces.cli.options import as_json
from perdure.surfaces.cli.plan import in_folder

_OLD = "vault"


@click.command("state-mode")
@click.argument("mode", required=False, type=click.Choice(sorted(NAMES)))
@click.option("--here", is_flag=True, help="For this checkout only; it wins over the machine.")
@as_json()
@in_folder
def state_mode_command(mode: str | None, cwd: str, *, here: bool, as_json: bool) -> None:
    """Say who keeps the plans of projects, or change it.

    With MODE backend, a synced backend does, for all machines that share it; with local, they stay
    in the .harness folder of each checkout.
    """
    if mode == _OLD:
        out.mention("vault is the old name of backend, which is what is written")
    now = state_modes(os.environ, cwd, mode, here=here)
    if as_json:
        out.json(now._asdict())
    else:
        by = "this checkout" if now.checkout else "this machine" if now.machine else "the default"
        out.line(f"{now.mode}, by {by}")
