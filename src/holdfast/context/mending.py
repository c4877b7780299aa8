"""Nodes made whole again, from what is left of them and from history."""

from contextlib import suppress
from dataclasses import replace

from holdfast.context import frontmatter
from holdfast.context.draft import Draft
from holdfast.context.files import (
    ABSTRACT,
    CONTENT,
    META,
    OVERVIEW,
    PARTS,
    RELATIONS,
    Meta,
    parse_relations,
)
from holdfast.context.nodes import Nodes
from holdfast.context.parts import Files, cid_of
from holdfast.errors import InvalidValueError
from holdfast.model import ContextNode, NodeStatus, RelationEdge, RequestContext, Uri
from holdfast.model.values import MAX_ABSTRACT, MAX_OVERVIEW


class Mending:
    """What repair does to one node. Each verb looks again first, so it may be called twice."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    # ------------------------------------------------------------ looking
    def has(self, place: Uri, name: str) -> bool:
        return self._nodes.look(place, name) is not None

    def meta(self, place: Uri) -> Meta | None:
        """Return the meta; None if there is none that can be understood."""
        said = self._nodes.look(place, META)
        try:
            return Meta.parse(said) if isinstance(said, str) else None
        except InvalidValueError:
            return None

    def marked(self, place: Uri) -> bool:
        """Whether the folder above says that a node is put away."""
        return self._nodes.backend.exists(self._nodes.marker(place))

    # ------------------------------------------------------------ mending
    def complete(self, uri: str, ctx: RequestContext) -> None:
        """Make a node of a content that has no meta."""
        place = self._nodes.reach.changed(uri, ctx)

        def plan(draft: Draft) -> None:
            if not self.has(place, META):
                self._plan_new(draft, place, ctx)

        self._nodes.write(plan, ctx)

    def remove(self, uri: str, ctx: RequestContext) -> None:
        """Remove the parts of a node that has neither content nor meta."""
        place = self._nodes.reach.changed(uri, ctx)
        if not self.has(place, META) and not self.has(place, CONTENT):
            self._nodes.delete_node(uri, ctx)

    def activate(self, uri: str, ctx: RequestContext) -> None:
        """Let a node be seen that was written whole, but for its last step."""
        place = self._nodes.reach.changed(uri, ctx)

        def plan(draft: Draft) -> None:
            stored = self._nodes.load(place)
            if stored is not None and stored.meta.status is NodeStatus.PENDING:
                draft.write(stored.node, stored)

        self._nodes.write(plan, ctx)

    def finish(self, uri: str, ctx: RequestContext) -> None:
        """Put the parts in place that a meta names, from history; else set the node aside."""
        place = self._nodes.reach.changed(uri, ctx)

        def plan(draft: Draft) -> None:
            meta = self.meta(place)
            if meta is None or meta.status is not NodeStatus.PENDING:
                return
            files = self._nodes.files(place)
            parts = {name: self._named(place, name, meta, files) for name in PARTS}
            if None in parts.values():
                broken = replace(meta, status=NodeStatus.BROKEN)
                draft.put(self._nodes.file(place, META), broken.text(), files[META])
                return
            for name, text in parts.items():
                if files[name] != text:
                    draft.put(self._nodes.file(place, name), text, files[name])

        self._nodes.change(plan, ctx)
        self.activate(uri, ctx)

    def restore(self, uri: str, ctx: RequestContext) -> None:
        """Give a node the last meta that could be understood; without one, a new one."""
        place = self._nodes.reach.changed(uri, ctx)

        def plan(draft: Draft) -> None:
            if self.meta(place) is not None or not self.has(place, META):
                return
            earlier = self._earlier_meta(place)
            if earlier is None:
                self._plan_new(draft, place, ctx)
            else:
                locator = self._nodes.file(place, META)
                draft.put(locator, earlier, self._nodes.look(place, META))

        restored = not self._nodes.write(plan, ctx).written
        if restored and not self._nodes.adopt(uri, ctx):
            self._nodes.register(uri, ctx)

    def mark(self, uri: str, ctx: RequestContext) -> None:
        """Let the folder above say what the node says."""
        place = self._nodes.reach.changed(uri, ctx)

        def plan(draft: Draft) -> None:
            meta = self.meta(place)
            archived = meta is not None and meta.status is NodeStatus.ARCHIVED
            if archived != self.marked(place):
                draft.mark(place, archived=archived)

        self._nodes.change(plan, ctx)

    # ------------------------------------------------------------ what is left
    def _plan_new(self, draft: Draft, place: Uri, ctx: RequestContext) -> None:
        """Let the content, and what else can be read, be a new node."""
        files = self._nodes.files(place)
        try:
            lines, body = _content(files)
            node = ContextNode(
                uri=str(place),
                content=body,
                frontmatter=lines,
                relations=_edges(files, str(place)),
                abstract=_short(files, ABSTRACT, MAX_ABSTRACT),
                overview=_short(files, OVERVIEW, MAX_OVERVIEW),
            )
            draft.write(self._nodes.owned(draft, node, ctx), None, files=files)
        except InvalidValueError:  # only its author can say what it should be
            return

    def _named(self, place: Uri, name: str, meta: Meta, files: Files) -> str | None:
        """Return the part that a meta names: from its file, or from history."""
        cid, said = meta.parts.get(name), files[name]
        if isinstance(said, str) and cid_of(said) == cid:
            return said
        earlier = self._nodes.backend.earlier(self._nodes.file(place, name))
        return next((text for text in earlier if cid_of(text) == cid), None)

    def _earlier_meta(self, place: Uri) -> str | None:
        for text in self._nodes.backend.earlier(self._nodes.file(place, META)):
            with suppress(InvalidValueError):
                Meta.parse(text)
                return text
        return None


def _content(files: Files) -> tuple[str | None, str]:
    said = files[CONTENT]
    if not isinstance(said, str):
        raise InvalidValueError("there is no content. Fix: write one.")
    lines, body = frontmatter.split(said)
    if lines is not None:
        frontmatter.check(lines)
    return lines, body


def _edges(files: Files, uri: str) -> tuple[RelationEdge, ...]:
    said = files[RELATIONS]
    with suppress(InvalidValueError):
        return parse_relations(said, uri) if isinstance(said, str) else ()
    return ()


def _short(files: Files, name: str, limit: int) -> str:
    said = files[name]
    return said if isinstance(said, str) and len(said) <= limit else ""
