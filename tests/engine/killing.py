"""Another process, which is killed after so many calls of the system."""

import os
from collections.abc import Callable

from perdure.storage import openat

CALLS = ("fsync", "fdatasync", "replace", "rename", "link", "unlink", "rmdir", "mkdir", "pwrite")
"""After each of these a process may be killed; so it is seen at every step of what it does."""
KILLED = 9


class _Killer:
    """Ends the process, with nothing cleared up."""

    def __init__(self, after: int) -> None:
        self.calls = 0
        self._after = after
        for name in CALLS:
            setattr(os, name, self._counted(getattr(os, name)))
        setattr(openat, "rename", self._counted(openat.rename))  # noqa: B010 - mypy knows no other way

    def _counted(self, call: Callable[..., object]) -> Callable[..., object]:
        def counted(*args: object, **kwargs: object) -> object:
            done = call(*args, **kwargs)
            self.calls += 1
            if self.calls == self._after:
                os._exit(KILLED)
            return done

        return counted


def killed(action: Callable[[], object], after: int) -> int:
    """Do something in another process, killed after so many calls; return how many it made.

    With 0 it is not killed, and must end well. That of a process that was killed is 0.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            killer = _Killer(after)
            action()
            os.write(write, str(killer.calls).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as file:
        output = file.read()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code == (0 if output else KILLED), code
    return int(output or 0)
