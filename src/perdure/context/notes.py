"""Layout `notes`: each node is one Markdown file that a person could have written.

Above is the logical tree that every other layer knows: a folder with five files for each node.
Below are notes. History is above, so it records logical texts, and the past has no layout.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from perdure.context import notefile
from perdure.context.node_files import (
    ABSTRACT,
    ARCHIVED,
    CONTENT,
    FILES,
    META,
    Meta,
    derived_abstract,
)
from perdure.context.note_names import (
    MARKDOWN,
    LogicalText,
    NoteNames,
    distinct_name,
    folded,
    is_state,
    key_of,
    logical_text,
    node_at,
)
from perdure.context.note_table import NoteRow, NoteTable
from perdure.context.note_tree import (
    BESIDE,
    COPIES,
    LEFT_OUT,
    ROOT,
    TOO_LONG,
    NoteTree,
    digest_of,
    slashes,
)
from perdure.errors import (
    AbsentError,
    AccessRefusedError,
    ConcurrentModificationError,
    DirectoryNotEmptyError,
    InvalidValueError,
    NotTextError,
    ParentIsFileError,
    PathIsDirectoryError,
    PathIsFileError,
    StorageError,
)
from perdure.files import Closeable
from perdure.frontmatter import frontmatter, split
from perdure.model.node import title_of
from perdure.model.uri import FIRST_NODE
from perdure.storage import Locator, StorageBackend
from perdure.storage.changes import (
    ABSENT,
    Changes,
    Conditions,
    Expectation,
    TextChange,
    check_changes,
    check_found,
    check_removal,
    content_hash,
    marked_original,
)
from perdure.storage.contract import UNREADABLE, Finding, Info, Layout, Text, Unreadable
from perdure.storage.locator import trusted
from perdure.storage.read_only import BackendWrapper

_ATTEMPTS = 3
_DATE = len("2026-03-02")


class _Note(NamedTuple):
    """The file of a place as it is now."""

    row: NoteRow | None
    real: Text
    texts: notefile.Texts

    def text(self, name: str) -> Text:
        is_unreadable = self.real is UNREADABLE and name in (*FILES, "")
        return UNREADABLE if is_unreadable else self.texts.get(name)


_NO_NOTE = _Note(None, None, {})


class _FileChange(NamedTuple):
    """What a commit does to one file."""

    place: str
    before: NoteRow | None
    after: NoteRow
    found: Text
    real: str | None
    """None if the file is to be removed."""

    @property
    def changes_row(self) -> bool:
        """Whether more changes than the text of a file."""
        same = self.before is not None and self.before._replace(digest=self.after.digest)
        return self.real is None or same != self.after

    @property
    def condition(self) -> Expectation:
        if isinstance(self.found, Unreadable):
            return None
        return ABSENT if self.found is None else content_hash(self.found)


class NotesLayout(NoteTree, Closeable, BackendWrapper, Layout):
    """The logical tree of nodes, on a backend that has a note for each.

    Notes outside of the memory folder are resources in place. They can be read, and only their
    owner writes them.
    """

    def __init__(  # noqa: PLR0913 - what it lies on, and what it leaves out
        self,
        inner: StorageBackend,
        table: NoteTable,
        names: NoteNames,
        folder: Locator = ROOT,
        *,
        ignored: Iterable[str] = (),
        ignores: Callable[[str], bool] | None = None,
        rule: str = "",
    ) -> None:
        super().__init__(inner, table, names, folder, ignored, ignores)
        self.rule = rule

    def close(self) -> None:
        self.table.close()

    # ------------------------------------------------------------ reading
    def read(self, locator: Locator) -> str:
        place, name = logical_text(locator.key)
        note = self._note(place)
        text = note.text(name)
        if text is UNREADABLE and note.row is not None:
            self.inner.read(Locator(note.row.path))  # raises, with the reason
            raise NotTextError(
                f"{note.row.path!a} is too long to be memory. Fix: {LEFT_OUT[TOO_LONG][1]}."
            )
        if isinstance(text, str):
            return text
        if self._is_directory(locator.key):
            raise _directory_error(locator)
        raise _absent(locator)

    def read_all(self, directory: Locator, names: Iterable[str]) -> dict[str, str]:
        wanted = list(names)
        if node_at(directory.key) is None or not set(wanted) <= set(FILES):
            return StorageBackend.read_all(self, directory, wanted)
        texts = self._note(directory.key).texts
        return {name: texts[name] for name in wanted if name in texts}

    def text_at(self, key: str) -> Text:
        place, name = logical_text(key)
        return self._note(place).text(name)

    def look(self, locators: Iterable[Locator]) -> dict[Locator, Text]:
        wanted = [(locator, logical_text(locator.key)) for locator in locators]
        self._prepare()
        places = dict.fromkeys(text.place for _, text in wanted)
        rows = {place: NoteRow(place, place) for place in places if is_state(place)}
        rows |= {row.place: row for row in self.table.among(places)}
        notes = {place: self._note_of(row) for place, row in rows.items()}
        return {at: notes.get(place, _NO_NOTE).text(name) for at, (place, name) in wanted}

    def below(self, place: str) -> Sequence[str]:
        """Return the folders of all nodes at a place and below; each before those in it."""
        self._settle(place)
        return [each for each in self.table.below(place) if node_at(each) is not None]

    def in_use(self, places: Sequence[str]) -> dict[str, bool]:
        """Return whether nodes are active, for those where that is known without reading them."""
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
        names = {*children, *self._texts_in(key)}.difference(() if key else (COPIES[:-1],))
        if is_state(f"{key}/-"):
            names |= {each.name for each in self.inner.list(locator)}
            names = {name for name in names if self.exists(locator.child(name))}
        if archived:
            names.add(ARCHIVED)
        session = _session(key)
        if session and FIRST_NODE in names:
            texts = self._note(session).texts
            names.update(name for name in BESIDE if name in texts)
            if not any(name in texts for name in FILES) and not self.table.children(session):
                names.discard(FIRST_NODE)
        return [locator.child(name) for name in sorted(names)]

    def exists(self, locator: Locator) -> bool:
        key = locator.key
        return not key or self.text_at(key) is not None or self._is_directory(key)

    def info(self, locator: Locator) -> Info:
        place, name = logical_text(locator.key)
        note = self._note(place)
        if note.row is not None and note.text(name) is not None:
            found = Info(locator, is_dir=False, size=0, mtime=0.0)
            with suppress(AccessRefusedError):  # then size and time are unknown
                found = self.inner.info(Locator(note.row.path))
            text = note.texts.get(name)
            size = found.size if text is None else len(text.encode())
            return Info(locator, is_dir=False, size=size, mtime=found.mtime)
        if not locator.key or self._is_directory(locator.key):
            return Info(locator, is_dir=True, size=0, mtime=0.0)
        raise _absent(locator)

    def findings(self, locator: Locator) -> Sequence[Finding]:
        """Return what is among the notes and is not a note; all of it for the root."""
        return () if locator.key else tuple(self._findings())

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

    # ------------------------------------------------------------ changing
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        self.write_all({locator: content}, expect={locator: expect})
        return locator

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        check_removal(expect)
        if not locator.key:
            raise PathIsDirectoryError("the root is a directory. Fix: name a text below it.")
        if self.text_at(locator.key) is not None:
            self.write_all({locator: None}, expect={locator: expect})
        elif not self._is_directory(locator.key):
            check_found(None, expect, locator)
            raise _absent(locator)
        elif expect is not None:
            raise _directory_error(locator)
        else:
            raise DirectoryNotEmptyError(
                f"{locator.key!a} is not empty. Fix: remove what it holds first."
            )

    def mkdir(self, locator: Locator) -> Locator:
        """Only check: a directory is there while it holds a text."""
        if self.text_at(locator.key) is not None:
            raise PathIsFileError(
                f"{locator.key!a} is a text, so no directory can be created there. "
                "Fix: choose another name, or remove the text."
            )
        self._refuse_texts(self.table.among([locator.key[:at] for at in slashes(locator.key)]))
        return locator

    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        check_changes(changes, expect)
        self.refuse(changes)
        self._write(changes, expect, self.inner.write_all)

    @property
    def defers_sync(self) -> bool:
        return self.inner.defers_sync

    def write_unsynced(self, changes: Changes, *, expect: Conditions = None) -> None:
        """Write for a history, which calls `refuse` first."""
        self._write(changes, expect, self.inner.write_unsynced)

    def sync(self, locators: Iterable[Locator]) -> None:
        rows = map(self.table.at, {logical_text(each.key).place for each in locators})
        self.inner.sync(Locator(row.path) for row in rows if row is not None)

    def _write(self, changes: Changes, expect: Conditions, write: Callable[..., None]) -> None:
        wanted = check_changes(changes, expect)
        for attempt in range(_ATTEMPTS):
            planned = self._planned(wanted)
            try:
                return self._apply(planned, write)
            except ConcurrentModificationError:  # a file changed since it was read
                if attempt == _ATTEMPTS - 1:
                    raise
        return None

    def _planned(self, wanted: Sequence[TextChange]) -> Sequence[_FileChange]:
        """Return what is done to each file, after all conditions were checked."""
        keys = {change.locator: logical_text(change.locator.key) for change in wanted}
        notes = {place: self._note(place) for place in dict.fromkeys(p for p, _ in keys.values())}
        texts = {place: dict(note.texts) for place, note in notes.items()}
        for locator, content, expect in wanted:
            place, name = keys[locator]
            self._check_condition(locator, content, expect, notes[place])
            if content is None:
                texts[place].pop(name, None)
            else:
                texts[place][name] = content.decode()
        changes: list[_FileChange] = []
        paths: set[str] = set()
        for place, note in notes.items():
            change = self._file_change(place, note, texts[place], paths)
            if change is not None:
                changes.append(change)
                paths.add(folded(change.after.path))
        return changes

    def _check_condition(
        self, locator: Locator, content: bytes | None, expect: Expectation, note: _Note
    ) -> None:
        text = note.texts.get(logical_text(locator.key).name)
        if note.real is UNREADABLE:
            if content is not None or expect is not None:
                assert note.row is not None  # noqa: S101 - it has a file
                self.inner.read(Locator(note.row.path))  # raises, with the reason
            return
        check_found(None if text is None else text.encode(), expect, locator)

    def _refuse_texts(self, rows: Iterable[NoteRow]) -> None:
        """Raise `ParentIsFileError` if one of these is a text, so that nothing can be below it."""
        for row in rows:
            if self.text_at(row.place) is not None:
                raise ParentIsFileError(
                    f"{row.place!a} is a text, so nothing can be below it. "
                    "Fix: choose a place outside of it."
                )

    def refuse(self, changes: Changes) -> None:
        self._prepare()
        keys = {locator: logical_text(locator.key) for locator in changes}
        above: dict[str, str] = {}
        for locator, text in changes.items():
            place = keys[locator].place
            above |= {} if text is None else {place[:at]: place for at in slashes(place)}
        rows = {
            row.place: row for row in self.table.among((*above, *(p for p, _ in keys.values())))
        }
        for locator, text in changes.items():
            place, name = keys[locator]
            row = rows.get(place)
            if row is not None and not self._is_memory(row.path):
                if self._note_of(row).texts.get(name) != text:
                    raise _not_ours(row)
            elif name in FILES or self.text_at(locator.key) is not None:
                continue  # no directory has the name of a node's file
            elif self._is_directory(locator.key):
                raise _directory_error(locator)
        self._refuse_texts(row for place, row in rows.items() if place in above)

    def _file_change(
        self, place: str, note: _Note, texts: notefile.Texts, paths: Collection[str]
    ) -> _FileChange | None:
        """Return what is done to a file; a new one gets none of the paths of the same commit."""
        if note.row is not None and not self._is_memory(note.row.path):
            if texts != note.texts:  # writing the same text is accepted
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
        after = NoteRow(place, path, digest_of(real), ARCHIVED in texts)
        return _FileChange(place, note.row, after, note.real, real)

    def _apply(self, changes: Sequence[_FileChange], write: Callable[..., None]) -> None:
        if not changes:
            return
        self.table.change(
            [each.after._replace(unsure=True) for each in changes if each.changes_row]
        )
        write(
            {trusted(each.after.path): each.real for each in changes},
            expect={trusted(each.after.path): each.condition for each in changes},
        )
        gone = [each for each in changes if each.real is None]
        self.table.change([each.after for each in changes if each.real is not None])
        for each in gone:  # its row goes last, so that `_settle` follows a writer that dies here
            self._remove_empty(Locator(each.after.path).parent)
        self.table.change([], [each.place for each in gone])

    def _new_path(self, place: str, texts: notefile.Texts, paths: Collection[str]) -> str:
        """Return the path of a new note: by its name, made distinct if another note has it."""
        kind, title, day = _described(place, texts)
        folder = self._folder.child(*self._names.folder(place, kind))
        stem = self._names.stem(place, title, day)
        distinct = distinct_name(stem, place)
        for name in (stem, distinct, distinct_name(distinct, folder.key)):
            file = folder.child(f"{name}{MARKDOWN}")
            path = file.key
            taken = self.table.at_path(path)
            if folded(path) in paths or (taken is not None and taken.place != place):
                continue
            if not self.inner.exists(file) or self._stated_place(path) == place:
                return path
        raise ConcurrentModificationError(
            f"other notes have every name that {place!a} could have in {folder.key!a}. "
            "Nothing was changed. Fix: rename one of them."
        )

    def rename(self, places: Iterable[str]) -> None:
        """Name the notes of nodes by their current texts, as after words were erased."""
        for place in places:
            row, real, texts = self._note(place)
            if row is None or not isinstance(real, str) or not self._is_memory(row.path):
                continue
            path = self._new_path(place, texts, ())
            if path != row.path:
                old, new = Locator(row.path), Locator(path)
                conditions: Conditions = {new: ABSENT, old: content_hash(real)}
                self.inner.write_all({new: real, old: None}, expect=conditions)
                self.table.change([row._replace(path=path)])

    # ------------------------------------------------------------ the table
    # ------------------------------------------------------------ places and paths
    def is_ours(self, place: str) -> bool:
        """Whether the file of a node is as Perdure wrote it, or absent or unreadable."""
        row, real, _ = self._note(place)
        return row is None or not isinstance(real, str) or row.digest == digest_of(real)

    def held(self, path: str, text: str) -> dict[Locator, str]:
        """Return the logical texts that a file would hold with this text."""
        row = self._row_for(path, text)
        texts = self._split(text, row) if row else {}
        return {Locator(key_of(LogicalText(row.place, n))): texts[n] for n in texts if row}

    def composed(self, path: str, texts: Mapping[Locator, str], before: str) -> str:
        """Return the file that holds these texts, as an edit of the text that it has."""
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
        place = self._stated_place(path, text) or self._place_of(path)
        return self.table.at_path(path) or (NoteRow(place, path) if place else None)

    # ------------------------------------------------------------ upkeep
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
            if each.place.startswith(COPIES):
                self.inner.remove(Locator(each.path))
                self.table.change([], [each.place])

    def unreadable(self, seconds: float) -> Iterator[tuple[str, str]]:
        """Yield files whose frontmatter can't be parsed, with the finding, within a time limit."""
        self._prepare()
        until = time.monotonic() + seconds
        for row in self.table.rows():
            if time.monotonic() > until:
                return
            with suppress(StorageError):
                if why := frontmatter(self.inner.read(Locator(row.path))).finding:
                    yield row.path, why


def _session(key: str) -> str:
    """Return the place that holds the texts beside the nodes of a session; "" for other keys."""
    match key.split("/"):
        case ["accounts", _, "sessions", _]:
            return f"{key}/{FIRST_NODE}"
    return ""


def _described(place: str, texts: notefile.Texts) -> tuple[str, str, str]:
    """Return the kind, title and day from which a new note gets its name."""
    try:
        meta = Meta.parse(texts.get(META, ""))
    except InvalidValueError:
        return "", "", ""
    kind, title, day = (str(meta.metadata.get(each) or "") for each in ("kind", "title", "date"))
    day = day if len(day) >= _DATE else meta.created_at.isoformat()
    content = texts.get(CONTENT, "")
    if _session(place.rpartition("/")[0]):
        from perdure.model.transcript import beginning  # noqa: PLC0415 - only sessions need it

        began, words = beginning(content)
        title, day = title or words, began or day
    if not title and (node := node_at(place)):
        _, body = split(content)
        title = title_of(body, texts.get(ABSTRACT) or derived_abstract(node, body), node)
    if title.endswith("…"):  # complete it from its line
        lines = (line.strip("-*# ") for line in content.splitlines())
        title = next((line for line in lines if line.startswith(title[:-1])), title)
    return kind, title, day[:_DATE]


def _not_ours(row: NoteRow) -> AccessRefusedError:
    return AccessRefusedError(
        f"{row.path!a} is a note of its owner's, which Perdure reads and does not change. Nothing "
        "was changed. Fix: edit it in its editor, or save a memory beside it with `perdure save`."
    )


def _directory_error(locator: Locator) -> PathIsDirectoryError:
    return PathIsDirectoryError(f"{locator.key!a} is a directory. Fix: name a text below it.")


def _absent(locator: Locator) -> AbsentError:
    return AbsentError(
        f"nothing is at {locator.key!a}. Fix: list the place above to see what is there."
    )
