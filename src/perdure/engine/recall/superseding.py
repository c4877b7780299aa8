"""What superseded a statement: along the edges, as canonical state has them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from perdure.engine.recall.candidates import Candidate
from perdure.engine.recall.result import Hit
from perdure.model import SUPERSEDED_BY

_MOST = 50
"""So many nodes are followed from one; who superseded itself more often is not told of all."""


class Confirming(Protocol):
    """Knows nodes that are in use and within the caller's reach, and no others."""

    def hits(self, candidates: Iterable[Candidate]) -> Iterator[Hit]: ...

    def related(self, uri: str, relation_type: str) -> list[str]: ...


class Superseding:
    """Finds what superseded a hit. Where an edge leads out of reach or nowhere, it ends there."""

    def __init__(
        self, confirming: Confirming, passage: Callable[[str, str], Candidate | None]
    ) -> None:
        self._confirming = confirming
        self._passage = passage
        """Returns the passage of a node that is most like a text."""

    def of(self, hit: Hit) -> list[Hit]:
        """Return what superseded a hit, what superseded that, and so on; the last comes first."""
        found = (self._passage(uri, hit.snippet) for uri in reversed(self._chain(hit.uri)))
        return list(self._confirming.hits(filter(None, found)))

    def _chain(self, uri: str) -> list[str]:
        chain = [uri]
        for each in chain:  # which grows meanwhile
            for target in self._confirming.related(each, SUPERSEDED_BY):
                if target not in chain and len(chain) <= _MOST:
                    chain.append(target)
        return chain[1:]
