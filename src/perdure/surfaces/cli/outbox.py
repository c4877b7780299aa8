"""`perdure outbox`."""

from collections.abc import Iterable

import click

from perdure import Memory
from perdure.model import OutboxEvent
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, ask_first, with_memory, without_asking
from perdure.surfaces.out import counted, local_time, picked, shown

_FIELDS = (
    "event_id type=event_type uri owner_space status tries=retry_count created_at next_retry_at "
    "last_error?"
)


@click.group("outbox")
def outbox_command() -> None:
    """List, requeue and purge events that wait for the index.

    Each change of a node is an event that waits here until it is indexed. An event that failed too
    often is dead: it is not tried again until you requeue it.
    """


@outbox_command.command("list")
@with_memory(OBJECT_PER_LINE)
def _list(memory: Memory, *, as_json: bool) -> None:
    """List the events that are not done, oldest first."""
    _print(memory, memory.outbox.list(), as_json=as_json)


@outbox_command.command("dead")
@with_memory(OBJECT_PER_LINE)
def _dead(memory: Memory, *, as_json: bool) -> None:
    """List the events that failed too often."""
    _print(memory, memory.outbox.dead(), as_json=as_json)


@outbox_command.command("requeue")
@click.argument("events", nargs=-1, metavar="[EVENT]...")
@with_memory()
def _requeue(memory: Memory, events: tuple[str, ...], *, as_json: bool) -> None:
    """Try dead events again: the named ones, or all."""
    _print_count("requeued", memory.outbox.requeue(events), as_json=as_json)


@outbox_command.command("purge")
@click.argument("events", nargs=-1, metavar="[EVENT]...")
@without_asking
@with_memory()
def _purge(memory: Memory, events: tuple[str, ...], *, yes: bool, as_json: bool) -> None:
    """Delete dead events: the named ones, or all."""
    dead = memory.outbox.dead(events)
    if dead and not yes:
        ask_first(f"this deletes {counted(len(dead), 'dead event')}", "nothing was deleted")
    _print_count("purged", memory.outbox.purge(events), as_json=as_json)


def _print_count(done: str, number: int, *, as_json: bool) -> None:
    out.answer({done: number}, f"{done} {counted(number, 'event')}", as_json=as_json)


def _print(memory: Memory, events: Iterable[OutboxEvent], *, as_json: bool) -> None:
    if as_json:
        out.json(*(picked(event, _FIELDS) for event in events))
        return
    rows = (
        (
            event.event_id,
            event.event_type.value,
            event.status.value,
            str(event.retry_count),
            local_time(event.created_at),
            memory.name(event.uri),
            shown(event.last_error) if event.last_error else "",
        )
        for event in events
    )
    if not out.table(("event", "type", "status", "tries", "since", "node", "last error"), rows):
        out.mention("there are no events")
