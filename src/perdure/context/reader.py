"""Nodes as they are stored, for callers that may see them, and what a caller reaches."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, cast

from perdure import frontmatter
from perdure.artifacts import CID
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
from perdure.context.note_names import folded
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
from perdure.storage.changes import copied_name
from perdure.storage.contract import Layout, Text, Unreadable, is_directory

if TYPE_CHECKING:
    from perdure.context.notes import NotesLayout

_MAX_LOOKS = 50
_SIBLINGS = 20
_FILES_OF_FOLDER = 8
"""At least as many names in a folder of nodes are not nodes."""
OWNER_LEVEL = 2
_FILE_NAMES = frozenset(FILES)
_META_FIRST = (META, *TEXT_FILES)
_MAX_PARSED = 512
_LONGEST_PARSED = 32_768
"""Cache at most this many parsed nodes, each of at most this many characters."""
NoteTexts = Mapping[str, tuple[str, Text]]
"""The path and the text of the note that holds each node, by the key of the node's folder."""
_PLAIN_SLUGS = later(r"(?:[a-z0-9_-]{5,100}/)*")
"""Slugs too long to be the name of a device, so that each is also the name of its folder."""
_ROOT = Locator("")
Read = Callable[[Locator], Text]


def layout_of(backend: StorageBackend) -> "NotesLayout | None":
    inner = getattr(backend, "inner", backend)
    return cast("NotesLayout", inner) if isinstance(inner, Layout) else None


class Reach:
    """Refuses before anything is read, so that a refusal reveals nothing about what is stored."""

    def __init__(self, backend: StorageBackend) -> None:
        self._backend = backend
        self._layout = layout_of(backend)

    def require_visible(self, uri: str, ctx: RequestContext) -> Uri:
        """Return the parsed URI; `AccessDeniedError` if the caller may not see it."""
        place = Uri.parse(uri)
        if not self.may_see(place, ctx):
            raise ctx.refuse(uri)
        return place

    def require_writable(self, uri: str, ctx: RequestContext) -> Uri:
        """Return the parsed URI; `AccessDeniedError` if the caller may not change it."""
        place = Uri.parse(uri)
        self._refuse_note(place, ctx)
        if not ctx.may_change(place) or (place.session and not self._reaches_session(place, ctx)):
            raise ctx.refuse(uri)
        return place

    def _refuse_note(self, place: Uri, ctx: RequestContext) -> None:
        """Refuse to change a user's own note, if the caller may see that it is one."""
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
        return ctx.may_see(place) and (not place.session or self._reaches_session(place, ctx))

    def session_owner(self, place: Uri) -> str | None:
        """Return the owner space of a session; None before its first node, "" if unreadable."""
        text = read_text(self.owner_file(place), self._backend.read)
        if text is None:
            return None
        return text.removesuffix("\n") if isinstance(text, str) else ""  # an id may end in space

    def is_known_to(self, reader: Uri, place: Uri) -> bool:
        """Whether all who see `reader` may know of `place`: one owner has both, or it is shared."""
        owner = place.owner_space or self.session_owner(place)
        own = reader.owner_space or self.session_owner(reader)
        return bool(owner) and owner in {own, f"account:{reader.account}"}

    def owner_file(self, place: Uri) -> Locator:
        return _ROOT.child(Uri(place.account, place.path[:2]).key, OWNER)

    def _reaches_session(self, place: Uri, ctx: RequestContext) -> bool:
        if ctx.governs:
            return True
        owner = self.session_owner(place)
        return ctx.session_id == place.session if owner is None else ctx.reaches(owner)


@dataclass(frozen=True)
class StoredNode:
    """A node, and the files that it was read from."""

    node: ContextNode
    meta: Meta
    files: Files
    lines: str
    """The frontmatter as it is in the file."""
    edited_files: frozenset[str] = frozenset()
    """The files that were edited by hand and can still be parsed."""
    path: str = ""
    """The path of its note; empty where nodes are not notes."""

    @property
    def edited(self) -> bool:
        """Whether a file was changed by hand since the meta was written."""
        return bool(self.edited_files or self.node.problems)

    @cached_property
    def cid(self) -> str:
        """The CID of the content in history; if it is broken, of the last one that is not."""
        text = self.files[CONTENT]
        broken = any(problem.startswith(f"{CONTENT}:") for problem in self.node.problems)
        if broken or not isinstance(text, str):
            text = frontmatter.join(self.lines, self.node.content)
        return str(CID.of(text.encode()))

    def is_unchanged(self, name: str, text: str) -> bool:
        """Whether a file need not be written to hold a text: it does, or an edit broke it."""
        if not self.meta.cids:
            return self.files[name] == text
        return name not in self.edited_files and self.meta.cids.get(name) == cid_of(text)


class NodeReader:
    """Reads nodes from a backend: the present one, or a view of the past."""

    def __init__(self, backend: StorageBackend) -> None:
        self.backend = backend
        self.reach = Reach(backend)
        self._layout = layout_of(backend)
        self.has_layout = self._layout is not None
        self._is_past = getattr(backend, "inner", backend).is_past
        self._past_names: dict[str, dict[str, list[Uri]]] = {}
        self._committed = backend.committed if isinstance(backend, TransactionalBackend) else None
        self._parsed: dict[str, tuple[object, StoredNode]] = {}
        """The nodes that were read last, by their folders, each with the texts of its files."""

    # ------------------------------------------------------------ the verbs
    def read_node(self, uri: str, ctx: RequestContext) -> ContextNode:
        node = self.versioned(self.active(self.reach.require_visible(uri, ctx))).node
        self.reach.require_visible(uri, ctx)  # again: a session may have got an owner meanwhile
        hidden = self.hidden_edges(node, ctx)
        if not hidden:
            return node
        return replace(node, relations=tuple(e for e in node.relations if e not in hidden))

    def hidden_edges(self, node: ContextNode, ctx: RequestContext) -> tuple[RelationEdge, ...]:
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
            meta = self._meta(self.folder(place), self.text_at(place, META))
        except BrokenNodeError:
            return False
        return meta is not None and meta.status is NodeStatus.ACTIVE

    def in_use(self, places: Iterable[Uri]) -> dict[Uri, bool]:
        """Return whether nodes are active, for those where that is known without reading them."""
        if self._layout is None:
            return {}
        keys = {self.folder(place).key: place for place in places}
        return {keys[key]: used for key, used in self._layout.in_use(list(keys)).items()}

    def list_children(self, uri: str, ctx: RequestContext) -> list[str]:
        place = self.reach.require_visible(uri, ctx)
        names = self._names(place)
        self.reach.require_visible(uri, ctx)  # as above
        if not names:
            return []
        visible = self._visible(place, names, self._archived(place), ctx)
        if _holds_slugs(place):
            return sorted(f"{uri}/{name}" for name in visible)
        children = (_child(place, name) for name in visible)
        return sorted(str(child) for child in children if child is not None)

    def first_children(self, uri: str, ctx: RequestContext, most: int) -> list[str]:
        """Return the first of `list_children`; in the past, a large folder is not listed whole."""
        place = self.reach.require_visible(uri, ctx)
        if self._is_past and _holds_slugs(place):
            archived = self._archived(place)
            limit = most + len(archived) + _FILES_OF_FOLDER
            segments = [child.name for child in self.backend.first(self.folder(place), limit)]
            if not any("%" in segment for segment in segments):  # escapes sort in another order
                visible = list(self._visible(place, self._named(place, segments), archived, ctx))
                if len(visible) >= most:
                    return [f"{uri}/{name}" for name in visible[:most]]
        return self.list_children(uri, ctx)[:most]

    def siblings(self, node: ContextNode, ctx: RequestContext) -> Iterator[tuple[str, str]]:
        """Yield URI and abstract of the first other nodes in the folder of a node."""
        others = (uri for uri in self.list_children(str(node.place.parent), ctx) if uri != node.uri)
        found = ((uri, abstract_at(self, Uri.parse(uri))) for uri in others)
        return islice(((uri, text) for uri, text in found if isinstance(text, str)), _SIBLINGS)

    def walk(self, place: Uri) -> Iterator[Uri]:
        """Yield every place at or below one, in order, with files of a node or an empty folder."""
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

    # ------------------------------------------------------------ notes
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
        """Return the users' own notes of a past state, by their names and aliases."""
        found: dict[str, list[Uri]] = {}
        for place in self.walk(Uri(account, ("resources",))):
            for name in self.names_of(place):
                found.setdefault(name, []).append(place)
        return found

    def names_of(self, place: Uri) -> Sequence[str]:
        """Return the names by which `named` finds a node."""
        if not self._is_past:
            return self._layout.names_of(self.folder(place).key) if self._layout else ()
        meta = None
        with suppress(BrokenNodeError):
            meta = self._meta(self.folder(place), self.text_at(place, META))
        if meta is None or not meta.metadata.get("in_place"):
            return ()
        others = meta.metadata.get("aliases")
        others = others if isinstance(others, (list, tuple)) else ()
        return sorted({folded(str(each)) for each in (place.name, *others)})

    def copies_of(self, file: Locator) -> Iterator[str]:
        """Yield the texts of the conflict copies of a text that does not belong to a node."""
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

    def file_of(self, place: Uri) -> tuple[str, str] | None:
        """Return the name and the text of the file with the content; None if it can't be read."""
        if self._layout:
            path, text = self.read_files([place]).get(place.key, ("", None))
        else:
            path, text = self.file(place, CONTENT).key, self.text_at(place, CONTENT)
        return (path, text) if isinstance(text, str) else None

    def place_at(self, path: str) -> Uri | None:
        """Return the node that the note at a path holds; None where nodes are not notes."""
        return Uri.of_key(self._layout.place_at(path)) if self._layout else None

    def path_of(self, place: Uri) -> str:
        """Return the path of the note that holds a node; empty where nodes are not notes."""
        return self._layout.path_of(self.folder(place).key) if self._layout else ""

    def lines_above(self, place: Uri) -> int:
        """Return how many more lines the note of a node has than its content."""
        path, content = self.path_of(place), self.text_at(place, CONTENT)
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
    def visible_nodes(
        self, uris: Iterable[str], ctx: RequestContext
    ) -> dict[str, StoredNode | None]:
        """Return the active nodes that the caller reaches, by URI; None where there is none.

        Each note is read once, and parsed only if it changed since this process last parsed it.
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

    def active(self, place: Uri, files: NoteTexts | None = None) -> StoredNode:
        """Return a node that is active; `NodeNotFoundError` if there is none.

        `files` is what `read_files` returned for several nodes.
        """
        try:
            stored = self.load(place) if files is None else self._loaded(place, files)
        except BrokenNodeError:
            self._refuse_inactive(place, self._meta(self.folder(place), self.text_at(place, META)))
            raise
        if stored is None:
            raise not_found(place)
        self._refuse_inactive(place, stored.meta)
        return stored

    def _refuse_inactive(self, place: Uri, meta: Meta | None) -> None:
        if meta is not None and meta.status is not NodeStatus.ACTIVE:
            archived = meta.status is NodeStatus.ARCHIVED
            fix = f"run `perdure {'unarchive' if archived else 'repair'}`"
            raise NodeNotFoundError(f"{str(place)!a} is {meta.status.value}. Fix: {fix}.")

    def load(self, place: Uri) -> StoredNode | None:
        """Return a node of any status; None if there is no meta."""
        if not place.is_node:
            raise not_found(place)
        return self._loaded(place, self.read_files([place]))

    def _loaded(self, place: Uri, files: NoteTexts) -> StoredNode | None:
        """Return a node; it is parsed only if its files changed since it was last parsed."""
        key, path = place.key, ""
        texts: Files = {}
        raw: object = files.get(key)
        if self._layout is None:
            raw = texts = self.backend.read_all(self.folder(place), _META_FIRST)
        elif raw is None:
            return None
        known = self._parsed.get(key)
        if known is not None and known[0] == raw:
            return known[1]
        if self._layout is not None:
            path, real = files[key]
            split = self._layout.texts_in(key, path, real) if isinstance(real, str) else None
            texts = {n: real if split is None else split.get(n) for n in _META_FIRST}
        if len(texts) < len(_META_FIRST):  # to know which are missing, and why
            read = self._read_files(self.folder(place), self.backend.read)
        else:
            meta = self._meta(self.folder(place), texts[META])
            read = None if meta is None else NodeFiles.of(meta, texts)
        if read is None:
            return None
        is_whole = read.is_whole
        if not is_whole and self._committed is not None:
            read = self._settled(self.folder(place), self._committed)
        stored = None if read is None else self._assembled(place, read, path)
        if stored is not None and is_whole and len(stored.node.content) <= _LONGEST_PARSED:
            self._remember(key, raw, stored)
        return stored

    def _remember(self, key: str, raw: object, stored: StoredNode) -> None:
        self._parsed[key] = raw, stored
        if len(self._parsed) > _MAX_PARSED:
            with suppress(RuntimeError):  # another thread does the same
                for oldest in [*islice(self._parsed, _MAX_PARSED // 8 + 1)]:
                    self._parsed.pop(oldest, None)

    def versioned(self, stored: StoredNode) -> StoredNode:
        """Return a node with the next version if the saved one was edited by hand.

        What another machine saved, and a sync client brought, states its version itself.
        """
        place, meta, layout = stored.node.place, stored.meta, self._layout
        if layout is None or stored.edited_files or layout.is_ours(self.folder(place).key):
            return stored
        content, saved = (self.backend.saved(self.file(place, name)) for name in (CONTENT, META))
        is_same = content in {None, stored.files[CONTENT]}
        if is_same or saved is None or Meta.parse(saved).version < meta.version:
            return stored
        return replace(stored, node=replace(stored.node, version=meta.version + 1))

    def read_files(self, places: Iterable[Uri]) -> NoteTexts:
        """Return the notes of nodes; nothing where nodes are not notes."""
        if self._layout is None:
            return {}
        return self._layout.files_of([place.key for place in places])

    def _settled(self, folder: Locator, committed: Read) -> NodeFiles | None:
        """Read past commits that are under way, until the files agree or stay as they are.

        They stay if two reads past all commits gave the same. One read that is not past them may
        give what the next one gives, because a commit ended during each.
        """
        before = None
        for _ in range(_MAX_LOOKS):
            read = self._read_files(folder, committed)
            if read is None or read.is_whole or read == before:
                return read
            before = read
        raise _busy(folder)

    def _read_files(self, folder: Locator, read: Read) -> NodeFiles | None:
        """Read the files, the meta first; None if there is no meta."""
        text = read_text(folder.child(META), read)
        if (meta := self._meta(folder, text)) is None:
            return None
        texts = {name: read_text(folder.child(name), read) for name in TEXT_FILES}
        return NodeFiles.of(meta, {META: text, **texts})

    def _meta(self, folder: Locator, text: Text) -> Meta | None:
        if text is None:
            return None
        if isinstance(text, Unreadable):
            try:
                text = self.backend.read(folder.child(META))
            except StorageError as error:
                raise BrokenNodeError(str(error)) from error
        try:
            return Meta.parse(text)
        except InvalidValueError as error:
            raise BrokenNodeError(
                f"{folder.key!a} has a meta that can't be parsed: {error}"
            ) from error

    def _assembled(self, place: Uri, read: NodeFiles, path: str) -> StoredNode:
        meta = read.meta
        texts = NodeTexts(str(place), read, lambda n: self.backend.earlier(self.file(place, n)))
        try:
            lines, body = texts.take(CONTENT, frontmatter.split, edited_content)
            node = ContextNode(
                uri=texts.uri,
                content=body,
                relations=texts.take(RELATIONS, texts.edges, texts.edges),
                abstract=texts.take(ABSTRACT, str, edited_abstract)
                or derived_abstract(place, body),
                overview=texts.take(OVERVIEW, str, edited_overview),
                metadata=meta.metadata,
                frontmatter=lines or None,
                status=meta.status,
                version=meta.version + bool(texts.edited),
                owner_space=meta.owner_space if place.session else "",  # else its URI names it
                created_at=meta.created_at,
                updated_at=meta.updated_at,
                basis=read.basis,
                problems=tuple(texts.problems),
            )
        except InvalidValueError as error:  # the meta has an impossible value
            raise BrokenNodeError(f"{str(place)!a} has an invalid meta: {error}") from error
        return StoredNode(node, meta, read.files, lines, frozenset(texts.edited), path)

    # ------------------------------------------------------------ places
    def folder(self, place: Uri) -> Locator:
        return _ROOT.child(place.key)

    def file(self, place: Uri, name: str) -> Locator:
        return _ROOT.child(place.key, name)

    def marker(self, place: Uri) -> Locator:
        """Return the file in the folder above that marks a node as archived."""
        folder = self.folder(place)
        return folder.parent.child(ARCHIVED, folder.name)

    def text_at(self, place: Uri, name: str) -> Text:
        return text_at(self.file(place, name), self.backend)

    def files(self, place: Uri) -> dict[str, Text]:
        """Return the texts of all files of a node, past any commit under way or left unfinished."""
        read = self._committed or self.backend.read
        folder = self.folder(place)
        found: dict[str, Text] = {}
        for _ in range(_MAX_LOOKS):
            again = {name: read_text(folder.child(name), read) for name in FILES}
            if again == found:
                return again
            found = again
        raise _busy(folder)

    def _archived(self, place: Uri) -> set[str | None]:
        return {name_of(child.name) for child in self.backend.list(self.file(place, ARCHIVED))}

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
        self, place: Uri, names: list[str], archived: set[str | None], ctx: RequestContext
    ) -> Iterable[str]:
        if not place.path and not ctx.governs:  # a folder reveals that something is in it
            folders = {name: _child(place, name) for name in names}
            return [
                n
                for n, folder in folders.items()
                if folder and self.list_children(str(folder), ctx)
            ]
        if place.path in {("users",), ("agents",), ("sessions",)}:
            return [name for name in names if self.reach.may_see(place.child(name), ctx)]
        if not archived:
            return names
        return [name for name in names if name not in archived or self._names(place.child(name))]


def not_found(place: Uri) -> NodeNotFoundError:
    return NodeNotFoundError(
        f"no node is at {str(place)!a}. Fix: list {str(place.parent)!a} to see what is there."
    )


def _busy(folder: Locator) -> ConcurrentModificationError:
    return ConcurrentModificationError(
        f"{folder.key!a} was rewritten each time it was read. Fix: try again."
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
    except InvalidValueError:  # a foreign folder, which no URI can name
        return None


def abstract_at(reader: NodeReader, place: Uri) -> Text:
    """Return the abstract of a node; in a session it may have no file of its own."""
    text = reader.text_at(place, ABSTRACT)
    content = reader.text_at(place, CONTENT) if text is None and place.session else None
    if not isinstance(content, str):
        return text
    return derived_abstract(place, frontmatter.split(content)[1])
