"""Vectors that were made before: the same text is never embedded twice by the same model.

Each vector is the result of a derived artifact: the operation `embed`, all that the embedder
depends on, and the text. Every owner has a store of their own, so that what is forgotten of one is
forgotten wholly, and nobody can find out from it what others wrote.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, cast

from perdure.artifacts import Derived, Literal, canonical
from perdure.artifacts.artifact import sid_of
from perdure.errors import DamageError, EmbeddingError, PerdureError, StaleIndexError
from perdure.files import Quarantine
from perdure.index.contract import Embedder
from perdure.index.vectors import quantised
from perdure.model.uri import segment_of
from perdure.model.values import plain

if TYPE_CHECKING:
    from perdure.artifacts import ArtifactStore

_OPERATION = ("embed", "1")
_BATCH = 256
_PLAIN = "a text that nobody could object to"
_MOST_OPEN = 8


class VectorMemo:
    """Gives texts their vectors, as whole numbers of the same direction."""

    def __init__(self, folder: Path, embedder: Embedder, way: Quarantine | None = None) -> None:
        self._folder = folder
        self._way = way or Quarantine(folder)
        self._open: OrderedDict[Path, ArtifactStore] = OrderedDict()
        self._embedder = embedder
        self._parameters = _parameters(embedder)
        self.made = 0
        """How many were embedded here, because nobody had before."""

    def vectors(self, account_id: str, owner_space: str, texts: Sequence[str]) -> list[bytes]:
        """Return the vector of each text, made and kept if new; a damaged memo is made again."""
        folder = memo_folder(self._folder, account_id, owner_space)
        try:
            return self._known_or_made(folder, texts)
        except (DamageError, StaleIndexError):
            self._discard(folder)
            return self._known_or_made(folder, texts)

    def keep(self, account_id: str, owner_space: str, made: Mapping[str, bytes]) -> None:
        """Keep vectors that were made before, by this embedder, and are somewhere else too."""
        store = self._store(memo_folder(self._folder, account_id, owner_space))
        pairs = list(made.items())
        for start in range(0, len(pairs), _BATCH):
            some = pairs[start : start + _BATCH]
            store.remember((self._artifact(text), vector) for text, vector in some)

    def _known_or_made(self, folder: Path, texts: Sequence[str]) -> list[bytes]:
        wanted, store = list(dict.fromkeys(texts)), self._store(folder)
        found: dict[str, bytes] = {}
        for start in range(0, len(wanted), _BATCH):
            found |= self._batch(store, wanted[start : start + _BATCH])
        return [found[text] for text in texts]

    def _discard(self, folder: Path) -> None:
        store = self._open.pop(folder, None)
        if store is not None:
            store.close()
        _remove(folder)

    def close(self) -> None:
        """Let go of what is open; it is opened again when it is needed."""
        while self._open:
            self._open.popitem()[1].close()

    def answers(self) -> bool:
        try:
            self.demand()
        except PerdureError:
            return False
        return True

    def demand(self) -> None:
        """Embed something, and raise what the embedder raises."""
        embed(self._embedder, [_PLAIN])

    def _batch(self, store: "ArtifactStore", texts: Sequence[str]) -> dict[str, bytes]:
        artifacts = [self._artifact(text) for text in texts]
        known = store.remembered([sid_of(each) for each in artifacts])
        missing = [at for at, vector in enumerate(known) if vector is None]
        if missing:
            made = embed(self._embedder, [texts[at] for at in missing])
            vectors = [quantised(vector) for vector in made]
            pairs = [artifacts[at] for at in missing]
            store.remember(zip(pairs, vectors, strict=True))
            self.made += len(missing)
            for at, vector in zip(missing, vectors, strict=True):
                known[at] = vector
        return {
            text: vector for text, vector in zip(texts, known, strict=True) if vector is not None
        }

    def _artifact(self, text: str) -> Derived:
        return Derived(*_OPERATION, (Literal(text.encode()),), self._parameters)

    def _store(self, folder: Path) -> "ArtifactStore":
        """Return the store of an owner; the last few stay open. One that was removed is new."""
        from perdure.artifacts import ArtifactStore  # noqa: PLC0415 - who makes vectors pays

        store = self._open.pop(folder, None)
        if store is not None and not folder.is_dir():
            store.close()
            store = None
        self._way.clear_folder(folder)
        self._open[folder] = store = store or ArtifactStore.open(folder)
        while len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)[1].close()
        return store


def embed(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    """Embed texts; whatever an embedder raises that is none of our errors is `EmbeddingError`."""
    try:
        return embedder.embed_texts(texts)
    except PerdureError:
        raise
    except Exception as error:  # somebody else's code, whatever it raises
        raise EmbeddingError(
            f"the embedder failed: {type(error).__name__}: {error}. Fix: mend it, or use another."
        ) from error


class MemoData:
    """What a memo holds of tenants, so that it can be forgotten."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def delete_account_data(self, account_id: str) -> int:
        return _remove(self._folder / segment_of(account_id))

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        return _remove(memo_folder(self._folder, account_id, owner_space))


def memo_folder(folder: Path, account_id: str, owner_space: str) -> Path:
    return folder / segment_of(account_id) / segment_of(owner_space)


def embedder_id(embedder: Embedder) -> str:
    """Return a name that no other embedder has: what it is called, and a digest of what it is."""
    digest = sha256(canonical.encode(_parameters(embedder))).hexdigest()[:16]
    return f"{segment_of(str(embedder.parameters.get('model', 'model')))}-{digest}"


def _parameters(embedder: Embedder) -> Mapping[str, canonical.Value]:
    return cast("Mapping[str, canonical.Value]", plain(dict(embedder.parameters)))


def _remove(folder: Path) -> int:
    if not folder.is_dir():
        return 0
    from shutil import rmtree  # noqa: PLC0415 - 2 ms that who only reads needs not

    rmtree(folder)
    return 1
