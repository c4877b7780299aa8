"""Run one command, and leave none of its processes and files behind.

`command_line` starts this file as a program. It kills the command when its time is over, or when
the process that started it has ended, which closes the pipe `lifeline`. On Linux, processes that
left the process group of the command are killed too. Finally, it removes the folder of the run.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

TIMED_OUT = 124
_IS_LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main(lifeline: int, seconds: float, folder: str, words: Sequence[str]) -> int:
    """Run a command and return its exit status; `TIMED_OUT` if it was killed."""
    waking, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _control(_PR_SET_CHILD_SUBREAPER, 1)
    command = subprocess.Popen(  # noqa: S603 - what our parent chose
        words,
        process_group=None if _IS_LINUX else 0,
        preexec_fn=lambda: _control(_PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509 - one thread
    )
    until = time.monotonic() + seconds
    while command.poll() is None and (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([lifeline, waking], [], [], left)
        if lifeline in ready:
            break
        if waking in ready:
            os.read(waking, 4096)
    status = command.poll()
    _end(command.pid)
    shutil.rmtree(folder, ignore_errors=True)
    return TIMED_OUT if status is None else abs(status)


def _end(command: int) -> None:
    """Kill every process that descends from this one, and wait until all are gone."""
    if not _IS_LINUX:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(command, signal.SIGKILL)
    while True:
        for each in _children():
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)  # orphans become children of this process
        except ChildProcessError:
            return


def _children() -> Iterator[int]:
    """Yield the child processes of this process; none where there is no /proc."""
    for file in Path("/proc").glob("[0-9]*/stat") if _IS_LINUX else ():
        with suppress(OSError):
            if file.read_bytes().rpartition(b")")[2].split()[1] == str(os.getpid()).encode():
                yield int(file.parent.name)


def _control(option: int, value: int) -> None:
    if _IS_LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4:]))
