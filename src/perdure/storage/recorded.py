"""A backend whose changes enter history before they are made."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from perdure.artifacts import CID, IndexState
from perdure.artifacts.artifact import Value
from perdure.dataclass import replace
from perdure.errors import AbsentError, NotTextError, StorageError
from perdure.files import Closeable
from perdure.storage.changes import Changes, Conditions, Expectation, check_changes, check_removal
from perdure.storage.committer import Committer, Discrepancy, TextWrite
from perdure.storage.contract import Layout, StorageBackend, TransactionalBackend
from perdure.storage.locator import Locator
from perdure.storage.read_only import BackendWrapper
from perdure.storage.text_history import (
    EXTERNAL,
    RESTORE,
    UNDONE,
    Circumstances,
    History,
    Version,
    VersionSelector,
)

if TYPE_CHECKING:
    from perdure.artifacts.sweeper import SweepResult
    from perdure.storage.personal import Authorisation


class Recorded(Closeable, BackendWrapper, TransactionalBackend):
    """`inner` with a history of its texts. Opening it finishes a commit that a crash interrupted.

    `introduce` is called before each change of a text, and may refuse it.
    """

    def __init__(
        self,
        inner: StorageBackend,
        history: History,
        introduce: Callable[[], object] = lambda: None,
    ) -> None:
        self.inner = inner
        self.history = history
        self.introduce = introduce
        self.committer = Committer(inner, history)
        self._circumstances = Circumstances()
        with suppress(StorageError):  # it can still be read, and the next writer tries again
            self.committer.settle()

    def because(
        self,
        *,
        actor: str | None = None,
        reason: str | None = None,
        origin: str | None = None,
        derived_from: Iterable[CID] | None = None,
        **more: Value,
    ) -> Self:
        """Return this backend for writes under these circumstances; arguments not given stay.

        `moved_from` is the key that a text had before; for several texts, a mapping from the new
        key of each. Origins that history itself assigns are refused.
        """
        if origin in (EXTERNAL, UNDONE):
            raise ValueError(
                f"origin={origin!a} is assigned by history itself. Fix: pass another, or none."
            )
        now = self._circumstances
        circumstances = Circumstances(
            now.actor if actor is None else actor,
            now.reason if reason is None else reason,
            now.origin if origin is None else origin,
            now.derived_from if derived_from is None else tuple(derived_from),
            {**now.more, **more},
        )
        same = object.__new__(type(self))  # `copy` would load modules
        vars(same).update(vars(self), _circumstances=circumstances)
        return same

    def close(self) -> None:
        self.history.close()
        if isinstance(self.inner, Closeable):
            self.inner.close()

    # ------------------------------------------------------------ changing
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        self.commit({locator: content}, expect={locator: expect})
        return locator

    def mkdir(self, locator: Locator) -> Locator:
        return self.inner.mkdir(locator)

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        check_removal(expect)
        self.introduce()
        self.committer.remove(locator, expect, self._circumstances)

    def commit(self, changes: Changes, *, expect: Conditions = None) -> IndexState:
        """As in the contract; the changes enter history as one commit before a file is written."""
        wanted = {
            change.locator: TextWrite(changes[change.locator], change.expect)
            for change in check_changes(changes, expect)
        }
        self.introduce()
        state = self.committer.commit(wanted, self._circumstances)
        self.history.position()  # so that a read-only process finds it in the catalogue
        return state

    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        self.commit(changes, expect=expect)

    def _write_personal(
        self, locator: Locator, content: str, authorisation: "Authorisation", expect: Expectation
    ) -> Locator:
        """As in the contract; a note of this tree enters history, as it was and as it is then."""
        layout = self.inner
        if not isinstance(layout, Layout) or not layout.holds_personal:
            return super()._write_personal(locator, content, authorisation, expect)
        self.introduce()
        self.notice(layout.logical([locator.key]))
        super()._write_personal(locator, content, authorisation, expect)
        circumstances = replace(self._circumstances, actor=authorisation.operator)
        self.committer.notice(layout.logical([locator.key]), circumstances)
        return locator

    def restore(
        self, locator: Locator, version: VersionSelector, *, expect: Expectation = None
    ) -> Version:
        """Write the text of an earlier version again; `AbsentError` if it has none."""
        chosen = self.history.version(locator, version)
        text = self.history.text(chosen)
        derived_from = () if chosen.cid is None else (chosen.cid,)
        restoring = self.because(origin=RESTORE, derived_from=derived_from)
        restoring.write(locator, text, expect=expect)
        return self.history.versions(locator)[-1]

    def earlier(self, locator: Locator) -> Iterator[str]:
        return self.history.earlier(locator)

    def saved(self, locator: Locator) -> str | None:
        versions = reversed(self.history.versions(locator))
        last = next((each for each in versions if each.origin not in {EXTERNAL, UNDONE}), None)
        with suppress(AbsentError, NotTextError):
            return None if last is None else self.history.text(last)
        return None

    def erase(self, chosen: Callable[[], Collection[CID]], reason: str) -> "SweepResult":
        """Erase contents from history; the lock is held from the choice to the end."""
        with self.committer.exclusive():
            self.committer.sync()  # a power cut must not restore a file that had them
            return self.history.store.erase(chosen(), reason)

    # ------------------------------------------------------------ settling
    def settle(self, *, unacknowledged: bool = False) -> None:
        self.committer.settle(unacknowledged=unacknowledged)

    def notice(self, locators: Iterable[Locator]) -> list[Discrepancy]:
        """Record what others wrote at these locators, in one commit; return it."""
        return self.committer.notice(locators)

    # ------------------------------------------------------------ reading
    def committed(self, locator: Locator) -> str | None:
        return self.committer.committed(locator)
