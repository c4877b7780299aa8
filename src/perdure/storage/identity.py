"""Whether a folder is still the same one, and not another in its place."""

import ctypes
import os
import struct
from collections.abc import Callable
from functools import cache

from perdure.storage.confined import system_library

Identity = tuple[int, int, int]
"""Device, number and time of birth: a new folder may get the number of one that is gone."""

_AT_FDCWD = -100
_STATX_INO = 0x100
_STATX_BTIME = 0x800
_STATX_BYTES = 256
_NUMBER = struct.Struct("=Q")
_BIRTH = struct.Struct("=qI")
_DEVICE = struct.Struct("=II")


def identify(path: str) -> Identity:
    """Tell a folder from every other one, also from one that is made in its place later."""
    told = _told_by_statx(path)
    if told is not None:
        return told
    status = os.stat(path)
    birth = getattr(status, "st_birthtime", 0.0)
    return status.st_dev, status.st_ino, int(birth * 1e9)


def _told_by_statx(path: str) -> Identity | None:
    statx = _statx()
    if statx is None:
        return None
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    if statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_INO | _STATX_BTIME, buffer) != 0:
        return None
    raw = buffer.raw
    major, minor = _DEVICE.unpack_from(raw, 136)
    seconds, nanoseconds = _BIRTH.unpack_from(raw, 80)
    (number,) = _NUMBER.unpack_from(raw, 32)
    return os.makedev(major, minor), number, seconds * 1_000_000_000 + nanoseconds


@cache
def _statx() -> Callable[..., int] | None:
    """Return the system's own call, which the standard library does not offer, where there is."""
    return getattr(system_library(), "statx", None)
