"""Let the nodes of a store lie in the other layout: all texts are written, compared, then switched.

The texts are taken from history, which gets those that differ in the other layout. A note beside
the history says that this is under way; as long as it is there nobody opens the memory, and to do
it again ends it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice

from perdure.app.identity import Store, name_layout, open_store
from perdure.app.opening import PLACES, laid_out, recorded_of
from perdure.app.setup import alone_in, configure_layout
from perdure.artifacts import Change
from perdure.config import LAYOUTS, Config, load_config
from perdure.context.files import FILES
from perdure.context.files import laid_out as in_layout
from perdure.context.layouts.names import is_state
from perdure.context.layouts.notes import NotesLayout
from perdure.dataclass import dataclass, replace
from perdure.errors import StorageError, StorageFaultError
from perdure.files import write_whole
from perdure.model import Uri
from perdure.storage import Locator, StorageBackend, select_backend
from perdure.storage.history import Circumstances, History
from perdure.storage.seen import SEEN
from perdure.storage.sweep import record_edits
from perdure.transfer.migrate import marker_of

__all__ = ["LAYOUTS", "Relaid", "change_layout"]
_TREES = ("_meta", "accounts", "projects")
"""Where the texts of a memory are, in the layout `agfs`."""
_BATCH = 200


@dataclass(frozen=True, slots=True)
class Relaid:
    layout: str
    was: str
    texts: int = 0
    """How many were written and compared; 0 if the layout was this one already."""
    notes: int = 0
    """How many notes of their owner are memory in place now, or were until now."""


def change_layout(
    environ: Mapping[str, str], layout: str, agree: Callable[[int], None] = lambda _: None
) -> Relaid:
    """Let the nodes of the configured store lie in a layout; if it is interrupted, do it again.

    A config file that names a layout names the new one then. `agree` is called with the number of
    notes in place that would be memory no more, and raises to leave all as it is.
    """
    config = load_config(environ)
    with alone_in(config.home):
        backend = select_backend(config.storage)
        store = open_store(config.home, backend)
        config = replace(config, layout=store.layout or config.layout)
        note = marker_of(store.folder)
        was = _begun(note.read_bytes()) if note.exists() else store.layout_for(config)
        if was == layout:
            configure_layout(environ, layout)
            return Relaid(layout, was)
        if not note.exists():
            with recorded_of(config) as recorded:
                record_edits(recorded)
                if notes := _in_place(recorded.inner):
                    agree(len(notes))
            write_whole(note, json.dumps({"from": f"the layout {was}", "was": was}).encode())
        counted = _relaid(replace(config, layout=None), store, backend, was, layout)
        configure_layout(environ, layout)
        (store.folder / SEEN).unlink(missing_ok=True)
        note.unlink()
        return Relaid(layout, was, *counted)


def _begun(said: bytes) -> str:
    """Return the layout that a change began with, which may have been interrupted."""
    with suppress(ValueError, AttributeError):
        return str(json.loads(said).get("was", ""))
    return ""


def _relaid(
    config: Config, store: Store, backend: StorageBackend, was: str, layout: str
) -> tuple[int, int]:
    old, new = (
        laid_out(config, backend, replace(store, layout=each), ignored=_TREES)
        for each in (was, layout)
    )
    notes = _in_place(old)
    with History.open(str(store.folder)) as history:
        texts = _converted(history, dict(_texts(history, notes)), layout)
    places = iter(texts.items())
    while batch := dict(islice(places, _BATCH)):
        new.write_all(batch)
    for locator, text in texts.items():
        if new.read(locator) != text:
            raise StorageFaultError(
                f"{locator.key!a} does not read in the layout {layout!a} as it was written. The "
                f"layout {was!a} is still there. Fix: check the disk, and do it again."
            )
    if notes:
        _leave_out(store, notes, layout)
    name_layout(backend, layout, store.owner or config.user)
    gone = {each for each in texts if not is_state(each.key)}  # that lies there in both
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


def _converted(history: History, texts: Mapping[Locator, str], layout: str) -> dict[Locator, str]:
    """Return the texts as a layout has them, once history has what differs."""
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
    said = Circumstances(reason=f"as the layout {layout} has it").to_mapping()
    changed = {each: text for each, text in every.items() if text != texts.get(each)}
    if changed:
        history.record(
            [
                Change(each.key, None if text is None else text.encode(), said)
                for each, text in changed.items()
            ]
        )
    return {each: text for each, text in every.items() if text is not None}


def _in_place(layout: StorageBackend) -> frozenset[str]:
    return layout.in_place() if isinstance(layout, NotesLayout) else frozenset()


def _leave_out(store: Store, notes: frozenset[str], layout: str) -> None:
    """Record that notes in place are memory no more; their files and versions stay."""
    said = Circumstances(reason=f"not memory in the layout {layout}").to_mapping()
    with History.open(str(store.folder)) as history:
        names = history.store.catalogue.names("", history.position())
        gone = [Change(name, None, said) for name in names if name.rpartition("/")[0] in notes]
        if gone:
            history.record(gone)


def _texts(history: History, notes: frozenset[str]) -> Iterator[tuple[Locator, str]]:
    """Yield the texts of a memory as history has them, but for notes that lie in place."""
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
