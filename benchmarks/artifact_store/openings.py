"""What it costs to open, and what grows with the number of entries."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from artifact_store.races import ROUNDS, Figure, Race, Reading, growth, run
from artifact_store.reads import filled
from artifact_store.scale import KIB, MIB, Scale, payloads
from perdure.artifacts import CID, ArtifactStore, Literal

CHILD = Path(__file__).with_name("fresh_process.py")
TAIL_BYTES = 64 * MIB
STEP = 10_000
PUTS = 50
LEGS = 3

_Place = TypeVar("_Place")
_Course = TypeVar("_Course")


def opening(folder: Path, scale: Scale) -> list[Figure]:
    """Open a large store in a process that has never seen it."""
    with ArtifactStore.open(folder / "large") as store:
        for _ in range(0, scale.opened, STEP):
            store.put_many([Literal(data) for data in payloads(STEP, 32)])
        store.snapshot()
    seen = [_in_a_fresh_process(folder / "large") for _ in range(ROUNDS)]
    fastest = {name: min(each[name] for each in seen) for name in ("opened", "first")}
    largest = {name: max(each[name] for each in seen) for name in seen[0]}
    return [
        Reading(f"open with {scale.opened:,} entries", fastest["opened"] * 1e3, "ms", 100),
        Reading("  private memory, that of imports aside", largest["grown"] / 1e6, "MB", 20),
        Reading("  private memory, imports only", largest["imported"] / 1e6, "MB"),
        Reading("  the same, after 1,000 look-ups", largest["used"] / 1e6, "MB"),
        Reading("  of it not mapped from a file", largest["own"] / 1e6, "MB"),
        Reading("  first look-up", fastest["first"] * 1e3, "ms"),
    ]


def recovery(folder: Path, _: Scale) -> list[Figure]:
    """Open a store that broke off in the middle of a write and has lost all that is derived."""
    return [_recovery(folder / str(size), size) for size in (KIB, 64 * KIB)]


def _recovery(folder: Path, size: int) -> Reading:
    filled(folder / "whole", payloads(TAIL_BYTES // size, size)).close()
    for name in os.listdir(folder / "whole"):  # noqa: PTH208 - names are all that it takes
        if not name.startswith(("segment-", "mark")):
            _remove(folder / "whole" / name)
    seconds = []
    for attempt in range(ROUNDS):
        broken = folder / str(attempt)
        shutil.copytree(folder / "whole", broken)
        _break_off(max(broken.glob("segment-*")))
        seconds.append(_in_a_fresh_process(broken)["opened"])
    title = f"recovery of a tail of 64 MiB, by {size // KIB} KiB"
    return Reading(title, min(seconds) * 1e3, "ms", 1_000)


def _break_off(segment: Path) -> None:
    """Leave, after the last frame, what a power cut may leave of the next one."""
    with segment.open("r+b") as file:
        end = len(file.read().rstrip(b"\0"))
        file.seek(end + -end % 8)
        file.write(os.urandom(KIB))


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _in_a_fresh_process(folder: Path) -> dict[str, float]:
    told = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, str(CHILD), str(folder)], check=True, stdout=subprocess.PIPE
    )
    measured: dict[str, float] = json.loads(told.stdout)
    return measured


def growing(folder: Path, scale: Scale) -> list[Figure]:
    """Do the same in stores of different sizes."""
    some = payloads(1_000, 32)
    cids = [CID.of(data) for data in some]
    with ExitStack() as stack:
        stores = {
            size: stack.enter_context(filled(folder / str(size), payloads(size, 32), STEP))
            for size in scale.grown
        }
        for store in stores.values():
            store.put_many([Literal(data) for data in some])
            store.snapshot()
        puts = _by_size(stores, _put_each, lambda: payloads(PUTS, KIB))
        gets = _by_size(stores, _get_each, lambda: cids)
        snapshots = _by_size(stores, _snapshot, lambda: _touch(stores))
    places = {size: folder / str(size) for size in stores}
    opens = _by_size(places, lambda place, _: ArtifactStore.open(place).close(), lambda: None)
    return [
        *_growth("put", puts, PUTS),
        *_growth("get", gets, len(cids)),
        *_growth("open", opens, 1),
        *_growth("snapshot", snapshots, 1),
    ]


def _growth(verb: str, seconds: dict[int, float], count: int) -> tuple[Race, Reading]:
    names = {f"of {size:,}": taken / count for size, taken in seconds.items()}
    title = f"{verb}, in a store"
    return (
        Race(title, names, next(iter(names))),
        Reading("  grows with the entries to the power of", growth(seconds), ""),
    )


def _by_size(
    places: dict[int, _Place],
    verb: Callable[[_Place, _Course], object],
    course: Callable[[], _Course],
) -> dict[int, float]:
    contestants: dict[str, Callable[[_Course], object]] = {
        str(size): lambda prepared, place=place: verb(place, prepared)  # type: ignore[misc]
        for size, place in places.items()
    }
    return {int(size): taken / LEGS for size, taken in run(contestants, course, legs=LEGS).items()}


def _put_each(store: ArtifactStore, batch: list[bytes]) -> None:
    for data in batch:
        store.put(Literal(data))


def _get_each(store: ArtifactStore, cids: list[CID]) -> None:
    for cid in cids:
        store.get(cid)


def _snapshot(store: ArtifactStore, _: None) -> None:
    store.snapshot()


def _touch(stores: dict[int, ArtifactStore]) -> None:
    """Give each something that no snapshot has."""
    (data,) = payloads(1, KIB)
    for store in stores.values():
        store.put(Literal(data))
