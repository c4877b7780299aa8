"""Whether two statements that are not the same can't both hold.

A contradiction supersedes what was remembered, so in doubt there is none.
"""

from collections.abc import Sequence
from dataclasses import replace

from perdure.engine.merge.aligning import Alignment, align
from perdure.engine.merge.english import EXCLUSIVE, pairs_of, words_of
from perdure.engine.merge.order import is_same_order
from perdure.engine.merge.terms import Statement, Term
from perdure.engine.merge.tokens import Kind

_LONGEST_VALUE = 3
_LONGEST_SUBJECT = 3
_CHANGES = frozenset({"move", "relocate", "set"})
"""What is said to have happened, and still holds."""
_HOMES = frozenset({"live", "reside", "base", "move", "relocate"})
_QUALIFYING = frozenset({"during", "on", "for", "at", "while", "when", "between"})
_PLACING = {verb: leads.split() for verb, leads in pairs_of("placing").items()}
_ATTRIBUTES, _VERBS, _LABELS = words_of("attributes"), words_of("verbs"), words_of("labels")
_LIGHT = frozenset({"~anymore", "yet", "only", "support", "anymore"})


def contradiction(alignment: Alignment) -> str | None:
    """Return how the two contradict each other, in a sentence, or None."""
    old = [term for term in alignment.old_alone if term.text not in _LIGHT]
    new = [term for term in alignment.new_alone if term.text not in _LIGHT]
    flipped = [pair for pair in alignment.matched if pair[0].negation != pair[1].negation]
    if _subjects(alignment.old) != _subjects(alignment.new):
        return None
    if not old and not new:
        return _flip(flipped) or _turned(alignment)
    if flipped:
        return None
    if len(old) == len(new) == 1 and _exclude(old[0], new[0]):
        return _opposite(alignment, old[0], new[0])
    return _other_value(alignment) or _moved(alignment)


def _subjects(statement: Statement) -> frozenset[str]:
    """Return whom it is about; who is not named is whose memory it is."""
    return statement.persons - {"me"}


def _flip(flipped: Sequence[tuple[Term, Term]]) -> str | None:
    if len(flipped) != 1 or (flipped[0][0].negation and flipped[0][1].negation):
        return None
    return f'One says "{flipped[0][0].shown}", the other negates it.'


def _who_prefers(terms: Sequence[Term]) -> tuple[str, ...] | None:
    """Return the words before what is preferred, which say by whom; None if nothing is."""
    for at, term in enumerate(terms[:_LONGEST_SUBJECT]):
        if "prefer" in term.keys:
            return tuple(each.text for each in terms[:at])
    return None


def _turned(alignment: Alignment) -> str | None:
    """Return whether the two sides of a preference have changed places."""
    who = _who_prefers(alignment.old.terms)
    if alignment.old_alone or alignment.new_alone or who is None:
        return None
    same = who == _who_prefers(alignment.new.terms)
    if same and any("~than" in term.keys for term in alignment.old.terms):
        return None if is_same_order(alignment) else "What is preferred over what is turned around."
    return None


# ---------------------------------------------------------------- opposites
def _exclude(one: Term, other: Term) -> bool:
    sets = [
        {number for key in term.keys for number in EXCLUSIVE.get(key, ())} for term in (one, other)
    ]
    return not sets[0].isdisjoint(sets[1])


def _opposite(alignment: Alignment, old: Term, new: Term) -> str | None:
    if old.negation or new.negation:
        return None
    said = [
        _is_predicate(alignment.old.terms, alignment.old.terms.index(old)),
        _is_predicate(alignment.new.terms, alignment.new.terms.index(new)),
    ]
    if not all(said):
        return None
    return f'"{old.shown}" and "{new.shown}" can\'t both hold.'


def _is_predicate(terms: Sequence[Term], at: int) -> bool:
    """Whether the term is what is said, not what it is said of."""
    verb = _verb(terms)
    return verb is None or at >= verb or (at == 0 and not _has_be(terms))


def _has_be(terms: Sequence[Term]) -> bool:
    return any(term.after_be or term.is_passive for term in terms)


def _verb(terms: Sequence[Term]) -> int | None:
    """Return where what is said begins."""
    for at, term in enumerate(terms):
        if term.after_be or term.is_passive or term.tense == "past" or _VERBS & term.keys:
            return at
    return None


# ---------------------------------------------------------------- other values
def _other_value(alignment: Alignment) -> str | None:
    old = _block(alignment.old.terms, {at for at, _ in alignment.pairs})
    new = _block(alignment.new.terms, {at for _, at in alignment.pairs})
    if old is None or new is None or not alignment.pairs:
        return None
    olds, news = alignment.old.terms, alignment.new.terms
    if not _are_led_alike(olds[old.start], news[new.start]):
        return None
    if _is_qualified(olds, old) or _is_qualified(news, new):
        return None
    if not _is_valued(olds, old, _kinds(news, new)) or not _is_valued(news, new, _kinds(olds, old)):
        return None
    said, other = (
        " ".join(terms[at].shown for at in block) for terms, block in ((olds, old), (news, new))
    )
    return f'One says "{said}", the other "{other}".'


def _moved(alignment: Alignment) -> str | None:
    """Return whether one says where somebody lives, and the other where they moved."""
    old, new = _at_home(alignment.old), _at_home(alignment.new)
    if (old, new) == (alignment.old, alignment.new):
        return None
    return _other_value(align(old, new))


def _at_home(statement: Statement) -> Statement:
    terms = (
        replace(term, keys=term.keys | {"~home"})
        if _HOMES & term.keys and "~home" not in term.keys
        else term
        for term in statement.terms
    )
    return replace(statement, terms=tuple(terms))


def _block(terms: Sequence[Term], matched: set[int]) -> range | None:
    """Return the one short stretch of terms that have no partner."""
    alone = [at for at in range(len(terms)) if at not in matched]
    if not alone or alone[-1] - alone[0] != len(alone) - 1 or len(alone) > _LONGEST_VALUE:
        return None
    return range(alone[0], alone[-1] + 1)


def _are_led_alike(old: Term, new: Term) -> bool:
    """Whether two values answer the same question, as far as their prepositions say."""
    said = {old.preposition, new.preposition}
    return len(said) == 1 or said <= {"in", "at", "to"} or said <= {"at", "on"}


def _is_qualified(terms: Sequence[Term], block: range) -> bool:
    """Whether a value holds only at some time, or for something: "Berlin during the week"."""
    first, *more = (terms[at] for at in block)
    if first.kind is Kind.QUANTITY:
        return False
    return any(term.preposition in _QUALIFYING - {first.preposition} for term in more)


def _kinds(terms: Sequence[Term], block: range) -> frozenset[Kind]:
    return frozenset(terms[at].kind for at in block)


def _is_valued(terms: Sequence[Term], block: range, others: frozenset[Kind]) -> bool:
    """Whether the stretch is the value of something that has one value at a time."""
    verb = _verb(terms)
    at = block.start
    if verb is None or at < verb:
        return _is_defined(terms, verb)
    is_event = terms[verb].tense == "past" and _CHANGES.isdisjoint(terms[verb].keys)
    if is_event or (at and terms[at].kind is Kind.QUANTITY and _LABELS & terms[at - 1].keys):
        return False
    if Kind.QUANTITY in _kinds(terms, block) and Kind.QUANTITY in others:
        return True
    return _is_placed(terms, at) or _is_attributed(terms, verb)


def _is_defined(terms: Sequence[Term], verb: int | None) -> bool:
    """Whether the stretch is who or what is the one that is meant: "X is the owner"."""
    if verb is None or not terms[verb].after_be:
        return False
    return terms[verb].is_definite and not terms[verb].preposition


def _is_placed(terms: Sequence[Term], at: int) -> bool:
    """Whether the stretch is the phrase of a verb that has one."""
    lead = terms[at]
    for before in range(at - 1, -1, -1):
        for key in terms[before].keys & _PLACING.keys():
            if lead.preposition in _PLACING[key] or lead.text in _PLACING[key]:
                return True
    return bool(lead.after_be and lead.preposition in {"in", "at", "on"} and at)


def _is_attributed(terms: Sequence[Term], verb: int) -> bool:
    """Whether the stretch is what an attribute is said to be."""
    subject = terms[:verb]
    named = any(_ATTRIBUTES & term.keys for term in subject)
    is_name = terms[verb].text == "name"
    return bool(terms[verb].after_be) and (named or is_name)
