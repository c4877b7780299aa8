"""Which nodes may lead to a place: by name, so that few have to be looked at.

What is answered here is a guess that never leaves anybody out. Whoever asks reads the nodes, and
sees for itself.
"""

from collections.abc import Iterable
from typing import Protocol

from perdure.context import links
from perdure.context.reading import NodeReader
from perdure.errors import BrokenNodeError
from perdure.model import ContextNode, Uri


class Backlinks(Protocol):
    def leading_to(self, place: Uri) -> Iterable[Uri]:
        """Return all nodes of the account that may lead to a place, and perhaps others."""


class ScannedLinks:
    """Reads every node of the account. Right everywhere, and slow where there are many."""

    def __init__(self, reader: NodeReader) -> None:
        self._reader = reader

    def leading_to(self, place: Uri) -> list[Uri]:
        name = links.name_of(place)
        return [
            other for other in self._reader.walk(Uri(place.account)) if name in self._names(other)
        ]

    def _names(self, place: Uri) -> set[str]:
        try:
            stored = self._reader.load(place)
        except BrokenNodeError:
            return set()
        return set() if stored is None else names_in(stored.node)


def names_in(node: ContextNode) -> set[str]:
    """Return the names that the links and edges of a node say."""
    return links.names_of_edges(node.relations) | set(
        map(links.name_in, links.targets(node.content))
    )
