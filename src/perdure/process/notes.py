"""The notes that are shown without a question: always, or for a project and a phase."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

from perdure.app.reading import Reading
from perdure.engine.recall.token_budget import RULES, HitSection
from perdure.errors import InvalidLocatorError
from perdure.index.account.schema import SHOWN_FILES, Note, Notes
from perdure.storage import Locator

DEFAULT = "work"


class Phase(NamedTuple):
    name: str
    budget: int
    categories: frozenset[str] | None

    def fits(self, category: str, phases: object) -> bool:
        """Whether a note is for this phase: as it says itself, else by its category."""
        if isinstance(phases, list) and phases:
            return self.name in phases
        return self.categories is None or (category or "resource") in self.categories


def _phase(name: str, budget: int, categories: str = "") -> Phase:
    return Phase(name, budget, frozenset(categories.split()) if categories else None)


PHASES = {
    phase.name: phase
    for phase in (
        _phase("setup", 1500, "preference decision pattern resource"),
        _phase("plan", 2500, "decision pattern entity event case note resource"),
        _phase("work", 2000),
        _phase("review", 2000, "decision pattern preference case"),
        _phase("release", 1500, "decision event pattern"),
        _phase("bugfix", 2500, "bug case event decision pattern"),
        _phase("documenter", 3000, "decision entity event note pattern resource"),
    )
}


def phase_named(name: object) -> Phase:
    """Return a phase by its name; what is none is `work`."""
    return PHASES.get(name, PHASES[DEFAULT]) if isinstance(name, str) else PHASES[DEFAULT]


_MOST_NOTES, _MOST_TO_CHOOSE_FROM = 200, 1000
"""So many of the newest are looked at; more, where not all of them fit the phase."""
MOST_WAITING = 200
"""How many nodes that no index has are read while the caller waits."""
_ALWAYS, _OF_PROJECT = "Always", "Project"


class Recalled(NamedTuple):
    markdown: str = ""
    reason: str = ""


class Scope(NamedTuple):
    reading: Reading
    project: str
    phase: Phase
    budget: int


def notes_for(scope: Scope) -> tuple[Notes, str]:
    """Return the notes for a project, with those that no index knows of, and what is missing."""
    reading = scope.reading
    waiting = reading.waiting(MOST_WAITING + 1)
    most = _MOST_NOTES if scope.phase.categories is None else _MOST_TO_CHOOSE_FROM
    notes = reading.notes(scope.project, most)
    if notes is not None and waiting == []:
        return notes, ""
    from perdure.app.walking import notes_at, walked  # noqa: PLC0415 - who has no index pays

    if notes is None:
        return walked(reading, scope.project)
    known = waiting or []
    fresh = notes_at(reading, scope.project, known[:MOST_WAITING])
    always, of_project = (
        [*new, *(note for note in old if note.uri not in known)]
        for new, old in zip(fresh[1:], notes[1:], strict=True)
    )
    return Notes(notes.cursor, always, of_project), lag(waiting)


def lag(waiting: list[str] | None) -> str:
    """Say how far an index is behind, if it is too far to be made up for here."""
    if waiting is not None and len(waiting) <= MOST_WAITING:
        return ""
    many = "nobody can tell how many" if waiting is None else f"more than {MOST_WAITING}"
    return f"{many} changes are not in the index yet. Fix: run `perdure worker --once`."


def tiers_of(notes: Notes, scope: Scope) -> list[HitSection[Note]]:
    """Return the notes to show, the newest first, of all writers."""
    now, owners = datetime.now(UTC).isoformat(), scope.reading.owners

    def wanted(given: Iterable[Note]) -> Iterator[Note]:
        for note in given:
            until = note.told.get("until")
            if note.told.get("owner") in owners and (until is None or str(until) > now):
                yield note

    fits = scope.phase.fits
    of_project = [
        note
        for note in wanted(notes.of_project)
        if fits(str(note.told.get("category") or ""), note.told.get("phases"))
    ]
    return [HitSection(_ALWAYS, list(wanted(notes.always))), HitSection(_OF_PROJECT, of_project)]


# ---------------------------------------------------------------- showing them
def shown_by(scope: Scope) -> Callable[[Note], str | None]:
    """Return what shows a note, if it is still there, and as it is now."""

    def shown(note: Note) -> str | None:
        if note.told.get("rules") == RULES and _is_same(scope.reading, note):
            return note.snippet
        from perdure.app.walking import entry_of  # noqa: PLC0415 - who meets an edit pays

        return entry_of(scope.reading, scope.project, note.uri)

    return shown


def _is_same(reading: Reading, note: Note) -> bool:
    """Whether a note is in use, and its file what it was when it was made presentable."""
    try:
        place = Locator(str(note.told.get("key")))
    except InvalidLocatorError:  # the index is damaged; the node itself is asked then
        return False
    files = reading.backend.read_all(place, SHOWN_FILES)
    shown = "\0".join(files.get(name, "") for name in SHOWN_FILES)
    return sha256(shown.encode()).hexdigest() == note.told.get("sha256")
