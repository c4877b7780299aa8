"""What was done to the files of an agent, so that it can be taken back to the letter."""

import json
from dataclasses import dataclass
from pathlib import Path

from perdure.surfaces.install.files import Found, digest


@dataclass(frozen=True, slots=True)
class Receipt:
    """What we made of one file."""

    before: bytes | None
    """What it was; None if it was not there."""
    is_exact: bool
    """Whether nothing of ours was in it then."""
    after: str
    """The hash of what it was then made."""
    made: tuple[tuple[str, ...], ...] = ()

    def undoes(self, content: bytes | None) -> bool:
        """Whether a file is just what we made of it."""
        return self.is_exact and content is not None and digest(content) == self.after


class Receipts:
    """The receipts of one agent, in Perdure's home, each with a backup beside it."""

    def __init__(self, home: Path, agent: str) -> None:
        self._folder = home / "installed" / agent

    def backup(self, path: Path) -> Path:
        return self._folder / f"{path.name}.before"

    def get(self, path: Path) -> Receipt | None:
        try:
            said = json.loads(self._file(path).read_bytes())
            if said["path"] != str(path):  # another folder of the same agent
                return None
            before = self.backup(path).read_bytes() if said["was_there"] else None
            made = tuple(tuple(map(str, each)) for each in said["made"])
            return Receipt(before, bool(said["is_exact"]), str(said["after"]), made)
        except (OSError, ValueError, KeyError, TypeError):  # then it is taken back entry by entry
            return None

    def put(self, path: Path, receipt: Receipt) -> None:
        """Keep a receipt, before anything is done."""
        said = {
            "path": str(path),
            "was_there": receipt.before is not None,
            "is_exact": receipt.is_exact,
            "after": receipt.after,
            "made": receipt.made,
        }
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if receipt.before is not None:
            Found.at(self.backup(path)).replace(receipt.before)
        Found.at(self._file(path)).replace(json.dumps(said, indent=2).encode() + b"\n")

    def forget(self, path: Path) -> None:
        self._file(path).unlink(missing_ok=True)

    def _file(self, path: Path) -> Path:
        return self._folder / f"{path.name}.receipt"
