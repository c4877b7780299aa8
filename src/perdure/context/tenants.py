"""The nodes of a tenant, as something that can be deleted."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from perdure.context.files import META, OWNER
from perdure.context.reach import Reach
from perdure.errors import PerdureError
from perdure.model import Uri
from perdure.storage import Locator, TransactionalBackend
from perdure.storage.contract import is_directory

_BATCH = 250
_ROOT = Locator("")


class NodeData:
    """Removes all texts of an account, or of one user or agent in it.

    Others may remove the same at the same time, and whoever died half-way is followed by the next:
    what is gone is gone.
    """

    def __init__(self, backend: TransactionalBackend, root: Locator = _ROOT) -> None:
        self._backend = backend
        self._root = root
        self._reach = Reach(backend, root)

    def delete_account_data(self, account_id: str) -> int:
        return self._remove(self._root.child(Uri(account_id).key))

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        kind, _, owner = owner_space.partition(":")
        own = Uri(account_id, (f"{kind}s", owner))
        removed = self._remove(self._root.child(own.key))
        return removed + sum(map(self._remove, self._sessions(account_id, owner_space)))

    def _sessions(self, account_id: str, owner_space: str) -> list[Locator]:
        """Return the folders of the sessions that belong to an owner, and those left empty."""
        every = self._backend.list(self._root.child(Uri(account_id, ("sessions",)).key))
        return [
            folder
            for folder in every
            if (place := Uri.of_key(self._below_root(folder))) is not None
            and (self._reach.session_owner(place) == owner_space or not self._backend.list(folder))
        ]

    def _below_root(self, locator: Locator) -> str:
        return locator.key[len(self._root.key) + 1 :] if self._root.key else locator.key

    def _remove(self, folder: Locator) -> int:
        """Remove every text below a folder; return how many nodes that were.

        Whose a session is goes last, or nobody would know it who has to go on with the rest.
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
