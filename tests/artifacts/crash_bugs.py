"""Ways to get the protocol of the store wrong, each by leaving one thing out."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast
from unittest.mock import patch

from perdure.artifacts import ArtifactStore, artifact_store, content_index, log, segment
from perdure.artifacts.disk import Disk, File
from tests.support.artifacts.workloads import open_store

Replace = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Bug:
    name: str
    disk: Callable[[Disk], Disk] = lambda disk: disk
    """What comes between the store and its disk."""
    functions: tuple[tuple[ModuleType | type, str, Replace], ...] = ()
    """What is replaced, and what makes the replacement from the right one."""


def opening(bugs: Sequence[Bug]) -> Callable[[Disk], ArtifactStore]:
    """Return what opens a store that has these bugs, as long as it is `broken`."""

    def open_broken(disk: Disk) -> ArtifactStore:
        for bug in bugs:
            disk = bug.disk(disk)
        return open_store(disk)

    return open_broken


@contextmanager
def broken(bugs: Sequence[Bug]) -> Iterator[None]:
    with ExitStack() as stack:
        for bug in bugs:
            for module, name, replace in bug.functions:
                right = getattr(module, name)
                stack.enter_context(patch.object(module, name, replace(right)))
        yield


# ---------------------------------------------------------------- disks that leave something out
class _Wrapper:
    def __init__(self, inner: Any) -> None:  # noqa: ANN401 - a disk, or a file
        self._inner = inner

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - it is whatever the inner one has
        return getattr(self._inner, name)


class _FileWithoutSync(_Wrapper):
    def sync(self) -> None:
        pass


class _FileWithoutCut(_Wrapper):
    def truncate(self, size: int) -> None:
        pass


class _DiskWithoutSync(_Wrapper):
    def sync(self) -> None:
        pass


class _DiskOf(_Wrapper):
    def __init__(self, inner: Disk, wrapper: type[_Wrapper]) -> None:
        super().__init__(inner)
        self._wrapper = wrapper

    def open(self, name: str, *, create: bool = False) -> File:
        return cast("File", self._wrapper(self._inner.open(name, create=create)))


def _with_files(wrapper: type[_Wrapper]) -> Callable[[Disk], Disk]:
    return lambda disk: cast("Disk", _DiskOf(disk, wrapper))


# ---------------------------------------------------------------- checks that find all in order
class _LenientNumber(int):
    """The right number, that takes every other one for its equal."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__


class _LenientBytes(bytes):
    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = bytes.__hash__


def _lenient(kind: type) -> Replace:
    return lambda right: lambda *given: kind(right(*given))


def _always(*, answer: object) -> Replace:
    return lambda _right: lambda *_given: answer


_CHECKSUMS = (
    (segment, "extend_crc32c"),
    (segment, "crc32c"),
    (segment, "records_checksum"),
    (log, "crc32c"),
    (artifact_store, "crc32c"),
    (content_index, "crc32c"),
)

BUGS = (
    Bug("no sync of files", disk=_with_files(_FileWithoutSync)),
    Bug("no sync of the folder", disk=lambda disk: cast("Disk", _DiskWithoutSync(disk))),
    Bug("no cut", disk=_with_files(_FileWithoutCut)),
    Bug("no check of the last payload", functions=((log, "damaged_puts", _always(answer=[])),)),
    Bug(
        "no look beyond the end",
        functions=((segment.SegmentReader, "is_blank", _always(answer=True)),),
    ),
    Bug("no check of seals", functions=((segment, "seal", _lenient(_LenientBytes)),)),
    Bug(
        "no checksums",
        functions=tuple((module, name, _lenient(_LenientNumber)) for module, name in _CHECKSUMS),
    ),
)
