"""The contracts of an index and of an embedder, and checks of what is searched and embedded."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from perdure.errors import InvalidValueError
from perdure.model import IndexRecord, SeedHit
from perdure.model.values import JSON, encodable, shown

Answer = TypeVar("Answer")
_MAX_WEIGHT = 1e6
Filters = Mapping[str, JSON]
"""What a record must match. Each value is a scalar, or a list of which one must match.

`account_id` and `owner_space` are required, so that a search can't reach other tenants. A filter
that the index does not know is refused, never ignored.
"""


class VectorIndex(Protocol):
    """Texts and vectors of nodes. All of it is derived, and can be built again.

    A search returns the `top_k` best of the records that its filters admit; records that they
    exclude have no influence on the hits or their number. Equal scores are ordered by id. Every
    method that changes something is atomic, also if the power fails.
    """

    def upsert(self, records: Sequence[IndexRecord]) -> None:
        """Add records, replacing those with the same ids. Idempotent."""

    def delete(self, ids: Sequence[str]) -> None:
        """Remove records; absent ids are ignored."""

    def search_by_vector(
        self, query_vector: Sequence[float], filters: Filters, top_k: int
    ) -> list[SeedHit]:
        """Return the records whose vectors are nearest by cosine, of any level, best first.

        Records without a vector, or with one of another dimension, are not found. An index without
        vectors raises `NotImplementedError`.
        """
        raise NotImplementedError("this index has no vectors. Fix: search by text.")

    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> list[SeedHit]:
        """Return the records that contain at least one of the words, by BM25, best first.

        Words are compared by stem, ignoring case and accents; no character in a word is syntax. A
        word in the context of a record counts `context_weight` times as much as one in its text.
        Word frequencies and the average length are those of all records of the account with the
        same level: passages are compared with passages, abstracts with abstracts.
        """

    def search_children(
        self, parent_uri: str, query_vector: Sequence[float], filters: Filters, top_k: int
    ) -> list[SeedHit]:
        """Like `search_by_vector`, for summaries directly below a folder, or passages of a node."""

    def delete_account_data(self, account_id: str) -> int:
        """Remove every record of an account; return their number."""

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        """Remove and count the records of `user:{id}` or `agent:{id}`; else `InvalidValueError`."""


@runtime_checkable
class NodeIndex(VectorIndex, Protocol):
    """A `VectorIndex` that follows the log of a memory, and can prove that it matches the nodes.

    A package that offers one in `perdure.indexes` is given the path of a folder, and stores
    everything there: an index is removed by removing its folder.
    """

    def close(self) -> None:
        """Release open files."""

    def replace(
        self,
        account_id: str,
        nodes: Mapping[str, Sequence[IndexRecord]],
        *,
        cursor: int | None = None,
        expect: int | None = None,
        unlogged: Collection[str] = (),
    ) -> None:
        """Replace all records of each URI, and set the cursor, if given, in one transaction.

        If the cursor is not `expect`, raise `ConcurrentModificationError` and change nothing.
        `unlogged` names those URIs whose records differ from the log up to the cursor.
        """

    def cursor(self, account_id: str) -> int:
        """Return the last cursor that was set; 0 if none was."""

    def read_snapshot(self, account_id: str, question: Callable[[], Answer]) -> Answer:
        """Return what `question` returns; all its reads of an account are of one snapshot.

        It must not write, and may be called again if the account's file was replaced meanwhile.
        """

    def owner_spaces(self, account_id: str) -> frozenset[str]:
        """Return the owner spaces that have records in the account."""

    def ceiling(self, account_id: str, words: Sequence[str]) -> float:
        """Return the sum of the inverse document frequencies of words in an account's passages.

        It is about the score by `search_by_text` of an average passage that contains all of them.
        """

    def match(self, words: Sequence[str], filters: Filters, top_k: int) -> dict[str, float]:
        """Return the URIs of the hits of `search_by_text`, each with its best score; faster."""

    def hits_by_id(self, ids: Sequence[str], filters: Filters) -> list[SeedHit]:
        """Return the records with these ids that the filters admit, by id, as hits of score 0."""

    def briefing_hits(
        self, filters: Filters, top_k: int, names: Collection[str] | None = None
    ) -> list[SeedHit]:
        """Return the records for briefings: those with `noted` in the payload, of score 0.

        The newest by `updated_at` are first. With `names`, only those with one of them in the
        payload's `names`.
        """

    def uris_linking_to(self, account_id: str, names: Collection[str]) -> list[str]:
        """Return the URIs of records with one of the names in the payload's `links`, sorted."""

    def read(self, account_id: str, ids: Sequence[str]) -> dict[str, IndexRecord]:
        """Return records by id, with quantised vectors; absent ones are omitted."""

    def stamps(self, account_id: str) -> dict[str, str]:
        """Return for each URI the stamp of its records, as `perdure.index.filters.stamp`."""

    def unlogged(self, account_id: str) -> frozenset[str] | None:
        """Return the URIs that `replace` was last given as `unlogged`.

        None if that is no longer known: deleting an owner may delete it, until the account is
        deleted.
        """

    def check(self, account_id: str) -> list[str]:
        """Read every byte; return the URIs whose records do not match their stamp.

        `DamageError` if the file can't be read, or its texts can't be searched.
        """


@runtime_checkable
class Embedder(Protocol):
    """Computes vectors of texts. The same text always has the same vector."""

    @property
    def parameters(self) -> Mapping[str, JSON]:
        """All that a vector depends on besides the text, such as model, digest and dimension."""

    @property
    def dimension(self) -> int: ...

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector of unit length for each text, in their order, all of one dimension."""


def check_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts to embed; `InvalidValueError` for a single text or a lone surrogate."""
    if isinstance(texts, str):
        raise InvalidValueError(f"{shown(texts)} is one text. Fix: give a list of texts.")
    return [encodable(text, "text to embed") for text in texts]


def check_words(words: Sequence[str]) -> list[str]:
    """Return the words to search for; `InvalidValueError` for a text in place of a list."""
    if isinstance(words, str):
        raise InvalidValueError(f"{shown(words)} is one text. Fix: give a list of its words.")
    return [
        word if type(word) is str and word.isascii() else encodable(word, "word to search for")
        for word in words
    ]


def check_weight(weight: object) -> float:
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    number = float(weight) if is_number else math.nan  # type: ignore[arg-type] # it is a number
    if 0 <= number <= _MAX_WEIGHT:
        return number
    raise InvalidValueError(
        f"the weight of the context is {shown(weight)}. Fix: give a number from 0 to 1,000,000."
    )
