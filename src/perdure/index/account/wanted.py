"""What a search lets through, in the numbers that one account's file has for it."""

import sqlite3
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from perdure.index.account import schema
from perdure.index.account.rows import Names
from perdure.index.filters import LEVEL, Sought
from perdure.model.record import OWNER_SPACE

BELOW = "below"


class Wanted(NamedTuple):
    """Which numbers each column of a row may have. No times let all through."""

    numbers: Mapping[str, frozenset[int]]
    times: frozenset[int] | None = None

    def among(self, levels: tuple[int, ...]) -> "Wanted | None":
        """Return the same, to be asked of records of these levels; None if none is wanted."""
        wanted = self.numbers.get(LEVEL)
        if wanted is None:
            return self
        if wanted.isdisjoint(levels):
            return None
        less = {name: each for name, each in self.numbers.items() if name != LEVEL}
        return Wanted(less if wanted.issuperset(levels) else self.numbers, self.times)

    @property
    def condition(self) -> str:
        """The same in SQL, on `records`; empty if all are let through."""
        parts = [f"{column} IN ({_listed(each)})" for column, each in self.numbers.items()]
        if self.times is not None:
            held = [f"(since <= {time} AND {time} < until)" for time in sorted(self.times)]
            parts.append(f"({' OR '.join(held) or 0})")
        return " AND ".join(parts)


def wanted_in(db: sqlite3.Connection, wanted: Sought, below: str | None = None) -> Wanted:
    """Look the filters up; what no record ever said has no number, and lets nothing through."""
    names = Names(db)
    texts = dict(wanted.texts) | ({} if below is None else {BELOW: frozenset({below})})
    numbers = {
        column: frozenset(number for value in values if (number := names.find(value)) is not None)
        for column, values in texts.items()
    }
    if set(owners(db, len(numbers[OWNER_SPACE]))) <= numbers[OWNER_SPACE]:
        del numbers[OWNER_SPACE]  # nobody is left out
    if wanted.levels is not None:
        numbers[LEVEL] = wanted.levels
    return Wanted(numbers, wanted.times)


def owners(db: sqlite3.Connection, most: int | None = None) -> Iterator[int]:
    """Return the numbers of those who have records; of many, one more than is asked for."""
    owner, count = 0, 0
    while most is None or count <= most:
        ((owner,),) = db.execute(schema.OWNER_AFTER, (owner,))
        if owner is None:
            return
        yield owner
        count += 1


def _listed(numbers: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
