"""`perdure conflicts`."""

import click

from perdure import Conflict, Memory
from perdure.surfaces import out
from perdure.surfaces.cli.options import OBJECT_PER_LINE, with_memory
from perdure.surfaces.out import counted, picked, shown


@click.group("conflicts")
def conflicts_command() -> None:
    """List and settle the conflict copies that sync clients create.

    When two machines change one file, a sync client leaves one version under the file's name and
    puts the other one into a copy beside it. "mine" is the text of the file, "theirs" that of the
    copy. A copy is not a memory. The text that you discard stays in the file's history.
    """


@conflicts_command.command("list")
@with_memory(OBJECT_PER_LINE)
def _list(memory: Memory, *, as_json: bool) -> None:
    """List the copies, and the file that each is a copy of."""
    found = memory.conflicts()
    if as_json:
        out.json(*(_json(each) for each in found))
        return
    rows = ((shown(each.path), shown(each.original), _state(each)) for each in found)
    if not out.table(("copy", "of", "changes"), rows):
        out.mention("there are no conflict copies")


@conflicts_command.command("show")
@click.argument("copy")
@with_memory()
def _show(memory: Memory, copy: str, *, as_json: bool) -> None:
    """Show what each side changed since their common version."""
    found = memory.conflict(copy)
    if as_json:
        out.json({**_json(found), **picked(found, "base mine theirs")})
        return
    for changed in found.changes:
        out.diff(changed)
    out.mention(_state(found))


@conflicts_command.command("keep")
@click.argument("which", type=click.Choice(["mine", "theirs"]))
@click.argument("copy")
@with_memory()
def _keep(memory: Memory, which: str, copy: str, *, as_json: bool) -> None:
    """Give the file one of the two texts, and remove the copy."""
    _settle(memory, copy, which, as_json=as_json)


@conflicts_command.command("merge")
@click.argument("copy")
@with_memory()
def _merge(memory: Memory, copy: str, *, as_json: bool) -> None:
    """Merge the changes of both into the file, and remove the copy.

    Fails if both changed the same lines.
    """
    _settle(memory, copy, "merge", as_json=as_json)


def _settle(memory: Memory, copy: str, keep: str, *, as_json: bool) -> None:
    done = memory.settle_conflict(copy, keep)
    has = f"has {'both' if keep == 'merge' else keep}"
    if done.mine is None and keep == "mine":
        has = "stays deleted"
    line = f"{shown(done.original)} {has}; the copy is removed"
    out.answer({**_json(done), "choice": keep}, line, as_json=as_json)


def _json(conflict: Conflict) -> dict[str, object]:
    return {**picked(conflict, "path original"), "clashes": conflict.merged.clashes}


def _state(conflict: Conflict) -> str:
    if conflict.mine is None:
        return "the file was deleted"
    if conflict.mine == conflict.theirs:
        return "none: both are the same"
    clashes = conflict.merged.clashes
    return f"conflict in {counted(clashes, 'place')}" if clashes else "can be merged"
