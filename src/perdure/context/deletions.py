"""The notes that say who is being deleted, from the first step to the last."""

import json
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256

from perdure.errors import AccessDeniedError, InvalidValueError, NotTextError, PerdureError
from perdure.model import ContextNode, Uri
from perdure.storage import Locator, StorageBackend

_FOLDER = ".deleting"
_ROOT = Locator("")


class Deletions:
    """While a note lies there, nothing new is written to what it names.

    So a deletion comes to an end, and whoever is asked to finish one that was interrupted knows
    what it was.
    """

    def __init__(self, backend: StorageBackend, root: Locator = _ROOT) -> None:
        self._backend = backend
        self._folder = root.child("accounts", _FOLDER)

    def begin(self, account_id: str, owner_space: str) -> None:
        said = {"account_id": account_id, "owner_space": owner_space}
        self._backend.write(self._note(account_id, owner_space), json.dumps(said) + "\n")

    def is_begun(self, account_id: str, owner_space: str) -> bool:
        return self._backend.exists(self._note(account_id, owner_space))

    def end(self, account_id: str, owner_space: str) -> None:
        with suppress(FileNotFoundError):  # another one finished it too
            self._backend.remove(self._note(account_id, owner_space))
        with suppress(PerdureError, OSError):  # others are under way
            self._backend.remove(self._folder)

    def begun(self) -> list[tuple[str, str]]:
        """Return account and owner space of each; the latter is empty for a whole account."""
        notes = self._backend.list(self._folder)
        return [said for said in map(self._said, notes) if said is not None]

    def refuse(self, account_id: str, owner_space: str = "") -> None:
        """Say no if an account, or an owner in it, is being deleted."""
        if not self._backend.exists(self._folder):  # as nearly always
            return
        spaces = dict.fromkeys(("", owner_space))
        if any(self.is_begun(account_id, space) for space in spaces):
            raise AccessDeniedError(
                f"{owner_space or 'all'!a} of account {account_id!a} is being deleted, so nothing "
                "can be written there. Nothing was changed. Fix: wait until that is done; if it "
                "was interrupted, `perdure repair --apply` finishes it."
            )

    def refuse_nodes(self, nodes: Iterable[ContextNode]) -> None:
        """Say no if one of these nodes belongs to somebody who is being deleted."""
        if self._backend.exists(self._folder):
            for node in nodes:
                self.refuse(node.account_id, node.owner_space)

    def _said(self, note: Locator) -> tuple[str, str] | None:
        """Return what a note says; None if the deletion was finished meanwhile."""
        try:
            said = json.loads(self._backend.read(note))
            account_id, owner_space = said["account_id"], said["owner_space"]
            if self._note(account_id, owner_space) == note:
                return account_id, owner_space
        except FileNotFoundError:
            return None
        except (ValueError, LookupError, TypeError, RecursionError, NotTextError):
            pass
        raise InvalidValueError(
            f"{note.key!a} does not say what is being deleted. Fix: remove it, and delete again "
            "what was to be deleted."
        )

    def _note(self, account_id: str, owner_space: str) -> Locator:
        said = f"{Uri(account_id)}\n{owner_space}"
        return self._folder.child(f"{sha256(said.encode()).hexdigest()[:32]}.json")
