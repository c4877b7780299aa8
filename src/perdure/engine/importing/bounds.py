"""Reading files that somebody else made, in bounds, with typed errors only."""

import io
import os
import stat
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

from perdure.errors import UnreadableSourceError
from perdure.model.values import shown

MOST_BYTES = 8_000_000_000
"""Of one file, as it is when it is unpacked."""
MOST_RATIO = 200
"""So many times larger than packed a file may be; exports are some twenty times."""
SMALL = 1_000_000
"""What is no larger unpacked is harmless, however well it was packed."""

DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
"""What Python says of an archive that is damaged, encrypted, or packed in a way it can't read."""

Result = TypeVar("Result")


def guarded(read: Callable[[], Result]) -> Result:
    """Return what `read` does; whatever is wrong with a file is `UnreadableSourceError`."""
    try:
        return read()
    except UnreadableSourceError:
        raise
    except OSError as error:
        raise UnreadableSourceError(
            f"it can't be read: {error.strerror}. Fix: make it readable for this user."
        ) from error
    except DAMAGED as error:
        raise UnreadableSourceError(
            f"it can't be unpacked: {shown(str(error))}. Fix: download the archive again."
        ) from error


class Bounded(io.RawIOBase):
    """A stream that gives no more than it may, and tells how much it gave."""

    def __init__(self, open_: Callable[[], BinaryIO], count: Callable[[int], None]) -> None:
        self._stream = guarded(open_)
        self._count = count
        self._left = MOST_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what io hands over
        data = guarded(lambda: self._stream.read(len(buffer)))
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableSourceError(f"it has more than {MOST_BYTES:,} bytes. Fix: split it.")
        self._count(len(data))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def opened(path: Path) -> BinaryIO:
    """Open a plain file; what became a link or a device since it was seen is refused."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    stream = os.fdopen(handle, "rb")
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return stream
    stream.close()
    raise UnreadableSourceError("it is no plain file. Fix: put one in its place.")


def unpacked(archive: zipfile.ZipFile, packed: zipfile.ZipInfo) -> BinaryIO:
    """Open a file of an archive; one that would grow out of all proportion is refused."""
    if packed.file_size > max(SMALL, MOST_RATIO * packed.compress_size):
        raise UnreadableSourceError(
            f"it would be {packed.file_size:,} bytes, out of {packed.compress_size:,}. "
            "Fix: look at who made the archive; a real one unpacks with other tools."
        )
    if packed.flag_bits & 1:
        raise UnreadableSourceError("it is encrypted. Fix: unpack it yourself, then import it.")
    return archive.open(packed)  # type: ignore[return-value] # reads like one, up to that size
