"""Install Perdure into the config files of an agent, and uninstall it to the byte."""

import difflib
import glob
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from perdure.agents.clients import AGENTS_MD, files_for, program
from perdure.agents.entries import AgentFile, ChangedSetting, JsonFile, TomlFile, WholeFile
from perdure.app.setup import setup_lock
from perdure.config import load_config
from perdure.dataclass import asdict, dataclass, replace
from perdure.errors import ConfigError, InvalidValueError, NotTextError, PathIsDirectoryError
from perdure.files import replace_unchanged
from perdure.safety.secrets import mask

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Installation:
    changes: tuple["FileChange", ...]
    _home: Path
    _receipts: "InstallReceipts"
    left: tuple[str, ...] = ()
    """What of the user's has the place of an entry, and stays."""

    def apply(self) -> "Iterator[tuple[FileChange, Path | None]]":
        """Write each file; yield its change, and the backup if there is one.

        Raises `ConcurrentModificationError` for a file that was changed since the plan.
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
    """Return what installing or uninstalling would change; raises `ConfigError` if it can't.

    The choices name the settings of the agent to change or to restore; others stay as chosen
    before.
    """
    home, receipts = _receipts_of(agent, environ)
    files = files_for(agent, environ, program())
    if uninstall:
        changes = [_plan_removal(receipts, each) for each in files]
    else:
        changes = [_plan_addition(receipts, each, choices) for each in files]
    changed = tuple(each for each in changes if each.is_any)
    left = tuple(each.left for each in changes if each.left)
    return Installation(changed, home, receipts, left)


def _receipts_of(agent: str, environ: Mapping[str, str]) -> "tuple[Path, InstallReceipts]":
    home = load_config(environ).home
    # Each project has an AGENTS.md of its own, and a receipt for it.
    place = f"{agent}/{digest(bytes(Path.cwd()))[:12]}" if agent == AGENTS_MD else agent
    return home, InstallReceipts(home, place)


def is_open_choice(agent: str, environ: Mapping[str, str], choice: str) -> bool:
    """Whether a setting differs from the choice, and its user has not decided about it."""
    _, receipts = _receipts_of(agent, environ)
    for file in files_for(agent, environ, program()):
        for setting in file.offers:
            if setting.choice == choice:
                found = FileContent.at(file.path)
                with _naming(found.path):
                    now = file.setting(found.text, setting.name) or (setting.default,)
                return now != (setting.value,) and receipts.get(found.path) is None
    return False


@dataclass(frozen=True, slots=True)
class FileChange:
    found: "FileContent"
    content: bytes | None
    """None removes the file."""
    receipt: "InstallReceipt | None"
    """None removes the receipt."""
    left: str = ""
    """What of the user's has the place of an entry, and stays."""

    @property
    def is_any(self) -> bool:
        return self.content != self.found.content

    def diff(self) -> str:
        name = str(self.found.path)
        old, new = ((each or b"").decode() for each in (self.found.content, self.content))
        lines = difflib.unified_diff(
            mask(old)[0].splitlines(), mask(new)[0].splitlines(), name, name, n=1, lineterm=""
        )
        return "".join(f"{line}\n" for line in lines)


def _plan_addition(
    receipts: "InstallReceipts", file: AgentFile, choices: Mapping[str, bool]
) -> FileChange:
    found = FileContent.at(file.path)
    before = receipts.get(found.path)
    file = _with_choices(file, choices, before)
    if before is not None and before.undoes(found.content):
        return _plan_again(found, file, before)
    created, replaced = (before.created, before.replaced) if before else ((), ())
    obsolete = [each for each in replaced if not _is_wanted(file, each)]
    with _naming(found.path):
        text, stale = found.text, file.is_stale(found.text)
        text = _restore(file, text, obsolete)
        added = file.add(file.remove(text) if stale else text)
    content = found.content if added.text == found.text else found.encoded(added.text)
    still = (each for each in replaced if each not in obsolete)
    receipt = InstallReceipt(
        found.content,
        not added.was_partly_there and not stale and not replaced,
        digest(content or b""),
        tuple({*added.created, *created}),
        (*still, *added.replaced),
    )
    return FileChange(found, content, receipt, added.left)


def _plan_again(found: "FileContent", file: AgentFile, before: "InstallReceipt") -> FileChange:
    """Plan a file that is as we left it: start from its content before the installation."""
    original = replace(found, content=before.before)
    with _naming(found.path):
        added = file.add(original.text)
    content = original.encoded(added.text)
    receipt = InstallReceipt(before.before, True, digest(content), added.created, added.replaced)  # noqa: FBT003 - it is exact
    return FileChange(found, content, receipt, added.left)


def _with_choices(
    file: AgentFile, choices: Mapping[str, bool], before: "InstallReceipt | None"
) -> AgentFile:
    """Return a file with the settings that were chosen, now or before."""
    if not isinstance(file, JsonFile | TomlFile):
        return file
    known = {each.name for each in before.replaced} if before else set()
    settings = (each for each in file.offers if choices.get(each.choice, each.name in known))
    return replace(file, settings=tuple(settings))


def _is_wanted(file: AgentFile, changed: ChangedSetting) -> bool:
    return any(each.name == changed.name and each.value == changed.value for each in file.settings)


def _restore(file: AgentFile, text: str, settings: Iterable[ChangedSetting]) -> str:
    for each in settings:
        text = file.restore(text, each)
    return text


def _plan_removal(receipts: "InstallReceipts", file: AgentFile) -> FileChange:
    found = FileContent.at(file.path)
    receipt = receipts.get(found.path)
    if receipt is not None and receipt.undoes(found.content):
        return FileChange(found, receipt.before, None)
    created, replaced = (receipt.created, receipt.replaced) if receipt else ((), ())
    with _naming(found.path):
        text = _restore(file, file.remove(found.text, created), replaced)
    content = found.content if text == found.text else found.encoded(text)
    is_all_ours = isinstance(file, WholeFile) and not text
    return FileChange(found, None if is_all_ours else content, None)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the file to an error, and that nothing was written."""
    try:
        yield
    except InvalidValueError as error:
        raise ConfigError(
            f"{str(path)!a} can't be changed: {error}. Nothing was written. Fix: correct the file, "
            "and run this again."
        ) from error


@dataclass(frozen=True, slots=True)
class InstallReceipt:
    before: bytes | None
    """The content before; None if the file was absent."""
    is_exact: bool
    """Whether nothing of ours was in it before."""
    after: str
    """The hash of the content that was written."""
    created: tuple[tuple[str, ...], ...] = ()
    replaced: tuple[ChangedSetting, ...] = ()

    def undoes(self, content: bytes | None) -> bool:
        """Whether a file has exactly the content that was written, so `before` restores it."""
        return self.is_exact and content is not None and digest(content) == self.after


class InstallReceipts:
    """The receipts of one agent in Perdure's home, each with a backup beside it."""

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
            created = tuple(tuple(map(str, each)) for each in data["made"])
            changed = (
                ChangedSetting(str(each["name"]), each["value"], tuple(each["was"]))
                for each in data.get("replaced", ())
            )
            is_exact, after = bool(data["is_exact"]), str(data["after"])
            return InstallReceipt(before, is_exact, after, created, tuple(changed))
        except (OSError, ValueError, KeyError, TypeError):  # it is uninstalled entry by entry
            return None

    def put(self, path: Path, receipt: InstallReceipt) -> None:
        data = {
            "path": str(path),
            "was_there": receipt.before is not None,
            "is_exact": receipt.is_exact,
            "after": receipt.after,
            "made": receipt.created,
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
    """The content of a file; None if it is absent."""

    path: Path
    """The real path: a link is followed, and stays a link."""
    content: bytes | None

    @classmethod
    def at(cls, path: Path) -> "FileContent":
        real = Path(os.path.realpath(path))
        if real.is_dir():
            raise PathIsDirectoryError(f"{str(path)!a} is a folder, not a file. Fix: move it away.")
        try:
            return cls(real, real.read_bytes())
        except FileNotFoundError:
            return cls(real, None)

    @property
    def text(self) -> str:
        """The text without a byte order mark."""
        return self._decoded().removeprefix(_BOM)

    def encoded(self, text: str) -> bytes:
        return ((_BOM if self._decoded().startswith(_BOM) else "") + text).encode()

    def _decoded(self) -> str:
        try:
            return (self.content or b"").decode()
        except UnicodeDecodeError as error:
            raise NotTextError(
                f"{str(self.path)!a} is not UTF-8. Fix: save it as UTF-8; nothing was written."
            ) from error

    def replace(self, content: bytes | None) -> None:
        """Replace the content and keep the permissions; None removes the file.

        Raises `ConcurrentModificationError` if the file was changed since it was read.
        """
        for left in self.path.parent.glob(f".{glob.escape(self.path.name)}.{'[0-9a-f]' * 8}"):
            left.unlink(missing_ok=True)  # a killed process left it
        replace_unchanged(self.path, self.content, content)


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()
