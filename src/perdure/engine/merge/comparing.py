"""Whether two statements say the same, contradict each other, or may both stand.

Nothing is weighed: they are the same only if each term of one has a partner in the other that says
the same, is negated alike and stands where it may. A digit, a name or a "not" more has no partner,
whatever the similarity.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from perdure.engine.merge import english
from perdure.engine.merge.aligning import Alignment, align, is_same_order, lightened
from perdure.engine.merge.english import EXCLUSIVE, pairs_of, words_of
from perdure.engine.merge.quantities import MEASURING
from perdure.engine.merge.statements import Statement, Term, read
from perdure.engine.merge.tokens import Kind

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


# ---------------------------------------------------------------- contradictions
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
    """Return how the two contradict each other, in a sentence; in doubt, None."""
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


# ---------------------------------------------------------------- plain words
_LIMITS = MEASURING.union(
    *(english.MODALS, english.ADVERBS, english.EACH, english.BOUNDS, english.SPELLS),
    *(words_of("extent"), words_of("negating")),
)

_MOST = 3
"""Words of one statement without a partner. Who says more with more of them says something else."""


def is_plain(alignment: Alignment) -> bool:
    """Whether there are words without a partner, few of them, and all of these plain ones.

    Only plain words have others for them: no number, date, name, identifier, negation or limit has.
    Names and numbers that have a partner must stand in the same order: who reports to whom is no
    matter of wording. Nor is what is negated, so a statement with a negation has no other wording.
    """
    alone = (*alignment.old_alone, *alignment.new_alone)
    said = (*alignment.old.terms, *alignment.new.terms)
    if not alone or max(len(alignment.old_alone), len(alignment.new_alone)) > _MOST:
        return False
    if any(term.negation for term in said) or _is_swapped(alignment):
        return False
    return all(map(_is_plain, alone))


def is_fixed(term: Term) -> bool:
    """Whether nothing else can say it: a number, an identifier, a sign, perhaps a name."""
    return term.kind is not Kind.WORD or term.is_name or term.text[:1] != term.text[:1].lower()


def _is_swapped(alignment: Alignment) -> bool:
    """Whether names or numbers that both have stand in another order."""
    fixed = ((at, there) for at, there in alignment.pairs if is_fixed(alignment.old.terms[at]))
    return not rises(there for _, there in fixed)


def rises(places: Iterable[int]) -> bool:
    found = list(places)
    return found == sorted(found)


def _is_plain(term: Term) -> bool:
    if is_fixed(term) or term.is_strong or len(term.text) == 1:
        return False
    if not term.text.isascii() or not _LIMITS.isdisjoint({term.text.lower(), *term.keys}):
        return False
    return EXCLUSIVE.keys().isdisjoint(term.keys)
