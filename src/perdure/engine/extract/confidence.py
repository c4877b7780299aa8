"""How sure each kind of statement is."""

REMINDED = 0.95
"""Somebody asks that it be remembered."""
STATED = 0.9
"""Somebody says it of themselves, in a form that says nothing else."""
ASKED_FOR = 0.85
"""Somebody asks that something always be done so."""
DEFINED = 0.8
"""Somebody says what something or somebody is."""
HAPPENED = 0.8
"""Something happened or will, and the time is known."""
UNDATED = 0.65
"""It did, and the time is not known."""
IMPLIED = 0.7
"""Half a sentence says it: "vegan", "exam tomorrow"."""
DONE = 0.8
"""How things are done, said by the user; or an error and what helped."""
ADVISED = 0.6
"""A command, said by the assistant: nobody said that it works."""
HEDGE = 0.7
"""What a "maybe" leaves of it."""


def weighed(confidence: float, *, hedged: bool) -> float:
    return round(confidence * HEDGE, 3) if hedged else confidence
