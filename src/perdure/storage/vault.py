"""A folder that people and sync clients also write, such as an Obsidian vault."""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from perdure.errors import (
    InvalidLocatorError,
    NotTextError,
    StorageSelectionError,
    StorageUnavailableError,
)
from perdure.storage.changes import Expectation, original_of
from perdure.storage.contract import Capabilities, ConflictStrategy, Finding, FindingKind
from perdure.storage.device_local import FolderBackend
from perdure.storage.locator import Locator, is_key_segment
from perdure.storage.registry import BackendOptions

if TYPE_CHECKING:
    from perdure.storage.batch import WriteBatch
    from perdure.storage.mutex import HeldLock, LockTiming
    from perdure.storage.personal import Authorisation


class VaultBackend(FolderBackend):
    """Texts in an existing folder that others may write at any time; it is never created here."""

    def __init__(
        self,
        root: str,
        home: str,
        timing: "LockTiming | None" = None,
        *,
        personal: str | None = None,
    ) -> None:
        super().__init__(root, home, timing)
        self._refuse_home_inside(home)
        name = hashlib.sha256(os.fsencode(self._root)).hexdigest()
        self._seen_in_use = os.path.join(home, "vaults", name)
        self._refuse_unmounted()
        self._lock_home = home, timing
        self._personal = _PersonalSpace(personal, self._root, home, timing) if personal else None

    @classmethod
    def from_options(cls, options: Mapping[str, object], home: str) -> Self:
        given = BackendOptions("vault", options, known={"path", "personal"})
        path = given.folder("path")
        if path is None:
            raise StorageSelectionError(
                "the vault backend is selected, but no vault path is set. Fix: set path in "
                "[storage.vault] of the config file, or the environment's MEMORY_VAULT_PATH."
            )
        return cls(path, home, personal=given.folder("personal"))

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(concurrent_writers=True, conflict_files=True, sync=True)

    @property
    def conflict_strategy(self) -> ConflictStrategy:
        return ConflictStrategy.SURFACE

    def findings(self, locator: Locator) -> Sequence[Finding]:
        return (*super().findings(locator), *self._conflict_copies(locator))

    def _write_personal(
        self, locator: Locator, content: str, authorisation: "Authorisation", expect: Expectation
    ) -> Locator:
        write = self._personal.write_authorised if self._personal else super()._write_personal
        return write(locator, content, authorisation, expect)

    def own_notes(self, store: Locator) -> bool:
        """Use the vault outside one folder as personal space; False if the config names another."""
        if self._personal is not None:
            return False
        folder = os.path.join(self._root, *store.key.split("/"))
        self._personal = _PersonalSpace(self._root, folder, *self._lock_home)
        return True

    def _conflict_copies(self, directory: Locator) -> Iterator[Finding]:
        children = {child.name: child for child in self.list(directory)}
        for name in children:
            original = original_of(name, children, lambda n: self._text_or_none(children[n]))
            if original is not None:
                advice = "compare it with the original, merge them and remove the copy"
                place = directory.child(original) if is_key_segment(original) else None
                yield Finding(FindingKind.CONFLICT_COPY, directory, name, advice, place)

    def _text_or_none(self, locator: Locator) -> str | None:
        try:
            return self.read(locator)
        except (IsADirectoryError, FileNotFoundError, NotTextError):
            return None

    def _refuse_home_inside(self, home: str) -> None:
        real_home = os.path.realpath(home)
        if os.path.commonpath([real_home, self._root]) == self._root:
            raise StorageSelectionError(
                f"Perdure's home {real_home!a} lies inside the vault {self._root!a}, where a sync "
                "client would corrupt it. Fix: set PERDURE_HOME to a folder outside the vault."
            )

    def _refuse_unmounted(self) -> None:
        if not os.path.isdir(self._root):
            raise StorageUnavailableError(
                f"the vault {self._root!a} is not there. Fix: mount its drive or start its sync "
                "client, or correct its path; Perdure never creates a vault."
            )
        if os.path.exists(self._seen_in_use) and not os.listdir(self._root):
            raise StorageUnavailableError(
                f"the vault {self._root!a} is empty, but it was not when last used; its drive may "
                f"not be mounted. Fix: mount it, or, if it is meant to be empty, remove "
                f"{self._seen_in_use!a}."
            )

    def _change(self, place: "Locator | WriteBatch", change: Callable[["HeldLock"], None]) -> None:
        def change_and_note(held: "HeldLock") -> None:
            change(held)
            self._note_use()
            self._note_emptiness()

        super()._change(place, change_and_note)

    def _note_use(self) -> None:
        if not os.path.exists(self._seen_in_use):
            with suppress(OSError):  # without the mark only a warning is lost
                os.makedirs(os.path.dirname(self._seen_in_use), mode=0o700, exist_ok=True)
                os.close(os.open(self._seen_in_use, os.O_CREAT | os.O_WRONLY, 0o600))

    def _note_emptiness(self) -> None:
        if not os.listdir(self._root):
            with suppress(FileNotFoundError):
                os.unlink(self._seen_in_use)


class _PersonalSpace(FolderBackend):
    """The operator's folder above the store; it does not write into the store itself."""

    def __init__(self, root: str, store: str, home: str, timing: "LockTiming | None") -> None:
        super().__init__(root, home, timing)
        if store == self._root or os.path.commonpath([store, self._root]) != self._root:
            raise StorageSelectionError(
                f"the personal space {self._root!a} must lie above the vault's store {store!a}. "
                "Fix: set [storage.vault] personal to a folder that holds the store."
            )
        from perdure.storage.personal import AuthorisationLedger  # noqa: PLC0415 - loads uuid

        self._store = Locator(os.path.relpath(store, self._root).casefold())
        self._ledger = AuthorisationLedger(os.path.join(home, "authorisations"))

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(concurrent_writers=True, conflict_files=True, sync=True)

    def write_authorised(
        self, locator: Locator, content: str, authorisation: "Authorisation", expect: Expectation
    ) -> Locator:
        if self._store.contains(Locator(locator.key.casefold())):  # many disks ignore case
            raise InvalidLocatorError(
                f"{str(locator)!a} is in the agent's own store. Fix: use `write` for it."
            )
        redeemed = self._ledger.redeem(authorisation, locator, content)
        try:
            return self.write(locator, content, expect=expect)
        except BaseException:
            self._ledger.release(redeemed)
            raise
