"""`perdure init`."""

import os

import click

from perdure.app.setup import InitResult, backends, init_home
from perdure.app.setup import find_vault as obsidian_vault
from perdure.surfaces import out
from perdure.surfaces.cli.options import as_json, index_first
from perdure.surfaces.out import animated, picked, shown

_MANY = 200
NEXT = (
    'perdure save "I like my tea without milk"',
    'perdure recall "how do I like my tea?"',
    "perdure status",
)


@click.command("init")
@click.option(
    "--vault",
    metavar="PATH",
    help="Store memories in this folder, which other programs may write and sync.",
)
@click.option("--backend", metavar="NAME", help="Store memories in this backend: device-local.")
@click.option("--find-vault", is_flag=True, help="Use the one vault that Obsidian has.")
@click.option("--force", is_flag=True, help="Change values that the config file already has.")
@as_json()
def init_command(
    vault: str | None, backend: str | None, *, find_vault: bool, force: bool, as_json: bool
) -> None:
    """Set up memory on this machine: a config file, and a working store.

    Asks no questions, and can be run again: what exists stays, and is reported. The store is opened
    and written before anything is configured. In an existing config file, only what you ask for is
    changed, and values that differ only with --force; comments stay.
    """
    if find_vault and vault is not None:
        raise click.UsageError("--vault and --find-vault exclude each other. Fix: give one.")
    if find_vault:
        vault = obsidian_vault()
    _check(vault, backend)
    begun = init_home(os.environ, vault=vault, backend=backend, force=force)
    if as_json:
        out.json(_json(begun))
    else:
        _print(begun)


def _check(vault: str | None, backend: str | None) -> None:
    if vault is None and backend is not None and backend not in (known := backends()):
        raise click.BadParameter(
            f"there is no backend {backend!a}. Fix: use {', '.join(known)}.",
            param_hint="--backend",
        )
    if vault is not None and backend not in {None, "vault"}:
        raise click.UsageError(
            f"--vault needs the backend vault, not {backend!a}. Fix: leave one option out."
        )
    if vault == "":
        raise click.UsageError("--vault is empty. Fix: name the folder of the notes.")


def _print(begun: InitResult) -> None:
    out.line(f"config   {shown(str(begun.file))}: {_done(begun)}")
    where = f" at {shown(begun.whereabouts)}" if begun.whereabouts else ""
    out.line(f"storage  {begun.protocol}{where}: opened and writable")
    out.line(f"store    {begun.store}")
    if ("user",) in begun.changed:
        out.line(f"user     {shown(begun.config.user)}: the owner of this store; you act as them")
    out.line(f"history  {shown(str(begun.history))}")
    if begun.notes or begun.others:
        out.line(f"notes    {_notes(begun)}")
    for line in begun.left_out:
        out.line(f"         {line}")
    if begun.notes:
        _index(begun.notes)
    out.line("\nNext:")
    for command in NEXT:
        out.line(f"  {command}")


def _index(notes: int) -> None:
    """Index the notes of a vault at a terminal; elsewhere, print when they will be indexed."""
    from perdure.app import caller_for, open_memory

    if animated():
        with open_memory(os.environ, caller_for(os.environ)) as memory:
            index_first(memory)
    elif notes > _MANY:
        out.line(
            "index    built by the first recall, which takes a while, or `perdure worker --once`"
        )


def _notes(begun: InitResult) -> str:
    """Return how many files of a vault are memory now, and how many are not."""
    others = sum(begun.others.values())
    kinds = ", ".join(f"{count} {ending}" for ending, count in begun.others.items())
    notes = f"{begun.notes:,} {'note is' if begun.notes == 1 else 'notes are'} memory now"
    rest = f"{others:,} {'attachment is' if others == 1 else 'attachments are'} not"
    return f"{notes}; {rest} ({kinds})" if others else notes


def _done(begun: InitResult) -> str:
    changed = ", ".join(map(".".join, begun.changed))
    if not begun.was_there:
        return f"written, with {changed}" if changed else "written, with all defaults"
    return f"existed; set {changed}" if changed else "existed; not changed"


def _json(begun: InitResult) -> dict[str, object]:
    return {
        "home": str(begun.config.home),
        **picked(
            begun,
            "config=file was_there protocol storage=whereabouts store history notes others "
            "left_out",
        ),
        "written": not begun.was_there or bool(begun.changed),
        "changed": [".".join(place) for place in begun.changed],
        "next": list(NEXT),
    }
