"""Move a memory to another backend, or to the other layout of the same store.

A layout changes in one step: all texts are written, compared, then the store switches. The texts
are taken from history, which first gets those that differ in the new layout. A note beside the
history marks a change in progress; while it exists the memory is not opened, and repeating the
change completes it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from perdure.app.identity import Store, open_store, write_layout
from perdure.app.open import PLACES, import_target, open_recorded, recorded_for, with_layout
from perdure.app.setup import (
    Entries,
    absolute,
    configure_layout,
    edit_config,
    setup_lock,
    storage_entries,
    write_config,
)
from perdure.artifacts import NewBinding
from perdure.config import FILE_NAME, LAYOUTS, Config, ConfigFile, load_config
from perdure.context.node_files import FILES
from perdure.context.node_files import laid_out as in_layout
from perdure.context.note_names import is_state
from perdure.context.notes import NotesLayout
from perdure.dataclass import dataclass, replace
from perdure.errors import (
    AbsentError,
    ConcurrentModificationError,
    DamageError,
    StorageError,
    StorageFaultError,
)
from perdure.files import write_whole
from perdure.model import Uri
from perdure.storage import Locator, StorageBackend, select_backend
from perdure.storage.reconciliation import record_edits
from perdure.storage.stamps import STAMPS_FILE
from perdure.storage.text_history import Circumstances, History
from perdure.transfer.migrate import Migration, MigrationReport, marker_of

_SWITCH_NOTE = "migration.json"
"""In the home: what undoes the last switch of the backend."""


# ---------------------------------------------------------------- to another backend
@dataclass(frozen=True, slots=True)
class MigrationTarget:
    backend: str
    vault: str | None = None
    """The folder of a vault; None for the configured one."""

    def config(self, config: Config) -> Config:
        options = {name: dict(table) for name, table in config.storage.options.items()}
        if self.vault is not None:
            options["vault"] = {**options.get("vault", {}), "path": absolute(self.vault)}
        storage = replace(config.storage, backend=self.backend, options=options)
        return replace(config, storage=storage)

    def entries(self) -> Entries:
        """Return the entries of a config file that select this target."""
        return storage_entries(self.backend, self.vault)


@contextmanager
def open_migrating(environ: Mapping[str, str], target: MigrationTarget) -> Iterator[Migration]:
    config = load_config(environ)
    with open_recorded(environ) as source, import_target(target.config(config)) as arriving:
        yield Migration(source, arriving, config.home / "histories")


def switch_backend(
    environ: Mapping[str, str], target: MigrationTarget, done: MigrationReport
) -> None:
    """Make the config name the new backend; a note beside it can undo that."""
    path = load_config(environ).home / FILE_NAME
    before = path.read_bytes().decode() if path.exists() else None
    file = ConfigFile(path, before or "")
    after, _ = edit_config(file, target.entries())
    note = {"config": before, "history": done.history, "position": done.position}
    write_whole(path.with_name(_SWITCH_NOTE), json.dumps(note).encode())
    write_config(file, after)


def roll_back(environ: Mapping[str, str]) -> None:
    """Restore the config from before the switch; refuses if something was written since."""
    path = load_config(environ).home / FILE_NAME
    note = path.with_name(_SWITCH_NOTE)
    before = _read_switch(note)
    with open_recorded(environ) as recorded:
        position, history = recorded.history.position(), recorded.history.store.history.hex()
        if position != before["position"] or history != before["history"]:
            raise ConcurrentModificationError(
                f"the memory is at entry {position}, and was migrated at {before['position']}; "
                "to go back would leave the new entries behind. Nothing was changed. Fix: "
                "`perdure migrate` back to the previous backend, with --switch."
            )
    if before["config"] is None:
        path.unlink(missing_ok=True)
    else:
        write_config(ConfigFile(path, path.read_bytes().decode()), str(before["config"]))
    note.unlink()


def _read_switch(note: Path) -> dict[str, object]:
    try:
        match json.loads(note.read_bytes()):
            case {"config": str() | None, "history": str(), "position": int()} as found:
                return dict(found)
    except FileNotFoundError as error:
        raise AbsentError("there is no switch to undo. Fix: none is needed.") from error
    except (ValueError, RecursionError):
        pass
    raise DamageError(f"{str(note)!a} is damaged. Fix: correct the config by hand.")


# ---------------------------------------------------------------- to another layout
def layouts() -> tuple[str, ...]:
    return LAYOUTS


_TREES = ("_meta", "accounts", "projects")
"""The folders of a memory in the layout `agfs`."""
_BATCH = 200


@dataclass(frozen=True, slots=True)
class LayoutChange:
    layout: str
    was: str
    texts: int = 0
    """How many texts were written and compared; 0 if the store had this layout already."""
    notes: int = 0
    """How many notes are nodes in place now, or were before."""


def change_layout(
    environ: Mapping[str, str], layout: str, agree: Callable[[int], None] = lambda _: None
) -> LayoutChange:
    """Change the layout of the configured store; an interrupted change can be repeated.

    A config file that names a layout is updated. `agree` is called with the number of notes in
    place that would no longer be memory, and raises to cancel the change.
    """
    config = load_config(environ)
    with setup_lock(config.home):
        backend = select_backend(config.storage)
        store = open_store(config.home, backend)
        config = replace(config, layout=store.layout or config.layout)
        note = marker_of(store.folder)
        is_begun = note.exists()
        was = _layout_before(note.read_bytes()) if is_begun else store.layout_for(config)
        if was == layout:
            configure_layout(environ, layout)
            return LayoutChange(layout, was)
        if not is_begun:
            with recorded_for(config) as recorded:
                record_edits(recorded)
                if notes := _in_place(recorded.inner):
                    agree(len(notes))
            write_whole(note, json.dumps({"from": f"the layout {was}", "was": was}).encode())
        counted = _convert(replace(config, layout=None), store, backend, was, layout)
        configure_layout(environ, layout)
        (store.folder / STAMPS_FILE).unlink(missing_ok=True)
        note.unlink()
        return LayoutChange(layout, was, *counted)


def _layout_before(note: bytes) -> str:
    """Return the layout that an interrupted change started from."""
    with suppress(ValueError, AttributeError):
        return str(json.loads(note).get("was", ""))
    return ""


def _convert(
    config: Config, store: Store, backend: StorageBackend, was: str, layout: str
) -> tuple[int, int]:
    old, new = (
        with_layout(config, backend, replace(store, layout=each), ignored=_TREES)
        for each in (was, layout)
    )
    notes = _in_place(old)
    with History.open(str(store.folder)) as history:
        texts = _record_converted(history, dict(_texts(history, notes)), layout)
    places = iter(texts.items())
    while batch := dict(islice(places, _BATCH)):
        new.write_all(batch)
    for locator, text in texts.items():
        if new.read(locator) != text:
            raise StorageFaultError(
                f"{locator.key!a} reads back differently in the layout {layout!a}. "
                f"The layout {was!a} is still there. Fix: check the disk, and repeat the command."
            )
    if notes:
        _leave_out(store, notes, layout)
    write_layout(backend, layout, store.owner or config.user)
    gone = {each for each in texts if not is_state(each.key)}  # the same in both layouts
    gone |= {each.parent.child(name) for each in gone if each.name in FILES for name in FILES}
    _remove(old, sorted(gone, key=lambda each: each.key))
    notes = notes or _in_place(new)
    for each in (old, new):
        if isinstance(each, NotesLayout):
            each.close()
    if was == "notes":
        for ending in ("", "-wal", "-shm"):
            (store.folder / f"{PLACES}{ending}").unlink(missing_ok=True)
    return len(texts), len(notes)


def _record_converted(
    history: History, texts: Mapping[Locator, str], layout: str
) -> dict[Locator, str]:
    """Return the texts as a layout has them; those that differ are recorded in history first."""
    nodes: dict[Locator, dict[str, str]] = {}
    for locator, text in texts.items():
        if locator.name in FILES:
            nodes.setdefault(locator.parent, {})[locator.name] = text
    every: dict[Locator, str | None] = {**texts}
    for folder, found in nodes.items():
        place = Uri.of_key(folder.key)
        if place is not None and place.is_node:
            after = in_layout(found, place, in_one=layout == "notes")
            every |= {folder.child(name): after.get(name) for name in {**found, **after}}
    reason = Circumstances(reason=f"as the layout {layout} has it").to_mapping()
    changed = {each: text for each, text in every.items() if text != texts.get(each)}
    if changed:
        history.record(
            [
                NewBinding(each.key, None if text is None else text.encode(), reason)
                for each, text in changed.items()
            ]
        )
    return {each: text for each, text in every.items() if text is not None}


def _in_place(layout: StorageBackend) -> frozenset[str]:
    return layout.in_place() if isinstance(layout, NotesLayout) else frozenset()


def _leave_out(store: Store, notes: frozenset[str], layout: str) -> None:
    """Record that notes in place are no longer memory; their files and versions stay."""
    reason = Circumstances(reason=f"not memory in the layout {layout}").to_mapping()
    with History.open(str(store.folder)) as history:
        names = history.store.catalogue.names("", history.position())
        gone = [
            NewBinding(name, None, reason) for name in names if name.rpartition("/")[0] in notes
        ]
        if gone:
            history.record(gone)


def _texts(history: History, notes: frozenset[str]) -> Iterator[tuple[Locator, str]]:
    """Yield the texts of a memory as history has them, except notes in place."""
    position = history.position()
    names = history.store.catalogue.names("", position)
    for name, cid in history.store.catalogue.contents(names, position).items():
        if cid is None or name.partition("/")[0] not in _TREES:
            continue
        data = None if name.rpartition("/")[0] in notes else history.store.get(cid)
        if data is not None:
            yield Locator(name), data.decode()


def _remove(old: StorageBackend, locators: list[Locator]) -> None:
    for start in range(0, len(locators), _BATCH):
        old.write_all(dict.fromkeys(locators[start : start + _BATCH]))
    if not isinstance(old, NotesLayout):
        for tree in _TREES:
            _clear(old, Locator(tree))


def _clear(backend: StorageBackend, directory: Locator) -> None:
    for child in backend.list(directory):
        if backend.info(child).is_dir:
            _clear(backend, child)
    with suppress(StorageError, OSError):
        backend.remove(directory)
