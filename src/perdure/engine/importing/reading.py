"""What all formats do with the files of a source."""

from collections.abc import Callable, Iterator
from typing import BinaryIO

from perdure.engine.importing.contract import Finding, Item
from perdure.engine.importing.json_items import Found, Malformed
from perdure.engine.importing.sources import Entry, Source
from perdure.errors import UnreadableSourceError

Read = Callable[[Entry, BinaryIO], Iterator[Item | Finding]]

MEND = "correct it, or leave it out"
_LOOKED_AT = 20


def each_file(source: Source, entries: list[Entry], read: Read) -> Iterator[Item | Finding]:
    """Yield what is read from each file; one that can't be read is a finding."""
    for entry in entries:
        try:
            with source.open(entry) as stream:
                yield from read(entry, stream)
        except UnreadableSourceError as error:
            what, _, fix = str(error).partition(". Fix: ")
            yield Finding(entry.name, "", what, fix.removesuffix("."))


def heads(source: Source, *suffixes: str) -> Iterator[bytes]:
    """Yield how a few files begin, of those whose names end so."""
    for entry in source.named(*suffixes)[:_LOOKED_AT]:
        yield source.head(entry)


def malformed(entry: Entry, noun: str, found: Malformed) -> Finding:
    return Finding(entry.name, f"{noun} {found.number}", found.what, MEND)


def objects(
    entry: Entry, noun: str, found: Iterator[Found]
) -> Iterator[tuple[int, dict[str, object]] | Finding]:
    """Yield each object with its number; what is malformed, or no object, is a finding."""
    for each in found:
        if isinstance(each, Malformed):
            yield malformed(entry, noun, each)
        elif isinstance(each.value, dict):
            yield each.number, each.value
        else:
            yield malformed(entry, noun, Malformed(each.number, "it is no JSON object"))
