"""Who searches a memory that is to be read, and nothing else."""

from contextlib import suppress
from itertools import islice

from perdure.app.embedding import embedder_for
from perdure.app.opening import ACCOUNT
from perdure.app.reading import Reading
from perdure.context.reading import NodeReader
from perdure.dataclass import dataclass
from perdure.engine.recall.recalling import Recaller
from perdure.engine.recall.result import Sources
from perdure.errors import DamageError, PerdureError, StorageError
from perdure.index.account.schema import FORMAT, LEXICAL
from perdure.index.contract import Embedder
from perdure.index.memo import embedder_id
from perdure.index.stores.sqlite import SqliteIndex
from perdure.model import Uri
from perdure.sqlite import ReadOnlyFile


@dataclass(frozen=True, slots=True)
class Searcher:
    index: SqliteIndex
    recaller: Recaller
    reason: str = ""
    """Why it may not know of all."""

    @property
    def is_undisturbed(self) -> bool:
        """Whether all that was found was as of one moment."""
        return self.index.is_undisturbed(ACCOUNT)


def open_searcher(reading: Reading) -> Searcher:
    """Return who searches: the index of the embedder, else the furthest one, else a small one.

    Where no index is finished, one of a few nodes is made in memory; if there are more, of none.
    """
    embedder, reason = _embedder(reading)
    reader = NodeReader(reading.backend)
    name, index = _kept(reading, embedder)
    if index is None:
        index, reason = _made(reader)
    if name != _name(embedder):
        embedder = None
    sources = Sources(reader, index, embedder, why_words=None)
    return Searcher(index, Recaller(sources), reason)


def _made(reader: NodeReader) -> tuple[SqliteIndex, str]:
    """Return an index in memory, if there is little to index, and else an empty one with why."""
    from perdure.engine.indexing import FEW, Indexer

    index = SqliteIndex.in_memory()
    places = list(islice(reader.walk(Uri(ACCOUNT)), FEW + 1))
    if len(places) > FEW:
        return index, "there is no index yet. Fix: run `perdure index rebuild`."
    index.replace(ACCOUNT, Indexer(reader, None).make(places).records, cursor=1)
    return index, ""


def _kept(reading: Reading, embedder: Embedder | None) -> tuple[str, SqliteIndex | None]:
    """Return the index to ask, with its name; the others are let go."""
    found: list[tuple[bool, int, str, SqliteIndex]] = []
    for path in reading.databases():
        index, name = SqliteIndex(str(path.parent), kind=ReadOnlyFile), path.parent.name
        with suppress(DamageError, StorageError):  # what is damaged answers nothing
            found.append((name == _name(embedder), index.cursor(ACCOUNT), name, index))
    finished = sorted(each for each in found if each[1])
    for *_, index in finished[:-1]:
        index.close()
    return finished[-1][2:] if finished else ("", None)


def _name(embedder: Embedder | None) -> str:
    return f"{LEXICAL if embedder is None else embedder_id(embedder)}-{FORMAT}"


def _embedder(reading: Reading) -> tuple[Embedder | None, str]:
    """Return who makes vectors; without, words are compared, and it is said why."""
    try:
        return embedder_for(reading.config), ""
    except PerdureError as error:
        return None, f"only words were compared: {error}"
