"""From one backend to another: who copies, and which one the config names from then on."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.app.opening import arriving_into, open_recorded
from holdfast.config import FILE_NAME, Config, load_config
from holdfast.engine.carrying.arriving import Arriving
from holdfast.engine.carrying.migrating import Migrated, Migrating
from holdfast.engine.whole_file import write_whole
from holdfast.errors import AbsentError, ConcurrentModificationError, ConfigError, DamageError
from holdfast.storage.wrappers.recorded import Recorded

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

    def entries(self) -> Iterator[tuple[str, str, str]]:
        """Yield what the config must say: table, name and value."""
        yield "storage", "backend", self.backend
        if self.vault is not None:
            yield "storage.vault", "path", self._path

    @property
    def _path(self) -> str:
        return str(Path(self.vault or "").expanduser().absolute())


@contextmanager
def open_migrating(environ: Mapping[str, str], target: Target) -> Iterator[Migrating]:
    """Open the memory of this user, and the place that it is to go to."""
    config = load_config(environ)
    with open_recorded(environ) as source, arriving_into(target.config(config)) as arriving:
        yield _migrating(source, arriving, config)


def _migrating(source: Recorded, target: Arriving, config: Config) -> Migrating:
    return Migrating(source, target, config.home / "histories")


# ---------------------------------------------------------------- the config
def switch(environ: Mapping[str, str], target: Target, done: Migrated) -> None:
    """Let the config name the other backend; what it said is kept, so that it can be undone."""
    path = load_config(environ).home / FILE_NAME
    before = path.read_text() if path.exists() else None
    after = before or ""
    for table, name, value in target.entries():
        after = _with_entry(after, table, name, value)
    _demand_said(after, target)
    note = {"config": before, "history": done.history, "position": done.position}
    write_whole(path.with_name(_NOTE), json.dumps(note).encode())
    write_whole(path, after.encode())


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
                "to go back would leave that behind. Nothing was changed. Fix: `holdfast migrate` "
                "back to where it was, with --switch."
            )
    if said["config"] is None:
        path.unlink(missing_ok=True)
    else:
        write_whole(path, str(said["config"]).encode())
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


def _with_entry(text: str, table: str, name: str, value: str) -> str:
    """Return a config file that says this; all else in it stays as it is."""
    lines = text.splitlines()
    entry = f"{name} = {json.dumps(value, ensure_ascii=False)}"
    start = next((at for at, line in enumerate(lines) if _header(line) == table), None)
    if start is None:
        gap = [""] if lines else []
        return "\n".join([*lines, *gap, f"[{table}]", entry]) + "\n"
    stop = next(
        (at for at in range(start + 1, len(lines)) if _header(lines[at]) is not None), len(lines)
    )
    for at in range(start + 1, stop):
        if lines[at].partition("=")[0].strip() == name:
            lines[at] = entry
            return "\n".join(lines) + "\n"
    lines.insert(start + 1, entry)
    return "\n".join(lines) + "\n"


def _header(line: str) -> str | None:
    stripped = line.partition("#")[0].strip()
    return stripped[1:-1].strip() if stripped.startswith("[") and stripped.endswith("]") else None


def _demand_said(text: str, target: Target) -> None:
    """See that the file says what it should; one that is written in another way may not."""
    try:
        said = tomllib.loads(text)
    except ValueError:
        said = {}
    entries = list(target.entries())
    if any(_value(said, (*table.split("."), name)) != value for table, name, value in entries):
        wanted = "; ".join(f"[{table}] {name} = {value!a}" for table, name, value in entries)
        raise ConfigError(
            "the config file is written in a way that can't be changed here. Nothing was changed. "
            f"Fix: let it say {wanted}."
        )


def _value(said: object, path: tuple[str, ...]) -> object:
    for name in path:
        said = said.get(name) if isinstance(said, dict) else None
    return said
