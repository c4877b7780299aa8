"""`worker`."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click

from holdfast.engine.upkeep import accounts_of
from holdfast.engine.worker import Round, Worker
from holdfast.errors import HoldfastError
from holdfast.surfaces.nodes.opening import Memory, demand_governing, with_memory
from holdfast.surfaces.telling import counted, mention, shown, tell_line

_PAUSE_SECONDS = 1.0


@click.command("worker")
@click.option("--once", is_flag=True, help="Work until nothing waits any more, and end.")
@with_memory
def worker_command(memory: Memory, *, once: bool) -> None:
    """Keep the index up to date, for all accounts.

    It works until it is told to end (SIGTERM or Ctrl-C), and finishes what it has begun. Several
    may work side by side.
    """
    demand_governing(memory, "work for all accounts")
    with until_told() as ending:
        total = _work(memory, ending)
        while not once and not ending.wait(_PAUSE_SECONDS):
            total += _work(memory, ending)
    tell_line(
        f"{counted(total.done, 'event')} done, {total.failed} to be tried again, "
        f"{total.dead} dead; {counted(total.indexed, 'place')} indexed"
    )


def _work(memory: Memory, ending: threading.Event) -> Round:
    """Work on all that waits, account by account, until told to end."""
    total = Round()
    for account in accounts_of(memory.context.reader):
        worker = Worker(memory.context.outbox, memory.context.indexes.upkeep.following)
        try:
            while not ending.is_set() and (done := worker.work(account)) != Round():
                total += done
                if done.failed or done.dead:
                    mention(f"{account}: {done.failed} failed, {done.dead} dead")
        except HoldfastError as error:  # the other accounts go on
            mention(f"{shown(account)}: {shown(str(error))}")
    return total


@contextmanager
def until_told() -> Iterator[threading.Event]:
    """Give an event that is set when the process is asked to end."""
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
