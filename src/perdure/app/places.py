"""How many nodes there are, and what the tiers take on the disk: counted, but not for ever."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from perdure.context.reading import NodeReader
from perdure.errors import ContextError
from perdure.model import RequestContext, Uri
from perdure.model.values import JSON

_MOST_FILES = 20_000
_MOST_RESOURCES = 5_000
_DERIVED = ("index", "vectors", "abstracts", "past", "answers")
"""The folders beside a history that can be thrown away; the last two hold what was paid for."""


class Counted:
    """Counts nodes by their folders, so that none of them is read."""

    def __init__(self, reader: NodeReader, request: RequestContext) -> None:
        self._reader = reader
        self._request = request
        self._account = Uri(request.account_id)

    def facts(self) -> dict[str, JSON]:
        """Return the numbers; resources are counted up to a bound, and it is said if it was met."""
        categories = self._categories()
        resources = self._resources()
        return {
            "account": self._request.account_id,
            "categories": dict(sorted(categories.items())),
            "memories": sum(categories.values()),
            "sessions": len(self._below(self._account.child("sessions"))),
            "resources": min(resources, _MOST_RESOURCES),
            "more_resources": resources > _MOST_RESOURCES,
        }

    def _categories(self) -> Counter[str]:
        counted: Counter[str] = Counter()
        for kind in ("users", "agents"):
            for owner in self._below(self._account.child(kind)):
                for folder in self._below(owner.child("memories")):
                    counted[folder.name] += 1 if folder.is_node else self._count(folder)
                if kind == "agents":
                    counted["skills"] += self._count(owner.child("skills"))
        return +counted

    def _resources(self) -> int:
        nodes = self._reader.walk(self._account.child("resources"))
        return sum(1 for _ in islice(nodes, _MOST_RESOURCES + 1))

    def _count(self, folder: Uri) -> int:
        with suppress(ContextError):
            return len(self._reader.list_children(str(folder), self._request))
        return 0

    def _below(self, folder: Uri) -> list[Uri]:
        with suppress(ContextError):
            return list(map(Uri.parse, self._reader.list_children(str(folder), self._request)))
        return []


def sizes(home: Path, history: Path, source: Path | None, *, exact: bool) -> dict[str, JSON]:
    """Return the bytes of each tier; of one with very many files, the first few, and so it says."""
    derived = [history / name for name in _DERIVED]
    tiers = {
        "source": [] if source is None else [source],
        "history": [history],
        **{path.name: [path] for path in derived},
        "models": [home / "models"],
    }
    told: dict[str, JSON] = {}
    for name, folders in tiers.items():
        passed = frozenset(map(str, derived)) if name == "history" else frozenset()
        size, whole = _size(folders, passed, None if exact else _MOST_FILES)
        told[name] = {"bytes": size, "whole": whole}
    return told


def _size(folders: list[Path], passed: frozenset[str], most: int | None) -> tuple[int, bool]:
    """Return the bytes of the files below some folders, and whether that is all of them."""
    found = (size for folder in folders for size in _files(str(folder), passed))
    seen = list(found if most is None else islice(found, most + 1))
    if most is None or len(seen) <= most:
        return sum(seen), True
    return sum(seen[:most]), False


def _files(folder: str, passed: frozenset[str]) -> Iterator[int]:
    """Yield the bytes of each file below; links are not followed."""
    pending = [folder]
    while pending:
        with suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.path not in passed:
                        pending.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    with suppress(OSError):
                        yield entry.stat(follow_symlinks=False).st_size
