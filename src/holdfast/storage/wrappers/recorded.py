"""A backend whose every change enters history before it happens."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Self

from holdfast.artifacts import CID, IndexState
from holdfast.artifacts.canonical import Value
from holdfast.storage.content import (
    ABSENT,
    Expectation,
    check_expectation,
    encode_text,
)
from holdfast.storage.contract import (
    Capabilities,
    ConflictStrategy,
    Finding,
    Info,
    StorageBackend,
)
from holdfast.storage.history import RESTORE, Circumstances, History, Version, Which
from holdfast.storage.joint import Discrepancy, Joint, Wanted
from holdfast.storage.locator import Locator
from holdfast.storage.personal import Authorisation
from holdfast.storage.tiers import DerivedMaintenance


class Recorded(StorageBackend):
    """`inner`, with a history of its texts. To open it settles what a crash left behind."""

    def __init__(self, inner: StorageBackend, history: History) -> None:
        self.inner = inner
        self.history = history
        self.joint = Joint(inner, history)
        self._circumstances = Circumstances()
        self.joint.settle()

    def because(
        self,
        *,
        actor: str | None = None,
        reason: str | None = None,
        origin: str | None = None,
        derived_from: Iterable[CID] | None = None,
        **more: Value,
    ) -> "Recorded":
        """Return the same backend for writes under these circumstances; others stay as they are."""
        now = self._circumstances
        said = Circumstances(
            now.actor if actor is None else actor,
            now.reason if reason is None else reason,
            now.origin if origin is None else origin,
            now.derived_from if derived_from is None else tuple(derived_from),
            {**now.more, **more},
        )
        same = copy(self)
        same._circumstances = said  # noqa: SLF001 - it is one of us
        return same

    def close(self) -> None:
        """Let go of the history."""
        self.history.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ changing
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        self.commit({locator: content}, expect={locator: expect})
        return locator

    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        check_expectation(expect)
        if expect is ABSENT:
            raise ValueError("what is absent can't be removed. Fix: pass a content hash or nothing")
        self.joint.remove(locator, expect, self._circumstances)

    def commit(
        self,
        changes: Mapping[Locator, str | None],
        *,
        expect: Mapping[Locator, Expectation] | None = None,
    ) -> IndexState:
        """Make all these changes, and have them in history as one; None is a text to be removed.

        They enter history in one commit, and then the files are written in this order. If a
        condition does not hold, nothing happens. If a file can't be written, those after it are
        not, and history says what the files say.
        """
        conditions = expect or {}
        for locator, content in changes.items():
            if content is not None:
                encode_text(content, locator)
            check_expectation(conditions.get(locator))
        wanted = {
            locator: Wanted(content, conditions.get(locator))
            for locator, content in changes.items()
        }
        return self.joint.commit(wanted, self._circumstances)

    def restore(self, locator: Locator, version: Which, *, expect: Expectation = None) -> Version:
        """Write the text of an earlier version as a new one; nothing of history is rewritten.

        `AbsentError` if there is no such version, or it has no text.
        """
        chosen = self.history.version(locator, version)
        text = self.history.text(chosen)
        derived_from = () if chosen.cid is None else (chosen.cid,)
        restoring = self.because(origin=RESTORE, derived_from=derived_from)
        restoring.write(locator, text, expect=expect)
        return self.history.versions(locator)[-1]

    def mkdir(self, locator: Locator) -> Locator:
        return self.inner.mkdir(locator)

    def write_personal(
        self,
        locator: Locator,
        content: str,
        *,
        authorisation: Authorisation,
        expect: Expectation = None,
    ) -> Locator:
        """Write into the operator's own space, as `inner` does; it has no history here."""
        return self.inner.write_personal(
            locator, content, authorisation=authorisation, expect=expect
        )

    # ------------------------------------------------------------ keeping history right
    def settle(self) -> None:
        """Answer versions whose files were never written, if a crash left any."""
        self.joint.settle()

    def notice(self, locators: Iterable[Locator]) -> list[Discrepancy]:
        """Let what others wrote at these places enter history, in one commit; say what it was."""
        return self.joint.notice(locators)

    # ------------------------------------------------------------ reading
    def read(self, locator: Locator) -> str:
        return self.inner.read(locator)

    def list(self, locator: Locator) -> list[Locator]:
        return self.inner.list(locator)

    def exists(self, locator: Locator) -> bool:
        return self.inner.exists(locator)

    def info(self, locator: Locator) -> Info:
        return self.inner.info(locator)

    def findings(self, locator: Locator) -> Sequence[Finding]:
        return self.inner.findings(locator)

    def resolve(self, *parts: str) -> Locator:
        return self.inner.resolve(*parts)

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    @property
    def whereabouts(self) -> str:
        return self.inner.whereabouts

    @property
    def identity(self) -> str:
        return self.inner.identity

    @property
    def conflict_strategy(self) -> ConflictStrategy:
        return self.inner.conflict_strategy

    @property
    def derived_maintenance(self) -> DerivedMaintenance | None:
        return self.inner.derived_maintenance
