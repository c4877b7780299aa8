"""`outbox`."""

from collections.abc import Iterable

import click

from perdure.errors import NodeNotFoundError
from perdure.model import OutboxEvent, Uri
from perdure.surfaces.asking import (
    OBJECT_PER_LINE,
    ONE_OBJECT,
    as_json,
    ask_first,
    without_asking,
)
from perdure.surfaces.nodes.describing import stamp, time
from perdure.surfaces.nodes.opening import Memory, demand_governing, with_memory
from perdure.surfaces.telling import counted, mention, shown, tell_json, tell_line, tell_table

_MAY = "look after its outbox"


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
    demand_governing(memory, _MAY)
    _tell(memory, memory.context.outbox.list_unfinished(memory.request.account_id), as_json=as_json)


@outbox_command.command("dead")
@as_json(OBJECT_PER_LINE)
@with_memory
def _dead(memory: Memory, *, as_json: bool) -> None:
    """List the events that failed too often."""
    demand_governing(memory, _MAY)
    _tell(memory, memory.context.outbox.list_dead(memory.request.account_id), as_json=as_json)


@outbox_command.command("requeue")
@click.argument("events", nargs=-1, metavar="[EVENT]...")
@as_json(ONE_OBJECT)
@with_memory
def _requeue(memory: Memory, events: tuple[str, ...], *, as_json: bool) -> None:
    """Let dead events be tried again; all, unless you name some."""
    ids = _dead_ids(memory, events)
    number = memory.context.outbox.requeue(memory.request.account_id, ids)
    _tell_number("requeued", number, as_json=as_json)


@outbox_command.command("purge")
@click.argument("events", nargs=-1, metavar="[EVENT]...")
@without_asking
@as_json(ONE_OBJECT)
@with_memory
def _purge(memory: Memory, events: tuple[str, ...], *, yes: bool, as_json: bool) -> None:
    """Forget dead events for good; all, unless you name some."""
    ids = _dead_ids(memory, events)
    if ids and not yes:
        ask_first(f"this forgets {counted(len(ids), 'dead event')}", "nothing was forgotten")
    number = memory.context.outbox.purge(memory.request.account_id, ids)
    _tell_number("purged", number, as_json=as_json)


def _dead_ids(memory: Memory, named: tuple[str, ...]) -> list[str]:
    """Return the dead events that are meant; one that is not dead is refused."""
    demand_governing(memory, _MAY)
    dead = [
        event.event_id for _, event in memory.context.outbox.list_dead(memory.request.account_id)
    ]
    for each in named:
        if each not in dead:
            raise NodeNotFoundError(
                f"no dead event is called {each!a}. Fix: `perdure outbox dead` lists them."
            )
    return list(named) or dead


def _tell_number(done: str, number: int, *, as_json: bool) -> None:
    if as_json:
        tell_json({done: number})
    else:
        tell_line(f"{done} {counted(number, 'event')}")


def _tell(memory: Memory, events: Iterable[tuple[str, OutboxEvent]], *, as_json: bool) -> None:
    if as_json:
        tell_json(*(_json(event) for _, event in events))
        return
    rows = (
        (
            event.event_id,
            event.event_type.value,
            event.status.value,
            str(event.retry_count),
            time(event.created_at),
            memory.name(Uri.parse(uri)),
            shown(event.last_error) if event.last_error else "",
        )
        for uri, event in events
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
