"""Set up a home: edit its config, make sure that its store works, and switch its backend."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from math import inf
from pathlib import Path

from perdure.app.identity import find_store
from perdure.app.opening import (
    ACCOUNT,
    arriving_into,
    census_of,
    open_recorded,
    recorded_of,
    store_of,
)
from perdure.config import (
    FILE_NAME,
    STATE_MODES,
    Config,
    ConfigFile,
    config_of,
    load_config,
    read_file,
    value_at,
)
from perdure.dataclass import dataclass, field, replace
from perdure.errors import (
    AbsentError,
    ConcurrentModificationError,
    ConfigError,
    DamageError,
    DirectoryNotEmptyError,
    InvalidValueError,
    StorageFaultError,
    StorageSelectionError,
    explain,
)
from perdure.files import locked, replace_unchanged, write_whole
from perdure.model import RequestContext
from perdure.storage import ABSENT, Locator, StorageBackend, content_hash, registry, select_backend
from perdure.storage.backends.device_local import DeviceLocalBackend
from perdure.storage.contract import Layout, is_directory
from perdure.transfer.migrate import Migration, MigrationReport

Place = tuple[str, ...]
Entries = Mapping[Place, str]
"""Texts by their places: table, table in it, key."""


def edited(file: ConfigFile, entries: Entries) -> tuple[str, tuple[Place, ...]]:
    """Return the text with these entries, and which changed; else `ConfigError`."""
    text, changed = file.text, []
    for place, value in entries.items():
        before = ConfigFile(file.path, text)
        if value_at(before.parse(), place) != value:
            text = _with(before, place, value)
            changed.append(place)
    return text, tuple(changed)


def _with(file: ConfigFile, place: Place, value: str) -> str:
    from perdure.toml import with_value

    try:
        return with_value(file.text, place, value)
    except InvalidValueError as error:
        *tables, key = place
        where = f"[{'.'.join(tables)}]" if tables else "its first line"
        raise ConfigError(
            f"{file.path} is written in a way that can't be changed for you. "
            f"Fix: set {key} = {json.dumps(value)} in {where} yourself."
        ) from error


def set_state_mode(environ: Mapping[str, str], mode: str) -> None:
    """Write into the config who keeps the state of projects on this machine.

    All else in it stays to the letter. A file that is wrong already is refused, and not changed.
    """
    load_config(environ)
    file = read_file(environ)
    if mode not in STATE_MODES:
        raise ConfigError(f"no state_mode is called {mode[:80]!a}. Fix: use backend or local.")

    put(file, _with(file, ("state_mode",), STATE_MODES[mode]))


# ---------------------------------------------------------------- the disk
def alone_in(home: Path) -> AbstractContextManager[int | None]:
    """Let one process at a time set up a home, which is made if it is not there."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise explain(error, str(home.parent), home.name) from error
    return locked(home, inf)


def put(file: ConfigFile, text: str) -> None:
    """Make `text` the config file, whole and durably, if it is still as it was read."""
    replace_unchanged(file.path, file.text.encode(), text.encode())


_FOLDER = Locator(".perdure-init")
"""A folder that belongs to a tool, as its dot says: no sweep looks into it."""
_PROBE = _FOLDER.child("check.md")
"""Written, read and removed again. What a crash left of it is removed by the next."""
PROBED = "Perdure looks whether it can write here; this may be removed.\n"

_BACKEND: Place = ("storage", "backend")
_VAULT: Place = ("storage", "vault", "path")
_LAYOUT: Place = ("storage", "layout")
_USER: Place = ("user",)

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
    return registry.protocols()


@dataclass(frozen=True, slots=True)
class Begun:
    config: Config
    file: Path
    was_there: bool
    changed: tuple[Place, ...]
    protocol: str
    whereabouts: str
    store: str
    history: Path
    notes: int = 0
    """How many notes of a vault are memory where they lie."""
    others: Mapping[str, int] = field(default_factory=dict)
    """How many other files it has, by the ending of their names; they are not memory."""
    left_out: Sequence[str] = ()
    """Which notes are not memory, why, and the fix."""


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
    named = backend if vault is None else "vault"
    wanted = {} if named is None else Target(named, vault).entries()
    path = wanted.get(_VAULT)
    if path is not None and os.path.lexists(path) and not Path(path).is_dir():
        raise ConfigError(
            f"the vault {path!a} is no folder. Fix: name the folder that the notes are in."
        )
    *_, config = _planned(environ, wanted, force=force)
    try:
        select_backend(config.storage)  # who is refused finds nothing made
    except StorageSelectionError:
        if not config.home.is_dir():
            raise
        # Else somebody may be trying to write there just now; alone, it is looked at again.
    with alone_in(config.home):
        file, text, changed, config = _planned(environ, wanted, force=force)
        if (owner := _owner_of(config)) and value_at(file.parse(), _USER) is None:
            wanted = {**wanted, _USER: owner}
            file, text, changed, config = _planned(environ, wanted, force=force)
        was_there = os.path.lexists(file.path)
        with recorded_of(config) as recorded:
            layout = recorded.inner
            _try_writing(layout.inner if isinstance(layout, Layout) else layout)
            recorded.introduce()
            recorded.history.position()
            found = census_of(layout)
        store = store_of(config)
        if changed or not was_there:
            put(file, text)
    return Begun(
        config,
        file.path,
        was_there,
        changed,
        config.storage.protocol,
        recorded.whereabouts,
        store.id,
        store.folder,
        *found[:2],
        tuple(found[2]),
    )


def _owner_of(config: Config) -> str:
    """Return the user whose memories a store has, if that is not who logs in here."""
    backend = select_backend(config.storage)
    owner = find_store(config.home, backend.identity, backend).owner
    try:
        return "" if owner in {"", config.user} else RequestContext(ACCOUNT, owner).user_id
    except InvalidValueError:  # it names nobody, or somebody whom nobody can be
        return ""


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
) -> tuple[ConfigFile, str, tuple[Place, ...], Config]:
    """Return the config file as it is, its text to be, what changes, and what it says then."""
    file = read_file(environ)
    said = file.parse()
    for place, value in wanted.items():
        now = value_at(said, place)
        if force or now is None or now == value:
            continue
        *tables, key = place
        raise file.refuse(
            place,
            f"{key} in [{'.'.join(tables)}] is another already, and is left as it is",
            f"add --force to make it {value!a}, or leave the option out",
        )
    is_there = os.path.lexists(file.path)
    text, changed = edited(file if is_there else ConfigFile(file.path, TEMPLATE), wanted)
    return file, text, changed, config_of(ConfigFile(file.path, text), environ)


def _try_writing(backend: StorageBackend) -> None:
    """Write, read and remove a text, by the verbs that every write goes through."""
    _clear(backend)
    with suppress(ConcurrentModificationError):  # another home tries the same vault
        backend.write(_PROBE, PROBED, expect=ABSENT)
    try:
        with suppress(AbsentError):  # the other one removed it
            if backend.read(_PROBE) != PROBED:
                raise StorageFaultError(
                    f"what was written to {backend.whereabouts!a} is not what is read there. "
                    "Fix: check the disk."
                )
    finally:
        _clear(backend)


def _clear(backend: StorageBackend) -> None:
    with suppress(AbsentError, ConcurrentModificationError):
        backend.remove(_PROBE, expect=content_hash(PROBED))
    if is_directory(backend, _FOLDER):
        with suppress(AbsentError, DirectoryNotEmptyError):
            backend.remove(_FOLDER)


_NOTE = "migration.json"


@dataclass(frozen=True, slots=True)
class Target:
    backend: str
    vault: str | None = None
    """The folder of a vault; else as the config says."""

    def config(self, config: Config) -> Config:
        options = {name: dict(table) for name, table in config.storage.options.items()}
        if self.vault is not None:
            options["vault"] = {**options.get("vault", {}), "path": self._path}
        storage = replace(config.storage, backend=self.backend, options=options)
        return replace(config, storage=storage)

    def entries(self) -> Entries:
        path = {} if self.vault is None else {_VAULT: self._path}
        return {_BACKEND: self.backend, **path}

    @property
    def _path(self) -> str:
        return str(Path(self.vault or "").expanduser().absolute())


@contextmanager
def open_migrating(environ: Mapping[str, str], target: Target) -> Iterator[Migration]:
    config = load_config(environ)
    with open_recorded(environ) as source, arriving_into(target.config(config)) as arriving:
        yield Migration(source, arriving, config.home / "histories")


# ---------------------------------------------------------------- the config
def configure_vault(environ: Mapping[str, str], folder: str, store: str) -> bool:
    """Let a config whose vault had a store, or is not there any more, name the folder that has it.

    Return whether that changed the file.
    """
    file, path = read_file(environ), os.path.realpath(Path(folder).expanduser())
    said = value_at(file.parse(), _VAULT)
    if not isinstance(said, str) or os.path.realpath(before := Path(said).expanduser()) == path:
        return False
    if before.is_dir():
        backend = DeviceLocalBackend(str(before), str(file.path.parent))
        if find_store(file.path.parent, backend.identity, backend).id != store:
            return False
    put(file, edited(file, {_VAULT: path})[0])
    return True


def configure_layout(environ: Mapping[str, str], layout: str) -> None:
    """Let a config file that names another layout name this one."""
    file = read_file(environ)
    if value_at(file.parse(), _LAYOUT) not in {None, layout}:
        put(file, edited(file, {_LAYOUT: layout})[0])


def switch(environ: Mapping[str, str], target: Target, done: MigrationReport) -> None:
    """Let the config name the other backend; what it said is kept, so that it can be undone."""
    path = load_config(environ).home / FILE_NAME
    before = path.read_bytes().decode() if path.exists() else None
    file = ConfigFile(path, before or "")
    after, _ = edited(file, target.entries())
    note = {"config": before, "history": done.history, "position": done.position}
    write_whole(path.with_name(_NOTE), json.dumps(note).encode())
    put(file, after)


def roll_back(environ: Mapping[str, str]) -> None:
    """Let the config say again what it said before; not if something was written since."""
    path = load_config(environ).home / FILE_NAME
    note = path.with_name(_NOTE)
    said = _noted(note)
    with open_recorded(environ) as recorded:
        now = recorded.history.position()
        if now != said["position"] or recorded.history.store.history.hex() != said["history"]:
            raise ConcurrentModificationError(
                f"the memory went on to entry {now} since it was migrated at {said['position']}; "
                "to go back would leave that behind. Nothing was changed. Fix: `perdure migrate` "
                "back to where it was, with --switch."
            )
    if said["config"] is None:
        path.unlink(missing_ok=True)
    else:
        put(ConfigFile(path, path.read_bytes().decode()), str(said["config"]))
    note.unlink()


def _noted(note: Path) -> dict[str, object]:
    try:
        match json.loads(note.read_bytes()):
            case {"config": str() | None, "history": str(), "position": int()} as said:
                return dict(said)
    except FileNotFoundError as error:
        raise AbsentError(
            "no switch was made that could be undone. Fix: none is needed."
        ) from error
    except (ValueError, RecursionError):
        pass
    raise DamageError(f"{str(note)!a} can't be understood. Fix: correct the config by hand.")
