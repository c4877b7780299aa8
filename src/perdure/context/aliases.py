"""Where a user's table of projects is kept, and reading it."""

from perdure.errors import AbsentError
from perdure.model.aliases import FILE, Aliases
from perdure.model.uri import Uri
from perdure.storage import Locator, StorageBackend

_ROOT = Locator("")


def aliases_file(account: str, user: str, root: Locator = _ROOT) -> Locator:
    return root.child(Uri(account, ("users", user)).key, FILE)


def read_aliases(
    backend: StorageBackend, account: str, user: str, root: Locator = _ROOT
) -> Aliases:
    """Return a user's table; `ProjectError` if it can't be understood."""
    file = aliases_file(account, user, root)
    try:
        return Aliases.parse(backend.read(file), file.key)
    except AbsentError:
        return Aliases()
