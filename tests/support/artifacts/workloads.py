"""What is done to a store before the power goes."""

import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import count, product
from typing import NamedTuple
from unittest.mock import patch

from perdure.artifacts import CID, ArtifactStore, Derived, IndexState, Literal, LogEntry, NewBinding
from perdure.artifacts.disk import Disk
from perdure.artifacts.entry import encode_put
from perdure.artifacts.segment import ALIGNMENT, HEAD_BYTES, HEADER_BYTES
from perdure.errors import StorageError, UnknownContentError
from tests.support.artifacts.memory_disk import MemoryDisk
from tests.support.artifacts.recording import Recording, RecordingDisk
from tests.support.artifacts.trouble import Killed, Trouble, TroubledDisk
from tests.support.artifacts.weak import SECTOR

SEGMENT_BYTES = 2048

Workload = tuple[str, ...]
Opening = Callable[[Disk], ArtifactStore]


def open_store(disk: Disk) -> ArtifactStore:
    """Open a store whose segments are soon full, and whose clock ticks once a commit."""
    return ArtifactStore(disk, segment_bytes=SEGMENT_BYTES, clock=count(1).__next__)


class Scene:
    """A store that steps are done on, and what they put into it."""

    def __init__(self, disk: RecordingDisk, opening: Opening = open_store) -> None:
        self._disk = disk
        self._opening = opening
        self.contents: dict[CID, bytes] = {}
        self.steps = 0
        self.open()

    def open(self) -> None:
        self._trouble = Trouble()
        self.store = self._opening(TroubledDisk(self._disk, self._trouble))

    def do(self, step: str) -> IndexState:
        """Do a step and return the state that is promised then.

        It is one of the `STEPS`, "erase", or "put" and a length. After it
        may come "killed" and a number: the process ends after so many operations, and another goes
        on; or "failing" and a number: that sync fails, and the step is done again.
        """
        self.steps += 1
        what, _, trouble = step.partition(", ")
        match trouble.split():
            case ["killed", number]:
                self._trouble.kill_after(int(number))
                with suppress(Killed):
                    self._do(what)
                self.open()
            case ["failing", number]:
                self._trouble.fail_sync(int(number))
                with suppress(StorageError, OSError):
                    self._do(what)
                self._trouble.cease()
                self._do(what)
            case _:
                self._do(what)
        return self.store.current()

    def _do(self, step: str) -> None:
        if step in STEPS:
            STEPS[step](self)
        elif step == "erase":
            self.store.erase([self._last(), CID.of(b"the same")], "because")
        else:
            self.put(int(step.removeprefix("put ")))

    def known(self, content: bytes) -> bytes:
        self.contents[CID.of(content)] = content
        return content

    def content(self, length: int, place: int = 0) -> bytes:
        """Return bytes of this length that no other step puts."""
        dice = random.Random(f"{self.steps} {place}")
        return self.known(dice.randbytes(length))

    def put(self, length: int) -> None:
        self.store.put(Literal(self.content(length)))

    def put_up_to_seal(self) -> None:
        """Put content that ends with a sector, so that its seal alone can be lost."""
        offset = self.store._shared_log.log.end.offset or HEADER_BYTES
        begin = offset + HEAD_BYTES + len(encode_put(bytes(36), 0, 0, 0))
        self.put(SECTOR + -begin % SECTOR)

    def derive(self) -> None:
        pieces = self.content(30), self.content(40, place=1)
        self.known(b"".join(pieces))
        self.store.put(Derived("concat", "1", tuple(map(Literal, pieces))))

    def hide(self) -> None:
        with suppress(UnknownContentError):
            self.store.tombstone(self._last(), "because")

    def show(self) -> None:
        with suppress(UnknownContentError):
            self.store.lift(self._last())

    def _last(self) -> CID:
        return next(reversed(self.contents), CID.of(b"never put"))

    def reopen(self) -> None:
        self.store.close()
        self.open()


STEPS: Mapping[str, Callable[[Scene], object]] = {
    "put": lambda scene: scene.put(20),
    "put sectors": lambda scene: scene.put(900),
    "put a segment": lambda scene: scene.put(1700),
    "put the same": lambda scene: scene.store.put(Literal(scene.known(b"the same"))),
    "put up to a seal": Scene.put_up_to_seal,
    "put many": lambda scene: scene.store.put_many(
        [Literal(scene.content(length, place)) for place, length in enumerate((10, 600, 10))]
    ),
    "derive": Scene.derive,
    "tombstone": Scene.hide,
    "lift": Scene.show,
    "record": lambda scene: scene.store.record(
        [
            NewBinding("a/name", scene.content(30), {"step": scene.steps}),
            NewBinding("another", None),
        ]
    ),
    "snapshot": lambda scene: scene.store.snapshot(),
    "collect": lambda scene: scene.store.gc(before=scene.store.current().position),
    "reopen": Scene.reopen,
}


class Run(NamedTuple):
    """A workload that was done on a disk that was empty, and what came of it."""

    workload: Workload
    recording: Recording
    last_step: int
    """How many operations came before the last step."""
    log: tuple[LogEntry, ...]
    contents: Mapping[CID, bytes]


def run(workload: Workload, opening: Opening = open_store) -> Run:
    """Do it; the same workload asks the same of the disk each time."""
    disk = RecordingDisk(MemoryDisk())
    with patch.object(os, "urandom", bytes):
        scene = Scene(disk, opening)
        last_step = 0
        for step in workload:
            last_step = len(disk.recording.operations)
            disk.acknowledged(scene.do(step))
    return Run(workload, disk.recording, last_step, tuple(scene.store.log()), scene.contents)


def short_workloads(longest: int) -> Iterator[Workload]:
    """Yield every workload of up to so many steps."""
    for length in range(1, longest + 1):
        yield from product(STEPS, repeat=length)


def placed_workloads() -> Iterator[Workload]:
    """Yield puts that end, and puts that begin, at every place in a sector where a frame can."""
    for length in range(1, SECTOR, ALIGNMENT - 3):
        yield (f"put {length}",)
    for length in range(0, SECTOR, ALIGNMENT):
        yield f"put {length}", "put", "tombstone"


def troubled_workloads() -> Iterator[Workload]:
    """Yield steps in which a process is killed, or a sync fails, and another one after them."""
    for step, number in product(STEPS, range(1, 9)):
        yield "put", f"{step}, killed {number}"
        yield "put", f"{step}, killed {number}", "put"
    for step, number in product(STEPS, range(3)):
        yield "put", f"{step}, failing {number}"
        yield "put", f"{step}, failing {number}", "put"


def erasing_workloads() -> Iterator[Workload]:
    """Yield what can come before and after content is erased, also if that is interrupted."""
    for before, after in product(("put", "put the same", "put many", "tombstone"), STEPS):
        yield "put", "put the same", before, "erase", after
    for step in ("erase", *(f"erase, killed {number}" for number in range(1, 13))):
        yield "put", "put the same", step
        yield "put", "put the same", step, "erase", "put the same"
    for number in range(4):
        yield "put", "put the same", f"erase, failing {number}", "put the same"


def long_workloads(seed: int) -> Iterator[Workload]:
    """Yield longer ones for ever, the same for the same seed."""
    dice = random.Random(seed)
    while True:
        steps = dice.choices([*STEPS, "put some"], k=dice.randint(4, 10))
        yield tuple(f"put {dice.randrange(3000)}" if s == "put some" else s for s in steps)
