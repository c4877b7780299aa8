"""Who else says what is to be erased: it stays there, and its owner is told."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from perdure.context.files import FILES, META
from perdure.context.reading import NodeReader
from perdure.errors import InvalidUriError
from perdure.model import Uri
from perdure.model.values import JSON

LEAST = 12
"""What has fewer characters may be said by anybody."""

_ENDS = re.compile(r"(?<=[.!?;:])\s+|\n")
_AROUND = " \t#>*-_`\"'.!?;:,"
_WORD = re.compile(r"[^\W_]{3,}")
_URI = re.compile(r"ctx://[^\s\"'\])>|#]+")


class Quoted(NamedTuple):
    """A node that says something that is to be erased, or names it."""

    uri: str
    where: str
    """In which of its files."""


def sentences(text: str) -> set[str]:
    """Return what a text says, sentence by sentence, without what is around them."""
    said = (" ".join(each.split()).strip(_AROUND) for each in _ENDS.split(text))
    return {each for each in said if len(each) >= LEAST}


def words(text: str) -> set[str]:
    """Return the words of a text or a name, but the shortest."""
    return set(_WORD.findall(text.casefold()))


def quoting(
    reader: NodeReader, account: Uri, said: set[str], without: Iterable[Uri]
) -> Iterator[Quoted]:
    """Yield the nodes of an account, but those, that say one of these sentences or name those."""
    gone = set(without)
    for place in reader.walk(account):
        if any(each.contains(place) for each in gone):
            continue
        for name in FILES:
            text = reader.look(place, name)
            if isinstance(text, str) and _tells(name, text, said, gone):
                yield Quoted(str(place), name)
                break


def _tells(name: str, text: str, said: set[str], gone: set[Uri]) -> bool:
    return not said.isdisjoint(_all_said(name, text)) or any(
        each.contains(named) for named in _named(text) for each in gone
    )


def _named(text: str) -> Iterator[Uri]:
    for uri in set(_URI.findall(text)):
        with suppress(InvalidUriError):
            yield Uri.parse(uri)


def _all_said(name: str, text: str) -> set[str]:
    if name != META and not name.endswith(".json"):
        return sentences(text)
    try:
        return {each for string in _strings(json.loads(text)) for each in sentences(string)}
    except (ValueError, RecursionError):
        return sentences(text)


def _strings(value: JSON) -> Iterator[str]:
    """Yield all texts in a JSON value."""
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from _strings(each)
        case dict():
            for each in value.values():
                yield from _strings(each)
