"""Confirming: what an index found counts only if canonical state says so too."""

import re

from perdure.context.reading import NodeReader, Stored
from perdure.errors import AccessDeniedError, BrokenNodeError, NodeNotFoundError
from perdure.model import RequestContext, SeedHit
from perdure.patterns import later

_ESCAPED = later(r"^\\(?=\\*## )", re.MULTILINE)
"""What stands before a line of a message that looks like a heading of one."""


class Confirming:
    """Lets through what canonical state confirms: in use, within reach, and still the same.

    Each node is read once.
    """

    def __init__(
        self, reader: NodeReader, ctx: RequestContext, projects: tuple[str, ...] | None = None
    ) -> None:
        self._reader = reader
        self._ctx = ctx
        self._projects = projects
        self.known: dict[str, Stored | None] = {}

    def confirmed(self, hit: SeedHit) -> Stored | None:
        """Return the node of what an index found, if it still says so; else None."""
        stored = self.stored(hit.uri)
        if stored is None or str(stored.cid) != hit.payload.get("cid"):
            return None
        node = stored.node
        content = node.content if node.content.strip() else node.frontmatter or ""
        return stored if _says(content, hit.text) else None

    def is_of(self, uri: str, project: str) -> bool:
        stored = self.known.get(uri)
        return stored is not None and stored.node.project == project != ""

    def stored(self, uri: str) -> Stored | None:
        """Return a node in use that the caller reaches; None if there is none."""
        if uri not in self.known:
            self.known[uri] = self._look(uri)
        return self.known[uri]

    def _look(self, uri: str) -> Stored | None:
        try:
            stored = self._reader.active(self._reader.reach.seen(uri, self._ctx))
            self._reader.reach.seen(uri, self._ctx)  # a session may be somebody's by now
        except (AccessDeniedError, BrokenNodeError, NodeNotFoundError):
            return None
        is_within = self._projects is None or stored.node.project in self._projects
        return stored if is_within else None


def _says(content: str, snippet: str) -> bool:
    return snippet in content or snippet in _ESCAPED.sub("", content)
