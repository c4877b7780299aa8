"""The memory that a command works on, and on whose behalf."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypedDict

import click

from perdure.app import Context, default_request, open_context
from perdure.context.files import CONTENT
from perdure.context.reading import NodeReader
from perdure.context.relations import RelationReader
from perdure.errors import ContextError, InvalidValueError, NodeNotFoundError
from perdure.model import ContextNode, RequestContext, Role, Uri
from perdure.model.short_names import name_for, place_named
from perdure.surfaces.asking import Command
from perdure.surfaces.telling import mention

Rest = ParamSpec("Rest")

NAMES = (
    "A NODE is named as preference/indentation, profile, skills/NAME, resources/NAME or "
    "sessions/ID/NAME, and a FOLDER likewise, or either by its whole URI, ctx://..."
)


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as one caller sees it."""

    context: Context
    request: RequestContext
    reader: NodeReader
    relations: RelationReader

    # ------------------------------------------------------------ names
    def place(self, text: str) -> Uri:
        return place_named(text, self.request)

    def node_place(self, text: str) -> Uri:
        """Return the place of a node; a folder is refused."""
        place = self.place(text)
        if not place.is_node:
            fix = "" if self.is_there(place) else self._alike(place)
            raise InvalidValueError(
                f"{self.name(place)!a} is the name of a folder, and no node's. "
                f"Fix: {fix or self._look_in(place)}."
            )
        return place

    def name(self, place: Uri) -> str:
        return name_for(place, self.request)

    # ------------------------------------------------------------ nodes
    def node(self, place: Uri) -> ContextNode:
        """Return a node in use; `NodeNotFoundError` says what may have been meant."""
        try:
            return self.reader.read_node(str(place), self.request)
        except NodeNotFoundError:
            if not self.is_nothing(place):
                raise
            raise self.absent(place) from None

    def known(self, place: Uri) -> ContextNode | None:
        """Return a node in use; None if there is none."""
        try:
            return self.reader.read_node(str(place), self.request)
        except NodeNotFoundError:
            return None

    def absent(self, place: Uri) -> NodeNotFoundError:
        return NodeNotFoundError(
            f"no node is at {str(place)!a}. "
            f"Fix: {self._alike(place) or self._look_in(place.parent)}."
        )

    def is_nothing(self, place: Uri) -> bool:
        """Whether no file of a node is there."""
        return all(found is None for found in self.reader.files(place).values())

    def is_there(self, folder: Uri) -> bool:
        return self.reader.backend.exists(self.reader.folder(folder))

    def key(self, place: Uri) -> str:
        """Return the key under which the history knows the content of a node."""
        return self.reader.file(place, CONTENT).key

    # ------------------------------------------------------------ what may have been meant
    def _look_in(self, folder: Uri) -> str:
        while folder.path and not self.is_there(folder):
            folder = folder.parent
        return f"`perdure list {self.name(folder)}` shows what is there"

    def _alike(self, place: Uri) -> str:
        from difflib import get_close_matches

        own = self.place("")
        names = [self.name(each) for each in self._around({place.parent, own})]
        same = [name for name in names if name.rpartition("/")[2] == place.name]
        like = same or get_close_matches(self.name(place), names, 1)
        return f"try {like[0]!a}" if like else ""

    def _around(self, folders: set[Uri]) -> Iterator[Uri]:
        """Yield the nodes in some folders, and in the folders in them."""
        for folder in folders:
            for child in self.children(folder):
                yield from [child] if child.is_node else self.children(child)

    def children(self, folder: Uri) -> Iterator[Uri]:
        with suppress(ContextError):
            yield from map(Uri.parse, self.reader.list_children(str(folder), self.request))


class Caller(TypedDict):
    """Who asks, as far as it was said."""

    account: str | None
    user: str | None
    agent: str | None
    session: str
    as_role: str | None


@contextmanager
def opened(caller: Caller) -> Iterator[Memory]:
    request = request_for(caller, os.environ)
    with open_context(os.environ) as context:
        try:
            yield Memory(context, request, context.reader, context.relation_reader)
        finally:
            if said := context.warnings():
                mention(said)


def request_for(caller: Caller, environ: Mapping[str, str]) -> RequestContext:
    """Return who asks: the owner of this machine, who may all, or a user who reaches their own."""
    default = default_request(environ)
    role = Role.ROOT if caller["user"] is None else Role.MEMBER
    return replace(
        default,
        account_id=default.account_id if caller["account"] is None else caller["account"],
        user_id=default.user_id if caller["user"] is None else caller["user"],
        agent_id=default.agent_id if caller["agent"] is None else caller["agent"],
        session_id=caller["session"],
        role=role if caller["as_role"] is None else Role(caller["as_role"]),
    )


def with_memory(command: Callable[Concatenate[Memory, Rest], None]) -> Callable[Rest, None]:
    """Give a command the memory, and the options that say who asks."""

    @wraps(command)
    def run(*args: Rest.args, **kwargs: Rest.kwargs) -> None:
        with opened(caller_in(kwargs)) as memory:
            command(memory, *args, **kwargs)

    return asked_by(run)


def caller_in(options: dict[str, Any]) -> Caller:
    """Take out of the options of a command those that say who asks."""
    caller: Caller = {name: options.pop(name) for name in Caller.__annotations__}  # type: ignore[assignment] # click has checked them
    return caller


def asked_by(command: Command) -> Command:
    """Add the options that say who asks."""
    roles = [role.value for role in Role]
    options = (
        click.option(
            "--as-role",
            type=click.Choice(roles),
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
