"""`adopt`."""

import os

import click

from perdure.app import adopt_history
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.telling import tell_json, tell_line


@click.command("adopt")
@click.argument("folder", type=click.Path())
@as_json(ONE_OBJECT)
def adopt_command(folder: str, *, as_json: bool) -> None:
    """Take over the history of a memory that was moved or renamed.

    FOLDER is where it was. A history that this memory has begun since is put aside, not removed.
    """
    aside = adopt_history(os.environ, folder)
    if as_json:
        tell_json({"adopted": True, "put_aside": None if aside is None else str(aside)})
        return
    tell_line(f"this memory has the history of {folder} now")
    if aside is not None:
        tell_line(f"the one that it had begun is kept in {aside}")
