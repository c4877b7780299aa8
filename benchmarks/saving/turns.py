"""Everybody does the same in turns, so that whatever else the machine does hits all of them."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.app import Context, open_context


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds that each of many took, and those of them that the processor was at it."""

    seconds: tuple[float, ...]
    at_work: tuple[float, ...] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def processor(self) -> float:
        return statistics.median(self.at_work)

    def __str__(self) -> str:
        spent = f"{self.median * 1e3:9.3f} ms, processor {self.processor * 1e3:7.3f} ms"
        return f"{spent} {1 / self.median:8.0f} /s"


@contextmanager
def opened() -> Iterator[tuple[Context, Path]]:
    """Give an empty memory on this disk as it comes, without a model, and the folder it lies in."""
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as home,
        open_context({"HOME": home, "USER": "ana"}) as context,
    ):
        yield context, Path(home)


def in_turns(
    peers: Mapping[str, Callable[[str], object]],
    texts: Sequence[str],
    chunk: int,
    after: Callable[[str], object] = lambda _: None,
) -> dict[str, Taken]:
    """Let all write the same texts, some at a time; who is first is last the next time.

    After each turn, `after` is told the last text. That does not count.
    """
    seconds: dict[str, list[float]] = {name: [] for name in peers}
    at_work: dict[str, list[float]] = {name: [] for name in peers}
    for begin in range(0, len(texts), chunk):
        order = list(peers.items())
        for name, write in order if begin // chunk % 2 else reversed(order):
            for text in texts[begin : begin + chunk]:
                begun, working = time.perf_counter(), time.process_time()
                write(text)
                at_work[name].append(time.process_time() - working)
                seconds[name].append(time.perf_counter() - begun)
        after(texts[min(begin + chunk, len(texts)) - 1])
    return {name: Taken(tuple(seconds[name]), tuple(at_work[name])) for name in peers}
