"""Tests of threads and processes, and of any sequence of calls against `MemoryIndex`."""

import multiprocessing
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from perdure.index.contract import Filters, NodeIndex
from perdure.index.filters import stamp
from perdure.model import IndexRecord, SeedHit
from perdure.model.values import JSON
from perdure.testing.index.fixtures import (
    ACCOUNT,
    CONCURRENT_PROCESSES,
    EAST,
    EVERYONE,
    SURVIVES_REOPENING,
    IndexBase,
    matching,
    near,
    record,
    uri_of,
)
from perdure.testing.index.reference import MemoryIndex
from perdure.testing.storage.processes import finish
from perdure.testing.suite import examples, when

_GENERATIONS = 25
_WRITERS, _WRITES = 3, 20
_NODES = tuple(uri_of(f"n{number}") for number in range(4))

Open = Callable[[Path], NodeIndex]


def generation(number: int) -> dict[str, list[IndexRecord]]:
    """Return nodes that encode a number in their texts, vectors and counts."""
    word, vector = f"number{number}", (1.0, number / 100, 0.0)
    return {
        uri: [record(f"{uri}#{n}", uri, word, vector=vector) for n in range(1 + number % 3)]
        for uri in _NODES
    }


def write(open_index: Open, place: Path, first: int, step: int) -> None:
    """Write generations one after another."""
    with closing(open_index(place)) as index:
        for number in range(first, first + _GENERATIONS * step, step):
            index.replace(ACCOUNT, generation(number), cursor=number)


def fill(open_index: Open, place: Path, number: int) -> None:
    """Write at the same time as other processes."""
    with closing(open_index(place)) as index:
        near(index)
        (place / f"{number}.ready").touch()
        while len(list(place.glob("*.ready"))) < _WRITERS:
            time.sleep(0.001)
        for step in range(_WRITES):
            index.upsert([record(f"{number}-{step}", uri_of(f"w{number}"))])


def started(action: Callable[..., None], *args: object) -> BaseProcess:
    process = multiprocessing.get_context("spawn").Process(target=action, args=args, daemon=True)
    process.start()
    return process


_TIMES = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00+02:00", "2026-02-01T00:00:00Z")
_WORDS = ("tea", "teas", "Café", "cafe", "tea-pot", "pot", "of", "the", "x")
_IDS = [f"id{number}" for number in range(8)]
_URIS = [uri_of(slug, user) for slug in ("one", "two") for user in ("ana", "bob")]
_PLACES = [*_URIS, "ctx://acme/users/ana/memories/preference"]

_texts = st.lists(st.sampled_from(_WORDS), max_size=5).map(" ".join)
_components = st.sampled_from([-1.0, 0.0, 1.0, 0.3, 0.31])
_vectors = st.sampled_from([0, 2, 3, 3, 3]).flatmap(
    lambda size: st.lists(_components, min_size=size, max_size=size)
)
_filed = st.fixed_dictionaries(
    {},
    optional={
        "category": st.sampled_from(["", "x", "y"]),
        "session_id": st.sampled_from(["s", "t"]),
        "valid_from": st.sampled_from(_TIMES),
        "valid_until": st.sampled_from(_TIMES),
    },
)
_records = st.builds(
    lambda id_, uri, text, level, context, vector, filed, number: record(
        id_,
        uri,
        text,
        level,
        context=context,
        vector=vector,
        filters=filed,
        payload={"n": number},
    ),
    st.sampled_from(_IDS),
    st.sampled_from(_URIS),
    _texts,
    st.integers(0, 2),
    _texts,
    _vectors,
    _filed,
    st.integers(0, 3),
)


def _some(values: list[str]) -> st.SearchStrategy[JSON]:
    """Return one value, several, or none."""
    several: st.SearchStrategy[JSON] = st.lists(st.sampled_from(values), max_size=2)
    return several | st.sampled_from(values)


_filters = st.fixed_dictionaries(
    {
        "account_id": st.just(ACCOUNT),
        "owner_space": st.sampled_from(["user:ana", ["user:ana", "user:bob"], ["user:eve"]]),
    },
    optional={
        "category": _some(["", "x", "y"]),
        "session_id": _some(["s", "t", "none"]),
        "uri": _some(_URIS),
        "level": st.integers(0, 2) | st.lists(st.integers(0, 2), max_size=2),
        "valid_at": _some([*_TIMES, "2026-01-15T00:00:00Z"]),
    },
)


class IndexMachine(RuleBasedStateMachine):
    """Applies the same calls to an index and to `MemoryIndex`, and compares."""

    open_index: ClassVar[Callable[[Path], NodeIndex]]

    def __init__(self) -> None:
        super().__init__()
        self._ends = ExitStack()
        folder = self._ends.enter_context(tempfile.TemporaryDirectory())
        self.index = self._ends.enter_context(closing(type(self).open_index(Path(folder))))
        self.plain = MemoryIndex()

    @rule(records=st.lists(_records, min_size=1, max_size=5))
    def upsert(self, records: list[IndexRecord]) -> None:
        self.plain.upsert(records)
        self.index.upsert(records)

    @rule(records=st.lists(_records, max_size=4), gone=st.sampled_from(_URIS), at=st.integers(0, 9))
    def replace(self, records: list[IndexRecord], gone: str, at: int) -> None:
        nodes: dict[str, list[IndexRecord]] = {gone: []}
        for each in records:
            nodes.setdefault(each.uri, []).append(each)
        unlogged = [gone] if at % 2 else []
        self.plain.replace(ACCOUNT, nodes, cursor=at or None, unlogged=unlogged)
        self.index.replace(ACCOUNT, nodes, cursor=at or None, unlogged=unlogged)

    @rule(ids=st.lists(st.sampled_from(_IDS), max_size=3))
    def delete(self, ids: list[str]) -> None:
        self.plain.delete(ids)
        self.index.delete(ids)

    @rule(owner=st.sampled_from(["user:ana", "user:bob", None, None]), doit=st.integers(0, 3))
    def forget(self, owner: str | None, doit: int) -> None:
        if doit:
            return  # rarely, so that there is something to delete
        if owner is None:
            expected = self.plain.delete_account_data(ACCOUNT)
            assert self.index.delete_account_data(ACCOUNT) == expected
        else:
            expected = self.plain.delete_by_owner_space(ACCOUNT, owner)
            assert self.index.delete_by_owner_space(ACCOUNT, owner) == expected

    @rule(vector=_vectors, filters=_filters, top_k=st.sampled_from([1, 2, 3, 50]))
    def search_by_vector(self, vector: list[float], filters: Filters, top_k: int) -> None:
        expected = self.plain.search_by_vector(vector, filters, top_k)
        assert self.index.search_by_vector(vector, filters, top_k) == expected

    @rule(
        place=st.sampled_from(_PLACES),
        vector=_vectors,
        filters=_filters,
        top_k=st.sampled_from([1, 50]),
    )
    def search_children(
        self, place: str, vector: list[float], filters: Filters, top_k: int
    ) -> None:
        expected = self.plain.search_children(place, vector, filters, top_k)
        assert self.index.search_children(place, vector, filters, top_k) == expected

    @rule(
        words=st.lists(st.sampled_from([*_WORDS, "none", "...", '"']), max_size=4),
        filters=_filters,
        top_k=st.sampled_from([1, 2, 3, 50]),
        weight=st.sampled_from([0.0, 0.5, 1.0]),
    )
    def search_by_text(self, words: list[str], filters: Filters, top_k: int, weight: float) -> None:
        expected = self.plain.search_by_text(words, filters, top_k, context_weight=weight)
        found = self.index.search_by_text(words, filters, top_k, context_weight=weight)
        assert _unscored(found) == _unscored(expected)
        assert _scores_differ_by(found, expected) < 1e-9

        assert abs(self.index.ceiling(ACCOUNT, words) - self.plain.ceiling(ACCOUNT, words)) < 1e-9

    @rule(ids=st.lists(st.sampled_from(_IDS), max_size=6), filters=_filters)
    def look(self, ids: list[str], filters: Filters) -> None:
        assert self.index.hits_by_id(ids, filters) == self.plain.hits_by_id(ids, filters)

    @invariant()
    def both_hold_the_same(self) -> None:
        index, plain = self.index, self.plain
        assert index.read(ACCOUNT, _IDS) == plain.read(ACCOUNT, _IDS)
        assert index.stamps(ACCOUNT) == plain.stamps(ACCOUNT)
        assert index.unlogged(ACCOUNT) == plain.unlogged(ACCOUNT)
        assert index.cursor(ACCOUNT) == plain.cursor(ACCOUNT)
        assert index.owner_spaces(ACCOUNT) == plain.owner_spaces(ACCOUNT)

    @invariant()
    def both_find_the_same(self) -> None:
        for top_k in (1, 2, 3, 50):
            expected = self.plain.search_by_vector([1.0, 0.0, 1.0], EVERYONE, top_k)
            assert self.index.search_by_vector([1.0, 0.0, 1.0], EVERYONE, top_k) == expected
            plain = self.plain.search_by_text(["tea", "pot"], EVERYONE, top_k)
            found = self.index.search_by_text(["tea", "pot"], EVERYONE, top_k)
            assert _unscored(found) == _unscored(plain)

    def teardown(self) -> None:
        try:
            assert self.index.check(ACCOUNT) == []
        finally:
            self._ends.close()


def _unscored(hits: list[SeedHit]) -> list[tuple[object, ...]]:
    return [(hit.id, hit.uri, hit.level, hit.text, hit.payload) for hit in hits]


def _scores_differ_by(some: list[SeedHit], others: list[SeedHit]) -> float:
    pairs = zip(some, others, strict=True)
    return max((abs(one.score - other.score) for one, other in pairs), default=0.0)


class IndexConcurrencyTests(IndexBase):
    def test_threads_lose_no_record(self, index: NodeIndex) -> None:
        def put(thread: int) -> None:
            for number in range(10):
                index.replace(ACCOUNT, {uri_of(f"t{thread}-{number}"): _one(f"{thread}-{number}")})
                near(index)

        def _one(id_: str) -> list[IndexRecord]:
            return [record(id_, uri_of(f"t{id_}"))]

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(put, range(4)))

        assert len(near(index)) == 40

    @when(SURVIVES_REOPENING)
    def test_records_survive_reopening(self, place: Path) -> None:
        with closing(self.open_index(place)) as first:
            first.replace(ACCOUNT, generation(2), cursor=5)
            first.delete([f"{_NODES[0]}#0"])
            first.upsert([record("x", uri_of(account="other"))])
            first.delete_account_data("other")
            found = first.search_by_vector(EAST, EVERYONE, 99)
            stamps = first.stamps(ACCOUNT)
        with closing(self.open_index(place)) as again:
            assert again.search_by_vector(EAST, EVERYONE, 99) == found
            assert len(matching(again, "number2")) == len(found) == 11
            assert (again.stamps(ACCOUNT), again.cursor(ACCOUNT)) == (stamps, 5)
            assert again.owner_spaces("other") == frozenset()

    @when(CONCURRENT_PROCESSES)
    def test_a_reader_meets_whole_changes_only(self, place: Path, index: NodeIndex) -> None:
        index.replace(ACCOUNT, generation(0), cursor=0)
        writer = started(write, self.open_index, place, 1, 1)
        seen = set()
        while writer.is_alive():
            vectors = index.search_by_vector(EAST, EVERYONE, 99)
            assert len({(hit.text, hit.score) for hit in vectors}) == 1
            number = int(vectors[0].text.removeprefix("number"))
            assert len(vectors) == len(_NODES) * (1 + number % 3)
            seen.add(number)
        finish([writer])

        assert len(seen) > 1
        assert index.cursor(ACCOUNT) == _GENERATIONS
        assert index.stamps(ACCOUNT) == {
            uri: stamp(records) for uri, records in generation(_GENERATIONS).items()
        }

    @when(CONCURRENT_PROCESSES)
    def test_writers_wait_for_each_other_and_lose_nothing(
        self, place: Path, index: NodeIndex
    ) -> None:
        near(index)
        finish([started(fill, self.open_index, place, number) for number in range(_WRITERS)])

        assert len(near(index)) == len(matching(index, "text")) == _WRITERS * _WRITES
        assert index.check(ACCOUNT) == []

    def test_any_sequence_of_verbs_answers_as_the_index_in_memory_does(self) -> None:
        machine = type("Machine", (IndexMachine,), {"open_index": self.open_index})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples(40),
                stateful_step_count=25,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
