"""Entries in the config files of an agent: put there, and taken back to the letter."""

import difflib
import glob
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from perdure.agents.entries import (
    AGENTS_MD,
    AgentFile,
    ChangedSetting,
    JsonFile,
    TomlFile,
    WholeFile,
    files_for,
    is_stale,
    program,
    setting_in,
    with_entries,
    without_entries,
    without_setting,
)
from perdure.app.setup import setup_lock
from perdure.config import load_config
from perdure.dataclass import asdict, dataclass, replace
from perdure.errors import (
    ConfigError,
    DirectoryInTheWayError,
    InvalidValueError,
    NotTextError,
)
from perdure.files import replace_unchanged
from perdure.safety.secrets import masked

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Installation:
    changes: tuple["FileChange", ...]
    _home: Path
    _receipts: "InstallReceipts"
    left: tuple[str, ...] = ()
    """What of the user's is in the place of ours, and stays."""

    def apply(self) -> "Iterator[tuple[FileChange, Path | None]]":
        """Write each file; yield its change, and the backup if there is one.

        A file that was changed since is left alone (`ConcurrentModificationError`).
        """
        with setup_lock(self._home / "installed"):
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
    agent: str,
    environ: Mapping[str, str],
    *,
    uninstall: bool = False,
    choices: Mapping[str, bool] = MappingProxyType({}),
) -> Installation:
    """Return what installing or uninstalling would change; `ConfigError` if it can't be done.

    The choices say which settings of the agent to change, or to change back; those that are not
    named stay as they were chosen before.
    """
    home, receipts = _receipts_of(agent, environ)
    files = files_for(agent, environ, program())
    if uninstall:
        changes = [_removed(receipts, each) for each in files]
    else:
        changes = [_added(receipts, each, choices) for each in files]
    changed = tuple(each for each in changes if each.is_any)
    left = tuple(each.left for each in changes if each.left)
    return Installation(changed, home, receipts, left)


def _receipts_of(agent: str, environ: Mapping[str, str]) -> "tuple[Path, InstallReceipts]":
    home = load_config(environ).home
    # Each project has an AGENTS.md of its own, and a receipt for it.
    place = f"{agent}/{digest(bytes(Path.cwd()))[:12]}" if agent == AGENTS_MD else agent
    return home, InstallReceipts(home, place)


def is_open_choice(agent: str, environ: Mapping[str, str], choice: str) -> bool:
    """Whether a setting of the agent is neither as the choice would make it, nor was chosen."""
    _, receipts = _receipts_of(agent, environ)
    for wanted in files_for(agent, environ, program()):
        offers = wanted.offers if isinstance(wanted, JsonFile | TomlFile) else ()
        for setting in offers:
            if setting.choice == choice:
                found = FileContent.at(wanted.path)
                with _about(found.path):
                    now = setting_in(found.text, wanted, setting.name) or (setting.default,)
                return now != (setting.value,) and receipts.get(found.path) is None
    return False


@dataclass(frozen=True, slots=True)
class FileChange:
    found: "FileContent"
    content: bytes | None
    """None removes it."""
    receipt: "InstallReceipt | None"
    """None forgets the one that there is."""
    left: str = ""
    """What of the user's is in the place of ours, and stays."""

    @property
    def is_any(self) -> bool:
        return self.content != self.found.content

    def diff(self) -> str:
        name = str(self.found.path)
        old, new = ((each or b"").decode() for each in (self.found.content, self.content))
        lines = difflib.unified_diff(
            masked(old)[0].splitlines(), masked(new)[0].splitlines(), name, name, n=1, lineterm=""
        )
        return "".join(f"{line}\n" for line in lines)


def _added(
    receipts: "InstallReceipts", wanted: AgentFile, choices: Mapping[str, bool]
) -> FileChange:
    found = FileContent.at(wanted.path)
    before = receipts.get(found.path)
    wanted = _chosen(wanted, choices, before)
    if before is not None and before.undoes(found.content):
        return _made_again(found, wanted, before)
    made, replaced = (before.made, before.replaced) if before else ((), ())
    with _about(found.path):
        text, stale = found.text, is_stale(found.text, wanted)
        for each in replaced:
            text = text if _is_wanted(wanted, each) else without_setting(text, wanted, each)
        text = without_entries(text, wanted, ()) if stale else text
        added = with_entries(text, wanted)
    content = found.content if added.text == found.text else found.encoded(added.text)
    still = (each for each in replaced if _is_wanted(wanted, each))
    receipt = InstallReceipt(
        found.content,
        not added.was_partly_there and not stale and not replaced,
        digest(content or b""),
        tuple({*added.made, *made}),
        (*still, *added.replaced),
    )
    return FileChange(found, content, receipt, added.left)


def _made_again(found: "FileContent", wanted: AgentFile, before: "InstallReceipt") -> FileChange:
    """Return the change of a file that is as we made it: it is made from what was there before."""
    original = replace(found, content=before.before)
    with _about(found.path):
        added = with_entries(original.text, wanted)
    content = original.encoded(added.text)
    receipt = InstallReceipt(before.before, True, digest(content), added.made, added.replaced)  # noqa: FBT003 - it is exact
    return FileChange(found, content, receipt, added.left)


def _chosen(
    wanted: AgentFile, choices: Mapping[str, bool], before: "InstallReceipt | None"
) -> AgentFile:
    """Return what is wanted with the settings that were chosen, now or before."""
    if not isinstance(wanted, JsonFile | TomlFile):
        return wanted
    known = {each.name for each in before.replaced} if before else set()
    settings = (each for each in wanted.offers if choices.get(each.choice, each.name in known))
    return replace(wanted, settings=tuple(settings))


def _is_wanted(wanted: AgentFile, changed: ChangedSetting) -> bool:
    settings = wanted.settings if isinstance(wanted, JsonFile | TomlFile) else ()
    return any(each.name == changed.name and each.value == changed.value for each in settings)


def _removed(receipts: "InstallReceipts", wanted: AgentFile) -> FileChange:
    found = FileContent.at(wanted.path)
    receipt = receipts.get(found.path)
    if receipt is not None and receipt.undoes(found.content):
        return FileChange(found, receipt.before, None)
    made, replaced = (receipt.made, receipt.replaced) if receipt else ((), ())
    with _about(found.path):
        text = without_entries(found.text, wanted, made)
        for each in replaced:
            text = without_setting(text, wanted, each)
    content = found.content if text == found.text else found.encoded(text)
    is_all_ours = isinstance(wanted, WholeFile) and not text
    return FileChange(found, None if is_all_ours else content, None)


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
class InstallReceipt:
    before: bytes | None
    """What it was; None if it was not there."""
    is_exact: bool
    """Whether nothing of ours was in it then."""
    after: str
    """The hash of what it was then made."""
    made: tuple[tuple[str, ...], ...] = ()
    replaced: tuple[ChangedSetting, ...] = ()

    def undoes(self, content: bytes | None) -> bool:
        """Whether a file is just what we made of it."""
        return self.is_exact and content is not None and digest(content) == self.after


class InstallReceipts:
    """The receipts of one agent, in Perdure's home, each with a backup beside it."""

    def __init__(self, home: Path, agent: str) -> None:
        self._folder = home / "installed" / agent

    def backup(self, path: Path) -> Path:
        return self._folder / f"{path.name}.before"

    def get(self, path: Path) -> InstallReceipt | None:
        try:
            data = json.loads(self._file(path).read_bytes())
            if data["path"] != str(path):  # another folder of the same agent
                return None
            before = self.backup(path).read_bytes() if data["was_there"] else None
            made = tuple(tuple(map(str, each)) for each in data["made"])
            changed = (
                ChangedSetting(str(each["name"]), each["value"], tuple(each["was"]))
                for each in data.get("replaced", ())
            )
            is_exact, after = bool(data["is_exact"]), str(data["after"])
            return InstallReceipt(before, is_exact, after, made, tuple(changed))
        except (OSError, ValueError, KeyError, TypeError):  # then it is taken back entry by entry
            return None

    def put(self, path: Path, receipt: InstallReceipt) -> None:
        data = {
            "path": str(path),
            "was_there": receipt.before is not None,
            "is_exact": receipt.is_exact,
            "after": receipt.after,
            "made": receipt.made,
            "replaced": [asdict(each) for each in receipt.replaced],
        }
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if receipt.before is not None:
            FileContent.at(self.backup(path)).replace(receipt.before)
        FileContent.at(self._file(path)).replace(json.dumps(data, indent=2).encode() + b"\n")

    def forget(self, path: Path) -> None:
        self._file(path).unlink(missing_ok=True)

    def _file(self, path: Path) -> Path:
        return self._folder / f"{path.name}.receipt"


@dataclass(frozen=True, slots=True)
class FileContent:
    """What a file has; None if there is no file."""

    path: Path
    """Where it really is: a link is followed, and stays one."""
    content: bytes | None

    @classmethod
    def at(cls, path: Path) -> "FileContent":
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

        If it was written since it was read, it stays, and this is `ConcurrentModificationError`.
        """
        for left in self.path.parent.glob(f".{glob.escape(self.path.name)}.{'[0-9a-f]' * 8}"):
            left.unlink(missing_ok=True)  # of a process that was killed
        replace_unchanged(self.path, self.content, content)


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()
