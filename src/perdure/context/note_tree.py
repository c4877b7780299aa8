"""Which files of a backend are notes, and which of them holds which place, as a table has it.

A place is the key of a node's logical folder, or of another logical text.
"""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from perdure.context import notefile
from perdure.context.node_files import ARCHIVED, FILES, LEARNED, OWNER
from perdure.context.note_names import (
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
from perdure.context.note_table import NOT_READ, NoteRow, NoteTable
from perdure.errors import (
    AccessRefusedError,
    DamageError,
    LinkRefusedError,
    NotTextError,
    StorageError,
)
from perdure.model.uri import FIRST_NODE
from perdure.model.values import JSON, MAX_NOTE
from perdure.storage import Locator, StorageBackend
from perdure.storage.changes import is_evident_copy, marked_original, unmarked_original
from perdure.storage.contract import UNREADABLE, Finding, FindingKind, Text, refuse_loss
from perdure.storage.locator import trusted

if TYPE_CHECKING:
    import re

ABOUT: Final = "About this folder.md"
"""The note that has the id of the store."""
ROOT = Locator("")
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
"""Why notes are not memory: the words of `doctor`, the fix, and whether something is wrong."""
_COPY = FindingKind.CONFLICT_COPY
COPIES = ".copies/"
"""The prefix of the place of a file whose id another file has; no node is there."""
BESIDE = (OWNER, LEARNED)
"""The texts of a session beside its nodes."""
_NOT_READABLE = (NotTextError, LinkRefusedError, AccessRefusedError)

_split_in_place = lru_cache(maxsize=256)(notefile.split_in_place)  # a batch of the indexer


class Census(NamedTuple):
    notes: int
    """How many notes outside of the memory folder are resources."""
    others: dict[str, int]
    """How many files are not notes, by the ending of their names."""
    left_out: dict[str, list[str]]
    """The paths of notes that are not memory, by the reason."""


class NoteTree:
    """Notes below a memory folder are memories; all others are their owner's, used in place.

    If the memory folder is the root, all notes are memories.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - those of the layout
        self,
        inner: StorageBackend,
        table: NoteTable,
        names: NoteNames,
        folder: Locator,
        ignored: Iterable[str],
        ignores: Callable[[str], bool] | None,
    ) -> None:
        self.inner = inner
        self.table = table
        self._is_ready = False
        self._names = names
        self._owner = f"user:{names.user}" if names.user else ""
        self._folder = folder
        self._ignored = frozenset(ignored)
        self._ignores = ignores
        self._other_files: frozenset[str] | None = None

    # ------------------------------------------------------------ which files are notes
    def _note_paths(self, below: Locator = ROOT) -> Iterator[str]:
        return filter(self.is_note, self._paths(below))

    def _paths(self, below: Locator = ROOT) -> Iterator[str]:
        for directory, stamps in self.inner.scan(below, skip=self.skips):
            for name in stamps or ():
                yield directory.child(name).key

    def skips(self, directory: str) -> bool:
        """Whether a folder is hidden (with a dot), the one of templates, or ignored."""
        if directory in self._ignored or directory.rpartition("/")[2].startswith("."):
            return True
        if self._templates and folded(directory) == self._templates:
            return True
        return self._ignores is not None and self._is_ignored(f"{directory}/")

    def _is_ignored(self, path: str) -> bool:
        """Whether a pattern of the owner excludes a note or a folder; memories never are."""
        if self._ignores is None or self._is_memory(path):
            return False
        return not f"{self._folder.key}/".startswith(path) and self._ignores(path)

    @cached_property
    def _templates(self) -> str:
        match self._obsidian_config(_TEMPLATES):
            case {"folder": str(folder)}:
                return folded(folder.strip("/"))
        return ""

    @cached_property
    def _days(self) -> "re.Pattern[str] | None":
        match self._obsidian_config(_DAILY_NOTES):
            case {"format": str(form), **more} if form:
                return days_of(str(more.get("folder") or ""), form)
        return None

    def _obsidian_config(self, plugin: Locator) -> JSON:
        """Return the configuration of a core plugin of Obsidian; None if there is none."""
        with suppress(StorageError, ValueError, RecursionError):
            found: JSON = json.loads(self.inner.read(plugin))
            return found
        return None

    def _is_memory(self, path: str) -> bool:
        return not self._folder.key or path.startswith(f"{self._folder.key}/") or is_state(path)

    def is_note(self, path: str) -> bool:
        """Whether a file is a memory or a note in place, by its name."""
        name = path.rpartition("/")[2]
        if not (is_markdown(name) or is_state(path)) or name.startswith(".") or name == ABOUT:
            return False
        system = f"{self._folder.child(SYSTEM).key}/"
        is_copy = marked_original(name) is not None and not path.startswith(system)
        return not is_copy and not self._is_ignored(path)

    def _is_too_long(self, path: str, real: str) -> bool:
        return len(real) > MAX_NOTE and not self._is_memory(path)

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

    def has_file(self, name: str) -> bool:
        """Whether a file that is not a note has a name, with or without its folders."""
        if self._other_files is None:
            paths = [f"/{folded(path)}" for path in self._paths() if not self.is_note(path)]
            self._other_files = frozenset(path[at:] for path in paths for at in slashes(path))
        return f"/{folded(name.strip('/'))}" in self._other_files

    # ------------------------------------------------------------ conflict copies
    def _is_copy(self, path: str, real: str) -> bool:
        """Whether a file is a conflict copy of the one beside it, though its name has no mark."""
        original = unmarked_original(path.rpartition("/")[2])
        if original is None:
            return False
        try:
            beside = self.inner.read(Locator(path).parent.child(original))
        except StorageError:  # it is absent, or not a text
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

    # ------------------------------------------------------------ what a file holds
    def _split(self, real: str, row: NoteRow) -> notefile.Texts:
        if is_state(row.path):
            return {"": real}
        if self._is_memory(row.path):
            return notefile.split(real, row.place, self._owner)
        stem = row.path.rpartition("/")[2][: -len(MARKDOWN)]
        return _split_in_place(real, row.place, stem, day_in(row.path, self._days))

    def _stated_place(self, path: str, real: str | None = None) -> str | None:
        """Return the place of a file by its id; without one, by its path."""
        return self._place_of(path, self._id_in(path, real))

    def _id_in(self, path: str, real: str | None = None) -> str | None:
        if real is None:
            with suppress(StorageError):
                real = self.inner.read(Locator(path))
        found = notefile.NoteFile.parse(real).value(notefile.ID) if real is not None else None
        return found if isinstance(found, str) else None

    def _place_of(self, path: str, id_: str | None = None) -> str | None:
        if is_state(path):
            return path
        if not self._is_memory(path):
            return in_place(self._names.account, path)
        below = path.removeprefix(f"{self._folder.key}/") if self._folder.key else path
        return self._names.place(below, id_)

    def _aliases(self, path: str, real: str | None) -> str:
        if real is None or self._is_memory(path):
            return ""
        found = notefile.NoteFile.parse(real).value("aliases")
        listed = found if isinstance(found, list) else [found]
        return "\n".join(each.strip() for each in listed if isinstance(each, str))

    def _rank(self, row: NoteRow) -> tuple[bool, int, bool, int, str]:
        """Return a sort key for files with one id, or the name of one; it is machine-independent.

        The newest version comes first.
        """
        with suppress(StorageError):
            file = notefile.NoteFile.parse(self.inner.read(Locator(row.path)))
            has_id = isinstance(file.value(notefile.ID), str)
            version = file.value("version") if has_id else None
            age = -version if isinstance(version, int) else 0
            is_elsewhere = self._place_of(row.path) != row.place
            return not has_id, age, is_elsewhere, len(row.path), row.path
        return True, 0, True, len(row.path), row.path

    # ------------------------------------------------------------ which files are there
    def _is_there(self, path: str) -> bool:
        try:
            return self.inner.exists(Locator(path))
        except AccessRefusedError:  # that it is absent can't be known
            return True

    def _are_one(self, path: str, other: str) -> bool:
        """Whether two paths name one file: a disk that ignores case lists it once."""
        if path == other:
            return True
        same = folded(path) == folded(other)
        return same and not (self._is_listed(path) and self._is_listed(other))

    def _is_listed(self, path: str) -> bool:
        locator = Locator(path)
        while locator.key and locator in self.inner.list(locator.parent):
            locator = locator.parent
        return not locator.key

    # ------------------------------------------------------------ the table
    def _prepare(self) -> None:
        """Read every file once, if no process did since the table was created."""
        if not self._is_ready:
            try:
                if not self.table.is_complete:
                    self.rebuild()
            except (StorageError, DamageError):  # where it can't be written, it is in memory
                self.table.close()
                self.table = NoteTable()
                self.rebuild()
            self._is_ready = True

    def rebuild(self) -> None:
        """Build the table again from the files."""
        known = {row.path: row for row in self.table.rows()}
        rows: dict[str, NoteRow] = {}
        second: list[str] = []
        for path in self._note_paths():
            row = self._row_of(path, known.get(path), lambda _place: False)
            if row is not None:
                if (taken := rows.get(row.place)) is not None:
                    row, other = sorted((taken, row), key=self._rank)
                    second.append(other.path)
                rows[row.place] = row
        for path in sorted(second):
            row = self._row_of(path, known.get(path), rows.__contains__)
            if row is not None:
                rows[row.place] = row
        self.table.clear()
        self.table.change(rows.values(), complete=True)

    def _row_of(
        self, path: str, known: NoteRow | None, is_taken: Callable[[str], bool]
    ) -> NoteRow | None:
        """Return the row of a file, with a place that no other file has taken."""
        try:
            real: str | None = self.inner.read(Locator(path))
        except IsADirectoryError:  # it replaced a note
            return None
        except _NOT_READABLE:
            real = None
        id_ = self._id_in(path, real)
        places = [self._place_of(path, id_), self._place_of(path)]
        places += [self._place_of(distinct_name(path[: -len(MARKDOWN)], path) + MARKDOWN)]
        if known is not None and (real is None or places[0] is None):
            places.insert(0, known.place)
        place = next((each for each in places if each is not None and not is_taken(each)), None)
        if id_ and place != places[0] and self._is_memory(path):
            copy = f"{COPIES}{sha256(path.encode()).hexdigest()[:16]}"
            return NoteRow(copy, path, claim=places[0] or "")
        if place is None or (real is not None and self._is_copy(path, real)):
            return None
        claim = "" if place == places[0] else places[0] or ""
        row = NoteRow(place, path, claim=claim, aliases=self._aliases(path, real))
        if real is None or self._is_too_long(path, real):
            return row._replace(digest=NOT_READ)
        if not self._is_memory(path):
            return row
        return row._replace(archived=ARCHIVED in self._split(real, row))

    def _is_taken(self, path: str, place: str) -> bool:
        """Whether another existing file has a place, and ranks before this one."""
        row = self.table.at(place)
        if row is None or self._are_one(row.path, path) or not self._is_there(row.path):
            return False
        if not row.claim and self._stated_place(row.path) != place:
            return False  # it has another place now
        return self._rank(row) < self._rank(NoteRow(place, path))

    def _file_of(self, row: NoteRow) -> tuple[NoteRow, Text]:
        """Return the text of the file of a row, wherever it is now, with its current row."""
        if row.place.startswith(COPIES):
            return row, None
        try:
            real = self.inner.read(trusted(row.path))
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            moved = self._moved(row)
            return (row, None) if moved is None else self._file_of(moved)
        except _NOT_READABLE:
            return row, UNREADABLE
        if len(real) > MAX_NOTE and not self._is_memory(row.path):
            return row, UNREADABLE
        if row.digest != sha256(real.encode()).digest() and self._is_memory(row.path):
            place = self._stated_place(row.path, real)
            if place not in {None, row.place, row.claim}:  # another file has its name
                moved = self._moved(row)
                return (row, None) if moved is None else self._file_of(moved)
        return row, real

    def _moved(self, row: NoteRow) -> NoteRow | None:
        """Return the row of a memory whose file was renamed or moved since the last check.

        Each file that is not in the table is read once. The next check finds these files by itself,
        and their texts then enter history.
        """
        if not self._is_memory(row.path) or is_state(row.path):
            return None  # a note in place is identified by its path
        known = {each.path for each in self.table.rows()}
        found: dict[str, NoteRow] = {}
        for path in self._note_paths(self._folder):
            if path not in known:
                with suppress(FileNotFoundError):  # gone since it was listed
                    new = self._row_of(path, None, partial(self._is_taken, path))
                    if new is not None and new.place not in found:
                        found[new.place] = new
        self.table.change(found.values())
        return found.get(row.place)

    def _settle(self, key: str) -> None:
        """Correct the rows at a key and below that a writer may have left behind its files."""
        self._prepare()
        for row in self.table.unsure(key):
            if self.inner.exists(Locator(row.path)):
                found = self._row_of(row.path, row, lambda _place: False)
                self.table.change([] if found is None else [found], [row.place])
            else:
                self.table.change([], [row.place])
                self._remove_empty(Locator(row.path).parent)  # as the writer would have

    def _remove_empty(self, directory: Locator) -> None:
        """Remove the folders that a note left empty, up to the memory folder."""
        with suppress(StorageError, OSError):
            while directory.key and directory != self._folder and not self.inner.list(directory):
                with suppress(FileNotFoundError):  # a writer that died removed it
                    self.inner.remove(directory)
                directory = directory.parent

    # ------------------------------------------------------------ changes by others
    def logical(self, paths: Iterable[str]) -> Sequence[Locator]:
        """Update the table from files that others changed; return the texts that may differ."""
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
                found = self._row_of(path, known, partial(self._is_taken, path))
            elif known is not None and known.path != path:
                continue  # a rename that changed only the case of letters
            if known is not None and (found is None or found.place != known.place):
                self.table.change([], [known.place])
                changed.update(dict.fromkeys(_keys(known.place)))
                pending.extend(row.path for row in self.table.claiming(known.place))
            if found is not None and found != known:
                before = self.table.at(found.place)
                self.table.change([found])
                if before is not None and not self._are_one(before.path, path):
                    pending.append(before.path)  # it has the same id, and may rank second
                    pending.extend(row.path for row in self.table.claiming(found.place))
            if found is not None:
                changed.update(dict.fromkeys(_keys(found.place)))
        return [Locator(key) for key in changed]

    def refresh(self, *, accept_removals: bool = False) -> Sequence[Locator]:
        self._prepare()
        files, known = set(self._note_paths()), {row.path for row in self.table.rows()}
        if not accept_removals:
            gone = sorted(path for path in known - files if not self._is_there(path))
            lost = gone[len(files - known) :]  # a new file may be one that was moved
            refuse_loss(self.inner, lost, known=len(known), met=len(files))
        return self.logical(files | known)

    def expected(self, paths: Sequence[str]) -> dict[str, bytes | None]:
        found = {path: self._row_at(path) for path in paths}
        return {path: row.digest for path, row in found.items() if row and row.is_ours}

    def known(self) -> Iterable[tuple[str, bytes]]:
        self._prepare()
        return [(row.path, row.digest) for row in self.table.rows() if row.is_ours]

    def _row_at(self, path: str) -> NoteRow | None:
        """Return the row of a file, even if the case of its name changed."""
        row = self.table.at_path(path)
        return row if row is None or self._are_one(row.path, path) else None

    # ------------------------------------------------------------ places and paths
    def named(self, name: str) -> Sequence[str]:
        """Return the folders of all nodes whose file has a name or an alias."""
        self._prepare()
        return self.table.named(name)

    def names_of(self, place: str) -> Sequence[str]:
        """Return the names by which `named` finds the folder of a node."""
        row = self.table.at(place)
        return sorted(row.names) if row else ()

    def own_note(self, place: str) -> str:
        """Return the path of a node that is its owner's note; empty for any other node."""
        self._prepare()
        row = self.table.at(place)
        return row.path if row and not self._is_memory(row.path) else ""

    def in_place(self) -> frozenset[str]:
        """Return the folders of nodes that are notes of their owner, and never written."""
        self._prepare()
        rows = self.table.rows()
        return frozenset(row.place for row in rows if not self._is_memory(row.path))

    def path_of(self, key: str) -> str:
        """Return the path of the file that holds a text, or a node; empty if there is none."""
        self._prepare()
        row = self.table.at(key) or self.table.at(logical_text(key).place)
        return row.path if row else ""

    def place_at(self, path: str) -> str:
        """Return the folder of the node that a file holds; empty if it holds none."""
        self._prepare()
        row = self.table.at_path(path)
        return row.place if row else ""

    def new_name(self, key: str, title: str) -> str:
        """Return the name that the file of a new node would have, without its ending."""
        return self._names.stem(key, title, "")

    def files_of(self, places: Sequence[str]) -> dict[str, tuple[str, Text]]:
        if not self._is_ready:
            self._prepare()
        found = {row.place: self._file_of(row) for row in self.table.among(places)}
        return {place: (row.path, real) for place, (row, real) in found.items()}

    def texts_in(self, place: str, path: str, real: str) -> Mapping[str, str]:
        return self._split(real, NoteRow(place, path))

    # ------------------------------------------------------------ findings
    def _findings(self) -> Iterator[Finding]:
        self._prepare()
        reported = set[Locator]()
        for directory, stamps in self.inner.scan(ROOT, skip=self.skips):
            if stamps is not None:
                found = self.inner.findings(directory)
                reported.update(directory.child(each.name) for each in found if each.kind is _COPY)
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
            if holder is not None and copy not in reported:
                yield Finding(_COPY, copy.parent, copy.name, advice, Locator(holder.path))

    def census(self) -> Census:
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
            elif row.place.startswith(COPIES):
                left_out.setdefault(COPY, []).append(row.path)
        others.update({why: len(paths) for why, paths in left_out.items()})
        return Census(len(notes), dict(others.most_common()), left_out)


def _keys(place: str) -> Sequence[str]:
    """Return the keys of every text that a place can have."""
    node = node_at(place)
    if node is None:
        return [place]
    beside = BESIDE if node.session and node.name == FIRST_NODE else ()
    return [key_of(LogicalText(place, name)) for name in (*FILES, ARCHIVED, *beside)]


def slashes(path: str) -> Iterator[int]:
    return (at for at, character in enumerate(path) if character == "/")


def digest_of(real: str) -> bytes:
    return sha256(real.encode()).digest()
