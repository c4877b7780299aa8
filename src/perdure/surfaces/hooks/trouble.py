"""What went wrong in hooks, in a file of bounded size: nobody reads what they print."""

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from perdure.model.values import shortened, visible

MOST_BYTES = 256 * 1024
_LONGEST = 1_000


def folder_of(home: Path) -> Path:
    """Return where hooks keep what is theirs."""
    return home / "hooks"


def note(home: Path, what: str) -> None:
    """Add a line; if even that can't be done, nothing is."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    line = f"{now} {visible(shortened(' '.join(what.split()), _LONGEST))}\n"
    with suppress(OSError):
        _append(_made(folder_of(home)) / "log", line.encode(errors="backslashreplace"))


def _append(path: Path, line: bytes) -> None:
    """Write a line at once, so that lines of many processes do not mix."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(descriptor).st_size > MOST_BYTES:
            path.replace(path.with_name("log.1"))  # what comes later begins anew
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def noted(home: Path) -> tuple[int, str]:
    """Return how many troubles there are, and the last; none is 0 and nothing."""
    try:
        lines = (folder_of(home) / "log").read_text(errors="replace").splitlines()
    except OSError:
        return 0, ""
    return len(lines), lines[-1] if lines else ""
