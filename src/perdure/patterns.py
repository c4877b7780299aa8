"""Patterns that are compiled when they are first used: most processes use few of them."""

import re
from collections.abc import Sequence
from re import _parser  # type: ignore[attr-defined] # as it is called since 3.11
from typing import Any, cast

_VERBS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub")


class _Later:
    """Stands for a pattern until it is used."""

    def __init__(self, text: str, flags: re.RegexFlag) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> object:
        pattern = re.compile(*self._given)
        for verb in _VERBS:
            setattr(self, verb, getattr(pattern, verb))
        return getattr(pattern, name)


def later(text: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return a pattern as `re.compile` does; if it is malformed, using it raises `re.error`."""
    return cast("re.Pattern[str]", _Later(text, flags))


_MOST_TEXTS = 200
_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
Item = tuple[object, Any]


def needed(text: str) -> tuple[str, ...]:
    """Return texts of which each match of a pattern has at least one; none if nobody can tell.

    To look for them all takes a tenth of the time that a search takes which finds nothing.
    """
    return tuple(sorted(_needed(list(_parser.parse(text))), key=len))


def _needed(items: Sequence[Item]) -> frozenset[str]:
    """Return the best that can be told of a sequence: where the shortest text is longest."""
    found, run = list[frozenset[str]](), frozenset({""})
    for item in items:
        exact = _exact(item)
        if exact and len(run) * len(exact) <= _MOST_TEXTS:
            run = frozenset(begun + each for begun in run for each in exact)
            continue
        found += [run, _below(item)]
        run = frozenset({""})
    told = [each for each in (*found, run) if each and "" not in each]
    return max(told, key=lambda each: (min(map(len, each)), -len(each)), default=frozenset())


def _exact(item: Item) -> frozenset[str]:
    """Return all that an item can be; nothing if that is much, or is not known."""
    kind, told = str(item[0]), item[1]
    if kind == "LITERAL":
        return frozenset({chr(told)})
    if kind == "AT":
        return frozenset({""})
    if kind == "IN" and all(str(each) == "LITERAL" for each, _ in told):
        return frozenset(chr(each) for _, each in told)
    if kind not in {"SUBPATTERN", "BRANCH"}:
        return frozenset()
    every = frozenset[str]()
    for branch in told[1] if kind == "BRANCH" else [] if _has_flags(item) else [told[-1]]:
        parts = [_exact(each) for each in branch]
        texts = frozenset({""})
        for part in parts:
            texts = frozenset(begun + each for begun in texts for each in part)
        if not texts or len(every) + len(texts) > _MOST_TEXTS:
            return frozenset()
        every |= texts
    return every


def _below(item: Item) -> frozenset[str]:
    kind, told = str(item[0]), item[1]
    if kind == "SUBPATTERN" and not _has_flags(item):
        return _needed(list(told[-1]))
    if kind in _REPEATS and told[0]:
        return _needed(list(told[2]))
    if kind == "BRANCH":
        branches = [_needed(list(each)) for each in told[1]]
        return frozenset().union(*branches) if all(branches) else frozenset()
    return frozenset()


def _has_flags(item: Item) -> bool:
    """Whether a part of a pattern is compared otherwise than the rest, as by IGNORECASE."""
    return str(item[0]) == "SUBPATTERN" and bool(item[1][1])
