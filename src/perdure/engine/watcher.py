"""What tells a process that lives long whether files changed since they were looked at."""

import shutil
import tempfile
import threading
import time
from pathlib import Path

from perdure.files import Closing

_GATHERED, _LONGEST_SILENCE = 20, 200
"""Milliseconds."""
_LONGEST_ANSWER = 1.0
_LOCAL_DISKS = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}
)


class ChangeWatcher(Closing):
    """Tells whether anything below a folder changed, so that it need not be looked at again.

    The system tells of changes in their order. So a file of our own is made, in another folder that
    is watched too; once the system tells of it, it has told of all that was done before.
    """

    def __init__(self, root: str, own: Path) -> None:
        from watchfiles._rust_notify import RustNotify  # noqa: PLC0415 - an extra

        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._own = Path(tempfile.mkdtemp(dir=own))
        self._lock = threading.Lock()
        self._changes = self._marks = 0
        self._is_dead = False
        self.settled = -1
        """As of which count everything was looked at."""
        self._notify = RustNotify([root, str(self._own)], False, False, 0, True, False)  # noqa: FBT003 - it takes no names

    def changes(self) -> int | None:
        """Return a count that grows with every change so far; None if nobody can tell."""
        with self._lock:
            if self._is_dead:
                return None
            self._marks += 1
            mark = self._own / str(self._marks)
            mark.touch()
            deadline = time.monotonic() + _LONGEST_ANSWER
            while time.monotonic() < deadline:
                told = self._notify.watch(_GATHERED, 1, _LONGEST_SILENCE, None)
                paths = set() if isinstance(told, str) else {path for _, path in told}
                self._changes += any(Path(path).parent != self._own for path in paths)
                if str(mark) in paths:
                    mark.unlink(missing_ok=True)
                    return self._changes
            self._is_dead = True  # its thread is gone, as after a fork
            return None

    def close(self) -> None:
        self._is_dead = True
        self._notify.close()
        shutil.rmtree(self._own, ignore_errors=True)


def change_watcher(root: str, own: Path) -> ChangeWatcher | None:
    """Return who watches a folder; None if nobody can: no package, no local disk, too many folders.

    Of a disk that other machines write to, the system does not tell.
    """
    if _disk_of(root) not in _LOCAL_DISKS:
        return None
    try:
        return ChangeWatcher(root, own)
    except (ImportError, OSError, RuntimeError):
        return None


def _disk_of(path: str) -> str:
    """Return the kind of file system that a folder is on; empty if the system does not tell."""
    try:
        mounts = Path("/proc/self/mounts").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    found = [line.split(" ") for line in mounts]
    above = [
        (len(where), kind)
        for _, where, kind, *_ in found
        if where == "/" or f"{path}/".startswith(f"{where}/")
    ]
    return max(above, default=(0, ""))[1]
