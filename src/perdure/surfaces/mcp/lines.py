"""What a client sends, line by line."""

import os
import stat
from collections.abc import AsyncIterator

import anyio

MOST_BYTES = 4 * 1024 * 1024
"""Of one message; the longest memory, with every character escaped, is a fourth of it."""
TOO_LONG = "this message was too long"
"""What is read in the place of one that is longer: no JSON, so that it is answered as that."""
_AT_ONCE = 65536


class Lines:
    """The lines of a descriptor; who waits for the next can be called off.

    No more than `MOST_BYTES` are held, whatever is sent.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waits = _can_wait(descriptor)

    async def __aiter__(self) -> AsyncIterator[str]:
        rest, is_skipping = b"", False
        while data := await self._read():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield TOO_LONG if is_skipping or len(line) > MOST_BYTES else _text(line)
                is_skipping = False
            if len(rest) > MOST_BYTES:
                rest, is_skipping = b"", True
        if rest:
            yield _text(rest)

    async def _read(self) -> bytes:
        if self._waits:
            await anyio.wait_readable(self._descriptor)
        else:
            await anyio.lowlevel.checkpoint()
        return os.read(self._descriptor, _AT_ONCE)


def _text(line: bytes) -> str:
    return line.decode(errors="replace")


def _can_wait(descriptor: int) -> bool:
    """Whether there is anything to wait for; a file or the null device is always ready."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
