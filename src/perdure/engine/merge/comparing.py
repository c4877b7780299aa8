"""Whether two statements say the same, contradict each other, or may both stand.

Nothing is weighed: they are the same only if each term of one has a partner in the other that says
the same, is negated alike and stands where it may. A digit, a name or a "not" more has no partner,
whatever the similarity.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from perdure.engine.merge import english
from perdure.engine.merge.aligning import Alignment, align
from perdure.engine.merge.contradicting import contradiction
from perdure.engine.merge.light import lightened
from perdure.engine.merge.order import is_same_order
from perdure.engine.merge.statements import read
from perdure.engine.merge.terms import Statement, Term
from perdure.engine.merge.tokens import Kind
from perdure.engine.merge.wording import is_plain

MAX_STATEMENT = 2000
"""Longer texts, in characters, are no short statements, and are the same only word for word."""
_LONGEST_SHOWN = 60


class Verdict(Enum):
    SAME = "same"
    DIFFERENT = "different"
    CONTRADICTS = "contradicts"


@dataclass(frozen=True, slots=True)
class Comparison:
    verdict: Verdict
    reason: str
    """A short sentence that names what decided."""
    similarity: float
    """The share of terms that both statements have, from 0 to 1. It decides nothing."""
    only_words: bool = False
    """They are different, and only plain words make them so: no number, date, name, identifier,
    negation, person, duty, time or order. Who knows more than words may judge otherwise."""


Judge = Callable[[str, str], Comparison]
"""Says what two statements are to each other, an older one and a newer one."""


def compare(old: str, new: str) -> Comparison:
    """Judge two short statements, the same way in either order.

    SAME: they say the same, and one of them is enough. CONTRADICTS: they say of one subject what
    can't both hold. DIFFERENT: everything else. Every text has an answer, and soon: what is longer
    than `MAX_STATEMENT` is compared word for word.
    """
    if old == new:
        return Comparison(Verdict.SAME, "The texts are the same.", 1.0)
    if max(len(old), len(new)) > MAX_STATEMENT:
        return _of_long(old, new)
    first, second = sorted((old, new))
    alignment = lightened(align(read(first), read(second)))
    difference = _difference(alignment)
    if difference is None:
        return Comparison(Verdict.SAME, "All terms have a partner.", alignment.similarity)
    if reason := contradiction(alignment):
        return Comparison(Verdict.CONTRADICTS, reason, alignment.similarity)
    only_words = is_plain(alignment) and unlike(alignment) is None
    return Comparison(Verdict.DIFFERENT, difference, alignment.similarity, only_words)


def _of_long(old: str, new: str) -> Comparison:
    if old.split() == new.split():
        return Comparison(Verdict.SAME, "The texts are the same but for spaces.", 1.0)
    return Comparison(Verdict.DIFFERENT, "One is too long to be compared but word for word.", 0.0)


# ---------------------------------------------------------------- what differs
def _difference(alignment: Alignment) -> str | None:
    """Return the first thing that keeps the two from being the same, in a sentence, or None."""
    if difference := _alone(alignment) or unlike(alignment):
        return difference
    if not alignment.pairs:
        return "They say nothing that can be compared."
    return (
        None
        if is_same_order(alignment)
        else "The same words stand in an order that says something else."
    )


def unlike(alignment: Alignment) -> str | None:
    """Return how what both have is said otherwise, in a sentence: negated, of others, of a time."""
    for look in (_negated, _about_others, _in_time, _connected):
        if difference := look(alignment):
            return difference
    return None


def _alone(alignment: Alignment) -> str | None:
    old, new = alignment.old_alone, alignment.new_alone
    if not old and not new:
        return None
    for kinds, noun in _NOUNS:
        some = [[term for term in terms if _is_of(term, kinds)] for terms in (old, new)]
        if any(some):
            return _told(noun, *some)
    return _told("word", list(old), list(new))


_NOUNS = ((Kind.QUANTITY, "number, date or measure"), (Kind.CODE, "identifier"), (None, "name"))


def _is_of(term: Term, kind: Kind | None) -> bool:
    return term.is_name if kind is None else term.kind is kind


def _told(noun: str, old: list[Term], new: list[Term]) -> str:
    said = [
        f'"{_shortened(" ".join(term.shown for term in terms))}"' for terms in (old, new) if terms
    ]
    if len(said) == 1:
        return f"Only one has the {noun} {said[0]}."
    return f"Another {noun}: {said[0]} and {said[1]}."


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "\u2026"


def _negated(alignment: Alignment) -> str | None:
    for old, new in alignment.matched:
        if old.negation != new.negation:
            return f'"{_shortened(old.shown)}" is not negated alike.'
    return None


def _about_others(alignment: Alignment) -> str | None:
    old, new = alignment.old, alignment.new
    if old.persons and new.persons and old.persons.isdisjoint(new.persons):
        return "They are about different persons."
    if old.obligations == new.obligations:
        return None
    if old.obligations and new.obligations:
        return 'One says "must", the other "should".'
    if _is_bidding(old if new.obligations else new):
        return None
    return f'Only one says "{min(old.obligations | new.obligations)}".'


def _is_bidding(statement: Statement) -> bool:
    """Whether it says to do something, as far as its first words show."""
    first = next((term for term in statement.terms if not term.is_strong), None)
    if first is None or statement.persons or first.is_definite or first.is_name:
        return False
    if any(term.after_be or term.is_passive for term in statement.terms[:2]):
        return False
    return first.kind is Kind.WORD and first.tense != "past" and not first.text.endswith("s")


def _in_time(alignment: Alignment) -> str | None:
    for old, new in alignment.matched:
        if {old.tense, new.tense} == {"past", "present"} or {old.after_be, new.after_be} == {
            "is",
            "was",
        }:
            return f'"{_shortened(old.shown)}" is said of another time.'
    return None


def _connected(alignment: Alignment) -> str | None:
    partner = dict(alignment.pairs)
    for at, there in alignment.pairs:
        old, new = alignment.old.terms[at], alignment.new.terms[there]
        follows = bool(at) and partner.get(at - 1) == there - 1
        if follows and old.exact == new.exact and {old.preposition, new.preposition} == {"", "to"}:
            return f'Only one has "to" before "{_shortened(old.shown)}".'
    for old, new in alignment.matched:
        said = {old.preposition, new.preposition}
        if (
            len(said) > 1
            and "" not in said
            and not any(said <= each for each in english.INTERCHANGEABLE)
        ):
            return f'"{_shortened(old.shown)}" follows "{old.preposition}" and "{new.preposition}".'
    return None
