"""The deletion of a tenant's nodes, and the notes of deletions under way."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import islice

from perdure.context.node_files import META, OWNER
from perdure.context.reader import Reach
from perdure.errors import (
    AccessDeniedError,
    InvalidValueError,
    NotTextError,
    PerdureError,
)
from perdure.model import ContextNode, Uri
from perdure.storage import Locator, StorageBackend, TransactionalBackend
from perdure.storage.contract import is_directory

_FOLDER = ".deleting"
_ROOT = Locator("")
_BATCH = 250


class Deletions:
    """Notes of deletions under way; what a note names can't be written while the note exists."""

    def __init__(self, backend: StorageBackend) -> None:
        self._backend = backend
        self._folder = _ROOT.child("accounts", _FOLDER)

    def begin(self, account_id: str, owner_space: str) -> None:
        fields = {"account_id": account_id, "owner_space": owner_space}
        self._backend.write(self._note(account_id, owner_space), json.dumps(fields) + "\n")

    def is_begun(self, account_id: str, owner_space: str) -> bool:
        return self._backend.exists(self._note(account_id, owner_space))

    def end(self, account_id: str, owner_space: str) -> None:
        with suppress(FileNotFoundError):  # another process ended it too
            self._backend.remove(self._note(account_id, owner_space))
        with suppress(PerdureError, OSError):  # others are under way
            self._backend.remove(self._folder)

    def begun(self) -> list[tuple[str, str]]:
        """Return account and owner space of each; the latter is empty for a whole account."""
        notes = map(self._parse, self._backend.list(self._folder))
        return [note for note in notes if note is not None]

    def refuse(self, account_id: str, owner_space: str = "") -> None:
        """Raise `AccessDeniedError` if an account, or an owner in it, is being deleted."""
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
        """Raise `AccessDeniedError` if the owner of one of these nodes is being deleted."""
        if self._backend.exists(self._folder):
            for node in nodes:
                self.refuse(node.account_id, node.owner_space)

    def _parse(self, note: Locator) -> tuple[str, str] | None:
        """Return account and owner space of a note; None if the deletion ended meanwhile."""
        try:
            fields = json.loads(self._backend.read(note))
            account_id, owner_space = fields["account_id"], fields["owner_space"]
            if self._note(account_id, owner_space) == note:
                return account_id, owner_space
        except FileNotFoundError:
            return None
        except (ValueError, LookupError, TypeError, RecursionError, NotTextError):
            pass
        raise InvalidValueError(
            f"{note.key!a} does not name what is being deleted. Fix: remove it, and delete again "
            "what was to be deleted."
        )

    def _note(self, account_id: str, owner_space: str) -> Locator:
        name = sha256(f"{Uri(account_id)}\n{owner_space}".encode()).hexdigest()[:32]
        return self._folder.child(f"{name}.json")


class TenantNodes:
    """Deletes all texts of an account, or of one user or agent; repeating it is harmless."""

    def __init__(self, backend: TransactionalBackend) -> None:
        self._backend = backend
        self._reach = Reach(backend)

    def delete_account_data(self, account_id: str) -> int:
        return self._remove(_ROOT.child(Uri(account_id).key))

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        kind, _, owner = owner_space.partition(":")
        own = Uri(account_id, (f"{kind}s", owner))
        removed = self._remove(_ROOT.child(own.key))
        return removed + sum(map(self._remove, self._sessions(account_id, owner_space)))

    def _sessions(self, account_id: str, owner_space: str) -> list[Locator]:
        """Return the folders of the sessions that belong to an owner, and those left empty."""
        every = self._backend.list(_ROOT.child(Uri(account_id, ("sessions",)).key))
        return [
            folder
            for folder in every
            if (place := Uri.of_key(folder.key)) is not None
            and (self._reach.session_owner(place) == owner_space or not self._backend.list(folder))
        ]

    def _remove(self, folder: Locator) -> int:
        """Remove every text below a folder; return the number of nodes among them.

        The owner file of a session goes last: without it, an interrupted deletion could not resume.
        """
        owner = folder.child(OWNER)
        texts = (text for text in self._texts(folder) if text != owner)
        removed = 0
        while batch := list(islice(texts, _BATCH)):
            self._backend.commit(dict.fromkeys(batch))
            removed += sum(locator.name == META for locator in batch)
        self._remove_folders(folder)
        if self._backend.exists(owner):
            self._backend.commit({owner: None})
            self._remove_folders(folder)
        return removed

    def _texts(self, folder: Locator) -> Iterator[Locator]:
        for child in self._backend.list(folder):
            if is_directory(self._backend, child):
                yield from self._texts(child)
            else:
                yield child

    def _remove_folders(self, folder: Locator) -> None:
        for child in self._backend.list(folder):
            self._remove_folders(child)
        with suppress(PerdureError, OSError):  # what others put there since keeps it
            if is_directory(self._backend, folder):
                self._backend.remove(folder)
