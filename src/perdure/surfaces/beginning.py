"""`init`."""

import json
import os
from contextlib import suppress
from pathlib import Path

import click

from perdure.app.beginning import BACKEND, VAULT, Begun, begin
from perdure.app.configuring import Place
from perdure.errors import AbsentError
from perdure.storage import registry
from perdure.surfaces.asking import ONE_OBJECT, as_json
from perdure.surfaces.telling import shown, tell_json, tell_line

NEXT = (
    'perdure save "I like my tea without milk"',
    'perdure recall "how do I like my tea?"',
    "perdure status",
)
_LISTS = (".config/obsidian/obsidian.json", "Library/Application Support/obsidian/obsidian.json")
"""Where Obsidian keeps which vaults there are, below a user's home."""
_VAULT = "vault"


@click.command("init")
@click.option(
    "--vault", metavar="PATH", help="Keep memories in this folder, which others may write and sync."
)
@click.option("--backend", metavar="NAME", help="Keep memories in this backend: device-local.")
@click.option("--find-vault", is_flag=True, help="Ask Obsidian where its vault is, and take that.")
@click.option("--force", is_flag=True, help="Change what the config file says otherwise.")
@as_json(ONE_OBJECT)
def init_command(
    vault: str | None, backend: str | None, *, find_vault: bool, force: bool, as_json: bool
) -> None:
    """Set up memory on this machine: a config file, and a store that works.

    It needs no answers, and may be run again: what is there stays, and is told of. The store is
    opened and written before anything is configured. In a config file that is there, only what you
    ask for is changed, and only with --force if it says otherwise; comments stay.
    """
    if find_vault and vault is not None:
        raise click.UsageError("--vault and --find-vault exclude each other. Fix: give one.")
    path = _found_vault() if find_vault else vault
    begun = begin(os.environ, _wanted(path, backend), force=force)
    if as_json:
        tell_json(_json(begun))
        return
    _tell(begun)


def _wanted(vault: str | None, backend: str | None) -> dict[Place, str]:
    if vault is None:
        return {} if backend is None else {BACKEND: _known(backend)}
    if backend not in {None, _VAULT}:
        raise click.UsageError(
            f"a vault is kept by the backend vault, not by {backend!a}. Fix: leave one option out."
        )
    if not vault:
        raise click.UsageError("--vault is empty. Fix: name the folder that the notes are in.")
    return {BACKEND: _VAULT, VAULT: str(Path(vault).expanduser().absolute())}


def _known(backend: str) -> str:
    if backend not in registry:
        raise click.BadParameter(
            f"no backend is called {backend!a}. Fix: use {', '.join(registry.protocols())}.",
            param_hint="--backend",
        )
    return backend


def _found_vault() -> str:
    """Return the one vault that Obsidian knows and that is there."""
    vaults = sorted({path for each in _LISTS for path in _listed(Path.home() / each)})
    if len(vaults) == 1:
        return vaults[0]
    said = ", ".join(map(ascii, vaults))
    what = f"Obsidian has several vaults: {said}" if vaults else "Obsidian knows of no vault here"
    raise AbsentError(f"{what}. Fix: name the folder with --vault.")


def _listed(file: Path) -> list[str]:
    with suppress(OSError, ValueError, RecursionError):
        match json.loads(file.read_bytes()):
            case {"vaults": dict(vaults)}:
                paths = (each.get("path") for each in vaults.values() if isinstance(each, dict))
                return [path for path in paths if isinstance(path, str) and Path(path).is_dir()]
    return []


# ---------------------------------------------------------------- telling
def _tell(begun: Begun) -> None:
    tell_line(f"config   {shown(str(begun.file))}: {_done(begun)}")
    where = f" at {shown(begun.whereabouts)}" if begun.whereabouts else ""
    tell_line(f"storage  {begun.protocol}{where}: opened, and can be written")
    tell_line(f"history  {shown(str(begun.history))}")
    tell_line("\nNext:")
    for command in NEXT:
        tell_line(f"  {command}")


def _done(begun: Begun) -> str:
    changed = ", ".join(map(".".join, begun.changed))
    if not begun.was_there:
        return f"written, with {changed}" if changed else "written; it changes nothing yet"
    return f"it was there; set {changed}" if changed else "it was there, and is left as it is"


def _json(begun: Begun) -> dict[str, object]:
    return {
        "home": str(begun.config.home),
        "config": str(begun.file),
        "written": not begun.was_there or bool(begun.changed),
        "was_there": begun.was_there,
        "changed": [".".join(place) for place in begun.changed],
        "protocol": begun.protocol,
        "storage": begun.whereabouts,
        "history": str(begun.history),
        "next": list(NEXT),
    }
