"""What is derived of tenants, and how it is forgotten."""

from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import rmtree

from perdure.context.reading import Reach
from perdure.index.contract import KeptIndex
from perdure.model import Uri


class EveryIndex:
    """The indexes of all embedders; those that are there when somebody is to be forgotten."""

    def __init__(self, every: Callable[[], Sequence[KeptIndex]]) -> None:
        self._every = every

    def delete_account_data(self, account_id: str) -> int:
        return sum(index.delete_account_data(account_id) for index in self._every())

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        return sum(index.delete_by_owner_space(account_id, owner_space) for index in self._every())


class AbstractsData:
    """What was written down of folders. A session's goes when nobody has the session any more."""

    def __init__(self, folder: Path, reach: Reach) -> None:
        self._folder = folder
        self._reach = reach

    def delete_account_data(self, account_id: str) -> int:
        return self._remove(Uri(account_id))

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        kind, _, owner = owner_space.partition(":")
        sessions = self._folder.joinpath(Uri(account_id, ("sessions",)).key).glob("*")
        keys = [path.relative_to(self._folder).as_posix() for path in sessions]
        places = filter(None, map(Uri.of_key, keys))
        gone = [each for each in places if self._reach.session_owner(each) in {None, owner_space}]
        return sum(map(self._remove, (Uri(account_id, (f"{kind}s", owner)), *gone)))

    def _remove(self, place: Uri) -> int:
        """Remove what is below a folder; return 1 if there was something."""
        path = self._folder / place.key
        there = path.exists()
        rmtree(path, ignore_errors=True)
        return int(there)


class PastData:
    """The indexes of the past, which go wholly when somebody is to be forgotten."""

    def __init__(self, folder: Path, let_go: Callable[[], None]) -> None:
        self._folder = folder
        self._let_go = let_go

    def delete_account_data(self, account_id: str) -> int:
        del account_id
        return self._forget()

    def delete_by_owner_space(self, account_id: str, owner_space: str) -> int:
        del account_id, owner_space
        return self._forget()

    def _forget(self) -> int:
        self._let_go()
        rmtree(self._folder, ignore_errors=True)
        return 0
