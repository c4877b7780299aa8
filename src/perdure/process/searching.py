"""What memory answers to a question, for whoever works on a project."""

from collections.abc import Iterable

from perdure.app.opening import ACCOUNT
from perdure.app.searching import open_searcher
from perdure.engine.recall.packing import Tier, entry, packed, tokens_in
from perdure.engine.recall.recalling import Question
from perdure.engine.recall.result import Hit
from perdure.errors import DamageError, StorageError
from perdure.index.account.schema import Note
from perdure.model import RequestContext
from perdure.process.notes import MOST_WAITING, Recalled, Scope, notes_for, shown_by, tiers_of

_MOST_HITS = 50
_ATTEMPTS = 5
_OF_PROJECT, _REMEMBERED = "Project", "Remembered"


def searched(scope: Scope, query: str) -> Recalled:
    """Return what is always loaded, then what answers: of the project, then of no project."""
    hits, reasons = _hits(scope, query)
    notes, reason = notes_for(scope)
    always, _ = tiers_of(notes, scope)
    tiers: list[Tier[Note | Hit]] = [
        Tier(always.heading, list(always.hits)),
        Tier(_OF_PROJECT, [hit for hit in hits if hit.project]),
        Tier(_REMEMBERED, [hit for hit in hits if not hit.project]),
    ]
    show_note = shown_by(scope)

    def shown(item: Note | Hit) -> str | None:
        return show_note(item) if isinstance(item, Note) else entry(item)

    told = " ".join(dict.fromkeys(filter(None, (*reasons, reason))))
    after = f"\n({told})\n" if told else ""
    found = packed(tiers, scope.budget - tokens_in(after), shown)
    return Recalled(found.markdown + after if found.markdown else "", told)


def _hits(scope: Scope, query: str) -> tuple[list[Hit], Iterable[str]]:
    """Return the hits that were found while nobody disturbed the index, and what is missing."""
    asker = RequestContext(ACCOUNT, scope.reading.user)
    words = query.encode(errors="replace").decode()  # a shell passes on any bytes
    of = tuple(dict.fromkeys((scope.project, "")))
    question = Question(text=words, top_k=_MOST_HITS, project=scope.project, projects=of)
    waiting = scope.reading.waiting(MOST_WAITING + 1)
    reasons = [_behind(waiting)]
    for _ in range(_ATTEMPTS):
        searcher = open_searcher(scope.reading)
        try:
            result = searcher.recaller.recall(question, asker)
            if searcher.is_undisturbed:
                return list(result.hits), [*reasons, searcher.reason]
        except (DamageError, StorageError):
            continue
        finally:
            searcher.index.close()
    return [], [*reasons, "the index is written again and again. Fix: ask again."]


def _behind(waiting: list[str] | None) -> str:
    if not waiting:
        return ""
    changes = "1 change is" if len(waiting) == 1 else f"{len(waiting)} changes are"
    return f"{changes} not in the index yet. Fix: run `perdure worker --once`."
