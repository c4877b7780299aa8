"""Conversation files: messages as JSON lines, or as one JSON list."""

import codecs
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

from perdure.dataclass import dataclass
from perdure.errors import (
    InvalidUriError,
    InvalidValueError,
    UnreadableSourceError,
    storage_read_error,
)
from perdure.model import slugify
from perdure.model.messages import read_messages
from perdure.model.transcript import Message
from perdure.model.uri import check_id
from perdure.transfer.json_records import MalformedJson, json_lines

MOST_BYTES = 256_000_000
_KEYS = ("role", "content", "name", "time")
_SDK_KEYS = frozenset({"type", "tool_calls", "tool_call_id", "function_call", "refusal"})
_PROGRAMS = {
    "sessionId": "Claude Code",
    "leafUuid": "Claude Code",
    "payload": "Codex",
    "mapping": "ChatGPT",
    "chat_messages": "Claude",
}
"""Keys of objects in the files of other programs; no message has one."""
_DIGEST = 8
_SLUG = 60
_FIX = "write it as one JSON object with role and content"
_LINE_BREAK = re.compile(r"\s*\n\s*")
_PLACE = re.compile(r": line 1 column (\d+) \(char \d+\)$")
"""The position that Python appends to an error in a line that is parsed alone."""


class MessageFault(NamedTuple):
    where: str
    what: str
    """The problem, with its fix."""
    is_passable: bool = False
    """Whether `lenient` ignores it."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True)
class ConversationFile:
    """The messages of a file. If it has faults, messages are missing."""

    messages: tuple[dict[str, object], ...]
    faults: tuple[MessageFault, ...]
    left_out: tuple[str, ...] = ()
    """The unknown keys that were ignored."""


def read_conversation(source: Path | BinaryIO, *, lenient: bool = False) -> ConversationFile:
    """Read messages from a file or from stdin, and report malformed ones as faults.

    Unknown keys, and contents of SDK messages that can't be stored, are faults, unless `lenient`
    ignores them. Raises `UnreadableSourceError` for a file of another program, and `StorageError`
    if the file can't be read.
    """
    name = ascii(str(source)) if isinstance(source, Path) else "the text on stdin"
    content = _bytes_of(source, name)
    messages: list[dict[str, object]] = []
    faults: list[MessageFault] = []
    left_out: set[str] = set()
    for where, found in _items(content, name):
        if _is_sdks(found):
            _refuse_foreign(found, name)
            message, what, is_passable = found, "" if lenient else _unstorable(found), True
        else:
            message = _known(found, left_out) if lenient else found
            what, is_passable = _fault(message)
        if not what and isinstance(message, dict):
            messages.append(message)
            continue
        _refuse_foreign(found, name)
        faults.append(MessageFault(where, what, is_passable))
    return ConversationFile(tuple(messages), tuple(faults), tuple(sorted(left_out)))


def session_id_for(path: str) -> str:
    """Return the session id of a file: its name, or a similar id if that is not a valid one."""
    name = Path(path).name
    stem = name.removesuffix(".jsonl").removesuffix(".json") or name
    try:
        if stem.isprintable():
            return check_id(stem, "session")
    except InvalidUriError:
        pass
    digest = sha256(name.encode(errors="surrogateescape")).hexdigest()[:_DIGEST]
    return f"{slugify(stem)[:_SLUG].strip('-')}-{digest}"


def _bytes_of(source: Path | BinaryIO, name: str) -> bytes:
    try:
        if isinstance(source, Path):
            with source.open("rb") as file:
                content = file.read(MOST_BYTES + 1)
        else:
            content = source.read(MOST_BYTES + 1)
    except OSError as error:
        place = source if isinstance(source, Path) else Path("-")
        raise storage_read_error(error, str(place.parent), place.name) from error
    if len(content) > MOST_BYTES:
        raise UnreadableSourceError(
            f"{name} has more than {MOST_BYTES:,} bytes. Fix: split it into several sessions."
        )
    return content.removeprefix(codecs.BOM_UTF8)


def _refuse_foreign(found: object, name: str) -> None:
    programs = [
        program for key, program in _PROGRAMS.items() if isinstance(found, dict) and key in found
    ]
    if programs:
        raise UnreadableSourceError(
            f"{name} looks like a file of {programs[0]}, not like messages. "
            "Fix: import it with `perdure import`."
        )


def _items(content: bytes, name: str) -> Iterator[tuple[str, object]]:
    """Yield each value that should be a message, with its place; a list must be complete."""
    if content.lstrip()[:1] == b"[":
        for number, value in enumerate(_listed(content, name), start=1):
            yield f"message {number}", value
        return
    for found in json_lines(io.BytesIO(content)):
        value = found if isinstance(found, MalformedJson) else found.value
        yield f"line {found.number}", value


def _listed(content: bytes, name: str) -> Iterable[object]:
    try:
        listed: list[object] = json.loads(content.decode())
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        what = f"line {number} is not UTF-8"
    except RecursionError:
        what = "it is nested too deep"
    except json.JSONDecodeError as error:
        what = f"line {error.lineno} is not JSON: {error.msg}"
    except ValueError:
        what = "it has a number that is too long"
    else:
        return listed
    raise UnreadableSourceError(f"{name} is not a list of messages: {what}. Fix: correct it.")


def _known(found: object, left_out: set[str]) -> object:
    if not isinstance(found, dict):
        return found
    left_out.update(str(key) for key in found.keys() - set(_KEYS))
    return {key: value for key, value in found.items() if key in _KEYS}


def _is_sdks(found: object) -> bool:
    """Whether a message has more than role and content, as those of OpenAI and Anthropic."""
    if not isinstance(found, Mapping):
        return False
    content = found.get("content", "")
    return isinstance(content, list) or content is None or bool(found.keys() & _SDK_KEYS)


def _unstorable(found: object) -> str:
    """Return what can't be stored of an SDK message; empty if all can."""
    left_out = [f"{each.what}: {each.why}" for each in read_messages([found]).left_out]
    if not left_out:
        return ""
    return f"{'; '.join(left_out)}. Fix: remove it"


def _fault(found: object) -> tuple[str, bool]:
    if isinstance(found, MalformedJson):
        what = _PLACE.sub(r" at column \1", found.what)
        return f"{what}. Fix: {_FIX}.", False
    if isinstance(found, Mapping):
        unknown = found.keys() - set(_KEYS)
        if unknown and {"role", "content"} <= found.keys():
            names = ", ".join(map(ascii, sorted(map(str, unknown))[:3]))
            return f"a message has the unknown key {names}. Fix: remove it", True
    try:
        Message.from_mapping(found)  # type: ignore[arg-type] # which it checks
    except InvalidValueError as error:
        return _LINE_BREAK.sub(" ", str(error)), False
    return "", False
