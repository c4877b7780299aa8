"""`watch`."""

import threading
from collections.abc import Iterator
from pathlib import Path

import click

from perdure.errors import PackageMissingError, StorageSelectionError
from perdure.surfaces.cli.caller import mention_edits
from perdure.surfaces.nodes.opening import Memory, demand_governing, with_memory
from perdure.surfaces.recall.taking import Taking
from perdure.surfaces.recall.working import until_told
from perdure.surfaces.telling import shown, tell_line

_QUIET_MILLISECONDS = 100
_LONGEST_MILLISECONDS = 500
_NOW_AND_THEN_MILLISECONDS = 200


@click.command("watch")
@with_memory
def watch_command(memory: Memory) -> None:
    """Take in what you edit by hand, as soon as it is saved.

    It watches the folder of the memory until it is told to end (SIGTERM or Ctrl-C). An edit becomes
    a version; a folder with a content.md in it becomes a node. What is left alone is said.
    """
    demand_governing(memory, "watch all accounts")
    root = _root(memory)
    taking = Taking(memory, root)
    with until_told() as ending:
        for number, paths in enumerate(_changes(root, ending)):
            if number == 0:  # now nothing is missed any more: what was edited before is looked for
                mention_edits(memory.context.memory.record_edits())
                tell_line(f"watching {shown(str(root))}")
                taking.begin()
            taking.take_in(paths)


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
        from watchfiles import watch
    except ImportError as error:
        raise PackageMissingError(
            "what watches folders is not installed. Fix: pip install '.[watch]' from a checkout."
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
