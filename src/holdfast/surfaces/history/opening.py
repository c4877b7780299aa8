"""The memory that a command speaks of, with what others did to it recorded first."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from typing import Concatenate, ParamSpec

import click

from holdfast.app import open_history, open_recorded
from holdfast.errors import AbsentError
from holdfast.storage import Locator
from holdfast.storage.history import History, Version
from holdfast.storage.sweep import Found, Kind, sweep
from holdfast.storage.wrappers.recorded import Recorded
from holdfast.surfaces.history.telling import counted, mention, shown

_MOST_NAMED = 3

Rest = ParamSpec("Rest")


@dataclass(frozen=True, slots=True)
class Memory:
    recorded: Recorded
    unreadable: frozenset[Locator]

    @property
    def history(self) -> History:
        return self.recorded.history

    def versions(self, key: str) -> list[Version]:
        """Return the versions of a key; `AbsentError` if it never had any."""
        found = self.history.versions(Locator(key))
        if not found:
            raise AbsentError(f"{key!a} has no history. Fix: {self._advice(Locator(key))}.")
        return found

    def _advice(self, locator: Locator) -> str:
        if locator in self.unreadable:
            return "none; it is no UTF-8 text or may not be read, and only texts have one"
        names = self.history.store.catalogue.names("", self.history.position())
        if not locator.key or any(name.startswith(f"{locator.key}/") for name in names):
            return "it is a folder; name a text in it"
        ends_so = [name for name in names if name.endswith(f"/{locator.key}")]
        like = ends_so or get_close_matches(locator.key, names, 1)
        if like:
            return f"try {like[0]!a}"
        return "run `holdfast history log` to see which keys do"


@contextmanager
def opened(*, looking: bool) -> Iterator[Memory]:
    """Open the memory of this user; if `looking`, record what others did to it first."""
    recorded = open_recorded(os.environ)
    with closing(recorded.history):
        found = sweep(recorded) if looking else []
        edits = [each for each in found if each.kind is not Kind.UNREADABLE]
        if edits:
            mention(f"recorded {_told(edits)}")
        yield Memory(
            recorded, frozenset(each.locator for each in found) - {e.locator for e in edits}
        )


@contextmanager
def history_alone() -> Iterator[History]:
    """Open the history without a look at the texts."""
    with open_history(os.environ) as history:
        yield history


def with_memory(
    command: Callable[Concatenate[Memory, Rest], None],
) -> Callable[Rest, None]:
    """Give a command the memory, and the option not to look for what others did."""

    @click.option(
        "--no-sweep",
        "looking",
        flag_value=False,
        default=True,
        help="Don't look for edits made outside Holdfast first.",
    )
    @wraps(command)
    def run(*args: Rest.args, **kwargs: Rest.kwargs) -> None:
        looking = bool(kwargs.pop("looking"))
        with opened(looking=looking) as memory:
            command(memory, *args, **kwargs)

    return run


def _told(edits: list[Found]) -> str:
    names = [
        shown(each.locator.key) + ("" if each.kind is Kind.EDITED else f" ({each.kind.value})")
        for each in edits[:_MOST_NAMED]
    ]
    more = len(edits) - len(names)
    rest = f" and {more} more" if more else ""
    return f"{counted(len(edits), 'edit')} made outside Holdfast: {', '.join(names)}{rest}"
