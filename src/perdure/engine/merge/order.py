"""Whether the same terms, in another order, still say the same."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from perdure.engine.merge import english
from perdure.engine.merge.aligning import Alignment
from perdure.engine.merge.english import is_adverb
from perdure.engine.merge.terms import Term
from perdure.engine.merge.tokens import Kind

Places = list[int]
_LONGEST_COMPOUND = 4
_SERVED = frozenset({"for", "in", "on", "with", "by", "of", "at"})


def is_same_order(alignment: Alignment) -> bool:
    """Whether terms stand in the same order, but for what English lets move.

    That is: a phrase that begins with a preposition, a time or an adverb; the two sides of "is";
    the items of a list; a passive and its active. Every term must have a partner.
    """
    return any(_is_same(alignment, *turned) for turned in ((1, 1), (0, 1), (1, 0)))


def _is_same(alignment: Alignment, old_turned: int, new_turned: int) -> bool:
    partner = dict(alignment.pairs)
    olds = _active(alignment.old.terms, is_turned=bool(old_turned))
    news = _active(alignment.new.terms, is_turned=bool(new_turned))
    place = {at: number for number, at in enumerate(news)}
    moved = [place[partner[at]] for at in olds]
    old = [alignment.old.terms[at] for at in olds]
    new = [alignment.new.terms[at] for at in news]
    for _ in range(3):
        moved, old, new = _without_floating(*_unlisted(moved, old, new))
        begin, end = _changed(moved)
        if begin == end:
            return True
        cut = _rotation(moved[begin:end])
        is_light = alignment.old.is_lightened or alignment.new.is_lightened
        if cut is None or not (is_light or _may_move(old, new, moved, (begin, begin + cut, end))):
            return False
        moved[begin:end] = sorted(moved[begin:end])
    return False


# ---------------------------------------------------------------- from passive to active
def _active(terms: Sequence[Term], *, is_turned: bool) -> Places:
    """Return the places of the terms as they would stand in the active, possessors behind.

    Without `is_turned`, what may be said without "is" stays as it stands.
    """
    order: Places = []
    clause: Places = []
    for at, term in enumerate(terms):
        if term.begins or (term.is_strong and term.text.lower() in english.CONJUNCTIONS):
            order += _clause(terms, clause, is_turned=is_turned)
            clause = []
        clause.append(at)
    return order + _clause(terms, clause, is_turned=is_turned)


def _clause(terms: Sequence[Term], clause: Places, *, is_turned: bool) -> Places:
    clause = _owners_behind(terms, clause)
    verb = next((n for n, at in enumerate(clause) if terms[at].is_passive), None)
    if verb is None or not (is_turned or english.ERGATIVE.isdisjoint(terms[clause[verb]].keys)):
        return clause
    start = 1 if terms[clause[0]].is_strong and verb else 0
    subject, rest = clause[start:verb], clause[verb + 1 :]
    by = next((n for n, at in enumerate(rest) if terms[at].preposition == "by"), None)
    agent: Places = []
    if by is not None and terms[rest[by]].kind is not Kind.QUANTITY:
        end = by + 1
        while end < len(rest) and not terms[rest[end]].preposition:
            end += 1
        agent, rest = rest[by:end], rest[:by] + rest[end:]
    return clause[:start] + agent + [clause[verb]] + subject + rest


def _owners_behind(terms: Sequence[Term], clause: Places) -> Places:
    """Return "A's B" as "B of A"."""
    for n, at in enumerate(clause):
        if not terms[at].is_possessor:
            continue
        begin = n
        while begin and terms[clause[begin]].is_joined:
            begin -= 1
        end = n + 2
        while end < len(clause) and terms[clause[end]].is_joined:
            end += 1
        return clause[:begin] + clause[n + 1 : end] + clause[begin : n + 1] + clause[end:]
    return clause


# ---------------------------------------------------------------- what may move
def _changed(moved: Places) -> tuple[int, int]:
    """Return the stretch that is not in order."""
    begin, end = 0, len(moved)
    while begin < end and moved[begin] == begin:
        begin += 1
    while end > begin and moved[end - 1] == end - 1:
        end -= 1
    return begin, end


def _rotation(moved: Places) -> int | None:
    """Return where the stretch was cut, if its two parts have changed places."""
    least = min(moved)
    cut = moved.index(least)
    turned = moved[cut:] + moved[:cut]
    return cut if turned == list(range(least, least + len(moved))) else None


def _unlisted(
    moved: Places, old: list[Term], new: list[Term]
) -> tuple[Places, list[Term], list[Term]]:
    """Put the items of a list that is one in both in order."""
    result = list(moved)
    at = 0
    while at < len(old):
        end = at + 1
        while end < len(old) and old[end].is_listed:
            end += 1
        run = sorted(result[at:end])
        if run[-1] - run[0] == len(run) - 1 and all(new[n].is_listed for n in run[1:]):
            result[at:end] = run
        at = end
    return result, old, new


def _floats(term: Term) -> int:
    """Return which kind of floating word it is, or 0."""
    if term.kind is Kind.QUANTITY:
        return -1 if any(mark in term.text for mark in ("-", ":", "day", "every", "th")) else 0
    if is_adverb(term.text.lower()):
        return 1
    for number, kind in enumerate(english.FLOATING, start=1):
        if not kind.isdisjoint(term.keys):
            return number
    return 0


def _without_floating(
    moved: Places, old: list[Term], new: list[Term]
) -> tuple[Places, list[Term], list[Term]]:
    """Leave terms out that may stand anywhere, if there is one of their kind."""
    kinds = Counter(_floats(term) for term in old)
    gone = {n for n, term in enumerate(old) if _floats(term) and kinds[_floats(term)] == 1}
    places = sorted(moved[n] for n in gone)
    left = [n - bisect_left(places, n) for number, n in enumerate(moved) if number not in gone]
    return (
        left,
        [term for n, term in enumerate(old) if n not in gone],
        [term for n, term in enumerate(new) if n not in set(places)],
    )


def _may_move(
    old: Sequence[Term], new: Sequence[Term], moved: Places, cuts: tuple[int, int, int]
) -> bool:
    """Whether two stretches may change places: what is first in each says so."""
    begin, middle, end = cuts
    leads = [(old[at], new[moved[at]]) for at in (begin, middle)]
    (_, first_there), (second, _) = leads
    if begin == 0 and _are_sides_of_is(old[middle:end], [new[n] for n in moved[begin:middle]]):
        return True
    if second.is_listed and first_there.is_listed:
        return True
    if _is_spell(old[begin:middle]) or _is_spell(old[middle:end]):
        return True
    if any(_is_phrase(here, there) for here, there in leads):
        return True
    if _is_compound(old, new, moved, cuts):
        return True
    return (_is_moved(*leads[0]) and _serves(old[middle:end])) or (
        _is_moved(*leads[1]) and _serves(old[begin:middle])
    )


def _serves(stretch: Sequence[Term]) -> bool:
    return any(not english.SERVING.isdisjoint(term.keys) for term in stretch)


def _is_moved(here: Term, there: Term) -> bool:
    """Whether a preposition was needed where the term stands now."""
    said = {here.preposition, there.preposition} - {""}
    return bool(here.preposition) != bool(there.preposition) and said <= _SERVED


def _are_sides_of_is(second: Sequence[Term], first_there: Sequence[Term]) -> bool:
    return any(term.after_be for term in second) and any(term.after_be for term in first_there)


def _is_spell(stretch: Sequence[Term]) -> bool:
    """Whether it is "every summer", or the like."""
    if len(stretch) != 2:  # noqa: PLR2004 - two words
        return False
    return not english.EACH.isdisjoint(stretch[0].keys) and not english.SPELLS.isdisjoint(
        stretch[1].keys
    )


def _is_phrase(here: Term, there: Term) -> bool:
    if here.is_strong or there.is_strong:
        return here.is_strong and there.is_strong
    return bool(here.preposition and there.preposition)


def _is_compound(
    old: Sequence[Term], new: Sequence[Term], moved: Places, cuts: tuple[int, int, int]
) -> bool:
    """Whether one says "peanut allergy" and the other "allergic to peanuts"."""
    begin, middle, end = cuts
    if end - begin > _LONGEST_COMPOUND:
        return False
    here, there = old[begin], new[moved[begin]]
    turned_here, turned_there = old[middle], new[moved[middle]]
    if (turned_here.after_be and there.is_joined) or (there.after_be and turned_here.is_joined):
        return True
    if here.begins or turned_there.begins:
        return False
    return (turned_here.is_joined and bool(there.preposition)) or (
        there.is_joined and bool(turned_here.preposition) and not turned_there.preposition
    )
