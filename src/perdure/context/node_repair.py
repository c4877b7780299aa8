"""The repair of a node, from what is left of it and from history."""

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
    """Repairs single nodes. Each verb checks the node first, so that it may be called twice."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    # ------------------------------------------------------------ diagnosis
    def meta(self, place: Uri) -> Meta | None:
        return _parsed_meta(self._nodes.files(place))

    def can_restore(self, place: Uri) -> bool:
        """Whether there is an earlier meta, or a content for which a new one can be created."""
        known = self._earlier_meta(place)
        return known is not None or _new_node(place, self._nodes.files(place)) is not None

    def why_no_node(self, place: Uri) -> str:
        """Return why no node can be created from the content at a place; "" if one can."""
        files = self._nodes.files(place)
        try:
            _node_from(place, files)
        except InvalidValueError as error:
            return f"{CONTENT}: {error}"
        content = files[CONTENT]
        finding = frontmatter(content).finding if isinstance(content, str) else ""
        return f"{CONTENT}: its {finding}" if finding else ""

    def has_leftovers(self, place: Uri) -> bool:
        """Whether there is anything at a place that could be removed."""
        exists, file = self._nodes.backend.exists, self._nodes.file
        return self.is_empty(place) or any(exists(file(place, name)) for name in FILES)

    def is_empty(self, place: Uri) -> bool:
        """Whether there is a folder with nothing in it, not even a file that is not a memory."""
        backend, folder = self._nodes.backend, self._nodes.folder(place)
        with suppress(FileNotFoundError):
            is_dir = backend.info(folder).is_dir
            return is_dir and not backend.list(folder) and not backend.findings(folder)
        return False

    def marked(self, place: Uri) -> bool:
        return self._nodes.backend.exists(self._nodes.marker(place))

    # ------------------------------------------------------------ repair
    def complete(self, uri: str, ctx: RequestContext) -> None:
        """Give a content without a meta its last one from history, or a new one."""
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
        """Remove what is left of a node without content and meta, and its empty folder."""
        place = self._nodes.reach.require_writable(uri, ctx)
        files = self._nodes.files(place)
        if all(found is None for found in files.values()):
            self._nodes.clear(place)
        elif files[META] is None and files[CONTENT] is None:
            self._nodes.delete_node(uri, ctx)

    def activate(self, uri: str, ctx: RequestContext) -> None:
        """Make a node active that was written whole, except for the last step."""
        place = self._nodes.reach.require_writable(uri, ctx)

        def plan(draft: NodeDraft) -> None:
            stored = self._nodes.load(place)
            if stored is not None and stored.meta.status is NodeStatus.PENDING:
                draft.write(stored.node, stored)

        self._nodes.change(plan, ctx)

    def finish(self, uri: str, ctx: RequestContext) -> None:
        """Write the texts that a pending meta names, from history; else mark it broken."""
        place = self._nodes.reach.require_writable(uri, ctx)

        def plan(draft: NodeDraft) -> None:
            files = self._nodes.files(place)
            meta = _parsed_meta(files)
            if meta is None or meta.status is not NodeStatus.PENDING:
                return
            texts = {name: self._text_named(place, name, meta, files) for name in meta.cids}
            if None in texts.values():
                broken = meta._replace(status=NodeStatus.BROKEN)
                draft.put(self._nodes.file(place, META), broken.text(), files[META])
                return
            for name, text in texts.items():
                if files[name] != text:
                    draft.put(self._nodes.file(place, name), text, files[name])

        self._nodes.change(plan, ctx)
        self.activate(uri, ctx)

    def restore(self, uri: str, ctx: RequestContext) -> None:
        """Give a node the last meta that can be parsed; if there is none, a new one."""
        place = self._nodes.reach.require_writable(uri, ctx)

        def plan(draft: NodeDraft) -> None:
            files = self._nodes.files(place)
            if files[META] is None or _parsed_meta(files) is not None:
                return
            earlier = self._earlier_meta(place)
            if earlier is None:
                self._plan_new(draft, place, files, ctx)
            else:
                draft.put(self._nodes.file(place, META), earlier, files[META])

        self._adopt(self._nodes.change(plan, ctx), uri, ctx)

    def mark(self, uri: str, ctx: RequestContext) -> None:
        """Make the marker in the folder above agree with the status of the node."""
        place = self._nodes.reach.require_writable(uri, ctx)

        def plan(draft: NodeDraft) -> None:
            meta = self.meta(place)
            archived = meta is not None and meta.status is NodeStatus.ARCHIVED
            if archived != self.marked(place):
                draft.mark(place, archived=archived)

        self._nodes.change(plan, ctx)

    def _adopt(self, draft: NodeDraft, uri: str, ctx: RequestContext) -> None:
        """Save the texts of a node that got an earlier meta as its next version."""
        if draft.changes and not draft.written:
            self._nodes.adopt(uri, ctx)

    # ------------------------------------------------------------ what is left
    def _plan_new(self, draft: NodeDraft, place: Uri, files: Files, ctx: RequestContext) -> None:
        """Add a new node of what can be read, archived if the folder above marks it so."""
        node = _new_node(place, files)
        if node is None:
            return
        status = NodeStatus.ARCHIVED if self.marked(place) else NodeStatus.ACTIVE
        with suppress(InvalidValueError):  # the owner file of a session is unreadable
            draft.write(self._nodes.owned(draft, node, ctx), None, status=status, files=files)

    def _text_named(self, place: Uri, name: str, meta: Meta, files: Files) -> str | None:
        """Return the text that a meta names: from its file, or from history."""
        cid, text = meta.cids.get(name), files[name]
        if isinstance(text, str) and cid_of(text) == cid:
            return text
        return text_with_cid(cid, self._nodes.backend.earlier(self._nodes.file(place, name)))

    def _is_of(self, meta: str, place: Uri, files: Files) -> bool:
        """Whether an earlier meta belongs to the current content."""
        known, content = Meta.parse(meta), files[CONTENT]
        if self.marked(place) != (known.status is NodeStatus.ARCHIVED):
            return False
        return isinstance(content, str) and known.cids.get(CONTENT) == cid_of(content)

    def _earlier_meta(self, place: Uri) -> str | None:
        for text in self._nodes.backend.earlier(self._nodes.file(place, META)):
            with suppress(InvalidValueError):
                Meta.parse(text)
                return text
        return None


def _parsed_meta(files: Files) -> Meta | None:
    text = files[META]
    with suppress(InvalidValueError):
        return Meta.parse(text) if isinstance(text, str) else None
    return None


def _new_node(place: Uri, files: Files) -> ContextNode | None:
    """Return a node of what can be read; None if only its author can repair the content."""
    with suppress(InvalidValueError):
        return _node_from(place, files)
    return None


def _node_from(place: Uri, files: Files) -> ContextNode:
    content = files[CONTENT]
    lines, body = edited_content(None if content is None else text_of(content))
    edges: tuple[RelationEdge, ...] = ()
    with suppress(InvalidValueError):
        listed = files[RELATIONS]
        edges = parse_relations(listed, str(place)) if isinstance(listed, str) else ()
    return ContextNode(
        uri=str(place),
        content=body,
        frontmatter=lines or None,
        relations=edges,
        abstract=_short(files, ABSTRACT, MAX_ABSTRACT),
        overview=_short(files, OVERVIEW, MAX_OVERVIEW),
    )


def _short(files: Files, name: str, limit: int) -> str:
    text = files[name]
    return text if isinstance(text, str) and len(text) <= limit else ""
