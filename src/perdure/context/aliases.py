"""Where texts of a user are kept beside the nodes, and reading the table of projects."""

from functools import lru_cache

from perdure.errors import AbsentError
from perdure.model.aliases import FILE, Aliases
from perdure.model.uri import Uri
from perdure.storage import Locator, StorageBackend
from perdure.storage.contract import Layout


@lru_cache(maxsize=64)
def user_file(account: str, user: str, name: str = FILE) -> Locator:
    """Return where a text of a user is."""
    return Locator(Uri(account, ("users", user)).key).child(name)


def read_aliases(backend: StorageBackend, account: str, user: str) -> Aliases:
    """Return a user's table; `ProjectError` if it can't be understood."""
    file = user_file(account, user)
    inner = getattr(backend, "inner", backend)
    if isinstance(inner, Layout) and inner.text_at(file.key) is None:
        return Aliases()  # without asking whether a folder is there
    try:
        return Aliases.parse(backend.read(file), file.key)
    except AbsentError:
        return Aliases()
