"""Changes to a config file that leave all else in it as it is, and are whole or not at all."""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, flock
from pathlib import Path
from secrets import token_hex

from perdure.config import ConfigFile
from perdure.errors import ConcurrentModificationError, ConfigError
from perdure.faults import explain

Place = tuple[str, ...]
Entries = Mapping[Place, str]
"""Texts by their places: table, table in it, key."""

_ONLY_US = 0o700
_VALUE = r"""(\s*=\s*)("[^"\\]*"|'[^']*')"""


@dataclass(frozen=True, slots=True)
class Spliced:
    """A config file with some entries changed."""

    text: str
    changed: tuple[Place, ...]


def otherwise(file: ConfigFile, entries: Entries) -> list[Place]:
    """Return the entries that the file has, with other values."""
    said = file.parse()
    return [at for at, value in entries.items() if _said(said, at) not in {None, value}]


def spliced(file: ConfigFile, entries: Entries) -> Spliced:
    """Return the file with these entries; every other line, and every comment, stays.

    `ConfigError` if it is written in a way that nobody can splice.
    """
    text, changed = file.text, []
    for place, value in entries.items():
        before = ConfigFile(file.path, text)
        if _said(before.parse(), place) != value:
            text = _with(before, place, value)
            _refuse_harm(before, text, place, value)
            changed.append(place)
    return Spliced(text, tuple(changed))


def _with(file: ConfigFile, place: Place, value: str) -> str:
    end = "\r\n" if "\r\n" in file.text else "\n"
    lines = file.text.split(end)
    *tables, key = place
    at = file.line_of(place)
    if at is not None:
        lines[at - 1] = _replaced(lines[at - 1], key, value)
        return end.join(lines)
    entry = f"{key} = {_quoted(value)}"
    head = f"[{'.'.join(tables)}]"
    for number, line in enumerate(lines):
        if line.partition("#")[0].replace(" ", "").strip() == head:
            return end.join([*lines[: number + 1], entry, *lines[number + 1 :]])
    above = file.text.rstrip()
    return f"{above}{end * 2 if above else ''}{head}{end}{entry}{end}"


def _replaced(line: str, key: str, value: str) -> str:
    found = re.search(rf"""(["']?){re.escape(key)}\1{_VALUE}""", line)
    if found is None:
        return line
    return line[: found.start(3)] + _quoted(value) + line[found.end(3) :]


def _quoted(value: str) -> str:
    """Return a text as TOML has it, in which JSON's way of quoting is one."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _refuse_harm(before: ConfigFile, text: str, place: Place, value: str) -> None:
    """Look whether what was spliced says what it should, and nothing else anew."""
    with suppress(tomllib.TOMLDecodeError):
        if tomllib.loads(text) == _set(before.parse(), place, value):
            return
    *tables, key = place
    raise ConfigError(
        f"{before.path} is written in a way that can't be changed for you. "
        f"Fix: set {key} = {_quoted(value)} in [{'.'.join(tables)}] yourself."
    )


def _said(tables: object, place: Sequence[str]) -> object:
    for name in place:
        tables = tables.get(name) if isinstance(tables, dict) else None
    return tables


def _set(tables: dict[str, object], place: Place, value: str) -> dict[str, object]:
    name, *rest = place
    if not rest:
        return {**tables, name: value}
    below = tables.get(name, {})
    return {**tables, name: _set(below if isinstance(below, dict) else {}, tuple(rest), value)}


# ---------------------------------------------------------------- the disk
@contextmanager
def alone_in(home: Path) -> Iterator[None]:
    """Let one process at a time set up a home, which is made if it is not there."""
    descriptor = None
    try:
        home.mkdir(mode=_ONLY_US, parents=True, exist_ok=True)
        descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        flock(descriptor, LOCK_EX)
    except OSError as error:
        if descriptor is not None:
            os.close(descriptor)
        raise explain(error, str(home.parent), home.name) from error
    try:
        yield
    finally:
        os.close(descriptor)


def put(file: ConfigFile, text: str) -> None:
    """Make `text` the config file, whole and durably, if it is still as it was read.

    A link is followed: some keep all their config files in one place, and link to them.
    """
    path = Path(os.path.realpath(file.path))
    beside = path.with_name(f".{path.name}.{token_hex(8)}")
    try:
        try:
            _write(beside, text.encode(), _mode(path))
            _put_in_place(beside, path, file)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise explain(error, str(path.parent), path.name) from error


def _put_in_place(beside: Path, path: Path, file: ConfigFile) -> None:
    is_as_read = (path.read_bytes() if path.exists() else b"") == file.text.encode()
    if not is_as_read:
        raise _edited(path)
    if path.exists():
        beside.replace(path)
    else:
        try:
            os.link(beside, path)  # which never takes the place of what came meanwhile
        except FileExistsError:
            raise _edited(path) from None
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _write(path: Path, content: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return 0o600


def _edited(path: Path) -> ConcurrentModificationError:
    return ConcurrentModificationError(
        f"{path} was changed by somebody else just now, and is left as it is. Fix: try again."
    )
