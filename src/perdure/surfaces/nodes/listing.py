"""`list` and `tree`."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from perdure.errors import BrokenNodeError, InvalidValueError, NodeNotFoundError
from perdure.model import ContextNode, NodeStatus, Uri
from perdure.surfaces.asking import OBJECT_PER_LINE, Moment, as_json, at_moment
from perdure.surfaces.nodes.completing import folder_names
from perdure.surfaces.nodes.describing import day, gist, told_node
from perdure.surfaces.nodes.naming import spelled
from perdure.surfaces.nodes.opening import NAMES, Memory, with_memory
from perdure.surfaces.telling import (
    counted,
    cut_to,
    mention,
    padded_to,
    shown,
    styled,
    tell,
    tell_json,
    tell_table,
    width_of,
)

_LEAST_GIST = 20
_WIDEST_NAME = 60
_BROKEN = " (an edit by hand broke it; `perdure repair` says how)"
_NO_NODE = "no node; `perdure repair` says why"


@dataclass(frozen=True, slots=True)
class Branch:
    """A place, the node that is there, and what is below."""

    place: Uri
    node: ContextNode | None
    trouble: str
    """Why there is no node where one should be."""
    below: tuple["Branch", ...]

    @property
    def nodes(self) -> int:
        """How many nodes are below."""
        return sum((each.node is not None) + each.nodes for each in self.below)

    @property
    def gist(self) -> str:
        if self.node is not None:
            return shown(gist(self.node)) + (_BROKEN if self.node.problems else "")
        return shown(self.trouble) if self.trouble else counted(self.nodes, "node")


# ---------------------------------------------------------------- looking
def _branch(memory: Memory, place: Uri) -> Branch | None:
    """Return all that is in use at a place and below; None if nothing is."""
    node, trouble = _node(memory, place) if place.is_node else (None, "")
    if node is not None and node.status is NodeStatus.ARCHIVED:
        return None
    below = tuple(_branches(memory, place))
    is_empty = place.is_node and not (node or trouble or below)
    return None if is_empty else Branch(place, node, trouble, below)


def _node(memory: Memory, place: Uri) -> tuple[ContextNode | None, str]:
    """Return the node that is there, or why there is none; neither if nothing is."""
    try:
        stored = memory.reader.load(place)
    except BrokenNodeError as error:
        return None, str(error)
    if stored is None:
        return None, "" if memory.is_nothing(place) else _NO_NODE
    known = stored.meta.status in {NodeStatus.ACTIVE, NodeStatus.ARCHIVED}
    return (stored.node, "") if known else (None, _NO_NODE)


def _branches(memory: Memory, place: Uri) -> Iterator[Branch]:
    for child in memory.children(place):
        branch = _branch(memory, child)
        if branch is not None:
            yield branch


def _archived(memory: Memory, place: Uri) -> Iterator[Branch]:
    """Yield the nodes below a place that are put away."""
    for each in memory.reader.walk(place):
        if memory.reader.reach.may_see(each, memory.request):
            try:
                stored = memory.reader.load(each)
            except BrokenNodeError:
                continue
            if stored is not None and stored.meta.status is NodeStatus.ARCHIVED:
                yield Branch(each, stored.node, "", ())


def _found(memory: Memory, folder: str, *, archived: bool) -> tuple[Uri, list[Branch]]:
    place = memory.reader.reach.seen(str(memory.place(folder)), memory.request)
    found = list((_archived if archived else _branches)(memory, place))
    if not found and not archived:
        _refuse_no_folder(memory, place)
    return place, found


def _refuse_no_folder(memory: Memory, place: Uri) -> None:
    name, own = memory.name(place), memory.place("")
    if place.is_node and memory.known(place) is not None:
        raise InvalidValueError(
            f"{name!a} is a node, and nothing is below it. Fix: `perdure read {name}` prints it."
        )
    if place != own and not memory.is_there(place):
        raise NodeNotFoundError(
            f"nothing {'is' if memory.then is None else 'was'} at {str(place)!a}. "
            "Fix: `perdure tree /` shows all that there is."
        )


# ---------------------------------------------------------------- list
@click.command("list", epilog=NAMES)
@click.argument("folder", default="", shell_complete=folder_names)
@click.option("--archived", is_flag=True, help="The nodes below that are put away, instead.")
@at_moment
@as_json(OBJECT_PER_LINE)
@with_memory
def list_command(
    memory: Memory, folder: str, at: Moment | None, *, archived: bool, as_json: bool
) -> None:
    """List what is in a folder.

    Without FOLDER, that of your memories. Each line has the name, the version, the day of the last
    change, and the title or the abstract.
    """
    memory = memory.at(at)
    place, found = _found(memory, folder, archived=archived)
    if as_json:
        tell_json(*map(_told, found))
        return
    rows = [_row(memory, each) for each in found]
    heads = ("name", "version", "updated", "what it says")
    columns = zip(heads, *rows, strict=False)
    room = _room(sum(max(map(width_of, column)) + 2 for column in columns))
    fitted = ((*row, cut_to(room, each.gist)) for row, each in zip(rows, found, strict=True))
    if not tell_table(heads, fitted):
        mention(f"nothing {'archived ' if archived else ''}is in {memory.name(place)}")


def _row(memory: Memory, branch: Branch) -> tuple[str, str, str]:
    name = memory.name(branch.place)
    if branch.node is None:
        return f"{name}/", "", ""
    return name, str(branch.node.version), day(branch.node.updated_at)


def _room(used: int) -> int:
    """Return how wide the last column may be; whoever is no terminal gets all of it."""
    if not sys.stdout.isatty():
        return sys.maxsize
    return max(_LEAST_GIST, shutil.get_terminal_size().columns - used)


def _told(branch: Branch) -> dict[str, object]:
    kind = "folder" if branch.node is None and not branch.trouble else "node"
    unknown = ("title", "abstract", "status", "version", "created_at", "updated_at")
    node = (
        {
            "uri": str(branch.place),
            **dict.fromkeys(unknown),
            "problems": [branch.trouble] if branch.trouble else [],
        }
        if branch.node is None
        else told_node(branch.node)
    )
    return {"kind": kind, **node, "nodes": branch.nodes}


# ---------------------------------------------------------------- tree
@click.command("tree", epilog=NAMES)
@click.argument("folder", default="", shell_complete=folder_names)
@at_moment
@as_json(OBJECT_PER_LINE)
@with_memory
def tree_command(memory: Memory, folder: str, at: Moment | None, *, as_json: bool) -> None:
    """Show all nodes below a folder.

    Without FOLDER, that of your memories; / is the whole account.
    """
    memory = memory.at(at)
    place, found = _found(memory, folder, archived=False)
    if as_json:
        tell_json(*(_told(each) for branch in found for each in _every(branch)))
        return
    lines = list(_lines(found, ""))
    widest = min(max((width_of(name) for name, _ in lines), default=0), _WIDEST_NAME)
    room = _room(widest + 2)
    tell(f"{styled(memory.name(place), bold=True)}\n")
    for name, branch in lines:
        said = cut_to(room, branch.gist)
        dim = styled(said, dim=True) if branch.node is None else said
        tell(f"{padded_to(widest, name)}  {dim}\n")
    tell(f"\n{counted(sum((b.node is not None) + b.nodes for b in found), 'node')}\n")


def _every(branch: Branch) -> Iterator[Branch]:
    yield branch
    for each in branch.below:
        yield from _every(each)


def _lines(branches: Sequence[Branch], before: str) -> Iterator[tuple[str, Branch]]:
    for branch in branches:
        last = branch is branches[-1]
        slash = "/" if branch.below or not branch.place.is_node else ""
        yield f"{before}{'└── ' if last else '├── '}{spelled(branch.place.name)}{slash}", branch
        yield from _lines(branch.below, before + ("    " if last else "│   "))
