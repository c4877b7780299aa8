"""A disk that fails at a chosen step, and knows what would be left after a power cut."""

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from mmap import mmap
from typing import NamedTuple, TypeVar

from perdure.artifacts.disk import Buffer, Disk, DiskLock, File

T = TypeVar("T")

_SECTOR = 512
_CHANGES = {"write", "truncate", "erase", "reserve", "rename", "remove"}


class Call(NamedTuple):
    """Something that was asked of a disk."""

    verb: str
    name: str
    """Of the file; "" for the folder itself."""
    failed: bool = False

    def __str__(self) -> str:
        return f"{self.verb} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong, and at which call, counted from 0."""

    at: int
    code: int = errno.EIO
    short: bool = False
    """A write leaves its first half behind before it fails."""
    sticky: bool = False
    """Every later call of the same verb on the same file fails too."""
    interrupts: bool = False
    """The call is broken off by the user and not by the disk."""


class FaultyDisk:
    """Does what the disk in it does, until the fault is due.

    A sync that fails forgets what it was to write, as operating systems do: it can still be read,
    but no later sync will make it durable.
    """

    def __init__(self, inner: Disk, fault: Fault | None = None) -> None:
        """Begin with what `inner` holds, all of it durable."""
        self._inner = inner
        self.fault = fault
        self.calls: list[Call] = []
        self._struck: Call | None = None
        self._files = {
            name: _FileImage(_content(inner, name), _content(inner, name)) for name in inner.names()
        }
        self._durable_names = dict(self._files)

    @property
    def boot(self) -> str:
        return self._inner.boot

    @property
    def whereabouts(self) -> str:
        return self._inner.whereabouts

    def after_power_cut(self) -> dict[str, bytes]:
        """Return the files that are surely left, and what of them surely is."""
        return {name: bytes(image.durable) for name, image in self._durable_names.items()}

    def after_process_end(self) -> dict[str, bytes]:
        """Return what is there, durable or not."""
        return {name: bytes(_content(self._inner, name)) for name in self._inner.names()}

    def ask(self, verb: str, name: str, act: Callable[[], T], half: Callable[[], object]) -> T:
        """Do it, unless it is to fail; `half` is how it fails when it does so half-way."""
        fault, call = self.fault, Call(verb, name)
        number = len(self.calls)
        self.calls.append(call)
        if fault is None or not self._is_due(fault, number, call):
            return act()
        self._struck = call
        self.calls[number] = call._replace(failed=True)
        if fault.short:
            half()
        if fault.interrupts:
            raise KeyboardInterrupt
        raise OSError(fault.code, os.strerror(fault.code), name)

    def _is_due(self, fault: Fault, number: int, call: Call) -> bool:
        return number == fault.at or (fault.sticky and call == self._struck)

    def _folder(self, verb: str, name: str, act: Callable[[], T]) -> T:
        return self.ask(verb, name, act, _nothing)

    # ------------------------------------------------------------ a disk
    def names(self) -> list[str]:
        return self._folder("names", "", self._inner.names)

    def open(self, name: str, *, create: bool = False) -> "FaultyFile":
        inner = self._folder("open", name, lambda: self._inner.open(name, create=create))
        return FaultyFile(self, name, inner, self._files.setdefault(name, _FileImage()))

    def remove(self, name: str) -> None:
        self._folder("remove", name, lambda: self._inner.remove(name))
        self._files.pop(name, None)

    def rename(self, old: str, new: str) -> None:
        self._folder("rename", old, lambda: self._inner.rename(old, new))
        self._files[new] = self._files.pop(old)

    def sync(self) -> None:
        self._folder("sync", "", self._inner.sync)
        self._durable_names = dict(self._files)

    def lock(self, name: str) -> DiskLock | None:
        return self._folder("lock", name, lambda: self._inner.lock(name))

    def path(self, name: str) -> None:
        """Return nothing: what is done past us would not fail."""


class FaultyFile:
    def __init__(self, disk: FaultyDisk, name: str, inner: File, image: "_FileImage") -> None:
        self._disk = disk
        self._name = name
        self._inner = inner
        self._image = image

    def _ask(self, verb: str, act: Callable[[], T], half: Callable[[], object] | None = None) -> T:
        return self._disk.ask(verb, self._name, act, half or _nothing)

    def read(self, offset: int, length: int) -> bytes:
        return self._ask("read", lambda: self._inner.read(offset, length))

    def write(self, offset: int, buffers: Sequence[Buffer]) -> None:
        data = b"".join(buffers)
        self._ask(
            "write",
            lambda: self._write(offset, data),
            lambda: self._write(offset, data[: len(data) // 2]),
        )

    def _write(self, offset: int, data: bytes) -> None:
        self._inner.write(offset, [data])
        self._image.write(offset, data)

    def sync(self) -> None:
        try:
            self._ask("sync", self._inner.sync)
        except BaseException:
            self._image.pending.clear()
            raise
        self._image.settle()

    def reserve(self, size: int) -> None:
        self._ask("reserve", lambda: self._reserve(size))

    def _reserve(self, size: int) -> None:
        self._inner.reserve(size)
        self._image.write(len(self._image.now), bytes(max(0, size - len(self._image.now))))

    def truncate(self, size: int) -> None:
        self._ask("truncate", lambda: self._truncate(size))

    def _truncate(self, size: int) -> None:
        self._inner.truncate(size)
        self._image.resize(size)

    def erase(self, offset: int, length: int) -> None:
        self._ask("erase", lambda: self._erase(offset, length))

    def _erase(self, offset: int, length: int) -> None:
        self._inner.erase(offset, length)
        self._image.write(offset, bytes(length))

    def size(self) -> int:
        return self._ask("size", self._inner.size)

    def map(self) -> mmap | memoryview:
        return self._ask("map", self._inner.map)

    def close(self) -> None:
        self._inner.close()


@dataclass(slots=True)
class _FileImage:
    """What of a file is durable, and what a sync would make so."""

    durable: bytearray = field(default_factory=bytearray)
    now: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, int]] = field(default_factory=list)
    """From where to where it was changed."""

    def write(self, offset: int, data: bytes) -> None:
        self.resize(max(len(self.now), offset + len(data)))
        self.now[offset : offset + len(data)] = data
        self.pending.append((offset, offset + len(data)))

    def resize(self, size: int) -> None:
        if size < len(self.now):
            del self.now[size:]
            self.pending.append((size, size))
        self.now.extend(bytes(size - len(self.now)))

    def settle(self) -> None:
        """Make what was changed durable, in whole sectors, as disks do."""
        size = len(self.now)
        del self.durable[size:]
        self.durable.extend(bytes(size - len(self.durable)))
        for start, stop in self.pending:
            begin, end = start - start % _SECTOR, min(size, stop + -stop % _SECTOR)
            self.durable[begin:end] = self.now[begin:end]
        self.pending.clear()


def syncs_tried_again(calls: Sequence[Call]) -> list[int]:
    """Return the calls that sync a file again after that failed, with nothing written between."""
    again: list[int] = []
    failed: set[str] = set()
    for number, call in enumerate(calls):
        if call.verb in _CHANGES:
            failed.discard(call.name)
        elif call.verb == "sync" and call.name in failed:
            again.append(number)
        elif call.verb == "sync" and call.name and call.failed:
            failed.add(call.name)
    return again


def _content(disk: Disk, name: str) -> bytearray:
    file = disk.open(name)
    return bytearray(file.read(0, file.size()))


def _nothing() -> None:
    """Leave nothing behind."""
