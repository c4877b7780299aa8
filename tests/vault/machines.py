"""Two machines with one vault, and a sync client between them that is late and out of order."""

import hashlib
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import perdure
from perdure import Memory, RecallResult

MARK = ".sync-conflict-20260302-101500-ABCDEF{number}"


class SyncClient:
    """Brings two folders together, one file at a time, in any order, as sync clients do.

    It knows what both had when they last agreed. What only one side changed is copied; what both
    changed stays on one side, and the other text becomes a conflict copy beside it. It skips
    dot-files, copies a file again for no reason, and touches files that nobody changed.
    """

    def __init__(self, one: Path, other: Path, random: Random) -> None:
        self._sides = (one, other)
        self._random = random
        self._agreed: dict[str, str] = {}
        self._copies = 0

    def step(self) -> bool:
        """Bring one file along; False if there is nothing to do."""
        waiting = self._waiting()
        if not waiting:
            return False
        self._settle(self._random.choice(waiting))
        return True

    def disturb(self) -> None:
        """Write a file again as it is, or only set its time."""
        side = self._random.choice(self._sides)
        paths = sorted(_texts(side))
        if not paths:
            return
        path = side / self._random.choice(paths)
        if self._random.random() < 0.5:
            _write(path, path.read_bytes())
        os.utime(path, (self._random.randrange(10**9), self._random.randrange(10**9)))

    def finish(self) -> None:
        for _ in range(1_000):
            if not self.step():
                return
        raise AssertionError("the two folders do not come together")

    def _waiting(self) -> list[str]:
        one, other = map(_texts, self._sides)
        paths = one.keys() | other.keys() | self._agreed.keys()
        return sorted(
            path for path in paths if not one.get(path) == other.get(path) == self._agreed.get(path)
        )

    def _settle(self, path: str) -> None:
        one, other = (_texts(side).get(path) for side in self._sides)
        agreed = self._agreed.get(path)
        if one == other:
            self._agree(path, one)
        elif one == agreed:
            self._copy(path, self._sides[1], self._sides[0])
        elif other == agreed:
            self._copy(path, self._sides[0], self._sides[1])
        else:
            self._conflict(path, one, other)

    def _conflict(self, path: str, one: str | None, other: str | None) -> None:
        """Both changed it. A text wins over a deletion; of two texts, one becomes a copy."""
        winner, loser = self._sides if self._random.random() < 0.5 else self._sides[::-1]
        if one is None or other is None:
            winner = self._sides[0] if other is None else self._sides[1]
            loser = self._sides[1] if other is None else self._sides[0]
        else:
            self._copies += 1
            stem = path.removesuffix(".md")
            copy = f"{stem}{MARK.format(number=self._copies)}.md"
            shutil.copyfile(loser / path, loser / copy)
        self._copy(path, winner, loser)

    def _copy(self, path: str, source: Path, target: Path) -> None:
        if (source / path).exists():
            _write(target / path, (source / path).read_bytes())
        else:
            (target / path).unlink(missing_ok=True)
        self._agree(path, _texts(source).get(path))

    def _agree(self, path: str, digest: str | None) -> None:
        if digest is None:
            self._agreed.pop(path, None)
        else:
            self._agreed[path] = digest


def _write(path: Path, content: bytes) -> None:
    """Write as sync clients do: beside it, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.part")
    beside.write_bytes(content)
    beside.replace(path)


def _texts(folder: Path) -> dict[str, str]:
    """Return the files below a folder with their hashes; dot-files are not synced."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }


@dataclass
class Machine:
    """A home, its copy of the vault, and the memory on it."""

    folder: Path
    memory: Memory = field(init=False)

    def __post_init__(self) -> None:
        self.vault.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(exist_ok=True)
        (self.home / "config.toml").write_text(
            '[storage]\nbackend = "vault"\nlayout = "notes"\n\n'
            f'[storage.vault]\npath = "{self.vault}"\n'
        )
        self.memory = perdure.open(home=self.home)

    @property
    def vault(self) -> Path:
        return self.folder / "vault"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def notes(self) -> list[Path]:
        """Return the notes in the vault that are not ours and not conflict copies."""
        return sorted(p for p in self.vault.glob("*.md") if "sync-conflict" not in p.name)

    def memories(self) -> list[Path]:
        found = (self.vault / "Perdure" / "Preferences").glob("*.md")
        return sorted(p for p in found if "sync-conflict" not in p.name)

    def recall(self, token: str) -> RecallResult:
        return self.memory.recall(token, top_k=20)

    def holders(self, token: str) -> list[Path]:
        """Return the files that have a word, but no conflict copies."""
        copies = {self.vault / each.path for each in self.memory.conflicts()}
        return [
            path
            for path in self.vault.rglob("*.md")
            if path not in copies
            and "sync-conflict" not in path.name
            and token in path.read_text(encoding="utf-8")
        ]

    def everything(self) -> str:
        """Return all that is in the vault, and all that its history has."""
        texts = [path.read_text(encoding="utf-8") for path in self.vault.rglob("*.md")]
        log = self.memory.log
        keys = {event.key for event in log.entries()}
        versions = (version for key in keys for version in log.versions(key))
        return "\n".join([*texts, *(log.text(one) for one in versions if not one.unbound)])
