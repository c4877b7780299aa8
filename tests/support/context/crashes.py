"""Every moment at which a process that changes a memory can be killed, and what it leaves then."""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from perdure.artifacts.disk import Disk, FolderDisk
from perdure.context.note_names import NoteNames
from perdure.context.note_table import NoteTable
from perdure.context.notes import NotesLayout
from perdure.model import OutboxEvent
from perdure.storage import Capabilities, Expectation, Finding, Info, Locator, StorageBackend
from perdure.storage.device_local import DeviceLocalBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.testing.storage.storage_suite import tree
from tests.support.artifacts.memory_disk import MemoryDisk
from tests.support.context.index_outbox import IndexOutbox

Moment = Callable[[str], None]
"""Told what is about to be done, or was just done."""


def _unwatched(_moment: str) -> None:
    """Let it pass."""


class Crash(NamedTuple):
    """What is left of a process that was killed."""

    moment: str
    ground: "Ground"


def every_crash(
    ground: "Ground", verb: Callable[["Ground"], object], watch: Moment = _unwatched
) -> Iterator[Crash]:
    """Run `verb` once, and yield what a kill would leave before and after each single change.

    A change is a text or a directory of the seam, the events of one registration, or the events
    of a tenant that are forgotten. `verb` must open all that it uses on the ground that it is
    given. `watch` is called at each moment too, while the others wait. What two moments leave
    alike is yielded once; the last one is of a verb that returned.

    Each yielded ground is gone when the next one is asked for.
    """
    left: dict[bytes, Crash] = {}
    states = ground.folder.parent / f"{ground.folder.name}-crashes"

    def stop(moment: str) -> None:
        watch(moment)
        digest = ground.digest()
        if digest not in left:
            left[digest] = Crash(moment, ground.copied(states / str(len(left))))

    stop("at the beginning")
    verb(ground.watched(stop))
    stop("at the end")
    for crash in left.values():
        yield crash
        shutil.rmtree(crash.ground.folder)


class Ground(ABC):
    """Where texts, their history or journal, and the outbox lie; all of it can be copied."""

    def __init__(self, folder: Path, moment: Moment = _unwatched) -> None:
        self.folder = folder
        self.moment = moment
        folder.mkdir(parents=True, exist_ok=True)

    layout: Callable[[StorageBackend, Path], StorageBackend] = staticmethod(lambda texts, _: texts)
    """How the texts lie; what a layout keeps of its own goes into the folder."""

    def texts(self) -> StorageBackend:
        """Open the texts, one changed after another."""
        return self.layout(Stopping(self._texts(), self.moment), self.folder / "derived")

    def outbox(self) -> IndexOutbox:
        return StoppingOutbox(str(self.folder / "outbox"), self.moment)

    @abstractmethod
    def disk(self) -> Disk:
        """Open the folder of the history or the journal."""

    @abstractmethod
    def watched(self, moment: Moment) -> "Ground":
        """Return the same ground; who opens something there is stopped at each change."""

    @abstractmethod
    def copied(self, folder: Path) -> "Ground":
        """Return another one with all that is there now."""

    @abstractmethod
    def _texts(self) -> StorageBackend: ...

    def everything(self) -> dict[str, bytes]:
        """Return the bytes of all that is there, by name; directories have none."""
        files = self._history_files() | _files_in(self.folder / "outbox")
        return self.all_texts() | {f"kept: {name}": data for name, data in files.items()}

    @abstractmethod
    def all_texts(self) -> dict[str, bytes]:
        """Return the bytes of all texts, by key; directories have none."""

    @abstractmethod
    def _history_files(self) -> dict[str, bytes]:
        """Return the files of the history or the journal."""

    def digest(self) -> bytes:
        derived = _files_in(self.folder / "derived")
        found = [*sorted(self.everything().items()), *sorted(derived.items())]
        return sha256(repr(found).encode()).digest()


class MemoryGround(Ground):
    """Texts and history in this process; only the outbox is in the folder."""

    def __init__(
        self,
        folder: Path,
        moment: Moment = _unwatched,
        *,
        texts: MemoryBackend | None = None,
        disk: MemoryDisk | None = None,
    ) -> None:
        super().__init__(folder, moment)
        self._memory = MemoryBackend() if texts is None else texts
        self._disk = MemoryDisk() if disk is None else disk

    def disk(self) -> Disk:
        return self._disk

    def watched(self, moment: Moment) -> Ground:
        return type(self)(self.folder, moment, texts=self._memory, disk=self._disk)

    def copied(self, folder: Path) -> Ground:
        for name in ("outbox", "derived"):
            _copy(self.folder / name, folder / name)
        texts = MemoryBackend()
        for key, text in tree(self._memory).items():
            if text is None:
                texts.mkdir(Locator(key))
            else:
                texts.write(Locator(key), text)
        return type(self)(folder, texts=texts, disk=MemoryDisk(self._disk.files()))

    def _texts(self) -> StorageBackend:
        return self._memory

    def all_texts(self) -> dict[str, bytes]:
        return {key: (text or "").encode() for key, text in tree(self._memory).items()}

    def _history_files(self) -> dict[str, bytes]:
        return self._disk.files()


class FolderGround(Ground):
    """Texts and history in folders of this machine."""

    def disk(self) -> Disk:
        return FolderDisk(self.folder / "kept")

    def watched(self, moment: Moment) -> Ground:
        return type(self)(self.folder, moment)

    def copied(self, folder: Path) -> Ground:
        for name in ("texts", "kept", "outbox", "derived"):
            _copy(self.folder / name, folder / name)
        return type(self)(folder)

    def _texts(self) -> StorageBackend:
        return DeviceLocalBackend(str(self.folder / "texts"), str(self.folder / "home"))

    def all_texts(self) -> dict[str, bytes]:
        folder = self.folder / "texts"
        return {
            str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
            for path in sorted(folder.rglob("*"))
        }

    def _history_files(self) -> dict[str, bytes]:
        return _files_in(self.folder / "kept")


def _as_notes(texts: StorageBackend, folder: Path) -> StorageBackend:
    return NotesLayout(texts, NoteTable(str(folder / "places.sqlite")), NoteNames("acme", "ana"))


class NotesInMemory(MemoryGround):
    layout = staticmethod(_as_notes)


class NotesInFolder(FolderGround):
    layout = staticmethod(_as_notes)


def _copy(source: Path, target: Path) -> None:
    if source.exists():
        shutil.copytree(source, target, symlinks=True)


_SHARED_MEMORY = ("-shm", "-lock")
"""The endings of files that SQLite creates again when the last process is gone."""


def _files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(_SHARED_MEMORY)
    }


class Stopping(StorageBackend):
    """`inner`, with a call before and after every change; several are made one by one."""

    def __init__(self, inner: StorageBackend, moment: Moment) -> None:
        self.inner = inner
        self._moment = moment

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    @property
    def identity(self) -> str:
        return self.inner.identity

    @property
    def whereabouts(self) -> str:
        return self.inner.whereabouts

    def read(self, locator: Locator) -> str:
        return self.inner.read(locator)

    def list(self, locator: Locator) -> list[Locator]:
        return self.inner.list(locator)

    def exists(self, locator: Locator) -> bool:
        return self.inner.exists(locator)

    def info(self, locator: Locator) -> Info:
        return self.inner.info(locator)

    def findings(self, locator: Locator) -> Sequence[Finding]:
        return self.inner.findings(locator)

    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        self._moment(f"before {locator.key} is written")
        self.inner.write(locator, content, expect=expect)
        self._moment(f"after {locator.key} was written")
        return locator

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        self._moment(f"before {locator.key} is removed")
        self.inner.remove(locator, expect=expect)
        self._moment(f"after {locator.key} was removed")

    def mkdir(self, locator: Locator) -> Locator:
        self._moment(f"before the directory {locator.key} is made")
        self.inner.mkdir(locator)
        self._moment(f"after the directory {locator.key} was made")
        return locator


class StoppingOutbox(IndexOutbox):
    """An outbox with a call before and after every registration and every purge."""

    def __init__(self, path: str, moment: Moment) -> None:
        super().__init__(path)
        self._moment = moment

    def _add(self, events: Sequence[OutboxEvent]) -> None:
        self._moment(f"before {len(events)} events are registered")
        super()._add(events)
        self._moment(f"after {len(events)} events were registered")

    def delete_account_data(self, account_id: str) -> int:
        self._moment("before the events of an account are forgotten")
        forgotten = super().delete_account_data(account_id)
        self._moment("after the events of an account were forgotten")
        return forgotten

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        self._moment("before the events of an owner are forgotten")
        forgotten = super().delete_by_owner_space(account_id, owner_space)
        self._moment("after the events of an owner were forgotten")
        return forgotten
