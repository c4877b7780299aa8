"""A conversation in windows, each short enough for one question.

A long message is cut into pieces that overlap, so that no statement is cut in every one. A window
begins with a few pieces of the one before, which are there to be understood only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perdure.engine.extract.asked.lines import as_line
from perdure.engine.validate.secrets import secrets_in
from perdure.model.transcript import Message

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
