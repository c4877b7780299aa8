"""`perdure migrate`."""

import os
from collections.abc import Callable
from typing import TypedDict, Unpack

import click

from perdure import MigrationPlan, MigrationReport
from perdure.app.migration import (
    LayoutChange,
    MigrationTarget,
    change_layout,
    layouts,
    open_migrating,
    roll_back,
    switch_backend,
)
from perdure.app.setup import backends
from perdure.dataclass import asdict
from perdure.surfaces import out
from perdure.surfaces.cli.options import as_json, ask_first, without_asking
from perdure.surfaces.out import counted, shown, sized

_MOST = 10


class MigrateOptions(TypedDict):
    to: str | None
    vault: str | None
    dry_run: bool
    verify: bool
    switch_: bool
    rollback: bool
    layout: str | None
    yes: bool


@click.command("migrate")
@click.option("--to", metavar="BACKEND", help="The backend to copy to: vault, device-local, ...")
@click.option("--vault", metavar="PATH", help="The folder of the vault. Default: the config's.")
@click.option("--dry-run", is_flag=True, help="Show what would be copied, and what conflicts.")
@click.option("--verify", is_flag=True, help="Only compare both sides.")
@click.option(
    "--switch", "switch_", is_flag=True, help="Change the config to the new backend afterwards."
)
@click.option(
    "--layout",
    type=click.Choice(layouts()),
    help="Change the layout of the same store: one note or five files (agfs) per node.",
)
@click.option("--rollback", is_flag=True, help="Undo the last --switch.")
@without_asking
@as_json()
def migrate_command(*, as_json: bool, **options: Unpack[MigrateOptions]) -> None:
    """Copy the memory to another backend, with its history.

    The source is not changed. Every text and version is compared on both sides. After an
    interruption, run the same command again.
    """
    if options["rollback"]:
        roll_back(os.environ)
        line = "the config is as it was before"
        out.answer({"rolled_back": True}, line, as_json=as_json)
        return
    if options["layout"] is not None:
        _change_layout(options, as_json=as_json)
        return
    target = _target(options)
    with open_migrating(os.environ, target) as migrating, out.progress("copying") as show:
        if options["verify"]:
            _print_done(migrating.verify(), target, switched=False, as_json=as_json)
            return
        plan = migrating.plan()
        if options["dry_run"]:
            _print_plan(plan, as_json=as_json)
            return
        migrating.require_room()
        if not options["yes"]:
            ask_first("\n".join(_planned(plan)), "nothing was copied")
        done = migrating.apply(show)
    if options["switch_"]:
        switch_backend(os.environ, target, done)
    _print_done(done, target, switched=options["switch_"], as_json=as_json)


def _change_layout(options: MigrateOptions, *, as_json: bool) -> None:
    if options["to"] is not None:
        raise click.UsageError("--layout and --to exclude each other. Fix: leave --to out.")
    for name in ("dry_run", "verify", "switch_"):
        if options[name]:
            option = name.strip("_").replace("_", "-")
            raise click.UsageError(
                f"--layout has no --{option}; nothing was changed. Fix: leave --{option} out; "
                "`perdure migrate --layout` with the former layout undoes it."
            )
    done = change_layout(os.environ, options["layout"] or "", _ask(yes=options["yes"]))
    if as_json:
        out.json(asdict(done))
    elif done.texts:
        out.line(f"layout {done.layout}: {counted(done.texts, 'text')} written and compared")
        if done.notes:
            out.line(_notes(done))
    else:
        out.line(f"layout {done.layout}: already in use")


def _ask(*, yes: bool) -> Callable[[int], None]:
    def ask(notes: int) -> None:
        if not yes:
            what = f"in the layout agfs, {counted(notes, 'note')} of yours will not be memory; "
            ask_first(f"{what}`perdure migrate --layout notes` undoes it", "nothing was changed")

    return ask


def _notes(done: LayoutChange) -> str:
    what = f"{counted(done.notes, 'note')} of yours: the files are unchanged"
    if done.layout == "notes":
        return f"{what}, and are memory in place"
    return (
        f"{what}. In the layout {done.layout} they are not memory; "
        "`perdure migrate --layout notes` undoes it"
    )


def _target(options: MigrateOptions) -> MigrationTarget:
    to = options["to"]
    if to is None:
        raise click.UsageError("Missing --to BACKEND. Fix: name the backend to copy to.")
    if to not in backends():
        known = ", ".join(backends())
        raise click.UsageError(f"there is no backend {to!a}. Fix: use one of {known}.")
    if options["vault"] is not None and to != "vault":
        raise click.UsageError("--vault needs --to vault. Fix: leave it out.")
    return MigrationTarget(to, options["vault"])


def _planned(plan: MigrationPlan) -> list[str]:
    texts = f"{counted(plan.texts, 'text')} of {sized(plan.size)}"
    entries = f"{counted(plan.position, 'entry')} of history"
    lines = [
        f"from {shown(plan.source)} to {shown(plan.target)}",
        f"    {texts}, {counted(plan.versions, 'version')}, {entries}",
    ]
    if plan.known:
        lines.append(f"    {counted(plan.known, 'entry')} of them already copied")
    lines += [f"conflict: {shown(each)}" for each in plan.conflicts[:_MOST]]
    if len(plan.conflicts) > _MOST:
        lines.append(f"and {len(plan.conflicts) - _MOST} more")
    return lines


def _print_plan(plan: MigrationPlan, *, as_json: bool) -> None:
    if not as_json:
        for line in _planned(plan):
            out.line(line)
        return
    fields = asdict(plan)
    out.json({("bytes" if name == "size" else name): fields[name] for name in fields})


def _print_done(
    done: MigrationReport, target: MigrationTarget, *, switched: bool, as_json: bool
) -> None:
    if as_json:
        out.json({**asdict(done), "switched": switched})
        return
    same = f"{counted(done.texts, 'text')} and {counted(done.versions, 'version')}"
    out.line(f"the same on both sides: {same}, {counted(done.position, 'entry')} of history")
    if switched:
        out.line("the config now names the new backend; `perdure migrate --rollback` undoes it")
        return
    entries = ", ".join(
        f"[{'.'.join(tables)}] {name} = {value!a}"
        for (*tables, name), value in target.entries().items()
    )
    out.mention(f"to use it, add --switch, or set {entries} in the config")
