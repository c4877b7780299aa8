"""Texts and their history: a version enters history before its file is written.

The log is the write-ahead log. A commit that is in the log is done; its files are written after it,
and whoever takes the lock next writes those that are missing before doing anything else. So the
versions of a key are in the order in which its file had them, and a condition is decided once.

An error that the caller sees is answered in the log: another commit gives back what was there.

Editors and sync clients write files without the lock. What is about to be overwritten and is not in
history enters it first. A file that is neither as history has it, nor as it was before, is its
owner's edit and becomes a version. The protocol is in docs/explanation/write-ahead-log.md.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Final, NamedTuple

from perdure.artifacts import CID, ArtifactStore, Change, IndexState
from perdure.artifacts.canonical import Value
from perdure.artifacts.state import Binding
from perdure.dataclass import replace
from perdure.errors import (
    ConcurrentModificationError,
    InvalidLocatorError,
    LinkRefusedError,
    LockLostError,
    NotTextError,
    ParentIsFileError,
    PerdureError,
)
from perdure.storage.content import Changes, Conditions, Expectation, check_found
from perdure.storage.contract import UNREADABLE, Layout, StorageBackend, Text
from perdure.storage.history import (
    EXTERNAL,
    MOVED_FROM,
    UNDONE,
    Circumstances,
    Event,
    History,
    decoded,
)
from perdure.storage.locator import Locator
from perdure.storage.undo import (
    Replaced,
    guard_of,
    has_landed,
    is_of,
    is_torn,
    look,
    look_all,
    remove_empty,
)

_OBSTACLES = (IsADirectoryError, NotADirectoryError, LinkRefusedError)
Contents = dict[str, CID | None]
"""Of keys; None where there is no text."""

DURING: Final = "during"
"""Says of an external version that it came while a commit was written: the position before it."""
_EXTERNAL = Circumstances(origin=EXTERNAL)
_UNDONE = Circumstances(origin=UNDONE, reason="its file was not written")
_ATTEMPTS = 3
_MOST_AHEAD = 5_000
_MOST_UNSYNCED = 1_000
"""Entries of the log after the mark; when there are more, their files are synced."""
_SLACK_MS = 2_000
"""A file this much younger than its commit was not written by it."""


def last_replaced(history: History, settled: int) -> list[Replaced]:
    """Return what the last commit after a position replaced; only that one can be unfinished."""
    if history.fence.is_taken_in():
        return []
    events = [event for event in history.changes(settled) if _is_key(event.key)]
    if not events:
        return []
    begin = _beginning([event for event in events if event.commit == events[-1].commit])
    before: Contents = {}
    after: Contents = {}
    for event in events:
        if event.position > begin:
            if event.origin != EXTERNAL:
                after[event.key] = event.cid
            if event.origin in (EXTERNAL, UNDONE):  # undone: it says what was before
                before[event.key] = event.cid
    earlier = history.store.catalogue.contents(list(after), begin) | before
    return [Replaced(Locator(key), earlier[key], cid) for key, cid in after.items()]


def _beginning(last: Sequence[Event]) -> int:
    """Return the position before a commit, given its last events: it may have been tried before."""
    said = [event.circumstances.more.get(DURING) for event in last if event.origin == EXTERNAL]
    return min([last[0].position - 1, *(one for one in said if isinstance(one, int))])


def keys_among(names: Iterable[str]) -> Iterator[Locator]:
    """Yield the names that are keys of ours; whatever else was bound has no file here."""
    return map(Locator, filter(_is_key, names))


def _is_key(name: str) -> bool:
    try:
        return Locator(name).key == name and bool(name)
    except InvalidLocatorError:
        return False


class Places:
    """The places of one commit. Each directory above them is looked at once."""

    def __init__(self, inner: StorageBackend, known: Mapping[Locator, Text]) -> None:
        self._inner = inner
        self._known = known
        """Texts that were looked at together, by a layout that looks at what is above them, too."""
        self._directories: dict[Locator, bool] = {}
        """Whether they are there."""

    def found(self, locator: Locator, wanted: str | None, expect: Expectation) -> Text:
        """Return what is there, if it is as expected and the wanted text can be there."""
        text = self._known.get(locator, UNREADABLE)
        if text is UNREADABLE:
            text = self._text(locator, wanted)
        if text is not UNREADABLE:
            check_found(None if text is None else text.encode(), expect, locator)
        elif expect is not None:
            raise ConcurrentModificationError(
                f"{locator.key!a} is no text any more, so it is not what this write expected. "
                "Nothing was changed. Fix: look at the file; to replace it, write without a "
                "condition."
            )
        return text

    def _text(self, locator: Locator, wanted: str | None) -> Text:
        if not self._directories.get(locator.parent, True):
            return None
        try:
            return self._inner.read(locator)
        except FileNotFoundError:
            if wanted is not None:
                self._refuse_text_above(locator.parent)
            return None
        except NotTextError:
            return UNREADABLE

    def _refuse_text_above(self, above: Locator) -> None:
        """Refuse a text anywhere above; above a directory there is none."""
        while above.key and above not in self._directories:
            self._directories[above] = self._is_there(above)
            if self._directories[above]:
                return
            above = above.parent

    def _is_there(self, directory: Locator) -> bool:
        try:
            if self._inner.info(directory).is_dir:
                return True
        except FileNotFoundError:
            return False
        raise ParentIsFileError(
            f"{directory.key!a} is a text, so nothing can lie below it. "
            "Fix: choose a place outside of it."
        )


class Wanted(NamedTuple):
    content: str | None
    expect: Expectation = None


class Discrepancy(NamedTuple):
    """A file is not as history said; so history now says what the file is."""

    locator: Locator
    before: CID | None
    after: bytes | None


class _Part(NamedTuple):
    """A text on its way, and what was there when it came."""

    locator: Locator
    wanted: Wanted
    found: Text
    bound: CID | None

    @property
    def guard(self) -> Expectation:
        """What must still be there when the file is written."""
        return guard_of(self.found) or self.wanted.expect

    def changes(self, circumstances: Circumstances, external: Circumstances) -> Iterator[Change]:
        """Yield what happens: first what others did, then what we do."""
        key, content = self.locator.key, self.wanted.content
        if self.found is UNREADABLE:
            if is_of(self.bound, content):
                return
        elif not is_of(self.bound, self.found):
            said = external.derived(self.bound)
            yield Change(key, _bytes(self.found), said.to_mapping())
        if content != self.found:
            yield Change(key, _bytes(content), circumstances.of(key).to_mapping())


class _Whose(Enum):
    OURS = "ours"
    """The file as it was before, or a part of what was to be written."""
    OWNERS = "owner's"
    UNDECIDED = "undecided"
    """Both are recorded, and ours is written again."""


class _Stale(NamedTuple):
    """A file that is not what history has."""

    locator: Locator
    bound: Binding
    found: Text
    text: str | None
    whose: _Whose

    @property
    def is_old(self) -> bool:
        return self.whose is not _Whose.OWNERS

    def changes(self) -> Iterator[Change]:
        if self.whose is not _Whose.OURS and self.found is not UNREADABLE:
            said = _EXTERNAL.derived(self.bound.cid).to_mapping()
            yield Change(self.locator.key, _bytes(self.found), said)
        if self.whose is _Whose.UNDECIDED:
            yield Change(self.locator.key, _bytes(self.text), self.bound.circumstances)


class _Followed:
    """What keys stand for where only we wrote since, so that no writer waits for the catalogue."""

    def __init__(self, store: ArtifactStore, position: int) -> None:
        self._store = store
        self._begin = position
        self._since: dict[str, CID | None] = {}
        self.position = position

    @property
    def is_long(self) -> bool:
        return len(self._since) > _MOST_AHEAD

    def go_on(self, changes: Sequence[Change], state: IndexState) -> None:
        for change in changes:
            content = change.content
            cid = None if content is None else CID.of(content, self._store.hash)
            self._since[change.name] = cid
        self.position = state.position

    def contents(self, names: Sequence[str]) -> dict[str, CID | None]:
        known = {name: self._since[name] for name in names if name in self._since}
        asked = [name for name in names if name not in known]
        return known | self._store.catalogue.contents(asked, self._begin)


class Joint:
    """The texts of `inner`, and the history of them."""

    def __init__(self, inner: StorageBackend, history: History) -> None:
        self.inner = inner
        self.history = history
        self._synced = 0
        """A position that the mark has passed."""
        self._followed: _Followed | None = None
        """None, or as of a position up to which all is settled; only while the fence is held."""

    # ------------------------------------------------------------ writing
    def commit(self, wanted: Mapping[Locator, Wanted], circumstances: Circumstances) -> IndexState:
        """Let all of it enter history in one commit, then write the files: all of them, or none."""
        with self.alone():
            return self._land(wanted, circumstances)

    def remove(self, locator: Locator, expect: Expectation, circumstances: Circumstances) -> None:
        """Remove a text, or an empty directory, of which history knows nothing."""
        with self.alone():
            try:
                is_dir = self.inner.info(locator).is_dir
            except FileNotFoundError:
                check_found(None, expect, locator)
                raise
            if is_dir:
                self.inner.remove(locator, expect=expect)
            else:
                self._land({locator: Wanted(None, expect)}, circumstances)

    def _land(self, wanted: Mapping[Locator, Wanted], circumstances: Circumstances) -> IndexState:
        try:
            state = self._commit(dict(wanted), circumstances)
        except BaseException:
            self._followed = None
            with suppress(PerdureError, OSError):  # then the next holder of the lock goes on
                self._abort()
            raise
        self._applied(state.position)
        return state

    def _abort(self) -> None:
        """Give back what the commit replaced: in the log first, then in the files."""
        start = self._start()
        if start is None:
            return
        replaced = last_replaced(self.history, start)
        if has_landed(self.inner, replaced):
            self._applied(self.history.position())
            return
        changes = []
        for text in replaced:
            former = None if text.before is None else self.history.store.get(text.before)
            if text.before != text.after and (former is not None or text.before is None):
                changes.append(Change(text.locator.key, former, _UNDONE.to_mapping()))
        if changes:
            self.history.record(changes[::-1])
        self._redo(start)

    def _applied(self, position: int) -> None:
        """Set the positions after the files up to here were written."""
        fence = self.history.fence
        if not self.inner.defers_sync:
            fence.settle(position)
            return
        fence.apply(position)
        if position - self._synced > _MOST_UNSYNCED:
            self._synced = fence.settled()
            if position - self._synced > _MOST_UNSYNCED:
                self.sync()

    def sync(self) -> None:
        """Make the files of all commits durable, and move the mark. Needs the lock."""
        position = self.history.position()
        names = self.history.store.catalogue.named_since(self.history.fence.settled())
        locators = list(keys_among(names))
        try:
            self.inner.sync(locators)
        except (PerdureError, OSError):  # what the disk kept of them is not known: write them again
            bound = self._now().contents([locator.key for locator in locators])
            texts = {each: self._kept(bound[each.key]) for each in locators}
            self.inner.write_all(
                {
                    each: text
                    for each, text in texts.items()
                    if is_of(bound[each.key], look(self.inner, each))
                }
            )
        self.history.fence.settle_durably(position)

    def _kept(self, cid: CID | None) -> str | None:
        return None if cid is None else self._text(cid)

    def _commit(self, wanted: Mapping[Locator, Wanted], circumstances: Circumstances) -> IndexState:
        state = self.history.store.current()
        if state.position == 0 and self.history.fence.mark() is None:
            self.history.fence.settle_durably(0)  # so that a lost mark is not taken for a new store
        again = Circumstances(origin=EXTERNAL, more={DURING: state.position})
        parts = self._parts(wanted)
        for attempt in range(_ATTEMPTS):
            said = again if attempt else _EXTERNAL
            changes = [change for part in parts for change in part.changes(circumstances, said)]
            if changes:
                state = self._record(changes)
            try:
                self._write(parts, guarded=attempt < _ATTEMPTS - 1)
            except (ConcurrentModificationError, LockLostError):
                if attempt == _ATTEMPTS - 1:
                    raise
                parts = self._parts(self._not_landed(parts))
            else:
                break
        return state

    def _record(self, changes: Sequence[Change]) -> IndexState:
        state = self.history.record(changes)
        self._now().go_on(changes, state)
        return state

    def _not_landed(self, parts: Sequence[_Part]) -> dict[Locator, Wanted]:
        return {
            part.locator: part.wanted
            for part in parts
            if look(self.inner, part.locator) != part.wanted.content
        }

    def _parts(self, wanted: Mapping[Locator, Wanted]) -> list[_Part]:
        names = [locator.key for locator in wanted]
        bound = self._now().contents(names)
        is_layout = isinstance(self.inner, Layout)
        places = Places(self.inner, look_all(self.inner, list(wanted)) if is_layout else {})
        parts = [
            _Part(locator, wish, places.found(locator, *wish), bound[locator.key])
            for locator, wish in wanted.items()
        ]
        if isinstance(self.inner, Layout):
            self.inner.refuse({locator: wish.content for locator, wish in wanted.items()})
        return parts

    def _write(self, parts: Sequence[_Part], *, guarded: bool) -> None:
        """Write the files, unless somebody who does not ask us changed one since we looked."""
        to_write = [p for p in parts if p.wanted.content is not None or p.found is not None]
        self._write_files(
            {part.locator: part.wanted.content for part in to_write},
            expect={
                part.locator: part.guard if guarded else part.wanted.expect for part in to_write
            },
        )

    def _write_files(self, changes: Changes, expect: Conditions) -> None:
        if self.inner.defers_sync:
            self.inner.write_unsynced(changes, expect=expect)
        else:
            self.inner.write_all(changes, expect=expect)

    # ------------------------------------------------------------ settling
    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other writers away, once what they left is settled; nobody writes if it can't be."""
        with self.history.fence.held():
            newest = self.history.store.settled().position
            if self._followed is None or self._followed.position != newest:
                self._followed = None
                self._settle_leftovers()
            yield

    def _now(self) -> _Followed:
        if self._followed is None or self._followed.is_long:
            self._followed = _Followed(self.history.store, self.history.position())
        return self._followed

    def settle(self, *, unacknowledged: bool = False) -> None:
        """Write the files that a writer which died left unwritten."""
        if unacknowledged:
            with self.alone():
                return
        if self.history.fence.applied() == self.history.store.current().position:
            return  # nothing was logged since
        if (self._start() or 0) < self.history.store.catalogue.last_named():  # the start follows
            with self.alone():
                pass

    def _settle_leftovers(self) -> None:
        start = self._start()
        if start is not None and self.history.store.catalogue.last_named() <= start:
            return
        if start is None or self.history.fence.is_taken_in():
            # Nothing tells which files were written, or others write them: the files are right.
            names = self.history.store.catalogue.named_since(start or 0)
            self._answer(keys_among(names))
            self.history.fence.settle_durably(self.history.position())
            return
        self._redo(start)

    def _redo(self, start: int) -> None:
        """Write the files of all versions after a position, the newest of each key.

        What others wrote meanwhile stays, and becomes a version.
        """
        for attempt in range(_ATTEMPTS):
            names = self.history.store.catalogue.named_since(start)
            every = (self._stale(locator, start) for locator in keys_among(names))
            found = [each for each in every if each is not None]
            changes = [change for each in found for change in each.changes()]
            if changes:
                self.history.record(changes)
            try:
                self._write_again([each for each in found if each.is_old])
                break
            except (ConcurrentModificationError, LockLostError):
                if attempt == _ATTEMPTS - 1:
                    raise
        self._applied(self.history.position())

    def _write_again(self, stale: "Sequence[_Stale]") -> None:
        """Write these files, removals first; where something is in the way, history says so."""
        removals = [each for each in stale if each.text is None]
        writes = [each for each in stale if each.text is not None]
        obstructed: list[_Stale] = []
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
                remove_empty(self.inner, each.locator.parent)
        changes = [Change(each.locator.key, None, _EXTERNAL.to_mapping()) for each in obstructed]
        if changes:
            self.history.record(changes)

    def _write_stale(self, stale: "Sequence[_Stale]") -> None:
        """Write them durably: a torn file that is younger than its commit looks like an edit."""
        self.inner.write_all(
            {each.locator: each.text for each in stale},
            expect={each.locator: guard_of(each.found) for each in stale},
        )

    def _stale(self, locator: Locator, start: int) -> "_Stale | None":
        """Return what is at a place if it is not what history has there."""
        bound = self.history.store.catalogue.bound(locator.key, self.history.position())
        found = look(self.inner, locator)
        if bound is None or is_of(bound.cid, found):
            return None
        text = self._kept(bound.cid)
        if bound.cid is not None and text is None:  # it was erased
            return None
        is_new = found is not None and self._age(locator, bound.time) > _SLACK_MS
        has_restarted = not self.history.fence.is_of_this_start()
        may_be_torn = self.inner.defers_sync and has_restarted
        is_sure = is_new or not may_be_torn
        if found is UNREADABLE:  # no version can say what it is
            return None if is_sure else _Stale(locator, bound, found, text, _Whose.OURS)
        is_part = found is not None and may_be_torn and is_torn(found, text)
        if found is None or (is_part and not is_new):
            return _Stale(locator, bound, found, text, _Whose.OURS)
        versions = self.history.store.catalogue.versions(bound.name, bound.position - 1)
        former = versions
        if not has_restarted:  # only files of these commits can be missing
            former = versions[-1 - sum(each.position > start for each in versions) :]
        elif is_new:
            former = []
        if any(is_of(each.cid, found) for each in former):
            whose = _Whose.OURS
        else:
            # The commit may have taken so long that its own file is younger than it.
            whose = _Whose.OWNERS if is_sure and not is_part else _Whose.UNDECIDED
        return _Stale(locator, bound, found, text, whose)

    def _age(self, locator: Locator, time: int) -> float:
        """Return how many milliseconds after a time a file was written."""
        try:
            return self.inner.info(locator).mtime * 1000 - time
        except FileNotFoundError:
            return 0

    def _start(self) -> int | None:
        """Return the position after which files may be missing; None if nothing tells."""
        applied, newest = self.history.fence.applied(), self.history.position()
        # A position beyond the log is of a log that was lost, and another one put in its place.
        return applied if applied is not None and applied <= newest else None

    # ------------------------------------------------------------ answering
    def notice(
        self, locators: Iterable[Locator], said: Circumstances = _EXTERNAL
    ) -> list[Discrepancy]:
        """Let what others did to these places enter history; return what that was."""
        with self.alone():
            found = self._answer(locators, said)
            self._applied(self.history.position())
            return found

    def put_aside(self, texts: Mapping[Locator, str], why: Mapping[str, Value]) -> None:
        """Let texts enter history that no file has; what the files have follows in one commit."""
        said = replace(_EXTERNAL, more=why).to_mapping()
        with self.alone():
            changes: list[Change] = []
            bound = self._bound_at(list(texts))
            for locator, text in texts.items():
                now = bound[locator]
                if not is_of(now, text):
                    changes.append(Change(locator.key, text.encode(), said))
                    kept = None if now is None else self.history.store.get(now)
                    changes.append(Change(locator.key, kept, said))
            if changes:
                self.history.record(changes)
                self._applied(self.history.position())

    def _answer(
        self, locators: Iterable[Locator], by: Circumstances = _EXTERNAL
    ) -> list[Discrepancy]:
        """Let history say what the files say; of what can't be read it says nothing."""
        places = list(dict.fromkeys(locators))
        now = self._bound_at(places)
        found = [
            Discrepancy(locator, now[locator], _bytes(text))
            for locator, text in look_all(self.inner, places).items()
            if text is not UNREADABLE and not is_of(now[locator], text)
        ]
        found.sort(key=lambda one: one.after is not None)
        moved = _moved(found)
        changes = []
        for locator, bound, after in found:
            said = by.derived(bound)
            if locator in moved:
                said = replace(said, more={**said.more, MOVED_FROM: moved[locator].key})
            changes.append(Change(locator.key, after, said.to_mapping()))
        if changes:
            self.history.record(changes)
        return found

    # ------------------------------------------------------------ reading
    def committed(self, locator: Locator) -> str | None:
        catalogue = self.history.store.catalogue
        while True:
            start, named = self._start(), catalogue.last_named()
            if start is not None and named > start:
                unfinished = last_replaced(self.history, start)
                before = {text.locator: text.before for text in unfinished}
                if locator in before and not has_landed(self.inner, unfinished):
                    former = before[locator]
                    return None if former is None else self._text(former)
            text = self._read(locator)
            now = self.history.position()
            if catalogue.last_named() == named or self._last_bound(locator, now) <= named:
                return text  # no commit of it came and went meanwhile

    def _last_bound(self, locator: Locator, position: int) -> int:
        bound = self.history.store.catalogue.bound(locator.key, position)
        return 0 if bound is None else bound.position

    def _read(self, locator: Locator) -> str | None:
        try:
            return self.inner.read(locator)
        except (FileNotFoundError, IsADirectoryError):
            return None

    def compare(self, locators: Sequence[Locator]) -> Iterator[tuple[Text, Locator, CID | None]]:
        """Yield what is at each of these places, and what history has there."""
        bound = self._bound_at(locators)
        for locator, text in look_all(self.inner, locators).items():
            yield text, locator, bound[locator]

    def known(self) -> Iterator[Locator]:
        return keys_among(self.history.store.catalogue.names("", self.history.position()))

    def _text(self, cid: CID) -> str | None:
        """Return the text that a CID names; None if it is no longer kept."""
        data = self.history.store.get(cid)
        return None if data is None else decoded(data, str(cid))

    def _bound_at(self, locators: Sequence[Locator]) -> dict[Locator, CID | None]:
        keys = [locator.key for locator in locators]
        contents = self.history.store.catalogue.contents(keys, self.history.position())
        return {locator: contents[locator.key] for locator in locators}


def _moved(found: Iterable[Discrepancy]) -> dict[Locator, Locator]:
    """Return where new texts were before: where the only text is gone that had the same bytes.

    Else, of a note that was moved and edited, where the only one is gone with its name and slug.
    """
    new = [one for one in found if one.before is None and one.after is not None]
    gone = [one for one in found if one.before is not None and one.after is None]
    if not (new and gone):
        return {}
    ways: dict[tuple[object, ...], list[Locator]] = {}
    for locator, cid, _ in gone:
        for way in ((locator.name, cid), (locator.name, locator.parent.name)):
            ways.setdefault(way, []).append(locator)
    moved: dict[Locator, Locator] = {}
    for locator, _, after in new:
        same = ways.get((locator.name, CID.of(after or b"")))
        same = same or ways.get((locator.name, locator.parent.name), [])
        if len(same) == 1:
            moved[locator] = same[0]
    return moved


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
