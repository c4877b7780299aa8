"""Where texts and their history meet: a version enters history before its file is written.

While that goes on, the fence keeps other writers of the same history away. So the versions of a
key are in the order in which its file had them, and what a write expects is decided once.

Who writes the files without asking us can still come between. What is about to be overwritten and
is not in history enters it first. Where a file turns out otherwise than history says, another
version says what the file says: the file is the truth.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from holdfast.artifacts import CID, Change, IndexState
from holdfast.artifacts.names import is_foreign
from holdfast.errors import (
    AccessRefusedError,
    ConcurrentModificationError,
    FileAboveError,
    HoldfastError,
    InvalidLocatorError,
    LinkRefusedError,
    NotTextError,
)
from holdfast.storage.content import ABSENT, Expectation, check_found, content_hash
from holdfast.storage.contract import StorageBackend
from holdfast.storage.history import EXTERNAL, UNDONE, Circumstances, History
from holdfast.storage.locator import Locator

_ATTEMPTS = 3


class Unreadable(Enum):
    """The type of `UNREADABLE`."""

    UNREADABLE = "unreadable"


UNREADABLE: Final = Unreadable.UNREADABLE
"""Something is there, but no text that could enter history."""

Text = str | None | Unreadable
"""What is at a place."""


class Wanted(NamedTuple):
    """What is to be at a place, and what must be there before."""

    content: str | None
    expect: Expectation = None


class Discrepancy(NamedTuple):
    """A file is not as history said; so history now says what the file is."""

    locator: Locator
    before: CID | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class _Part:
    """A text on its way, and what was there when it came."""

    locator: Locator
    wanted: Wanted
    found: Text
    bound: CID | None

    @property
    def guard(self) -> Expectation:
        """What must still be there when the file is written."""
        if self.found is UNREADABLE:
            return self.wanted.expect
        return ABSENT if self.found is None else content_hash(self.found)

    def changes(self, circumstances: Circumstances) -> Iterator[Change]:
        """Yield what happens: first what others did, then what we do."""
        key, content = self.locator.key, self.wanted.content
        if self.found is UNREADABLE:
            if content is None and self.bound is None:
                return
        elif not _is(self.bound, _bytes(self.found)):
            yield Change(key, _bytes(self.found), _external(self.bound).to_mapping())
        if content != self.found:
            yield Change(key, _bytes(content), circumstances.to_mapping())


class Joint:
    """The texts of `inner`, and the history of them."""

    def __init__(self, inner: StorageBackend, history: History) -> None:
        self.inner = inner
        self.history = history

    # ------------------------------------------------------------ writing
    def commit(self, wanted: Mapping[Locator, Wanted], circumstances: Circumstances) -> IndexState:
        """Let all of it enter history in one commit, then write the files in this order.

        What is there already, as it should be, makes no new version. If a condition does not hold,
        nothing happens. If a file can't be written, those after it are not, and history says so.
        """
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
        before = self.history.position()
        try:
            state = self._commit(dict(wanted), circumstances)
        except BaseException:
            with suppress(HoldfastError, OSError):  # then the next writer finds it, and answers
                self._answer(wanted, before)
            raise
        self.history.fence.settle(state.position)
        return state

    def _commit(self, pending: dict[Locator, Wanted], circumstances: Circumstances) -> IndexState:
        state = self.history.store.current()
        for attempt in range(_ATTEMPTS):
            parts = [self._part(locator, wanted) for locator, wanted in pending.items()]
            changes = [change for part in parts for change in part.changes(circumstances)]
            if changes:
                state = self.history.record(changes)
            try:
                for part in parts:
                    self._write(part, part.guard if attempt < _ATTEMPTS - 1 else None)
                    del pending[part.locator]
            except _OvertakenError:
                continue
            break
        return state

    def _part(self, locator: Locator, wanted: Wanted) -> _Part:
        """Look at a place, and refuse what can't be done there."""
        found: Text
        try:
            found = self.inner.read(locator)
        except FileNotFoundError:
            found = None
            if wanted.content is not None:
                self._refuse_text_above(locator)
        except NotTextError:
            found = UNREADABLE
        if found is not UNREADABLE:
            check_found(_bytes(found), wanted.expect, locator)
        elif wanted.expect is not None:
            raise ConcurrentModificationError(
                f"{locator.key!a} is no text any more, so it is not what this write expected. "
                "Nothing was changed. Fix: look at the file; to replace it, write without a "
                "condition."
            )
        return _Part(locator, wanted, found, self._bound(locator))

    def _refuse_text_above(self, locator: Locator) -> None:
        above = locator.parent
        while above.key:
            try:
                is_dir = self.inner.info(above).is_dir
            except FileNotFoundError:
                above = above.parent
                continue
            if is_dir:
                return
            raise FileAboveError(
                f"{above.key!a} is a text, so nothing can lie below it. "
                "Fix: choose a place outside of it."
            )

    def _write(self, part: _Part, guard: Expectation) -> None:
        """Write the file, unless somebody who does not ask us changed it since we looked."""
        expect = part.wanted.expect
        try:
            if part.wanted.content is not None:
                self.inner.write(part.locator, part.wanted.content, expect=guard or expect)
            elif part.found is not None:
                self.inner.remove(part.locator, expect=guard or expect)
        except ConcurrentModificationError:
            if expect is not None or guard is None:
                raise
            raise _OvertakenError from None

    # ------------------------------------------------------------ answering
    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other writers away, once what they left is settled."""
        with self.history.fence.held():
            self.history.newest()
            settled = self._settled()
            if self.history.store.catalogue.last_named() > settled:
                names = self.history.store.catalogue.named_since(settled)
                self._answer(_locators(names), settled)
            yield

    def settle(self) -> None:
        """Answer versions whose files were never written, if somebody left any."""
        settled = self._settled()
        if self.history.store.catalogue.last_named() > settled:
            with self.alone():
                pass

    def _settled(self) -> int:
        """Return the position up to which nothing is left to answer."""
        settled = self.history.fence.settled()
        # A mark beyond the log is of a log that was lost, and another one put in its place.
        return settled if settled <= self.history.position() else 0

    def notice(self, locators: Iterable[Locator]) -> list[Discrepancy]:
        """Let what others did to these places enter history; return what that was."""
        with self.alone():
            return self._answer(locators, self.history.position())

    def _answer(self, locators: Iterable[Locator], before: int) -> list[Discrepancy]:
        """Let history say what the files say.

        A file that is as history had it at the position `before` was not written since; one that
        is neither so nor as history has it now was written by somebody else.
        """
        changes: list[Change] = []
        found: list[Discrepancy] = []
        for locator in locators:
            discrepancy = self._discrepancy(locator, before)
            if discrepancy is not None:
                found.append(discrepancy)
        for locator, bound, after in sorted(found, key=lambda one: one.after is not None):
            earlier = self._bound(locator, before)
            said = _undone() if _is(earlier, after) else _external(bound)
            changes.append(Change(locator.key, after, said.to_mapping()))
        if changes:
            self.history.record(changes)
        self.history.fence.settle(self.history.position())
        return found

    def _discrepancy(self, locator: Locator, before: int) -> Discrepancy | None:
        text, bound = self.look(locator), self._bound(locator)
        if text is UNREADABLE:  # it can't say what it is, so it stays what it was
            earlier = self._bound(locator, before)
            found = None if earlier is None else self.history.store.get(earlier)
        else:
            found = _bytes(text)
        return None if _is(bound, found) else Discrepancy(locator, bound, found)

    def look(self, locator: Locator) -> Text:
        try:
            return self.inner.read(locator)
        except (FileNotFoundError, IsADirectoryError):
            return None
        except (NotTextError, LinkRefusedError, AccessRefusedError):
            return UNREADABLE

    def differs(self, locator: Locator, text: str | None) -> bool:
        """Whether history says otherwise."""
        return not _is(self._bound(locator), _bytes(text))

    def known(self) -> Iterator[Locator]:
        """Yield the keys that have a text, as history says."""
        return _locators(self.history.store.catalogue.names("", self.history.position()))

    def _bound(self, locator: Locator, position: int | None = None) -> CID | None:
        at = self.history.position() if position is None else position
        return self.history.store.catalogue.content(locator.key, at)


class _OvertakenError(Exception):
    """Somebody else changed the file since we looked."""


def _is(cid: CID | None, content: bytes | None) -> bool:
    if cid is None or content is None:
        return cid is None and content is None
    return CID.of(content, cid.hash) == cid


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _external(bound: CID | None) -> Circumstances:
    return Circumstances(origin=EXTERNAL, derived_from=() if bound is None else (bound,))


def _undone() -> Circumstances:
    return Circumstances(origin=UNDONE, reason="its file was not written")


def _locators(names: Sequence[str]) -> Iterator[Locator]:
    """Yield the names that are keys of ours; whatever else was bound has no file here."""
    for name in names:
        with suppress(InvalidLocatorError):
            locator = Locator(name)
            if locator.key == name and name and not is_foreign(name):
                yield locator
