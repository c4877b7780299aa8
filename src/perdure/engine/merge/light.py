"""Words that say no more than the other statement says without them."""

from collections.abc import Sequence
from dataclasses import replace

from perdure.engine.merge.aligning import Alignment, align
from perdure.engine.merge.english import words_of
from perdure.engine.merge.terms import Statement, Term
from perdure.engine.merge.tokens import Kind

_MOST = 2
_HOLDING = frozenset({"have", "hold", "contain"})
_NOUNS = words_of("kinds of code")


def lightened(alignment: Alignment) -> Alignment:
    """Return the alignment without light words, if only they keep it from being whole."""
    old, new = alignment.old, alignment.new
    if bool(alignment.old_alone) == bool(alignment.new_alone):
        return alignment
    if alignment.old_alone:
        return align(_lighter(old, alignment.old_alone, new), new)
    return align(old, _lighter(new, alignment.new_alone, old))


def _lighter(said: Statement, alone: Sequence[Term], other: Statement) -> Statement:
    if len(alone) > _MOST or any(term.negation for term in alone):
        return said
    if all(_is_label(said, term) or _is_us(term, other) for term in alone):
        return _without(said, alone)
    if len(alone) == 1 and _is_light(said, alone[0], other):
        return replace(_without(said, alone), is_lightened=True)
    return said


def _is_us(term: Term, other: Statement) -> bool:
    """Whether one says "the team" where the other says "we"."""
    return term.text == "team" and term.is_definite and "us" in other.persons


def _is_label(said: Statement, term: Term) -> bool:
    """Whether the word only says what kind of thing an identifier beside it is."""
    at = said.terms.index(term)
    if _NOUNS.isdisjoint(term.keys):
        return False
    if at and term.is_joined and said.terms[at - 1].kind is Kind.CODE:
        return True
    after = said.terms[at + 1 : at + 3]
    ends = next((n for n, each in enumerate(after) if each.kind is Kind.CODE), None)
    return ends is not None and all(each.is_joined for each in after[: ends + 1])


def _is_light(said: Statement, verb: Term, other: Statement) -> bool:
    if verb.tense != "present":
        return False
    said_to_be = [term for term in other.terms if term.after_be]
    if said_to_be and not any(term.after_be for term in said.terms):
        return _is_being(said, verb, said_to_be[0])
    if "get" in verb.keys:
        return not said.terms[0].keys.isdisjoint({"want", "prefer"})
    if "can" in verb.keys:
        return _is_bidden(said, said.terms.index(verb) + 1, other)
    to = next((at for at, term in enumerate(said.terms) if term.preposition == "to"), 0)
    return "want" in verb.keys and verb is said.terms[0] and _is_bidden(said, to, other)


def _is_being(said: Statement, verb: Term, first: Term) -> bool:
    """Whether the verb says what "is" says in the other statement."""
    if not _HOLDING.isdisjoint(verb.keys):
        return True
    if "live" in verb.keys:
        return bool(first.preposition) and _is_a_thing(said)
    if "work" in verb.keys:
        return any(term.preposition == "as" for term in said.terms)
    if "play" in verb.keys:
        return first.text.endswith("ist")
    return "speak" in verb.keys and "fluent" in first.keys


def _is_a_thing(said: Statement) -> bool:
    """Whether a statement is about no person, as far as it shows."""
    first = said.terms[0]
    return first.is_definite and "live" not in first.keys and not first.is_name and not said.persons


def _is_bidden(said: Statement, at: int, other: Statement) -> bool:
    """Whether what one says can or should be done is what the other says to do."""
    if not 0 < at < len(said.terms) or not other.terms or not said.terms[at].is_passive:
        return False
    bidden = other.terms[0]
    is_base = bidden.tense != "past" and not bidden.text.endswith("s")
    return is_base and not bidden.keys.isdisjoint(said.terms[at].keys)


def _without(statement: Statement, gone: Sequence[Term]) -> Statement:
    """Return the statement without some terms; what follows them has lost its neighbour."""
    terms = list(statement.terms)
    for term in gone:
        at = terms.index(term)
        terms.pop(at)
        if at < len(terms):
            terms[at] = replace(terms[at], is_joined=False, begins=terms[at].begins or term.begins)
    return replace(statement, terms=tuple(terms))
