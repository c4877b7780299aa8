"""Nodes and folders as one caller sees them, now or as of a state: names, entries, relations."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from perdure.context.links import RelationReader
from perdure.context.node_files import CONTENT
from perdure.context.reader import NodeReader
from perdure.dataclass import dataclass, replace
from perdure.errors import (
    BrokenNodeError,
    ContextError,
    InvalidUriError,
    InvalidValueError,
    NodeNotFoundError,
)
from perdure.model import ContextNode, NodeStatus, RelationEdge, RequestContext, Uri
from perdure.model.request import name_for, place_named

_NOT_A_NODE = "not a node; `perdure repair` gives the reason"


@dataclass(frozen=True, slots=True)
class Entry:
    uri: str
    name: str
    """The shortest name that the caller can use for it."""
    node: ContextNode | None
    """None for a folder, and where a node is damaged."""
    problem: str
    """Why there is no node where one is expected; empty if nothing is wrong."""
    below: tuple["Entry", ...]

    @property
    def is_folder(self) -> bool:
        return self.node is None and not self.problem

    @property
    def nodes(self) -> int:
        return sum((each.node is not None) + each.nodes for each in self.below)

    def within(self, projects: Collection[str]) -> "Entry | None":
        """Return it with only what belongs to these projects; None if nothing does."""
        below = tuple(filter(None, (each.within(projects) for each in self.below)))
        is_other = self.node is not None and self.node.project not in projects
        is_left = below or (not self.below and not is_other)
        return replace(self, below=below, node=None if is_other else self.node) if is_left else None

    def of_projects(self, names: Collection[str]) -> "Iterator[Entry]":
        if self.node is not None and self.node.project in names:
            yield self
        for each in self.below:
            yield from each.of_projects(names)


_NOTE, _RESOURCES = ".md", "resources/"


@dataclass(frozen=True, slots=True)
class Edges:
    outgoing: tuple[RelationEdge, ...]
    incoming: tuple[RelationEdge, ...]


@dataclass(frozen=True, slots=True)
class Browser:
    """Finds nodes by name for one caller. Errors suggest similar names."""

    reader: NodeReader
    relations: RelationReader
    caller: RequestContext
    moment: str = ""
    """The time of the state, as the caller typed it; empty for the present."""

    # ------------------------------------------------------------ names
    def place(self, name: str) -> Uri:
        """Return the place that a short name, a URI or the path of a note names."""
        return next(iter(filter(self.reader.is_active, self._named(name))), None) or place_named(
            name, self.caller
        )

    def _named(self, name: str) -> Iterator[Uri]:
        """Yield the places that a path in a vault, or a name without `resources/`, may name."""
        paths = (name, name.removeprefix(_RESOURCES)) if name.endswith(_NOTE) else ()
        for found in filter(None, map(self.reader.place_at, paths)):
            yield place_named(str(found), self.caller)
        if name[:1].isupper() or name.endswith(_NOTE):
            with suppress(InvalidUriError):
                below = name.removeprefix(_RESOURCES).removesuffix(_NOTE)
                yield place_named(f"{_RESOURCES}{below}", self.caller)

    def node_place(self, name: str) -> Uri:
        """Return the place of a node; `InvalidValueError` for a folder."""
        place = self.place(name)
        if not place.is_node:
            self.reader.reach.require_visible(str(place), self.caller)
            fix = "" if self._is_there(place) else self._similar(place)
            raise InvalidValueError(
                f"{self.name(place)!a} is the name of a folder, not of a node. "
                f"Fix: {fix or self._look_in(place)}."
            )
        return place

    def name(self, place: Uri) -> str:
        return name_for(place, self.caller)

    def key(self, place: Uri) -> str:
        return self.reader.file(place, CONTENT).key

    # ------------------------------------------------------------ nodes
    def node(self, place: Uri) -> ContextNode:
        """Return an active node; `NodeNotFoundError` suggests a similar name."""
        try:
            return self.reader.read_node(str(place), self.caller)
        except NodeNotFoundError:
            if not self.is_empty(place):
                raise
            raise self.absent(place) from None

    def node_or_none(self, place: Uri) -> ContextNode | None:
        try:
            return self.reader.read_node(str(place), self.caller)
        except NodeNotFoundError:
            return None

    def edges(self, place: Uri) -> Edges:
        uri = str(place)
        return Edges(
            tuple(self.relations.get_edges(uri, self.caller)),
            tuple(self.relations.get_incoming(uri, self.caller)),
        )

    def absent(self, place: Uri) -> NodeNotFoundError:
        when = f" at {self.moment}" if self.moment else ""
        return NodeNotFoundError(
            f"no node {'was' if self.moment else 'is'} at {str(place)!a}{when}. "
            f"Fix: {self._similar(place) or self._look_in(place.parent)}."
        )

    def is_empty(self, place: Uri) -> bool:
        return all(found is None for found in self.reader.files(place).values())

    # ------------------------------------------------------------ folders
    def entries(self, folder: str, *, archived: bool = False) -> tuple[Uri, tuple[Entry, ...]]:
        """Return the place of a folder and its entries; with `archived`, only archived nodes."""
        place = self.reader.reach.require_visible(str(self.place(folder)), self.caller)
        found = tuple(self._archived(place) if archived else self._entries(place))
        if not found and not archived:
            self._refuse_absent_folder(place)
        return place, found

    def children(self, folder: Uri) -> Iterator[Uri]:
        with suppress(ContextError):
            yield from map(Uri.parse, self.reader.list_children(str(folder), self.caller))

    def _entries(self, place: Uri) -> Iterator[Entry]:
        for child in self.children(place):
            entry = self._entry(child)
            if entry is not None:
                yield entry

    def _entry(self, place: Uri) -> Entry | None:
        """Return what is active at a place and below; None if nothing is."""
        node, problem = self._stored(place) if place.is_node else (None, "")
        if node is not None and node.status is NodeStatus.ARCHIVED:
            return None
        below = tuple(self._entries(place))
        if place.is_node and not (node or problem or below):
            return None
        return Entry(str(place), self.name(place), node, problem, below)

    def _stored(self, place: Uri) -> tuple[ContextNode | None, str]:
        """Return the node at a place, or why it can't be read; neither if the place is empty."""
        try:
            stored = self.reader.load(place)
        except BrokenNodeError as error:
            return None, str(error)
        if stored is None:
            return None, "" if self.is_empty(place) else _NOT_A_NODE
        known = stored.meta.status in {NodeStatus.ACTIVE, NodeStatus.ARCHIVED}
        return (stored.node, "") if known else (None, _NOT_A_NODE)

    def node_entry(self, place: Uri) -> Entry:
        """Return the node at a place, without what is below, readable or not."""
        node, problem = self._stored(place)
        return Entry(str(place), self.name(place), node, problem, ())

    def _archived(self, place: Uri) -> Iterator[Entry]:
        for each in self.reader.walk(place):
            if self.reader.reach.may_see(each, self.caller):
                entry = self.node_entry(each)
                if entry.node is not None and entry.node.status is NodeStatus.ARCHIVED:
                    yield entry

    def _refuse_absent_folder(self, place: Uri) -> None:
        name = self.name(place)
        if place.is_node and self.node_or_none(place) is not None:
            raise InvalidValueError(
                f"{name!a} is a node, and nothing is below it. "
                f"Fix: `perdure read {name}` prints it."
            )
        if place != self.place("") and not self._is_there(place):
            raise NodeNotFoundError(
                f"nothing {'was' if self.moment else 'is'} at {str(place)!a}. "
                "Fix: `perdure tree /` shows everything."
            )

    # ------------------------------------------------------------ suggestions
    def _is_there(self, folder: Uri) -> bool:
        return self.reader.backend.exists(self.reader.folder(folder))

    def _look_in(self, folder: Uri) -> str:
        while folder.path and not self._is_there(folder):
            folder = folder.parent
        when = f" --at {self.moment}" if self.moment else ""
        return f"`perdure list {self.name(folder)}{when}` shows what is there"

    def _similar(self, place: Uri) -> str:
        from difflib import get_close_matches  # noqa: PLC0415 - only an error needs it

        names = [self.name(each) for each in self._around((place.parent, self.place("")))]
        same = [name for name in names if name.rpartition("/")[2] == place.name]
        like = same or get_close_matches(self.name(place), names, 1)
        return f"try {like[0]!a}" if like else ""

    def _around(self, folders: Sequence[Uri]) -> Iterator[Uri]:
        for folder in dict.fromkeys(folders):
            for child in self.children(folder):
                yield from [child] if child.is_node else self.children(child)
