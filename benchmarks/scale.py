"""What verbs cost as a memory grows: the past, verbs with nothing to do, an index, disk and log.

    python benchmarks/scale.py [SIZE ...]

SIZE is a number of small memories; 1,000, 10,000 and 100,000 if none is given. All times are CPU
time of this process. Each row has its target, and its slope: the power of the size that it grows
with, so 0 is a constant and 1 a line.
"""

import os
import random
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from hashlib import sha256
from math import log
from pathlib import Path
from statistics import median

from perdure.app import Context, open_log
from perdure.app.open import import_memory
from perdure.artifacts import ArtifactStore, IndexState, Literal
from perdure.context.nodes import Nodes
from perdure.model import ContextNode
from recalling.memories import ACCOUNT, asking_for, environment, folder, opened

SIZES = (1_000, 10_000, 100_000)
_BATCH = 250
_LATER = 10
_MESSAGES = 2_000
_PUTS = 300
_KIB = 1024

Row = tuple[str, float, str]
"""What was measured, how much it is, and the target."""


def main() -> None:
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    sizes = [int(each) for each in sys.argv[1:] or SIZES]
    found: dict[str, list[float]] = {}
    for size in sizes:
        print(f"\n{size:,} memories", flush=True)
        for name, value, target in _measured(size):
            found.setdefault(name, []).append(value)
            slope = _slope(sizes, found[name])
            print(f"  {name:45} {value:10.3f}   {slope:>12}   target {target}", flush=True)


def _slope(sizes: list[int], values: list[float]) -> str:
    if len(values) < 2 or min(values[-2:]) <= 0:  # noqa: PLR2004 - a slope has two ends
        return ""
    before, now = sizes[len(values) - 2 : len(values)]
    return f"slope {log(values[-1] / values[-2]) / log(now / before):5.2f}"


def _measured(size: int) -> Iterator[Row]:
    with folder() as home, folder() as other:
        texts = list(_texts(size))
        with opened(home) as context:
            yield "save many: ms each", _write(context, texts) / size * 1e3, "-"
            yield from _index(context, texts)
            yield from _disk(home, texts)
            yield from _past(context)
            yield from _unchanged(context, other)
            yield from _session(context)
        yield from _imported(other)
        yield from _log(home)
    yield from _puts()


def _texts(size: int) -> Iterator[str]:
    chosen = random.Random(7)  # noqa: S311 - nothing secret
    parts = [("bcdfglmnprst", "aeiou")[at % 2] for at in range(9)]
    words = [
        "".join(map(chosen.choice, parts[: chosen.randint(4, len(parts))])) for _ in range(5_000)
    ]
    for _ in range(size):
        yield " ".join(chosen.choices(words, k=17))[:117]


def _cpu(action: Callable[[], object]) -> float:
    begun = time.process_time()
    action()
    return time.process_time() - begun


def _write(context: Context, texts: list[str]) -> float:
    made = [
        ContextNode(
            uri=f"ctx://{ACCOUNT}/users/ana/memories/entity/e{number:06}",
            content=text,
            abstract=text[:60],
        )
        for number, text in enumerate(texts)
    ]

    def write() -> None:
        nodes = Nodes(context.recorded)
        for start in range(0, len(made), _BATCH):
            nodes.write_nodes(made[start : start + _BATCH], asking_for(ACCOUNT))

    return _cpu(write)


# ---------------------------------------------------------------- rows
def _index(context: Context, texts: list[str]) -> Iterator[Row]:
    bare = _cpu(lambda: _bare_fts5(texts))
    rebuilt = _cpu(lambda: context.indexes.configured.follower.rebuild(ACCOUNT))
    yield "index rebuild: s", rebuilt, "15 at 100,000"
    yield "index rebuild: times bare FTS5", rebuilt / bare, "30"
    yield "index verify: s", _cpu(context.memory.index.verify), "20 at 100,000"


def _bare_fts5(texts: Iterable[str]) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE texts USING fts5(text)")
        db.executemany("INSERT INTO texts VALUES (?)", ((text,) for text in texts))
        db.commit()


def _disk(home: Path, texts: list[str]) -> Iterator[Row]:
    found = [os.lstat(Path(at, name)) for at, _, names in os.walk(home) for name in names]
    yield "files per memory", len(found) / len(texts), "1.2"
    size = sum(map(len, texts))
    yield "apparent bytes: times the text", sum(each.st_size for each in found) / size, "12"


def _past(context: Context) -> Iterator[Row]:
    memory, history = context.memory, context.recorded.history
    middle = history.position() // 2
    for number in range(_LATER):
        memory.save(f"A later fact, number {number}.", category="entity", slug=f"later-{number}")
    memory.recall("a later fact")
    now = _cpu(lambda: memory.recall("number of the fact"))
    yield "recall now: s", now, "-"
    states = {"middle": middle, "5 entries ago": history.position() - 5, "before the first": 0}
    for name, target in (("middle", "3"), ("5 entries ago", "0.3"), ("before the first", "as now")):
        context.indexes.tenant_data()["past indexes"].delete_account_data(ACCOUNT)
        state = IndexState(0, states[name])
        taken = _cpu(lambda at=state: memory.recall("number of the fact", at=at))  # type: ignore[misc] # bound now
        yield f"first recall as of {name}: s", taken, target


def _unchanged(context: Context, other: Path) -> Iterator[Row]:
    memory = context.memory
    for name, verb in (
        ("repair", memory.repair),
        ("index verify --quick", lambda: memory.index.verify(quick=True)),
        ("export", lambda: memory.export(other / "export", everything=True)),
    ):
        verb()
        yield f"{name} with nothing changed: s", _cpu(verb), "2 at 100,000"


def _imported(other: Path) -> Iterator[Row]:
    (other / "home").mkdir()
    environ = environment(other / "home")
    import_memory(environ, other / "export")
    taken = _cpu(lambda: import_memory(environ, other / "export"))
    yield "import with nothing changed: s", taken, "2 at 100,000"
    shutil.rmtree(other / "home")


def _session(context: Context) -> Iterator[Row]:
    said = ("word " * 24)[:118]
    messages = [
        {"role": ("user", "assistant")[at % 2], "content": f"{at:,} {said}"[:120]}
        for at in range(_MESSAGES)
    ]

    def keep() -> None:
        context.memory.commit_session(messages, session_id="long", extract=False)
        context.memory.recall("word")

    yield "session: messages kept and indexed per s", _MESSAGES / _cpu(keep), "5,000"


def _log(home: Path) -> Iterator[Row]:
    with open_log(environment(home), texts=False) as log_:
        begun = time.process_time()
        verified = log_.verify(lambda *_: None)
        taken = time.process_time() - begun
    yield "history verify: GB/s", verified.report.size / taken / 1e9, "0.2"


def _puts() -> Iterator[Row]:
    """Compare puts with a bare write, sync and hash of the same bytes, by the clock, in turns.

    Medians are compared: one slow sync of a busy disk is nobody's.
    """
    data = [os.urandom(_KIB) for _ in range(_PUTS)]
    with folder() as place, ArtifactStore.open(place / "store") as store:
        file = os.open(place / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        bare, ours = list[float](), list[float]()
        for each in data:
            begun = time.perf_counter()
            sha256(each).digest()
            os.write(file, each)
            os.fdatasync(file)
            middle = time.perf_counter()
            store.put(Literal(each))
            ours.append(time.perf_counter() - middle)
            bare.append(middle - begun)
        os.close(file)
    yield "durable put of 1 KiB: times bare", median(ours) / median(bare), "1.3"


if __name__ == "__main__":
    main()
