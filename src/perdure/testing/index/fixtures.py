"""The base class, records and searches that all tests of an index use."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from perdure.index.contract import Filters, NodeIndex, VectorIndex
from perdure.model import IndexRecord, Level, SeedHit, Uri
from perdure.model.values import JSON
from perdure.testing.suite import Suite

SURVIVES_REOPENING = "survives_reopening"
"""Opening the same place again finds the same records."""
CONCURRENT_PROCESSES = "concurrent_processes"
"""Several processes can open the same place at the same time."""

ACCOUNT = "acme"
EAST, NORTH, WEST = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)
EVERYONE: dict[str, JSON] = {
    "account_id": ACCOUNT,
    "owner_space": ["user:ana", "user:bob", "agent:ana", "account:acme"],
}
"""Admits all that a test puts into the account."""


class IndexBase(Suite):
    hooks = frozenset({"promises", "open_index"})
    known_promises = frozenset({SURVIVES_REOPENING, CONCURRENT_PROCESSES})

    @staticmethod
    def open_index(place: Path) -> NodeIndex:
        """Open the index under test, in the empty folder `place` or in something of its own.

        If that is promised, the same place opened again, also in another process, is the same
        index. Other processes get this function by its name.
        """
        raise NotImplementedError("define how to open the index under test")

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        return tmp_path

    @pytest.fixture
    def index(self, place: Path) -> Iterator[NodeIndex]:
        with closing(self.open_index(place)) as index:
            yield index


def uri_of(slug: str = "tabs", user: str = "ana", account: str = ACCOUNT) -> str:
    return str(Uri(account, ("users", user, "memories", "preference", slug)))


def record(
    id_: str,
    uri: str | None = None,
    text: str = "a text",
    level: int = 2,
    **more: Any,  # noqa: ANN401 - the fields' own types
) -> IndexRecord:
    """Return a record of Ana; `filters` are added to the required ones."""
    place = Uri.parse(uri or uri_of())
    needed = {"account_id": place.account, "owner_space": place.owner_space}
    filters = needed | more.pop("filters", {})
    vector = more.pop("vector", EAST)
    return IndexRecord(
        id=id_,
        uri=str(place),
        level=Level(level),
        text=text,
        vector=vector,
        filters=filters,
        **more,
    )


def ids(hits: Iterable[SeedHit]) -> list[str]:
    return [hit.id for hit in hits]


def near(index: VectorIndex, top_k: int = 100, **filters: JSON) -> list[str]:
    """Return the ids of the records nearest to the east."""
    return ids(index.search_by_vector(EAST, EVERYONE | filters, top_k))


def matching(index: VectorIndex, *words: str, top_k: int = 100, **filters: JSON) -> list[str]:
    """Return the ids of the records with one of the words."""
    return ids(index.search_by_text(words, EVERYONE | filters, top_k))


def below(index: VectorIndex, parent: str, top_k: int = 100, **filters: JSON) -> list[str]:
    return ids(index.search_children(parent, EAST, EVERYONE | filters, top_k))


def found_by_any(index: VectorIndex, word: str, filters: Filters, top_k: int) -> list[list[str]]:
    """Return what each search with filters finds: by vector, by text, and below a node."""
    return [
        ids(index.search_by_vector(EAST, filters, top_k)),
        ids(index.search_by_text([word], filters, top_k)),
        ids(index.search_children(uri_of(), EAST, filters, top_k)),
    ]


def put(index: VectorIndex, *ids_: str, **more: Any) -> None:  # noqa: ANN401 - the fields' own types
    """Put records that differ only in their ids."""
    index.upsert([record(id_, **more) for id_ in ids_])


def texts_of(index: NodeIndex, ids_: Sequence[str]) -> dict[str, str]:
    return {id_: each.text for id_, each in index.read(ACCOUNT, ids_).items()}
