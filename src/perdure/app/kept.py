"""The settings that an index was made with, in a file beside it; never a key."""

import json
import os
import stat
from pathlib import Path

from perdure.config import EmbeddingSettings
from perdure.engine.whole_file import write_whole
from perdure.errors import DamageError

FILE = "embedder.json"
_MOST = 10_000
_TEXTS = ("provider", "base_url", "model")
_OTHERS = 0o077


def keep_settings(folder: Path, settings: EmbeddingSettings) -> None:
    """Write down the settings, whole or not at all, for nobody else to read; and that it is now."""
    told = {name: getattr(settings, name) for name in (*_TEXTS, "dimension")}
    content = f"{json.dumps(told, indent=2)}\n".encode()
    path = folder / FILE
    if _content(path) == content:
        os.utime(path)
        return
    write_whole(path, content)


def last_used(folder: Path) -> float:
    """Return when somebody last had these settings; 0 if nobody knows."""
    try:
        return (folder / FILE).lstat().st_mtime
    except OSError:
        return 0.0


def kept_settings(folder: Path) -> EmbeddingSettings:
    """Return the settings that were written down; `DamageError` if there are none to trust."""
    content = _content(folder / FILE)
    if content is None:
        raise DamageError(f"they have no {FILE} of their own. Fix: make new vectors.")
    try:
        told = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _wrong() from error
    if not isinstance(told, dict) or set(told) != {*_TEXTS, "dimension"}:
        raise _wrong()
    dimension = told.pop("dimension")
    if not all(isinstance(value, str) for value in told.values()):
        raise _wrong()
    if dimension is not None and type(dimension) is not int:
        raise _wrong()
    return EmbeddingSettings(**told, dimension=dimension)


def _wrong() -> DamageError:
    return DamageError(f"their {FILE} can't be understood. Fix: make new vectors.")


def _content(path: Path) -> bytes | None:
    """Return what a plain file of ours says that nobody else could change or read; else None."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        plain = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if not plain or found.st_mode & _OTHERS or found.st_size > _MOST:
            return None
        return os.read(descriptor, _MOST)
    except OSError:
        return None
    finally:
        os.close(descriptor)
