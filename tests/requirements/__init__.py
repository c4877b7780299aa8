"""The specification as data: one entry for each normative sentence of a seed document."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """One behaviour that a seed asks for, in our words.

    It is held by at least one test that carries its id, or it is `deferred` and says why.
    """

    id: str
    section: str
    behaviour: str
    deferred: str | None = None
