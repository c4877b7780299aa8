"""A simple index in memory, which other indexes are compared with."""

import math
import threading
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from perdure.dataclass import dataclass, replace
from perdure.index.contract import Answer, Filters, check_weight, check_words
from perdure.index.filters import (
    URI,
    ParsedFilters,
    RecordFilters,
    check_cursor,
    check_nodes,
    check_unlogged,
    parent_uri,
    parse_filters,
    parse_record_filters,
    stamp,
)
from perdure.index.sql import idf, stems
from perdure.index.vectors import components, quantise, squared_length
from perdure.model import IndexRecord, Level, SeedHit, Uri, check_owner_space
from perdure.model.node import ACCOUNT, OWNER_SPACE
from perdure.model.uri import check_id
from perdure.model.values import JSON, count

Fields = tuple[tuple[str, ...], tuple[str, ...]]
"""The stems of a text and of its context."""

_PASSAGES = frozenset({Level.CONTENT})
_KINDS = tuple(frozenset({level}) for level in Level)
"""Levels with word statistics of their own."""
_K1, _B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class ReferenceRecord:
    record: IndexRecord
    filed: RecordFilters
    vector: bytes

    @property
    def fields(self) -> Fields:
        return stems(self.record.text), stems(self.record.context)


class MemoryIndex:
    """A `NodeIndex` in memory. Thread-safe."""

    def __init__(self) -> None:
        self._accounts: dict[str, dict[str, ReferenceRecord]] = {}
        self._cursors: dict[str, int] = {}
        self._unlogged: dict[str, set[str]] = {}
        self._unknown: set[str] = set()
        """Accounts of which it is no longer known what is unlogged."""
        self._lock = threading.RLock()

    def close(self) -> None:
        """Do nothing: no resource is open."""

    # ------------------------------------------------------------ changes
    def upsert(self, records: Sequence[IndexRecord]) -> None:
        fresh = [_reference(record) for record in records]
        with self._lock:
            self._put(fresh)

    def delete(self, ids: Sequence[str]) -> None:
        with self._lock:
            for records in self._accounts.values():
                for id_ in ids:
                    records.pop(id_, None)

    def replace(
        self,
        account_id: str,
        nodes: Mapping[str, Sequence[IndexRecord]],
        *,
        cursor: int | None = None,
        expect: int | None = None,
        unlogged: Collection[str] = (),
    ) -> None:
        account = check_id(account_id, "account")
        check_unlogged(unlogged, nodes)
        fresh = [_reference(record) for record in check_nodes(account, nodes)]
        if cursor is not None:
            count(cursor, "cursor")
        with self._lock:
            check_cursor(self._cursors.get(account, 0), expect)
            self._forget(account, lambda stored: stored.record.uri in nodes)
            self._put(fresh)
            marked = self._unlogged.get(account, set())
            self._unlogged[account] = (marked - nodes.keys()) | set(unlogged)
            if cursor is not None:
                self._cursors[account] = cursor

    def delete_account_data(self, account_id: str) -> int:
        account = check_id(account_id, "account")
        with self._lock:
            self._cursors.pop(account, None)
            self._unlogged.pop(account, None)
            self._unknown.discard(account)
            return len(self._accounts.pop(account, {}))

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        account, owner = check_id(account_id, "account"), check_owner_space(owner_space)
        with self._lock:
            count = self._forget(account, lambda stored: stored.filed.texts[OWNER_SPACE] == owner)
            self._forget_unlogged(account)
            return count

    def _forget_unlogged(self, account: str) -> None:
        """Delete marks of URIs without records: their owner is not known."""
        there = {stored.record.uri for stored in self._accounts.get(account, {}).values()}
        marked = self._unlogged.get(account, set())
        self._unlogged[account] = marked & there
        if marked - there:
            self._unknown.add(account)

    def _put(self, fresh: Iterable[ReferenceRecord]) -> None:
        for stored in fresh:
            account = str(stored.record.filters[ACCOUNT])
            self._accounts.setdefault(account, {})[stored.record.id] = stored

    def _forget(self, account: str, which: Callable[[ReferenceRecord], bool]) -> int:
        records = self._accounts.get(account, {})
        gone = [id_ for id_, stored in records.items() if which(stored)]
        for id_ in gone:
            del records[id_]
        return len(gone)

    # ------------------------------------------------------------ searches
    def search_by_vector(
        self, query_vector: Sequence[float], filters: Filters, top_k: int
    ) -> list[SeedHit]:
        return self._nearest(query_vector, self._admitted(parse_filters(filters)), top_k)

    def search_children(
        self, parent_uri: str, query_vector: Sequence[float], filters: Filters, top_k: int
    ) -> list[SeedHit]:
        parent = str(Uri.parse(parent_uri))
        admitted = self._admitted(parse_filters(filters))
        children = [stored for stored in admitted if _above(stored.record) == parent]
        return self._nearest(query_vector, children, top_k)

    def search_by_text(
        self, words: Sequence[str], filters: Filters, top_k: int, *, context_weight: float = 1.0
    ) -> list[SeedHit]:
        phrases = [stems(word) for word in check_words(words)]
        wanted, weight = parse_filters(filters), check_weight(context_weight)
        with self._lock:
            given = [phrase for phrase in phrases if phrase]
            found = {
                id_: score
                for levels in _KINDS
                for id_, score in self._scores(given, wanted.account, levels, weight).items()
            }
            scored = [
                (found[stored.record.id], stored)
                for stored in self._admitted(wanted)
                if stored.record.id in found
            ]
        return _best(scored, top_k)

    def match(self, words: Sequence[str], filters: Filters, top_k: int) -> dict[str, float]:
        best: dict[str, float] = {}
        for hit in self.search_by_text(words, filters, top_k):
            best.setdefault(hit.uri, hit.score)
        return best

    def _admitted(self, wanted: ParsedFilters) -> list[ReferenceRecord]:
        with self._lock:
            records = list(self._accounts.get(wanted.account, {}).values())
        return [stored for stored in records if admits(wanted, stored.record, stored.filed)]

    def _nearest(
        self, query_vector: Sequence[float], among: Iterable[ReferenceRecord], top_k: int
    ) -> list[SeedHit]:
        query = quantise(query_vector)
        alike = [stored for stored in among if query and len(stored.vector) == len(query)]
        return _best([(cosine(query, stored.vector), stored) for stored in alike], top_k)

    def _scores(
        self,
        phrases: Sequence[tuple[str, ...]],
        account: str,
        levels: frozenset[Level],
        weight: float,
    ) -> dict[str, float]:
        """Return the BM25 of each record of these levels that has one of the phrases, by id."""
        fields = self._fields(account, levels)
        lengths = {id_: len(text) + len(context) for id_, (text, context) in fields.items()}
        average = sum(lengths.values()) / max(1, len(lengths))
        scores: dict[str, float] = {}
        for phrase in phrases:
            hits = _having(phrase, fields)
            rare = idf(len(fields), len(hits))
            for id_, (in_text, in_context) in hits.items():
                often = in_text + weight * in_context
                share = often * (_K1 + 1) / (often + _K1 * (1 - _B + _B * lengths[id_] / average))
                scores[id_] = scores.get(id_, 0.0) + rare * share
        return scores

    def ceiling(self, account_id: str, words: Sequence[str]) -> float:
        phrases = [stems(word) for word in check_words(words)]
        fields = self._fields(check_id(account_id, "account"), _PASSAGES)
        if not fields:
            return 0.0
        hits = [len(_having(phrase, fields)) for phrase in phrases if phrase]
        return sum(idf(len(fields), count) for count in hits)

    def _fields(self, account: str, levels: frozenset[Level]) -> dict[str, Fields]:
        with self._lock:
            stored = list(self._accounts.get(account, {}).values())
        return {each.record.id: each.fields for each in stored if each.record.level in levels}

    # ------------------------------------------------------------ what is stored
    def cursor(self, account_id: str) -> int:
        return self._cursors.get(check_id(account_id, "account"), 0)

    def read_snapshot(self, account_id: str, question: Callable[[], Answer]) -> Answer:
        check_id(account_id, "account")
        return question()

    def owner_spaces(self, account_id: str) -> frozenset[str]:
        return frozenset(stored.filed.texts[OWNER_SPACE] for stored in self._all_of(account_id))

    def hits_by_id(self, ids: Sequence[str], filters: Filters) -> list[SeedHit]:
        chosen = set(ids)
        found = [
            stored
            for stored in self._admitted(parse_filters(filters))
            if stored.record.id in chosen
        ]
        return _best([(0.0, stored) for stored in found], len(found))

    def briefing_hits(
        self, filters: Filters, top_k: int, names: Collection[str] | None = None
    ) -> list[SeedHit]:
        found = [k for k in self._admitted(parse_filters(filters)) if "noted" in k.record.payload]
        if names is not None:
            found = [k for k in found if set(names).intersection(_names(k.record.payload))]
        found.sort(key=lambda stored: stored.record.id)
        found.sort(
            key=lambda stored: str(stored.record.payload.get("updated_at", "")), reverse=True
        )
        return [_hit(0.0, stored.record) for stored in found[:top_k]]

    def uris_linking_to(self, account_id: str, names: Collection[str]) -> list[str]:
        every = [stored.record for stored in self._all_of(account_id)]
        found = (each for each in every if {*names}.intersection(_names(each.payload, "links")))
        return sorted({each.uri for each in found})

    def read(self, account_id: str, ids: Sequence[str]) -> dict[str, IndexRecord]:
        wanted = set(ids)
        records = [stored.record for stored in self._all_of(account_id)]
        return {record.id: record for record in records if record.id in wanted}

    def stamps(self, account_id: str) -> dict[str, str]:
        by_uri: dict[str, list[IndexRecord]] = {}
        for stored in self._all_of(account_id):
            by_uri.setdefault(stored.record.uri, []).append(stored.record)
        return {uri: stamp(records) for uri, records in by_uri.items()}

    def unlogged(self, account_id: str) -> frozenset[str] | None:
        account = check_id(account_id, "account")
        with self._lock:
            if account in self._unknown:
                return None
            return frozenset(self._unlogged.get(account, ()))

    def check(self, account_id: str) -> list[str]:
        check_id(account_id, "account")
        return []  # memory is not damaged

    def _all_of(self, account_id: str) -> list[ReferenceRecord]:
        with self._lock:
            return list(self._accounts.get(check_id(account_id, "account"), {}).values())


def _reference(record: IndexRecord) -> ReferenceRecord:
    vector = quantise(record.vector)
    return ReferenceRecord(
        replace(record, vector=components(vector)), parse_record_filters(record), vector
    )


def _above(record: IndexRecord) -> str:
    return parent_uri(record.uri, record.level)


def admits(wanted: ParsedFilters, record: IndexRecord, filed: RecordFilters) -> bool:
    texts = {**filed.texts, URI: record.uri}
    return (
        all(texts.get(name) in values for name, values in wanted.texts.items())
        and (wanted.levels is None or record.level in wanted.levels)
        and (wanted.times is None or any(_held(filed, *each) for each in wanted.times))
    )


def _held(filed: RecordFilters, first: int, last: int) -> bool:
    return filed.since <= last and first < filed.until and filed.since < filed.until


def cosine(one: bytes, other: bytes) -> float:
    """Return the cosine of two vectors of one dimension."""
    dot = sum(a * b for a, b in zip(array("b", one), array("b", other), strict=True))
    return dot / math.sqrt(squared_length(one) * squared_length(other))


def _having(phrase: tuple[str, ...], fields: Mapping[str, Fields]) -> dict[str, tuple[int, int]]:
    """Return how often a phrase is in the text and in the context of each record with it."""
    counts = {
        id_: (_count(phrase, text), _count(phrase, context))
        for id_, (text, context) in fields.items()
    }
    return {id_: both for id_, both in counts.items() if any(both)}


def _count(phrase: tuple[str, ...], field: tuple[str, ...]) -> int:
    """Return how often the stems of a phrase are in a field, adjacent and in order."""
    size = len(phrase)
    return sum(field[at : at + size] == phrase for at in range(len(field) - size + 1))


def _best(scored: Iterable[tuple[float, ReferenceRecord]], top_k: int) -> list[SeedHit]:
    most = count(top_k, "number of hits")
    ordered = sorted(scored, key=lambda each: (-each[0], each[1].record.id))
    return [_hit(score, stored.record) for score, stored in ordered[:most]]


def _hit(score: float, record: IndexRecord) -> SeedHit:
    return SeedHit(
        id=record.id,
        uri=record.uri,
        level=record.level,
        score=score,
        text=record.text,
        payload=record.payload,
    )


def _names(payload: Mapping[str, JSON], of: str = "names") -> list[JSON]:
    names = payload.get(of)
    return list(names) if isinstance(names, list | tuple) else []
