"""Commits of texts: a version enters history before its file is written.

The log is the write-ahead log. A commit in the log is done. Its files are written after it, and the
next holder of the lock writes those that are missing before it does anything else. Versions of a
key are therefore in the order in which its file had them, and each condition is decided once.

If a commit fails with an error, another commit restores the texts that it replaced.

Editors and sync clients write files without the lock. A text that is not in history enters it
before it is overwritten. A file that is neither the current version nor an earlier one is an edit
by its owner and becomes a version. docs/explanation/write-ahead-log.md describes the protocol.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from perdure.artifacts import CID, ArtifactStore, IndexState, NewBinding
from perdure.artifacts.artifact import Value
from perdure.dataclass import replace
from perdure.errors import (
    ConcurrentModificationError,
    LinkRefusedError,
    LockLostError,
    NotTextError,
    PerdureError,
)
from perdure.storage.changes import Changes, Conditions, Expectation, below_text, check_found
from perdure.storage.contract import UNREADABLE, Layout, StorageBackend, Text
from perdure.storage.locator import Locator
from perdure.storage.redo import (
    DURING,
    EXTERNAL_EDIT,
    StaleFile,
    encoded,
    expectation_of,
    find_stale,
    is_written,
    keys_among,
    last_replacements,
    matches_cid,
    read_text,
    read_texts,
    remove_empty_directories,
    stored_text,
)
from perdure.storage.text_history import EXTERNAL, MOVED_FROM, UNDONE, Circumstances, History

_OBSTACLES = (IsADirectoryError, NotADirectoryError, LinkRefusedError)
_UNDO = Circumstances(origin=UNDONE, reason="its file was not written")
_ATTEMPTS = 3
_MOST_CACHED = 5_000
_MOST_UNSYNCED = 1_000
"""Sync the files when the log has more entries than this after the mark."""


class TextWrite(NamedTuple):
    content: str | None
    expect: Expectation = None


class Discrepancy(NamedTuple):
    """A file that was not what history had; history now has what the file holds."""

    locator: Locator
    before: CID | None
    after: bytes | None


class _PendingWrite(NamedTuple):
    """A write, and what was at its place when it was prepared."""

    locator: Locator
    write: TextWrite
    found: Text
    bound: CID | None

    @property
    def condition(self) -> Expectation:
        """What must still be there when the file is written."""
        return expectation_of(self.found) or self.write.expect

    def bindings(
        self, circumstances: Circumstances, external: Circumstances
    ) -> Iterator[NewBinding]:
        """Yield the versions to record: first an edit by others, then this write."""
        key, content = self.locator.key, self.write.content
        if self.found is UNREADABLE:
            if matches_cid(self.bound, content):
                return
        elif not matches_cid(self.bound, self.found):
            mapping = external.derived(self.bound).to_mapping()
            yield NewBinding(key, encoded(self.found), mapping)
        if content != self.found:
            yield NewBinding(key, encoded(content), circumstances.of(key).to_mapping())


class _PlaceReader:
    """Reads the places of one commit. Each directory above them is checked once."""

    def __init__(self, inner: StorageBackend, known: Mapping[Locator, Text]) -> None:
        self._inner = inner
        self._known = known
        """Texts that a layout has read together; it checks what is above them itself."""
        self._exists: dict[Locator, bool] = {}

    def read(self, locator: Locator, content: str | None, expect: Expectation) -> Text:
        """Return what is there, if it is as expected and `content` can be written there."""
        text = self._known.get(locator, UNREADABLE)
        if text is UNREADABLE:
            text = self._text(locator, content)
        if text is not UNREADABLE:
            check_found(encoded(text), expect, locator)
        elif expect is not None:
            raise ConcurrentModificationError(
                f"{locator.key!a} is not a text any more, so it is not what this write expected. "
                "Nothing was changed. Fix: look at the file; to replace it, write without a "
                "condition."
            )
        return text

    def _text(self, locator: Locator, content: str | None) -> Text:
        if not self._exists.get(locator.parent, True):
            return None
        try:
            return self._inner.read(locator)
        except FileNotFoundError:
            if content is not None:
                self._refuse_text_above(locator.parent)
            return None
        except NotTextError:
            return UNREADABLE

    def _refuse_text_above(self, above: Locator) -> None:
        while above.key and above not in self._exists:
            self._exists[above] = self._is_directory(above)
            if self._exists[above]:  # no text is above a directory
                return
            above = above.parent

    def _is_directory(self, directory: Locator) -> bool:
        try:
            if self._inner.info(directory).is_dir:
                return True
        except FileNotFoundError:
            return False
        raise below_text(directory)


class _BoundContents:
    """What keys are bound to, with our own commits since, so that no writer waits for a query."""

    def __init__(self, store: ArtifactStore, position: int) -> None:
        self._store = store
        self._start = position
        self._since: dict[str, CID | None] = {}
        self.position = position

    @property
    def is_full(self) -> bool:
        return len(self._since) > _MOST_CACHED

    def add(self, bindings: Sequence[NewBinding], state: IndexState) -> None:
        for binding in bindings:
            content = binding.content
            cid = None if content is None else CID.of(content, self._store.hash)
            self._since[binding.name] = cid
        self.position = state.position

    def get(self, names: Sequence[str]) -> dict[str, CID | None]:
        known = {name: self._since[name] for name in names if name in self._since}
        others = [name for name in names if name not in known]
        return known | self._store.catalogue.contents(others, self._start)


class Committer:
    """Commits texts of `inner` to `history`, then writes their files."""

    def __init__(self, inner: StorageBackend, history: History) -> None:
        self.inner = inner
        self.history = history
        self._synced = 0
        """A position that the mark has passed."""
        self._bound: _BoundContents | None = None
        """None, or as of a position up to which all is settled; used only under the lock."""

    # ------------------------------------------------------------ writing
    def commit(
        self, writes: Mapping[Locator, TextWrite], circumstances: Circumstances
    ) -> IndexState:
        """Record all writes in one commit, then write the files: all of them, or none."""
        with self.exclusive():
            return self._commit_or_abort(writes, circumstances)

    def remove(self, locator: Locator, expect: Expectation, circumstances: Circumstances) -> None:
        """Remove a text, or an empty directory, which history does not record."""
        with self.exclusive():
            try:
                is_dir = self.inner.info(locator).is_dir
            except FileNotFoundError:
                check_found(None, expect, locator)
                raise
            if is_dir:
                self.inner.remove(locator, expect=expect)
            else:
                self._commit_or_abort({locator: TextWrite(None, expect)}, circumstances)

    def _commit_or_abort(
        self, writes: Mapping[Locator, TextWrite], circumstances: Circumstances
    ) -> IndexState:
        try:
            state = self._commit(writes, circumstances)
        except BaseException:
            self._bound = None
            with suppress(PerdureError, OSError):  # then the next holder of the lock goes on
                self._abort()
            raise
        self._set_applied(state.position)
        return state

    def _commit(
        self, writes: Mapping[Locator, TextWrite], circumstances: Circumstances
    ) -> IndexState:
        state = self.history.store.current()
        if state.position == 0 and self.history.lock.mark() is None:
            self.history.lock.settle_durably(0)  # a lost mark must not look like a new store
        during = Circumstances(origin=EXTERNAL, more={DURING: state.position})
        pending = self._prepare(writes)
        for attempt in range(_ATTEMPTS):
            is_last = attempt == _ATTEMPTS - 1
            external = during if attempt else EXTERNAL_EDIT
            bindings = [new for each in pending for new in each.bindings(circumstances, external)]
            if bindings:
                state = self.history.record(bindings)
                self._now().add(bindings, state)
            try:
                self._write(pending, guarded=not is_last)
                break
            except (ConcurrentModificationError, LockLostError):
                if is_last:
                    raise
                pending = self._prepare(self._unwritten(pending))
        return state

    def _prepare(self, writes: Mapping[Locator, TextWrite]) -> list[_PendingWrite]:
        bound = self._now().get([locator.key for locator in writes])
        layout = self.inner if isinstance(self.inner, Layout) else None
        places = _PlaceReader(self.inner, layout.look(list(writes)) if layout else {})
        pending = [
            _PendingWrite(locator, write, places.read(locator, *write), bound[locator.key])
            for locator, write in writes.items()
        ]
        if layout:
            layout.refuse({locator: write.content for locator, write in writes.items()})
        return pending

    def _unwritten(self, pending: Sequence[_PendingWrite]) -> dict[Locator, TextWrite]:
        return {
            each.locator: each.write
            for each in pending
            if read_text(self.inner, each.locator) != each.write.content
        }

    def _write(self, pending: Sequence[_PendingWrite], *, guarded: bool) -> None:
        """Write the files, unless an editor or sync client changed one since it was read."""
        changed = [p for p in pending if p.write.content is not None or p.found is not None]
        self._write_files(
            {each.locator: each.write.content for each in changed},
            expect={
                each.locator: each.condition if guarded else each.write.expect for each in changed
            },
        )

    def _write_files(self, changes: Changes, expect: Conditions) -> None:
        if self.inner.defers_sync:
            self.inner.write_unsynced(changes, expect=expect)
        else:
            self.inner.write_all(changes, expect=expect)

    def _abort(self) -> None:
        """Restore what the failed commit replaced: in the log first, then in the files."""
        start = self._start()
        if start is None:
            return
        replacements = last_replacements(self.history, start)
        if is_written(self.inner, replacements):
            self._set_applied(self.history.position())
            return
        bindings = []
        for locator, before, after in replacements:
            former = None if before is None else self.history.store.get(before)
            if before != after and (former is not None or before is None):
                bindings.append(NewBinding(locator.key, former, _UNDO.to_mapping()))
        if bindings:
            self.history.record(bindings[::-1])
        self._redo(start)

    # ------------------------------------------------------------ positions
    def _set_applied(self, position: int) -> None:
        """Set the positions after the files up to here were written."""
        lock = self.history.lock
        if not self.inner.defers_sync:
            lock.settle(position)
            return
        lock.apply(position)
        if position - self._synced > _MOST_UNSYNCED:
            self._synced = lock.settled()
            if position - self._synced > _MOST_UNSYNCED:
                self.sync()

    def _start(self) -> int | None:
        """Return the position after which files may be missing; None if it is not known."""
        applied, newest = self.history.lock.applied(), self.history.position()
        # A position beyond the log belongs to a log that was lost and replaced.
        return applied if applied is not None and applied <= newest else None

    def sync(self) -> None:
        """Make the files of all commits durable, and move the mark. Needs the lock."""
        position = self.history.position()
        names = self.history.store.catalogue.named_since(self.history.lock.settled())
        locators = list(keys_among(names))
        try:
            self.inner.sync(locators)
        except (PerdureError, OSError):  # what reached the disk is not known: write them again
            bound = self._now().get([locator.key for locator in locators])
            texts = {each: stored_text(self.history, bound[each.key]) for each in locators}
            self.inner.write_all(
                {
                    each: text
                    for each, text in texts.items()
                    if matches_cid(bound[each.key], read_text(self.inner, each))
                }
            )
        self.history.lock.settle_durably(position)

    def _now(self) -> _BoundContents:
        if self._bound is None or self._bound.is_full:
            self._bound = _BoundContents(self.history.store, self.history.position())
        return self._bound

    # ------------------------------------------------------------ settling
    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock, with everything settled that an earlier writer left unfinished."""
        with self.history.lock.hold():
            newest = self.history.store.settle().position
            if self._bound is None or self._bound.position != newest:
                self._bound = None
                self._settle_unfinished()
            yield

    def settle(self, *, unacknowledged: bool = False) -> None:
        """Write the files that a writer which died left unwritten."""
        if not unacknowledged:
            if self.history.lock.applied() == self.history.store.current().position:
                return  # nothing was logged since
            start = self._start() or 0  # which follows the log
            if start >= self.history.store.catalogue.last_named():
                return
        with self.exclusive():
            pass

    def _settle_unfinished(self) -> None:
        start = self._start()
        if start is not None and self.history.store.catalogue.last_named() <= start:
            return
        if start is None or self.history.lock.is_imported():
            # Which files were written is not known, or others write them: the files are right.
            names = self.history.store.catalogue.named_since(start or 0)
            self._record_files(keys_among(names))
            self.history.lock.settle_durably(self.history.position())
            return
        self._redo(start)

    def _redo(self, start: int) -> None:
        """Write the files of all versions after a position, the newest of each key.

        Edits that others made meanwhile stay, and become versions.
        """
        for attempt in range(_ATTEMPTS):
            names = self.history.store.catalogue.named_since(start)
            every = (find_stale(self.inner, self.history, n, start) for n in keys_among(names))
            stale = [each for each in every if each is not None]
            bindings = [binding for each in stale for binding in each.bindings()]
            if bindings:
                self.history.record(bindings)
            try:
                self._write_again([each for each in stale if each.is_rewritten])
                break
            except (ConcurrentModificationError, LockLostError):
                if attempt == _ATTEMPTS - 1:
                    raise
        self._set_applied(self.history.position())

    def _write_again(self, stale: Sequence[StaleFile]) -> None:
        """Write these files, removals first; record a removal where an obstacle prevents it."""
        removals = [each for each in stale if each.text is None]
        writes = [each for each in stale if each.text is not None]
        obstructed: list[StaleFile] = []
        for some in (removals, writes):
            try:
                self._write_stale(some)
            except _OBSTACLES:
                for each in some:
                    try:
                        self._write_stale([each])
                    except _OBSTACLES:
                        obstructed.append(each)
        for each in removals:
            if each.bound.circumstances.get("origin") == UNDONE:
                remove_empty_directories(self.inner, each.locator.parent)
        if obstructed:
            mapping = EXTERNAL_EDIT.to_mapping()
            self.history.record([NewBinding(e.locator.key, None, mapping) for e in obstructed])

    def _write_stale(self, stale: Sequence[StaleFile]) -> None:
        """Write them durably: a torn file that is younger than its commit looks like an edit."""
        self.inner.write_all(
            {each.locator: each.text for each in stale},
            expect={each.locator: expectation_of(each.found) for each in stale},
        )

    # ------------------------------------------------------------ recording edits
    def notice(
        self, locators: Iterable[Locator], circumstances: Circumstances = EXTERNAL_EDIT
    ) -> list[Discrepancy]:
        """Record what others wrote at these places, and return it."""
        with self.exclusive():
            found = self._record_files(locators, circumstances)
            self._set_applied(self.history.position())
            return found

    def record_unwritten(self, texts: Mapping[Locator, str], more: Mapping[str, Value]) -> None:
        """Record texts that no file has, each followed by the current one, in one commit."""
        mapping = replace(EXTERNAL_EDIT, more=more).to_mapping()
        with self.exclusive():
            bindings: list[NewBinding] = []
            bound = self._bound_at(list(texts))
            for locator, text in texts.items():
                cid = bound[locator]
                if not matches_cid(cid, text):
                    current = None if cid is None else self.history.store.get(cid)
                    bindings.append(NewBinding(locator.key, text.encode(), mapping))
                    bindings.append(NewBinding(locator.key, current, mapping))
            if bindings:
                self.history.record(bindings)
                self._set_applied(self.history.position())

    def _record_files(
        self, locators: Iterable[Locator], circumstances: Circumstances = EXTERNAL_EDIT
    ) -> list[Discrepancy]:
        """Record what the files hold; those that can't be read are skipped."""
        places = list(dict.fromkeys(locators))
        bound = self._bound_at(places)
        found = [
            Discrepancy(locator, bound[locator], encoded(text))
            for locator, text in read_texts(self.inner, places).items()
            if text is not UNREADABLE and not matches_cid(bound[locator], text)
        ]
        found.sort(key=lambda each: each.after is not None)
        sources = _sources_of_moves(found)
        bindings = []
        for locator, before, after in found:
            each = circumstances.derived(before)
            if locator in sources:
                each = replace(each, more={**each.more, MOVED_FROM: sources[locator].key})
            bindings.append(NewBinding(locator.key, after, each.to_mapping()))
        if bindings:
            self.history.record(bindings)
        return found

    # ------------------------------------------------------------ reading
    def committed(self, locator: Locator) -> str | None:
        """Return the text as of the last commit that finished; takes no lock."""
        catalogue = self.history.store.catalogue
        while True:
            start, named = self._start(), catalogue.last_named()
            if start is not None and named > start:
                unfinished = last_replacements(self.history, start)
                before = {each.locator: each.before for each in unfinished}
                if locator in before and not is_written(self.inner, unfinished):
                    return stored_text(self.history, before[locator])
            text = self._read(locator)
            newest = self.history.position()
            if catalogue.last_named() == named:
                return text
            bound = catalogue.last_binding(locator.key, newest)
            if bound is None or bound.position <= named:
                return text  # it was not committed meanwhile

    def _read(self, locator: Locator) -> str | None:
        try:
            return self.inner.read(locator)
        except (FileNotFoundError, IsADirectoryError):
            return None

    def compare(self, locators: Sequence[Locator]) -> Iterator[tuple[Text, Locator, CID | None]]:
        """Yield the text at each of these places, and what history has there."""
        bound = self._bound_at(locators)
        for locator, text in read_texts(self.inner, locators).items():
            yield text, locator, bound[locator]

    def known_keys(self) -> Iterator[Locator]:
        return keys_among(self.history.store.catalogue.names("", self.history.position()))

    def _bound_at(self, locators: Sequence[Locator]) -> dict[Locator, CID | None]:
        keys = [locator.key for locator in locators]
        contents = self.history.store.catalogue.contents(keys, self.history.position())
        return {locator: contents[locator.key] for locator in locators}


def _sources_of_moves(found: Iterable[Discrepancy]) -> dict[Locator, Locator]:
    """Return where new texts were before: at the only removed place with the same name and bytes.

    For a note that was moved and edited, it is the only removed place with its name and slug.
    """
    new = [each for each in found if each.before is None and each.after is not None]
    removed = [each for each in found if each.before is not None and each.after is None]
    if not (new and removed):
        return {}
    places: dict[tuple[object, ...], list[Locator]] = {}
    for locator, cid, _ in removed:
        for trait in ((locator.name, cid), (locator.name, locator.parent.name)):
            places.setdefault(trait, []).append(locator)
    sources: dict[Locator, Locator] = {}
    for locator, _, after in new:
        same = places.get((locator.name, CID.of(after or b"")))
        same = same or places.get((locator.name, locator.parent.name), [])
        if len(same) == 1:
            sources[locator] = same[0]
    return sources
