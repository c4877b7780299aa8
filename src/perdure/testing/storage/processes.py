"""Several processes on one store."""

import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import count
from multiprocessing.process import BaseProcess
from pathlib import Path

from perdure.storage import (
    ABSENT,
    ConcurrentModificationError,
    Locator,
    StorageBackend,
    content_hash,
)
from perdure.testing.requirement import requirement
from perdure.testing.storage.conditions import FIRST, SECOND, SEVERAL, count_both, count_up
from perdure.testing.storage.storage_suite import FOLDER, NOTE, ROOT, StorageSuite, tree
from perdure.testing.suite import when

_PATIENCE_SECONDS = 120


def start(action: Callable[[], object]) -> BaseProcess:
    """Run `action` in a new process. The exit code shows whether it raised."""
    process = multiprocessing.get_context("fork").Process(target=action, daemon=True)
    with warnings.catch_warnings():  # the child touches none of our threads' locks
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    return process


def finish(processes: list[BaseProcess]) -> None:
    """Wait until all processes end; kill those that don't, and fail unless all succeeded."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
        process.join()
    assert codes == [0] * len(codes), f"exit codes {codes}; None is one that did not end"


class ProcessTests(StorageSuite):
    @when("concurrent_writers")
    @requirement("000-capabilities-concurrent-writers", "001-concurrent-vault-writers")
    def test_processes_lose_no_conditional_write(
        self, backend: StorageBackend, place: Path
    ) -> None:
        backend.write(NOTE, "0")
        finish([start(lambda: count_up(self.open_backend(place), 25)) for _ in range(4)])

        assert backend.read(NOTE) == "100"

    @when("concurrent_writers")
    def test_only_one_process_creates(self, backend: StorageBackend, place: Path) -> None:
        finish([start(lambda: self._claim(place)) for _ in range(4)])

        claims = [key for key in tree(backend) if key.startswith("won/") and key.count("/") == 2]
        assert len(claims) == 20

    def _claim(self, place: Path) -> None:
        mine = self.open_backend(place)
        for number in range(20):
            try:
                mine.write(Locator(f"claim/{number}"), str(os.getpid()), expect=ABSENT)
            except ConcurrentModificationError:
                continue
            mine.write(Locator(f"won/{number}/{os.getpid()}"), "")

    @when("concurrent_writers")
    def test_only_one_process_removes(self, backend: StorageBackend, place: Path) -> None:
        for number in range(20):
            backend.write(Locator(f"prize/{number}"), "prize")
        finish([start(lambda: self._take(place)) for _ in range(4)])

        taken = [key for key in tree(backend) if key.startswith("won/") and key.count("/") == 2]
        assert len(taken) == 20
        assert backend.list(Locator("prize")) == []

    def _take(self, place: Path) -> None:
        mine = self.open_backend(place)
        for number in range(20):
            try:
                mine.remove(Locator(f"prize/{number}"), expect=content_hash("prize"))
            except ConcurrentModificationError:
                continue
            mine.write(Locator(f"won/{number}/{os.getpid()}"), "")

    @when("concurrent_writers")
    def test_different_keys_can_be_written_at_once(
        self, backend: StorageBackend, place: Path
    ) -> None:
        finish([start(lambda n=number: self._fill(place, n)) for number in range(4)])  # type: ignore[misc]

        assert len(backend.list(FOLDER)) == 40

    def _fill(self, place: Path, number: int) -> None:
        mine = self.open_backend(place)
        for attempt in range(10):
            mine.write(FOLDER.child(f"{number}-{attempt}.md"), "text")

    @when("concurrent_writers")
    @requirement("000-write-atomic", "001-atomic-write-whole")
    def test_readers_meet_whole_texts_only(self, backend: StorageBackend, place: Path) -> None:
        texts = ("a" * 300_000, "b" * 200_000)
        backend.write(NOTE, texts[0])
        writer = start(lambda: self._alternate(place, texts))
        seen = set()
        while writer.is_alive():
            seen.add(backend.read(NOTE))
        finish([writer])

        assert seen <= set(texts)

    def _alternate(self, place: Path, texts: tuple[str, str]) -> None:
        mine = self.open_backend(place)
        for attempt in range(40):
            mine.write(NOTE, texts[attempt % 2])

    @when("concurrent_writers")
    @requirement("000-write-durable")
    def test_a_killed_writer_leaves_a_whole_text_and_no_lock(
        self, backend: StorageBackend, place: Path
    ) -> None:
        whole = {digit * 10_000 for digit in "0123456789"}
        for attempt in range(10):
            folder = Locator(f"numbers/{attempt}")
            writer = start(partial(self._write_for_ever, place, folder))
            while writer.is_alive() and not backend.exists(folder):
                continue  # until its first write
            time.sleep(0.003 * attempt)
            writer.kill()
            writer.join()
            assert writer.exitcode == -signal.SIGKILL, "it ended before it was killed"

            backend.write(Locator("after.md"), str(attempt))

            assert set(tree(backend, folder).values()) <= whole
            assert [finding.name for finding in backend.findings(folder)] == []
        assert [finding.name for finding in backend.findings(ROOT)] == []

    def _write_for_ever(self, place: Path, folder: Locator) -> None:
        mine = self.open_backend(place)
        for attempt in count():
            mine.write(folder.child(str(attempt % 3)), str(attempt % 10) * 10_000)

    @when("concurrent_writers")
    def test_processes_lose_nothing_of_several_texts(
        self, backend: StorageBackend, place: Path
    ) -> None:
        backend.write_all({FIRST: "0", SECOND: "0"})
        finish([start(lambda: count_both(self.open_backend(place), 15)) for _ in range(4)])

        assert [backend.read(FIRST), backend.read(SECOND)] == ["60", "60"]

    @when("concurrent_writers")
    def test_readers_meet_several_texts_in_their_order(
        self, backend: StorageBackend, place: Path
    ) -> None:
        backend.write_all(dict.fromkeys(SEVERAL, "0"))
        writer = start(lambda: self._count_several(place, 40))
        while writer.is_alive():
            numbers = [int(backend.read(locator)) for locator in reversed(SEVERAL)]

            assert numbers == sorted(numbers), "a later text was there before an earlier one"
        finish([writer])

    @when("concurrent_writers")
    def test_a_killed_writer_leaves_the_first_of_several_texts(
        self, backend: StorageBackend, place: Path
    ) -> None:
        for attempt in range(10):
            backend.write_all(dict.fromkeys(SEVERAL, "0"))
            writer = start(partial(self._count_several, place, 1_000_000))
            while writer.is_alive() and backend.read(SEVERAL[0]) == "0":
                continue  # it has not come to its first write yet
            time.sleep(0.003 * attempt)
            writer.kill()
            writer.join()
            assert writer.exitcode == -signal.SIGKILL, "it ended before it was killed"

            backend.write(Locator("after.md"), str(attempt))

            numbers = [int(backend.read(locator)) for locator in SEVERAL]
            assert numbers == sorted(numbers, reverse=True)
            assert numbers[0] - numbers[-1] <= 1
            assert [finding.name for finding in backend.findings(FOLDER)] == []

    def _count_several(self, place: Path, times: int) -> None:
        mine = self.open_backend(place)
        for attempt in range(1, times + 1):
            mine.write_all(dict.fromkeys(SEVERAL, str(attempt)))
