"""Edges between nodes: those that were written, and `[[links]]` in texts with where they lead."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from typing import Protocol

from perdure.context.reader import NodeReader
from perdure.errors import BrokenNodeError, InvalidValueError
from perdure.markdown import links
from perdure.model import MENTIONS, ContextNode, RelationEdge, RequestContext, Uri, slugify
from perdure.model.uri import PROFILE, SCHEME
from perdure.patterns import later

_NAMED = later(r"(!?\[\[)([^#^|\\]*)(.*?)(\\?\|.*)?\]\]")
_FILE = "content"
_MARKDOWN = ".md"
_OWNERS = frozenset({"users", "agents"})


class LinkTargets(Protocol):
    """What `resolve` needs to know about other nodes."""

    def is_active(self, place: Uri) -> bool: ...

    def categories(self, owner: Uri) -> list[str]:
        """Return the categories in which a user or an agent has memories."""

    def named(self, account: str, name: str) -> list[Uri]:
        """Return the nodes whose note has a name or an alias, wherever it is."""


class CachedLinkTargets:
    """Link targets whose answers are cached."""

    def __init__(self, reader: NodeReader) -> None:
        self._reader = reader
        self.active: set[Uri] = set()
        self._asked: dict[Uri, bool] = {}
        self._categories: dict[Uri, list[str]] = {}

    def look(self, targets: Iterable[str], start: Uri) -> None:
        """Look up at once all places to which links may lead."""
        places = {place for target in targets for place in _candidates(target, start, self)}
        self._asked |= self._reader.in_use(places - self._asked.keys())

    def is_active(self, place: Uri) -> bool:
        if place in self.active:
            return True
        if place not in self._asked:
            self._asked[place] = self._reader.is_active(place)
        return self._asked[place]

    def named(self, account: str, name: str) -> list[Uri]:
        return self._reader.named(account, name)

    def categories(self, owner: Uri) -> list[str]:
        if owner not in self._categories:
            self._categories[owner] = self._reader.categories(owner)
        return self._categories[owner]


def targets(content: str) -> Iterator[str]:
    """Yield the targets of the links in a content: notes, and Markdown files."""
    for link in links(content):
        if link.target and (link.kind == "wikilink" or link.target.endswith(_MARKDOWN)):
            yield link.target


def name_in(target: str) -> str:
    """Return the name by which the target of a link is found."""
    with suppress(InvalidValueError):
        return name_of(Uri.parse(target))
    return slugify(_segments(target)[-1])


def names_of_edges(edges: tuple[RelationEdge, ...]) -> set[str]:
    return {name_of(Uri.parse(edge.to_uri)) for edge in edges}


def name_of(place: Uri) -> str:
    return slugify(place.name)


def resolve(target: str, start: Uri, places: LinkTargets) -> Uri | None:
    """Return the node that a link leads to; None if there is none.

    A link names a URI, a slug, or a category and a slug. A slug is searched beside the node that
    holds the link, then in the other categories of its owner and among the owner's skills, then in
    what the account shares. Last comes a note anywhere with this name or alias, if it is unique.
    """
    for place in _candidates(target, start, places):
        if place != start and places.is_active(place):
            return place
    if target.startswith(SCHEME):
        return None
    found = [place for place in _notes(target, start, places) if places.is_active(place)]
    return found[0] if len(found) == 1 and found[0] != start else None


def _notes(target: str, start: Uri, places: LinkTargets) -> Iterator[Uri]:
    """Yield the notes anywhere that have the name of a target, and the folders that it names."""
    *above, name = [part for part in _segments(target) if part not in {".", ".."}] or [target]
    for place in places.named(start.account, name):
        folders = place.path[1:-1][-len(above) :] if above else ()
        same = [each.casefold() for each in folders] == [each.casefold() for each in above]
        if same and (place.path[0] == "resources" or place.path[:2] == start.path[:2]):
            yield place


def _candidates(target: str, start: Uri, places: LinkTargets) -> Iterator[Uri]:
    if target.startswith(SCHEME):
        try:
            place = Uri.parse(target)
        except InvalidValueError:
            return
        if place.account == start.account and place.is_node:
            yield place
        return
    *above, name = map(slugify, _segments(target))
    yield from _owned_candidates(above[-1] if above else "", name, start, places)
    if not above or above[-1] == "resources":
        yield Uri(start.account, ("resources", name))
    yield from _note_candidates(_segments(target), start)


def _note_candidates(names: list[str], start: Uri) -> Iterator[Uri]:
    """Yield notes with exactly this path: beside the one with the link, then further up."""
    folder = start.path[1:-1] if start.path[0] == "resources" else ()
    while names[1:] and names[0] in {".", ".."}:
        folder, names = folder if names[0] == "." else folder[:-1], names[1:]
    for above in range(len(folder), -1, -1):
        with suppress(InvalidValueError):  # too long for a URI
            yield Uri(start.account, ("resources", *folder[:above], *names))


def _owned_candidates(category: str, name: str, start: Uri, places: LinkTargets) -> Iterator[Uri]:
    if start.path[0] not in _OWNERS:
        return
    owner = Uri(start.account, start.path[:2])
    memories = owner.child("memories")
    if name == PROFILE and category in {"", memories.name}:
        yield memories.child(PROFILE)
    folders = [memories.child(known) for known in sorted(places.categories(owner))]
    if start.path[0] == "agents":
        folders.append(owner.child("skills"))
    for folder in sorted(folders, key=lambda folder: folder != start.parent):
        if category in {"", folder.name} and not folder.is_node:
            yield folder.child(name)


def _segments(target: str) -> list[str]:
    """Return the names in a target, without the name of the file in a node's folder."""
    names = [name for name in target.removesuffix(_MARKDOWN).split("/") if name.strip()]
    if len(names) > 1 and names[-1] == _FILE:
        names.pop()
    return names or [target]


def relinked(
    content: str,
    follow: Callable[[str], Uri | None],
    start: Uri,
    name: Callable[[Uri], str] = lambda _: "",
) -> str:
    """Return the content at `start` with links leading to what `follow` returns, shown as before.

    `name` returns the name by which an editor finds the file of a node; empty if it is ambiguous.
    """
    pieces, at = list[str](), 0
    for link in links(content):
        new = follow(link.target) if link.kind == "wikilink" and link.target else None
        found = _NAMED.fullmatch(content, link.start, link.end)
        if new is None or found is None:
            continue
        opened, target, rest, shown = found.groups("")
        if not shown and not target.startswith(SCHEME):
            row = content[content.rfind("\n", 0, link.start) + 1 : link.start].lstrip()
            shown = ("\\|" if row.startswith("|") else "|") + target  # a bar would end a cell
        pieces += (
            content[at : link.start],
            f"{opened}{name(new) or _link_text(new, start)}{rest}{shown}]]",
        )
        at = link.end
    return "".join((*pieces, content[at:]))


def _link_text(place: Uri, start: Uri) -> str:
    """Return the shortest target that leads from `start` to a place."""
    if place.path[:2] != start.path[:2] or place.path[0] not in _OWNERS:
        return str(place)
    return place.name if place.parent == start.parent else f"{place.parent.name}/{place.name}"


class Backlinks(Protocol):
    def leading_to(self, place: Uri, called: Iterable[str] = ()) -> Iterable[Uri]:
        """Return all nodes of the account that may lead to a place, and perhaps others.

        `called` are other names that links may have for it.
        """


def names_for(place: Uri, called: Iterable[str]) -> set[str]:
    """Return the names that a link to a place may have."""
    return {name_of(place), *map(name_in, called)}


class ScannedLinks:
    """Backlinks by reading some nodes, or every node of the account; slow if there are many."""

    def __init__(self, reader: NodeReader, among: Collection[Uri] | None = None) -> None:
        self._reader = reader
        self._among = among

    def leading_to(self, place: Uri, called: Iterable[str] = ()) -> list[Uri]:
        names, every = names_for(place, called), self._among
        places = self._reader.walk(Uri(place.account)) if every is None else every
        return [other for other in places if other.is_node and names & self._names(other)]

    def _names(self, place: Uri) -> set[str]:
        try:
            stored = self._reader.load(place)
        except BrokenNodeError:
            return set()
        return set() if stored is None else names_in(stored.node)


def names_in(node: ContextNode) -> set[str]:
    return names_of_edges(node.relations) | set(map(name_in, targets(node.content)))


# ---------------------------------------------------------------- edges
ONE_HOP = 3
"""The default number of neighbours."""
MENTION_WEIGHT = 0.5
"""Less than an edge that was written on purpose: a link does not state the type of a relation."""


class RelationReader:
    def __init__(self, reader: NodeReader, backlinks: Backlinks) -> None:
        self._reader = reader
        self._backlinks = backlinks

    def get_edges(self, uri: str, ctx: RequestContext) -> list[RelationEdge]:
        stored = self._reader.visible_nodes([uri], ctx)[uri]
        return [] if stored is None else edges_of(stored.node, self._reader, ctx)

    def get_one_hop(
        self, uri: str, ctx: RequestContext, limit: int = ONE_HOP
    ) -> list[RelationEdge]:
        return heaviest(self.get_edges(uri, ctx), limit)

    def get_incoming(self, uri: str, ctx: RequestContext) -> list[RelationEdge]:
        place = Uri.parse(uri)
        if not self._reader.reach.may_see(place, ctx):
            return []
        found = (
            edge
            for start in self._backlinks.leading_to(place, self._reader.names_of(place))
            for edge in self.get_edges(str(start), ctx)
            if edge.to_uri == uri
        )
        return sorted(found, key=lambda edge: edge.identity)


def edges_of(node: ContextNode, reader: NodeReader, ctx: RequestContext) -> list[RelationEdge]:
    """Return the edges of a node whose targets the caller may see."""
    written = {edge.identity: edge for edge in [*_mentions(node, reader), *node.relations]}
    may_see = reader.reach.may_see
    return [edge for edge in written.values() if may_see(Uri.parse(edge.to_uri), ctx)]


def _mentions(node: ContextNode, reader: NodeReader) -> Iterator[RelationEdge]:
    named = dict.fromkeys(targets(node.content))
    if not named:
        return
    places = CachedLinkTargets(reader)
    places.look(named, node.place)
    for target in named:
        place = resolve(target, node.place, places)
        if place is not None:
            yield RelationEdge(
                node.uri, str(place), MENTIONS, MENTION_WEIGHT, created_at=node.updated_at
            )


def heaviest(edges: list[RelationEdge], limit: int = ONE_HOP) -> list[RelationEdge]:
    return sorted(edges, key=lambda e: (-e.weight, e.identity))[: max(limit, 0)]
