"""Search the memories of a project for the process seam. Nothing is written."""

from collections.abc import Iterable
from contextlib import closing, suppress
from itertools import islice

from perdure.app.embedding import embedder_for
from perdure.app.opening import ACCOUNT
from perdure.app.reading import Reading
from perdure.context.reading import NodeReader
from perdure.engine.recall.answer import recall
from perdure.engine.recall.question import Question
from perdure.engine.recall.result import Hit, Sources
from perdure.engine.recall.token_budget import HitSection, pack, render_hit, tokens_in
from perdure.errors import DamageError, PerdureError, StorageError
from perdure.index.account.schema import FORMAT, LEXICAL, Note
from perdure.index.contract import Embedder
from perdure.index.memo import embedder_id
from perdure.index.stores.sqlite import SqliteIndex
from perdure.model import RequestContext, Uri
from perdure.process.notes import MOST_WAITING, Recalled, Scope, notes_for, shown_by, tiers_of
from perdure.sqlite import ReadOnlyFile

_MOST_HITS = 50
_ATTEMPTS = 5
_OF_PROJECT, _REMEMBERED = "Project", "Remembered"


def searched(scope: Scope, query: str) -> Recalled:
    """Return what is always loaded, then what answers: of the project, then of no project."""
    hits, reasons = _hits(scope, query)
    notes, reason = notes_for(scope)
    always, _ = tiers_of(notes, scope)
    tiers: list[HitSection[Note | Hit]] = [
        HitSection(always.heading, list(always.hits)),
        HitSection(_OF_PROJECT, [hit for hit in hits if hit.project]),
        HitSection(_REMEMBERED, [hit for hit in hits if not hit.project]),
    ]
    show_note = shown_by(scope)

    def shown(item: Note | Hit) -> str | None:
        return show_note(item) if isinstance(item, Note) else render_hit(item)

    why = " ".join(dict.fromkeys(filter(None, (*reasons, reason))))
    after = f"\n({why})\n" if why else ""
    found = pack(tiers, scope.budget - tokens_in(after), shown)
    return Recalled(found.markdown + after if found.markdown else "", why)


def _hits(scope: Scope, query: str) -> tuple[list[Hit], Iterable[str]]:
    """Return the hits that were found while nobody disturbed the index, and what is missing."""
    asker = RequestContext(ACCOUNT, scope.reading.user)
    words = query.encode(errors="replace").decode()  # a shell passes on any bytes
    of = tuple(dict.fromkeys((scope.project, "")))
    question = Question(text=words, top_k=_MOST_HITS, project=scope.project, projects=of)
    waiting = scope.reading.waiting(MOST_WAITING + 1)
    reasons = [_behind(waiting)]
    for _ in range(_ATTEMPTS):
        opened, sources, reason = open_index(scope.reading)
        with closing(opened) as index, suppress(DamageError, StorageError):
            result = recall(sources, question, asker)
            if index.is_undisturbed(ACCOUNT):  # all that was found was as of one moment
                return list(result.hits), [*reasons, reason]
    return [], [*reasons, "the index is written again and again. Fix: ask again."]


def _behind(waiting: list[str] | None) -> str:
    if not waiting:
        return ""
    changes = "1 change is" if len(waiting) == 1 else f"{len(waiting)} changes are"
    return f"{changes} not in the index yet. Fix: run `perdure worker --once`."


# ---------------------------------------------------------------- which index answers
def open_index(reading: Reading) -> tuple[SqliteIndex, Sources, str]:
    """Return who searches: the index of the embedder, else the furthest one, else a small one.

    Where no index is finished, one of a few nodes is made in memory; if there are more, of none.
    The text says why it may not know of all.
    """
    embedder, reason = _embedder(reading)
    reader = NodeReader(reading.backend)
    name, index = _kept(reading, embedder)
    if index is None:
        index, reason = _made(reader)
    wanted = embedder if name == _name(embedder) else None
    return index, Sources(reader, index, wanted, why_words=None), reason


def _made(reader: NodeReader) -> tuple[SqliteIndex, str]:
    """Return an index in memory, if there is little to index, and else an empty one with why."""
    from perdure.engine.indexing.follower import INLINE_LIMIT  # noqa: PLC0415 - who has no index pays
    from perdure.engine.indexing.indexer import Indexer  # noqa: PLC0415 - who has no index pays

    index = SqliteIndex.in_memory()
    places = list(islice(reader.walk(Uri(ACCOUNT)), INLINE_LIMIT + 1))
    if len(places) > INLINE_LIMIT:
        return index, "there is no index yet. Fix: run `perdure index rebuild`."
    index.replace(ACCOUNT, Indexer(reader, None).batch(places).records, cursor=1)
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
    """Return the embedder; without one, words are compared, and the reason is returned."""
    try:
        return embedder_for(reading.config), ""
    except PerdureError as error:
        return None, f"only words were compared: {error}"
