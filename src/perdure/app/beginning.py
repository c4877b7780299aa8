"""Sets up a home: a config file, and a store that can be written."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perdure.app.configuring import Entries, Place, Spliced, alone_in, otherwise, put, spliced
from perdure.app.opening import history_folder, recorded_of
from perdure.config import Config, ConfigFile, config_of, read_file
from perdure.errors import (
    AbsentError,
    ConcurrentModificationError,
    ConfigError,
    DirectoryNotEmptyError,
    StorageFaultError,
    StorageSelectionError,
)
from perdure.storage import ABSENT, Locator, StorageBackend, content_hash, select_backend
from perdure.storage.walk import is_directory

_FOLDER = Locator(".perdure-init")
"""A folder that belongs to a tool, as its dot says: no sweep looks into it."""
_PROBE = _FOLDER.child("check.md")
"""Written, read and removed again. What a crash left of it is removed by the next."""
PROBED = "Perdure looks whether it can write here; this may be removed.\n"

BACKEND: Place = ("storage", "backend")
VAULT: Place = ("storage", "vault", "path")

TEMPLATE = """\
# What Perdure is to do otherwise than it does by itself. All of it can be left out.

# Where memories are kept: "device-local", a folder of Perdure's own, or "vault", a folder of
# yours that others may write and sync too. Without a word here, MEMORY_VAULT_PATH in the
# environment chooses a vault, and nothing chooses device-local.
#
# [storage]
# backend = "vault"
#
# [storage.vault]
# path = "~/Notes/Agent"

# Who turns texts into vectors: "auto" takes the local model if it is installed, "none" goes by
# words alone.
#
# [embedding]
# provider = "auto"
"""


@dataclass(frozen=True, slots=True)
class Begun:
    """What was done to set up a home."""

    config: Config
    file: Path
    was_there: bool
    changed: tuple[Place, ...]
    protocol: str
    whereabouts: str
    history: Path
    """Where every version is kept."""


def begin(environ: Mapping[str, str], wanted: Entries, *, force: bool = False) -> Begun:
    """Make sure that there is a config file that has these entries, and a store that works.

    The store is opened and written first: nothing is configured that could not be used. What the
    file says otherwise is an error, unless it is to be changed by force.
    """
    _refuse_no_folder(wanted)
    file, new, config = _planned(environ, wanted, force=force)
    try:
        select_backend(config.storage)  # who is refused finds nothing made
    except StorageSelectionError:
        if not config.home.is_dir():
            raise
        # Else somebody may be trying to write there just now; alone, it is looked at again.
    with alone_in(config.home):
        file, new, config = _planned(environ, wanted, force=force)
        was_there = os.path.lexists(file.path)
        backend = select_backend(config.storage)
        _try_writing(backend)
        with recorded_of(config) as recorded:
            recorded.history.position()
            history = history_folder(config.home, recorded.identity)
        if new.changed or not was_there:
            put(file, new.text)
    return Begun(
        config,
        file.path,
        was_there,
        new.changed,
        config.storage.protocol,
        backend.whereabouts,
        history,
    )


def _planned(
    environ: Mapping[str, str], wanted: Entries, *, force: bool
) -> tuple[ConfigFile, Spliced, Config]:
    """Return the config file as it is, as it is to be, and what it says then."""
    file = read_file(environ)
    _refuse_otherwise(file, wanted, force=force)
    is_there = os.path.lexists(file.path)
    new = spliced(file if is_there else ConfigFile(file.path, TEMPLATE), wanted)
    return file, new, config_of(ConfigFile(file.path, new.text), environ)


def _refuse_no_folder(wanted: Entries) -> None:
    path = wanted.get(VAULT)
    if path is not None and os.path.lexists(path) and not Path(path).is_dir():
        raise ConfigError(
            f"the vault {path!a} is no folder. Fix: name the folder that the notes are in."
        )


def _refuse_otherwise(file: ConfigFile, wanted: Entries, *, force: bool) -> None:
    for place in [] if force else otherwise(file, wanted):
        *tables, key = place
        raise file.refuse(
            place,
            f"{key} in [{'.'.join(tables)}] is another already, and is left as it is",
            f"add --force to make it {wanted[place]!a}, or leave the option out",
        )


def _try_writing(backend: StorageBackend) -> None:
    """Write, read and remove a text, by the verbs that every write goes through."""
    _clear(backend)
    backend.write(_PROBE, PROBED, expect=ABSENT)
    try:
        if backend.read(_PROBE) != PROBED:
            raise StorageFaultError(
                f"what was written to {backend.whereabouts!a} is not what is read there. "
                "Fix: check the disk."
            )
    finally:
        _clear(backend)


def _clear(backend: StorageBackend) -> None:
    """Remove what we wrote, and nothing else."""
    with suppress(AbsentError, ConcurrentModificationError):
        backend.remove(_PROBE, expect=content_hash(PROBED))
    if is_directory(backend, _FOLDER):
        with suppress(AbsentError, DirectoryNotEmptyError):
            backend.remove(_FOLDER)
