"""Who holds a lock."""

import hashlib
import itertools
import os
import secrets
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple


class Holder(NamedTuple):
    """Who has the baton, as its name says."""

    since: float
    nonce: str
    pid: int
    machine: str
    host: str

    @classmethod
    def parse(cls, name: str) -> "Holder":
        _, since, nonce, pid, machine, host = name.split(".", 5)
        return cls(int(since) / 1000, nonce, int(pid), machine, host)

    @property
    def mutex(self) -> str:
        """Which of its process's locks it took; the name of that one's record."""
        return self.nonce.partition("-")[0]

    def described(self) -> str:
        since = datetime.fromtimestamp(self.since, UTC).isoformat(timespec="seconds")
        return f"process {self.pid} on {self.host} since {since}"

    @property
    def died(self) -> bool:
        """Whether it is sure to be gone; only knowable on the machine that it runs on."""
        if self.machine != _this_machine()[0]:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


class Signature:
    """How this process signs the baton: each time with a name that was never used before."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.mutex = secrets.token_hex(6)
        self._process = f"{self.pid}.{'.'.join(_this_machine())}"
        self._count = itertools.count()

    def sign(self) -> tuple[str, str]:
        """Return a new nonce, and the holder's part of the baton's name."""
        nonce = f"{self.mutex}-{next(self._count):x}"
        return nonce, f"{time.time_ns() // 1_000_000}.{nonce}.{self._process}"


@cache
def _this_machine() -> tuple[str, str]:
    """Name what process numbers are unique in: host, boot and process namespace."""
    host = "".join(c if c.isalnum() or c in "-_." else "_" for c in os.uname().nodename)[:80]
    traits = [host]
    with suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            traits.append(boot.read())
        traits.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\n".join(traits).encode()).hexdigest()[:12], host
