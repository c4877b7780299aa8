"""A conversation in a file: JSON lines, or one JSON list, of messages."""

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
    explain_reading,
)
from perdure.model import slugify
from perdure.model.messages import read_messages
from perdure.model.transcript import Message
from perdure.model.uri import check_id
from perdure.transfer.parsing import MalformedJson, json_lines

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
"""Whose files have objects with such a key; no message of ours has one."""
_DIGEST = 8
_SLUG = 60
_MEND = "write it as one JSON object with role and content"
_LINE_BREAK = re.compile(r"\s*\n\s*")
_PLACE = re.compile(r": line 1 column (\d+) \(char \d+\)$")
"""What Python says of the place in a line that is parsed alone."""


class Fault(NamedTuple):
    where: str
    what: str
    """With its fix."""
    is_passable: bool = False
    """Whether `lenient` passes over it."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a file says; with faults, it has holes."""

    messages: tuple[dict[str, object], ...]
    faults: tuple[Fault, ...]
    left_out: tuple[str, ...] = ()
    """The keys that no message has, and that were passed over."""


def read_conversation(source: Path | BinaryIO, *, lenient: bool = False) -> Conversation:
    """Read messages from a file or from stdin, and what is wrong with those that are none.

    Unknown keys, and what can't be kept of messages as SDKs have them, are faults, unless `lenient`
    passes over them. A file of another program is refused; `StorageError` if it can't be read.
    """
    name = ascii(str(source)) if isinstance(source, Path) else "what came on stdin"
    data = _bytes_of(source, name)
    messages: list[dict[str, object]] = []
    faults: list[Fault] = []
    left_out: set[str] = set()
    for where, found in _items(data, name):
        if _is_sdks(found):
            _refuse_foreign(found, name)
            said, what, is_passable = found, "" if lenient else _unkept(found), True
        else:
            said = _known(found, left_out) if lenient else found
            what, is_passable = _fault(said)
        if not what and isinstance(said, dict):
            messages.append(said)
            continue
        _refuse_foreign(found, name)
        faults.append(Fault(where, what, is_passable))
    return Conversation(tuple(messages), tuple(faults), tuple(sorted(left_out)))


def session_id_for(path: str) -> str:
    """Return the id of the session that a file has: its name or, if that can't be one, like it."""
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
                data = file.read(MOST_BYTES + 1)
        else:
            data = source.read(MOST_BYTES + 1)
    except OSError as error:
        place = source if isinstance(source, Path) else Path("-")
        raise explain_reading(error, str(place.parent), place.name) from error
    if len(data) > MOST_BYTES:
        raise UnreadableSourceError(
            f"{name} has more than {MOST_BYTES:,} bytes. Fix: split it into several sessions."
        )
    return data.removeprefix(codecs.BOM_UTF8)


def _refuse_foreign(found: object, name: str) -> None:
    programs = [
        program for key, program in _PROGRAMS.items() if isinstance(found, dict) and key in found
    ]
    if programs:
        raise UnreadableSourceError(
            f"{name} looks like a file of {programs[0]}, and not like messages. "
            "Fix: `perdure import` takes it in."
        )


def _items(data: bytes, name: str) -> Iterator[tuple[str, object]]:
    """Yield each thing that should be a message, with its place; a list must be whole."""
    if data.lstrip()[:1] == b"[":
        for number, value in enumerate(_listed(data, name), start=1):
            yield f"message {number}", value
        return
    for found in json_lines(io.BytesIO(data)):
        value = found if isinstance(found, MalformedJson) else found.value
        yield f"line {found.number}", value


def _listed(data: bytes, name: str) -> Iterable[object]:
    try:
        listed: list[object] = json.loads(data.decode())
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        what = f"line {number} is no UTF-8 text"
    except RecursionError:
        what = "it is nested too deep"
    except json.JSONDecodeError as error:
        what = f"line {error.lineno} is no JSON: {error.msg}"
    except ValueError:
        what = "it has a number that is too long"
    else:
        return listed
    raise UnreadableSourceError(f"{name} is no list of messages: {what}. Fix: correct it.")


def _known(found: object, left_out: set[str]) -> object:
    if not isinstance(found, dict):
        return found
    left_out.update(str(key) for key in found.keys() - set(_KEYS))
    return {key: value for key, value in found.items() if key in _KEYS}


def _is_sdks(found: object) -> bool:
    """Whether a message is as OpenAI or Anthropic have it, and not only role and content."""
    if not isinstance(found, Mapping):
        return False
    content = found.get("content", "")
    return isinstance(content, list) or content is None or bool(found.keys() & _SDK_KEYS)


def _unkept(found: object) -> str:
    """Return what of an SDK's message can't be kept; nothing if all of it can."""
    left_out = [f"{each.what}: {each.why}" for each in read_messages([found]).left_out]
    if not left_out:
        return ""
    return f"{'; '.join(left_out)}. Fix: take it out"


def _fault(found: object) -> tuple[str, bool]:
    if isinstance(found, MalformedJson):
        what = _PLACE.sub(r" at column \1", found.what)
        return f"{what}. Fix: {_MEND}.", False
    if isinstance(found, Mapping):
        unknown = found.keys() - set(_KEYS)
        if unknown and {"role", "content"} <= found.keys():
            names = ", ".join(map(ascii, sorted(map(str, unknown))[:3]))
            return f"a message has no {names}. Fix: take it out", True
    try:
        Message.from_mapping(found)  # type: ignore[arg-type] # which it checks
    except InvalidValueError as error:
        return _LINE_BREAK.sub(" ", str(error)), False
    return "", False
