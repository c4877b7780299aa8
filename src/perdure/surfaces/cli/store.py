"""`perdure store`."""

import os
from typing import TYPE_CHECKING

import click

from perdure.app import adopt_store, separate_store
from perdure.app.setup import configure_vault
from perdure.surfaces import out
from perdure.surfaces.cli.options import as_json
from perdure.surfaces.out import picked, shown

if TYPE_CHECKING:
    from perdure.app.identity import StoreDecision

_FOLDER = click.argument("folder", type=click.Path())


@click.group("store")
def store_command() -> None:
    """Decide which history a moved or copied memory has.

    Each store has an id, in `Perdure/About this folder.md`, by which a moved memory finds its
    history. Where two folders have the same id, or a folder lost its id, you decide.
    """


@store_command.command("adopt")
@_FOLDER
@click.option("--from", "moved_from", metavar="FOLDER", help="Its old path, if its id is lost.")
@as_json()
def adopt_command(folder: str, moved_from: str | None, *, as_json: bool) -> None:
    """Declare that the memory was moved to FOLDER.

    It gets the history of its id. A history that was started there since is set aside, not removed.
    A config file that names another vault is changed to name FOLDER.
    """
    settled = adopt_store(os.environ, folder, moved_from=moved_from)
    is_new = configure_vault(os.environ, folder, settled.id)
    _show(settled, as_json=as_json)
    if is_new:
        out.mention("the config now names this folder, in path of [storage.vault]")


@store_command.command("separate")
@_FOLDER
@as_json()
def separate_command(folder: str, *, as_json: bool) -> None:
    """Declare that FOLDER is a copy of a memory.

    The copy gets an id and a history of its own. The history begins with all versions of the memory
    that was copied.
    """
    _show(separate_store(os.environ, folder), as_json=as_json)


def _show(settled: "StoreDecision", *, as_json: bool) -> None:
    if as_json:
        out.json(picked(settled, "id history put_aside"))
        return
    out.line(f"store    {settled.id}")
    out.line(f"history  {shown(str(settled.history))}")
    if settled.put_aside is not None:
        out.line(f"aside    {shown(str(settled.put_aside))}")
