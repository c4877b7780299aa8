"""Nodes made whole again, from what is left of them and from history."""

from contextlib import suppress

from perdure.context.node_files import (
    ABSTRACT,
    CONTENT,
    FILES,
    META,
    OVERVIEW,
    RELATIONS,
    Files,
    Meta,
    cid_of,
    edited_content,
    parse_relations,
    text_of,
    text_with_cid,
)
from perdure.context.nodes import NodeDraft, Nodes
from perdure.errors import InvalidValueError
from perdure.frontmatter import frontmatter
from perdure.model import ContextNode, NodeStatus, RelationEdge, RequestContext, Uri
from perdure.model.values import MAX_ABSTRACT, MAX_OVERVIEW


class NodeRepair:
    """What repair does to one node. Each verb looks again first, so it may be called twice."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    # ------------------------------------------------------------ looking
    def meta(self, place: Uri) -> Meta | None:
        return _understood(self._nodes.files(place))

    def can_restore(self, place: Uri) -> bool:
        """Whether there is an earlier meta, or a content that a new one could be made for."""
        known = self._earlier_meta(place)
        return known is not None or _new(place, self._nodes.files(place)) is not None

    def why_no_node(self, place: Uri) -> str:
        """Say why no node can be made of the content at a place; nothing if one can."""
        files = self._nodes.files(place)
        try:
            _made(place, files)
        except InvalidValueError as error:
            return f"{CONTENT}: {error}"
        said = files[CONTENT]
        finding = frontmatter(said).finding if isinstance(said, str) else ""
        return f"{CONTENT}: its {finding}" if finding else ""

    def has_leftovers(self, place: Uri) -> bool:
        """Whether there is anything at a place that could be removed."""
        exists, file = self._nodes.backend.exists, self._nodes.file
        return self.is_empty(place) or any(exists(file(place, name)) for name in FILES)

    def is_empty(self, place: Uri) -> bool:
        """Whether a folder is there without anything in it, be it a memory or not."""
        backend, folder = self._nodes.backend, self._nodes.folder(place)
        with suppress(FileNotFoundError):
            is_dir = backend.info(folder).is_dir
            return is_dir and not backend.list(folder) and not backend.findings(folder)
        return False

    def marked(self, place: Uri) -> bool:
        return self._nodes.backend.exists(self._nodes.marker(place))

    # ------------------------------------------------------------ mending
    def complete(self, uri: str, ctx: RequestContext) -> None:
        """Make a node of a content that has no meta; the one that it was, if history knows it."""
        place = self._nodes.reach.require_writable(uri, ctx)

        def plan(draft: NodeDraft) -> None:
            files = self._nodes.files(place)
            if files[META] is not None:
                return
            earlier = self._earlier_meta(place)
            if earlier is not None and self._is_of(earlier, place, files):
                draft.put(self._nodes.file(place, META), earlier, None)
            else:
                self._plan_new(draft, place, files, ctx)

        self._adopt(self._nodes.change(plan, ctx), uri, ctx)

    def remove(self, uri: str, ctx: RequestContext) -> None:
        """Remove the parts of a node that has neither content nor meta, and its empty folder."""
        place = self._nodes.reach.require_writable(uri, ctx)
        files = self._nodes.files(place)
        if all(found is None for found in files.values()):
            self._nodes.clear(place)
        elif files[META] is None and files[CONTENT] is None:
            self._nodes.delete_node(uri, ctx)

    def activate(self, uri: str, ctx: RequestContext) -> None:
        """Let a node be seen that was written whole, but for its last step."""
        place = self._nodes.reach.require_writable(uri, ctx)

        def plan(draft: NodeDraft) -> None:
            stored = self._nodes.load(place)
            if stored is not None and stored.meta.status is NodeStatus.PENDING:
                draft.write(stored.node, stored)

        self._nodes.change(plan, ctx)

    def finish(self, uri: str, ctx: RequestContext) -> None:
        """Put the parts in place that a meta names, from history; else set the node aside."""
        place = self._nodes.reach.require_writable(uri, ctx)

        def plan(draft: NodeDraft) -> None:
            files = self._nodes.files(place)
            meta = _understood(files)
            if meta is None or meta.status is not NodeStatus.PENDING:
                return
            parts = {name: self._named(place, name, meta, files) for name in meta.cids}
            if None in parts.values():
                broken = meta._replace(status=NodeStatus.BROKEN)
                draft.put(self._nodes.file(place, META), broken.text(), files[META])
                return
            for name, text in parts.items():
                if files[name] != text:
                    draft.put(self._nodes.file(place, name), text, files[name])

        self._nodes.change(plan, ctx)
        self.activate(uri, ctx)

    def restore(self, uri: str, ctx: RequestContext) -> None:
        """Give a node the last meta that could be understood; without one, a new one."""
        place = self._nodes.reach.require_writable(uri, ctx)

        def plan(draft: NodeDraft) -> None:
            files = self._nodes.files(place)
            if files[META] is None or _understood(files) is not None:
                return
            earlier = self._earlier_meta(place)
            if earlier is None:
                self._plan_new(draft, place, files, ctx)
            else:
                draft.put(self._nodes.file(place, META), earlier, files[META])

        self._adopt(self._nodes.change(plan, ctx), uri, ctx)

    def mark(self, uri: str, ctx: RequestContext) -> None:
        """Let the folder above say what the node says."""
        place = self._nodes.reach.require_writable(uri, ctx)

        def plan(draft: NodeDraft) -> None:
            meta = self.meta(place)
            archived = meta is not None and meta.status is NodeStatus.ARCHIVED
            if archived != self.marked(place):
                draft.mark(place, archived=archived)

        self._nodes.change(plan, ctx)

    def _adopt(self, draft: NodeDraft, uri: str, ctx: RequestContext) -> None:
        """Make what a node that got an earlier meta says by now its next version."""
        if draft.changes and not draft.written:
            self._nodes.adopt(uri, ctx)

    # ------------------------------------------------------------ what is left
    def _plan_new(self, draft: NodeDraft, place: Uri, files: Files, ctx: RequestContext) -> None:
        """Let what can be read be a new node, archived if the folder above says so."""
        node = _new(place, files)
        if node is None:
            return
        status = NodeStatus.ARCHIVED if self.marked(place) else NodeStatus.ACTIVE
        with suppress(InvalidValueError):  # a session says that it is nobody's
            draft.write(self._nodes.owned(draft, node, ctx), None, status=status, files=files)

    def _named(self, place: Uri, name: str, meta: Meta, files: Files) -> str | None:
        """Return the part that a meta names: from its file, or from history."""
        cid, said = meta.cids.get(name), files[name]
        if isinstance(said, str) and cid_of(said) == cid:
            return said
        return text_with_cid(cid, self._nodes.backend.earlier(self._nodes.file(place, name)))

    def _is_of(self, meta: str, place: Uri, files: Files) -> bool:
        """Whether an earlier meta is of what is there now."""
        known, said = Meta.parse(meta), files[CONTENT]
        if self.marked(place) != (known.status is NodeStatus.ARCHIVED):
            return False
        return isinstance(said, str) and known.cids.get(CONTENT) == cid_of(said)

    def _earlier_meta(self, place: Uri) -> str | None:
        for text in self._nodes.backend.earlier(self._nodes.file(place, META)):
            with suppress(InvalidValueError):
                Meta.parse(text)
                return text
        return None


def _understood(files: Files) -> Meta | None:
    said = files[META]
    with suppress(InvalidValueError):
        return Meta.parse(said) if isinstance(said, str) else None
    return None


def _new(place: Uri, files: Files) -> ContextNode | None:
    """Return a node of what can be read; None if only its author can say what it should be."""
    with suppress(InvalidValueError):
        return _made(place, files)
    return None


def _made(place: Uri, files: Files) -> ContextNode:
    said = files[CONTENT]
    lines, body = edited_content(None if said is None else text_of(said))
    return ContextNode(
        uri=str(place),
        content=body,
        frontmatter=lines or None,
        relations=_edges(files, str(place)),
        abstract=_short(files, ABSTRACT, MAX_ABSTRACT),
        overview=_short(files, OVERVIEW, MAX_OVERVIEW),
    )


def _edges(files: Files, uri: str) -> tuple[RelationEdge, ...]:
    said = files[RELATIONS]
    with suppress(InvalidValueError):
        return parse_relations(said, uri) if isinstance(said, str) else ()
    return ()


def _short(files: Files, name: str, limit: int) -> str:
    said = files[name]
    return said if isinstance(said, str) and len(said) <= limit else ""
