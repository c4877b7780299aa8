"""Layout `notes`: each node is one Markdown file that a person could have written.

Above is the logical tree that every other layer knows: a folder with five files for each node.
Below are notes. History is above, so it records logical texts, and no past knows of a layout.
"""

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from perdure.context.layouts import notefile
from perdure.context.layouts.names import (
    MARKDOWN,
    SYSTEM,
    LogicalText,
    NoteNames,
    day_in,
    days_of,
    distinct_name,
    folded,
    in_place,
    is_markdown,
    is_state,
    key_of,
    logical_text,
    node_at,
)
from perdure.context.layouts.note_table import NOT_READ, NoteRow, NoteTable
from perdure.context.node_files import (
    ABSTRACT,
    ARCHIVED,
    CONTENT,
    FILES,
    LEARNED,
    META,
    OWNER,
    Meta,
    derived_abstract,
)
from perdure.errors import (
    AbsentError,
    AccessRefusedError,
    ConcurrentModificationError,
    DamageError,
    DirectoryNotEmptyError,
    InvalidValueError,
    LinkRefusedError,
    NotTextError,
    ParentIsFileError,
    PathIsDirectoryError,
    PathIsFileError,
    StorageError,
)
from perdure.files import Closeable
from perdure.frontmatter import frontmatter, split
from perdure.model.anchors import FIRST_NODE
from perdure.model.node import title_of
from perdure.model.values import JSON, MAX_NOTE
from perdure.storage import Locator, StorageBackend
from perdure.storage.conflicts import (
    is_evident_copy,
    marked_original,
    unmarked_original,
)
from perdure.storage.content import (
    ABSENT,
    Change,
    Changes,
    Conditions,
    Expectation,
    check_changes,
    check_found,
    check_removal,
    content_hash,
)
from perdure.storage.contract import (
    UNREADABLE,
    Finding,
    FindingKind,
    Info,
    Layout,
    Text,
    Unreadable,
    refuse_loss,
)
from perdure.storage.locator import trusted
from perdure.storage.wrappers.read_only import Wrapped

if TYPE_CHECKING:
    import re

ABOUT: Final = "About this folder.md"
"""The note that has the id of the store."""
_ROOT = Locator("")
_TEMPLATES = Locator(".obsidian/templates.json")
_DAILY_NOTES = Locator(".obsidian/daily-notes.json")
TOO_LONG, COPY, NOT_UTF8, CLOSED = "too long", "conflict copy", "not UTF-8", "may not be read"
LEFT_OUT = {
    TOO_LONG: ("too long to be memory", f"split what has more than {MAX_NOTE:,} characters", True),
    COPY: ("left as copies by sync", "`perdure conflicts list` shows them", True),
    FindingKind.LINK.value: ("links or devices, never followed", "none needed", False),
    NOT_UTF8: ("not UTF-8, so not memory", "save them as UTF-8", True),
    CLOSED: ("that this user may not read", "let this user read them", True),
    FindingKind.CLOSED.value: ("folders that this user may not read", "let this user read", True),
    FindingKind.UNUSABLE_NAME.value: ("with names that can't be used", "rename them", True),
}
"""Why notes are not memory, as doctor says it, the fix, and whether something is wrong."""
_COPY = FindingKind.CONFLICT_COPY
_COPIES = ".copies/"
"""Begins the place of a file whose id another file has; nothing is there."""
_ATTEMPTS = 3
_DATE = len("2026-03-02")
_BESIDE = (OWNER, LEARNED)
_UNREADABLE = (NotTextError, LinkRefusedError, AccessRefusedError)

_split_in_place = lru_cache(maxsize=256)(notefile.split_in_place)  # a batch of the indexer


class _Note(NamedTuple):
    """The file of a place as it is now."""

    row: NoteRow | None
    real: str | Unreadable | None
    texts: notefile.Texts

    def text(self, name: str) -> Text:
        is_unreadable = self.real is UNREADABLE and name in (*FILES, "")
        return UNREADABLE if is_unreadable else self.texts.get(name)


_NO_NOTE = _Note(None, None, {})


class NotesLayout(Closeable, Wrapped, Layout):
    """The logical tree of nodes, on a backend that has a note for each.

    Notes outside of the memory folder are resources in place, if it is not the whole tree. They
    can be read, and are written by their owner only.
    """

    def __init__(  # noqa: PLR0913 - what it lies on, and what it leaves out
        self,
        inner: StorageBackend,
        places: NoteTable,
        names: NoteNames,
        folder: Locator = _ROOT,
        *,
        ignored: Iterable[str] = (),
        ignores: Callable[[str], bool] | None = None,
        rule: str = "",
    ) -> None:
        self.inner = inner
        self.table = places
        self._names = names
        self._owner = f"user:{names.user}" if names.user else ""
        self._folder = folder
        self._is_ready = False
        self._ignored = frozenset(ignored)
        self._ignores = ignores
        self.rule = rule
        self._beside: frozenset[str] | None = None

    def close(self) -> None:
        self.table.close()

    # ------------------------------------------------------------ reading
    def read(self, locator: Locator) -> str:
        part = logical_text(locator.key)
        note = self._note(part.place)
        text = note.text(part.name)
        if text is UNREADABLE and note.row is not None:
            self.inner.read(Locator(note.row.path))  # raises, and says why
            raise NotTextError(
                f"{note.row.path!a} is too long to be memory. Fix: {LEFT_OUT[TOO_LONG][1]}."
            )
        if isinstance(text, str):
            return text
        if self._is_directory(locator.key):
            raise PathIsDirectoryError(
                f"{locator.key!a} is a directory. Fix: name a text below it."
            )
        raise _absent(locator)

    def read_all(self, directory: Locator, names: Iterable[str]) -> dict[str, str]:
        wanted = list(names)
        if node_at(directory.key) is None or not set(wanted) <= set(FILES):
            return StorageBackend.read_all(self, directory, wanted)
        texts = self._note(directory.key).texts
        return {name: texts[name] for name in wanted if name in texts}

    def text_at(self, key: str) -> Text:
        part = logical_text(key)
        return self._note(part.place).text(part.name)

    def look(self, locators: Iterable[Locator]) -> dict[Locator, Text]:
        parts = [(locator, logical_text(locator.key)) for locator in locators]
        self._prepare()
        asked = dict.fromkeys(part.place for _, part in parts)
        rows = {place: NoteRow(place, place) for place in asked if is_state(place)}
        rows |= {row.place: row for row in self.table.among(asked)}
        notes = {place: self._note_of(row) for place, row in rows.items()}
        return {locator: notes.get(place, _NO_NOTE).text(name) for locator, (place, name) in parts}

    def below(self, place: str) -> Sequence[str]:
        """Return the folders of all nodes at a place and below; each before those in it."""
        self._settle(place)
        return [each for each in self.table.below(place) if node_at(each) is not None]

    def in_use(self, places: Sequence[str]) -> dict[str, bool]:
        """Return whether nodes in these folders are in use; left out if their file must be read."""
        self._prepare()
        rows = {row.place: row for row in self.table.among(places)}
        notes = {place: row.path for place, row in rows.items() if not self._is_memory(row.path)}
        found = {place: self._is_there(path) for place, path in notes.items()}
        return found | {place: False for place in places if place not in rows}

    def list(self, locator: Locator) -> list[Locator]:
        key = locator.key
        if locator.name == ARCHIVED:
            self._settle(locator.parent.key)
            return [locator.child(name) for name in self.table.archived(locator.parent.key)]
        self._prepare()
        unsure, children, archived = self.table.listed(key)
        if unsure:
            self._settle(key)
            _, children, archived = self.table.listed(key)
        names = {*children, *self._texts_in(key)}.difference(() if key else (_COPIES[:-1],))
        if is_state(f"{key}/-"):
            names |= {each.name for each in self.inner.list(locator)}
            names = {name for name in names if self.exists(locator.child(name))}
        if archived:
            names.add(ARCHIVED)
        session = _session(key)
        if session and FIRST_NODE in names:
            texts = self._note(session).texts
            names.update(name for name in _BESIDE if name in texts)
            if not any(name in texts for name in FILES) and not self.table.children(session):
                names.discard(FIRST_NODE)
        return [locator.child(name) for name in sorted(names)]

    def exists(self, locator: Locator) -> bool:
        return (
            not locator.key
            or self._has(logical_text(locator.key))
            or self._is_directory(locator.key)
        )

    def info(self, locator: Locator) -> Info:
        part = logical_text(locator.key)
        note = self._note(part.place)
        if note.row is not None and note.text(part.name) is not None:
            found = Info(locator, is_dir=False, size=0, mtime=0.0)
            with suppress(AccessRefusedError):  # then nothing is known of it
                found = self.inner.info(Locator(note.row.path))
            text = note.texts.get(part.name)
            size = found.size if text is None else len(text.encode())
            return Info(locator, is_dir=False, size=size, mtime=found.mtime)
        if not locator.key or self._is_directory(locator.key):
            return Info(locator, is_dir=True, size=0, mtime=0.0)
        raise _absent(locator)

    def findings(self, locator: Locator) -> Sequence[Finding]:
        """Tell what lies among the notes and is none; all of it is told of the root."""
        return () if locator.key else tuple(self._findings())

    def _findings(self) -> Iterator[Finding]:
        self._prepare()
        told = set[Locator]()
        for directory, stamps in self.inner.scan(_ROOT, skip=self.skips):
            if stamps is not None:
                found = self.inner.findings(directory)
                told.update(directory.child(each.name) for each in found if each.kind is _COPY)
                yield from found
            else:
                advice = "let this user read it, or name it in ignore of [vault]"
                yield Finding(FindingKind.CLOSED, directory.parent, directory.name, advice)
        advice = (
            "it has the same id: `perdure conflicts merge` unites both; "
            "to be another memory, it must have no id"
        )
        for row in self.table.copies():
            holder, copy = self.table.at(row.claim), Locator(row.path)
            if holder is not None and copy not in told:
                yield Finding(_COPY, copy.parent, copy.name, advice, Locator(holder.path))

    def _has(self, part: LogicalText) -> bool:
        return self._note(part.place).text(part.name) is not None

    def _texts_in(self, key: str) -> Sequence[str]:
        """Return the names of a node's files."""
        if node_at(key) is None:
            return []
        note = self._note(key)
        return [name for name in FILES if note.text(name) is not None]

    def _is_directory(self, key: str) -> bool:
        above, _, name = key.rpartition("/")
        if name == ARCHIVED:
            self._settle(above)
            return bool(self.table.archived(above))
        self._settle(key)
        if node_at(key) is not None and self._texts_in(key):
            return True
        session = _session(key)
        if session and self.table.children(key) == [FIRST_NODE]:
            return bool(self._note(session).texts) or self.table.has_below(session)
        return self.table.has_below(key)

    def _note(self, place: str) -> _Note:
        if not self._is_ready:
            self._prepare()
        row = self.table.at(place) or (NoteRow(place, place) if is_state(place) else None)
        return _NO_NOTE if row is None else self._note_of(row)

    def _note_of(self, row: NoteRow) -> _Note:
        row, real = self._file_of(row)
        return _Note(row, real, self._split(real, row) if isinstance(real, str) else {})

    def _file_of(self, row: NoteRow) -> tuple[NoteRow, Text]:
        """Return what the file of a row says, wherever it is by now, with the row that it has."""
        if row.place.startswith(_COPIES):
            return row, None
        try:
            real = self.inner.read(trusted(row.path))
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            moved = self._moved(row)
            return (row, None) if moved is None else self._file_of(moved)
        except _UNREADABLE:
            return row, UNREADABLE
        if len(real) > MAX_NOTE and self._is_too_long(row.path, real):
            return row, UNREADABLE
        if row.digest != sha256(real.encode()).digest() and self._is_memory(row.path):
            says = self._place_in(row.path, real)
            if says not in {None, row.place, row.claim}:  # another file has its name
                moved = self._moved(row)
                return (row, None) if moved is None else self._file_of(moved)
        return row, real

    def _moved(self, row: NoteRow) -> NoteRow | None:
        """Return the row of a memory whose file others renamed or moved since the last check.

        Of the files that the table does not know, each is read once. What they say enters history
        with the next check, which finds them by itself.
        """
        if not self._is_memory(row.path) or is_state(row.path):
            return None  # a note in place is its path
        known = {each.path for each in self.table.rows()}
        found: dict[str, NoteRow] = {}
        for path in self._files(self._folder):
            if path not in known:
                with suppress(FileNotFoundError):  # gone since it was listed
                    new = self._row_of(path, None, partial(self._is_others, path))
                    if new is not None and new.place not in found:
                        found[new.place] = new
        self.table.change(found.values())
        return found.get(row.place)

    def _split(self, real: str, row: NoteRow) -> notefile.Texts:
        if is_state(row.path):
            return {"": real}
        if self._is_memory(row.path):
            return notefile.split(real, row.place, self._owner)
        return _split_in_place(real, row.place, _stem(row.path), day_in(row.path, self._days))

    # ------------------------------------------------------------ changing
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        self.write_all({locator: content}, expect={locator: expect})
        return locator

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        check_removal(expect)
        if not locator.key:
            raise PathIsDirectoryError("the root is a directory. Fix: name a text below it.")
        if self._has(logical_text(locator.key)):
            self.write_all({locator: None}, expect={locator: expect})
        elif not self._is_directory(locator.key):
            check_found(None, expect, locator)
            raise _absent(locator)
        elif expect is not None:
            raise PathIsDirectoryError(
                f"{locator.key!a} is a directory. Fix: name a text below it."
            )
        else:
            raise DirectoryNotEmptyError(
                f"{locator.key!a} is not empty. Fix: remove what it holds first."
            )

    def mkdir(self, locator: Locator) -> Locator:
        """Do nothing but refuse what can't be: a directory is there while it holds a text."""
        if self._has(logical_text(locator.key)):
            raise PathIsFileError(
                f"{locator.key!a} is a text, so no directory can be made there. "
                "Fix: choose another name, or remove the text."
            )
        self._refuse_text_above(locator.key)
        return locator

    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        check_changes(changes, expect)
        self.refuse(changes)
        self._write(changes, expect, self.inner.write_all)

    @property
    def defers_sync(self) -> bool:
        return self.inner.defers_sync

    def write_unsynced(self, changes: Changes, *, expect: Conditions = None) -> None:
        """Do so for a history, which asks `refuse` first."""
        self._write(changes, expect, self.inner.write_unsynced)

    def sync(self, locators: Iterable[Locator]) -> None:
        rows = map(self.table.at, {logical_text(each.key).place for each in locators})
        self.inner.sync(Locator(row.path) for row in rows if row is not None)

    def _write(self, changes: Changes, expect: Conditions, write: "_WriteAll") -> None:
        wanted = check_changes(changes, expect)
        for attempt in range(_ATTEMPTS):
            plan = self._planned(wanted)
            try:
                return self._land(plan, write)
            except ConcurrentModificationError:  # a file changed since it was read
                if attempt == _ATTEMPTS - 1:
                    raise
        return None

    def _planned(self, wanted: Sequence[Change]) -> "Sequence[_FileChange]":
        """Return what becomes of each file, once every condition was compared."""
        parts = {change.locator: logical_text(change.locator.key) for change in wanted}
        notes = {
            place: self._note(place) for place in dict.fromkeys(p.place for p in parts.values())
        }
        texts = {place: dict(note.texts) for place, note in notes.items()}
        for locator, data, expect in wanted:
            part = parts[locator]
            self._compare(locator, data, expect, notes[part.place])
            if data is None:
                texts[part.place].pop(part.name, None)
            else:
                texts[part.place][part.name] = data.decode()
        steps: list[_FileChange] = []
        paths: set[str] = set()
        for place, note in notes.items():
            step = self._step(place, note, texts[place], paths)
            if step is not None:
                steps.append(step)
                paths.add(folded(step.after.path))
        return steps

    def _compare(
        self, locator: Locator, data: bytes | None, expect: Expectation, note: _Note
    ) -> None:
        text = note.texts.get(logical_text(locator.key).name)
        if note.real is UNREADABLE:
            if data is not None or expect is not None:
                assert note.row is not None  # noqa: S101 - it has a file
                self.inner.read(Locator(note.row.path))  # raises, and says why
            return
        check_found(None if text is None else text.encode(), expect, locator)

    def _refuse_directory(self, locator: Locator) -> None:
        if not self._has(logical_text(locator.key)) and self._is_directory(locator.key):
            raise PathIsDirectoryError(
                f"{locator.key!a} is a directory. Fix: name a text below it."
            )

    def _refuse_text_above(self, key: str) -> None:
        self._refuse_texts(self.table.among([key[:at] for at in _slashes(key)]))

    def _refuse_texts(self, rows: Iterable[NoteRow]) -> None:
        """Refuse that something is to lie below one of these, if it is a text."""
        for row in rows:
            if self._has(logical_text(row.place)):
                raise ParentIsFileError(
                    f"{row.place!a} is a text, so nothing can lie below it. "
                    "Fix: choose a place outside of it."
                )

    def refuse(self, changes: Changes) -> None:
        self._prepare()
        parts = {locator: logical_text(locator.key) for locator in changes}
        above: dict[str, str] = {}
        for locator, text in changes.items():
            place = parts[locator].place
            above |= {} if text is None else {place[:at]: place for at in _slashes(place)}
        asked = (*above, *(part.place for part in parts.values()))
        rows = {row.place: row for row in self.table.among(asked)}
        for locator, text in changes.items():
            part = parts[locator]
            row = rows.get(part.place)
            if row is not None and not self._is_memory(row.path):
                if self._note_of(row).texts.get(part.name) != text:
                    raise _not_ours(row)
            elif part.name not in FILES:  # no name of a node is one of those
                self._refuse_directory(locator)
        self._refuse_texts(row for place, row in rows.items() if place in above)

    def _step(
        self, place: str, note: _Note, texts: notefile.Texts, paths: Collection[str]
    ) -> "_FileChange | None":
        """Return what becomes of a file; a new one has none of the paths of the same commit."""
        if note.row is not None and not self._is_memory(note.row.path):
            if texts != note.texts:  # to write what it says already is fine
                raise _not_ours(note.row)
            return None
        if not texts:
            if note.row is None or note.real is None:
                return None
            return _FileChange(place, note.row, note.row, note.real, None)
        before = note.real if isinstance(note.real, str) else None
        path = "" if note.row is None else note.row.path
        real = texts[""] if is_state(path) else notefile.compose(texts, place, before)
        if real == before:
            return None
        path = path or self._new_path(place, texts, paths)
        after = NoteRow(place, path, _digest(real), ARCHIVED in texts)
        return _FileChange(place, note.row, after, note.real, real)

    def _land(self, steps: "Sequence[_FileChange]", write: "_WriteAll") -> None:
        if not steps:
            return
        unsure = [step.after._replace(unsure=True) for step in steps if step.moves]
        self.table.change(unsure)
        write(
            {trusted(step.after.path): step.real for step in steps},
            expect={trusted(step.after.path): step.guard for step in steps},
        )
        gone = [step for step in steps if step.real is None]
        self.table.change([step.after for step in steps if step.real is not None])
        for step in gone:  # its row goes last, so that who dies here is followed by `_settle`
            self._clear(Locator(step.after.path).parent)
        self.table.change([], [step.place for step in gone])

    def _clear(self, directory: Locator) -> None:
        """Remove the folders that a note left empty, up to the memory folder."""
        with suppress(StorageError, OSError):
            while directory.key and directory != self._folder and not self.inner.list(directory):
                with suppress(FileNotFoundError):  # who died before us removed it
                    self.inner.remove(directory)
                directory = directory.parent

    def _new_path(self, place: str, texts: notefile.Texts, paths: Collection[str]) -> str:
        """Return where the note of a place is to be: by its name, or told apart from another's."""
        kind, title, day = _described(place, texts)
        folder = self._folder.child(*self._names.folder(place, kind))
        stem = self._names.stem(place, title, day)
        apart = distinct_name(stem, place)
        for name in (stem, apart, distinct_name(apart, folder.key)):
            file = folder.child(f"{name}{MARKDOWN}")
            path = file.key
            taken = self.table.at_path(path)
            if folded(path) in paths or (taken is not None and taken.place != place):
                continue
            if not self.inner.exists(file) or self._place_in(path) == place:
                return path
        raise ConcurrentModificationError(
            f"other notes have every name that {place!a} could have in {folder.key!a}. "
            "Nothing was changed. Fix: rename one of them."
        )

    def rename(self, places: Iterable[str]) -> None:
        """Name the notes of nodes again by what they say now, as after words were erased."""
        for place in places:
            row, real, texts = self._note(place)
            if row is None or not isinstance(real, str) or not self._is_memory(row.path):
                continue
            path = self._new_path(place, texts, ())
            if path != row.path:
                old, new = Locator(row.path), Locator(path)
                guards: Conditions = {new: ABSENT, old: content_hash(real)}
                self.inner.write_all({new: real, old: None}, expect=guards)
                self.table.change([row._replace(path=path)])

    # ------------------------------------------------------------ the table
    def _prepare(self) -> None:
        """Look at every file once, if nobody did since the table was made."""
        if not self._is_ready:
            try:
                if not self.table.is_complete:
                    self.rebuild()
            except (StorageError, DamageError):  # where it can't be made, it is made in memory
                self.table.close()
                self.table = NoteTable()
                self.rebuild()
            self._is_ready = True

    def rebuild(self) -> None:
        """Make the table again from the files."""
        known = {row.path: row for row in self.table.rows()}
        places: dict[str, NoteRow] = {}
        behind: list[str] = []
        for path in self._files():
            row = self._row_of(path, known.get(path), lambda _place: False)
            if row is not None:
                taken = places.get(row.place)
                if taken is not None:
                    first, second = sorted((taken, row), key=self._claim)
                    row = first
                    behind.append(second.path)
                places[row.place] = row
        for path in sorted(behind):
            row = self._row_of(path, known.get(path), lambda place: place in places)
            if row is not None:
                places[row.place] = row
        self.table.clear()
        self.table.change(places.values(), complete=True)

    def _files(self, below: Locator = _ROOT) -> Iterator[str]:
        return filter(self.is_note, self._paths(below))

    def _paths(self, below: Locator = _ROOT) -> Iterator[str]:
        for directory, stamps in self.inner.scan(below, skip=self.skips):
            for name in stamps or ():
                yield directory.child(name).key

    def skips(self, directory: str) -> bool:
        """Leave out folders of tools (with a dot), the one of templates, and ignored ones."""
        if directory in self._ignored or directory.rpartition("/")[2].startswith("."):
            return True
        if self._templates and folded(directory) == self._templates:
            return True
        return self._ignores is not None and self._is_ignored(f"{directory}/")

    def _is_ignored(self, path: str) -> bool:
        """Whether a pattern of its owner leaves out a note or a folder; memories never are."""
        if self._ignores is None or self._is_memory(path):
            return False
        return not f"{self._folder.key}/".startswith(path) and self._ignores(path)

    @cached_property
    def _templates(self) -> str:
        match self._configured(_TEMPLATES):
            case {"folder": str(folder)}:
                return folded(folder.strip("/"))
        return ""

    @cached_property
    def _days(self) -> "re.Pattern[str] | None":
        match self._configured(_DAILY_NOTES):
            case {"format": str(form), **more} if form:
                return days_of(str(more.get("folder") or ""), form)
        return None

    def _configured(self, plugin: Locator) -> JSON:
        """Return how a core plugin of Obsidian is configured; None if it is not."""
        with suppress(StorageError, ValueError, RecursionError):
            found: JSON = json.loads(self.inner.read(plugin))
            return found
        return None

    def _is_memory(self, path: str) -> bool:
        return not self._folder.key or path.startswith(f"{self._folder.key}/") or is_state(path)

    def _is_of_system(self, path: str) -> bool:
        return path.startswith(f"{self._folder.child(SYSTEM).key}/")

    def is_note(self, path: str) -> bool:
        """Whether a file is a memory or a note in place, by its name."""
        name = path.rpartition("/")[2]
        return (
            (is_markdown(name) or is_state(path))
            and not name.startswith(".")
            and name != ABOUT
            and (marked_original(name) is None or self._is_of_system(path))
            and not self._is_ignored(path)
        )

    def _row_of(
        self, path: str, known: NoteRow | None, is_taken: Callable[[str], bool]
    ) -> NoteRow | None:
        """Return the row of a file; the place that another file has is not given to it."""
        try:
            real: str | None = self.inner.read(Locator(path))
        except IsADirectoryError:  # it took the place of a note
            return None
        except _UNREADABLE:
            real = None
        said = self._id_in(path, real)
        places = [self._place_of(path, said), self._place_of(path)]
        places += [self._place_of(distinct_name(path[: -len(MARKDOWN)], path) + MARKDOWN)]
        if known is not None and (real is None or places[0] is None):
            places.insert(0, known.place)
        place = next((each for each in places if each is not None and not is_taken(each)), None)
        if said and place != places[0] and self._is_memory(path):
            return NoteRow(_copy_place(path), path, claim=places[0] or "")
        if place is None or (real is not None and self._is_copy(path, real)):
            return None
        claim = "" if place == places[0] else places[0] or ""
        row = NoteRow(place, path, claim=claim, aliases=self._aliases(path, real))
        if real is None or self._is_too_long(path, real):
            return row._replace(digest=NOT_READ)
        if not self._is_memory(path):
            return row
        return row._replace(archived=ARCHIVED in self._split(real, row))

    def _aliases(self, path: str, real: str | None) -> str:
        if real is None or self._is_memory(path):
            return ""
        said = notefile.NoteFile.parse(real).value("aliases")
        given = said if isinstance(said, list) else [said]
        return "\n".join(each.strip() for each in given if isinstance(each, str))

    def named(self, name: str) -> Sequence[str]:
        """Return the folders of all nodes whose file has a name, or which say that they have it."""
        self._prepare()
        return self.table.named(name)

    def is_ours(self, place: str) -> bool:
        note = self._note(place)
        real = note.real
        return note.row is None or not isinstance(real, str) or note.row.digest == _digest(real)

    def own_note(self, place: str) -> str:
        """Return the path of the note that the folder of a node is, if Perdure may not change it.

        Empty for any other.
        """
        self._prepare()
        row = self.table.at(place)
        return row.path if row and not self._is_memory(row.path) else ""

    def path_of(self, key: str) -> str:
        """Return the path of the file that holds a text, or a node; empty if there is none."""
        self._prepare()
        row = self.table.at(key) or self.table.at(logical_text(key).place)
        return row.path if row else ""

    def new_name(self, key: str, title: str) -> str:
        """Return the name that the file of a new node would have, without its ending."""
        return self._names.stem(key, title, "")

    def texts_in(self, place: str, path: str, real: str) -> Mapping[str, str]:
        return self._split(real, NoteRow(place, path))

    def names_of(self, place: str) -> Sequence[str]:
        """Return the names by which `named` finds the folder of a node."""
        row = self.table.at(place)
        return sorted(row.names) if row else ()

    def files_of(self, places: Sequence[str]) -> dict[str, tuple[str, Text]]:
        if not self._is_ready:
            self._prepare()
        found = {row.place: self._file_of(row) for row in self.table.among(places)}
        return {place: (row.path, real) for place, (row, real) in found.items()}

    def unreadable(self, seconds: float) -> Iterator[tuple[str, str]]:
        """Yield files whose frontmatter can't be read, with the finding, as far as time allows."""
        self._prepare()
        until = time.monotonic() + seconds
        for row in self.table.rows():
            if time.monotonic() > until:
                return
            with suppress(StorageError):
                if why := frontmatter(self.inner.read(Locator(row.path))).finding:
                    yield row.path, why

    def place_at(self, path: str) -> str:
        """Return the folder of the node that a file holds; empty if it holds none."""
        self._prepare()
        row = self.table.at_path(path)
        return row.place if row else ""

    def remove_copies(self, place: str) -> None:
        """Remove the conflict copies that sync clients left beside the file of a node."""
        row = self.table.at(place)
        if row is None or not self._is_memory(row.path):
            return
        folder, name = Locator(row.path).parent, Locator(row.path).name
        found = {each.name for each in self.inner.list(folder)}
        for copy in found | {each.name for each in self.inner.findings(folder)}:
            if marked_original(copy) == name:
                self.inner.remove(folder.child(copy))
        for each in self.table.claiming(place):
            if each.place.startswith(_COPIES):
                self.inner.remove(Locator(each.path))
                self.table.change([], [each.place])

    def _is_too_long(self, path: str, real: str) -> bool:
        return not self._is_memory(path) and len(real) > MAX_NOTE

    def _is_copy(self, path: str, real: str) -> bool:
        """Whether a file is a conflict copy of the one beside it, though its name has no mark."""
        original = unmarked_original(path.rpartition("/")[2])
        if original is None:
            return False
        try:
            beside = self.inner.read(Locator(path).parent.child(original))
        except StorageError:  # it is not there, or not a text
            return False
        return is_evident_copy(path.rpartition("/")[2], beside, real)

    def _copies_of(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield files beside these that may be, or have been, conflict copies of them."""
        changed = set(paths)
        for directory in {Locator(path).parent for path in changed}:
            with suppress(AccessRefusedError):
                for child in self.inner.list(directory):
                    original = unmarked_original(child.name)
                    if original is not None and directory.child(original).key in changed:
                        yield child.key

    def _place_in(self, path: str, real: str | None = None) -> str | None:
        """Return the place that a file says it is of."""
        return self._place_of(path, self._id_in(path, real))

    def _id_in(self, path: str, real: str | None = None) -> str | None:
        if real is None:
            with suppress(StorageError):
                real = self.inner.read(Locator(path))
        said = notefile.NoteFile.parse(real).value(notefile.ID) if real is not None else None
        return said if isinstance(said, str) else None

    def _place_of(self, path: str, said: str | None = None) -> str | None:
        if is_state(path):
            return path
        if not self._is_memory(path):
            return in_place(self._names.account, path)
        below = path.removeprefix(f"{self._folder.key}/") if self._folder.key else path
        return self._names.place(below, said)

    def _settle(self, key: str) -> None:
        """Look at the files that a writer may have left otherwise than the table says."""
        self._prepare()
        for row in self.table.unsure(key):
            if self.inner.exists(Locator(row.path)):
                found = self._row_of(row.path, row, lambda _place: False)
                self.table.change([] if found is None else [found], [row.place])
            else:
                self.table.change([], [row.place])
                self._clear(Locator(row.path).parent)  # as the writer would have

    def logical(self, paths: Iterable[str]) -> Sequence[Locator]:
        """Take in what others did to these files; return the texts that may have changed."""
        self._prepare()
        changed: dict[str, None] = {}
        paths = set(paths)
        paths.update(self._copies_of(paths))
        pending = deque(sorted(paths, key=lambda path: not self._is_there(path)))
        while pending:
            path = pending.popleft()
            known = self._row_at(path)
            found = None
            if self.is_note(path) and self._is_there(path):
                found = self._row_of(path, known, partial(self._is_others, path))
            elif known is not None and known.path != path:
                continue  # a rename that changed only the case of letters
            if known is not None and (found is None or found.place != known.place):
                self.table.change([], [known.place])
                changed.update(dict.fromkeys(self._keys(known.place)))
                pending.extend(row.path for row in self.table.claiming(known.place))
            if found is not None and found != known:
                before = self.table.at(found.place)
                self.table.change([found])
                if before is not None and not self._are_one(before.path, path):
                    pending.append(before.path)  # it has the same id, and may come second
                    pending.extend(row.path for row in self.table.claiming(found.place))
            if found is not None:
                changed.update(dict.fromkeys(self._keys(found.place)))
        return [Locator(key) for key in changed]

    def held(self, path: str, text: str) -> dict[Locator, str]:
        """Return the texts of the tree that a file would hold with this text."""
        row = self._row_for(path, text)
        texts = self._split(text, row) if row else {}
        return {Locator(key_of(LogicalText(row.place, name))): texts[name] for name in texts if row}

    def composed(self, path: str, texts: Mapping[Locator, str], before: str) -> str:
        """Return what a file was that held these texts, written as the text that it has."""
        row = self._row_for(path, before)
        named = {logical_text(locator.key).name: text for locator, text in texts.items()}
        if is_state(path):
            return named.get("", "")
        if row is None or not self._is_memory(path):
            return named.get(CONTENT, "")
        return notefile.compose(named, row.place, before)

    def _row_for(self, path: str, text: str) -> NoteRow | None:
        """Return the row of a file, or the one that it would have with a text."""
        self._prepare()
        place = self._place_in(path, text) or self._place_of(path)
        return self.table.at_path(path) or (NoteRow(place, path) if place else None)

    def refresh(self, *, accept_removals: bool = False) -> Sequence[Locator]:
        self._prepare()
        files, known = set(self._files()), {row.path for row in self.table.rows()}
        if not accept_removals:
            gone = sorted(path for path in known - files if not self._is_there(path))
            lost = gone[len(files - known) :]  # what arrived may be what was moved
            refuse_loss(self.inner, lost, known=len(known), met=len(files))
        return self.logical(files | known)

    def expected(self, paths: Sequence[str]) -> dict[str, bytes | None]:
        found = {path: self._row_at(path) for path in paths}
        return {path: row.digest for path, row in found.items() if row and row.is_ours}

    def known(self) -> Iterable[tuple[str, bytes]]:
        self._prepare()
        return [(row.path, row.digest) for row in self.table.rows() if row.is_ours]

    def _row_at(self, path: str) -> NoteRow | None:
        """Return the row of a file, also if it had the same name in other letters."""
        row = self.table.at_path(path)
        return row if row is None or self._are_one(row.path, path) else None

    def _are_one(self, path: str, other: str) -> bool:
        """Whether two paths are of one file: disks that ignore case list it once."""
        same = path == other or folded(path) == folded(other)
        return same and (path == other or not (self._is_listed(path) and self._is_listed(other)))

    def _is_listed(self, path: str) -> bool:
        locator = Locator(path)
        while locator.key and locator in self.inner.list(locator.parent):
            locator = locator.parent
        return not locator.key

    def in_place(self) -> frozenset[str]:
        """Return the folders of nodes whose files are their owner's, and are never written."""
        self._prepare()
        rows = self.table.rows()
        return frozenset(row.place for row in rows if not self._is_memory(row.path))

    def census(self) -> "Census":
        """Count the notes in place, and the files beside them that are not notes."""
        self._prepare()
        rows = self.table.rows()
        notes = {r.path for r in rows if r.digest != NOT_READ and not self._is_memory(r.path)}
        others: Counter[str] = Counter()
        left_out: dict[str, list[str]] = {}
        for each in self._findings():
            if each.kind is not _COPY:
                path = f"{each.directory.key}/{each.name}".lstrip("/")
                left_out.setdefault(each.kind.value, []).append(path)
        for path in self._paths():
            if path not in notes and not self._is_memory(path):
                ending = path.rpartition("/")[2][1:].rpartition(".")[2]
                if why := self._why_left_out(path):
                    left_out.setdefault(why, []).append(path)
                else:
                    others[f".{ending}"] += 1
        for row in rows:
            if row.digest == NOT_READ and self._is_memory(row.path):
                left_out.setdefault(NOT_UTF8, []).append(row.path)
            elif row.place.startswith(_COPIES):
                left_out.setdefault(COPY, []).append(row.path)
        others.update({why: len(paths) for why, paths in left_out.items()})
        return Census(len(notes), dict(others.most_common()), left_out)

    def has_file(self, name: str) -> bool:
        """Whether a file beside the texts has a name, with or without its folders."""
        if self._beside is None:
            paths = [f"/{folded(path)}" for path in self._paths() if not self.is_note(path)]
            self._beside = frozenset(path[at:] for path in paths for at in _slashes(path))
        return f"/{folded(name.strip('/'))}" in self._beside

    def _why_left_out(self, path: str) -> str:
        """Return why a note is not memory; empty for what is not a note."""
        if not self.is_note(path):
            name = path.rpartition("/")[2]
            return COPY if is_markdown(name) and marked_original(name) else ""
        try:
            real = self.inner.read(Locator(path))
        except StorageError as error:
            return NOT_UTF8 if isinstance(error, NotTextError) else CLOSED
        return TOO_LONG if self._is_too_long(path, real) else COPY

    def _is_there(self, path: str) -> bool:
        try:
            return self.inner.exists(Locator(path))
        except AccessRefusedError:  # who may not look can't say that it is gone
            return True

    def _is_others(self, path: str, place: str) -> bool:
        """Whether another file that is still there has a place, and comes before this one."""
        row = self.table.at(place)
        if row is None or self._are_one(row.path, path) or not self._is_there(row.path):
            return False
        if not row.claim and self._place_in(row.path) != place:
            return False  # it is of another place now
        return self._claim(row) < self._claim(NoteRow(place, path))

    def _claim(self, row: NoteRow) -> tuple[bool, int, bool, int, str]:
        """Order the files that have one id, or the name of one: the same on every machine.

        The newest version comes first.
        """
        with suppress(StorageError):
            file = notefile.NoteFile.parse(self.inner.read(Locator(row.path)))
            version = file.value("version") if isinstance(file.value(notefile.ID), str) else None
            age = -version if isinstance(version, int) else 0
            names = self._place_of(row.path) != row.place, len(row.path), row.path
            return not isinstance(file.value(notefile.ID), str), age, *names
        return True, 0, True, len(row.path), row.path

    def _keys(self, place: str) -> Sequence[str]:
        """Return the keys of every text that a place can have."""
        node = node_at(place)
        if node is None:
            return [place]
        beside = _BESIDE if node.session and node.name == FIRST_NODE else ()
        return [key_of(LogicalText(place, name)) for name in (*FILES, ARCHIVED, *beside)]


class Census(NamedTuple):
    notes: int
    """How many notes outside of the memory folder are resources."""
    others: dict[str, int]
    """How many files are not notes, by the ending of their names."""
    left_out: dict[str, list[str]]
    """The paths of notes that are not memory, by the reason."""


class _WriteAll(Protocol):
    def __call__(self, changes: Changes, *, expect: Conditions) -> None: ...


class _FileChange(NamedTuple):
    """What becomes of one file."""

    place: str
    before: NoteRow | None
    after: NoteRow
    found: str | Unreadable | None
    real: str | None
    """None if the file is to be removed."""

    @property
    def moves(self) -> bool:
        """Whether more changes than what a file says."""
        same = self.before is not None and self.before._replace(digest=self.after.digest)
        return self.real is None or same != self.after

    @property
    def guard(self) -> Expectation:
        if self.found is UNREADABLE:
            return None
        return ABSENT if self.found is None else content_hash(self.found)


def _slashes(path: str) -> Iterator[int]:
    return (at for at, character in enumerate(path) if character == "/")


def _digest(real: str) -> bytes:
    return sha256(real.encode()).digest()


def _copy_place(path: str) -> str:
    return f"{_COPIES}{sha256(path.encode()).hexdigest()[:16]}"


def _stem(path: str) -> str:
    return path.rpartition("/")[2][: -len(MARKDOWN)]


def _session(key: str) -> str:
    """Return the place that has the texts beside the nodes of a session; empty if it is none."""
    parts = key.split("/")
    if len(parts) == 4 and parts[0] == "accounts" and parts[2] == "sessions":  # noqa: PLR2004 - accounts, its id, sessions, its id
        return f"{key}/{FIRST_NODE}"
    return ""


def _described(place: str, texts: notefile.Texts) -> tuple[str, str, str]:
    """Return the kind, title and day that a new note has its name from."""
    try:
        meta = Meta.parse(texts.get(META, ""))
    except InvalidValueError:
        return "", "", ""
    kind, title, day = (str(meta.metadata.get(each) or "") for each in ("kind", "title", "date"))
    day = day if len(day) >= _DATE else meta.created_at.isoformat()
    if _session(place.rpartition("/")[0]):
        from perdure.model.transcript import beginning  # noqa: PLC0415 - only sessions pay

        began, words = beginning(texts.get(CONTENT, ""))
        title, day = title or words, began or day
    if not title and (node := node_at(place)):
        _, body = split(texts.get(CONTENT, ""))
        title = title_of(body, texts.get(ABSTRACT) or derived_abstract(node, body), node)
    if title.endswith("…"):  # the line that it is the beginning of
        lines = (line.strip("-*# ") for line in texts.get(CONTENT, "").splitlines())
        title = next((line for line in lines if line.startswith(title[:-1])), title)
    return kind, title, day[:_DATE]


def _not_ours(row: NoteRow) -> AccessRefusedError:
    return AccessRefusedError(
        f"{row.path!a} is a note of its owner's, which Perdure reads and does not change. Nothing "
        "was changed. Fix: edit it in its editor, or save a memory beside it with `perdure save`."
    )


def _absent(locator: Locator) -> AbsentError:
    return AbsentError(
        f"nothing is at {locator.key!a}. Fix: list the place above to see what is there."
    )
