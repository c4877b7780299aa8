"""Which store this is: the id in its note, and what this home remembers of it.

A history belongs to a store, not to a path. The id lies in the frontmatter of one note, so it goes
wherever the texts go. `stores.json` in the home names for each history the ids of its store, the
path where it was last found, and that folder's inode and birth. The note decides; the home only
answers where the note is absent, and notices where one id is in two places.
"""

import errno
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from perdure import frontmatter
from perdure.config import LAYOUTS, Config
from perdure.dataclass import dataclass
from perdure.errors import (
    AbsentError,
    ConcurrentModificationError,
    DamageError,
    LockTimeout,
    NotTextError,
    StoreIdentityError,
)
from perdure.files import locked, write_whole
from perdure.patterns import later
from perdure.storage import ABSENT, Locator, StorageBackend, content_hash
from perdure.storage.locator import STORE_NOTE
from perdure.storage.openat import identify

_FILE = "stores.json"
_PATIENCE = 30.0
_MOST_CHARACTERS = 100_000
_INSIDE = "./"
"""Begins a path inside the home, which is remembered relative to it."""
_ID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_LINE = later(rf"^perdure-store:[ \t]*[\"']?({_ID})[\"']?[ \t]*\r?$", re.MULTILINE)
_LAYOUT_LINE = later(r"^perdure-layout:(.*)$", re.MULTILINE)
_OWNER_LINE = later(r"^perdure-owner:(.*)$", re.MULTILINE)
_ACCOUNTS = Locator("accounts")
_OF_ACCOUNTS = frozenset({"users", "agents", "resources", "sessions"})
DEFAULT_LAYOUT = "notes"
_ANY_LINE = later(r"^perdure-store:.*\n?", re.MULTILINE)

_ABOUT = (
    "# About this folder\n\n"
    "Perdure keeps here what your AI agents remember, as plain Markdown that belongs to you.\n\n"
    "- **Who writes here.** Perdure, when you or an agent save something. Agents do not change "
    "your other notes.\n"
    "- **You may edit.** Change or delete what you like, in any editor, on any device. Your text "
    "counts; Perdure takes it in.\n"
    "- **What is never here.** Passwords, keys and tokens that Perdure recognises are refused. "
    "Indexes, locks and models lie outside of this folder, so that no sync client touches them.\n"
    "- **Where the history is.** Each device keeps every version by itself, in Perdure's own "
    "folder (`~/.perdure`). `perdure history log` shows them, and `perdure status` where they "
    "lie.\n\n"
    "The line `perdure-store` at the top of this note is how Perdure finds that history again "
    "when this folder is moved or renamed. Leave it as it is. If this note is deleted, Perdure "
    "writes it again.\n"
)
"""One line for each paragraph: Obsidian shows a line break as one."""


@dataclass(frozen=True, slots=True)
class Known:
    history: str
    """The name of its folder among the histories."""
    ids: tuple[str, ...]
    """The one in its note comes first. Two machines may have named one store before they met."""
    path: str
    root: str = ""
    """The folder's inode and birth; empty as long as its note was never seen."""


@dataclass(frozen=True, slots=True)
class Store:
    home: Path
    known: Known
    is_remembered: bool
    """Whether the home knows just this of it."""
    has_note: bool
    trouble: str = ""
    """Why its note can't be read, or have its id."""
    refusal: StoreIdentityError | None = None
    layout: str = ""
    """As its note says, or as its files lie; empty if it has none yet."""
    owner: str = ""
    """The user whose memories lie at its top, as its note says."""

    @property
    def id(self) -> str:
        return self.known.ids[0]

    @property
    def folder(self) -> Path:
        """The folder of its history, and of all that is derived."""
        return self.home / "histories" / self.known.history

    def layout_for(self, config: Config) -> str:
        """Return the layout of its nodes; `StoreIdentityError` if the config names another."""
        layout = self.layout or config.layout or DEFAULT_LAYOUT
        if config.layout not in {None, layout}:
            raise StoreIdentityError(
                f"the nodes in {self.known.path!a} lie in the layout {layout!a}, and the config "
                f"names {config.layout!a}. Nothing was changed. Fix: run `perdure migrate --layout "
                f"{config.layout}`, or remove layout in [storage]."
            )
        return layout

    def confirmed(self) -> "Store":
        if self.refusal is not None:
            raise self.refusal
        return self


def find_store(home: Path, identity: str, backend: StorageBackend | None) -> Store:
    """Find which store is at a path; without a backend, as the home remembers. Changes nothing."""
    stores = _read(home)
    text, trouble = (None, "") if backend is None else _note(backend)
    found, problem = _id_in(text)
    root = _root(identity)
    known = _known(stores, found, identity, root)
    refusal = None
    if found and known.path != identity and _is_alive(known, identity):
        refusal = _two(found, identity, known.path)
    elif found:
        known = Known(known.history, _first(found, known.ids), identity, root)
    elif backend is not None and known.root not in {"", root}:
        refusal = _unconfirmed(identity)
    is_remembered = stores.get(known.history) == known
    layout = "" if backend is None else _layout(text, backend)
    owner = _said(_OWNER_LINE, text)
    trouble = trouble or problem
    return Store(home, known, is_remembered, bool(found), trouble, refusal, layout, owner)


def _layout(text: str | None, backend: StorageBackend) -> str:
    """Return the layout that a note names; without one, the five files, if nodes lie so."""
    said = _said(_LAYOUT_LINE, text)
    if said in LAYOUTS:
        return said
    folders = (each.name for account in backend.list(_ACCOUNTS) for each in backend.list(account))
    return "" if _OF_ACCOUNTS.isdisjoint(folders) else "agfs"


def _said(line: re.Pattern[str], text: str | None) -> str:
    found = line.search(frontmatter.split(text)[0]) if text else None
    return found[1].strip("\"' \t\r") if found else ""


def open_store(home: Path, backend: StorageBackend) -> Store:
    """Find a store, and remember it; `StoreIdentityError` if it may be another one."""
    found = find_store(home, backend.identity, backend).confirmed()
    if found.is_remembered:
        return found
    try:
        with _alone(home):
            found = find_store(home, backend.identity, backend).confirmed()
            _remember(home, found.known)
    except OSError as error:
        if not isinstance(error, PermissionError) and error.errno != errno.EROFS:
            raise
    return found  # from a home that can only be read, the store can be read, too


def introducer(store: Store, backend: StorageBackend, config: Config) -> Callable[[], None]:
    """Return what is to be called before each write: the first writes the note, if it is missing.

    If others wrote one meanwhile, the store has the id of theirs, too.
    """
    is_done = store.has_note

    def introduce() -> None:
        nonlocal is_done
        if not is_done:
            with suppress(ConcurrentModificationError):  # the note is that of who was faster
                _write_note(backend, store.id, _layout_lines(store, config))
            open_store(store.home, backend)
            is_done = True

    return introduce


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a store whose owner was asked."""

    id: str
    history: Path
    put_aside: Path | None = None
    """The history that the folder had before; it is not removed."""


def adopt(home: Path, backend: StorageBackend, moved_from: str | None = None) -> Settled:
    """Let the store at a path have the history of its id, or of where it was."""
    here = backend.identity
    with _alone(home):
        stores = _read(home)
        found, _ = _id_in(_note(backend)[0])
        by_id = next((each for each in stores.values() if found in each.ids), None)
        by_path = _by_path(stores, os.path.realpath(moved_from or here), "")
        known = by_path if moved_from or by_id is None else by_id
        if known is None:
            raise AbsentError(
                f"no history of a store in {moved_from or here!a} is known. Fix: name with --from "
                "the folder where it was; `perdure status` shows the store that is in use."
            )
        ids = _first(found or known.ids[0], known.ids)
        aside = None if by_id in {None, known} else by_id
        _remember(home, Known(known.history, ids, here, _root(here)), without=aside)
    _write_note(backend, ids[0])
    store = open_store(home, backend)
    return Settled(store.id, store.folder, home / "histories" / aside.history if aside else None)


def separate(home: Path, backend: StorageBackend, copy: Callable[[Path, Path], None]) -> Settled:
    """Give the store at a path a new id, and a history that begins as a copy of the one it had.

    A folder without an id is no copy: its history begins empty.
    """
    here = backend.identity
    with _alone(home):
        found, _ = _id_in(_note(backend)[0])
        known = _known(_read(home), found, here, _root(here))
        if not found and not known.root:
            raise AbsentError(f"no store was ever in {here!a}. Fix: none; to use it begins one.")
        new = _new_id()
        source, target = (home / "histories" / name for name in (known.history, new))
        if found and source.exists():
            copy(source, target)
        _write_note(backend, new)
        _remember(home, Known(new, (new,), here, _root(here)))
    return Settled(new, target)


# ---------------------------------------------------------------- the note
def _note(backend: StorageBackend) -> tuple[str | None, str]:
    """Return the text of the note, None if there is none; and why it can't be read."""
    try:
        text = backend.read(STORE_NOTE)
    except FileNotFoundError:
        return None, ""
    except (NotTextError, IsADirectoryError, PermissionError) as error:
        return None, str(error).partition(" Fix: ")[0].rstrip(".")
    if len(text) > _MOST_CHARACTERS:
        return None, f"{STORE_NOTE.key!a} is longer than {_MOST_CHARACTERS:,} characters"
    return text, ""


def _id_in(text: str | None) -> tuple[str, str]:
    """Return the id that a note has, or nothing and why; of several, the smallest."""
    if text is None:
        return "", ""
    if frontmatter.has_no_end(text):
        return "", f"the frontmatter of {STORE_NOTE.key!a} has no end"
    ids: list[str] = _LINE.findall(frontmatter.split(text)[0])
    return (min(ids), "") if ids else ("", f"{STORE_NOTE.key!a} has no valid `perdure-store`")


def _layout_lines(store: Store, config: Config) -> str:
    layout = store.layout_for(config)
    owner = f"perdure-owner: {store.owner or config.user}\n" if layout == "notes" else ""
    return f"perdure-layout: {layout}\n{owner}"


def name_layout(backend: StorageBackend, layout: str, owner: str) -> None:
    """Let the note of a store name its layout; all else that it says stays."""
    text = _note(backend)[0] or ""
    lines, body = frontmatter.split(text)
    for each in (_LAYOUT_LINE, _OWNER_LINE):
        lines = re.sub(rf"{each.pattern}\n?", "", lines, flags=re.MULTILINE)
    of = f"perdure-owner: {owner}\n" if layout == "notes" else ""
    new = frontmatter.join(f"{lines}perdure-layout: {layout}\n{of}", body)
    backend.write(STORE_NOTE, new, expect=content_hash(text))


def _write_note(backend: StorageBackend, store_id: str, more: str = "") -> None:
    """Let the note have an id, and all else that it says stay; not if it can't be read."""
    text, trouble = _note(backend)
    if trouble or _id_in(text)[0] == store_id:
        return
    line = f"perdure-store: {store_id}\n"
    if text is None:
        new = frontmatter.join(line + more, _ABOUT)
    elif frontmatter.has_no_end(text):
        return  # theirs to correct, as `doctor` says
    else:
        lines, body = frontmatter.split(text)
        more = more if not _LAYOUT_LINE.search(lines) else ""
        new = frontmatter.join(line + more + _ANY_LINE.sub("", lines), body)
    backend.write(STORE_NOTE, new, expect=ABSENT if text is None else content_hash(text))


# ---------------------------------------------------------------- what the home remembers
def _known(stores: Mapping[str, Known], found: str, identity: str, root: str) -> Known:
    """Return what is remembered of a store, by the id that was found or else by its path.

    In a folder that had another id, or never had one, the id that was found names the same store.
    """
    by_id = next((each for each in stores.values() if found in each.ids), None)
    by_path = _by_path(stores, identity, root)
    if by_id is not None:
        return by_id
    if by_path is not None and (not found or by_path.root in {"", root}):
        return by_path
    new = found or _new_id()
    return Known(new, (new,), identity, "")


def _by_path(stores: Mapping[str, Known], identity: str, root: str) -> Known | None:
    """Return the store that was last at a path: in this very folder, if one was."""
    there = [each for each in stores.values() if each.path == identity]
    same = [each for each in there if each.root == root]
    return next(reversed(same or there), None)


def _is_alive(known: Known, identity: str) -> bool:
    """Whether a store is still where it was; not if that is the same folder by another path."""
    try:
        if Path(known.path).samefile(identity):
            return False
        with Path(known.path, STORE_NOTE.key).open("rb") as file:
            found, _ = _id_in(file.read(_MOST_CHARACTERS).decode())
    except (OSError, ValueError):
        return False
    return found in known.ids


def _root(identity: str) -> str:
    """Return what tells a folder from one that is put in its place; nothing if there is none."""
    try:
        _, inode, birth = identify(identity)
    except (OSError, ValueError):
        return ""
    return f"{inode}.{birth}"


def _new_id() -> str:
    from uuid import uuid4

    return str(uuid4())


def _first(found: str, ids: tuple[str, ...]) -> tuple[str, ...]:
    return (found, *(each for each in ids if each != found))


def _read(home: Path) -> dict[str, Known]:
    path = home / _FILE
    try:
        said = json.loads(path.read_bytes())
        return {name: _parsed(name, each, _top(home)) for name, each in said.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, RecursionError) as error:
        raise DamageError(
            f"{str(path)!a} can't be understood. Fix: put it back from a backup, or remove it: a "
            "store is found again by the id in its note."
        ) from error


def _parsed(name: str, said: object, top: str) -> Known:
    match said:
        case {"ids": [str(), *_] as ids, "path": str(path), "root": str(root)}:
            if path.startswith(_INSIDE):
                path = top + path.removeprefix(_INSIDE)
            return Known(name, tuple(map(str, ids)), path, root)
    raise ValueError(name)


def _top(home: Path) -> str:
    return f"{os.path.realpath(home)}{os.sep}"


def _remember(home: Path, known: Known, without: Known | None = None) -> None:
    """Write what is known of a store, as the last; needs the lock."""
    top = _top(home)
    others = [each for each in _read(home).values() if each.history != known.history]
    said = {
        each.history: {
            "ids": each.ids,
            "path": each.path.replace(top, _INSIDE, 1) if each.path.startswith(top) else each.path,
            "root": each.root,
        }
        for each in (*others, known)
        if each != without
    }
    write_whole(home / _FILE, f"{json.dumps(said, indent=1)}\n".encode())


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    with locked(home / "stores.lock", _PATIENCE) as descriptor:
        if descriptor is None:
            raise LockTimeout(
                f"another process has {str(home / _FILE)!a} locked. Fix: wait for it to end."
            )
        yield


# ---------------------------------------------------------------- refusals
def _two(found: str, here: str, there: str) -> StoreIdentityError:
    return StoreIdentityError(
        f"two folders hold the store {found[:8]}: {here!a}, and {there!a}, which has the history. "
        f"Nothing was changed. Fix: if the memory moved, run `perdure store adopt {here!a}`; if "
        f"this is a copy that is to go on by itself, run `perdure store separate {here!a}`."
    )


def _unconfirmed(here: str) -> StoreIdentityError:
    return StoreIdentityError(
        f"{here!a} is not the folder that was used before, or is gone: the id of the store is not "
        f"in {STORE_NOTE.key!a}. Nothing was changed. Fix: mount its drive, or put the folder "
        f"back. If this is the same memory, run `perdure store adopt {here!a}`; if another one "
        f"begins here, `perdure store separate {here!a}`."
    )
