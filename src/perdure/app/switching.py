"""From one backend to another: who copies, and which one the config names from then on."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from perdure.app.configuring import Entries, Place, put, spliced
from perdure.app.opening import arriving_into, open_recorded
from perdure.config import FILE_NAME, Config, ConfigFile, load_config
from perdure.engine.arriving import Migrated, Migrating
from perdure.engine.whole_file import write_whole
from perdure.errors import AbsentError, ConcurrentModificationError, DamageError
from perdure.storage import registry

_NOTE = "migration.json"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a memory is to go."""

    backend: str
    vault: str | None = None
    """The folder of a vault; else as the config says."""

    def config(self, config: Config) -> Config:
        """Return the config as it would be with this backend."""
        options = {name: dict(table) for name, table in config.storage.options.items()}
        if self.vault is not None:
            options["vault"] = {**options.get("vault", {}), "path": self._path}
        storage = replace(config.storage, backend=self.backend, options=options)
        return replace(config, storage=storage)

    def entries(self) -> Entries:
        """Return what the config must say."""
        said: dict[Place, str] = {("storage", "backend"): self.backend}
        if self.vault is not None:
            said["storage", "vault", "path"] = self._path
        return said

    @property
    def _path(self) -> str:
        return str(Path(self.vault or "").expanduser().absolute())


def backends() -> list[str]:
    """Return the names of the backends that a memory can go to."""
    return list(registry.protocols())


@contextmanager
def open_migrating(environ: Mapping[str, str], target: Target) -> Iterator[Migrating]:
    """Open the memory of this user, and the place that it is to go to."""
    config = load_config(environ)
    with open_recorded(environ) as source, arriving_into(target.config(config)) as arriving:
        yield Migrating(source, arriving, config.home / "histories")


# ---------------------------------------------------------------- the config
def switch(environ: Mapping[str, str], target: Target, done: Migrated) -> None:
    """Let the config name the other backend; what it said is kept, so that it can be undone."""
    path = load_config(environ).home / FILE_NAME
    before = path.read_bytes().decode() if path.exists() else None
    file = ConfigFile(path, before or "")
    after = spliced(file, target.entries()).text
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
    except (ValueError, RecursionError) as error:
        raise _damaged(note) from error
    raise _damaged(note)


def _damaged(note: Path) -> DamageError:
    return DamageError(f"{str(note)!a} can't be understood. Fix: correct the config by hand.")
