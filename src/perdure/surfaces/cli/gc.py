"""`perdure history gc`."""

import os
import sys

import click

from perdure import Garbage
from perdure.app import open_log
from perdure.errors import AccessRefusedError
from perdure.surfaces import out
from perdure.surfaces.cli.options import Moment, as_json, parse_moment
from perdure.surfaces.out import counted, local_time, sized


@click.command("gc")
@click.option(
    "--before",
    type=parse_moment,
    metavar="MOMENT",
    help="Let go of every state before this date, time or position.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", "-y", is_flag=True, help="Don't ask.")
@as_json()
def gc_command(before: Moment | None, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Erase content that was withdrawn, for good.

    Versions are kept for ever. What goes is content under a tombstone, once no state that shows
    it can be asked for any more; with --before, the states before that moment are let go of.
    """
    with open_log(os.environ, texts=False) as log:
        found = log.plan_gc(before)
        sentence = _sentence(found, "would erase")
        if found.is_empty:
            sentence = f"nothing to erase; every state since position {found.horizon} is kept"
        elif not dry_run:
            if not yes:
                _ask(_sentence(found, "this will erase"))
            found = log.gc(found)
            sentence = _sentence(found, "erased")
    if as_json:
        cids = [str(cid) for cid in found.cids]
        counts = {"horizon": found.horizon, "contents": len(cids), "bytes": found.size}
        out.json({"done": not dry_run, **counts, "cids": cids})
    else:
        out.line(sentence)


def _ask(sentence: str) -> None:
    if not sys.stdin.isatty():
        raise AccessRefusedError(
            "nothing was erased: there is nobody to ask. Fix: add --yes; --dry-run shows what "
            "would go."
        )
    out.mention(sentence)
    click.confirm("This can't be undone. Go on?", abort=True, err=True)


def _sentence(found: Garbage, verb: str) -> str:
    number = len(found.cids)
    what = f"{counted(number, 'content')}, {sized(found.size)}" if number else "nothing"
    if found.time is None:
        return f"{verb} {what}"
    states = f"states before position {found.horizon} ({local_time(found.time)})"
    return f"{verb} {what}; {states} can no longer be asked for"
