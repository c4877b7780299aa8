"""The messages of a session as readable Markdown: written and parsed.

Each message is a section. Its heading has the speaker, the role, the time and the index in the
session: `## Ana (user), 2026-03-02T10:00:00+00:00 ^m0`. A message that is too long for one node
continues in the next one, as `^m0.1`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from perdure.dataclass import dataclass, replace
from perdure.errors import InvalidValueError
from perdure.model.values import MAX_ABSTRACT, MAX_SHOWN, ROLES, bounded, shortened, shown, utc_time
from perdure.patterns import later
from perdure.times import read_time, start_of

_ROLE = "|".join(ROLES)
_HEADING = later(
    rf"## (?:(?P<name>.{{1,{MAX_SHOWN}}}) \((?P<role>{_ROLE})\)|(?P<bare>{_ROLE}))"
    r"(?:, (?P<time>[0-9T:.+-]+))? \^m(?P<index>[0-9]{1,9})(?:\.(?P<piece>[0-9]{1,9}))?"
)
_LOOKS_LIKE_ONE = later(r"\\*## .* \^m[0-9.]+")
HIDDEN = "[forgotten]."
"""Replaces a sentence in a message that the user forgot."""
_SPACE = later(r"\s+")
_BEGINNING = 1_500
_MAX_WORDS = 60
PIECE_CHARACTERS = 40_000
"""A longer message continues in another piece; with escapes, a piece fits into a node."""


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str
    name: str = ""
    time: datetime | None = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InvalidValueError(
                f"{shown(self.role)} is not the role of a message. Fix: use {', '.join(ROLES)}."
            )
        put = object.__setattr__
        put(self, "content", bounded(self.content, len(self.content), "content of a message"))
        put(
            self,
            "name",
            _SPACE.sub(" ", bounded(self.name, MAX_SHOWN, "name of a speaker")).strip(),
        )
        if self.time is not None:
            put(self, "time", utc_time(self.time, "time of a message"))

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object]) -> "Message":
        """Parse a message of an agent: role and content, optionally name and time."""
        given: object = mapping
        if not isinstance(given, Mapping) or not {"role", "content"} <= given.keys():
            raise InvalidValueError(
                f"{shown(mapping)} is not a message. Fix: give role and content."
            )
        if unknown := mapping.keys() - {"role", "content", "name", "time"}:
            raise InvalidValueError(
                f"a message has no {shown(min(map(str, unknown)))}. "
                "Fix: give role, content, name and time only."
            )
        name, time = mapping.get("name") or "", mapping.get("time")
        return cls(_text(mapping["role"]), _text(mapping["content"]), _text(name), _time(time))

    @property
    def speaker(self) -> str:
        return self.name or self.role


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """A message, or a piece of one, in a transcript."""

    message: Message
    index: int
    """The index of the message in the session, from 0."""
    piece: int
    first_line: int
    """The first line of its content, from 1; the heading is above."""


def render(title: str, messages: Iterable[tuple[int, int, Message]]) -> str:
    """Return messages, each given with its index and the number of its piece, as Markdown."""
    return "".join(
        [f"# {_SPACE.sub(' ', title).strip()}\n", *(section(*each) for each in messages)]
    )


def abstract_of(text: str) -> str:
    """Return the first speakers of a text, the day, and the first words; "" without messages."""
    messages = _first_messages(text[:_BEGINNING])
    if not messages:
        return ""
    speakers = ", ".join(dict.fromkeys(each.speaker for each in messages))
    times = [each.time for each in messages if each.time]
    date = f", {min(times).date().isoformat()}" if times else ""
    began = next((" ".join(each.content.split()) for each in messages if each.content.strip()), "")
    return shortened(f"{speakers}{date}: {began}", MAX_ABSTRACT)


def beginning(text: str) -> tuple[str, str]:
    """Return the day of the first message of a session, and the user's first words, or ""."""
    messages = _first_messages(text[:_BEGINNING])
    day = next((each.time.date().isoformat() for each in messages if each.time), "")
    words = (" ".join(each.content.split()) for each in messages if each.role == "user")
    return day, shortened(next(filter(None, words), ""), _MAX_WORDS).removesuffix("…")


@lru_cache(maxsize=64)
def _first_messages(text: str) -> tuple[Message, ...]:
    """Return the messages in the beginning of a text, which stays when a session grows."""
    return tuple(each.message for each in parse(text))


def section(index: int, piece: int, message: Message) -> str:
    """Return the Markdown of a message, or of a piece of one."""
    return f"\n{_heading(index, piece, message)}\n\n{_escaped(message.content)}\n"


def parse(text: str) -> list[TranscriptEntry]:
    """Return the messages of a text, in order; what precedes the first is ignored."""
    lines = text.split("\n")
    found = [
        (at, match)
        for at, line in enumerate(lines)
        if line.startswith("## ") and (match := _HEADING.fullmatch(line))
    ]
    starts = [*(at for at, _ in found), len(lines)]
    return [
        _read_message(match, lines, at, end)
        for (at, match), end in zip(found, starts[1:], strict=True)
    ]


def is_heading(line: str) -> bool:
    """Whether a line begins a message."""
    return line.startswith("## ") and _HEADING.fullmatch(line) is not None


def matches_hidden(stored: Message, given: Message) -> bool:
    """Whether a stored message is the given one, except for sentences that were hidden in it."""
    first, *others = stored.content.split(HIDDEN)
    if not others or not given.content.startswith(first):
        return False
    at = len(first)
    for part in others[:-1]:
        at = given.content.find(part, at)
        if at < 0:
            return False
        at += len(part)
    ends = given.content.endswith(others[-1]) and len(given.content) - len(others[-1]) >= at
    return ends and replace(given, content="") == replace(stored, content="")


def pieces(messages: Sequence[Message], first: int = 0) -> Iterator[tuple[int, int, Message]]:
    """Yield messages with their index; long ones in pieces, split between lines if possible."""
    for index, message in enumerate(messages, start=first):
        for piece, content in enumerate(_cut(message.content)):
            yield index, piece, Message(message.role, content, message.name, message.time)


def _cut(content: str) -> Iterator[str]:
    start = 0
    while len(content) - start > PIECE_CHARACTERS:
        line_end = content.rfind("\n", start + 1, start + PIECE_CHARACTERS) + 1
        end = line_end or start + PIECE_CHARACTERS
        yield content[start:end]
        start = end
    yield content[start:]


def _heading(index: int, piece: int, message: Message) -> str:
    who = f"{message.name} ({message.role})" if message.name else message.role
    when = f", {message.time.isoformat()}" if message.time else ""
    return f"## {who}{when} ^m{index}" + (f".{piece}" if piece else "")


def _read_message(heading: re.Match[str], lines: list[str], at: int, end: int) -> TranscriptEntry:
    first = at + 2 if lines[at + 1 : at + 2] == [""] else at + 1
    last = end - 1 if end > first and lines[end - 1] == "" else end
    escaped = _LOOKS_LIKE_ONE.fullmatch
    own = (line[1:] if line[:1] == "\\" and escaped(line) else line for line in lines[first:last])
    content = "\n".join(own)
    role = heading["role"] or heading["bare"]
    message = Message(role, content, heading["name"] or "", read_time(heading["time"]))
    return TranscriptEntry(message, int(heading["index"]), int(heading["piece"] or 0), first + 1)


def _escaped(content: str) -> str:
    lines = content.split("\n")
    return "\n".join(f"\\{line}" if _LOOKS_LIKE_ONE.fullmatch(line) else line for line in lines)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidValueError(f"{shown(value)} is not text. Fix: give text in every message.")
    return value


def _time(value: object) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return value
    return start_of(_text(value))
