"""Formats with one fault each. The name says the fault."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from perdure.transfer.contract import ImportFinding, ImportItem, SessionItem
from perdure.transfer.importers.claude import ClaudeFormat
from perdure.transfer.source import ImportSource


class KnowsNothing(ClaudeFormat):
    def detect(self, source: ImportSource) -> bool:
        return False


class KnowsEverything(ClaudeFormat):
    def detect(self, source: ImportSource) -> bool:
        return True


class FindsTheFirstOnly(ClaudeFormat):
    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        yield from list(super().items(source))[:1]


class GivesAllTheSameId(ClaudeFormat):
    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        for each in super().items(source):
            yield replace(each, source_id="it") if isinstance(each, ImportItem) else each


class CountsItsItems(ClaudeFormat):
    numbers = count()

    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        for each in super().items(source):
            yield (
                replace(each, source_id=str(next(self.numbers)))
                if isinstance(each, ImportItem)
                else each
            )


class TellsTheNewestFirst(ClaudeFormat):
    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        for each in super().items(source):
            turned = isinstance(each, SessionItem)
            yield replace(each, messages=each.messages[::-1]) if turned else each  # type: ignore[union-attr,call-arg]


class OpensPaths(ClaudeFormat):
    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        for entry in source.entries:
            (source.path / entry.name).read_bytes()
        return super().items(source)


class TripsOnAMark(ClaudeFormat):
    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        if not any(source.head(entry).startswith(b"\xef\xbb\xbf") for entry in source.entries):
            yield from super().items(source)


class StopsAtWhatIsBad(ClaudeFormat):
    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        for each in super().items(source):
            yield each
            if isinstance(each, ImportFinding):
                return


class PassesOverWhatIsBad(ClaudeFormat):
    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        return (each for each in super().items(source) if isinstance(each, ImportItem))


class LetsErrorsOut(ClaudeFormat):
    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        for entry in source.entries:
            json.loads(source.head(entry))
        return super().items(source)


class TrustsTypes(ClaudeFormat):
    def items(self, source: ImportSource) -> Iterator[ImportItem | ImportFinding]:
        for entry in source.entries:
            for each in json.loads(source.head(entry)):
                each["uuid"].casefold()
        return super().items(source)
