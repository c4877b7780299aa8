"""What is printed: answers on stdout, for people or as JSON; all else on stderr."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice

import click

from holdfast.artifacts import CID
from holdfast.artifacts.canonical import Value
from holdfast.artifacts.verify import Progress
from holdfast.storage.history import Event, Version

Json = Mapping[str, object]

_AT_ONCE = 500
_WIDEST = 40
_UNITS = ("kB", "MB", "GB", "TB")
_THOUSAND = 1000


def tell(text: str) -> None:
    """Print exactly this."""
    click.echo(text.encode(errors="backslashreplace"), nl=False)


def tell_line(line: str) -> None:
    tell(f"{line}\n")


def tell_json(*objects: Json) -> None:
    """Print each on a line of its own."""
    tell("".join(f"{json.dumps(each)}\n" for each in objects))


def mention(line: str) -> None:
    """Say something that is not the answer."""
    click.echo(line, err=True)


# ---------------------------------------------------------------- tables
def tell_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> bool:
    """Print the rows below their heads, and say whether there were any.

    The last cell of each may be as long as it is.
    """
    widths = [len(head) for head in heads[:-1]]
    waiting, above = iter(rows), [heads]
    while some := list(islice(waiting, _AT_ONCE)):
        for place, width in enumerate(widths):
            longest = max(len(row[place]) for row in some)
            widths[place] = max(width, min(longest, _WIDEST))
        tell("".join(f"{_line(row, widths)}\n" for row in (*above, *some)))
        above = []
    return not above


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
    return "  ".join([*padded, row[-1]]).rstrip()


def shown(text: str) -> str:
    """Return the text in one line that does nothing to a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text) or "-"


def shown_reason(event: Event) -> str:
    if not event.unbound:
        return shown(event.reason) if event.reason else ""
    return f"removed: {shown(event.reason)}" if event.reason else "removed"


# ---------------------------------------------------------------- values
def local_time(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds // _THOUSAND, UTC).astimezone()
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def local_date(milliseconds: int) -> str:
    return local_time(milliseconds)[:10]


def utc_time(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, _THOUSAND)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun.removesuffix('y')}{_s(noun)}"


def _s(noun: str) -> str:
    return "ies" if noun.endswith("y") else "s"


def sized(size: int) -> str:
    if size < _THOUSAND:
        return counted(size, "byte")
    amount = float(size)
    for unit in _UNITS:
        amount /= _THOUSAND
        if amount < _THOUSAND or unit == _UNITS[-1]:
            return f"{amount:.1f} {unit}"
    raise AssertionError


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
    if not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def show(done: int, whole: int) -> None:
            bar.length = max(whole, 1)
            bar.update(done - bar.pos)

        yield show
