"""Which term of one statement says what a term of the other says."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from perdure.engine.merge.terms import Statement, Term

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
