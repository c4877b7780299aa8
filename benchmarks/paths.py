"""What a warm `save` of ten bytes and a warm `recall` do, in counts that no disk changes.

    python benchmarks/paths.py [--json] [--where]

A memory that goes by words alone is opened and used until nothing is done for the first time. Then
some saves and recalls are counted one by one, and the median of each count is printed. One memory
has thirteen nodes in the end, and each recall comes after a save; the other has two, and is asked
again and again:

calls          our Python functions that were entered; comprehensions and resumed generators are
               not counted
files          our modules in which they are
opened         files and folders that were opened, and connections to SQLite
texts          files with texts of memory that were opened, once for each time
syncs          waits for the disk: fsync, fdatasync, and commits that SQLite makes durable
statements     SQL statements, those of triggers and of full-text tables included
locks          locks between processes that were taken

With --where the functions that are entered most often are printed, too. A save costs more in a
folder with more memories, so figures compare only between runs of the same script.
"""

import argparse
import fcntl
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import perdure
from perdure.storage import openat

OURS = str(Path(perdure.__file__).parent) + os.sep
WARM = 8
TIMES = 5
QUESTION = "Which tea?"
_COMMIT_WAITS = "2"
"""The level of `PRAGMA synchronous` at which a commit to a write-ahead log waits for the disk."""
_SETTLED_SECONDS = 0.2
"""A file that was written just now is compared by its content, as its times may yet lie.

So how many are would depend on how fast the machine is, if saves followed each other at once.
"""
_SEEN = ("opened", "texts", "syncs", "statements", "locks")
_CHANGES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP")


@dataclass(frozen=True, slots=True)
class Counts:
    calls: float
    files: float
    opened: float
    texts: float
    syncs: float
    statements: float
    locks: float


class Meter:
    """Counts what happens inside `counting`. There is one: an audit hook can't be removed."""

    def __init__(self) -> None:
        self.entered: Counter[CodeType] = Counter()
        self._seen: Counter[str] = Counter()
        self._is_on = False
        self._first: dict[CodeType, bytes] = {}
        sys.addaudithook(self._hear)
        os.fsync, os.fdatasync = self._counted(os.fsync), self._counted(os.fdatasync)
        library = openat.system_library()
        openat.system_library = lambda: _Library(library, self)  # type: ignore[assignment]
        sqlite3.connect = self._traced(sqlite3.connect)

    @contextmanager
    def counting(self, into: list[Counts]) -> Iterator[None]:
        self.entered, self._seen = Counter(), Counter()
        self._is_on = True
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            self._is_on = False
        files = {code.co_filename for code in self.entered}
        seen = (self._seen[name] for name in _SEEN)
        into.append(Counts(self.entered.total(), len(files), *seen))

    def count(self, what: str) -> None:
        self._seen[what] += self._is_on

    # ------------------------------------------------------------ our functions
    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(OURS) and self._is_entered(frame):
            self.entered[code] += 1

    def _is_entered(self, frame: FrameType) -> bool:
        """Return whether a function begins: RESUME has the argument 0 there, and only there."""
        code = frame.f_code
        if code.co_name.startswith("<"):
            return False
        instructions = self._first.get(code) or self._first.setdefault(code, code.co_code)
        return instructions[frame.f_lasti + 1] == 0

    # ------------------------------------------------------------ the system
    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_on:
            return
        if event in {"open", "sqlite3.connect"}:
            self.count("opened")
        elif event == "fcntl.flock":
            self._seen["locks"] += bool(arguments[1] & fcntl.LOCK_EX)
        elif event == "os.rename":  # the lock of a root is a file that whoever holds it renames
            self._seen["locks"] += Path(os.fsdecode(arguments[1])).name.startswith("held.")

    def _counted(self, sync: Callable[..., None]) -> Callable[..., None]:
        def counted(descriptor: int) -> None:
            self.count("syncs")
            sync(descriptor)

        return counted

    # ------------------------------------------------------------ SQLite
    def _traced(self, connect: Callable[..., sqlite3.Connection]) -> Any:  # noqa: ANN401 - as it was
        def traced(*args: Any, **options: Any) -> sqlite3.Connection:  # noqa: ANN401 - as it was
            connection = connect(*args, **options)
            connection.set_trace_callback(self._statements_of_one())
            return connection

        return traced

    def _statements_of_one(self) -> Callable[[str], None]:
        """Return what hears the statements of a connection, and knows when a commit waits."""
        level, changed = _COMMIT_WAITS, False

        def hear(statement: str) -> None:
            nonlocal level, changed
            if statement.startswith("--"):  # it names the trigger that runs the next ones
                return
            self.count("statements")
            words = statement.upper().replace("=", " ").split()
            if words[:2] == ["PRAGMA", "SYNCHRONOUS"]:
                level = words[-1]
            elif words[0] in _CHANGES:
                changed = True
            elif words[0] in {"COMMIT", "ROLLBACK"}:
                if words[0] == "COMMIT" and changed and level == _COMMIT_WAITS:
                    self.count("syncs")
                changed = False

        return hear


class _Library:
    """The C library; what is opened below a root by a call that Python does not know is counted."""

    def __init__(self, library: Any, meter: Meter) -> None:  # noqa: ANN401 - of ctypes
        self._library, self._meter = library, meter

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of ctypes
        return getattr(self._library, name)

    def syscall(self, number: int, *given: Any) -> int:  # noqa: ANN401 - of ctypes
        self._meter.count("opened")
        if given[2]._obj.flags == openat.FILE:  # noqa: SLF001 - of ctypes
            self._meter.count("texts")
        opened: int = self._library.syscall(number, *given)
        return opened


def measured(meter: Meter) -> tuple[dict[str, Counts], dict[str, Counter[CodeType]]]:
    """Return the medians for each verb, and which functions it entered the last time."""
    saves: list[Counts] = []
    recalls: list[Counts] = []
    where: dict[str, Counter[CodeType]] = {}
    with _warm(WARM) as memory:
        for number in range(TIMES):
            text = f"Green te{number:02}"
            time.sleep(_SETTLED_SECONDS)
            with meter.counting(saves):
                memory.save(text, category="note", slug=f"tea-{number}")
            where["save"] = meter.entered
            with meter.counting(recalls):
                memory.recall(QUESTION)
            where["recall"] = meter.entered
    counted = {"save": _medians(saves), "recall": _medians(recalls)}
    of_two: list[Counts] = []
    with _warm(2) as memory:
        time.sleep(_SETTLED_SECONDS)
        memory.recall(QUESTION)
        for _ in range(TIMES):
            with meter.counting(of_two):
                assert len(memory.recall(QUESTION).hits) == 2  # noqa: PLR2004, S101 - all of them
        where["recall of two"] = meter.entered
    return {**counted, "recall of two": _medians(of_two)}, where


@contextmanager
def _warm(memories: int) -> Iterator[perdure.Memory]:
    """Yield a memory with some nodes, of which each was recalled."""
    with tempfile.TemporaryDirectory() as home:
        Path(home, "config.toml").write_text('[embedding]\nprovider = "none"\n', encoding="utf-8")
        with perdure.open(home=home) as memory:
            for number in range(memories):
                memory.save(f"Oolong tea {number}", category="note", slug=f"warm-{number}")
                memory.recall(QUESTION)
            yield memory


def _medians(counted: list[Counts]) -> Counts:
    names = [each.name for each in fields(Counts)]
    return Counts(*(statistics.median(getattr(each, name) for each in counted) for name in names))


def _print_where(entered: Counter[CodeType], most: int = 25) -> None:
    for code, number in entered.most_common(most):
        print(f"    {number:5}  {code.co_filename.removeprefix(OURS)}: {code.co_qualname}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--where", action="store_true", help="print what is entered most often")
    options = parser.parse_args()
    counts, where = measured(Meter())
    if options.json:
        print(json.dumps({verb: asdict(each) for verb, each in counts.items()}, indent=1))
        return 0
    for verb, each in counts.items():
        print(f"one warm {verb}")
        for name, number in asdict(each).items():
            print(f"  {name:12} {number:6,}")
        if options.where:
            _print_where(where[verb])
    return 0


if __name__ == "__main__":
    sys.exit(main())
