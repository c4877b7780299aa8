"""Entries in the config files of an agent: put there, and taken back to the letter."""

import difflib
import glob
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from perdure.agents.entries import (
    AGENTS_MD,
    Wanted,
    WholeFile,
    is_stale,
    program,
    wanted_by,
    with_entries,
    without_entries,
)
from perdure.app.setup import alone_in
from perdure.config import load_config
from perdure.engine.validate.secrets import masked
from perdure.errors import (
    ConcurrentModificationError,
    ConfigError,
    DirectoryInTheWayError,
    InvalidValueError,
    NotTextError,
)
from perdure.files import write_whole

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Installation:
    """What is to be changed in the files of an agent; empty if nothing is."""

    changes: tuple["Change", ...]
    _home: Path
    _receipts: "Receipts"

    def apply(self) -> "Iterator[tuple[Change, Path | None]]":
        """Write each file; yield its change, and the backup if there is one.

        A file that somebody else changed since is left alone (`ConcurrentModificationError`).
        """
        with alone_in(self._home / "installed"):
            for change in self.changes:
                path = change.found.path
                if change.receipt is not None:
                    self._receipts.put(path, change.receipt)
                change.found.replace(change.content)
                if change.receipt is None:
                    self._receipts.forget(path)
                backup = self._receipts.backup(path)
                yield change, backup if backup.exists() else None


def plan_installation(
    agent: str, environ: Mapping[str, str], *, uninstall: bool = False
) -> Installation:
    """Return what installing or uninstalling would change; `ConfigError` if it can't be done."""
    home = load_config(environ).home
    # Each project has an AGENTS.md of its own, and a receipt for it.
    place = f"{agent}/{digest(bytes(Path.cwd()))[:12]}" if agent == AGENTS_MD else agent
    receipts = Receipts(home, place)
    plan = _removed if uninstall else _added
    changes = (plan(receipts, each) for each in wanted_by(agent, environ, program()))
    return Installation(tuple(each for each in changes if each.is_any), home, receipts)


@dataclass(frozen=True, slots=True)
class Change:
    found: "Found"
    content: bytes | None
    """None removes it."""
    receipt: "Receipt | None"
    """None forgets the one that there is."""

    @property
    def is_any(self) -> bool:
        return self.content != self.found.content

    def diff(self) -> str:
        """Return what would change, without the secrets that are in it."""
        name = str(self.found.path)
        old, new = ((each or b"").decode() for each in (self.found.content, self.content))
        lines = difflib.unified_diff(
            masked(old)[0].splitlines(), masked(new)[0].splitlines(), name, name, n=1, lineterm=""
        )
        return "".join(f"{line}\n" for line in lines)


def _added(receipts: "Receipts", wanted: Wanted) -> Change:
    found = Found.at(wanted.path)
    with _about(found.path):
        stale = is_stale(found.text, wanted)
        text = without_entries(found.text, wanted, ()) if stale else found.text
        added = with_entries(text, wanted)
    content = found.encoded(added.text)
    before = receipts.get(found.path)
    made = added.made if before is None else tuple({*added.made, *before.made})
    if before is not None and before.undoes(found.content):
        if not stale:
            return Change(found, found.content, before)
        return Change(found, content, replace(before, after=digest(content), made=made))
    is_exact = not added.was_partly_there and not stale
    receipt = Receipt(found.content, is_exact, digest(content), made)
    unchanged = added.text == found.text
    return Change(found, found.content if unchanged else content, receipt)


def _removed(receipts: "Receipts", wanted: Wanted) -> Change:
    found = Found.at(wanted.path)
    receipt = receipts.get(found.path)
    if receipt is not None and receipt.undoes(found.content):
        return Change(found, receipt.before, None)
    with _about(found.path):
        text = without_entries(found.text, wanted, () if receipt is None else receipt.made)
    content = found.content if text == found.text else found.encoded(text)
    is_all_ours = isinstance(wanted, WholeFile) and not text
    return Change(found, None if is_all_ours else content, None)


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """Let a refusal say which file it is about, and that nothing happened."""
    try:
        yield
    except InvalidValueError as error:
        raise ConfigError(
            f"{str(path)!a} can't be changed: {error}. Nothing was written. Fix: mend it there, "
            "and run this again."
        ) from error


@dataclass(frozen=True, slots=True)
class Receipt:
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


@dataclass(frozen=True, slots=True)
class Found:
    """What a file has; None if there is no file."""

    path: Path
    """Where it really is: a link is followed, and stays one."""
    content: bytes | None

    @classmethod
    def at(cls, path: Path) -> "Found":
        real = Path(os.path.realpath(path))
        if real.is_dir():
            raise DirectoryInTheWayError(
                f"{str(path)!a} is a folder. Fix: move it away; a file has to be there."
            )
        try:
            return cls(real, real.read_bytes())
        except FileNotFoundError:
            return cls(real, None)

    @property
    def text(self) -> str:
        """What it says; a mark of its byte order is left out."""
        return self._decoded().removeprefix(_BOM)

    def encoded(self, text: str) -> bytes:
        return ((_BOM if self._decoded().startswith(_BOM) else "") + text).encode()

    def _decoded(self) -> str:
        try:
            return (self.content or b"").decode()
        except UnicodeDecodeError as error:
            raise NotTextError(
                f"{str(self.path)!a} is no UTF-8 text. Fix: save it as UTF-8; nothing was written."
            ) from error

    def replace(self, content: bytes | None) -> None:
        """Put other content in its place, with the same permissions; None removes it.

        If somebody wrote it since it was read, that is `ConcurrentModificationError`, and stays.
        """
        if content is None:
            self._refuse_changed()
            self.path.unlink()
            return
        for left in self.path.parent.glob(f".{glob.escape(self.path.name)}.{'[0-9a-f]' * 8}"):
            left.unlink(missing_ok=True)  # of somebody who was killed
        write_whole(self.path, content, mode=self._mode(), place=self._place)

    def _place(self, finished: Path, path: Path) -> None:
        self._refuse_changed()
        finished.replace(path)

    def _mode(self) -> int:
        try:
            return stat.S_IMODE(self.path.stat().st_mode)
        except FileNotFoundError:
            return 0o600

    def _refuse_changed(self) -> None:
        if Found.at(self.path).content != self.content:
            raise ConcurrentModificationError(
                f"{str(self.path)!a} was changed by somebody else just now. It was left alone. "
                "Fix: close the agent, and run this again."
            )


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()
