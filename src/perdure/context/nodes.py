"""The verbs that change nodes and their edges, and the drafts of the commits that they make."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from datetime import UTC, datetime
from typing import Self

from perdure import frontmatter
from perdure.context.links import Backlinks, RelationReader, ScannedLinks, relinked, resolve
from perdure.context.node_files import (
    ARCHIVED,
    CONTENT,
    FILES,
    LEARNED,
    META,
    METADATA,
    TEXT_FILES,
    Files,
    Meta,
    cid_of,
    read_text,
    short_hash,
    texts_of,
)
from perdure.context.reader import OWNER_LEVEL, NodeReader, StoredNode, not_found
from perdure.context.tenancy import Deletions
from perdure.dataclass import dataclass, field, replace
from perdure.errors import (
    BrokenNodeError,
    ConcurrentModificationError,
    ContextError,
    InvalidValueError,
    NodeExistsError,
    NodeNotFoundError,
    PerdureError,
    VersionMismatchError,
)
from perdure.model import (
    MENTIONS,
    ContextNode,
    NodeStatus,
    RelationEdge,
    RequestContext,
    Uri,
    slugify,
)
from perdure.model.node import time_problems
from perdure.model.values import JSON
from perdure.storage import ABSENT, Expectation, Locator, TransactionalBackend, content_hash
from perdure.storage.contract import UNREADABLE, Text

_NOTHING: Files = dict.fromkeys(FILES)


@dataclass(slots=True)
class NodeDraft:
    """A commit that is being prepared: texts to write and remove, in order, and conditions."""

    reader: NodeReader
    now: datetime
    changes: dict[Locator, str | None] = field(default_factory=dict)
    expect: dict[Locator, Expectation] = field(default_factory=dict)
    written: list[ContextNode] = field(default_factory=list)

    def write(
        self,
        node: ContextNode,
        stored: StoredNode | None,
        *,
        status: NodeStatus = NodeStatus.ACTIVE,
        files: Files = _NOTHING,
        dated: bool = True,
    ) -> None:
        """Add a node that replaces the stored one, or `files` that do not make up a node.

        Without `dated` it keeps the time of its last update, because its meaning did not change.
        """
        final = self._final(node, stored, status)
        if not dated:
            final = replace(final, updated_at=node.updated_at)
        before = files if stored is None else stored.files
        in_one, in_session = self.reader.has_layout, bool(final.place.session)
        texts = texts_of(final, _content_file(final, stored), sparse=in_one or in_session)
        meta = Meta(
            final.status,
            final.version,
            final.owner_space if in_session or not in_one else "",
            final.created_at,
            final.updated_at,
            {} if in_one else {name: cid_of(text) for name, text in texts.items()},
            final.metadata,
            short_hash(texts[CONTENT]) if in_one else "",
        )
        folder = self.reader.folder(final.place)
        for name in TEXT_FILES:
            text, found = texts.get(name), before[name]
            # An unchanged text is not written, even if an edit broke its file. One that was edited
            # by hand is written as it is, so that history has it.
            if text is None:
                if found is not None:
                    self.put(folder.child(name), None, found)
            elif stored is None or found is None or not stored.is_unchanged(name, text):
                self.put(folder.child(name), text, found)
        self.put(folder.child(META), meta.text(), before[META])
        self.written.append(final)

    def remove(self, place: Uri, files: Files) -> None:
        """Add the removal of a node: its meta first, so that no reader sees half of it."""
        folder = self.reader.folder(place)
        for name, found in sorted(files.items(), key=lambda file: file[0] != META):
            if found is not None:
                self.put(folder.child(name), None, found)

    def mark(self, place: Uri, *, archived: bool) -> None:
        marker = self.reader.marker(place)
        if archived:
            self.changes[marker] = f"{place}\n"
        elif self.reader.backend.exists(marker):
            self.changes[marker] = None

    def own(self, place: Uri, owner_space: str) -> None:
        locator = self.reader.reach.owner_file(place)
        self.changes[locator] = f"{owner_space}\n"
        self.expect[locator] = ABSENT

    def owner(self, place: Uri) -> str | None:
        """Return the owner space that the draft gives a session; None if it gives none."""
        text = self.changes.get(self.reader.reach.owner_file(place))
        return None if text is None else text.removesuffix("\n")  # an id may end in space

    def put(self, locator: Locator, text: str | None, found: Text) -> None:
        """Add a text that replaces what was found; bytes that are not text have no history."""
        if found is UNREADABLE and text is not None and locator.name != META:
            raise BrokenNodeError(
                f"{locator.key!a} is not UTF-8 text, so history could not keep it. Nothing was "
                "changed. Fix: save it as UTF-8, or remove the file."
            )
        self.changes[locator] = text
        if found is None:
            self.expect[locator] = ABSENT
        elif isinstance(found, str):
            self.expect[locator] = content_hash(found)

    def _final(
        self, node: ContextNode, stored: StoredNode | None, status: NodeStatus
    ) -> ContextNode:
        metadata = {**(stored.meta.metadata if stored else {}), **node.metadata}
        created = self.now if stored is None else stored.meta.created_at
        if not created.timestamp():  # its file does not state it
            created = self._first_seen(node.place)
        return replace(
            node,
            status=status,
            created_at=created,
            updated_at=max(self.now, created),
            metadata={name: metadata[name] for name in ordered(metadata)},
            relations=tuple(
                edge if edge.created_at.timestamp() else replace(edge, created_at=self.now)
                for edge in node.relations
            ),
            basis="",
            problems=(),
        )

    def _first_seen(self, place: Uri) -> datetime:
        """Return the time of the first version in history."""
        from perdure.storage.recorded import Recorded  # noqa: PLC0415 - rarely needed

        backend, file = self.reader.backend, self.reader.file(place, CONTENT)
        versions = backend.history.versions(file) if isinstance(backend, Recorded) else ()
        return datetime.fromtimestamp(versions[0].time / 1000, UTC) if versions else self.now


def ordered(metadata: Mapping[str, JSON]) -> list[str]:
    """Return the names with a value: first those that Perdure knows, then the others."""
    known = [name for name in METADATA if name in metadata]
    names = [*known, *(name for name in metadata if name not in METADATA)]
    return [name for name in names if metadata[name] is not None]


def _content_file(node: ContextNode, stored: StoredNode | None) -> str:
    known = "" if stored is None else stored.lines
    lines = known if node.frontmatter is None else node.frontmatter
    if lines != known:
        frontmatter.properties(lines)
    if lines and not lines.endswith("\n"):
        lines += "\n"
    return frontmatter.join(lines, node.content)


class SessionMarks:
    """How far each session was learned from."""

    def __init__(self, reader: NodeReader) -> None:
        self._reader = reader

    def read(self, session: Uri, ctx: RequestContext) -> str:
        """Return the mark of a session; empty if it has none, or one that is not text."""
        self._reader.reach.require_visible(str(session), ctx)
        found = read_text(self._file(session), self._reader.backend.read)
        return found if isinstance(found, str) else ""

    def moved(self, session: Uri, before: str, after: str) -> Callable[[NodeDraft], None]:
        """Return the plan to move a mark; it raises `VersionMismatchError` if others moved it."""

        def plan(draft: NodeDraft) -> None:
            found = read_text(self._file(session), self._reader.backend.read)
            if (found if isinstance(found, str) else "") != before:
                raise VersionMismatchError(
                    f"another process learned from {str(session)!a} meanwhile. "
                    "Nothing was changed. Fix: commit it again."
                )
            draft.put(self._file(session), after, found)

        return plan

    def _file(self, session: Uri) -> Locator:
        return self._reader.file(Uri(session.account, session.path[:2]), LEARNED)


_ATTEMPTS = 20


class Nodes(NodeReader):
    """The nodes of a memory, on a backend that commits several texts at once."""

    def __init__(
        self,
        backend: TransactionalBackend,
        *,
        backlinks: Backlinks | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(backend)
        self._changing = backend
        self._backlinks = backlinks or ScannedLinks(self)
        self._clock = clock
        self._deletions = Deletions(backend)

    def because(self, reason: str = "", **more: JSON) -> Self:
        """Return the same nodes; their changes record this reason."""
        same = copy(self)
        same._changing = self._changing.because(reason=reason or None, **more)  # type: ignore[arg-type] # noqa: SLF001 - of this class; circumstances may be JSON
        return same

    # ------------------------------------------------------------ writing
    def write_node(self, node: ContextNode, ctx: RequestContext) -> None:
        self.write_nodes([node], ctx)

    def write_nodes(self, nodes: Iterable[ContextNode], ctx: RequestContext) -> None:
        """Write several nodes in one commit."""
        self.exchange(nodes, (), ctx)

    def exchange(
        self,
        nodes: Iterable[ContextNode],
        without: Iterable[str],
        ctx: RequestContext,
        also: Callable[[NodeDraft], None] = lambda _draft: None,
    ) -> None:
        """Write some nodes, remove others and do what `also` plans, in one commit."""
        every, gone = list(nodes), [self.reach.require_writable(uri, ctx) for uri in without]
        if len({node.uri for node in every}) < len(every):
            raise InvalidValueError("a node is listed twice. Fix: write it once.")
        for node in every:
            self.reach.require_writable(node.uri, ctx)
            for edge in node.relations:
                self.reach.require_visible(edge.to_uri, ctx)

        def plan(draft: NodeDraft) -> None:
            for node in every:
                self._plan_write(draft, node, ctx)
            for place in gone:
                draft.remove(place, self.active(place).files)
            also(draft)

        self.change(plan, ctx)
        for place in gone:
            self.clear(place)

    def _plan_write(self, draft: NodeDraft, node: ContextNode, ctx: RequestContext) -> None:
        stored = self.load(node.place)
        _refuse_times(node, {} if stored is None else stored.meta.metadata)
        if stored is None:
            self._refuse_unless_first(node)
        else:
            is_next = node.version == stored.node.version + 1
            _refuse_unless_next(node, stored if is_next else self.versioned(stored))
            # The caller did not see hidden edges, so it can't have meant to remove them.
            node = replace(node, relations=(*node.relations, *self.hidden_edges(stored.node, ctx)))
        draft.write(self.owned(draft, node, ctx), stored)

    def _refuse_unless_first(self, node: ContextNode) -> None:
        if node.version != 1:
            raise VersionMismatchError(
                f"{node.uri!a} has no version {node.version - 1} that version {node.version} could "
                "follow: no node is there. Nothing was changed. Fix: write version 1."
            )

    def owned(self, draft: NodeDraft, node: ContextNode, ctx: RequestContext) -> ContextNode:
        """Return the node with its owner; the first node of a session decides the session's."""
        if not node.place.session:
            return node
        owner = self.reach.session_owner(node.place) or draft.owner(node.place)
        if owner is None:
            owner = node.owner_space or f"user:{ctx.user_id}"
            if not ctx.reaches(owner):
                raise ctx.refuse(node.uri)
            draft.own(node.place, owner)
        return replace(node, owner_space=owner)

    # ------------------------------------------------------------ archiving, deleting
    def archive_node(self, uri: str, ctx: RequestContext) -> None:
        place = self.reach.require_writable(uri, ctx)
        self.change(lambda draft: self.plan_archive(draft, place), ctx)

    def plan_archive(self, draft: NodeDraft, place: Uri) -> None:
        """Add the archiving of an active node to a draft."""
        stored = self.active(place)
        draft.mark(place, archived=True)
        draft.write(stored.node.revised(), stored, status=NodeStatus.ARCHIVED)

    def unarchive_node(
        self, uri: str, ctx: RequestContext, also: Callable[[NodeDraft], None] = lambda _draft: None
    ) -> None:
        """Unarchive a node; what `also` plans is in the same commit."""
        place = self.reach.require_writable(uri, ctx)

        def plan(draft: NodeDraft) -> None:
            stored = self.load(place)
            if stored is None or stored.meta.status is not NodeStatus.ARCHIVED:
                raise NodeNotFoundError(
                    f"no archived node is at {uri!a}. Fix: run `perdure list --archived`."
                )
            draft.mark(place, archived=False)
            draft.write(stored.node.revised(), stored)
            also(draft)

        self.change(plan, ctx)

    def delete_node(self, uri: str, ctx: RequestContext) -> None:
        place = self.reach.require_writable(uri, ctx)
        files: dict[str, Text] = {}

        def plan(draft: NodeDraft) -> None:
            nonlocal files
            files = self.files(place)
            if all(found is None for found in files.values()):
                raise not_found(place)
            texts = {name: found for name, found in files.items() if found is not UNREADABLE}
            draft.remove(place, texts)
            draft.mark(place, archived=False)

        self.change(plan, ctx)
        for name, found in files.items():
            if found is UNREADABLE:  # history can't have it, so it is removed outside the commit
                with suppress(PerdureError, OSError):  # a link is not ours, and stays
                    self._changing.remove(self.file(place, name))
        self.clear(place)

    # ------------------------------------------------------------ moving
    def move_node(self, from_uri: str, to_uri: str, ctx: RequestContext) -> None:
        old, new = (
            self.reach.require_writable(from_uri, ctx),
            self.reach.require_writable(to_uri, ctx),
        )
        if old == new:
            raise InvalidValueError(f"{from_uri!a} is there already. Fix: choose another URI.")
        if not new.is_node:
            raise InvalidValueError(f"{to_uri!a} is a folder. Fix: name the node in it.")

        def plan(draft: NodeDraft) -> None:
            stored = self._unbroken(old)
            if self.load(new) is not None:
                raise _occupied(new)
            self._plan_arrival(draft, stored, new, ctx)
            for follower in self._followers(old, ctx):
                self._plan_following(draft, follower, stored, new)
            draft.remove(old, stored.files)

        moved_from = {self.file(new, name).key: self.file(old, name).key for name in FILES}
        self.change(plan, ctx, moved_from=moved_from)
        self.clear(old)

    def _plan_arrival(
        self, draft: NodeDraft, stored: StoredNode, new: Uri, ctx: RequestContext
    ) -> None:
        """Add a moved node at its new URI, where nothing is."""
        node, uri = stored.node, str(new)

        def follow(target: str) -> Uri | None:
            led = resolve(target, node.place, self)
            if led is None or led in {new, resolve(target, new, self)}:
                return None
            return led if self.reach.is_known_to(new, led) else None

        shared = node.place.owner_space == f"account:{new.account}"
        owner = f"user:{ctx.user_id}" if shared else node.owner_space
        moved = node.revised(
            uri=uri,
            owner_space=owner if new.session else "",
            content=relinked(node.content, follow, new, self._file_name),
            relations=tuple(
                replace(edge, from_uri=uri) for edge in node.relations if edge.to_uri != uri
            ),
        )
        draft.write(self.owned(draft, moved, ctx), replace(stored, files=dict.fromkeys(FILES)))

    def _followers(self, place: Uri, ctx: RequestContext) -> Iterator[StoredNode]:
        for follower in self._backlinks.leading_to(place):
            if follower != place and ctx.may_change(follower) and self.reach.may_see(follower, ctx):
                with suppress(NodeNotFoundError, BrokenNodeError):
                    yield self._unbroken(follower)

    def leading_to(self, place: Uri, called: Iterable[str] = ()) -> Iterator[Uri]:
        """Yield the nodes that may lead to a place; reading them tells whether they do."""
        return iter(self._backlinks.leading_to(place, called))

    def _unbroken(self, place: Uri) -> StoredNode:
        stored = self.active(place)
        if stored.node.problems:
            raise BrokenNodeError(
                f"{str(place)!a} was edited by hand and can't be read as it is. Nothing was "
                f"changed. {stored.node.problems[0]}"
            )
        return stored

    def _plan_following(
        self, draft: NodeDraft, follower: StoredNode, moved: StoredNode, new: Uri
    ) -> None:
        """Add a node whose edges and links lead to the new URI instead of the old one.

        Links do so only if all readers of the node may know of both places: anyone can write a link
        to a place that they can't see, and must not learn where that is now.
        """
        node, old = follower.node, moved.node.place
        known = self.reach.is_known_to(node.place, old) and self.reach.is_known_to(node.place, new)

        def follow(target: str) -> Uri | None:
            return new if known and resolve(target, node.place, self) == old else None

        relations = tuple(
            replace(edge, to_uri=str(new)) if edge.to_uri == str(old) else edge
            for edge in node.relations
        )
        content = relinked(
            node.content, follow, node.place, lambda place: self._file_name(place, moved)
        )
        if (relations, content) != (node.relations, node.content):
            draft.write(node.revised(relations=relations, content=content), follower)

    def _file_name(self, place: Uri, moved: StoredNode | None = None) -> str:
        """Return the name of a memory's file if a link by that name is unambiguous, else ""."""
        if self._layout is None or place.path[0] == "resources":
            return ""
        key = self.folder(place).key
        named = self._layout.path_of(key) or self._layout.new_name(
            key, moved.node.title if moved else ""
        )
        name = named.rpartition("/")[2].removesuffix(".md")
        mine = {place, *([moved.node.place] if moved else ())}
        is_sure = slugify(name) == place.name and mine.issuperset(self.named(place.account, name))
        return name if is_sure else ""

    # ------------------------------------------------------------ edits by hand
    def adopt(self, uri: str, ctx: RequestContext) -> bool:
        """Save edits by hand as the next version; return whether there were any."""
        place = self.reach.require_writable(uri, ctx)

        def plan(draft: NodeDraft) -> None:
            stored = self.load(place)
            if stored is not None and stored.edited_files:
                draft.write(stored.node, stored, status=stored.meta.status)

        return bool(self.change(plan, ctx).written)

    # ------------------------------------------------------------ edges
    def relate(
        self,
        uris: Sequence[str],
        change: Callable[[ContextNode], ContextNode],
        ctx: RequestContext,
    ) -> None:
        """Change the edges of some nodes in one commit; unchanged nodes are not written."""
        places = [self.reach.require_writable(uri, ctx) for uri in uris]

        def plan(draft: NodeDraft) -> None:
            for place in places:
                stored = self.active(place)
                changed = change(stored.node)
                if changed.relations != stored.node.relations:
                    draft.write(changed.revised(), stored)

        self.change(plan, ctx)

    # ------------------------------------------------------------ committing
    def settle(self, *, unacknowledged: bool = False) -> None:
        self._changing.settle(unacknowledged=unacknowledged)

    def change(
        self, plan: Callable[[NodeDraft], None], ctx: RequestContext, **more: JSON
    ) -> NodeDraft:
        """Plan and commit; if another writer was faster, plan again from the new state."""
        more = {"session": ctx.session_id, "trace": ctx.trace_id, **more}
        circumstances = {name: value for name, value in more.items() if value}
        actor = f"{_escaped(ctx.user_id)}/{_escaped(ctx.agent_id)}"
        backend = self._changing.because(actor=actor, **circumstances)  # type: ignore[arg-type] # circumstances may be text
        for _ in range(_ATTEMPTS):
            draft = self._planned(plan)
            self._refuse_sessions(draft, ctx)
            with suppress(ConcurrentModificationError):
                if draft.changes:
                    backend.commit(draft.changes, expect=draft.expect)
                return draft
            self._refuse_leftovers(draft)
        raise ConcurrentModificationError(
            f"other processes changed the same nodes during {_ATTEMPTS} attempts. "
            "Nothing was changed. Fix: try again."
        )

    def _planned(self, plan: Callable[[NodeDraft], None]) -> NodeDraft:
        """Plan; before refusing, finish what a writer that died may have left, and plan again."""
        try:
            return self._drafted(plan)
        except ContextError:
            self._changing.settle()
            return self._drafted(plan)

    def _drafted(self, plan: Callable[[NodeDraft], None]) -> NodeDraft:
        draft = NodeDraft(self, self._clock())
        plan(draft)
        self._deletions.refuse_nodes(draft.written)
        return draft

    def _refuse_sessions(self, draft: NodeDraft, ctx: RequestContext) -> None:
        """Refuse to change a session that got another owner since the caller was admitted."""
        for folder in {each.parent for each in draft.changes if "/sessions/" in each.key}:
            place = Uri.of_key(folder.key)
            if place is not None and not self.reach.may_see(place, ctx):
                raise ctx.refuse(place)

    def _refuse_leftovers(self, draft: NodeDraft) -> None:
        """Raise `BrokenNodeError` if there are files that do not make up a node."""
        for node in draft.written:
            files = self.files(node.place)
            if files[META] is None and any(found is not None for found in files.values()):
                raise BrokenNodeError(
                    f"there are files at {node.uri!a}, but no node. Nothing was changed. "
                    "Fix: run `perdure repair` to make a node of them, or remove them."
                )

    def clear(self, place: Uri) -> None:
        """Remove the folders that a node left empty."""
        folder = self.folder(place)
        with suppress(PerdureError, OSError):
            self._changing.remove(folder.parent.child(ARCHIVED))
        with suppress(PerdureError, OSError):  # the first that is not empty ends it
            shared = place.path[0] == "resources"
            for _ in range(len(place.path) - (1 if shared else OWNER_LEVEL)):
                self._changing.remove(folder)
                folder = folder.parent


def _escaped(id_: str) -> str:
    """Return an id with its slashes escaped, so that a slash can separate two ids."""
    return id_.replace("%", "%25").replace("/", "%2F")


def _refuse_unless_next(node: ContextNode, stored: StoredNode) -> None:
    status, version = stored.meta.status, stored.node.version
    if node.version == 1 or status is NodeStatus.ARCHIVED:
        raise _occupied(node.place, status)
    if node.version != version + 1:
        raise VersionMismatchError(
            f"{node.uri!a} is at version {version}, so {node.version} can't follow. "
            "Nothing was changed. Fix: read it again, then revise what you read."
        )
    if node.basis and node.basis != stored.node.basis:
        raise VersionMismatchError(
            f"{node.uri!a} was edited by hand since it was read. Nothing was changed. "
            "Fix: read it again, then revise what you read."
        )


def _refuse_times(node: ContextNode, before: Mapping[str, JSON]) -> None:
    """Refuse times that can't be parsed; those that were there already are left to repair."""
    new = {name: value for name, value in node.metadata.items() if value != before.get(name)}
    for problem in time_problems(new):
        what, _, fix = problem.partition(" Fix: ")
        raise InvalidValueError(f"{node.uri!a}: {what} Nothing was changed. Fix: {fix}")


def _occupied(place: Uri, status: NodeStatus = NodeStatus.ACTIVE) -> NodeExistsError:
    what, fix = "a node", "read it and write its next version, or choose another name"
    if status is NodeStatus.ARCHIVED:
        what, fix = "an archived node", "unarchive it with `perdure unarchive`, or delete it"
    return NodeExistsError(f"{what} is at {str(place)!a}. Nothing was changed. Fix: {fix}.")


# ---------------------------------------------------------------- edges
class Relations(RelationReader):
    """The edges of nodes, each stored with the node that it starts from."""

    def __init__(self, nodes: Nodes, backlinks: Backlinks) -> None:
        super().__init__(nodes, backlinks)
        self._nodes = nodes

    def upsert_edges(self, edges: Sequence[RelationEdge], ctx: RequestContext) -> None:
        for edge in edges:
            self._refuse(edge, ctx)

        def change(node: ContextNode) -> ContextNode:
            known = {edge.identity: edge for edge in node.relations}
            for edge in edges:
                if edge.from_uri == node.uri:
                    before = known.get(edge.identity)
                    known[edge.identity] = _dated(edge, before)
            return replace(node, relations=tuple(known.values()))

        self._nodes.relate(_starts(edges), change, ctx)

    def remove_edges(self, edges: Sequence[RelationEdge], ctx: RequestContext) -> None:
        for edge in edges:
            self._nodes.reach.require_writable(edge.from_uri, ctx)
            self._nodes.reach.require_visible(edge.to_uri, ctx)
        gone = {edge.identity for edge in edges}

        def change(node: ContextNode) -> ContextNode:
            left = (edge for edge in node.relations if edge.identity not in gone)
            return replace(node, relations=tuple(left))

        self._nodes.relate(_starts(edges), change, ctx)

    def _refuse(self, edge: RelationEdge, ctx: RequestContext) -> None:
        """Refuse an edge that may not be written, or whose target does not exist."""
        self._nodes.reach.require_writable(edge.from_uri, ctx)
        target = self._nodes.reach.require_visible(edge.to_uri, ctx)
        if edge.relation_type == MENTIONS:
            raise InvalidValueError(
                f"edges of type {MENTIONS!r} come from [[links]] in the content. "
                "Fix: choose another type, or write a link."
            )
        if not self._nodes.is_active(target):
            raise NodeNotFoundError(
                f"no node is at {edge.to_uri!a}, the target of an edge. Fix: write that node first."
            )


def _starts(edges: Sequence[RelationEdge]) -> list[str]:
    return list(dict.fromkeys(edge.from_uri for edge in edges))


def _dated(edge: RelationEdge, before: RelationEdge | None) -> RelationEdge:
    return edge if before is None else replace(edge, created_at=before.created_at)
