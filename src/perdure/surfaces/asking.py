"""What is given on the command line: moments, and what many commands ask."""

import sys
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import TypeVar

import click

from perdure.errors import AccessRefusedError
from perdure.surfaces.telling import mention

Moment = int | date
"""A position, or a time (a `datetime` is a `date` too)."""

Command = TypeVar("Command", bound=Callable[..., object])

ONE_OBJECT = "one JSON object"
OBJECT_PER_LINE = "one JSON object per line"

_LAST_OF_A_SECOND = timedelta(milliseconds=999)


def as_json(what: str) -> Callable[[Command], Command]:
    return click.option("--json", "as_json", is_flag=True, help=f"Print {what}.")


# ---------------------------------------------------------------- moments
def parse_moment(text: str) -> Moment:
    """Read what the user takes for a moment."""
    return int(text) if is_number(text) else _parse_time(text, "moment", ", or a position")


def parse_time(text: str) -> date:
    """Read what the user takes for a date or a time."""
    if is_number(text):
        raise click.BadParameter("a position is no time. Fix: write a date or a time.")
    return _parse_time(text, "time", "")


def _parse_time(text: str, what: str, more: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!a} is not a {what}. Fix: write a date as 2026-03-01, a time as "
            f"2026-03-01T10:00:00Z{more}."
        ) from error
    # Times are shown to the second, and all of that second is meant when one is typed again.
    return time if time.microsecond else time + _LAST_OF_A_SECOND


def is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def at_moment(command: Command) -> Command:
    return click.option(
        "--at",
        type=parse_moment,
        metavar="MOMENT",
        help="As it was then: a date, a time or a position.",
    )(command)


def with_reason(command: Command) -> Command:
    return click.option(
        "--reason", metavar="TEXT", default="", help="Why; it stands in the history."
    )(command)


# ---------------------------------------------------------------- leave
def without_asking(command: Command) -> Command:
    return click.option("--yes", "-y", is_flag=True, help="Don't ask.")(command)


def ask_first(plan: str, refusal: str) -> None:
    """Tell a plan and ask for leave; without anybody to ask, refuse."""
    if not sys.stdin.isatty():
        raise AccessRefusedError(f"{refusal}: there is nobody to ask. Fix: add --yes.")
    mention(plan)
    click.confirm("Go on?", abort=True, err=True)
