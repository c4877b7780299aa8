"""One text for two statements that say the same."""

from holdfast.engine.merge.aligning import Alignment, align
from holdfast.engine.merge.comparing import MAX_STATEMENT, unlike
from holdfast.engine.merge.statements import read
from holdfast.engine.merge.terms import Statement
from holdfast.engine.merge.wording import is_fixed, rises


def merged_text(old: str, new: str) -> str:
    """Return the longer of two statements that say the same; the old one if they are as long."""
    return new if len(new) > len(old) else old


def is_made_of(text: str, old: str, new: str) -> bool:
    """Whether a text says what two statements say, and nothing else, as far as rules can tell.

    Each of its terms is one of theirs; what both have is in it, and so is each number, name and
    negation of either; and its terms stand as they do in one of them.
    """
    if not text.strip() or len(text) > min(MAX_STATEMENT, len(old) + len(new)):
        return False
    made, first, second = read(text), read(old), read(new)
    sides = (align(made, first), align(made, second))
    return (
        _adds_nothing(made, sides)
        and _loses_nothing(sides, align(first, second))
        and all(_speaks_of(made, sides, each) for each in ("persons", "obligations"))
        and not any(map(unlike, sides))
        and any(rises(there for _, there in side.pairs) for side in sides)
    )


Sides = tuple[Alignment, Alignment]
"""A text beside the one statement, and beside the other."""


def _adds_nothing(made: Statement, sides: Sides) -> bool:
    known = {at for side in sides for at, _ in side.pairs}
    alike = all(ours.negation == theirs.negation for side in sides for ours, theirs in side.matched)
    return len(known) == len(made.terms) and alike


def _loses_nothing(sides: Sides, shared: Alignment) -> bool:
    first, second = ({there for _, there in side.pairs} for side in sides)
    if not all(old in first and new in second for old, new in shared.pairs):
        return False
    lost = (term for side in sides for term in side.new_alone)
    return not any(is_fixed(term) or term.negation for term in lost)


def _speaks_of(made: Statement, sides: Sides, what: str) -> bool:
    said, (one, other) = getattr(made, what), (getattr(side.new, what) for side in sides)
    return bool(one & other <= said <= one | other)
