"""Nodes as their files say they are, for callers who may see them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, cast

from perdure import frontmatter
from perdure.artifacts import CID
from perdure.context.layouts.names import folded
from perdure.context.node_files import (
    ABSTRACT,
    ARCHIVED,
    CONTENT,
    FILES,
    META,
    OVERVIEW,
    OWNER,
    RELATIONS,
    TEXT_FILES,
    Files,
    Found,
    Meta,
    NodeFiles,
    NodeTexts,
    cid_of,
    derived_abstract,
    edited_abstract,
    edited_content,
    edited_overview,
    read_text,
    text_at,
)
from perdure.dataclass import dataclass, replace
from perdure.errors import (
    AccessRefusedError,
    BrokenNodeError,
    ConcurrentModificationError,
    InvalidValueError,
    NodeNotFoundError,
    StorageError,
)
from perdure.model import ContextNode, NodeStatus, RelationEdge, RequestContext, Uri
from perdure.model.uri import SLUG, name_of
from perdure.patterns import later
from perdure.storage import Locator, StorageBackend, TransactionalBackend
from perdure.storage.conflicts import copied_name
from perdure.storage.contract import Layout, Text, Unreadable, is_directory

if TYPE_CHECKING:
    from perdure.context.layouts.notes import NotesLayout

_LOOKS = 50
_SIBLINGS = 20
_FILES_OF_FOLDER = 8
"""So many names in a folder, and more, are not those of nodes."""
OWNER_LEVEL = 2
_FILE_NAMES = frozenset(FILES)
_META_FIRST = (META, *TEXT_FILES)
_MOST_PARSED = 512
_LONGEST_PARSED = 32_768
"""So many nodes are kept as they were parsed, of at most so many characters each."""
RealFiles = Mapping[str, tuple[str, Text]]
"""The path and the text of the file that a layout has for each folder of a node."""
_PLAIN_SLUGS = later(r"(?:[a-z0-9_-]{5,100}/)*")
"""Slugs that are too long to be a device anywhere, so that their folders have their names."""
_ROOT = Locator("")
Read = Callable[[Locator], Found]


class Reach:
    """Says no before anything is looked at, so that a refusal tells nothing of what is there."""

    def __init__(self, backend: StorageBackend) -> None:
        self._backend = backend
        inner = getattr(backend, "inner", backend)
        self._layout = cast("NotesLayout", inner) if isinstance(inner, Layout) else None

    def seen(self, uri: str, ctx: RequestContext) -> Uri:
        """Return the place if the caller may see it; `AccessDeniedError` if not."""
        place = Uri.parse(uri)
        if not self.may_see(place, ctx):
            raise ctx.refuse(uri)
        return place

    def changed(self, uri: str, ctx: RequestContext) -> Uri:
        """Return the place if the caller may change it; `AccessDeniedError` if not."""
        place = Uri.parse(uri)
        self._refuse_note(place, ctx)
        if not ctx.may_change(place) or (place.session and not self._session_open(place, ctx)):
            raise ctx.refuse(uri)
        return place

    def _refuse_note(self, place: Uri, ctx: RequestContext) -> None:
        """Refuse to change a note of its owner's, to those who may see that it is one."""
        if self._layout is None or place.path[:1] != ("resources",) or not ctx.may_see(place):
            return
        if path := self._layout.own_note(place.key):
            raise AccessRefusedError(
                f"{path!a} is a note of its owner's, which Perdure reads and does not change. "
                "Nothing was changed. Fix: edit it in its editor, or save a memory beside it with "
                "`perdure save`; `perdure read --at` and the date print what it was. To erase its "
                "versions, delete the file first."
            )

    def may_see(self, place: Uri, ctx: RequestContext) -> bool:
        return ctx.may_see(place) and (not place.session or self._session_open(place, ctx))

    def session_owner(self, place: Uri) -> str | None:
        """Return whose a session is; None before its first node, empty if nobody can tell."""
        said = read_text(self.owner_file(place), self._backend.read)
        if said is None:
            return None
        return said.removesuffix("\n") if isinstance(said, str) else ""  # an id may end in space

    def known_at(self, reader: Uri, place: Uri) -> bool:
        """Whether all who see one place may know of another: it is the same owner's, or shared."""
        owner = place.owner_space or self.session_owner(place)
        own = reader.owner_space or self.session_owner(reader)
        return bool(owner) and owner in {own, f"account:{reader.account}"}

    def owner_file(self, place: Uri) -> Locator:
        return _ROOT.child(Uri(place.account, place.path[:2]).key, OWNER)

    def _session_open(self, place: Uri, ctx: RequestContext) -> bool:
        if ctx.governs:
            return True
        owner = self.session_owner(place)
        if owner is None:
            return ctx.session_id == place.session
        return ctx.reaches(owner)


@dataclass(frozen=True)
class StoredNode:
    """A node, and the files that it was read from."""

    node: ContextNode
    meta: Meta
    files: Files
    lines: str
    """The frontmatter as it is in the file."""
    edited_files: frozenset[str] = frozenset()
    """The parts that somebody edited, and did not break."""
    path: str = ""
    """That of its note; empty where nodes are not notes."""

    @property
    def edited(self) -> bool:
        """Whether somebody changed its files since its meta was written."""
        return bool(self.edited_files or self.node.problems)

    @cached_property
    def cid(self) -> str:
        """The name of the content in history; of the last one that can be read."""
        said = self.files[CONTENT]
        broken = any(problem.startswith(f"{CONTENT}:") for problem in self.node.problems)
        if broken or not isinstance(said, str):
            said = frontmatter.join(self.lines, self.node.content)
        return str(CID.of(said.encode()))

    def is_unchanged(self, name: str, text: str) -> bool:
        """Whether a part need not be written to be this: it is, or only its file is broken."""
        if not self.meta.cids:
            return self.files[name] == text
        return name not in self.edited_files and self.meta.cids.get(name) == cid_of(text)


class NodeReader:
    """Reads nodes from a backend, be it the present or a view of the past."""

    def __init__(self, backend: StorageBackend) -> None:
        self.backend = backend
        self.reach = Reach(backend)
        inner = getattr(backend, "inner", backend)
        self._layout = cast("NotesLayout", inner) if isinstance(inner, Layout) else None
        self.is_laid_out = self._layout is not None
        self._is_past = inner.is_past
        self._past_names: dict[str, dict[str, list[Uri]]] = {}
        self._committed = backend.committed if isinstance(backend, TransactionalBackend) else None
        self._parsed: dict[str, tuple[object, StoredNode]] = {}
        """Nodes by their folders, each with what its files said; the last ones that were read."""

    # ------------------------------------------------------------ the verbs
    def read_node(self, uri: str, ctx: RequestContext) -> ContextNode:
        node = self.versioned(self.active(self.reach.seen(uri, ctx))).node
        self.reach.seen(uri, ctx)  # again: a session may have become somebody's meanwhile
        hidden = self.hidden(node, ctx)
        if not hidden:
            return node
        return replace(node, relations=tuple(e for e in node.relations if e not in hidden))

    def hidden(self, node: ContextNode, ctx: RequestContext) -> tuple[RelationEdge, ...]:
        may_see = self.reach.may_see
        return tuple(e for e in node.relations if not may_see(Uri.parse(e.to_uri), ctx))

    def exists(self, uri: str, ctx: RequestContext) -> bool:
        place = Uri.parse(uri)
        may_see = self.reach.may_see
        return may_see(place, ctx) and self.is_active(place) and may_see(place, ctx)  # as above

    def is_active(self, place: Uri) -> bool:
        if not place.is_node:
            return False
        known = self.in_use([place])
        if place in known:
            return known[place]
        try:
            meta = self._meta(self.folder(place), self.look(place, META))
        except BrokenNodeError:
            return False
        return meta is not None and meta.status is NodeStatus.ACTIVE

    def in_use(self, places: Iterable[Uri]) -> dict[Uri, bool]:
        """Return which places have a node in use, as far as that is known without reading it."""
        if self._layout is None:
            return {}
        keys = {self.folder(place).key: place for place in places}
        return {keys[key]: used for key, used in self._layout.in_use(list(keys)).items()}

    def list_children(self, uri: str, ctx: RequestContext) -> list[str]:
        place = self.reach.seen(uri, ctx)
        names = self._names(place)
        self.reach.seen(uri, ctx)  # as above
        if not names:
            return []
        put_away = {name_of(child.name) for child in self.backend.list(self.file(place, ARCHIVED))}
        visible = self._visible(place, names, put_away, ctx)
        if _holds_slugs(place):
            return sorted(f"{uri}/{name}" for name in visible)
        children = (_child(place, name) for name in visible)
        return sorted(str(child) for child in children if child is not None)

    def first_children(self, uri: str, ctx: RequestContext, most: int) -> list[str]:
        """Return the first of `list_children`; in the past, all of a large folder isn't listed."""
        place = self.reach.seen(uri, ctx)
        if self._is_past and _holds_slugs(place):
            folder = self.folder(place)
            put_away = {name_of(c.name) for c in self.backend.list(self.file(place, ARCHIVED))}
            asked = most + len(put_away) + _FILES_OF_FOLDER
            segments = [child.name for child in self.backend.first(folder, asked)]
            if not any("%" in segment for segment in segments):  # whose order is not of names
                visible = list(self._visible(place, self._named(place, segments), put_away, ctx))
                if len(visible) >= most:
                    return [f"{uri}/{name}" for name in visible[:most]]
        return self.list_children(uri, ctx)[:most]

    def siblings(self, node: ContextNode, ctx: RequestContext) -> Iterator[tuple[str, str]]:
        """Yield the URIs and abstracts of the first nodes in the same folder, but not its own."""
        others = (uri for uri in self.list_children(str(node.place.parent), ctx) if uri != node.uri)
        found = ((uri, abstract_at(self, Uri.parse(uri))) for uri in others)
        return islice(((uri, text) for uri, text in found if isinstance(text, str)), _SIBLINGS)

    def walk(self, place: Uri) -> Iterator[Uri]:
        """Yield every place below, in order, that has files of a node or is an empty folder."""
        if self._layout is not None:
            found = map(Uri.of_key, self._layout.below(self.folder(place).key))
            yield from filter(None, found)
            return
        pending = [place]
        while pending:
            here = pending.pop()
            segments = self._segments(here)
            if here.is_node and (not segments or not _FILE_NAMES.isdisjoint(segments)):
                yield here
            names = reversed(self._named(here, segments))
            pending.extend(filter(None, (_child(here, name) for name in names)))

    def named(self, account: str, name: str) -> list[Uri]:
        """Return the nodes whose note has a name or an alias; none where nodes are not notes."""
        if self._is_past:
            if account not in self._past_names:
                self._past_names[account] = self._names_in_place(account)
            return self._past_names[account].get(folded(name), [])
        places = self._layout.named(name) if self._layout else ()
        found = (Uri.of_key(place) for place in places)
        return [each for each in found if each is not None and each.account == account]

    def _names_in_place(self, account: str) -> dict[str, list[Uri]]:
        """Return the notes that were in place at a moment, by their names and aliases."""
        found: dict[str, list[Uri]] = {}
        for place in self.walk(Uri(account, ("resources",))):
            for name in self.names_of(place):
                found.setdefault(name, []).append(place)
        return found

    def copies_of(self, file: Locator) -> Iterator[str]:
        """Yield what conflict copies say of a text that is not of a node."""
        files, path = self.backend, file
        if self._layout:
            files, path = self._layout.inner, Locator(self._layout.path_of(file.key))
        for copy in () if self._is_past else files.list(path.parent):
            if copied_name(copy.name) == path.name:
                found = read_text(copy, files.read)
                if self._layout and isinstance(found, str):
                    found = self._layout.texts_in(file.key, copy.key, found).get("")
                if isinstance(found, str):
                    yield found

    def names_of(self, place: Uri) -> Sequence[str]:
        """Return the names by which `named` finds a node."""
        if not self._is_past:
            return self._layout.names_of(self.folder(place).key) if self._layout else ()
        meta = None
        with suppress(BrokenNodeError):
            meta = self._meta(self.folder(place), self.look(place, META))
        if meta is None or not meta.metadata.get("in_place"):
            return ()
        others = meta.metadata.get("aliases")
        others = others if isinstance(others, (list, tuple)) else ()
        return sorted({folded(str(each)) for each in (place.name, *others)})

    def file_of(self, place: Uri) -> tuple[str, str] | None:
        """Return the name and the text of the file with the content; None if it can't be read."""
        if self._layout:
            path, said = self.read_files([place]).get(place.key, ("", None))
        else:
            path, said = self.file(place, CONTENT).key, self.look(place, CONTENT)
        return (path, said) if isinstance(said, str) else None

    def place_at(self, path: str) -> Uri | None:
        """Return the node that the note at a path holds; None where nodes are not notes."""
        return Uri.of_key(self._layout.place_at(path)) if self._layout else None

    def path_of(self, place: Uri) -> str:
        """Return the path of the note that holds a node; empty where nodes are not notes."""
        return self._layout.path_of(self.folder(place).key) if self._layout else ""

    def lines_above(self, place: Uri) -> int:
        """Return how many more lines the note of a node has than its content."""
        path, content = self.path_of(place), self.look(place, CONTENT)
        if self._layout is None or not path or not isinstance(content, str):
            return 0
        real = self._layout.inner.read(Locator(path))
        return real.rstrip("\n").count("\n") - content.rstrip("\n").count("\n")

    def has_file(self, name: str) -> bool:
        """Whether a file of a vault that is not a note has a name, such as an attachment."""
        return self._layout is not None and self._layout.has_file(name)

    def categories(self, owner: Uri) -> list[str]:
        return self._names(owner.child("memories"))

    # ------------------------------------------------------------ one node
    def visible(self, uris: Iterable[str], ctx: RequestContext) -> dict[str, StoredNode | None]:
        """Return the nodes in use that the caller reaches, by URI; None where there is none.

        The file of a note is read once, and parsed if it changed since this process last did.
        """
        found: dict[str, StoredNode | None] = {}
        asked: dict[str, Uri] = {}
        for uri in uris:
            found[uri], place = None, Uri.parse(uri)
            if self.reach.may_see(place, ctx):
                asked[uri] = place
        files = self.read_files(asked.values())
        for uri, place in asked.items():
            with suppress(NodeNotFoundError, BrokenNodeError):
                stored = self._loaded(place, files)
                in_use = stored is not None and stored.meta.status is NodeStatus.ACTIVE
                if in_use and (not place.session or self.reach.may_see(place, ctx)):  # as above
                    found[uri] = stored
        return found

    def active(self, place: Uri, files: RealFiles | None = None) -> StoredNode:
        """Return a node that is in use; `NodeNotFoundError` if there is none.

        `files` are those of several nodes that were read together by `read_files`.
        """
        try:
            stored = self.load(place) if files is None else self._loaded(place, files)
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
            fix = f"run `perdure {'unarchive' if archived else 'repair'}`"
            raise NodeNotFoundError(f"{str(place)!a} is {meta.status.value}. Fix: {fix}.")

    def load(self, place: Uri) -> StoredNode | None:
        """Return what is there, in whatever state; None if there is no meta."""
        if not place.is_node:
            raise absent(place)
        return self._loaded(place, self.read_files([place]))

    def _loaded(self, place: Uri, files: RealFiles) -> StoredNode | None:
        """Return a node; it is parsed only if what its files say is not what they last said."""
        key = place.key
        said: object
        if self._layout is None:
            said = self.backend.read_all(self.folder(place), _META_FIRST)
        elif (said := files.get(key)) is None:
            return None
        known = self._parsed.get(key)
        if known is not None and known[0] == said:
            return known[1]
        look = self._look_at(
            place, said if isinstance(said, dict) else self._texts(key, *files[key])
        )
        if look is None:
            return None
        whole = look.whole
        if not whole and self._committed is not None:
            look = self._settled(self.folder(place), self._committed)
        path = files[key][0] if self._layout else ""
        stored = None if look is None else self._assembled(place, look, path)
        if stored is not None and whole and len(stored.node.content) <= _LONGEST_PARSED:
            self._remember(key, said, stored)
        return stored

    def _remember(self, key: str, said: object, stored: StoredNode) -> None:
        self._parsed[key] = said, stored
        if len(self._parsed) > _MOST_PARSED:
            with suppress(RuntimeError):  # another thread does the same
                for oldest in [*islice(self._parsed, _MOST_PARSED // 8 + 1)]:
                    self._parsed.pop(oldest, None)

    def versioned(self, stored: StoredNode) -> StoredNode:
        """Return a node as the next version if others edited the one that was saved.

        What another machine saved, and a sync client brought, says its version itself.
        """
        place, meta = stored.node.place, stored.meta
        if (
            self._layout is None
            or stored.edited_files
            or self._layout.is_ours(self.folder(place).key)
        ):
            return stored
        content, said = (self.backend.saved(self.file(place, name)) for name in (CONTENT, META))
        is_same = content in {None, stored.files[CONTENT]}
        if is_same or said is None or Meta.parse(said).version < meta.version:
            return stored
        return replace(stored, node=replace(stored.node, version=meta.version + 1))

    def read_files(self, places: Iterable[Uri]) -> RealFiles:
        """Return the files of nodes, where each is one file; else nothing."""
        if self._layout is None:
            return {}
        return self._layout.files_of([place.key for place in places])

    def _texts(self, key: str, path: str, real: Text) -> Files:
        if not isinstance(real, str) or self._layout is None:
            return dict.fromkeys(_META_FIRST, real)
        texts = self._layout.texts_in(key, path, real)
        return {name: texts.get(name) for name in _META_FIRST}

    def _look_at(self, place: Uri, texts: Files) -> NodeFiles | None:
        if len(texts) < len(_META_FIRST):
            return self._look(self.folder(place), self.backend.read)  # what is missing, and why
        meta = self._meta(self.folder(place), texts[META])
        return None if meta is None else NodeFiles.at(meta, texts)

    def _settled(self, folder: Locator, committed: Read) -> NodeFiles | None:
        """Look past commits that are under way, until the files agree or are really so.

        They are if two looks past all commits saw the same. One that did not look past them may
        have seen what the next one sees, because a commit ended in the midst of each.
        """
        look = None
        for _ in range(_LOOKS):
            again = self._look(folder, committed)
            if again is None or again.whole or again == look:
                return again
            look = again
        raise _busy(folder)

    def _look(self, folder: Locator, read: Read) -> NodeFiles | None:
        """Return what the files say, the meta first; None if there is no meta."""
        said = read_text(folder.child(META), read)
        if (meta := self._meta(folder, said)) is None:
            return None
        parts = {name: read_text(folder.child(name), read) for name in TEXT_FILES}
        return NodeFiles.at(meta, {META: said, **parts})

    def _meta(self, folder: Locator, said: Found) -> Meta | None:
        if said is None:
            return None
        if isinstance(said, Unreadable):
            try:
                said = self.backend.read(folder.child(META))
            except StorageError as error:
                raise BrokenNodeError(str(error)) from error
        try:
            return Meta.parse(said)
        except InvalidValueError as error:
            raise BrokenNodeError(
                f"{folder.key!a} has a meta that says nothing: {error}"
            ) from error

    def _assembled(self, place: Uri, look: NodeFiles, path: str) -> StoredNode:
        try:
            return self._put_together(place, look, path)
        except InvalidValueError as error:  # then its meta says what can't be
            raise BrokenNodeError(f"{str(place)!a} can't be as its meta says: {error}") from error

    def _put_together(self, place: Uri, look: NodeFiles, path: str) -> StoredNode:
        meta = look.meta
        parts = NodeTexts(
            str(place), look, lambda name: self.backend.earlier(self.file(place, name))
        )
        lines, body = parts.take(CONTENT, frontmatter.split, edited_content)
        node = ContextNode(
            uri=parts.uri,
            content=body,
            relations=parts.take(RELATIONS, parts.edges, parts.edited_edges),
            abstract=parts.take(ABSTRACT, str, edited_abstract) or derived_abstract(place, body),
            overview=parts.take(OVERVIEW, str, edited_overview),
            metadata=meta.metadata,
            frontmatter=lines or None,
            status=meta.status,
            version=meta.version + bool(parts.edited),
            owner_space=meta.owner_space if place.session else "",  # else its name says it
            created_at=meta.created_at,
            updated_at=meta.updated_at,
            basis=look.basis,
            problems=tuple(parts.problems),
        )
        return StoredNode(node, meta, look.files, lines, frozenset(parts.edited), path)

    # ------------------------------------------------------------ places
    def folder(self, place: Uri) -> Locator:
        return _ROOT.child(place.key)

    def file(self, place: Uri, name: str) -> Locator:
        return _ROOT.child(place.key, name)

    def marker(self, place: Uri) -> Locator:
        """Return the mark in the folder above that a node is put away."""
        folder = self.folder(place)
        return folder.parent.child(ARCHIVED, folder.name)

    def look(self, place: Uri, name: str) -> Found:
        return text_at(self.file(place, name), self.backend)

    def files(self, place: Uri) -> dict[str, Found]:
        """Return what all files of a node say, past any commit that is under way or was left."""
        read = self._committed or self.backend.read
        folder = self.folder(place)
        found: dict[str, Found] = {}
        for _ in range(_LOOKS):
            again = {name: read_text(folder.child(name), read) for name in FILES}
            if again == found:
                return again
            found = again
        raise _busy(folder)

    def _names(self, place: Uri) -> list[str]:
        return self._named(place, self._segments(place))

    def _segments(self, place: Uri) -> list[str]:
        folder = self.folder(place)
        prefix = len(folder.key) + 1
        return [child.key[prefix:] for child in self.backend.list(folder)]

    def _named(self, place: Uri, segments: list[str]) -> list[str]:
        if _holds_slugs(place):
            return _slugs([segment for segment in segments if "." not in segment])
        names = []
        for segment in segments:
            name = name_of(segment)
            if name is not None and (
                "." not in segment or is_directory(self.backend, self.folder(place).child(segment))
            ):
                names.append(name)
        return names

    def _visible(
        self, place: Uri, names: list[str], put_away: set[str | None], ctx: RequestContext
    ) -> Iterable[str]:
        if not place.path and not ctx.governs:  # a folder tells that something is in it
            return [name for name in names if self._holds_something(_child(place, name), ctx)]
        if place.path in {("users",), ("agents",), ("sessions",)}:
            return [name for name in names if self.reach.may_see(place.child(name), ctx)]
        if not put_away:
            return names
        return [name for name in names if name not in put_away or self._names(place.child(name))]

    def _holds_something(self, folder: Uri | None, ctx: RequestContext) -> bool:
        return folder is not None and bool(self.list_children(str(folder), ctx))


def absent(place: Uri) -> NodeNotFoundError:
    return NodeNotFoundError(
        f"no node is at {str(place)!a}. Fix: list {str(place.parent)!a} to see what is there."
    )


def _busy(folder: Locator) -> ConcurrentModificationError:
    return ConcurrentModificationError(
        f"{folder.key!a} is written again and again while it is read. Fix: try again."
    )


def _holds_slugs(place: Uri) -> bool:
    return len(place.path) > OWNER_LEVEL and place.path[0] in {"users", "agents"}


def _slugs(segments: list[str]) -> list[str]:
    """Return the slugs whose folders have these names."""
    if _PLAIN_SLUGS.fullmatch("/".join((*segments, ""))):  # as nearly always
        return segments
    names = map(name_of, segments)
    return [name for name in names if name is not None and SLUG.fullmatch(name)]


def _child(place: Uri, name: str) -> Uri | None:
    try:
        return place.child(name)
    except InvalidValueError:  # a folder that somebody made, and that can't be a place of ours
        return None


def abstract_at(reader: NodeReader, place: Uri) -> Found:
    """Return the abstract of a node; in a session it may have no file of its own."""
    said = reader.look(place, ABSTRACT)
    content = reader.look(place, CONTENT) if said is None and place.session else None
    if not isinstance(content, str):
        return said
    return derived_abstract(place, frontmatter.split(content)[1])
