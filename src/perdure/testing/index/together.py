"""Several threads and processes, and one after another."""

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.process import BaseProcess
from pathlib import Path

from perdure.index.contract import KeptIndex
from perdure.index.filters import stamp
from perdure.model import IndexRecord
from perdure.testing.index.base import (
    ACCOUNT,
    CONCURRENT_PROCESSES,
    EAST,
    EVERYONE,
    SURVIVES_REOPENING,
    IndexBase,
    near,
    record,
    said,
    uri_of,
)
from perdure.testing.storage.processes import finish
from perdure.testing.suite import when

_TURNS = 25
_WRITERS, _WRITES = 3, 20
_URIS = tuple(uri_of(f"n{number}") for number in range(4))

Open = Callable[[Path], KeptIndex]


def generation(turn: int) -> dict[str, list[IndexRecord]]:
    """Return nodes that all say the same number, by their texts, vectors and their count."""
    word, vector = f"turn{turn}", (1.0, turn / 100, 0.0)
    return {
        uri: [record(f"{uri}#{n}", uri, word, vector=vector) for n in range(1 + turn % 3)]
        for uri in _URIS
    }


def write(open_index: Open, place: Path, first: int, step: int) -> None:
    """Write generations, one after another."""
    with closing(open_index(place)) as index:
        for turn in range(first, first + _TURNS * step, step):
            index.replace(ACCOUNT, generation(turn), cursor=turn)


def fill(open_index: Open, place: Path, number: int) -> None:
    """Write beside others, who begin at the same time."""
    with closing(open_index(place)) as index:
        near(index)
        (place / f"{number}.ready").touch()
        while len(list(place.glob("*.ready"))) < _WRITERS:
            time.sleep(0.001)
        for turn in range(_WRITES):
            index.upsert([record(f"{number}-{turn}", uri_of(f"w{number}"))])


def started(action: Callable[..., None], *args: object) -> BaseProcess:
    process = multiprocessing.get_context("spawn").Process(target=action, args=args, daemon=True)
    process.start()
    return process


class TogetherTests(IndexBase):
    def test_threads_lose_no_record(self, index: KeptIndex) -> None:
        def put(thread: int) -> None:
            for turn in range(10):
                index.replace(ACCOUNT, {uri_of(f"t{thread}-{turn}"): _one(f"{thread}-{turn}")})
                near(index)

        def _one(id_: str) -> list[IndexRecord]:
            return [record(id_, uri_of(f"t{id_}"))]

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(put, range(4)))

        assert len(near(index)) == 40

    @when(SURVIVES_REOPENING)
    def test_all_is_as_it_was_when_opened_again(self, place: Path) -> None:
        with closing(self.open_index(place)) as first:
            first.replace(ACCOUNT, generation(2), cursor=5)
            first.delete([f"{_URIS[0]}#0"])
            first.upsert([record("x", uri_of(account="other"))])
            first.delete_account_data("other")
            found = first.search_by_vector(EAST, EVERYONE, 99)
            stamps = first.stamps(ACCOUNT)
        with closing(self.open_index(place)) as again:
            assert again.search_by_vector(EAST, EVERYONE, 99) == found
            assert len(said(again, "turn2")) == len(found) == 11
            assert (again.stamps(ACCOUNT), again.cursor(ACCOUNT)) == (stamps, 5)
            assert again.owner_spaces("other") == frozenset()

    @when(CONCURRENT_PROCESSES)
    def test_a_reader_meets_whole_changes_only(self, place: Path, index: KeptIndex) -> None:
        index.replace(ACCOUNT, generation(0), cursor=0)
        writer = started(write, self.open_index, place, 1, 1)
        seen = set()
        while writer.is_alive():
            vectors = index.search_by_vector(EAST, EVERYONE, 99)
            assert len({(hit.text, hit.score) for hit in vectors}) == 1
            turn = int(vectors[0].text.removeprefix("turn"))
            assert len(vectors) == len(_URIS) * (1 + turn % 3)
            seen.add(turn)
        finish([writer])

        assert len(seen) > 1
        assert index.cursor(ACCOUNT) == _TURNS
        assert index.stamps(ACCOUNT) == {
            uri: stamp(records) for uri, records in generation(_TURNS).items()
        }

    @when(CONCURRENT_PROCESSES)
    def test_writers_wait_for_each_other_and_lose_nothing(
        self, place: Path, index: KeptIndex
    ) -> None:
        near(index)
        finish([started(fill, self.open_index, place, number) for number in range(_WRITERS)])

        assert len(near(index)) == len(said(index, "text")) == _WRITERS * _WRITES
        assert index.check(ACCOUNT) == []
