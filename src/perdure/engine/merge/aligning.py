"""Which term of one statement says what a term of the other says, and in what order."""

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from perdure.engine.merge import english
from perdure.engine.merge.english import is_adverb, words_of
from perdure.engine.merge.statements import Statement, Term
from perdure.engine.merge.tokens import Kind

Pair = tuple[int, int]
_Keys = Callable[[Term], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Alignment:
    old: Statement
    new: Statement
    pairs: tuple[Pair, ...]
    """Places of terms that say the same, in the order of the old statement."""

    @property
    def old_alone(self) -> tuple[Term, ...]:
        matched = {at for at, _ in self.pairs}
        return tuple(term for at, term in enumerate(self.old.terms) if at not in matched)

    @property
    def new_alone(self) -> tuple[Term, ...]:
        matched = {at for _, at in self.pairs}
        return tuple(term for at, term in enumerate(self.new.terms) if at not in matched)

    @property
    def matched(self) -> tuple[tuple[Term, Term], ...]:
        return tuple((self.old.terms[old], self.new.terms[new]) for old, new in self.pairs)

    @property
    def similarity(self) -> float:
        """Return the share of terms that have a partner."""
        terms = len(self.old.terms) + len(self.new.terms)
        return 2 * len(self.pairs) / terms if terms else 1.0


def align(old: Statement, new: Statement) -> Alignment:
    """Pair terms with the same text first, then those that share a key."""
    pairs = _paired(old.terms, new.terms, lambda term: {term.exact}, {})
    pairs = _paired(old.terms, new.terms, lambda term: term.keys, pairs)
    return Alignment(old, new, tuple(sorted(pairs.items())))


def _paired(
    old: Sequence[Term], new: Sequence[Term], keys: _Keys, pairs: dict[int, int]
) -> dict[int, int]:
    """Add pairs of terms that share a key, each with the first that is left."""
    taken = set(pairs.values())
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for at, term in enumerate(new):
        if at not in taken:
            for key in keys(term):
                waiting[key].append(at)
    found = dict(pairs)
    for at, term in enumerate(old):
        if at not in found and (partner := _first(waiting, keys(term), taken)) is not None:
            found[at] = partner
            taken.add(partner)
    return found


def _first(waiting: dict[str, deque[int]], keys: Iterable[str], taken: set[int]) -> int | None:
    ahead = []
    for key in keys:
        line = waiting.get(key)
        while line and line[0] in taken:
            line.popleft()
        if line:
            ahead.append(line[0])
    return min(ahead, default=None)


# ---------------------------------------------------------------- light words
_MOST = 2
_HOLDING = frozenset({"have", "hold", "contain"})
_NOUNS = words_of("kinds of code")


def lightened(alignment: Alignment) -> Alignment:
    """Return the alignment without light words, if only they keep it from being whole.

    Light words say no more than the other statement says without them.
    """
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


# ---------------------------------------------------------------- the same terms in another order
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
