"""Confirmation: a hit of an index counts only if canonical state still says the same."""

import re
from collections.abc import Iterable

from perdure.context.reader import NodeReader, StoredNode
from perdure.model import RequestContext, SeedHit
from perdure.model.values import JSON
from perdure.patterns import later

_ESCAPED = later(r"^\\(?=\\*## )", re.MULTILINE)
"""Escapes a line of a message that looks like the heading of one."""


class Confirmation:
    """Reads each node once; returns those that are in use, within reach, and unchanged."""

    def __init__(
        self, reader: NodeReader, ctx: RequestContext, projects: tuple[str, ...] | None = None
    ) -> None:
        self._reader = reader
        self.ctx = ctx
        self._projects = projects
        self.nodes: dict[str, StoredNode | None] = {}
        """The nodes that were read, by URI; None for one that is not visible."""

    def confirmed(self, hit: SeedHit, cid: JSON = None) -> StoredNode | None:
        """Return the node of a hit if it still has this content and this text; else None.

        `cid` is the CID in the payload of the hit, if the caller has read it.
        """
        stored = self.nodes[hit.uri] if hit.uri in self.nodes else self.stored(hit.uri)
        if stored is None or stored.cid != (cid or hit.payload.get("cid")):
            return None
        node = stored.node
        content = node.content if node.content.strip() else node.frontmatter or ""
        says = hit.text in content or hit.text in _ESCAPED.sub("", content)
        return stored if says else None

    def is_of(self, uri: str, project: str) -> bool:
        stored = self.nodes.get(uri)
        return stored is not None and stored.node.project == project != ""

    def stored(self, uri: str) -> StoredNode | None:
        """Return a node in use that the caller reaches; None if there is none."""
        if uri not in self.nodes:
            self.read([uri])
        return self.nodes[uri]

    def read(self, uris: Iterable[str]) -> None:
        """Read several nodes at once, which is faster than one `stored` after another."""
        unknown = [uri for uri in dict.fromkeys(uris) if uri not in self.nodes]
        if not unknown:
            return
        for uri, stored in self._reader.visible_nodes(unknown, self.ctx).items():
            is_within = stored is not None and (
                self._projects is None or stored.node.project in self._projects
            )
            self.nodes[uri] = stored if is_within else None
