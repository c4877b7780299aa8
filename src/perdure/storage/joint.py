"""Where texts and their history meet: a version enters history before its file is written.

While that goes on, the fence keeps other writers of the same history away. So the versions of a
key are in the order in which its file had them, and what a write expects is decided once.

Several texts change as one. Who fails in the middle gives those back that it had written; who dies
there leaves it to the next one. Either way history tells what was there before.

Who writes the files without asking us can still come between. What is about to be overwritten and
is not in history enters it first. Where a file turns out otherwise than history says, another
version says what the file says: the file is the truth.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from perdure.artifacts import CID, ArtifactStore, Change, IndexState
from perdure.errors import (
    ConcurrentModificationError,
    FileAboveError,
    InvalidLocatorError,
    LockLostError,
    NotTextError,
    PerdureError,
)
from perdure.storage.content import Expectation, check_found
from perdure.storage.contract import UNREADABLE, StorageBackend, Text
from perdure.storage.history import EXTERNAL, UNDONE, Circumstances, Event, History, decoded
from perdure.storage.locator import Locator
from perdure.storage.undo import Replaced, guard_of, has_landed, is_of, look, look_all, put_back

Contents = dict[str, CID | None]
"""Of keys; None where there is no text."""

DURING: Final = "during"
"""Says of an external version that it came while a commit was written: the position before it."""
_EXTERNAL = Circumstances(origin=EXTERNAL)
_UNDONE = Circumstances(origin=UNDONE, reason="its file was not written")
_ATTEMPTS = 3
_MOST_AHEAD = 5_000


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
        if event.position > begin and event.origin != UNDONE:
            (before if event.origin == EXTERNAL else after)[event.key] = event.cid
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

    def __init__(self, inner: StorageBackend) -> None:
        self._inner = inner
        self._directories: dict[Locator, bool] = {}
        """Whether they are there."""

    def found(self, locator: Locator, wanted: str | None, expect: Expectation) -> Text:
        """Return what is there, if it is as expected and the wanted text can be there."""
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
        raise FileAboveError(
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
            with suppress(PerdureError, OSError):  # then the next writer finds it, and tries again
                self._settle_leftovers()
            raise
        if len(wanted) > 1:
            self.history.fence.settle_durably(state.position)
        else:
            self.history.fence.settle(state.position)
        return state

    def _commit(self, wanted: Mapping[Locator, Wanted], circumstances: Circumstances) -> IndexState:
        state = self.history.store.current()
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
        places = Places(self.inner)
        return [
            _Part(locator, wish, places.found(locator, *wish), bound[locator.key])
            for locator, wish in wanted.items()
        ]

    def _write(self, parts: Sequence[_Part], *, guarded: bool) -> None:
        """Write the files, unless somebody who does not ask us changed one since we looked."""
        to_write = [p for p in parts if p.wanted.content is not None or p.found is not None]
        self.inner.write_all(
            {part.locator: part.wanted.content for part in to_write},
            expect={
                part.locator: part.guard if guarded else part.wanted.expect for part in to_write
            },
        )

    # ------------------------------------------------------------ settling
    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other writers away, once what they left is settled; nobody writes if it can't be."""
        with self.history.fence.held():
            newest = self.history.store.record([]).position
            if self._followed is None or self._followed.position != newest:
                self._followed = None
                self._settle_leftovers()
            yield

    def _now(self) -> _Followed:
        if self._followed is None or self._followed.is_long:
            self._followed = _Followed(self.history.store, self.history.position())
        return self._followed

    def settle(self) -> None:
        """Undo a commit that somebody left unfinished, and answer versions without files."""
        if self.history.fence.mark() == self.history.store.current().position:
            return  # nothing was logged since all was settled
        mark = self._mark() or 0
        if self.history.store.catalogue.last_named() > mark:
            with self.alone():
                pass

    def _settle_leftovers(self) -> None:
        mark = self._mark()
        if mark is not None and self.history.store.catalogue.last_named() <= mark:
            return
        # Without a mark nobody knows which commits had finished, so none is undone.
        unfinished = [] if mark is None else last_replaced(self.history, mark)
        put_back(self.inner, unfinished, self._text)
        names = self.history.store.catalogue.named_since(mark or 0)
        former = {text.locator: text.before for text in unfinished}
        self._answer(keys_among(names), mark or 0, former)
        self.history.fence.settle_durably(self.history.position())

    def _mark(self) -> int | None:
        mark = self.history.fence.mark()
        # A mark beyond the log is of a log that was lost, and another one put in its place.
        return mark if mark is not None and mark <= self.history.position() else None

    # ------------------------------------------------------------ answering
    def notice(self, locators: Iterable[Locator]) -> list[Discrepancy]:
        """Let what others did to these places enter history; return what that was."""
        with self.alone():
            found = self._answer(locators, self.history.position(), {})
            self.history.fence.settle(self.history.position())
            return found

    def _answer(
        self, locators: Iterable[Locator], at: int, former: Mapping[Locator, CID | None]
    ) -> list[Discrepancy]:
        """Let history say what the files say.

        A file that is as before was not written since, or was given back. Before is what `former`
        says, or else what history had at the position `at`. A file that is neither so nor as
        history has it now was written by somebody else.
        """
        found: list[Discrepancy] = []
        changes: list[Change] = []
        places = list(dict.fromkeys(locators))
        now, before = self._bound_at(places), {**self._bound_at(places, at), **former}
        for locator, text in look_all(self.inner, places).items():
            after = self._after(text, before[locator])
            if not is_of(now[locator], after):
                found.append(Discrepancy(locator, now[locator], after))
        for locator, bound, after in sorted(found, key=lambda one: one.after is not None):
            said = _UNDONE if is_of(before[locator], after) else _EXTERNAL.derived(bound)
            changes.append(Change(locator.key, after, said.to_mapping()))
        if changes:
            self.history.record(changes)
        return found

    def _after(self, text: Text, earlier: CID | None) -> bytes | None:
        if text is UNREADABLE:  # it can't say what it is, so it stays what it was
            return None if earlier is None else self.history.store.get(earlier)
        return _bytes(text)

    # ------------------------------------------------------------ reading
    def committed(self, locator: Locator) -> str | None:
        catalogue = self.history.store.catalogue
        while True:
            mark, named = self._mark(), catalogue.last_named()
            if mark is not None and named > mark:
                unfinished = last_replaced(self.history, mark)
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

    def _bound_at(
        self, locators: Sequence[Locator], position: int | None = None
    ) -> dict[Locator, CID | None]:
        at = self.history.position() if position is None else position
        keys = [locator.key for locator in locators]
        contents = self.history.store.catalogue.contents(keys, at)
        return {locator: contents[locator.key] for locator in locators}


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
