"""`perdure worker`."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click

from perdure import Memory, WorkKind, WorkReport
from perdure.surfaces import out
from perdure.surfaces.cli.options import with_memory
from perdure.surfaces.telling import counted, shown

_MOST_NAMED = 3


@click.command("worker")
@click.option("--once", is_flag=True, help="Work until nothing waits any more, and end.")
@with_memory()
def worker_command(memory: Memory, *, once: bool, as_json: bool) -> None:
    """Keep the index up to date, for all accounts.

    After a change of model it makes the new index, while the old one answers. It works until it is
    told to end (SIGTERM or Ctrl-C), and finishes the step that it has begun; the next one goes on
    from there. Several may work side by side. With --once, it ends with 1 if something failed.
    """
    with until_told() as ending:
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
                out.mention(f"found by words only: {uri}: {shown(error)}")
            if report.errors:
                out.mention("`perdure index verify --heal` tries these again")
            if kind is WorkKind.FINISHED:
                out.mention(f"{account}: the new vectors are made, and answer from now on")
            else:
                out.mention(f"{embedded}; the next worker goes on from there")


def _mention_first(memory: Memory, report: WorkReport) -> None:
    for uri, error in list(report.errors.items())[:_MOST_NAMED]:
        out.mention(f"  {memory.name(uri)}: {shown(error)}")
    if len(report.errors) > _MOST_NAMED:
        out.mention(f"  and {len(report.errors) - _MOST_NAMED} more: `perdure outbox list`")


@contextmanager
def until_told() -> Iterator[threading.Event]:
    """Yield an event that is set when the process is asked to end."""
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
