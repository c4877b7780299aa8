"""`perdure migrate`."""

import os
from collections.abc import Callable
from typing import TypedDict, Unpack

import click

from perdure import MigrationPlan, MigrationReport
from perdure.app.relayout import LAYOUTS, Relaid, change_layout
from perdure.app.setup import Target, backends, open_migrating, roll_back, switch
from perdure.dataclass import asdict
from perdure.surfaces import out
from perdure.surfaces.cli.options import as_json, ask_first, without_asking
from perdure.surfaces.telling import counted, shown, sized

_MOST = 10


class Wishes(TypedDict):
    to: str | None
    vault: str | None
    dry_run: bool
    verify: bool
    switch_: bool
    rollback: bool
    layout: str | None
    yes: bool


@click.command("migrate")
@click.option("--to", metavar="BACKEND", help="Where to: vault, device-local or another.")
@click.option("--vault", metavar="PATH", help="The folder of the vault; else as the config says.")
@click.option("--dry-run", is_flag=True, help="Only say what would be copied, and what conflicts.")
@click.option("--verify", is_flag=True, help="Only compare both sides.")
@click.option(
    "--switch", "switch_", is_flag=True, help="Then use the other one: change the config."
)
@click.option(
    "--layout",
    type=click.Choice(LAYOUTS),
    help="Let nodes lie in this layout, in the same store: as notes, or as five files each.",
)
@click.option("--rollback", is_flag=True, help="Undo the last --switch.")
@without_asking
@as_json()
def migrate_command(*, as_json: bool, **wishes: Unpack[Wishes]) -> None:
    """Copy the memory to another backend, with its history.

    The memory that is copied stays as it is. Every text and version is compared on both sides
    before it is said that they are the same. If it is interrupted, do it again.
    """
    if wishes["rollback"]:
        roll_back(os.environ)
        out.json({"rolled_back": True}) if as_json else out.line("the config is as it was before")
        return
    if wishes["layout"] is not None:
        _change_layout(wishes, as_json=as_json)
        return
    target = _target(wishes)
    with open_migrating(os.environ, target) as migrating, out.progress("copying") as show:
        if wishes["verify"]:
            _tell_done(migrating.verify(), target, switched=False, as_json=as_json)
            return
        plan = migrating.plan()
        if wishes["dry_run"]:
            _tell_plan(plan, as_json=as_json)
            return
        migrating.require_room()
        if not wishes["yes"]:
            ask_first("\n".join(_planned(plan)), "nothing was copied")
        done = migrating.apply(show)
    if wishes["switch_"]:
        switch(os.environ, target, done)
    _tell_done(done, target, switched=wishes["switch_"], as_json=as_json)


def _change_layout(wishes: Wishes, *, as_json: bool) -> None:
    if wishes["to"] is not None:
        raise click.UsageError("--layout is for one store. Fix: leave --to out.")
    done = change_layout(os.environ, wishes["layout"] or "", _ask(yes=wishes["yes"]))
    if as_json:
        out.json(asdict(done))
    elif done.texts:
        out.line(f"layout {done.layout}: {counted(done.texts, 'text')} written, and the same")
        if done.notes:
            out.line(_notes(done))
    else:
        out.line(f"layout {done.layout}: it was so already")


def _ask(*, yes: bool) -> Callable[[int], None]:
    def ask(notes: int) -> None:
        if not yes:
            what = f"{counted(notes, 'note')} of yours are not memory in the layout agfs; "
            again = "`perdure migrate --layout notes` makes them memory again"
            ask_first(what + again, "nothing was changed")

    return ask


def _notes(done: Relaid) -> str:
    what = f"{counted(done.notes, 'note')} of yours: their files are as they were"
    if done.layout == "notes":
        return f"{what}, and are memory where they lie"
    return (
        f"{what}. In the layout {done.layout} they are not memory; "
        "`perdure migrate --layout notes` makes them memory again"
    )


def _target(wishes: Wishes) -> Target:
    to = wishes["to"]
    if to is None:
        raise click.UsageError("Missing --to BACKEND. Fix: say where the memory is to go.")
    if to not in backends():
        known = ", ".join(backends())
        raise click.UsageError(f"no backend is called {to!a}. Fix: use one of {known}.")
    if wishes["vault"] is not None and to != "vault":
        raise click.UsageError("--vault goes with --to vault. Fix: leave it out.")
    return Target(to, wishes["vault"])


def _planned(plan: MigrationPlan) -> list[str]:
    texts = f"{counted(plan.texts, 'text')} of {sized(plan.size)}"
    entries = f"{counted(plan.position, 'entry')} of history"
    lines = [
        f"from {shown(plan.source)} to {shown(plan.target)}",
        f"    {texts}, {counted(plan.versions, 'version')}, {entries}",
    ]
    if plan.known:
        lines.append(f"    {counted(plan.known, 'entry')} of them there already")
    lines += [f"in the way: {shown(each)}" for each in plan.conflicts[:_MOST]]
    if len(plan.conflicts) > _MOST:
        lines.append(f"and {len(plan.conflicts) - _MOST} more")
    return lines


def _tell_plan(plan: MigrationPlan, *, as_json: bool) -> None:
    if not as_json:
        for line in _planned(plan):
            out.line(line)
        return
    fields = asdict(plan)
    out.json({("bytes" if name == "size" else name): fields[name] for name in fields})


def _tell_done(done: MigrationReport, target: Target, *, switched: bool, as_json: bool) -> None:
    if as_json:
        out.json({**asdict(done), "switched": switched})
        return
    same = f"{counted(done.texts, 'text')} and {counted(done.versions, 'version')}"
    out.line(f"the same on both sides: {same}, {counted(done.position, 'entry')} of history")
    if switched:
        out.line("from now on the other one is used; `perdure migrate --rollback` undoes that")
        return
    said = ", ".join(
        f"[{'.'.join(tables)}] {name} = {value!a}"
        for (*tables, name), value in target.entries().items()
    )
    out.mention(f"to use it, add --switch, or let the config say {said}")
