"""Who keeps the sessions that wait: a process of its own, and one at a time."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from perdure.surfaces.hooks.trouble import folder_of

_RUN = "from perdure.surfaces.cli import main; main()"


def start_draining(home: Path, environ: Mapping[str, str]) -> None:
    """Let a process of its own keep what waits, unless one is at it.

    That one looks again after it has let the lock go, so it sees what was noted before this.
    """
    with locked(home) as is_ours:
        if not is_ours:
            return
    subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-c", _RUN, "hook", "drain"],
        env=dict(environ),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # it may outlive the agent
    )


@contextmanager
def locked(home: Path) -> Iterator[bool]:
    """Say whether nobody else keeps sessions now; if so, nobody does until this ends."""
    folder = folder_of(home)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)
