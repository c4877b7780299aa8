"""What is given on the command line of `perdure history`: versions."""

from typing import TypedDict

import click

from perdure.artifacts import CID
from perdure.errors import InvalidCIDError
from perdure.storage import Locator
from perdure.storage.history import History, Version
from perdure.surfaces.asking import Command, Moment, at_moment, is_number, state_at

_FROM_ONE = click.IntRange(min=1)


def parse_version(text: str) -> int | CID:
    """Read what the user takes for a version: its number, or its content."""
    return int(text) if is_number(text) else parse_cid(text)


def parse_cid(text: str) -> CID:
    try:
        return CID.parse(text)
    except InvalidCIDError as error:
        raise click.BadParameter(str(error)) from error


class Which(TypedDict):
    """The version that is asked for, in one way or another; the last one if in none."""

    version: int | None
    cid: CID | None
    at: Moment | None


def choosing_version(command: Command) -> Command:
    ways = (
        at_moment,
        click.option("--cid", type=parse_cid, metavar="CID", help="By its content."),
        click.option("--version", type=_FROM_ONE, metavar="N", help="By its number."),
    )
    for way in ways:
        command = way(command)
    return command


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
