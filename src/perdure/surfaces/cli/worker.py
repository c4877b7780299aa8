"""`perdure worker`."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click

from perdure import Memory, WorkKind, WorkReport
from perdure.surfaces import out
from perdure.surfaces.cli.options import with_memory
from perdure.surfaces.out import counted, shown

_MOST_NAMED = 3


@click.command("worker")
@click.option("--once", is_flag=True, help="End when no event waits any more.")
@with_memory()
def worker_command(memory: Memory, *, once: bool, as_json: bool) -> None:
    """Keep the index of every account up to date.

    After a change of model, builds the new index while the old one answers. Runs until SIGTERM or
    Ctrl-C, and finishes the current step; the next worker continues from there. Several workers can
    run at the same time. With --once, exits with 1 if something failed.
    """
    with until_signalled() as ending:
        done = memory.work(once=once, ending=ending, report=lambda each: _mention(memory, each))
    total = done.counts
    if as_json:
        counts = {"done": total.done, "failed": total.failed, "dead": total.dead}
        out.json({**counts, "indexed": total.indexed})
    else:
        out.line(
            f"{counted(total.done, 'event')} done, {total.failed} to be tried again, "
            f"{total.dead} dead; {counted(total.indexed, 'place')} indexed"
        )
    if once and (total.failed or total.dead or done.failed):
        click.get_current_context().exit(1)


def _mention(memory: Memory, report: WorkReport) -> None:
    account, (some, more) = shown(report.account), report.counts
    embedded = f"{account}: {some:,} of {more:,} places are embedded"
    match report.kind:
        case WorkKind.ACCOUNT_FAILED:
            for error in report.errors.values():
                out.mention(f"{account}: {shown(error)}")
        case WorkKind.EVENTS_FAILED:
            out.mention(f"{account}: {some} failed, {more} dead")
            _mention_first(memory, report)
        case WorkKind.EMBEDDING:
            out.mention(embedded)
        case WorkKind.INTERRUPTED | WorkKind.FINISHED as kind:
            for uri, error in report.errors.items():
                out.mention(f"indexed by words only: {uri}: {shown(error)}")
            if report.errors:
                out.mention("`perdure index verify --heal` tries these again")
            if kind is WorkKind.FINISHED:
                out.mention(f"{account}: the new index is complete and in use")
            else:
                out.mention(f"{embedded}; the next worker continues from there")


def _mention_first(memory: Memory, report: WorkReport) -> None:
    for uri, error in list(report.errors.items())[:_MOST_NAMED]:
        out.mention(f"  {memory.name(uri)}: {shown(error)}")
    if len(report.errors) > _MOST_NAMED:
        out.mention(f"  and {len(report.errors) - _MOST_NAMED} more: `perdure outbox list`")


@contextmanager
def until_signalled() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM or SIGINT sets."""
    ending = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: ending.set())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
