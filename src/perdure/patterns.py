"""Regular expressions that are compiled when first used, and tables of them in text files.

A table has one entry per line, `name = text` or a text alone, below a `[heading]` or none. `{NAME}`
in a text stands for the entry of that name above it. A line that begins with `#` is a comment.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from re import _parser  # type: ignore[attr-defined] # as it is called since 3.11
from typing import Any, cast

_VERBS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub")


class _LazyPattern:
    """A pattern that is compiled when first used: most processes use few of them."""

    def __init__(self, text: str, flags: re.RegexFlag) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> object:
        pattern = re.compile(*self._given)
        for verb in _VERBS:
            setattr(self, verb, getattr(pattern, verb))
        return getattr(pattern, name)


def later(text: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return a pattern as `re.compile` does; a malformed one raises `re.error` when it is used."""
    return cast("re.Pattern[str]", _LazyPattern(text, flags))


Item = tuple[object, Any]


def required_literals(text: str) -> tuple[str, ...]:
    """Return texts of which each match of a pattern contains at least one; none if unknown.

    Searching for all of them takes a tenth of the time of a search that finds nothing.
    """
    return tuple(sorted(_literals_of(_parser.parse(text))))


def _literals_of(items: Iterable[Item]) -> frozenset[str]:
    """Return the best literals of a sequence: those whose shortest text is longest."""
    found, run = list[frozenset[str]](), ""
    for kind, detail in items:
        name = str(kind)
        if name == "LITERAL":
            run += chr(detail)
        elif name != "AT":  # which matches a position, not text
            found += [frozenset({run}), _literals_in(name, detail)]
            run = ""
    usable = [each for each in (*found, frozenset({run})) if each and "" not in each]
    return max(usable, key=lambda each: min(map(len, each)), default=frozenset())


def _literals_in(name: str, detail: Any) -> frozenset[str]:  # noqa: ANN401 - as it was parsed
    if name == "SUBPATTERN" and not detail[1]:  # flags such as IGNORECASE change the comparison
        return _literals_of(detail[-1])
    if name in {"MAX_REPEAT", "MIN_REPEAT"} and detail[0]:
        return _literals_of(detail[2])
    if name == "IN" and all(str(kind) == "LITERAL" for kind, _ in detail):
        return frozenset(chr(code) for _, code in detail)
    branches = (
        [_literals_of(each) for each in detail[1]] if name == "BRANCH" else [frozenset[str]()]
    )
    return frozenset().union(*branches) if all(branches) else frozenset()


_HEADING = later(r"\[([a-z ]+)\]")
_NAMED = later(r"([A-Za-z][A-Za-z_ ]*) = (.+)")
_REFERENCE = later(r"\{([A-Z_]+)\}")


def entries(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield heading, name and text of each entry; the name may be empty."""
    known: dict[str, str] = {}
    heading = ""
    for line in path.read_text("utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and (found := _HEADING.fullmatch(line)):
            heading = found[1]
            continue
        text = _REFERENCE.sub(lambda name: known[name[1]], line) if "{" in line else line
        named = _NAMED.fullmatch(text) if " = " in text else None
        if named:
            known[named[1]] = named[2]
        yield (heading, named[1], named[2]) if named else (heading, "", text)


def table(module: str, name: str, heading: str = "") -> dict[str, str]:
    """Return the named entries of the table beside a module, below one heading."""
    path = Path(module).with_name(name)
    return {name: text for below, name, text in entries(path) if below == heading}


def lists(module: str, name: str) -> dict[str, list[str]]:
    """Return the lines below each heading of the table beside a module."""
    found: dict[str, list[str]] = defaultdict(list)
    for heading, key, text in entries(Path(module).with_name(name)):
        found[heading].append(f"{key} = {text}" if key else text)
    return dict(found)
