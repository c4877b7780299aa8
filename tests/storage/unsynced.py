"""Texts whose files are synced later, on a disk that keeps whatever a weak file system may keep."""

from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import quote, unquote

from perdure.artifacts.disk import Disk
from perdure.errors import NotTextError
from perdure.storage import Locator
from perdure.storage.backends.memory import MemoryBackend
from perdure.storage.content import Changes, Conditions
from perdure.storage.history import History
from perdure.storage.wrappers.recorded import Recorded
from tests.support.artifacts.memory_disk import MemoryDisk
from tests.support.artifacts.recording import RecordingDisk
from tests.support.artifacts.states import CrashState, crash_states

TEXTS = "texts"
LATER = 20.0
"""Seconds: how much younger than its commit a file is that its owner edits."""


class Unsynced(MemoryBackend):
    """A folder of files. What is on the disk when it is made is what it holds."""

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self._disk = disk
        self.step: Callable[[], object] = lambda: None
        for name in disk.names():
            file = disk.open(name)
            locator = Locator(unquote(name))
            self.edit(locator, "")
            self._mtimes[locator] = 0.0
            self._texts[locator] = file.read(0, file.size())

    def read(self, locator: Locator) -> str:
        try:
            return super().read(locator)
        except UnicodeDecodeError as error:
            raise NotTextError(f"{locator.key} is not UTF-8") from error

    @property
    def defers_sync(self) -> bool:
        return True

    def write_unsynced(self, changes: Changes, *, expect: Conditions = None) -> None:
        for locator, text in changes.items():
            super().write_all({locator: text}, expect={locator: (expect or {}).get(locator)})
            self.step()
            self._put_file(locator, text)
            self.step()

    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        self.write_unsynced(changes, expect=expect)
        self.sync(changes)

    def sync(self, locators: Iterable[Locator]) -> None:
        for locator in locators:
            if quote(locator.key, safe="") in self._disk.names():
                self._disk.open(quote(locator.key, safe="")).sync()
        self._disk.sync()

    def edit(self, locator: Locator, text: str | None, seconds: float = LATER) -> None:
        """Change a text as its owner does, who takes no lock."""
        if text is not None:
            super().write(locator, text)
            self._mtimes[locator] += seconds
        elif self.exists(locator):
            super().remove(locator)

    def _put_file(self, locator: Locator, text: str | None) -> None:
        name = quote(locator.key, safe="")
        if text is not None:
            file = self._disk.open(f"{name}.tmp", create=True)
            file.write(0, [text.encode()])
            self._disk.rename(f"{name}.tmp", name)
        elif name in self._disk.names():
            self._disk.remove(name)


class Store(NamedTuple):
    disk: Disk
    inner: Unsynced
    backend: Recorded

    @classmethod
    def on(cls, disk: MemoryDisk | RecordingDisk) -> "Store":
        texts = disk.folder(TEXTS)
        for name in texts.names():
            if name.endswith(".tmp"):
                texts.remove(name)
        inner = Unsynced(texts)
        return cls(disk, inner, Recorded(inner, History.on(disk)))

    def texts(self) -> dict[str, str]:
        return {each.key: data.decode(errors="replace") for each, data in self.inner._texts.items()}

    def kept(self, key: str) -> list[str]:
        """Return every text that history has of a key."""
        versions = self.backend.history.versions(Locator(key))
        return [self.backend.history.text(each) for each in versions if each.cid is not None]


def cuts(disk: RecordingDisk, most: int, seed: int = 0) -> Iterable[CrashState]:
    return crash_states(disk.recording, most=most, seed=seed)
