"""`gc`."""

import sys
from collections.abc import Collection
from dataclasses import dataclass

import click

from perdure.artifacts import CID, ArtifactStore
from perdure.artifacts.entry import Lift, Put, Sweep, Tombstone
from perdure.errors import AccessRefusedError
from perdure.storage.history import History
from perdure.surfaces.asking import ONE_OBJECT, Moment, as_json, parse_moment, state_at
from perdure.surfaces.history.opening import history_alone
from perdure.surfaces.telling import counted, local_time, mention, sized, tell_json, tell_line


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes, and from where on everything stays."""

    horizon: int
    moves: bool
    """Whether states can be asked for now that can't be afterwards."""
    cids: tuple[CID, ...]
    size: int


@click.command("gc")
@click.option(
    "--before",
    type=parse_moment,
    metavar="MOMENT",
    help="Let go of every state before this date, time or position.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", "-y", is_flag=True, help="Don't ask.")
@as_json(ONE_OBJECT)
def gc_command(before: Moment | None, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Erase content that was withdrawn, for good.

    Versions are kept for ever. What goes is content under a tombstone, once no state that shows
    it can be asked for any more; with --before, the states before that moment are let go of.
    """
    with history_alone() as history:
        plan = _planned(history, before)
        if not plan.moves and not plan.cids:
            kept = f"nothing to erase; every state since position {plan.horizon} is kept"
            _tell(plan, kept, done=not dry_run, as_json=as_json)
        elif dry_run:
            _tell(plan, _sentence(history, plan, "would erase"), done=False, as_json=as_json)
        else:
            if not yes:
                _ask(history, plan)
            done = history.store.gc(plan.horizon)
            plan = Plan(done.horizon, plan.moves, done.cids, done.size)
            _tell(plan, _sentence(history, plan, "erased"), done=True, as_json=as_json)


def _ask(history: History, plan: Plan) -> None:
    if not sys.stdin.isatty():
        raise AccessRefusedError(
            "nothing was erased: there is nobody to ask. Fix: add --yes; --dry-run shows what "
            "would go."
        )
    mention(_sentence(history, plan, "this will erase"))
    click.confirm("This can't be undone. Go on?", abort=True, err=True)


def _planned(history: History, before: Moment | None) -> Plan:
    store = history.store
    hidden, now = _hidden(store)
    horizon = now if before is None else state_at(history, before).position
    cids = tuple(sorted(cid for cid, since in hidden.items() if since <= horizon))
    return Plan(horizon, horizon > now, cids, _size(store, cids))


def _hidden(store: ArtifactStore) -> tuple[dict[CID, int], int]:
    """Return what is under a tombstone, and since when; and the first state that is retained."""
    hidden: dict[CID, int] = {}
    horizon = 0
    for logged in store.log():
        match logged.entry:
            case Tombstone(cid, _):
                hidden[cid] = logged.commit
            case Lift(cid):
                hidden.pop(cid, None)
            case Sweep(horizon, cids):
                for cid in cids:
                    hidden.pop(cid, None)
    return hidden, horizon


def _size(store: ArtifactStore, cids: Collection[CID]) -> int:
    wanted = frozenset(cids)
    if not wanted:
        return 0
    puts = (logged.entry for logged in store.log() if isinstance(logged.entry, Put))
    return sum({put.cid: put.length for put in puts if put.cid in wanted}.values())


def _sentence(history: History, plan: Plan, verb: str) -> str:
    what = f"{counted(len(plan.cids), 'content')}, {sized(plan.size)}" if plan.cids else "nothing"
    if not plan.moves:
        return f"{verb} {what}"
    when = local_time(history.store.catalogue.commit_at(plan.horizon)[1])
    states = f"states before position {plan.horizon} ({when}) can no longer be asked for"
    return f"{verb} {what}; {states}"


def _tell(plan: Plan, sentence: str, *, done: bool, as_json: bool) -> None:
    if as_json:
        cids = [str(cid) for cid in plan.cids]
        told = {"done": done, "horizon": plan.horizon, "contents": len(cids), "bytes": plan.size}
        tell_json({**told, "cids": cids})
    else:
        tell_line(sentence)
