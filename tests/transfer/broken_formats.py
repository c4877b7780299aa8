"""Formats with one fault each. The name says the fault."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from perdure.transfer.contract import Conversation, Finding, Item
from perdure.transfer.importers.claude import Claude
from perdure.transfer.source import Source


class KnowsNothing(Claude):
    def detect(self, source: Source) -> bool:
        return False


class KnowsEverything(Claude):
    def detect(self, source: Source) -> bool:
        return True


class FindsTheFirstOnly(Claude):
    def items(self, source: Source) -> Iterator[Item | Finding]:
        yield from list(super().items(source))[:1]


class GivesAllTheSameId(Claude):
    def items(self, source: Source) -> Iterator[Item | Finding]:
        for each in super().items(source):
            yield replace(each, source_id="it") if isinstance(each, Item) else each


class CountsItsItems(Claude):
    numbers = count()

    def items(self, source: Source) -> Iterator[Item | Finding]:
        for each in super().items(source):
            yield (
                replace(each, source_id=str(next(self.numbers))) if isinstance(each, Item) else each
            )


class TellsTheNewestFirst(Claude):
    def items(self, source: Source) -> Iterator[Item | Finding]:
        for each in super().items(source):
            turned = isinstance(each, Conversation)
            yield replace(each, messages=each.messages[::-1]) if turned else each  # type: ignore[union-attr,call-arg]


class OpensPaths(Claude):
    def items(self, source: Source) -> Iterator[Item | Finding]:
        for entry in source.entries:
            (source.path / entry.name).read_bytes()
        return super().items(source)


class TripsOnAMark(Claude):
    def items(self, source: Source) -> Iterator[Item | Finding]:
        if not any(source.head(entry).startswith(b"\xef\xbb\xbf") for entry in source.entries):
            yield from super().items(source)


class StopsAtWhatIsBad(Claude):
    def items(self, source: Source) -> Iterator[Item | Finding]:
        for each in super().items(source):
            yield each
            if isinstance(each, Finding):
                return


class PassesOverWhatIsBad(Claude):
    def items(self, source: Source) -> Iterator[Item | Finding]:
        return (each for each in super().items(source) if isinstance(each, Item))


class LetsErrorsOut(Claude):
    def items(self, source: Source) -> Iterator[Item | Finding]:
        for entry in source.entries:
            json.loads(source.head(entry))
        return super().items(source)


class TrustsTypes(Claude):
    def items(self, source: Source) -> Iterator[Item | Finding]:
        for entry in source.entries:
            for each in json.loads(source.head(entry)):
                each["uuid"].casefold()
        return super().items(source)
