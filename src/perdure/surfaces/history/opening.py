"""The memory that a command speaks of, with what others did to it recorded first."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from typing import Concatenate, ParamSpec

import click

from perdure.app import open_history, open_recorded
from perdure.context.files import CONTENT
from perdure.errors import AbsentError, StorageSelectionError
from perdure.storage import Locator
from perdure.storage.history import History, Version
from perdure.storage.wrappers.recorded import Recorded
from perdure.surfaces.noticing import record_edits
from perdure.surfaces.telling import mention

Rest = ParamSpec("Rest")


@dataclass(frozen=True, slots=True)
class Memory:
    history: History
    unreadable: frozenset[Locator]
    recorded: Recorded | None
    """None if its texts can't be had."""

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
        if f"{locator.key}/{CONTENT}" in names:
            return f"try {f'{locator.key}/{CONTENT}'!a}"
        if not locator.key or any(name.startswith(f"{locator.key}/") for name in names):
            return "it is a folder; name a text in it"
        ends = (f"/{locator.key}", f"/{locator.key}/{CONTENT}")  # of a text, or of a node
        ends_so = [name for name in names if name.endswith(ends)]
        like = ends_so or get_close_matches(locator.key, names, 1)
        if like:
            return f"try {like[0]!a}"
        return "run `perdure history log` to see which keys do"


@contextmanager
def opened(*, looking: bool) -> Iterator[Memory]:
    """Open the memory of this user; if `looking`, record what others did to it first."""
    if not looking:
        with _without_looking() as memory:
            yield memory
        return
    with open_recorded(os.environ) as recorded:
        unreadable = record_edits(recorded)
        yield Memory(recorded.history, frozenset(unreadable), recorded)


@contextmanager
def _without_looking() -> Iterator[Memory]:
    """Open the history, and the texts only if they can be had."""
    try:
        recorded = open_recorded(os.environ)
    except StorageSelectionError as refusal:
        mention(f"the texts can't be had: {refusal}")
        with open_history(os.environ) as history:
            yield Memory(history, frozenset(), None)
        return
    with recorded:
        yield Memory(recorded.history, frozenset(), recorded)


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
        help="Don't look for edits made outside Perdure first.",
    )
    @wraps(command)
    def run(*args: Rest.args, **kwargs: Rest.kwargs) -> None:
        looking = bool(kwargs.pop("looking"))
        with opened(looking=looking) as memory:
            command(memory, *args, **kwargs)

    return run
