"""Look for a state in which the write-ahead protocol breaks a promise.

    python -m tests.storage.redo_search --states 1000000

A workload is what two processes and an editor do to three texts, in turn and in the middle of each
other. After it, and at each of its operations, all processes are killed, or the power is cut: what
is left of the log and the files is opened, and must keep what had been promised by then. The same
seed gives the same states, on however many processes.
"""

import errno
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from hashlib import blake2b
from itertools import chain, islice
from multiprocessing import Pool
from time import monotonic, process_time
from typing import NamedTuple

import click

from perdure.artifacts import CID
from perdure.errors import LockTimeout, PerdureError
from perdure.storage import Locator
from perdure.storage.redo import is_torn
from tests.storage.unsynced_disk import STEP, Clock, Killed, Machine, Process, Store
from tests.support.artifacts.memory_disk import MemoryDisk
from tests.support.artifacts.recording import RecordingDisk
from tests.support.artifacts.states import crash_states

KEYS = ("a", "b", "c")
_BATCH = 16
_SHOWN = 20
_LENGTHS = (4, 40, 700)
_ERRORS = (errno.EIO, errno.ENOSPC, errno.EROFS)

Text = str | None
Workload = tuple[str, ...]


# ---------------------------------------------------------------- what was promised
class Begun(NamedTuple):
    commit: int
    changes: Mapping[str, Text]


class Ended(NamedTuple):
    """A commit was acknowledged, or its caller got an error or was killed."""

    commit: int
    is_done: bool


class Edit(NamedTuple):
    key: str
    text: Text
    synced: bool
    is_young: bool
    """Whether its file tells that it was written after the commits before it."""
    is_odd: bool
    """Whether it is an earlier version, or a part of one, so that it can be taken for ours."""
    is_begun: bool = False
    """Only begun, so that anything may be in the file."""


class Erased(NamedTuple):
    text: str
    is_done: bool


class Waited(NamedTuple):
    """A commit takes so long that its files are younger than itself."""


Promise = Begun | Ended | Edit | Erased | Waited


class Expected:
    """What may be found of one key."""

    def __init__(self) -> None:
        self.allowed: set[Text] = {None}
        self.committed: set[Text] = {None}
        """Those of them that are in the log, or may be: what is absent is written from there."""
        self.anything = False
        """An edit that was not synced can be torn."""
        self.is_young = False
        """Whether its file is younger than its commit: noise in it looks like an edit."""
        self.retained: set[str] = set()
        """Texts that history must have."""
        self.somewhere: set[str] = set()
        """Edits that history or the file must have."""


class Expectations:
    """What must hold of the texts, given what was promised; less, if the power was cut."""

    def __init__(self, promises: Iterable[Promise], *, has_power: bool) -> None:
        self.keys = {key: Expected() for key in KEYS}
        self.erased: set[str] = set()
        self.maybe_erased: set[str] = set()
        self.edits: set[Text] = set()
        self.commits: list[Mapping[str, Text]] = []
        """Those that are in the log wholly or not at all."""
        self._has_power = has_power
        self._open: dict[int, Mapping[str, Text]] = {}
        self._edited_meanwhile: set[str] = set()
        self._waited: set[str] = set()
        self._last: dict[str, str] = {}
        """The edits that nobody wrote over."""
        for promise in promises:
            self._take(promise)
        self.commits += self._open.values()

    def _take(self, promise: Promise) -> None:
        match promise:
            case Begun(number, changes):
                self._open[number] = changes
                self._edited_meanwhile.clear()
                self._waited.clear()
                for key, text in changes.items():
                    self.keys[key].allowed.add(text)
                    self.keys[key].committed.add(text)
            case Ended(number, is_done):
                changes = self._open.pop(number)
                self.commits.append(changes)
                if is_done:
                    self._finish(changes)
            case Edit():
                self._edit(promise)
            case Waited():
                for key in chain.from_iterable(self._open.values()):
                    self._waited.add(key)
                    self.keys[key].is_young = not self._has_power
            case Erased(text, is_done):
                (self.erased if is_done else self.maybe_erased).add(text)

    def _finish(self, changes: Mapping[str, Text]) -> None:
        for key, text in changes.items():
            of = self.keys[key]
            of.committed = {text}
            if text is not None:
                of.retained.add(text)
            if key in self._edited_meanwhile:
                continue
            of.allowed, of.anything = {text}, False
            of.is_young = of.is_young and key in self._waited
            of.retained |= of.somewhere  # it was there when the commit looked
            of.somewhere = set()
            if key in self._last:
                of.retained.add(self._last.pop(key))

    def _edit(self, edit: Edit) -> None:
        of = self.keys[edit.key]
        self.edits.add(edit.text)
        self._last.pop(edit.key, None)
        of.somewhere = set()
        is_certain = self._has_power or edit.synced
        if edit.is_begun:
            of.anything = of.anything or not self._has_power
            return
        is_open = any(edit.key in changes for changes in self._open.values())
        if is_open:
            self._edited_meanwhile.add(edit.key)
        stays = is_certain and not edit.is_odd and edit.text is not None
        if stays and not is_open and (self._has_power or edit.is_young):
            of.allowed = {edit.text}
        else:
            of.allowed |= {edit.text} | of.committed
        of.anything = not is_certain
        if edit.text is None or edit.is_odd:
            return
        if is_certain:
            of.somewhere = {edit.text}
        if not is_open:
            self._last[edit.key] = edit.text


def check(store: Store, expected: Expectations) -> None:
    """See to it that the texts are as they must be, before and after edits are looked for."""
    gone = expected.erased | expected.maybe_erased
    _check_texts(store, expected)
    store.backend.notice([Locator(key) for key in KEYS])
    _check_texts(store, expected)
    history = store.backend.history
    found = store.retained()
    retained = {key: set(found.get(key, ())) for key in KEYS}
    for key, of in expected.keys.items():
        data = store.inner.bytes_at(Locator(key))
        text = None if data is None else data.decode(errors="replace")
        if data is None or _is_text(data):
            assert text == found.get(key, [None])[-1], f"{key} is not what history has"
        lost = of.retained - retained[key] - gone
        assert not lost, f"history lost {_short(lost)} of {key}"
        lost = of.somewhere - retained[key] - gone - {text or ""}
        assert not lost, f"an edit of {key} is lost: {_short(lost)}"
    for changes in expected.commits:
        texts = [(key, text) for key, text in changes.items() if text is not None]
        there = {text in retained[key] for key, text in texts if text not in gone | expected.edits}
        assert len(there) < 2, f"only a part of {_short(dict(texts))} is in the log"
    lock = history.lock
    assert lock.settled() <= (lock.applied() or 0) <= history.position(), "a mark is ahead"
    for text in expected.erased:
        assert all(text not in texts for texts in retained.values()), "erased, and in history"


def _check_texts(store: Store, expected: Expectations) -> None:
    for key, of in expected.keys.items():
        data = store.inner.bytes_at(Locator(key))
        found = None if data is None else data.decode(errors="replace")
        is_noise = of.is_young and not any(is_torn(found or "", text) for text in of.allowed)
        assert of.anything or is_noise or found in of.allowed, (
            f"{key} is {_short(found)}, and may be {_short(of.allowed)}"
        )
        assert found not in expected.erased, f"erased, and in {key}"


def _is_text(data: bytes) -> bool:
    with suppress(UnicodeDecodeError):
        data.decode()
        return True
    return False


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 200 else f"{text[:150]}…{text[-40:]}"


# ---------------------------------------------------------------- workloads
def workloads(seed: int) -> Iterator[Workload]:
    """Yield workloads for ever, each a few steps that can be read and run again."""
    dice = random.Random(seed)
    while True:
        yield tuple(_step(dice) for _ in range(dice.randint(2, 7)))


def _step(dice: random.Random) -> str:  # noqa: PLR0911 - one for each trouble
    if dice.random() < 0.25:
        return _an_edit(dice)
    step = f"{dice.choice('AB')} {_a_verb(dice)}"
    chance = dice.random()
    if chance < 0.3:
        return f"{step} | killed {dice.randint(1, 14)}"
    if chance < 0.4:
        return f"{step} | fails {dice.randint(1, 14)} {dice.choice(_ERRORS)}"
    if chance < 0.6:
        return f"{step} | at {dice.randint(1, 14)} {_an_edit(dice)}"
    if chance < 0.65:
        return f"{step} | at {dice.randint(1, 14)} wait"
    if chance < 0.75:
        return f"{step} | at {dice.randint(1, 14)} {dice.choice('AB')} {_a_verb(dice)}"
    return step


def _a_verb(dice: random.Random) -> str:
    keys = "".join(sorted(dice.sample(KEYS, dice.randint(1, 3))))
    length = dice.choice(_LENGTHS)
    return dice.choice(
        (
            *(f"save {keys} {length}",) * 5,
            *(f"replace {keys} {length}",) * 2,
            *(f"remove {keys}",) * 2,
            "sync",
            "notice",
            "read",
            f"erase {keys[0]}",
        )
    )


def _an_edit(dice: random.Random) -> str:
    words = ["edit", dice.choice(KEYS), dice.choice(("anew", "anew", "old", "beginning", "gone"))]
    for word in ("whole", "synced", "quick"):
        words += [word] * dice.randint(0, 1)
    return " ".join(words)


class Snapshot(NamedTuple):
    """What a kill of all processes leaves."""

    files: dict[str, bytes]
    promises: tuple[Promise, ...]


class Run:
    """A workload, as it was run."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.machine = Machine()
        self.kills: list[Snapshot] = []
        self._promises: list[Promise] = []
        self._processes = {name: Process(self.machine) for name in "AB"}
        self._texts: dict[str, list[str]] = {key: [] for key in KEYS}
        self._count = 0
        self._erased: set[str] = set()
        self._is_committing = False
        self.machine.seen = self._snap
        for step in workload:
            self.machine.clock.now += STEP
            self._do(step)
        self._snap()

    def _snap(self) -> None:
        self.kills.append(Snapshot(self.machine.disk._inner.files(), tuple(self._promises)))

    def _promise(self, promise: Promise) -> None:
        self._promises.append(promise)
        self.machine.disk.acknowledged(promise)

    def _do(self, step: str) -> None:
        action, _, trouble = step.partition(" | ")
        who, *words = action.split()
        if who == "edit":
            self._edit(words)
            return
        process = self._processes[who]
        if process.is_dead:
            process = self._processes[who] = Process(self.machine)
        process.operations, process.kill_at = 0, None
        process.fail_at = process.meet_at = None
        match trouble.split(maxsplit=2):
            case ["killed", at]:
                process.kill_at = int(at)
            case ["fails", at, number]:
                process.fail_at = int(at), int(number)
            case ["at", at, other]:
                process.meet_at = int(at), partial(self._meet, process, other)
        with suppress(Killed, PerdureError, OSError):
            self._act(process, words)
        process.kill_at = process.fail_at = process.meet_at = None

    def _meet(self, process: Process, step: str) -> None:
        who = step.split(maxsplit=1)[0]
        if who == "wait":
            self.machine.clock.now += STEP
            self._promise(Waited())
        elif who == "edit" or self._processes[who] is not process:
            self._do(step)

    def _act(self, process: Process, words: Sequence[str]) -> None:
        match words:
            case ["save", keys, length]:
                self._commit(process, {key: self._text(key, int(length)) for key in keys})
            case ["replace", keys, length]:  # as a move does
                written = {key: self._text(key, int(length)) for key in keys[1:]}
                self._commit(process, {**written, keys[0]: None})
            case ["remove", keys]:
                self._commit(process, dict.fromkeys(keys))
            case ["sync"]:
                self._sync(process)
            case ["notice"]:
                process.store.backend.notice([Locator(key) for key in KEYS])
            case ["read"]:
                for key in KEYS:
                    process.store.backend.committed(Locator(key))
            case ["erase", key]:
                self._erase(process, key)

    def _sync(self, process: Process) -> None:
        writer = process.store.backend.committer
        with writer.exclusive():
            writer.sync()

    def _commit(self, process: Process, changes: Mapping[str, Text]) -> None:
        store = process.store
        self._count += 1
        number = self._count
        self._promise(Begun(number, changes))
        is_done, self._is_committing = False, True
        try:
            store.backend.commit({Locator(key): text for key, text in changes.items()})
            is_done = True
        except LockTimeout:
            if process.operations == 0:
                raise
        finally:
            self._is_committing = False
            self._promise(Ended(number, is_done))

    def _erase(self, process: Process, key: str) -> None:
        texts = [text for text in self._texts[key] if text not in self._erased]
        store = process.store
        if not texts or store.inner.bytes_at(Locator(key)) != texts[-1].encode():
            return
        self._commit(process, {key: None})
        if process.is_dead or store.inner.exists(Locator(key)):
            return
        self._erased.add(texts[-1])
        self._promise(Erased(texts[-1], is_done=False))
        store.backend.erase(lambda: [CID.of(texts[-1].encode())], "asked")
        self._promise(Erased(texts[-1], is_done=True))

    def _text(self, key: str, length: int) -> str:
        self._count += 1
        text = f"{key}{self._count} {'naïve text ' * (length // 11)}"
        self._texts[key].append(text)
        return text

    def _edit(self, words: Sequence[str]) -> None:
        key, what, *more = words
        retained = [text for text in self._texts[key] if text not in self._erased]
        self._count += 1
        texts: dict[str, Text] = {"anew": f"{self._count} by hand", "gone": None}
        if retained:
            texts |= {"old": retained[0], "beginning": retained[-1][: len(retained[-1]) // 2]}
        if what not in texts:
            return
        is_young = "quick" not in more and not self._is_committing
        edit = Edit(key, texts[what], "synced" in more, is_young, what != "anew")
        self._promise(edit._replace(is_begun=True))
        now = self.machine.clock.now
        at = now - STEP if "quick" in more else now
        self.machine.edit(key, edit.text, at_once="whole" in more, synced=edit.synced, at=at)
        self._promise(edit)


# ---------------------------------------------------------------- searching
class Effort(NamedTuple):
    """How many states to look at, where not all can be."""

    states: int = 60
    """At each moment of a workload."""
    again: int = 10
    """At each moment of an opening that is itself interrupted."""
    share: int = 16
    """One in so many states is opened with another power cut to follow, or opened twice."""
    seed: int = 0


class Violation(NamedTuple):
    workload: Workload
    how: str
    error: str

    def __str__(self) -> str:
        return f"{'; '.join(self.workload)}\n    {self.how}: {self.error}"


class Findings(NamedTuple):
    digests: frozenset[bytes]
    """Of the different states that were looked at."""
    violations: tuple[Violation, ...]


def explore(workload: Workload, effort: Effort) -> Findings:
    """Look at what is left after a workload and in its middle."""
    return _Exploration(Run(workload), effort).findings()


class _Exploration:
    def __init__(self, run: Run, effort: Effort) -> None:
        self._run = run
        self._effort = effort
        self._seen: set[bytes] = set()
        self._violations: list[Violation] = []

    def findings(self) -> Findings:
        clock, effort = self._run.machine.clock, self._effort
        for number, (files, promises) in enumerate(self._run.kills):
            if self._is_new(_digest(files), promises):
                self._look(MemoryDisk(files), promises, Clock(clock), f"killed at {number}")
        recording = self._run.machine.disk.recording
        for state in crash_states(recording, most=effort.states, seed=effort.seed):
            how = f"power cut after {state.operations} operations"
            if not self._is_new(state.digest, state.promises):
                continue
            is_chosen = state.digest[0] % effort.share == 0
            if not is_chosen:
                self._look(state.disk(), state.promises, _later(clock, state.operations), how)
                continue
            disk = RecordingDisk(state.disk())
            tape = disk.recording.operations
            later = _later(clock, state.operations, partial(len, tape))
            if self._look(disk, state.promises, later, how):
                self._again(disk, state.promises, later, how)
        return Findings(frozenset(self._seen), tuple(self._violations))

    def _again(
        self, disk: RecordingDisk, promises: tuple[object, ...], clock: Clock, how: str
    ) -> None:
        """Cut the power again, at any moment of the first opening."""
        for state in crash_states(disk.recording, most=self._effort.again, seed=self._effort.seed):
            if self._is_new(state.digest, promises):
                later = _later(clock, state.operations)
                self._look(state.disk(), promises, later, f"{how}, and another one")

    def _is_new(self, digest: bytes, promises: tuple[object, ...]) -> bool:
        key = digest + len(promises).to_bytes(2)
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def _look(
        self,
        disk: MemoryDisk | RecordingDisk,
        promises: tuple[object, ...],
        clock: Clock,
        how: str,
    ) -> bool:
        expected = Expectations(promises, has_power=how.startswith("killed"))  # type: ignore[arg-type]
        try:
            store = Store.on(disk, clock)
            check(store, expected)
            if isinstance(disk, RecordingDisk):
                _check_quiet(store, clock)
        except Exception as error:  # noqa: BLE001 - whatever it is, a promise is broken
            found = f"{type(error).__name__}: {error}"
            self._violations.append(Violation(self._run.workload, how, found))
            return False
        return True


def _later(clock: Clock, cut: int, operations: Callable[[], int] = int) -> Clock:
    """Return the time after a power cut."""
    later = Clock(clock, cut=cut, operations=operations)
    later.now += STEP
    return later


def _check_quiet(store: Store, clock: Clock) -> None:
    """Open it once more: nothing is left to do."""
    before = store.inner.texts(), store.backend.history.position()
    again = Store.on(store.disk, clock)  # type: ignore[arg-type] # a disk of the tests
    again.backend.settle(unacknowledged=True)
    assert (again.inner.texts(), again.backend.history.position()) == before, "not settled"


def _digest(files: Mapping[str, bytes]) -> bytes:
    digest = blake2b(digest_size=16)
    for path in sorted(files):
        digest.update(path.encode() + b"\0" + blake2b(files[path], digest_size=16).digest())
    return digest.digest()


class Progress(NamedTuple):
    workloads: int
    states: int
    """Different ones."""
    violations: tuple[Violation, ...]

    def __str__(self) -> str:
        return (
            f"{self.states:,} different states of {self.workloads:,} workloads, "
            f"{len(self.violations):,} invalid"
        )


def search(
    states: int, effort: Effort, certain: Sequence[Workload] = (), processes: int = 1
) -> Iterator[Progress]:
    """Look at these workloads, and at others until there were so many states."""
    every = chain(certain, workloads(effort.seed))
    seen: set[bytes] = set()
    progress = Progress(0, 0, ())
    with ExitStack() as stack:
        pool = stack.enter_context(Pool(processes)) if processes > 1 else None
        each = partial(pool.imap, chunksize=4) if pool else map
        while progress.workloads < len(certain) or progress.states < states:
            batch = list(islice(every, _BATCH))
            found = list(each(partial(explore, effort=effort), batch))
            seen.update(*(findings.digests for findings in found))
            broken = chain.from_iterable(findings.violations for findings in found)
            progress = Progress(
                progress.workloads + len(batch), len(seen), (*progress.violations, *broken)
            )
            yield progress


@click.command()
@click.option("--states", default=1_000_000, help="How many different states, at least.")
@click.option("--most", default=60, help="How many at each moment, where not all can be.")
@click.option("--seed", default=0)
@click.option("--processes", default=os.cpu_count() or 1, show_default="all cores")
@click.option("--workload", help="Look at this one only: its steps, with a semicolon between.")
def main(states: int, most: int, seed: int, processes: int, workload: str | None) -> None:
    """Look for a state in which the write-ahead protocol breaks a promise."""
    begun, shown = monotonic(), 0
    effort = Effort(most, seed=seed)
    if workload is None:
        found = search(states, effort, processes=processes)
    else:
        alone = explore(tuple(workload.split("; ")), effort)
        found = iter([Progress(1, len(alone.digests), alone.violations)])
    progress = Progress(0, 0, ())
    for progress in found:
        click.echo(
            f"{monotonic() - begun:6.0f} s, {process_time():.0f} of this process  {progress}"
        )
        for violation in progress.violations[shown:_SHOWN]:
            click.echo(str(violation), err=True)
        shown = len(progress.violations)
    click.echo(f"{progress}, {monotonic() - begun:.0f} s")
    if progress.violations:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
