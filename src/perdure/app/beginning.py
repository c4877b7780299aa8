"""Sets up a home: a config file, and a store that can be written."""

import json
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
from perdure.storage import (
    ABSENT,
    Locator,
    StorageBackend,
    content_hash,
    registry,
    select_backend,
)
from perdure.storage.contract import is_directory

_FOLDER = Locator(".perdure-init")
"""A folder that belongs to a tool, as its dot says: no sweep looks into it."""
_PROBE = _FOLDER.child("check.md")
"""Written, read and removed again. What a crash left of it is removed by the next."""
PROBED = "Perdure looks whether it can write here; this may be removed.\n"

_BACKEND: Place = ("storage", "backend")
_VAULT: Place = ("storage", "vault", "path")

_LISTS = (".config/obsidian/obsidian.json", "Library/Application Support/obsidian/obsidian.json")
"""Where Obsidian keeps the list of its vaults, below a user's home."""

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


def backends() -> tuple[str, ...]:
    """Return the names of the backends that can be configured."""
    return registry.protocols()


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


def begin(
    environ: Mapping[str, str],
    *,
    vault: str | None = None,
    backend: str | None = None,
    force: bool = False,
) -> Begun:
    """Make sure that there is a config file that names this storage, and a store that works.

    The store is opened and written first: nothing is configured that could not be used. What the
    file says otherwise is an error, unless it is to be changed by force.
    """
    wanted: dict[Place, str] = {} if backend is None else {_BACKEND: backend}
    if vault is not None:
        wanted = {_BACKEND: "vault", _VAULT: str(Path(vault).expanduser().absolute())}
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
        storage = select_backend(config.storage)
        _try_writing(storage)
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
        storage.whereabouts,
        history,
    )


def find_vault() -> str:
    """Return the one vault that Obsidian has on this machine; `AbsentError` unless it is one."""
    vaults = sorted({path for each in _LISTS for path in _listed(Path.home() / each)})
    if len(vaults) == 1:
        return vaults[0]
    said = ", ".join(map(ascii, vaults))
    what = f"Obsidian has several vaults: {said}" if vaults else "Obsidian knows of no vault here"
    raise AbsentError(f"{what}. Fix: name the folder with --vault.")


def _listed(file: Path) -> list[str]:
    with suppress(OSError, ValueError, RecursionError):
        match json.loads(file.read_bytes()):
            case {"vaults": dict(vaults)}:
                paths = (each.get("path") for each in vaults.values() if isinstance(each, dict))
                return [path for path in paths if isinstance(path, str) and Path(path).is_dir()]
    return []


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
    path = wanted.get(_VAULT)
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
