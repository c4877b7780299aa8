"""Indexes with one fault each. The name says the fault."""

import time
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from perdure.errors import InvalidValueError
from perdure.index.contract import Filters
from perdure.index.filters import (
    TEXT_FILTERS,
    ParsedFilters,
    RecordFilters,
    check_cursor,
    parse_filters,
    stamp,
)
from perdure.index.rows import last_change
from perdure.index.sqlite_index import SqliteIndex
from perdure.model import IndexRecord, Level, SeedHit, Uri, check_owner_space
from perdure.model.node import ACCOUNT, OWNER_SPACE
from perdure.testing.index import reference as plain
from perdure.testing.index.reference import MemoryIndex, ReferenceRecord

Hits = list[SeedHit]
A_MOMENT = 0.002
"""Seconds between a look and a change: long enough for another thread to come in between."""
Nodes = Mapping[str, Sequence[IndexRecord]]


class Answering(MemoryIndex):
    """Answers something else than what was found; what, a subclass says."""

    def answered(self, hits: Hits, top_k: int) -> Hits:
        raise NotImplementedError

    def search_by_vector(self, query_vector: Sequence[float], filters: Filters, top_k: int) -> Hits:
        return self.answered(super().search_by_vector(query_vector, filters, top_k), top_k)


class AnsweringWords(MemoryIndex):
    """As the other, for texts."""

    def answered(self, hits: Hits) -> Hits:
        raise NotImplementedError

    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> Hits:
        found = super().search_by_text(words, filters, top_k, context_weight=context_weight)
        return self.answered(found)


class Asking(MemoryIndex):
    """Asks for other words than it was given; which, a subclass says."""

    def asked(self, words: Sequence[str]) -> Sequence[str]:
        raise NotImplementedError

    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> Hits:
        return super().search_by_text(
            self.asked(words), filters, top_k, context_weight=context_weight
        )


class Admitting(MemoryIndex):
    """Lets something else through; what, a subclass says."""

    def sought(self, wanted: ParsedFilters) -> ParsedFilters:
        raise NotImplementedError

    def _admitted(self, wanted: ParsedFilters) -> list[ReferenceRecord]:
        return super()._admitted(self.sought(wanted))


class Filtering(MemoryIndex):
    """Takes other filters than were given; which, a subclass says."""

    def filters(self, filters: Filters) -> Filters:
        raise NotImplementedError

    def search_by_vector(self, query_vector: Sequence[float], filters: Filters, top_k: int) -> Hits:
        return super().search_by_vector(query_vector, self.filters(filters), top_k)

    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> Hits:
        filters = self.filters(filters)
        return super().search_by_text(words, filters, top_k, context_weight=context_weight)

    def search_children(
        self, parent_uri: str, query_vector: Sequence[float], filters: Filters, top_k: int
    ) -> Hits:
        return super().search_children(parent_uri, query_vector, self.filters(filters), top_k)


class Keeping(MemoryIndex):
    """Keeps another record than was put; which, a subclass says."""

    def stored(self, record: IndexRecord) -> IndexRecord:
        raise NotImplementedError

    def upsert(self, records: Sequence[IndexRecord]) -> None:
        super().upsert([self.stored(record) for record in records])


class FoldingAccounts(MemoryIndex):
    """Takes accounts for each other; which, a subclass says."""

    def folded(self, account: str) -> str:
        raise NotImplementedError

    def _put(self, fresh: Any) -> None:  # noqa: ANN401 - not ours
        for stored in fresh:
            account = self.folded(str(stored.record.filters[ACCOUNT]))
            self._accounts.setdefault(account, {})[stored.record.id] = stored

    def _admitted(self, wanted: ParsedFilters) -> list[ReferenceRecord]:
        return super()._admitted(replace(wanted, account=self.folded(wanted.account)))


# ---------------------------------------------------------------- changes


class KeepsNothing(MemoryIndex):
    def upsert(self, records: Sequence[IndexRecord]) -> None:
        pass


class Appends(MemoryIndex):
    """Keeps what has the same id under another key."""

    def _put(self, fresh: Any) -> None:  # noqa: ANN401 - not ours
        for stored in fresh:
            records = self._accounts.setdefault(str(stored.record.filters[ACCOUNT]), {})
            records[f"{stored.record.id}+{len(records)}"] = stored


class KeepsTheFirst(MemoryIndex):
    def _put(self, fresh: Any) -> None:  # noqa: ANN401 - not ours
        for stored in fresh:
            records = self._accounts.setdefault(str(stored.record.filters[ACCOUNT]), {})
            records.setdefault(stored.record.id, stored)


class ForgetsTheWordsOfTheNew(MemoryIndex):
    """Goes on with the text that was first put under an id."""

    def _put(self, fresh: Any) -> None:  # noqa: ANN401 - not ours
        for stored in fresh:
            records = self._accounts.setdefault(str(stored.record.filters[ACCOUNT]), {})
            before = records.get(stored.record.id, stored)
            record = replace(stored.record, text=before.record.text)
            records[stored.record.id] = replace(stored, record=record)


class LeavesTheOldUri(MemoryIndex):
    def __init__(self) -> None:
        super().__init__()
        self._ever: set[str] = set()

    def upsert(self, records: Sequence[IndexRecord]) -> None:
        super().upsert(records)
        self._ever |= {record.uri for record in records}

    def stamps(self, account_id: str) -> dict[str, str]:
        return {uri: stamp([]) for uri in self._ever} | super().stamps(account_id)


class PutsOneByOne(MemoryIndex):
    def upsert(self, records: Sequence[IndexRecord]) -> None:
        for record in records:
            super().upsert([record])


class DeletesNothing(MemoryIndex):
    def delete(self, ids: Sequence[str]) -> None:
        pass


class DeletesTheFirstOnly(MemoryIndex):
    def delete(self, ids: Sequence[str]) -> None:
        super().delete(list(ids)[:1])


class DeletesByTheBeginning(MemoryIndex):
    def delete(self, ids: Sequence[str]) -> None:
        every = {id_ for records in self._accounts.values() for id_ in records}
        super().delete([each for each in every if each.startswith(tuple(ids))])


class DeletesTheWholeNode(MemoryIndex):
    def delete(self, ids: Sequence[str]) -> None:
        for account in self._accounts:
            uris = {record.uri for record in self.read(account, ids).values()}
            self._forget(account, partial(self._is_of, uris))

    @staticmethod
    def _is_of(uris: set[str], stored: ReferenceRecord) -> bool:
        return stored.record.uri in uris


class MissesWhatIsGone(MemoryIndex):
    def delete(self, ids: Sequence[str]) -> None:
        for records in self._accounts.values():
            for id_ in ids:
                del records[id_]


class FoldsIds(MemoryIndex):
    def _put(self, fresh: Any) -> None:  # noqa: ANN401 - not ours
        for stored in fresh:
            records = self._accounts.setdefault(str(stored.record.filters[ACCOUNT]), {})
            records[unicodedata.normalize("NFC", stored.record.id)] = stored


# ---------------------------------------------------------------- vectors


class ForgetsPayloads(Answering):
    def answered(self, hits: Hits, top_k: int) -> Hits:
        return [replace(hit, payload={}) for hit in hits]


class SaysTheSameOfAllLevels(Answering):
    def answered(self, hits: Hits, top_k: int) -> Hits:
        return [replace(hit, level=Level.CONTENT) for hit in hits]


class SearchesOneLevelOnly(Answering):
    def answered(self, hits: Hits, top_k: int) -> Hits:
        return [hit for hit in hits if not hits or hit.level == hits[0].level]


class ReturnsTheWorstFirst(Answering):
    def answered(self, hits: Hits, top_k: int) -> Hits:
        return hits[::-1]


class LeavesOutTheOpposite(Answering):
    def answered(self, hits: Hits, top_k: int) -> Hits:
        return [hit for hit in hits if hit.score > 0]


class RoundsScores(Answering):
    def answered(self, hits: Hits, top_k: int) -> Hits:
        return [replace(hit, score=round(hit.score, 3)) for hit in hits]


class ScoresByLength(MemoryIndex):
    """Multiplies instead of comparing directions."""

    def _nearest(self, query_vector: Sequence[float], among: Any, top_k: int) -> Hits:  # noqa: ANN401 - not ours
        scored = [
            (sum(a * b for a, b in zip(query_vector, stored.record.vector, strict=True)), stored)
            for stored in among
            if len(stored.record.vector) == len(query_vector)
        ]
        return plain._best(scored, top_k)


class ReturnsOneMore(MemoryIndex):
    def search_by_vector(self, query_vector: Sequence[float], filters: Filters, top_k: int) -> Hits:
        return super().search_by_vector(query_vector, filters, top_k + 1)


class ReturnsTiesAsTheyCame(MemoryIndex):
    def _nearest(self, query_vector: Sequence[float], among: Any, top_k: int) -> Hits:  # noqa: ANN401 - not ours
        alike = list(among)
        hits = super()._nearest(query_vector, alike, top_k)
        order = [stored.record.id for stored in alike]
        return sorted(hits, key=lambda hit: (-hit.score, order.index(hit.id)))


class CutsTiesAsTheyCame(MemoryIndex):
    def _nearest(self, query_vector: Sequence[float], among: Any, top_k: int) -> Hits:  # noqa: ANN401 - not ours
        alike = list(among)
        every = super()._nearest(query_vector, alike, len(alike))
        order = [stored.record.id for stored in alike]
        chosen = sorted(every, key=lambda hit: (-hit.score, order.index(hit.id)))[:top_k]
        return [hit for hit in every if hit in chosen]


class FillsVectorsUp(Keeping):
    def stored(self, record: IndexRecord) -> IndexRecord:
        return replace(record, vector=(*record.vector, 0.0, 0.0, 1.0)[:3])


class TakesZeroForEverything(MemoryIndex):
    def search_by_vector(self, query_vector: Sequence[float], filters: Filters, top_k: int) -> Hits:
        return super().search_by_vector(
            query_vector if any(query_vector) else (1.0, 0.0, 0.0), filters, top_k
        )


class TakesAnySearch(MemoryIndex):
    def search_by_vector(self, query_vector: Sequence[float], filters: Filters, top_k: int) -> Hits:
        try:
            return super().search_by_vector(query_vector, filters, top_k)
        except InvalidValueError:
            return []

    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> Hits:
        try:
            return super().search_by_text(words, filters, top_k, context_weight=context_weight)
        except InvalidValueError:
            return []


# ---------------------------------------------------------------- children


class Finding(MemoryIndex):
    """Takes other places for the parent of a record; which, a subclass says."""

    def is_below(self, record: IndexRecord, parent: Uri) -> bool:
        raise NotImplementedError

    def search_children(
        self, parent_uri: str, query_vector: Sequence[float], filters: Filters, top_k: int
    ) -> Hits:
        admitted = self._admitted(parse_filters(filters))
        parent = Uri.parse(parent_uri)
        children = [stored for stored in admitted if self.is_below(stored.record, parent)]
        return self._nearest(query_vector, children, top_k)


class FindsAllThatIsBelow(Finding):
    def is_below(self, record: IndexRecord, parent: Uri) -> bool:
        return parent.contains(Uri.parse(record.uri))


class FindsByTheBeginning(Finding):
    def is_below(self, record: IndexRecord, parent: Uri) -> bool:
        above = str(Uri.parse(record.uri).parent) if record.level < 2 else record.uri
        return above.startswith(str(parent))


class FindsTheAbstractBelowItsNode(Finding):
    def is_below(self, record: IndexRecord, parent: Uri) -> bool:
        place = Uri.parse(record.uri)
        return place == parent or (record.level < 2 and place.parent == parent)


class FindsTheAccountBelowItself(Finding):
    def is_below(self, record: IndexRecord, parent: Uri) -> bool:
        place = Uri.parse(record.uri)
        return parent == (place if record.level == 2 else place.parent)


class FiltersNoChildren(MemoryIndex):
    def search_children(
        self, parent_uri: str, query_vector: Sequence[float], filters: Filters, top_k: int
    ) -> Hits:
        less = {name: value for name, value in filters.items() if name in {ACCOUNT, OWNER_SPACE}}
        return super().search_children(parent_uri, query_vector, less, top_k)


class TakesAnyParent(MemoryIndex):
    def search_children(
        self, parent_uri: str, query_vector: Sequence[float], filters: Filters, top_k: int
    ) -> Hits:
        with suppress(InvalidValueError):
            return super().search_children(parent_uri, query_vector, filters, top_k)
        return []


# ---------------------------------------------------------------- words


class WantsAllWords(MemoryIndex):
    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> Hits:
        found = [
            super(WantsAllWords, self).search_by_text([word], filters, top_k) for word in words
        ]
        every = super().search_by_text(words, filters, top_k, context_weight=context_weight)
        return [hit for hit in every if all(hit.id in {h.id for h in hits} for hits in found)]


class ComparesLetterByLetter(MemoryIndex):
    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> Hits:
        hits = super().search_by_text(words, filters, top_k, context_weight=context_weight)
        return [hit for hit in hits if any(word in hit.text.split() for word in words)]


class TakesAStarForTheRest(Asking):
    def asked(self, words: Sequence[str]) -> Sequence[str]:
        return [f"{word[:-1]}abet" if word == "alph*" else word for word in words]


class TakesSyntax(Asking):
    def asked(self, words: Sequence[str]) -> Sequence[str]:
        return [part for word in words for part in word.replace('"', " ").split(" OR ")]


class FindsAllForNothing(MemoryIndex):
    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> Hits:
        if not any(any(map(str.isalnum, word)) for word in words):
            return self.search_by_vector((1.0, 0.0, 0.0), filters, top_k)
        return super().search_by_text(words, filters, top_k, context_weight=context_weight)


class TakesPhrasesApart(Asking):
    def asked(self, words: Sequence[str]) -> Sequence[str]:
        return [part for word in words for part in word.replace("\0", "-").split("-")]


class CountsWordsOnly(AnsweringWords):
    def answered(self, hits: Hits) -> Hits:
        return sorted((replace(hit, score=1.0) for hit in hits), key=lambda hit: hit.id)


class ScoresAsTheWorld(AnsweringWords):
    """Has scores of its own, in the right order."""

    def answered(self, hits: Hits) -> Hits:
        return [replace(hit, score=hit.score * 2) for hit in hits]


class CallsNothingRare(MemoryIndex):
    def ceiling(self, account_id: str, words: Sequence[str]) -> float:
        return float(len(words))


class ForgetsTheContext(Keeping):
    def stored(self, record: IndexRecord) -> IndexRecord:
        return replace(record, context="")


class WeighsContextAsText(MemoryIndex):
    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> Hits:
        return super().search_by_text(words, filters, top_k)


class ReturnsEqualTextsAsTheyCame(AnsweringWords):
    def answered(self, hits: Hits) -> Hits:
        order = [id_ for records in self._accounts.values() for id_ in records]
        return sorted(hits, key=lambda hit: (-hit.score, order.index(hit.id)))


class CutsEqualTextsAsTheyCame(MemoryIndex):
    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> Hits:
        every = super().search_by_text(words, filters, 999, context_weight=context_weight)
        order = [id_ for records in self._accounts.values() for id_ in records]
        chosen = sorted(every, key=lambda hit: (-hit.score, order.index(hit.id)))[:top_k]
        return [hit for hit in every if hit in chosen]


class CountsWhatWasDeleted(MemoryIndex):
    def __init__(self) -> None:
        super().__init__()
        self._deleted = 0

    def delete(self, ids: Sequence[str]) -> None:
        self._deleted += len(ids)
        super().delete(ids)

    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> Hits:
        hits = super().search_by_text(words, filters, top_k, context_weight=context_weight)
        return [replace(hit, score=hit.score + self._deleted) for hit in hits]


class CountsAllAccounts(MemoryIndex):
    def _fields(self, account: str, levels: frozenset[Level]) -> dict[str, plain.Fields]:
        every = [stored for records in self._accounts.values() for stored in records.values()]
        return {
            stored.record.id: stored.fields for stored in every if stored.record.level in levels
        }


class ComparesAllLevels(MemoryIndex):
    def _fields(self, account: str, levels: frozenset[Level]) -> dict[str, plain.Fields]:
        return super()._fields(account, frozenset(Level))


class MatchesWithTheWorst(MemoryIndex):
    def match(self, words: Sequence[str], filters: Filters, top_k: int) -> dict[str, float]:
        return {hit.uri: hit.score for hit in self.search_by_text(words, filters, top_k)}


# ---------------------------------------------------------------- filters


class DropsTheSession(Admitting):
    def sought(self, wanted: ParsedFilters) -> ParsedFilters:
        texts = {name: each for name, each in wanted.texts.items() if name != "session_id"}
        return replace(wanted, texts=texts)


class FoldsValues(Admitting):
    def sought(self, wanted: ParsedFilters) -> ParsedFilters:
        texts = {
            name: each | {value.upper() for value in each} for name, each in wanted.texts.items()
        }
        return replace(wanted, texts=texts)


class TakesAbsentForEmpty(MemoryIndex):
    def _put(self, fresh: Any) -> None:  # noqa: ANN401 - not ours
        names = ("context_type", "category", "session_id", "parent_uri")
        empty = dict.fromkeys(names, "")
        for stored in fresh:
            filed = RecordFilters(
                {**empty, **stored.filed.texts}, stored.filed.since, stored.filed.until
            )
            super()._put([replace(stored, filed=filed)])


class TakesAListForItsFirst(Filtering):
    def filters(self, filters: Filters) -> Filters:
        return {
            name: value[0] if isinstance(value, list) and value and name != OWNER_SPACE else value
            for name, value in filters.items()
        }


class TakesAnEmptyListForAll(Filtering):
    def filters(self, filters: Filters) -> Filters:
        return {name: value for name, value in filters.items() if value != []}


class DropsTheLevel(Admitting):
    def sought(self, wanted: ParsedFilters) -> ParsedFilters:
        return replace(wanted, levels=None)


class DropsTheUri(Admitting):
    def sought(self, wanted: ParsedFilters) -> ParsedFilters:
        texts = {name: each for name, each in wanted.texts.items() if name != "uri"}
        return replace(wanted, texts=texts)


class AppliesOneFilterOnly(Admitting):
    def sought(self, wanted: ParsedFilters) -> ParsedFilters:
        names = [OWNER_SPACE, *sorted(wanted.texts.keys() - {OWNER_SPACE})[:1]]
        return replace(wanted, texts={name: wanted.texts[name] for name in names})


class FiltersAfterTheLimit(MemoryIndex):
    def search_by_vector(self, query_vector: Sequence[float], filters: Filters, top_k: int) -> Hits:
        less = {name: value for name, value in filters.items() if name in {ACCOUNT, OWNER_SPACE}}
        best = super().search_by_vector(query_vector, less, top_k)
        admitted = {stored.record.id for stored in self._admitted(parse_filters(filters))}
        return [hit for hit in best if hit.id in admitted]


class FiltersTextsAfterTheLimit(MemoryIndex):
    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> Hits:
        less = {name: value for name, value in filters.items() if name in {ACCOUNT, OWNER_SPACE}}
        best = super().search_by_text(words, less, top_k, context_weight=context_weight)
        admitted = {stored.record.id for stored in self._admitted(parse_filters(filters))}
        return [hit for hit in best if hit.id in admitted]


class DropsTheOwner(Admitting):
    def sought(self, wanted: ParsedFilters) -> ParsedFilters:
        texts = {name: each for name, each in wanted.texts.items() if name != OWNER_SPACE}
        return replace(wanted, texts=texts)


class IgnoresTime(Admitting):
    def sought(self, wanted: ParsedFilters) -> ParsedFilters:
        return replace(wanted, times=None)


class HoldsAMomentTooLong(MemoryIndex):
    def _put(self, fresh: Any) -> None:  # noqa: ANN401 - not ours
        super()._put(
            [
                replace(stored, filed=replace(stored.filed, until=stored.filed.until + 1))
                for stored in fresh
            ]
        )


class PassesOverTheZone(Filtering):
    def filters(self, filters: Filters) -> Filters:
        time = filters.get("valid_at")
        is_time = isinstance(time, str) and "T" in time
        return {**filters, "valid_at": f"{str(time)[:19]}Z"} if is_time else filters


class PassesOverWhatItDoesNotKnow(Filtering):
    def filters(self, filters: Filters) -> Filters:
        known = (*TEXT_FILTERS, ACCOUNT, "uri", "level", "valid_at")
        return {name: value for name, value in filters.items() if name in known}


class TakesTruthsForTexts(Filtering):
    def filters(self, filters: Filters) -> Filters:
        return {
            name: str(value) if isinstance(value, bool) or value is None else value
            for name, value in filters.items()
        }


class SearchesForEverybody(Filtering):
    def filters(self, filters: Filters) -> Filters:
        return {ACCOUNT: "acme", OWNER_SPACE: "user:ana", **filters}


class FilesUnderAnything(Keeping):
    def stored(self, record: IndexRecord) -> IndexRecord:
        stored = {name: record.filters[name] for name in (ACCOUNT, OWNER_SPACE)}
        return replace(record, filters=stored)


# ---------------------------------------------------------------- tenants


class FoldsCase(FoldingAccounts):
    def folded(self, account: str) -> str:
        return account.lower()


class DropsOddCharacters(FoldingAccounts):
    def folded(self, account: str) -> str:
        return "".join(each for each in account if each.isalnum())


class ComposesAccounts(FoldingAccounts):
    def folded(self, account: str) -> str:
        return unicodedata.normalize("NFC", account)


class TakesTheAccountOfTheFirst(MemoryIndex):
    def upsert(self, records: Sequence[IndexRecord]) -> None:
        account = records[0].filters[ACCOUNT]
        super().upsert([each for each in records if each.filters[ACCOUNT] == account])


class SearchesBelowInTheParentsAccount(Filtering):
    def search_children(
        self, parent_uri: str, query_vector: Sequence[float], filters: Filters, top_k: int
    ) -> Hits:
        own = {**filters, ACCOUNT: Uri.parse(parent_uri).account}
        return MemoryIndex.search_children(self, parent_uri, query_vector, own, top_k)

    def filters(self, filters: Filters) -> Filters:
        return filters


class KeepsTheCursorOfDeleted(MemoryIndex):
    def delete_account_data(self, account_id: str) -> int:
        return len(self._accounts.pop(account_id, {}))


class CountsNoDeleted(MemoryIndex):
    def delete_account_data(self, account_id: str) -> int:
        super().delete_account_data(account_id)
        return 0


class DeletesAccountsByTheBeginning(MemoryIndex):
    def delete_account_data(self, account_id: str) -> int:
        alike = [account for account in self._accounts if account.startswith(account_id)]
        return sum(super(DeletesAccountsByTheBeginning, self).delete_account_data(a) for a in alike)


class RefusesDeletedAccounts(MemoryIndex):
    def __init__(self) -> None:
        super().__init__()
        self._deleted: set[str] = set()

    def delete_account_data(self, account_id: str) -> int:
        self._deleted.add(account_id)
        return super().delete_account_data(account_id)

    def _admitted(self, wanted: ParsedFilters) -> list[ReferenceRecord]:
        return [] if wanted.account in self._deleted else super()._admitted(wanted)


class DeletesOwnersEverywhere(MemoryIndex):
    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        return sum(
            super(DeletesOwnersEverywhere, self).delete_by_owner_space(account, owner_space)
            for account in (account_id, *self._accounts.keys() - {account_id})
        )


class DeletesOwnersByTheBeginning(MemoryIndex):
    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        check_owner_space(owner_space)
        return self._forget(
            account_id, lambda stored: owner_space.startswith(stored.filed.texts[OWNER_SPACE])
        )


class DeletesTheAgentToo(MemoryIndex):
    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        deleted = super().delete_by_owner_space(account_id, owner_space)
        super().delete_by_owner_space(account_id, owner_space.replace("user:", "agent:"))
        return deleted


class TakesAnyOwner(MemoryIndex):
    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        return self._forget(
            account_id, lambda stored: stored.filed.texts[OWNER_SPACE].endswith(owner_space)
        )


class RemembersOwners(MemoryIndex):
    def __init__(self) -> None:
        super().__init__()
        self._ever: set[str] = set()

    def upsert(self, records: Sequence[IndexRecord]) -> None:
        super().upsert(records)
        self._ever |= {str(record.filters[OWNER_SPACE]) for record in records}

    def owner_spaces(self, account_id: str) -> frozenset[str]:
        return frozenset(self._ever)


# ---------------------------------------------------------------- keeping


class Replacing(MemoryIndex):
    """Replaces nodes as a subclass defines it."""

    def replace(
        self,
        account_id: str,
        nodes: Nodes,
        *,
        cursor: int | None = None,
        expect: int | None = None,
        unlogged: Collection[str] = (),
    ) -> None:
        del unlogged
        self.replaced(account_id, nodes, cursor, expect)

    def replaced(
        self, account_id: str, nodes: Nodes, cursor: int | None, expect: int | None
    ) -> None:
        raise NotImplementedError

    def right(self, account_id: str, nodes: Nodes, cursor: int | None, expect: int | None) -> None:
        MemoryIndex.replace(self, account_id, nodes, cursor=cursor, expect=expect)


class LeavesOldPassages(Replacing):
    def replaced(
        self, account_id: str, nodes: Nodes, cursor: int | None, expect: int | None
    ) -> None:
        gone = {uri: records for uri, records in nodes.items() if not records}
        self.right(account_id, gone, cursor, expect)
        self.upsert([record for records in nodes.values() for record in records])


class LeavesWhatIsGone(Replacing):
    def replaced(
        self, account_id: str, nodes: Nodes, cursor: int | None, expect: int | None
    ) -> None:
        there = {uri: records for uri, records in nodes.items() if records}
        self.right(account_id, there, cursor, expect)


class ReplacesTheAccount(Replacing):
    def replaced(
        self, account_id: str, nodes: Nodes, cursor: int | None, expect: int | None
    ) -> None:
        if nodes:
            self._accounts.pop(account_id, None)
        self.right(account_id, nodes, cursor, expect)


class ForgetsTheCursor(Replacing):
    def replaced(
        self, account_id: str, nodes: Nodes, cursor: int | None, expect: int | None
    ) -> None:
        self.right(account_id, nodes, cursor or 0, expect)


class OnlyMovesTheCursorOn(Replacing):
    def replaced(
        self, account_id: str, nodes: Nodes, cursor: int | None, expect: int | None
    ) -> None:
        later = None if cursor is None else max(cursor, self.cursor(account_id))
        self.right(account_id, nodes, later, expect)


class HasOneCursor(MemoryIndex):
    def cursor(self, account_id: str) -> int:
        return max(self._cursors.values(), default=0)


class ExpectsNothing(Replacing):
    def replaced(
        self, account_id: str, nodes: Nodes, cursor: int | None, expect: int | None
    ) -> None:
        self.right(account_id, nodes, cursor, None)


class RefusesAfterTheChange(Replacing):
    def replaced(
        self, account_id: str, nodes: Nodes, cursor: int | None, expect: int | None
    ) -> None:
        before = self.cursor(account_id)
        self.right(account_id, nodes, None, None)
        check_cursor(before, expect)
        self.right(account_id, {}, cursor, None)


class TakesRecordsOfOtherNodes(Replacing):
    def replaced(
        self, account_id: str, nodes: Nodes, cursor: int | None, expect: int | None
    ) -> None:
        own: dict[str, list[IndexRecord]] = {uri: [] for uri in nodes}
        for record in (record for records in nodes.values() for record in records):
            own.setdefault(record.uri, []).append(record)
        self.right(account_id, own, cursor, expect)


class MovesTheCursorFirst(Replacing):
    def replaced(
        self, account_id: str, nodes: Nodes, cursor: int | None, expect: int | None
    ) -> None:
        self.right(account_id, {}, cursor, expect)
        self.right(account_id, nodes, None, None)


class Marking(MemoryIndex):
    """Marks unlogged URIs as a subclass defines it."""

    def replace(
        self,
        account_id: str,
        nodes: Nodes,
        *,
        cursor: int | None = None,
        expect: int | None = None,
        unlogged: Collection[str] = (),
    ) -> None:
        marked = self.marked(account_id, nodes, frozenset(unlogged))
        if not marked.issubset(nodes):
            nodes = {**dict.fromkeys(marked, ()), **nodes}
        super().replace(account_id, nodes, cursor=cursor, expect=expect, unlogged=marked)

    def marked(self, account_id: str, nodes: Nodes, unlogged: frozenset[str]) -> frozenset[str]:
        raise NotImplementedError


class NeverMarks(Marking):
    def marked(self, account_id: str, nodes: Nodes, unlogged: frozenset[str]) -> frozenset[str]:
        del account_id, nodes, unlogged
        return frozenset()


class NeverUnmarks(Marking):
    def marked(self, account_id: str, nodes: Nodes, unlogged: frozenset[str]) -> frozenset[str]:
        del nodes
        return unlogged | (self.unlogged(account_id) or frozenset())


class MarksBeforeItRefuses(MemoryIndex):
    def replace(
        self,
        account_id: str,
        nodes: Nodes,
        *,
        cursor: int | None = None,
        expect: int | None = None,
        unlogged: Collection[str] = (),
    ) -> None:
        self._unlogged.setdefault(account_id, set()).update(unlogged)
        super().replace(account_id, nodes, cursor=cursor, expect=expect, unlogged=unlogged)


class NamesTheDeleted(MemoryIndex):
    def _forget_unlogged(self, account: str) -> None:
        pass


class ForgetsThatItForgot(MemoryIndex):
    def unlogged(self, account_id: str) -> frozenset[str]:
        return super().unlogged(account_id) or frozenset()


class ReadsWithoutVectors(MemoryIndex):
    def read(self, account_id: str, ids: Sequence[str]) -> dict[str, IndexRecord]:
        found = super().read(account_id, ids)
        return {id_: replace(record, vector=()) for id_, record in found.items()}


class ReadsAllAccounts(MemoryIndex):
    def read(self, account_id: str, ids: Sequence[str]) -> dict[str, IndexRecord]:
        return {
            id_: record
            for account in self._accounts
            for id_, record in super(ReadsAllAccounts, self).read(account, ids).items()
        }


class RewritesTimes(Keeping):
    def stored(self, record: IndexRecord) -> IndexRecord:
        filters = {
            name: value.replace("Z", "+00:00") if name == "valid_from" else value  # type: ignore[union-attr]
            for name, value in record.filters.items()
        }
        return replace(record, filters=filters)


class KeepsFractions(MemoryIndex):
    def upsert(self, records: Sequence[IndexRecord]) -> None:
        super().upsert(records)
        for record in records:
            stored = self._accounts[str(record.filters[ACCOUNT])]
            stored[record.id] = replace(stored[record.id], record=record)


class StampsOnlyWhatReplaces(Replacing):
    """Forgets to stamp what `upsert` and `delete` change."""

    def __init__(self) -> None:
        super().__init__()
        self._stamps: dict[str, dict[str, str]] = {}

    def replaced(
        self, account_id: str, nodes: Nodes, cursor: int | None, expect: int | None
    ) -> None:
        self.right(account_id, nodes, cursor, expect)
        self._stamps[account_id] = super().stamps(account_id)

    def stamps(self, account_id: str) -> dict[str, str]:
        return self._stamps.get(account_id, {})


class StampsTheTextsOnly(MemoryIndex):
    def stamps(self, account_id: str) -> dict[str, str]:
        return {
            uri: stamp([replace(record, payload={}) for record in self._of(account_id, uri)])
            for uri in super().stamps(account_id)
        }

    def _of(self, account_id: str, uri: str) -> list[IndexRecord]:
        return [stored.record for stored in self._all_of(account_id) if stored.record.uri == uri]


class StampsTheHistory(MemoryIndex):
    def __init__(self) -> None:
        super().__init__()
        self._changes = 0

    def _put(self, fresh: Any) -> None:  # noqa: ANN401 - not ours
        self._changes += 1
        super()._put(fresh)

    def stamps(self, account_id: str) -> dict[str, str]:
        return {uri: f"{each}{self._changes}" for uri, each in super().stamps(account_id).items()}


class SuspectsEverything(MemoryIndex):
    def check(self, account_id: str) -> list[str]:
        return sorted(self.stamps(account_id))


class LooksWithoutFilters(MemoryIndex):
    def hits_by_id(self, ids: Sequence[str], filters: Filters) -> Hits:
        everyone = {ACCOUNT: filters[ACCOUNT], OWNER_SPACE: [*self.owner_spaces("acme")]}
        return super().hits_by_id(ids, everyone)


class LooksInTheOrderAsked(MemoryIndex):
    def hits_by_id(self, ids: Sequence[str], filters: Filters) -> Hits:
        return sorted(super().hits_by_id(ids, filters), key=lambda hit: list(ids).index(hit.id))


class NotesTheOldestFirst(MemoryIndex):
    def briefing_hits(
        self, filters: Filters, top_k: int, names: Collection[str] | None = None
    ) -> Hits:
        return super().briefing_hits(filters, 1000, names)[::-1][:top_k]


class NotesForEverybody(MemoryIndex):
    def briefing_hits(
        self, filters: Filters, top_k: int, names: Collection[str] | None = None
    ) -> Hits:
        return super().briefing_hits({**filters, "owner_space": "user:ana"}, top_k, names)


class NotesWhateverIsNamed(MemoryIndex):
    def briefing_hits(
        self, filters: Filters, top_k: int, names: Collection[str] | None = None
    ) -> Hits:
        del names
        return super().briefing_hits(filters, top_k)


class LeadsByAnyName(MemoryIndex):
    def uris_linking_to(self, account_id: str, names: Collection[str]) -> list[str]:
        every = [stored.record for stored in self._all_of(account_id)]
        return sorted({r.uri for r in every if any(name in str(r.payload) for name in names)})


class LeadsFromWhatIsGone(MemoryIndex):
    def uris_linking_to(self, account_id: str, names: Collection[str]) -> list[str]:
        found: dict[str, list[str]] = self.__dict__.setdefault("found", {})
        return found.setdefault(str(names), super().uris_linking_to(account_id, names))


# ---------------------------------------------------------------- together


class CopiesToPut(Replacing):
    """Reads all, adds to the copy and puts it back: who comes in between is lost."""

    def replaced(
        self, account_id: str, nodes: Nodes, cursor: int | None, expect: int | None
    ) -> None:
        copy = dict(self._accounts.get(account_id, {}))
        time.sleep(A_MOMENT)
        self.right(account_id, nodes, cursor, expect)
        mine = {
            id_: stored
            for id_, stored in self._accounts.get(account_id, {}).items()
            if stored.record.uri in nodes
        }
        self._accounts[account_id] = copy | mine


class StartsAnew(SqliteIndex):
    def __init__(self, folder: str) -> None:
        for path in Path(folder).glob("*"):
            path.unlink()
        super().__init__(folder)


class ReplacesNodeByNode(SqliteIndex):
    def replace(
        self,
        account_id: str,
        nodes: Nodes,
        *,
        cursor: int | None = None,
        expect: int | None = None,
        unlogged: Collection[str] = (),
    ) -> None:
        del unlogged
        for uri, records in nodes.items():
            super().replace(account_id, {uri: records})
        super().replace(account_id, {}, cursor=cursor, expect=expect)


class SkipsWritesAfterOthers(SqliteIndex):
    """Skips its own write if another process wrote before, and reports success."""

    _written = 0

    def upsert(self, records: Sequence[IndexRecord]) -> None:
        file = self._databases._opened(str(records[0].filters[ACCOUNT]))
        with file.reading() as db:
            is_alone = last_change(db, file.account).seq == self._written
        if is_alone:
            super().upsert(records)
            self._written += 1
