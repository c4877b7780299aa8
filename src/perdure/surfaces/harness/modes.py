"""`state-mode`."""

import os

import click

from perdure.app.projects import device_of
from perdure.config import STATE_MODES, load_config, set_state_mode
from perdure.harness import mark_mode, state_mode
from perdure.harness.modes import marked_mode
from perdure.harness.projects import project_root
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.harness.opening import in_folder
from perdure.surfaces.telling import mention, tell_json, tell_line

_OLD = "vault"


@click.command("state-mode")
@click.argument("mode", required=False, type=click.Choice(sorted(STATE_MODES)))
@click.option("--here", is_flag=True, help="For this checkout only; it wins over the machine.")
@as_json(ONE_OBJECT)
@in_folder
def state_mode_command(mode: str | None, cwd: str, *, here: bool, as_json: bool) -> None:
    """Say who keeps the plans of projects, or change it.

    With MODE backend, a synced backend does, for all machines that share it; with local, they stay
    in the .harness folder of each checkout.
    """
    root = project_root(cwd)
    if mode == _OLD:
        mention("vault is the old name of backend, which is what is written")
    if mode is not None and here:
        mark_mode(root, str(load_config(os.environ).home), mode)
    elif mode is not None:
        set_state_mode(os.environ, mode)
    device = device_of(load_config(os.environ))
    now, marked = state_mode(root, device), marked_mode(root)
    if as_json:
        tell_json({"mode": now, "checkout": marked, "machine": device.state_mode})
    else:
        said = "this checkout" if marked else "this machine" if device.state_mode else "the default"
        tell_line(f"{now}, by {said}")
