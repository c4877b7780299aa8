"""Search the memories of a project for the process seam. Nothing is written."""

from collections.abc import Iterable
from contextlib import closing, suppress
from itertools import islice

from perdure.app.memory_reader import MemoryReader
from perdure.app.open import ACCOUNT
from perdure.app.providers import embedder_for
from perdure.context.reader import NodeReader
from perdure.engine.recall.answer import recall
from perdure.engine.recall.question import Question
from perdure.engine.recall.result import Hit, HitSection, Sources, pack, render_hit, tokens_in
from perdure.errors import DamageError, PerdureError, StorageError
from perdure.index.contract import Embedder
from perdure.index.sql import FORMAT, LEXICAL, BriefingRecord
from perdure.index.sqlite_index import SqliteIndex
from perdure.index.vectors import embedder_id
from perdure.model import RequestContext, Uri
from perdure.process.phase_notes import MOST_WAITING, NoteScope, notes_for, shown_by, tiers_of
from perdure.sqlite import ReadOnlyDatabase

_MOST_HITS = 50
_ATTEMPTS = 5


def search_project(scope: NoteScope, query: str) -> tuple[str, str]:
    """Return the notes that are always loaded, then the hits of the project, then the others."""
    hits, reasons = _hits(scope, query)
    notes, reason = notes_for(scope)
    always, _ = tiers_of(notes, scope)
    tiers: list[HitSection[BriefingRecord | Hit]] = [
        HitSection(always.heading, list(always.hits)),
        HitSection("Project", [hit for hit in hits if hit.project]),
        HitSection("Remembered", [hit for hit in hits if not hit.project]),
    ]
    show_note = shown_by(scope)

    def shown(item: BriefingRecord | Hit) -> str | None:
        return show_note(item) if isinstance(item, BriefingRecord) else render_hit(item)

    why = " ".join(dict.fromkeys(filter(None, (*reasons, reason))))
    after = f"\n({why})\n" if why else ""
    found = pack(tiers, scope.budget - tokens_in(after), shown)
    return found.markdown + after if found.markdown else "", why


def _hits(scope: NoteScope, query: str) -> tuple[list[Hit], Iterable[str]]:
    """Return the hits from an index that did not change meanwhile, and why some may be missing."""
    caller = RequestContext(ACCOUNT, scope.memory.user)
    words = query.encode(errors="replace").decode()  # a shell passes on any bytes
    of = tuple(dict.fromkeys((scope.project, "")))
    question = Question(text=words, top_k=_MOST_HITS, project=scope.project, projects=of)
    waiting = scope.memory.waiting(MOST_WAITING + 1)
    reasons = [_behind(waiting)]
    for _ in range(_ATTEMPTS):
        opened, sources, reason = open_index(scope.memory)
        with closing(opened) as index, suppress(DamageError, StorageError):
            result = recall(sources, question, caller)
            if index.is_undisturbed(ACCOUNT):  # all hits are of one state
                return list(result.hits), [*reasons, reason]
    return [], [*reasons, "the index kept changing. Fix: ask again."]


def _behind(waiting: list[str] | None) -> str:
    if not waiting:
        return ""
    changes = "1 change is" if len(waiting) == 1 else f"{len(waiting)} changes are"
    return f"{changes} not in the index yet. Fix: run `perdure worker --once`."


# ---------------------------------------------------------------- which index answers
def open_index(memory: MemoryReader) -> tuple[SqliteIndex, Sources, str]:
    """Return the index of the embedder, else the most recent one, else one in memory.

    The index in memory has all nodes if they are few, else none. The text is the reason why hits
    may be missing.
    """
    embedder, reason = _embedder(memory)
    reader = NodeReader(memory.backend)
    name, index = _stored_index(memory, embedder)
    if index is None:
        index, reason = _index_in_memory(reader)
    wanted = embedder if name == _name(embedder) else None
    return index, Sources(reader, index, wanted, why_words=None), reason


def _index_in_memory(reader: NodeReader) -> tuple[SqliteIndex, str]:
    """Index a few nodes in memory; return an empty index and the reason if there are more."""
    from perdure.engine.indexing.follower import INLINE_LIMIT  # noqa: PLC0415 - who has no index pays
    from perdure.engine.indexing.indexer import Indexer  # noqa: PLC0415 - only without an index

    index = SqliteIndex.in_memory()
    places = list(islice(reader.walk(Uri(ACCOUNT)), INLINE_LIMIT + 1))
    if len(places) > INLINE_LIMIT:
        return index, "there is no index yet. Fix: run `perdure index rebuild`."
    index.replace(ACCOUNT, Indexer(reader, None).batch(places).records, cursor=1)
    return index, ""


def _stored_index(
    memory: MemoryReader, embedder: Embedder | None
) -> tuple[str, SqliteIndex | None]:
    """Return the best finished index with its name; closes the others."""
    found: list[tuple[bool, int, str, SqliteIndex]] = []
    for path in memory.databases():
        index, name = SqliteIndex(str(path.parent), kind=ReadOnlyDatabase), path.parent.name
        with suppress(DamageError, StorageError):  # a damaged index is not used
            found.append((name == _name(embedder), index.cursor(ACCOUNT), name, index))
    finished = sorted(each for each in found if each[1])
    for *_, index in finished[:-1]:
        index.close()
    return finished[-1][2:] if finished else ("", None)


def _name(embedder: Embedder | None) -> str:
    return f"{LEXICAL if embedder is None else embedder_id(embedder)}-{FORMAT}"


def _embedder(memory: MemoryReader) -> tuple[Embedder | None, str]:
    """Return the embedder; or None and the reason why only words are compared."""
    try:
        return embedder_for(memory.config), ""
    except PerdureError as error:
        return None, f"only words were compared: {error}"
