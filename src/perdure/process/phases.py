"""The phases of work: how much each recalls unasked, and of which categories."""

from typing import NamedTuple

DEFAULT = "work"


class Phase(NamedTuple):
    name: str
    budget: int
    """Tokens."""
    categories: frozenset[str] | None
    """Of which kinds of notes; None is of all."""

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
