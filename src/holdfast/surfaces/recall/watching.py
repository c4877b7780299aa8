"""`watch`."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import click

from holdfast.context.files import FILES
from holdfast.errors import InvalidLocatorError, PackageMissingError, StorageSelectionError
from holdfast.model import Uri
from holdfast.storage import Locator
from holdfast.surfaces.nodes.opening import Memory, demand_governing, with_memory
from holdfast.surfaces.noticing import record_edits
from holdfast.surfaces.recall.working import until_told
from holdfast.surfaces.telling import counted, mention, shown, tell_line

_QUIET_MILLISECONDS = 100
_LONGEST_MILLISECONDS = 500
_NOW_AND_THEN_MILLISECONDS = 200


@click.command("watch")
@with_memory
def watch_command(memory: Memory) -> None:
    """Take in what you edit by hand, as soon as it is saved.

    It watches the folder of the memory until it is told to end (SIGTERM or Ctrl-C).
    """
    demand_governing(memory, "watch all accounts")
    root = _root(memory)
    with until_told() as ending:
        for number, paths in enumerate(_changes(root, ending)):
            if number == 0:  # now nothing is missed any more: what was edited before is looked for
                record_edits(memory.context.recorded)
                tell_line(f"watching {shown(str(root))}")
            _take_in(memory, list(_locators(paths, root)))


def _root(memory: Memory) -> Path:
    root = Path(memory.context.recorded.identity)
    if not root.is_dir():
        raise StorageSelectionError(
            f"{str(root)!a} is no folder, so there is nothing to watch. "
            "Fix: write something first, or choose a backend that keeps files."
        )
    return root


def _changes(root: Path, ending: threading.Event) -> Iterator[list[str]]:
    """Yield what changed on the disk, soon after it did, until told to end; now and then nothing.

    Whatever changes after the first was yielded is in one of the next.
    """
    try:
        from watchfiles import watch  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise PackageMissingError(
            "what watches folders is not installed. Fix: pip install 'holdfast[watch]'."
        ) from error
    found = watch(
        root,
        watch_filter=None,
        debounce=_LONGEST_MILLISECONDS,
        step=_QUIET_MILLISECONDS,
        stop_event=ending,
        rust_timeout=_NOW_AND_THEN_MILLISECONDS,
        yield_on_timeout=True,
        raise_interrupt=False,
    )
    for changes in found:
        yield [path for _, path in changes]


def _locators(paths: Iterable[str], root: Path) -> Iterator[Locator]:
    """Yield the files of nodes among some paths."""
    for path in dict.fromkeys(paths):
        if Path(path).name in FILES:
            with suppress(InvalidLocatorError, ValueError):
                yield Locator(Path(path).relative_to(root).as_posix())


def _take_in(memory: Memory, locators: Sequence[Locator]) -> None:
    """Record edits as versions, and bring the index up to date where they were."""
    edits = memory.context.recorded.notice(locators) if locators else []
    if not edits:
        return
    places = [Uri.of_key(edit.locator.parent.key) for edit in edits]
    accounts = dict.fromkeys(place.account for place in places if place is not None)
    for account in accounts:
        caught = memory.context.indexes.present(account).following.catch_up(account)
        for uri, error in caught.failed.items():
            mention(f"left out: {uri}: {shown(str(error))}")
    names = ", ".join(memory.name(place) for place in dict.fromkeys(places) if place is not None)
    tell_line(f"{counted(len(edits), 'edit')}: {names}")
