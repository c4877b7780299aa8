"""Config files of others: read whole, and replaced at once or not at all."""

import glob
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from perdure.errors import ConcurrentModificationError, DirectoryInTheWayError, NotTextError

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Found:
    """What a file has; None if there is no file."""

    path: Path
    """Where it really is: a link is followed, and stays one."""
    content: bytes | None

    @classmethod
    def at(cls, path: Path) -> "Found":
        real = Path(os.path.realpath(path))
        if real.is_dir():
            raise DirectoryInTheWayError(
                f"{str(path)!a} is a folder. Fix: move it away; a file has to be there."
            )
        try:
            return cls(real, real.read_bytes())
        except FileNotFoundError:
            return cls(real, None)

    @property
    def text(self) -> str:
        """What it says; a mark of its byte order is left out."""
        return self._decoded().removeprefix(_BOM)

    def encoded(self, text: str) -> bytes:
        """Return a text as it would stand in the file."""
        return ((_BOM if self._decoded().startswith(_BOM) else "") + text).encode()

    def _decoded(self) -> str:
        try:
            return (self.content or b"").decode()
        except UnicodeDecodeError as error:
            raise NotTextError(
                f"{str(self.path)!a} is no UTF-8 text. Fix: save it as UTF-8; nothing was written."
            ) from error

    def replace(self, content: bytes | None) -> None:
        """Put other content in its place, with the same permissions; None removes it.

        If somebody wrote it since it was read, that is `ConcurrentModificationError`, and stays.
        """
        if content is None:
            self._refuse_changed()
            self.path.unlink()
            return
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in self.path.parent.glob(f".{glob.escape(self.path.name)}.perdure-*"):
            left.unlink(missing_ok=True)  # of somebody who was killed
        aside = self.path.with_name(f".{self.path.name}.perdure-{uuid4().hex}")
        try:
            _write(aside, content, self._mode())
            self._refuse_changed()
            aside.replace(self.path)
        finally:
            aside.unlink(missing_ok=True)
        _sync(self.path.parent)

    def _mode(self) -> int:
        try:
            return stat.S_IMODE(self.path.stat().st_mode)
        except FileNotFoundError:
            return 0o600

    def _refuse_changed(self) -> None:
        if Found.at(self.path).content != self.content:
            raise ConcurrentModificationError(
                f"{str(self.path)!a} was changed by somebody else just now. It was left alone. "
                "Fix: close the agent, and run this again."
            )


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _write(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
