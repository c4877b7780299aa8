"""A conversation in windows, each short enough for one question, and that question.

A long message is cut into pieces that overlap, so that no statement is cut in every one. A window
begins with a few pieces of the one before, which are there to be understood only.

All extractors ask the same question, byte for byte, and each takes its own part of the answer. A
model that remembers what it was asked is paid once for all of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from perdure.engine.llm.quoting import DATA, line_of, quoted
from perdure.engine.validate.secrets import secrets_in
from perdure.model.transcript import Message
from perdure.model.values import JSON


def as_line(
    number: int, message: Message, text: str, *, is_owner: bool, is_before: bool = False
) -> str:
    """Return who said what, and when, as JSON; the same message gives the same line."""
    told: list[tuple[str, JSON]] = [
        ("role", message.role),
        ("name", message.name),
        ("owner", is_owner),
        ("time", f"{message.time:%A %Y-%m-%d %H:%M}" if message.time else ""),
        ("before", is_before),
    ]
    return line_of({"message": number} | {name: v for name, v in told if v} | {"text": text})


WINDOW = 8_000
"""Characters of a window, as the model is shown it. An answer about more may be cut off."""
BEFORE = 1_000
"""Characters of the window before that are shown once more."""
PIECE = 3_000
"""Characters of a message; a longer one is cut."""
OVERLAP = 500
"""Characters that two pieces of a message share, or a quarter of the first, if that is less."""
OF_A_TOOL = 1_000
"""Characters of what a tool put out: its end, where errors stand. The rest is seldom read."""
_MOST_IN_A_WORD = 200


@dataclass(frozen=True, slots=True)
class Piece:
    """A message from `start` to `end`. What begins after `until` is the next piece's."""

    index: int
    message: Message
    is_owner: bool
    content: str
    """The message's, as long as it is, with stars in the place of secrets."""
    start: int
    end: int
    until: int

    @property
    def text(self) -> str:
        return self.content[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Shown:
    """A piece as it stands in a window."""

    piece: Piece
    line: str
    is_before: bool
    """It was asked about in the window before."""


Window = tuple[Shown, ...]


def windows(pieces: Sequence[Piece]) -> Iterator[Window]:
    """Yield windows of pieces; each piece is new in exactly one."""
    window: list[Shown] = []
    for piece in pieces:
        shown = _shown(piece, len(window), is_before=False)
        if window and _size(window) + len(shown.line) > WINDOW:
            yield tuple(window)
            window = _kept(window)
            shown = _shown(piece, len(window), is_before=False)
        window.append(shown)
    if window:
        yield tuple(window)


def pieces_of(index: int, message: Message, *, is_owner: bool) -> Iterator[Piece]:
    """Yield a message without its secrets, cut between words if it is long; none if it is blank."""
    content = _without_secrets(message.content)
    start = max(0, len(content) - OF_A_TOOL) if message.role == "tool" else 0
    while content[start:].strip():
        end = _cut(message, content, start)
        until = _next_start(content, start, end)
        yield Piece(index, message, is_owner, content, start, end, until)
        start = until


def _without_secrets(content: str) -> str:
    """Return a text with a star for each character of a secret, so that every place stays."""
    parts, last = [], 0
    for secret in secrets_in(content):
        parts += [content[last : secret.start], "*" * (secret.end - secret.start)]
        last = secret.end
    return "".join([*parts, content[last:]])


def _kept(window: Sequence[Shown]) -> list[Shown]:
    """Return the last pieces of a window that are short enough to be shown once more."""
    kept: list[Shown] = []
    size = 0
    for shown in reversed(window):
        size += len(shown.line)
        if size > BEFORE:
            break
        kept.append(shown)
    return [
        _shown(each.piece, number, is_before=True) for number, each in enumerate(reversed(kept))
    ]


def _shown(piece: Piece, number: int, *, is_before: bool) -> Shown:
    line = as_line(number, piece.message, piece.text, is_owner=piece.is_owner, is_before=is_before)
    return Shown(piece, line, is_before)


def _size(window: Sequence[Shown]) -> int:
    return sum(len(each.line) + 1 for each in window)


def _cut(message: Message, content: str, start: int) -> int:
    """Return where a piece ends: after a line or a word, and sooner if much of it is escaped."""
    end = min(len(content), start + PIECE)
    while len(as_line(0, message, content[start:end], is_owner=True)) > WINDOW // 2:
        end = start + (end - start) * 3 // 4
    if end == len(content):
        return end
    for mark in ("\n", " "):
        found = content.rfind(mark, max(start, end - _MOST_IN_A_WORD) + 1, end) + 1
        if found:
            return found
    return end


def _next_start(content: str, start: int, end: int) -> int:
    """Return where the next piece begins: at a word, a little before this one ends."""
    if end == len(content):
        return end
    place = end - min(OVERLAP, (end - start) // 4)
    found = content.find(" ", place, end)
    return found + 1 if found >= 0 else place


CATEGORIES = ("profile", "preference", "entity", "event", "skill", "case", "pattern")
TOPICS = (
    *("name", "home", "origin", "job", "employer", "studies", "family", "languages"),
    *("health", "diet", "age", "birthday", "pronouns", "timezone"),
)
"""What of the profile a statement is; the rules know the same."""

_QUOTE: dict[str, JSON] = {"message": {"type": "integer"}, "quote": {"type": "string"}}
_ITEM: dict[str, JSON] = {
    **_QUOTE,
    "category": {"type": "string", "enum": list(CATEGORIES)},
    "content": {"type": "string"},
    "about": {"type": "string"},
    "topic": {"type": "string"},
    "confidence": {"type": "number"},
    "date": {"type": "string"},
    "who": {"type": "array", "items": {"type": "string"}},
}


def _closed(properties: dict[str, JSON]) -> dict[str, JSON]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SCHEMA = _closed(
    {
        "items": {
            "type": "array",
            "items": _closed({**_ITEM, "also": {"type": "array", "items": _closed(_QUOTE)}}),
        }
    }
)

_INSTRUCTIONS = f"""\
List what is worth remembering of a conversation, for a memory that lasts for years.

You are shown a record of it. Each line is one message, or a part of one, as JSON: its number, the
role of who spoke, perhaps their name, "owner" if the memory is theirs, when it was said, and the
text. Lines with "before" are there so that you understand the rest; take nothing from them.

{DATA}

For each statement that is worth remembering, give an item:
- category: one of
  profile: what a speaker of the role user says of themselves, and what stays so.
  preference: what such a speaker likes, dislikes, or always wants done so.
  entity: who or what somebody or something in their world is.
  event: what happened, will happen, or was decided.
  skill: a command or tool, and what it is for.
  case: a problem, and what helped against it.
  pattern: how things are always done in their work.
- message: the number of the message that says it.
- quote: the words of that text that say it, to the letter, in one stretch, as few as say it whole.
- content: one sentence that is understood alone, in the third person. Name who spoke, or write
  "the user". Leave every "not" where it is. Write days as YYYY-MM-DD.
- about: for a preference, the thing alone, in the same words whether it is liked or disliked; for
  an entity, its name; for an event, two to five words; for a skill, the command; for a case, the
  problem; for a pattern, what is done. Empty for the profile.
- topic: for the profile, one of {", ".join(TOPICS)}, or another word; for an event, "decision" or
  "event"; else empty.
- confidence: 0.9 if it is said plainly, 0.8 if something is defined, done or dated, 0.6 if only
  the assistant advises it; times 0.7 if the speaker is not sure.
- date: for an event, its day as YYYY-MM-DD, as seen from the time of that message; empty if it is
  not known. Never guess one.
- who: the names of the people or things that it is about, as they are written.
- also: further words that it rests on, as of the problem of a case; else empty.

Leave out questions, suppositions, jokes, hearsay, small talk, tasks of the moment, what an
assistant says of itself, and what stands in code, logs, quotations or pasted texts, but for
commands of a skill and errors of a case. Give each statement once, under the category that fits
best. Invent nothing. If nothing is worth remembering, give no items. 40 items are the most; then
take what lasts longest.
"""
_REMINDER = "The record is over. Give the items, each with words that stand in it to the letter."


def question(lines: Iterable[str]) -> str:
    """Return the prompt about lines of a record; the same lines give the same bytes."""
    return f"{_INSTRUCTIONS}\n{quoted(list(lines))}\n\n{_REMINDER}\n"
