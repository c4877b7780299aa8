"""Which store this is: the id in its note, and the record of it in this home.

A history belongs to a store, not to a path. The id is in the frontmatter of one note, so it moves
with the texts. `stores.json` in the home records for each history the ids of its store, the path
where it was last found, and that folder's inode and birth. The note decides; the record is used
where the note is absent, and to detect one id in two places.
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
_LOCK_SECONDS = 30.0
_MOST_CHARACTERS = 100_000
_INSIDE = "./"
"""Prefix of a path inside the home, which is stored relative to it."""
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
"""One line per paragraph: Obsidian shows line breaks as they are."""


@dataclass(frozen=True, slots=True)
class StoreRecord:
    history: str
    """The name of the folder of its history."""
    ids: tuple[str, ...]
    """The id in its note is first. Two machines may have named one store before they synced."""
    path: str
    root: str = ""
    """The folder's inode and birth; empty until its note is seen."""


@dataclass(frozen=True, slots=True)
class Store:
    home: Path
    record: StoreRecord
    is_remembered: bool
    """Whether the home has exactly this record."""
    has_note: bool
    trouble: str = ""
    """Why its note can't be read, or has no id."""
    refusal: StoreIdentityError | None = None
    layout: str = ""
    """As its note names it, or as its files show; empty if it has none yet."""
    owner: str = ""
    """The user whose memories are at its top, as its note names them."""

    @property
    def id(self) -> str:
        return self.record.ids[0]

    @property
    def folder(self) -> Path:
        """The folder of its history and of everything derived."""
        return self.home / "histories" / self.record.history

    def layout_for(self, config: Config) -> str:
        """Return the layout of its nodes; `StoreIdentityError` if the config names another."""
        layout = self.layout or config.layout or DEFAULT_LAYOUT
        if config.layout not in {None, layout}:
            raise StoreIdentityError(
                f"the nodes in {self.record.path!a} have the layout {layout!a}, and the config "
                f"names {config.layout!a}. Nothing was changed. Fix: run `perdure migrate --layout "
                f"{config.layout}`, or remove layout in [storage]."
            )
        return layout

    def confirmed(self) -> "Store":
        if self.refusal is not None:
            raise self.refusal
        return self


def find_store(home: Path, identity: str, backend: StorageBackend | None) -> Store:
    """Find which store is at a path; without a backend, by the record alone. Changes nothing."""
    stores = _read_records(home)
    text, trouble = (None, "") if backend is None else _note(backend)
    found, problem = _id_in(text)
    root = _root(identity)
    record = _record_of(stores, found, identity, root)
    refusal = None
    if found and record.path != identity and _is_alive(record, identity):
        refusal = _two_folders(found, identity, record.path)
    elif found:
        record = StoreRecord(record.history, _with_first(found, record.ids), identity, root)
    elif backend is not None and record.root not in {"", root}:
        refusal = _unconfirmed(identity)
    is_remembered = stores.get(record.history) == record
    layout = "" if backend is None else _layout(text, backend)
    owner = _value(_OWNER_LINE, text)
    trouble = trouble or problem
    return Store(home, record, is_remembered, bool(found), trouble, refusal, layout, owner)


def _layout(text: str | None, backend: StorageBackend) -> str:
    """Return the layout that a note names; without one, `agfs` if there are folders of it."""
    named = _value(_LAYOUT_LINE, text)
    if named in LAYOUTS:
        return named
    folders = (each.name for account in backend.list(_ACCOUNTS) for each in backend.list(account))
    return "" if _OF_ACCOUNTS.isdisjoint(folders) else "agfs"


def _value(line: re.Pattern[str], text: str | None) -> str:
    found = line.search(frontmatter.split(text)[0]) if text else None
    return found[1].strip("\"' \t\r") if found else ""


def open_store(home: Path, backend: StorageBackend) -> Store:
    """Find a store and record it; raises `StoreIdentityError` if it may be another one."""
    found = find_store(home, backend.identity, backend).confirmed()
    if found.is_remembered:
        return found
    try:
        with _records_lock(home):
            found = find_store(home, backend.identity, backend).confirmed()
            _write_record(home, found.record)
    except OSError as error:
        if not isinstance(error, PermissionError) and error.errno != errno.EROFS:
            raise
    return found  # a read-only home still allows reading


def introducer(store: Store, backend: StorageBackend, config: Config) -> Callable[[], None]:
    """Return a function to call before each write: the first call writes a missing note.

    If another process wrote one meanwhile, its id becomes one of the store's.
    """
    is_done = store.has_note

    def introduce() -> None:
        nonlocal is_done
        if not is_done:
            with suppress(ConcurrentModificationError):  # another process was faster
                lines = _layout_lines(store.layout_for(config), store.owner or config.user)
                _write_note(backend, store.id, lines)
            open_store(store.home, backend)
            is_done = True

    return introduce


@dataclass(frozen=True, slots=True)
class StoreDecision:
    """The outcome of `adopt` or `separate`."""

    id: str
    history: Path
    put_aside: Path | None = None
    """The history that the folder had before; it stays on disk."""


def adopt(home: Path, backend: StorageBackend, moved_from: str | None = None) -> StoreDecision:
    """Assign the store at a path the history of its id, or of the path it was moved from."""
    here = backend.identity
    with _records_lock(home):
        stores = _read_records(home)
        found, _ = _id_in(_note(backend)[0])
        by_id = next((each for each in stores.values() if found in each.ids), None)
        by_path = _by_path(stores, os.path.realpath(moved_from or here), "")
        record = by_path if moved_from or by_id is None else by_id
        if record is None:
            raise AbsentError(
                f"there is no history of a store in {moved_from or here!a}. Fix: name the folder "
                "where it was with --from; `perdure status` shows the store that is in use."
            )
        ids = _with_first(found or record.ids[0], record.ids)
        aside = None if by_id in {None, record} else by_id
        _write_record(home, StoreRecord(record.history, ids, here, _root(here)), without=aside)
    _write_note(backend, ids[0])
    store = open_store(home, backend)
    return StoreDecision(
        store.id, store.folder, home / "histories" / aside.history if aside else None
    )


def separate(
    home: Path, backend: StorageBackend, copy: Callable[[Path, Path], None]
) -> StoreDecision:
    """Give the store at a path a new id, and a copy of the history that it had.

    The history of a folder without an id starts empty.
    """
    here = backend.identity
    with _records_lock(home):
        found, _ = _id_in(_note(backend)[0])
        record = _record_of(_read_records(home), found, here, _root(here))
        if not found and not record.root:
            raise AbsentError(
                f"there was never a store in {here!a}. Fix: none needed; using it creates one."
            )
        new = _new_id()
        source, target = (home / "histories" / name for name in (record.history, new))
        if found and source.exists():
            copy(source, target)
        _write_note(backend, new)
        _write_record(home, StoreRecord(new, (new,), here, _root(here)))
    return StoreDecision(new, target)


# ---------------------------------------------------------------- the note
def _note(backend: StorageBackend) -> tuple[str | None, str]:
    """Return the text of the note, None if it is absent, and why it can't be read."""
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
    """Return the id in a note, the smallest of several; or an empty text and the reason."""
    if text is None:
        return "", ""
    if frontmatter.has_no_end(text):
        return "", f"the frontmatter of {STORE_NOTE.key!a} has no end"
    ids: list[str] = _LINE.findall(frontmatter.split(text)[0])
    return (min(ids), "") if ids else ("", f"{STORE_NOTE.key!a} has no valid `perdure-store`")


def _layout_lines(layout: str, owner: str) -> str:
    line = f"perdure-layout: {layout}\n"
    return f"{line}perdure-owner: {owner}\n" if layout == "notes" else line


def write_layout(backend: StorageBackend, layout: str, owner: str) -> None:
    """Write the layout into the note of a store; the rest of the note stays."""
    text = _note(backend)[0] or ""
    lines, body = frontmatter.split(text)
    for each in (_LAYOUT_LINE, _OWNER_LINE):
        lines = re.sub(rf"{each.pattern}\n?", "", lines, flags=re.MULTILINE)
    new = frontmatter.join(lines + _layout_lines(layout, owner), body)
    backend.write(STORE_NOTE, new, expect=content_hash(text))


def _write_note(backend: StorageBackend, store_id: str, more: str = "") -> None:
    """Write an id into the note; the rest stays. An unreadable note is not changed."""
    text, trouble = _note(backend)
    if trouble or _id_in(text)[0] == store_id:
        return
    line = f"perdure-store: {store_id}\n"
    if text is None:
        new = frontmatter.join(line + more, _ABOUT)
    elif frontmatter.has_no_end(text):
        return  # the owner has to correct it: `doctor` reports it
    else:
        lines, body = frontmatter.split(text)
        more = more if not _LAYOUT_LINE.search(lines) else ""
        new = frontmatter.join(line + more + _ANY_LINE.sub("", lines), body)
    backend.write(STORE_NOTE, new, expect=ABSENT if text is None else content_hash(text))


# ---------------------------------------------------------------- the records of the home
def _record_of(
    stores: Mapping[str, StoreRecord], found: str, identity: str, root: str
) -> StoreRecord:
    """Return the record of a store, by the id that was found or else by its path.

    In a folder that had another id, or none, the id that was found names the same store.
    """
    by_id = next((each for each in stores.values() if found in each.ids), None)
    by_path = _by_path(stores, identity, root)
    if by_id is not None:
        return by_id
    if by_path is not None and (not found or by_path.root in {"", root}):
        return by_path
    new = found or _new_id()
    return StoreRecord(new, (new,), identity, "")


def _by_path(stores: Mapping[str, StoreRecord], identity: str, root: str) -> StoreRecord | None:
    """Return the store that was last at a path, preferably in the folder with this inode."""
    there = [each for each in stores.values() if each.path == identity]
    same = [each for each in there if each.root == root]
    return next(reversed(same or there), None)


def _is_alive(record: StoreRecord, identity: str) -> bool:
    """Whether a store is still at its recorded path, and that is another folder than this."""
    with suppress(OSError, ValueError):
        if not Path(record.path).samefile(identity):
            with Path(record.path, STORE_NOTE.key).open("rb") as file:
                return _id_in(file.read(_MOST_CHARACTERS).decode())[0] in record.ids
    return False


def _root(identity: str) -> str:
    """Return inode and birth, which differ if a folder is replaced; empty if it is absent."""
    with suppress(OSError, ValueError):
        _, inode, birth = identify(identity)
        return f"{inode}.{birth}"
    return ""


def _new_id() -> str:
    from uuid import uuid4

    return str(uuid4())


def _with_first(found: str, ids: tuple[str, ...]) -> tuple[str, ...]:
    return (found, *(each for each in ids if each != found))


def _read_records(home: Path) -> dict[str, StoreRecord]:
    path = home / _FILE
    try:
        stores = json.loads(path.read_bytes())
        return {name: _parse(name, each, _top(home)) for name, each in stores.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, RecursionError) as error:
        raise DamageError(
            f"{str(path)!a} is damaged. Fix: restore it from a backup, or remove it: a store is "
            "found again by the id in its note."
        ) from error


def _parse(name: str, entry: object, top: str) -> StoreRecord:
    match entry:
        case {"ids": [str(), *_] as ids, "path": str(path), "root": str(root)}:
            if path.startswith(_INSIDE):
                path = top + path.removeprefix(_INSIDE)
            return StoreRecord(name, tuple(map(str, ids)), path, root)
    raise ValueError(name)


def _top(home: Path) -> str:
    return f"{os.path.realpath(home)}{os.sep}"


def _write_record(home: Path, record: StoreRecord, without: StoreRecord | None = None) -> None:
    """Write the record of a store as the last one; the caller holds the lock."""
    top = _top(home)
    others = [each for each in _read_records(home).values() if each.history != record.history]
    stores = {
        each.history: {
            "ids": each.ids,
            "path": each.path.replace(top, _INSIDE, 1) if each.path.startswith(top) else each.path,
            "root": each.root,
        }
        for each in (*others, record)
        if each != without
    }
    write_whole(home / _FILE, f"{json.dumps(stores, indent=1)}\n".encode())


@contextmanager
def _records_lock(home: Path) -> Iterator[None]:
    with locked(home / "stores.lock", _LOCK_SECONDS) as descriptor:
        if descriptor is None:
            raise LockTimeout(
                f"another process has {str(home / _FILE)!a} locked. Fix: wait for it to end."
            )
        yield


# ---------------------------------------------------------------- refusals
def _two_folders(found: str, here: str, there: str) -> StoreIdentityError:
    return StoreIdentityError(
        f"two folders hold the store {found[:8]}: {here!a}, and {there!a}, which has the history. "
        f"Nothing was changed. Fix: if the memory moved, run `perdure store adopt {here!a}`; if "
        f"this is a copy with a future of its own, run `perdure store separate {here!a}`."
    )


def _unconfirmed(here: str) -> StoreIdentityError:
    return StoreIdentityError(
        f"{here!a} is not the folder that was used before, or is gone: the id of the store is not "
        f"in {STORE_NOTE.key!a}. Nothing was changed. Fix: mount its drive, or put the folder "
        f"back. If this is the same memory, run `perdure store adopt {here!a}`; if it is a new "
        f"one, `perdure store separate {here!a}`."
    )
