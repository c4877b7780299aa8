"""Small files in the `.harness` folder of a checkout. No link is followed: others may have made it.

A repository that somebody cloned brings whatever its authors put there.
"""

import errno
import os
from contextlib import suppress

from perdure.errors import NotTextError
from perdure.faults import explain_reading
from perdure.storage.confined import DIRECTORY, FILE, opened, read_all

HARNESS = ".harness"
"""The folder of a project for what is kept beside its files."""
_NOTHING = frozenset({errno.ENOENT, errno.ENOTDIR})


def read_local(project_root: str, name: str) -> str | None:
    """Return the text of a file; None if there is none. What is no text is a `StorageError`."""
    key = f"{HARNESS}/{name}"
    try:
        with opened(project_root, key, FILE) as descriptor:
            return read_all(descriptor).decode()
    except UnicodeDecodeError as error:
        raise NotTextError(
            f"{key!a} in {project_root!a} is no UTF-8 text. Fix: save it as UTF-8, or remove it."
        ) from error
    except OSError as error:
        if error.errno in _NOTHING:
            return None
        raise explain_reading(error, project_root, key) from error


def read_mark(project_root: str, name: str) -> str | None:
    """Return what a marker says, without the space around it; None if there is none."""
    said = read_local(project_root, name)
    return None if said is None else said.strip()


def list_local(project_root: str) -> list[str]:
    """Return the names in the folder; none if it is not there, or is a link."""
    with suppress(OSError), opened(project_root, HARNESS, DIRECTORY) as directory:
        return sorted(os.listdir(directory))  # noqa: PTH208 - of an open folder
    return []
