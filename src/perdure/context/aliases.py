"""Where texts of a user are kept beside the nodes, and reading the table of projects."""

from functools import lru_cache

from perdure.context.files import found_at
from perdure.model.aliases import FILE, Aliases
from perdure.model.uri import Uri
from perdure.storage import Locator, StorageBackend


@lru_cache(maxsize=64)
def user_file(account: str, user: str, name: str = FILE, root: str = "") -> Locator:
    """Return where a text of a user is, below the key of a root."""
    return Locator(root).child(Uri(account, ("users", user)).key, name)


def read_aliases(backend: StorageBackend, account: str, user: str, root: str = "") -> Aliases:
    """Return a user's table; `ProjectError` if it can't be understood."""
    file = user_file(account, user, FILE, root)
    text = found_at(file, backend)
    if text is None:
        return Aliases()
    return Aliases.parse(text if isinstance(text, str) else backend.read(file), file.key)
