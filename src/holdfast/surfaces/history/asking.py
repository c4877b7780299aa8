"""What is given on the command line: moments, versions, and the options that many share."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import TypedDict, TypeVar

import click

from holdfast.artifacts import CID, IndexState
from holdfast.errors import InvalidCIDError
from holdfast.storage import Locator
from holdfast.storage.history import History, Version

Moment = int | date
"""A position, or a time (a `datetime` is a `date` too)."""

Command = TypeVar("Command", bound=Callable[..., object])

_FROM_ONE = click.IntRange(min=1)
_LAST_OF_A_SECOND = timedelta(milliseconds=999)


def parse_moment(text: str) -> Moment:
    """Read what the user takes for a moment."""
    if _is_number(text):
        return int(text)
    try:
        return date.fromisoformat(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!a} is no moment. Fix: write a date as 2026-03-01, a time as "
            "2026-03-01T10:00:00Z, or a position."
        ) from error
    # Times are shown to the second, and all of that second is meant when one is typed again.
    return time if time.microsecond else time + _LAST_OF_A_SECOND


def parse_version(text: str) -> int | CID:
    """Read what the user takes for a version: its number, or its content."""
    return int(text) if _is_number(text) else parse_cid(text)


def parse_cid(text: str) -> CID:
    try:
        return CID.parse(text)
    except InvalidCIDError as error:
        raise click.BadParameter(str(error)) from error


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


class Which(TypedDict):
    """The version that is asked for, in one way or another; the last one if in none."""

    version: int | None
    cid: CID | None
    at: Moment | None


def choosing_version(command: Command) -> Command:
    ways = (
        click.option(
            "--at",
            type=parse_moment,
            metavar="MOMENT",
            help="As it was then: a date, a time or a position.",
        ),
        click.option("--cid", type=parse_cid, metavar="CID", help="By its content."),
        click.option("--version", type=_FROM_ONE, metavar="N", help="By its number."),
    )
    for way in ways:
        command = way(command)
    return command


def as_json(what: str) -> Callable[[Command], Command]:
    return click.option("--json", "as_json", is_flag=True, help=f"Print {what}.")


ONE_OBJECT = "one JSON object"
OBJECT_PER_LINE = "one JSON object per line"


def state_at(history: History, when: Moment) -> IndexState:
    """Return the state of a moment; `StateError` if it can't be asked for."""
    state = IndexState(0, when) if isinstance(when, int) else history.state_at(when)
    return history.store.whole(state)


def choose(history: History, versions: list[Version], which: Which) -> Version | None:
    """Return which of the versions is meant; None if there was none yet."""
    if sum(value is not None for value in which.values()) > 1:
        raise click.UsageError("--version, --cid and --at say the same thing. Fix: give one.")
    if which["at"] is not None:
        position = state_at(history, which["at"]).position
        versions = [each for each in versions if each.commit <= position]
    elif named := which["version"] or which["cid"]:
        return history.version(Locator(versions[0].key), named)
    return versions[-1] if versions else None
