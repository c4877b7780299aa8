"""A disk that is no more than a table: fast, and easy to look into."""

import errno
import threading
from collections.abc import Mapping, Sequence

from perdure.artifacts.disk import Buffer


class MemoryDisk:
    """One folder in memory, made from its files; "a/b" is the file b of the folder a."""

    def __init__(self, files: Mapping[str, bytes] | None = None, boot: str = "first") -> None:
        self._boot = boot
        self._nodes: dict[str, _Node] = {}
        self._locks: dict[str, MemoryLock] = {}
        below: dict[str, dict[str, bytes]] = {}
        for path, content in (files or {}).items():
            folder, slash, rest = path.partition("/")
            if slash:
                below.setdefault(folder, {})[rest] = content
            else:
                self._nodes[path] = _Node(content)
        self._folders = {name: MemoryDisk(inside, boot) for name, inside in below.items()}

    @property
    def whereabouts(self) -> str:
        return "memory"

    @property
    def boot(self) -> str:
        """Which start of the machine this is: another one after each power cut."""
        return self._boot

    def files(self) -> dict[str, bytes]:
        """Return all there is, below it too, in the form that makes another such disk."""
        found = {name: node.read(0, node.size()) for name, node in sorted(self._nodes.items())}
        for name, folder in sorted(self._folders.items()):
            found |= {f"{name}/{path}": content for path, content in folder.files().items()}
        return found

    def names(self) -> list[str]:
        folders = {name for name, folder in self._folders.items() if folder.names()}
        return sorted(self._nodes.keys() | folders)

    def open(self, name: str, *, create: bool = False) -> "MemoryFile":
        node = self._nodes.get(name)
        if node is None:
            if not create:
                raise _absent(name)
            node = self._nodes[name] = _Node(b"")
        return MemoryFile(node)

    def remove(self, name: str) -> None:
        if self._nodes.pop(name, None) is None:
            raise _absent(name)

    def rename(self, old: str, new: str) -> None:
        node = self._nodes.pop(old, None)
        if node is None:
            raise _absent(old)
        self._nodes[new] = node

    def sync(self) -> None:
        """There is nothing to wait for."""

    def lock(self, name: str) -> "MemoryLock | None":
        lock = self._locks.setdefault(name, MemoryLock())
        return lock if lock.take() else None

    def path(self, name: str) -> None:
        """Not a place of the operating system's."""

    def folder(self, name: str) -> "MemoryDisk":
        return self._folders.setdefault(name, MemoryDisk(boot=self._boot))


class MemoryFile:
    """An open file. It stays readable when its name is gone, until it is closed."""

    def __init__(self, node: "_Node") -> None:
        self._open: _Node | None = node

    @property
    def _node(self) -> "_Node":
        if self._open is None:
            raise OSError(errno.EBADF, "the file was closed")
        return self._open

    def read(self, offset: int, length: int) -> bytes:
        return self._node.read(offset, length)

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        self._node.write(offset, b"".join(buffers))

    def sync(self) -> None:
        _ = self._node

    def reserve(self, size: int) -> None:
        node = self._node
        node.resize(max(size, node.size()))

    def truncate(self, size: int) -> None:
        self._node.resize(size)

    def erase(self, offset: int, length: int) -> None:
        self._node.write(offset, bytes(length))

    def size(self) -> int:
        return self._node.size()

    def map(self) -> memoryview:
        return self._node.map()

    def close(self) -> None:
        self._open = None


class MemoryLock:
    """Held by at most one thread of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None

    def take(self) -> bool:
        # As on a real disk, a thread that was interrupted before it let go has it still.
        if self._holder == threading.get_ident():
            return True
        if not self._lock.acquire(blocking=False):
            return False
        self._holder = threading.get_ident()
        return True

    def release(self) -> None:
        if self._holder is not None:
            self._holder = None
            self._lock.release()


class _Node:
    """What a name stands for. The bytes that it was made from are copied when they change."""

    def __init__(self, content: bytes) -> None:
        self._content: bytes | bytearray = content

    def size(self) -> int:
        return len(self._content)

    def read(self, offset: int, length: int) -> bytes:
        return bytes(self._content[offset : offset + length])

    def write(self, offset: int, data: bytes) -> None:
        if offset > self.size():
            self.resize(offset)
        content = self._writable()
        stop = offset + len(data)
        if stop <= len(content):
            memoryview(content)[offset:stop] = data
        else:
            self._content = content[:offset] + data

    def resize(self, size: int) -> None:
        # Into new bytes, never in place: a map keeps what it showed.
        self._content = bytearray(self._content[:size]).ljust(size, b"\0")

    def map(self) -> memoryview:
        """Return a view that shows what is written later, as far as the file went."""
        return memoryview(self._writable()).toreadonly()

    def _writable(self) -> bytearray:
        if isinstance(self._content, bytes):
            self._content = bytearray(self._content)
        return self._content


def _absent(name: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "there is no such file", name)
