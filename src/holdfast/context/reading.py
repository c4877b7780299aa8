"""Nodes as their files say they are: whole, or as their owner edited them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from holdfast.context import frontmatter
from holdfast.context.files import (
    ABSTRACT,
    ARCHIVED,
    CONTENT,
    FILES,
    META,
    OVERVIEW,
    PARTS,
    RELATIONS,
    Meta,
)
from holdfast.context.parts import (
    Files,
    Found,
    Parts,
    basis_of,
    differ,
    edited_abstract,
    edited_content,
    edited_overview,
    said_at,
    text_of,
)
from holdfast.context.reach import Reach
from holdfast.errors import (
    BrokenNodeError,
    ConcurrentModificationError,
    InvalidValueError,
    NodeNotFoundError,
)
from holdfast.model import ContextNode, NodeStatus, RequestContext, Uri
from holdfast.model.uri import name_of
from holdfast.storage import Locator, StorageBackend, TransactionalBackend

_LOOKS = 50
_SIBLINGS = 20
_OWNER_LEVEL = 2
_FILE_NAMES = frozenset(FILES)
_ROOT = Locator("")


@dataclass(frozen=True, slots=True)
class Stored:
    """A node, and the files that it was read from."""

    node: ContextNode
    meta: Meta
    files: Files
    lines: str | None
    """The frontmatter as it is in the file."""

    @property
    def edited(self) -> bool:
        """Whether somebody changed its files since its meta was written."""
        return self.node.version > self.meta.version or bool(self.node.problems)


class NodeReader:
    """Reads nodes from a backend, be it the present or a view of the past."""

    def __init__(self, backend: StorageBackend, root: Locator = _ROOT) -> None:
        self.backend = backend
        self.root = root
        self.reach = Reach(backend, root)

    # ------------------------------------------------------------ the verbs
    def read_node(self, uri: str, ctx: RequestContext) -> ContextNode:
        return self.active(self.reach.seen(uri, ctx)).node

    def exists(self, uri: str, ctx: RequestContext) -> bool:
        place = Uri.parse(uri)
        return self.reach.may_see(place, ctx) and self.is_active(place)

    def is_active(self, place: Uri) -> bool:
        """Whether a node is in use there."""
        if not place.is_node:
            return False
        try:
            meta = self._meta(self.folder(place), self.look(place, META))
        except BrokenNodeError:
            return False
        return meta is not None and meta.status is NodeStatus.ACTIVE

    def list_children(self, uri: str, ctx: RequestContext) -> list[str]:
        place = self.reach.seen(uri, ctx)
        names = self._names(place)
        if not names:
            return []
        put_away = {child.name for child in self.backend.list(self.file(place, ARCHIVED))}
        prefix = f"{uri}/"
        return [
            prefix + name if name.isalnum() and name.isascii() else str(place.child(name))
            for name in self._visible(place, names, put_away, ctx)
            if name.isalnum() or _child(place, name) is not None
        ]

    def siblings(self, node: ContextNode, ctx: RequestContext) -> Iterator[tuple[str, str]]:
        """Yield the URIs and abstracts of the first nodes in the same folder, but not its own."""
        others = (uri for uri in self.list_children(str(node.place.parent), ctx) if uri != node.uri)
        found = ((uri, self.look(Uri.parse(uri), ABSTRACT)) for uri in others)
        return islice(((uri, text) for uri, text in found if isinstance(text, str)), _SIBLINGS)

    def walk(self, place: Uri) -> Iterator[Uri]:
        """Yield every place below, in order, where files of a node are, in whatever state."""
        pending = [place]
        while pending:
            here = pending.pop()
            segments = self._segments(here)
            if here.is_node and not _FILE_NAMES.isdisjoint(segments):
                yield here
            names = reversed(self._named(here, segments))
            pending.extend(filter(None, (_child(here, name) for name in names)))

    def categories(self, owner: Uri) -> list[str]:
        return self._names(owner.child("memories"))

    # ------------------------------------------------------------ one node
    def active(self, place: Uri) -> Stored:
        """Return a node that is in use; `NodeNotFoundError` if there is none."""
        try:
            stored = self.load(place)
        except BrokenNodeError:
            self._refuse_inactive(place, self._meta(self.folder(place), self.look(place, META)))
            raise
        if stored is None:
            raise absent(place)
        self._refuse_inactive(place, stored.meta)
        return stored

    def _refuse_inactive(self, place: Uri, meta: Meta | None) -> None:
        if meta is not None and meta.status is not NodeStatus.ACTIVE:
            archived = meta.status is NodeStatus.ARCHIVED
            fix = "take it back into use with unarchive" if archived else "run `holdfast repair`"
            raise NodeNotFoundError(f"{str(place)!a} is {meta.status.value}. Fix: {fix}.")

    def load(self, place: Uri) -> Stored | None:
        """Return what is there, in whatever state; None if there is no meta."""
        if not place.is_node:
            raise absent(place)
        folder = self.folder(place)
        found = self._found(folder, self.backend.read)
        if found is None:
            return None
        if differ(*found) and isinstance(self.backend, TransactionalBackend):
            found = self._settled(folder, found, self.backend)
        return None if found is None else self._assembled(place, *found)

    def _settled(
        self, folder: Locator, found: tuple[Meta, Files], backend: TransactionalBackend
    ) -> tuple[Meta, Files] | None:
        """Look past commits that are under way, until the files agree or are really so."""
        for _ in range(_LOOKS):
            again = self._found(folder, backend.committed)
            if again is None or again == found or not differ(*again):
                return again
            found = again
        raise ConcurrentModificationError(
            f"{folder.key!a} is written again and again while it is read. Fix: try again."
        )

    def _found(
        self, folder: Locator, read: Callable[[Locator], str | None]
    ) -> tuple[Meta, Files] | None:
        """Return what the files say, the meta first; None if there is no meta."""
        said = said_at(folder.child(META), read)
        meta = self._meta(folder, said)
        if meta is None:
            return None
        return meta, {META: said, **{name: said_at(folder.child(name), read) for name in PARTS}}

    def _meta(self, folder: Locator, said: Found) -> Meta | None:
        if said is None:
            return None
        try:
            return Meta.parse(text_of(said))
        except InvalidValueError as error:
            raise BrokenNodeError(
                f"{folder.key!a} has a meta that says nothing: {error}"
            ) from error

    def _assembled(self, place: Uri, meta: Meta, files: Files) -> Stored:
        folder = self.folder(place)
        parts = Parts(
            str(place), meta, files, lambda name: self.backend.earlier(folder.child(name))
        )
        lines, body = parts.take(CONTENT, frontmatter.split, edited_content)
        node = ContextNode(
            uri=parts.uri,
            content=body,
            relations=parts.take(RELATIONS, parts.edges, parts.edited_edges),
            abstract=parts.take(ABSTRACT, str, edited_abstract),
            overview=parts.take(OVERVIEW, str, edited_overview),
            metadata=meta.metadata,
            frontmatter=None if lines == frontmatter.generate(meta.title) else lines,
            status=meta.status,
            version=meta.version + parts.edited,
            owner_space=meta.owner_space,
            created_at=meta.created_at,
            updated_at=meta.updated_at,
            basis=basis_of(files[CONTENT]),
            problems=tuple(parts.problems),
        )
        return Stored(node, meta, files, lines)

    # ------------------------------------------------------------ places
    def folder(self, place: Uri) -> Locator:
        return self.root.child(place.key)

    def file(self, place: Uri, name: str) -> Locator:
        return self.root.child(place.key, name)

    def marker(self, place: Uri) -> Locator:
        """Return the mark in the folder above that a node is put away."""
        folder = self.folder(place)
        return folder.parent.child(ARCHIVED, folder.name)

    def look(self, place: Uri, name: str) -> Found:
        """Return what a file of a node says."""
        return said_at(self.file(place, name), self.backend.read)

    def files(self, place: Uri) -> dict[str, Found]:
        return {name: self.look(place, name) for name in FILES}

    def _names(self, place: Uri) -> list[str]:
        """Return the ids that have a folder here."""
        return self._named(place, self._segments(place))

    def _segments(self, place: Uri) -> list[str]:
        folder = self.folder(place)
        prefix = len(folder.key) + 1
        return [child.key[prefix:] for child in self.backend.list(folder)]

    def _named(self, place: Uri, segments: list[str]) -> list[str]:
        if not place.is_node and len(place.path) > _OWNER_LEVEL:  # below an owner are slugs
            return [segment for segment in segments if "." not in segment and "%" not in segment]
        names = []
        for segment in segments:
            name = name_of(segment)
            if name is not None and ("." not in segment or self._is_folder(place, segment)):
                names.append(name)
        return names

    def _is_folder(self, place: Uri, segment: str) -> bool:
        try:
            return self.backend.info(self.folder(place).child(segment)).is_dir
        except FileNotFoundError:
            return False

    def _visible(
        self, place: Uri, names: list[str], put_away: set[str], ctx: RequestContext
    ) -> Iterable[str]:
        if place.path in {("users",), ("agents",), ("sessions",)}:
            return [name for name in names if self.reach.may_see(place.child(name), ctx)]
        if not put_away:
            return names
        return [name for name in names if name not in put_away]


def absent(place: Uri) -> NodeNotFoundError:
    return NodeNotFoundError(
        f"no node is at {str(place)!a}. Fix: list {str(place.parent)!a} to see what is there."
    )


def _child(place: Uri, name: str) -> Uri | None:
    try:
        return place.child(name)
    except InvalidValueError:  # a folder that somebody made, and that can't be a place of ours
        return None
