"""A conversation in a file: JSON lines, or one JSON list, of messages."""

import codecs
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from perdure.engine.importing.json_items import Malformed, lines
from perdure.errors import InvalidUriError, InvalidValueError, UnreadableSourceError
from perdure.faults import explain_reading
from perdure.model import slugify
from perdure.model.messages import read_messages
from perdure.model.transcript import Message
from perdure.model.uri import check_id
from perdure.surfaces.nodes.given import STDIN

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
    """A message that is none, and why."""

    where: str
    what: str
    """With its fix."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a file says; with faults, it has holes."""

    messages: tuple[dict[str, object], ...]
    faults: tuple[Fault, ...]
    left_out: tuple[str, ...] = ()
    """The keys that no message has, and that were passed over."""


# ---------------------------------------------------------------- files
def bytes_of(path: str) -> bytes:
    """Return what is in a file, or comes on stdin; `StorageError` if it can't be read."""
    try:
        data = _read(path)
    except OSError as error:
        place = Path(path)
        raise explain_reading(error, str(place.parent), place.name) from error
    if len(data) > MOST_BYTES:
        raise UnreadableSourceError(
            f"{_told(path)} has more than {MOST_BYTES:,} bytes. Fix: split it into several "
            "sessions."
        )
    return data.removeprefix(codecs.BOM_UTF8)


def _read(path: str) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read(MOST_BYTES + 1)
    with Path(path).open("rb") as file:
        return file.read(MOST_BYTES + 1)


def _told(path: str) -> str:
    return "what came on stdin" if path == STDIN else ascii(path)


def session_of(path: str) -> str:
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


# ---------------------------------------------------------------- messages
def conversation(data: bytes, path: str, *, lenient: bool) -> Conversation:
    """Read messages, and what is wrong with those that are none.

    Unknown keys, and what can't be kept of messages as SDKs have them, are faults unless somebody
    is lenient. A file of another program is refused.
    """
    messages: list[dict[str, object]] = []
    faults: list[Fault] = []
    left_out: set[str] = set()
    for where, found in _items(data, path):
        if _is_sdks(found):
            _refuse_foreign(found, path)
            said, fault = found, "" if lenient else _unkept(found)
        else:
            said = _known(found, left_out) if lenient else found
            fault = _fault(said)
        if not fault and isinstance(said, dict):
            messages.append(said)
            continue
        _refuse_foreign(found, path)
        faults.append(Fault(where, fault))
    return Conversation(tuple(messages), tuple(faults), tuple(sorted(left_out)))


def _refuse_foreign(found: object, path: str) -> None:
    """Refuse the file of another program, which has a command of its own."""
    programs = [name for key, name in _PROGRAMS.items() if isinstance(found, dict) and key in found]
    if programs:
        raise UnreadableSourceError(
            f"{_told(path)} looks like a file of {programs[0]}, and not like messages. "
            "Fix: `perdure import` takes it in."
        )


def _items(data: bytes, path: str) -> Iterator[tuple[str, object]]:
    """Yield each thing that should be a message, with its place; a list must be whole."""
    if data.lstrip()[:1] == b"[":
        for number, value in enumerate(_listed(data, path), start=1):
            yield f"message {number}", value
        return
    for found in lines(io.BytesIO(data)):
        value = found if isinstance(found, Malformed) else found.value
        yield f"line {found.number}", value


def _listed(data: bytes, path: str) -> Iterable[object]:
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
    raise UnreadableSourceError(f"{_told(path)} is no list of messages: {what}. Fix: correct it.")


def _known(found: object, left_out: set[str]) -> object:
    """Return a message without the keys that none has, and note those."""
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
    """Say what of an SDK's message can't be kept; nothing if all of it can."""
    left_out = [f"{each.what}: {each.why}" for each in read_messages([found]).left_out]
    if not left_out:
        return ""
    return f"{'; '.join(left_out)}. Fix: take it out, or add --lenient to pass it over."


def _fault(found: object) -> str:
    """Say what is wrong with a message, and how to mend it; nothing if nothing is."""
    if isinstance(found, Malformed):
        what = _PLACE.sub(r" at column \1", found.what)
        return f"{what}. Fix: {_MEND}."
    if isinstance(found, Mapping):
        unknown = found.keys() - set(_KEYS)
        if unknown and {"role", "content"} <= found.keys():
            names = ", ".join(map(ascii, sorted(map(str, unknown))[:3]))
            return f"a message has no {names}. Fix: take it out, or add --lenient to pass it over."
    try:
        Message.from_mapping(found)  # type: ignore[arg-type] # which it checks
    except InvalidValueError as error:
        return _LINE_BREAK.sub(" ", str(error))
    return ""
