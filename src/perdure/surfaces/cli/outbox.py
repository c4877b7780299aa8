"""`perdure outbox`."""

from collections.abc import Iterable

import click

from perdure import Memory
from perdure.model import OutboxEvent
from perdure.surfaces.asking import (
    OBJECT_PER_LINE,
    ONE_OBJECT,
    as_json,
    ask_first,
    without_asking,
)
from perdure.surfaces.cli.caller import with_memory
from perdure.surfaces.nodes.describing import stamp, time
from perdure.surfaces.telling import counted, mention, shown, tell_json, tell_line, tell_table


@click.group("outbox")
def outbox_command() -> None:
    """Look after what the index was not told of yet.

    Every change of a node waits here as an event until the index has it. One that failed too often
    is dead, and waits for you.
    """


@outbox_command.command("list")
@as_json(OBJECT_PER_LINE)
@with_memory
def _list(memory: Memory, *, as_json: bool) -> None:
    """List the events that are not done, the oldest first."""
    _tell(memory, memory.outbox.list(), as_json=as_json)


@outbox_command.command("dead")
@as_json(OBJECT_PER_LINE)
@with_memory
def _dead(memory: Memory, *, as_json: bool) -> None:
    """List the events that failed too often."""
    _tell(memory, memory.outbox.dead(), as_json=as_json)


@outbox_command.command("requeue")
@click.argument("events", nargs=-1, metavar="[EVENT]...")
@as_json(ONE_OBJECT)
@with_memory
def _requeue(memory: Memory, events: tuple[str, ...], *, as_json: bool) -> None:
    """Let dead events be tried again; all, unless you name some."""
    _tell_number("requeued", memory.outbox.requeue(events), as_json=as_json)


@outbox_command.command("purge")
@click.argument("events", nargs=-1, metavar="[EVENT]...")
@without_asking
@as_json(ONE_OBJECT)
@with_memory
def _purge(memory: Memory, events: tuple[str, ...], *, yes: bool, as_json: bool) -> None:
    """Forget dead events for good; all, unless you name some."""
    dead = memory.outbox.dead(events)
    if dead and not yes:
        ask_first(f"this forgets {counted(len(dead), 'dead event')}", "nothing was forgotten")
    _tell_number("purged", memory.outbox.purge(events), as_json=as_json)


def _tell_number(done: str, number: int, *, as_json: bool) -> None:
    if as_json:
        tell_json({done: number})
    else:
        tell_line(f"{done} {counted(number, 'event')}")


def _tell(memory: Memory, events: Iterable[OutboxEvent], *, as_json: bool) -> None:
    if as_json:
        tell_json(*(_json(event) for event in events))
        return
    rows = (
        (
            event.event_id,
            event.event_type.value,
            event.status.value,
            str(event.retry_count),
            time(event.created_at),
            memory.name(event.uri),
            shown(event.last_error) if event.last_error else "",
        )
        for event in events
    )
    if not tell_table(("event", "type", "status", "tries", "since", "node", "last error"), rows):
        mention("there is none")


def _json(event: OutboxEvent) -> dict[str, object]:
    return {
        "event_id": event.event_id,
        "type": event.event_type.value,
        "uri": event.uri,
        "owner_space": event.owner_space,
        "status": event.status.value,
        "tries": event.retry_count,
        "created_at": stamp(event.created_at),
        "next_retry_at": None if event.next_retry_at is None else stamp(event.next_retry_at),
        "last_error": event.last_error or None,
    }
