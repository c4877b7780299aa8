"""What is printed of a history."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import click

from perdure.artifacts import CID
from perdure.artifacts.canonical import Value
from perdure.artifacts.verify import Progress
from perdure.storage.history import Event, Version
from perdure.surfaces.telling import animated, shown, utc_time


def shown_reason(event: Event) -> str:
    if not event.unbound:
        return shown(event.reason) if event.reason else ""
    return f"removed: {shown(event.reason)}" if event.reason else "removed"


def told_event(event: Event) -> dict[str, object]:
    """Return what JSON says of an event, or of a version."""
    number = {"version": event.number} if isinstance(event, Version) else {}
    return {
        "key": event.key,
        **number,
        "position": event.position,
        "commit": event.commit,
        "time": utc_time(event.time),
        "actor": event.actor,
        "origin": event.origin,
        "reason": event.reason,
        "removed": event.unbound,
        "cid": None if event.cid is None else str(event.cid),
        "derived_from": [str(cid) for cid in event.derived_from],
        "more": _plain(event.circumstances.more),
    }


def _plain(value: Value) -> object:
    match value:
        case CID():
            return str(value)
        case bytes():
            return value.hex()
        case Mapping():
            return {key: _plain(each) for key, each in value.items()}
        case Sequence() if not isinstance(value, str):
            return [_plain(each) for each in value]
    return value


# ---------------------------------------------------------------- what takes long
@contextmanager
def progress(label: str) -> Iterator[Progress]:
    """Show how far something is, to whoever sits at a terminal."""
    if not animated():
        yield lambda _done, _all: None
        return
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def show(done: int, whole: int) -> None:
            bar.length = max(whole, 1)
            bar.update(done - bar.pos)

        yield show
