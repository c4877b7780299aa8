"""The memory that a command works on, and the options that name its caller."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypedDict

import click

from perdure.app import caller_for, open_memory
from perdure.model import RequestContext, Role
from perdure.surfaces.asking import Command
from perdure.surfaces.telling import counted, mention, shown

if TYPE_CHECKING:
    from perdure import Edits, Memory

Rest = ParamSpec("Rest")

NAMES = (
    "A NODE is named as preference/indentation, profile, skills/NAME, resources/NAME or "
    "sessions/ID/NAME, and a FOLDER likewise, or either by its whole URI, ctx://..."
)
_MOST_NAMED = 3


class Caller(TypedDict):
    """The options that name a caller."""

    account: str | None
    user: str | None
    agent: str | None
    session: str
    as_role: str | None


def caller_options(command: Command) -> Command:
    """Add the options that name the caller."""
    options = (
        click.option(
            "--as-role",
            type=click.Choice([role.value for role in Role]),
            help="What you may do; root or, with --user, member.",
        ),
        click.option("--session", metavar="ID", default="", help="In which session you are."),
        click.option("--agent", metavar="ID", help="Whose skills; agent default."),
        click.option("--user", metavar="ID", help="On behalf of whom, and whose memories; yours."),
        click.option("--account", metavar="ID", help="In which account; local."),
    )
    for option in options:
        command = option(command)
    return command


def caller_in(options: dict[str, Any]) -> RequestContext:
    """Take the options that name the caller out of a command's options."""
    named = {name: options.pop(name) for name in Caller.__annotations__}
    return caller_for(os.environ, role=named.pop("as_role"), **named)


def with_memory(
    command: "Callable[Concatenate[Memory, Rest], None]",
) -> Callable[Rest, None]:
    """Give a command the memory of its caller, and the options that name the caller."""

    @wraps(command)
    def run(*args: Rest.args, **kwargs: Rest.kwargs) -> None:
        with opened(caller_in(kwargs)) as memory:
            command(memory, *args, **kwargs)

    return caller_options(run)


@contextmanager
def opened(caller: RequestContext) -> "Iterator[Memory]":
    """Open the memory for a caller; what else happened in it is printed at the end."""
    with open_memory(os.environ, caller) as memory:
        try:
            yield memory
        finally:
            for edits in memory.edits():
                mention_edits(edits)
            if warnings := memory.warnings():
                mention(warnings)


def mention_edits(edits: "Edits") -> None:
    if edits.recorded:
        names = [
            shown(each.locator.key)
            + ("" if each.kind.value == "edited" else f" ({each.kind.value})")
            for each in edits.recorded[:_MOST_NAMED]
        ]
        number = counted(len(edits.recorded), "edit")
        more = _and_more(len(edits.recorded))
        mention(f"recorded {number} made outside Perdure: {', '.join(names)}{more}")
    if edits.lost:
        names = [shown(each.key) for each in edits.lost[:_MOST_NAMED]]
        mention(
            f"not text any more, and left alone: {', '.join(names)}{_and_more(len(edits.lost))}"
        )


def _and_more(number: int) -> str:
    return f" and {number - _MOST_NAMED} more" if number > _MOST_NAMED else ""
