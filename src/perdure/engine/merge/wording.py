"""Whether two statements differ in plain words only, which may or may not mean the same.

What is no plain word never has another word for it: numbers, dates, measures, versions, names,
identifiers, negations, states that exclude each other, and words that say how far something holds.
"""

from collections.abc import Iterable

from perdure.engine.merge import english
from perdure.engine.merge.aligning import Alignment
from perdure.engine.merge.english import EXCLUSIVE, words_of
from perdure.engine.merge.quantities import MEASURING
from perdure.engine.merge.terms import Term
from perdure.engine.merge.tokens import Kind

_LIMITS = MEASURING.union(
    *(english.MODALS, english.ADVERBS, english.EACH, english.BOUNDS, english.SPELLS),
    *(words_of("extent"), words_of("negating")),
)

_MOST = 3
"""Words of one statement without a partner. Who says more with more of them says something else."""


def is_plain(alignment: Alignment) -> bool:
    """Whether there are words without a partner, few of them, and all of these plain ones.

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
