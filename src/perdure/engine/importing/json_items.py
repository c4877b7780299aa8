"""JSON that is too large to be read at once: one element of a list, or one line, at a time."""

import codecs
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

MOST_CHARACTERS = 32_000_000
"""Of one element or line. Read, it takes some ten times as many bytes of memory, no more."""
_CHUNK = 1_000_000

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},]|"', re.DOTALL)
"""A whole string, something that structures, or a string that does not end here."""
_INSIDE_STRING = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Element(NamedTuple):
    number: int
    """Which one it is, from 1."""
    value: object


class Malformed(NamedTuple):
    """An element that is no JSON, or too long."""

    number: int
    what: str


Found = Element | Malformed


# ---------------------------------------------------------------- lists
def elements(stream: BinaryIO, keys: Sequence[str] = ()) -> Iterator[Found]:
    """Yield the elements of a list, one by one, so that one bad one is one finding.

    An object instead of a list is one element; if it has a list under one of the `keys`, its
    elements are meant.
    """
    read = _reader(stream)
    text = read(_CHUNK)
    while text and not text.strip():
        text = read(_CHUNK)
    begun = text.lstrip()
    if begun.startswith("["):
        for number, piece in enumerate(_Pieces(begun[1:], read), start=1):
            yield _parsed(number, piece)
    elif begun:
        yield from _single(begun + read(MOST_CHARACTERS), keys)


def _single(text: str, keys: Sequence[str]) -> Iterator[Found]:
    found = _parsed(1, text if len(text) <= MOST_CHARACTERS else None)
    if isinstance(found, Element) and isinstance(found.value, dict):
        for key in keys:
            inner = found.value.get(key)
            if isinstance(inner, list):
                yield from (Element(number, value) for number, value in enumerate(inner, start=1))
                return
    yield found


class _Pieces:
    """The texts of the elements of a list; None for one that is too long.

    Each character is looked at once, or twice in a string that goes on beyond what was read.
    """

    def __init__(self, begun: str, read: Callable[[int], str]) -> None:
        self._read = read
        self._buffer = begun
        self._start = self._scanned = self._depth = 0
        self._skipping = self._in_string = self._ended = False

    def __iter__(self) -> Iterator[str | None]:
        while True:
            yield from self._whole()
            if self._ended:
                return
            self._forget()
            more = self._read(max(_CHUNK, len(self._buffer) if self._in_string else 0))
            if not more:
                break
            self._buffer += more
        if self._skipping or self._buffer.strip():
            yield None if self._skipping else self._buffer

    def _whole(self) -> Iterator[str | None]:
        """Yield the elements that end in what is held."""
        self._in_string = False
        for token in _TOKEN.finditer(self._buffer, self._scanned):
            said = token[0]
            if said == '"':
                self._in_string, self._scanned = True, token.start()
                return
            if said in "[{":
                self._depth += 1
            elif self._depth and said in "]}":
                self._depth -= 1
            elif not self._depth and said in ",]}":
                yield from self._piece(token)
                if self._ended:
                    return
        self._scanned = len(self._buffer)

    def _piece(self, end: re.Match[str]) -> Iterator[str | None]:
        """Yield the element that ends here; there may be none before the end of the list."""
        text = self._buffer[self._start : end.start()]
        self._ended = end[0] != ","
        if self._skipping or text.strip() or not self._ended:
            yield None if self._skipping else text
        self._start, self._skipping = end.end(), False

    def _forget(self) -> None:
        """Let go of what was yielded, and of an element that is too long."""
        if self._skipping or len(self._buffer) - self._start > MOST_CHARACTERS:
            self._skipping = True
            inside = self._buffer[self._scanned + 1 :]
            self._buffer = _past_string(inside, self._read) if self._in_string else ""
            self._start = self._scanned = 0
            self._in_string = False
        self._buffer = self._buffer[self._start :]
        self._scanned -= self._start
        self._start = 0


def _past_string(buffer: str, read: Callable[[int], str]) -> str:
    """Return what follows a string that is too long to be held."""
    while True:
        inside = _INSIDE_STRING.match(buffer)
        rest = buffer[inside.end() :] if inside else buffer
        if rest.startswith('"'):
            return rest[1:]
        more = read(_CHUNK)
        if not more:
            return ""
        buffer = rest + more


def _parsed(number: int, text: str | None) -> Found:
    if text is None or len(text) > MOST_CHARACTERS:
        return Malformed(number, f"it has more than {MOST_CHARACTERS:,} characters")
    try:
        return Element(number, json.loads(text))
    except RecursionError:
        return Malformed(number, "it is nested too deep")
    except ValueError as error:  # also of a number that is too long
        return Malformed(number, f"it is no JSON: {str(error)[:80]}")


def _reader(stream: BinaryIO) -> Callable[[int], str]:
    """Return what reads so many bytes as text; "" is the end. What is no text becomes U+FFFD."""
    first = stream.read(4)
    encoding = next((name for bom, name in _BOMS if first.startswith(bom)), "utf-8")
    decode = codecs.getincrementaldecoder(encoding)(errors="replace").decode
    waiting = [first]

    def read(size: int) -> str:
        while data := (waiting.pop() if waiting else stream.read(size)):
            if text := decode(data):
                return text
        return decode(b"", final=True)

    return read


# ---------------------------------------------------------------- lines
def lines(stream: BinaryIO) -> Iterator[Found]:
    """Yield the value of each line that is not blank."""
    number = 0
    while line := stream.readline(MOST_CHARACTERS + 1):
        number += 1
        if len(line) > MOST_CHARACTERS:
            while line and not line.endswith(b"\n"):
                line = stream.readline(MOST_CHARACTERS)
            yield _parsed(number, None)
        elif line.strip():
            yield _line(number, line)


def _line(number: int, line: bytes) -> Found:
    try:
        return _parsed(number, line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError:
        return Malformed(number, "it is no UTF-8 text")
