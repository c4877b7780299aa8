"""A backend without a history, where several texts change as one all the same."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self

from perdure.artifacts.cid import CID
from perdure.artifacts.disk import Disk
from perdure.errors import ConcurrentModificationError, LockLostError, PerdureError
from perdure.storage.changes import Change, check_changes
from perdure.storage.content import Expectation
from perdure.storage.contract import StorageBackend
from perdure.storage.fence import Fence
from perdure.storage.locator import Locator
from perdure.storage.places import Places
from perdure.storage.rollback import RollbackFile
from perdure.storage.undo import UNREADABLE, Replaced, guard_of, has_landed, put_back
from perdure.storage.wrapped import Wrapped

if TYPE_CHECKING:
    from perdure.artifacts.canonical import Value

_ATTEMPTS = 3

Texts = dict[Locator, str | None]


class Journaled(Wrapped):
    """`inner`, with a note on `disk` of what a commit replaces, for as long as it is under way.

    Everybody who changes these texts by commits must use the same disk.
    """

    def __init__(self, inner: StorageBackend, disk: Disk) -> None:
        super().__init__(inner)
        self._fence = Fence(disk)
        self._file = RollbackFile(disk)
        with suppress(PerdureError):  # it can still be read, and the next writer tries again
            self.settle()

    def because(
        self,
        *,
        actor: str | None = None,
        reason: str | None = None,
        origin: str | None = None,
        derived_from: Iterable[CID] | None = None,
        **more: "Value",
    ) -> Self:
        del actor, reason, origin, derived_from, more
        return self

    # ------------------------------------------------------------ changing
    def commit(
        self,
        changes: Mapping[Locator, str | None],
        *,
        expect: Mapping[Locator, Expectation] | None = None,
    ) -> None:
        checked = check_changes(changes, expect)
        with self._alone():
            if len(checked) == 1:  # one text is whole by itself
                self.inner.write_all(changes, expect=expect)
                return
            try:
                self._commit(checked, dict(changes))
            except BaseException:
                with suppress(PerdureError, OSError):  # then the next writer tries again
                    self._settle_leftovers()
                raise
            self._file.clear()

    def _commit(self, changes: Sequence[Change], wanted: Texts) -> None:
        former: Texts = {}
        pending = list(changes)
        for attempt in range(_ATTEMPTS):
            former |= self._found(pending, wanted)
            self._file.write(former, wanted)
            try:
                self._write(pending, wanted, former, guarded=attempt < _ATTEMPTS - 1)
            except (ConcurrentModificationError, LockLostError):
                if attempt == _ATTEMPTS - 1:
                    raise
                pending = [change for change in pending if not self._has_landed(change)]
            else:
                break

    def _write(
        self, changes: Sequence[Change], wanted: Texts, former: Texts, *, guarded: bool
    ) -> None:
        """Write the files, unless somebody who does not ask us changed one since we looked."""
        gone = [c for c in changes if c.data is None and former[c.locator] is None]
        to_write = [change for change in changes if change not in gone]
        self.inner.write_all(
            {change.locator: wanted[change.locator] for change in to_write},
            expect={
                change.locator: guard_of(former[change.locator]) if guarded else change.expect
                for change in to_write
            },
        )

    def _found(self, changes: Sequence[Change], wanted: Texts) -> Texts:
        """Return what is there, to be given back if need be."""
        places, found = Places(self.inner), Texts()
        for locator, _, expect in changes:
            text = places.found(locator, wanted[locator], expect)
            found[locator] = self.inner.read(locator) if text is UNREADABLE else text
        return found

    def _has_landed(self, change: Change) -> bool:
        after = None if change.data is None else CID.of(change.data)
        return has_landed(self.inner, [Replaced(change.locator, None, after)])

    def write_all(
        self,
        changes: Mapping[Locator, str | None],
        *,
        expect: Mapping[Locator, Expectation] | None = None,
    ) -> None:
        self.commit(changes, expect=expect)

    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        with self._alone():
            return self.inner.write(locator, content, expect=expect)

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        with self._alone():
            self.inner.remove(locator, expect=expect)

    # ------------------------------------------------------------ settling
    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._fence.held():
            self._settle_leftovers()
            yield

    def settle(self) -> None:
        if self._file.read().replaced:
            with self._alone():
                pass

    def _settle_leftovers(self) -> None:
        left = self._file.read()
        if left.replaced:
            put_back(self.inner, left.replaced, left.texts.get)
            self._file.clear()

    # ------------------------------------------------------------ reading
    def committed(self, locator: Locator) -> str | None:
        while True:
            now = self._file.read()
            before = {text.locator: text.before for text in now.replaced}
            if locator in before and not has_landed(self.inner, now.replaced):
                former = before[locator]
                return None if former is None else now.texts[former]
            text = self._text_at(locator)
            then = self._file.read()
            if (then.number, then.is_whole) == (now.number, now.is_whole):
                return text  # no commit came and went meanwhile

    def _text_at(self, locator: Locator) -> str | None:
        try:
            return self.inner.read(locator)
        except (FileNotFoundError, IsADirectoryError):
            return None
