"""What an index should hold of some places, and what became of it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from perdure.context.parts import Files
from perdure.errors import PerdureError
from perdure.model import IndexRecord, Uri

BATCH = 200
"""How many nodes are read together."""

Records = dict[str, list[IndexRecord]]


@dataclass(slots=True)
class Made:
    """What an index should hold of some places, and what is wrong with some of them."""

    records: Records = field(default_factory=dict)
    failed: dict[str, PerdureError] = field(default_factory=dict)
    """Nodes that can't be read, and those that got no vectors: these are found by words only."""
    read: dict[Uri, Files] = field(default_factory=dict)
    """The files of nodes that decided what is made of them."""
    outage: PerdureError | None = None
    """Why no text at all can be embedded now, if it is so."""


class Caught(NamedTuple):
    """What catching up did."""

    position: int
    """Up to where the index is right; 0 if it is not finished."""
    places: frozenset[Uri] = frozenset()
    """Those whose records were made."""
    failed: Mapping[str, PerdureError] = MappingProxyType({})


def batched(places: Iterable[Uri], size: int) -> Iterator[list[Uri]]:
    remaining = iter(places)
    while batch := list(islice(remaining, size)):
        yield batch
