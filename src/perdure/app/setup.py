"""Set up a home: edit its config file, and check that its store can be written."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from math import inf
from pathlib import Path

from perdure.app.identity import find_store
from perdure.app.open import ACCOUNT, census, recorded_for, store_for
from perdure.config import (
    STATE_MODES,
    Config,
    ConfigFile,
    config_from,
    load_config,
    read_file,
    value_at,
)
from perdure.dataclass import dataclass, field
from perdure.errors import (
    AbsentError,
    ConcurrentModificationError,
    ConfigError,
    InvalidValueError,
    StorageFaultError,
    StorageSelectionError,
    storage_error,
)
from perdure.files import locked, replace_unchanged
from perdure.model import RequestContext
from perdure.storage import ABSENT, Locator, StorageBackend, content_hash, registry, select_backend
from perdure.storage.contract import Layout
from perdure.storage.device_local import DeviceLocalBackend

Key = tuple[str, ...]
Entries = Mapping[Key, str]
"""Values of the config file by table, table in it, and key."""

_BACKEND: Key = ("storage", "backend")
_VAULT: Key = ("storage", "vault", "path")
_LAYOUT: Key = ("storage", "layout")
_USER: Key = ("user",)
_PROBE = Locator(".perdure-init.md")
"""Written, read and removed again; hidden, and in no folder, which another process could remove
while this one writes into it. The next probe removes what a crash left."""
PROBE_TEXT = "Perdure looks whether it can write here; this may be removed.\n"
_OBSIDIAN_LISTS = (
    ".config/obsidian/obsidian.json",
    "Library/Application Support/obsidian/obsidian.json",
)
"""Where Obsidian lists its vaults, below a user's home."""
TEMPLATE = """\
# Settings that differ from Perdure's defaults. Everything in this file is optional.

# Where memories are stored: "device-local", a folder of Perdure's own, or "vault", a folder of
# yours that other programs may edit and sync too. If this is not set, MEMORY_VAULT_PATH in the
# environment selects a vault; if that is not set either, device-local is used.
#
# [storage]
# backend = "vault"
#
# [storage.vault]
# path = "~/Notes/Agent"

# Which embedder turns texts into vectors: "auto" uses the local model if it is installed, "none"
# compares words only.
#
# [embedding]
# provider = "auto"
"""


# ---------------------------------------------------------------- the config file
def edit_config(file: ConfigFile, entries: Entries) -> tuple[str, tuple[Key, ...]]:
    """Return the text with these entries, and which keys changed."""
    text, changed = file.text, []
    for key, value in entries.items():
        before = ConfigFile(file.path, text)
        if value_at(before.parse(), key) != value:
            text = _with(before, key, value)
            changed.append(key)
    return text, tuple(changed)


def _with(file: ConfigFile, key: Key, value: str) -> str:
    from perdure.toml import with_value

    try:
        return with_value(file.text, key, value)
    except InvalidValueError as error:
        *tables, name = key
        where = f"[{'.'.join(tables)}]" if tables else "its first line"
        raise ConfigError(
            f"{file.path} has a form that can't be edited automatically. "
            f"Fix: set {name} = {json.dumps(value)} in {where} yourself."
        ) from error


def write_config(file: ConfigFile, text: str) -> None:
    """Replace the config file durably, if it is unchanged since it was read."""
    replace_unchanged(file.path, file.text.encode(), text.encode())


def storage_entries(backend: str, vault: str | None) -> Entries:
    """Return the entries that select a backend, and the folder of a vault."""
    path = {} if vault is None else {_VAULT: absolute(vault)}
    return {_BACKEND: backend, **path}


def absolute(folder: str) -> str:
    return str(Path(folder).expanduser().absolute())


def backends() -> tuple[str, ...]:
    return registry.protocols()


def set_state_mode(environ: Mapping[str, str], mode: str) -> None:
    """Write into the config where the state of projects is stored on this machine.

    The rest of the file stays byte for byte. An invalid file is refused and not changed.
    """
    load_config(environ)
    file = read_file(environ)
    if mode not in STATE_MODES:
        raise ConfigError(f"{mode[:80]!a} is not a state_mode. Fix: use backend or local.")
    write_config(file, _with(file, ("state_mode",), STATE_MODES[mode]))


def configure_vault(environ: Mapping[str, str], folder: str, store: str) -> bool:
    """Point the config to the folder of a store; return whether the file changed.

    The path is changed only if the configured vault is gone, or held this store.
    """
    file, path = read_file(environ), os.path.realpath(Path(folder).expanduser())
    current = value_at(file.parse(), _VAULT)
    if not isinstance(current, str):
        return False
    before = Path(current).expanduser()
    if os.path.realpath(before) == path:
        return False
    if before.is_dir():
        backend = DeviceLocalBackend(str(before), str(file.path.parent))
        if find_store(file.path.parent, backend.identity, backend).id != store:
            return False
    write_config(file, edit_config(file, {_VAULT: path})[0])
    return True


def configure_layout(environ: Mapping[str, str], layout: str) -> None:
    """Change the layout that a config file names; a file that names none stays unchanged."""
    file = read_file(environ)
    if value_at(file.parse(), _LAYOUT) not in (None, layout):
        write_config(file, edit_config(file, {_LAYOUT: layout})[0])


def setup_lock(home: Path) -> AbstractContextManager[int | None]:
    """Lock a home for one process that sets it up; creates the home if it is absent."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(error, str(home.parent), home.name) from error
    return locked(home, inf)


# ---------------------------------------------------------------- init
@dataclass(frozen=True, slots=True)
class InitResult:
    config: Config
    file: Path
    was_there: bool
    changed: tuple[Key, ...]
    protocol: str
    whereabouts: str
    store: str
    history: Path
    notes: int = 0
    """How many notes of a vault are nodes in place."""
    others: Mapping[str, int] = field(default_factory=dict)
    """How many other files the vault has, by suffix; they are not memory."""
    left_out: Sequence[str] = ()
    """Which notes are not memory, why, and the fix."""


def init_home(
    environ: Mapping[str, str],
    *,
    vault: str | None = None,
    backend: str | None = None,
    force: bool = False,
) -> InitResult:
    """Write a config file that names this storage, once its store was opened and written.

    A config file that names another storage is an error, unless `force` is given.
    """
    named = backend if vault is None else "vault"
    wanted = {} if named is None else storage_entries(named, vault)
    path = wanted.get(_VAULT)
    if path is not None and os.path.lexists(path) and not Path(path).is_dir():
        raise ConfigError(
            f"the vault {path!a} is not a folder. Fix: name the folder that the notes are in."
        )
    *_, config = _plan_config(environ, wanted, force=force)
    try:
        select_backend(config.storage)  # a refusal leaves nothing behind
    except StorageSelectionError:
        if not config.home.is_dir():
            raise
        # Another process may be probing the store: the check is repeated under the lock.
    with setup_lock(config.home):
        file, text, changed, config = _plan_config(environ, wanted, force=force)
        if (owner := _owner_of(config)) and value_at(file.parse(), _USER) is None:
            wanted = {**wanted, _USER: owner}
            file, text, changed, config = _plan_config(environ, wanted, force=force)
        was_there = os.path.lexists(file.path)
        with recorded_for(config) as recorded:
            layout = recorded.inner
            _probe(layout.inner if isinstance(layout, Layout) else layout)
            recorded.introduce()
            recorded.history.position()
            notes, others, left_out = census(layout)
        store = store_for(config)
        if changed or not was_there:
            write_config(file, text)
    return InitResult(
        config,
        file.path,
        was_there,
        changed,
        config.storage.protocol,
        recorded.whereabouts,
        store.id,
        store.folder,
        notes,
        others,
        tuple(left_out),
    )


def _plan_config(
    environ: Mapping[str, str], wanted: Entries, *, force: bool
) -> tuple[ConfigFile, str, tuple[Key, ...], Config]:
    """Return the current config file, its new text, the keys that change, and the new config."""
    file = read_file(environ)
    current = file.parse()
    for key, value in wanted.items():
        if force or value_at(current, key) in (None, value):
            continue
        *tables, name = key
        raise file.refuse(
            key,
            f"{name} in [{'.'.join(tables)}] has another value, which is not changed",
            f"add --force to make it {value!a}, or leave the option out",
        )
    is_there = os.path.lexists(file.path)
    text, changed = edit_config(file if is_there else ConfigFile(file.path, TEMPLATE), wanted)
    return file, text, changed, config_from(ConfigFile(file.path, text), environ)


def _owner_of(config: Config) -> str:
    """Return the user whose memories a store has; empty if that is the configured user."""
    backend = select_backend(config.storage)
    owner = find_store(config.home, backend.identity, backend).owner
    try:
        return "" if owner in {"", config.user} else RequestContext(ACCOUNT, owner).user_id
    except InvalidValueError:  # the note of the store names no valid user
        return ""


def find_vault() -> str:
    """Return the vault of Obsidian on this machine; `AbsentError` if there is none or several."""
    vaults = sorted({path for each in _OBSIDIAN_LISTS for path in _listed(Path.home() / each)})
    if len(vaults) == 1:
        return vaults[0]
    names = ", ".join(map(ascii, vaults))
    what = f"Obsidian has several vaults: {names}" if vaults else "Obsidian has no vault here"
    raise AbsentError(f"{what}. Fix: name the folder with --vault.")


def _listed(file: Path) -> list[str]:
    with suppress(OSError, ValueError, RecursionError):
        match json.loads(file.read_bytes()):
            case {"vaults": dict(vaults)}:
                paths = (each.get("path") for each in vaults.values() if isinstance(each, dict))
                return [path for path in paths if isinstance(path, str) and Path(path).is_dir()]
    return []


def _probe(backend: StorageBackend) -> None:
    """Write, read and remove a text, with the verbs that every write uses."""
    _remove_probe(backend)
    with suppress(ConcurrentModificationError):  # another home probes the same vault
        backend.write(_PROBE, PROBE_TEXT, expect=ABSENT)
    try:
        with suppress(AbsentError):  # the other process removed it
            if backend.read(_PROBE) != PROBE_TEXT:
                raise StorageFaultError(
                    f"what was written to {backend.whereabouts!a} is not what is read there. "
                    "Fix: check the disk."
                )
    finally:
        _remove_probe(backend)


def _remove_probe(backend: StorageBackend) -> None:
    with suppress(AbsentError, ConcurrentModificationError):
        backend.remove(_PROBE, expect=content_hash(PROBE_TEXT))
