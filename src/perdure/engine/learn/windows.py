"""A conversation in windows, each short enough for one question, and that question.

A long message is cut into pieces between lines or words. A window begins with a few pieces of the
one before, so that the model understands the rest. All extractors ask the same question, byte for
byte, so that a model that keeps its answers is paid once.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from perdure.dataclass import dataclass, replace
from perdure.engine.llm.quoting import DATA, line_of, quoted
from perdure.engine.validate.secrets import secrets_in
from perdure.model.transcript import Message
from perdure.model.values import JSON

WINDOW = 8_000
"""Characters of a window, as the model is shown it. An answer about more may be cut off."""
BEFORE = 1_000
"""Characters of the window before that are shown once more."""
PIECE = 3_000
"""Characters of a message; a longer one is cut."""
OF_A_TOOL = 1_000
"""Characters of what a tool put out: its end, where errors stand. The rest is seldom read."""
_LOOK_BACK = 400
"""Characters at the end of a piece in which a line, a sentence or a word may end it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message, from `start` on, with stars in the place of secrets."""

    index: int
    message: Message
    is_owner: bool
    start: int
    text: str

    def line(self, number: int, *, is_before: bool = False) -> str:
        """Return speaker, time and text as JSON; the same message gives the same line."""
        role, name, time = self.message.role, self.message.name, self.message.time
        day = f"{time:%A %Y-%m-%d %H:%M}" if time else ""
        found: dict[str, JSON] = {"role": role, "name": name, "owner": self.is_owner, "time": day}
        more = {name: value for name, value in (found | {"before": is_before}).items() if value}
        return line_of({"message": number} | more | {"text": self.text})


class Shown(NamedTuple):
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
        if window and sum(len(each.line) + 1 for each in window) + len(shown.line) > WINDOW:
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
        whole = Piece(index, message, is_owner, start, content[start : start + PIECE])
        end = _cut(whole, content)
        yield replace(whole, text=content[start:end])
        start = end


def _without_secrets(content: str) -> str:
    """Return a text with a star for each character of a secret, so that every place stays."""
    parts, last = [], 0
    for secret in secrets_in(content):
        parts += [content[last : secret.start], "*" * (secret.end - secret.start)]
        last = secret.end
    return "".join([*parts, content[last:]])


def _kept(window: Sequence[Shown]) -> list[Shown]:
    """Return the last pieces of a window that are short enough to be shown once more."""
    kept: list[Piece] = []
    size = 0
    for shown in reversed(window):
        size += len(shown.line)
        if size > BEFORE:
            break
        kept.insert(0, shown.piece)
    return [_shown(piece, number, is_before=True) for number, piece in enumerate(kept)]


def _shown(piece: Piece, number: int, *, is_before: bool) -> Shown:
    return Shown(piece, piece.line(number, is_before=is_before), is_before)


def _cut(piece: Piece, content: str) -> int:
    """Return where a piece ends: after a line or a sentence, sooner if much of it is escaped."""
    size = len(piece.text)
    while len(replace(piece, text=piece.text[:size]).line(0)) > WINDOW // 2:
        size = size * 3 // 4
    end = piece.start + size
    if end < len(content):
        for mark in ("\n", ". ", " "):
            found = content.rfind(mark, max(piece.start, end - _LOOK_BACK) + 1, end) + 1
            if found:
                return found
    return end


CATEGORIES = ("profile", "preference", "entity", "event", "skill", "case", "pattern")

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


def closed(properties: dict[str, JSON]) -> dict[str, JSON]:
    """Return the schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_ALSO: JSON = {"type": "array", "items": closed(_QUOTE)}
SCHEMA = closed({"items": {"type": "array", "items": closed({**_ITEM, "also": _ALSO})}})

_INSTRUCTIONS = f"""\
List what is worth remembering of a conversation, for a memory that lasts for years.

You are shown a record of it. Each line is one message, or a part of one, as JSON: its number, the
role of who spoke, perhaps their name, "owner" if the memory is theirs, its time, and the
text. Lines with "before" are there so that you understand the rest; take nothing from them.

{DATA}

For each statement that is worth remembering, give an item:
- category: one of
  profile: what a speaker of the role user says of themselves, and what stays so.
  preference: what such a speaker likes, dislikes, or always wants done so.
  entity: who or what a person or a thing in their world is.
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
- topic: for the profile, one of name, home, origin, job, employer, studies, family, languages,
  health, diet, age, birthday, pronouns, timezone, or another word; for an event, "decision" or
  "event"; else empty.
- confidence: 0.9 if it is stated plainly, 0.8 if something is defined, done or dated, 0.6 if only
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
