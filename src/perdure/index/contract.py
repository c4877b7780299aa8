"""What an index and an embedder promise."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from perdure.model import IndexRecord, SeedHit
from perdure.model.values import JSON

Answer = TypeVar("Answer")
Filters = Mapping[str, JSON]
"""What a record must be filed under. Each value is a scalar, or a list of which one must be it.

`account_id` and `owner_space` must be among them; so that nobody finds what is not theirs, there is
no search without. A name that the index does not know is refused: a filter is never left out.
"""


class VectorIndex(Protocol):
    """Texts and vectors of nodes, to be searched. All of it can be thrown away and made again.

    A search tells of nothing that the filters leave out, be it by a hit or by the number of hits:
    the `top_k` best of what they let through are found, and not what is left of others. Equal
    scores are in the order of their ids. Each verb that changes something does all of it or
    nothing, also if the power goes.
    """

    def upsert(self, records: Sequence[IndexRecord]) -> None:
        """Add records, or put them in place of those with the same ids. Twice is as once."""

    def delete(self, ids: Sequence[str]) -> None:
        """Remove records; ids that are not there are none of its concern."""

    def search_by_vector(
        self, query_vector: Sequence[float], filters: Filters, top_k: int
    ) -> list[SeedHit]:
        """Return the records whose vectors are nearest by cosine, of whatever level, best first.

        Records without a vector, or with one of another embedder's length, are not found. An index
        of texts alone need not have it: `NotImplementedError`.
        """
        raise NotImplementedError("this index holds no vectors. Fix: search by text.")

    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> list[SeedHit]:
        """Return the records that have at least one of the words, by BM25, best first.

        Words are compared by their stems, without regard to case and accents. No word must be in a
        record for another one to count; nothing in a word is syntax. A word in the context of a
        record counts `context_weight` times as much as one in its text. How rare a word is, and how
        long a text usually, is told from all records of the account of the same level: passages
        are compared with passages, abstracts with abstracts.
        """

    def search_children(
        self, parent_uri: str, query_vector: Sequence[float], filters: Filters, top_k: int
    ) -> list[SeedHit]:
        """As `search_by_vector`: summaries directly below a folder, or passages of a node."""

    def delete_account_data(self, account_id: str) -> int:
        """Remove every record of an account; return how many there were."""

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        """Remove and count records of `user:{id}` or `agent:{id}`; else `InvalidValueError`."""


@runtime_checkable
class KeptIndex(VectorIndex, Protocol):
    """An index that is kept in step with nodes, and can prove that it is.

    One that a package offers in `perdure.indexes` is opened with the path of a folder, and keeps
    everything there: an index is removed by removing its folder.
    """

    def close(self) -> None:
        """Let go of what it holds open."""

    def replace(
        self,
        account_id: str,
        nodes: Mapping[str, Sequence[IndexRecord]],
        *,
        cursor: int | None = None,
        expect: int | None = None,
        unlogged: Collection[str] = (),
    ) -> None:
        """Let these be all the records of each URI, none if it is gone; and move the cursor, if so.

        Records, texts, vectors and cursor change together or not at all. If the cursor is not the
        one that is expected: `ConcurrentModificationError`, and nothing is changed. `unlogged`
        names those of the URIs whose records are not what the log says up to the cursor.
        """

    def cursor(self, account_id: str) -> int:
        """Return the last cursor that was told; 0 if none was."""

    def at_once(self, account_id: str, question: Callable[[], Answer]) -> Answer:
        """Return what `question` returns; all that it asks about an account is as of one moment.

        It only asks, and may be called again if the account's data was replaced meanwhile.
        """

    def owner_spaces(self, account_id: str) -> frozenset[str]:
        """Return in whose spaces the account has records."""

    def ceiling(self, account_id: str, words: Sequence[str]) -> float:
        """Return the sum of how rare the words are in the passages of an account.

        About so much `search_by_text` gives to a passage of usual length that has all of them.
        """

    def match(self, words: Sequence[str], filters: Filters, top_k: int) -> dict[str, float]:
        """Return the URIs of what `search_by_text` would, each with its best score: it is quick."""

    def look(self, ids: Sequence[str], filters: Filters) -> list[SeedHit]:
        """Return records with these ids that the filters let through, by id, as hits of score 0."""

    def noted(
        self, filters: Filters, top_k: int, names: Collection[str] | None = None
    ) -> list[SeedHit]:
        """Return records whose payload has `noted`, the newest first by `updated_at`, score 0.

        With `names`, only those whose payload has one of them in its `names`.
        """

    def leading_to(self, account_id: str, names: Collection[str]) -> list[str]:
        """Return the URIs of records whose payload has one of the names in its `links`, sorted."""

    def read(self, account_id: str, ids: Sequence[str]) -> dict[str, IndexRecord]:
        """Return records by their ids, with vectors as kept; those that are absent are left out."""

    def stamps(self, account_id: str) -> dict[str, str]:
        """Return for each URI the stamp of its records, as `stamp` makes it of what was put."""

    def unlogged(self, account_id: str) -> frozenset[str] | None:
        """Return the URIs that were last put as not what the log says.

        None if nobody can tell: to forget an owner may mean to forget that too, until the account
        is deleted.
        """

    def check(self, account_id: str) -> list[str]:
        """Look at every byte; return the URIs whose records are not what their stamp says.

        `DamageError` if the file can't be read, or its texts can't be searched any more.
        """


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors. The same text always has the same vector."""

    @property
    def parameters(self) -> Mapping[str, JSON]:
        """All that a vector depends on besides the text: model, digest, dimension and the like."""

    @property
    def dimension(self) -> int: ...

    def embed_texts(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector of unit length for each text, in their order, all of one dimension."""
