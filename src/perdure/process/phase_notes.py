"""The notes that are shown without a query: always, or for a project and a phase."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

from perdure.app.memory_reader import MemoryReader, entry_for, notes_at, walk_notes
from perdure.engine.recall.result import RULES, HitSection
from perdure.errors import InvalidLocatorError
from perdure.index.sql import SHOWN_FILES, BriefingRecord, BriefingRecords
from perdure.storage import Locator

DEFAULT = "work"


class Phase(NamedTuple):
    name: str
    budget: int
    categories: frozenset[str] | None

    def fits(self, category: str, phases: object) -> bool:
        """Whether a note belongs to this phase, by its own `phases`, else by its category."""
        if isinstance(phases, list) and phases:
            return self.name in phases
        return self.categories is None or (category or "resource") in self.categories


PHASES = {
    name: Phase(name, budget, frozenset(categories.split()) or None)
    for name, budget, categories in (
        ("setup", 1500, "preference decision pattern resource"),
        ("plan", 2500, "decision pattern entity event case note resource"),
        ("work", 2000, ""),
        ("review", 2000, "decision pattern preference case"),
        ("release", 1500, "decision event pattern"),
        ("bugfix", 2500, "bug case event decision pattern"),
        ("documenter", 3000, "decision entity event note pattern resource"),
    )
}


def phase_named(name: object) -> Phase:
    """Return a phase by its name; the default is `work`."""
    return PHASES.get(name, PHASES[DEFAULT]) if isinstance(name, str) else PHASES[DEFAULT]


_NOTE_LIMIT, _FILTERED_LIMIT = 200, 1000
"""How many of the newest notes are read; more where the phase filters them."""
MOST_WAITING = 200
"""How many unindexed nodes are read while the caller waits."""
_ALWAYS, _OF_PROJECT = "Always", "Project"


class NoteScope(NamedTuple):
    memory: MemoryReader
    project: str
    phase: Phase
    budget: int


def notes_for(scope: NoteScope) -> tuple[BriefingRecords, str]:
    """Return the notes for a project, with unindexed ones, and why some may be missing."""
    memory = scope.memory
    waiting = memory.waiting(MOST_WAITING + 1)
    most = _NOTE_LIMIT if scope.phase.categories is None else _FILTERED_LIMIT
    notes = memory.notes(scope.project, most)
    if notes is not None and waiting == []:
        return notes, ""
    if notes is None:
        return walk_notes(memory, scope.project)
    known = waiting or []
    fresh = notes_at(memory, scope.project, known[:MOST_WAITING])
    always, of_project = (
        [*new, *(note for note in old if note.uri not in known)]
        for new, old in zip(fresh[1:], notes[1:], strict=True)
    )
    return BriefingRecords(notes.cursor, always, of_project), _behind(waiting)


def _behind(waiting: list[str] | None) -> str:
    if waiting is not None and len(waiting) <= MOST_WAITING:
        return ""
    many = "an unknown number of" if waiting is None else f"more than {MOST_WAITING}"
    return f"{many} changes are not in the index yet. Fix: run `perdure worker --once`."


def tiers_of(notes: BriefingRecords, scope: NoteScope) -> list[HitSection[BriefingRecord]]:
    """Return the notes to show, the newest first, of all owners."""
    now, owners = datetime.now(UTC).isoformat(), scope.memory.owners

    def wanted(given: Iterable[BriefingRecord]) -> Iterator[BriefingRecord]:
        for note in given:
            until = note.payload.get("until")
            if note.payload.get("owner") in owners and (until is None or str(until) > now):
                yield note

    fits = scope.phase.fits
    of_project = [
        note
        for note in wanted(notes.of_project)
        if fits(str(note.payload.get("category") or ""), note.payload.get("phases"))
    ]
    return [HitSection(_ALWAYS, list(wanted(notes.always))), HitSection(_OF_PROJECT, of_project)]


# ---------------------------------------------------------------- showing them
def shown_by(scope: NoteScope) -> Callable[[BriefingRecord], str | None]:
    """Return a function that renders a note as it is now; None if it is gone."""

    def shown(note: BriefingRecord) -> str | None:
        if note.payload.get("rules") == RULES and _is_same(scope.memory, note):
            return note.snippet
        return entry_for(scope.memory, scope.project, note.uri)

    return shown


def _is_same(memory: MemoryReader, note: BriefingRecord) -> bool:
    """Whether the files of a note are as they were when its snippet was rendered."""
    try:
        place = Locator(str(note.payload.get("key")))
    except InvalidLocatorError:  # the index is damaged; the node is read
        return False
    files = memory.backend.read_all(place, SHOWN_FILES)
    shown = "\0".join(files.get(name, "") for name in SHOWN_FILES)
    return sha256(shown.encode()).hexdigest() == note.payload.get("sha256")
