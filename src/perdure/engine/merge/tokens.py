"""A statement taken apart: words, numbers, code and marks.

Time is linear in the length of the text: only chunks of bounded length are looked at closely.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from perdure.engine.merge.english import lines_of, pairs_of, words_of

_LONGEST_CHUNK = 200
_QUOTES = str.maketrans("\u2018\u2019\u201b\u02bc\u201c\u201d\u201e\u00ab\u00bb", '\'\'\'\'"""""')
_DASHES = str.maketrans("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-------")
_LOANS = {
    unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode(): word
    for word in words_of("loans")
}
_PLAIN = {spelled: plain for plain, spelled in _LOANS.items()}

_LEAD = re.compile(r"(?m)^[ \t]{0,9}(?:[-*+>\u2022][ \t]+|#{1,6}[ \t]+)")
_CHUNK = re.compile(r"`[^`]*`|[^\s`]+|`|\n")
_OPENING, _CLOSING = (
    "([{\"'*<",
    ".,;:!?)]}\"'*>\u2026\u3002\u3001\uff01\uff0c\u060c\u061b\u0964\u00b7",
)
_PIECE = re.compile(
    r"\d+(?:[.,:]\d+)*|[^\W\d_]+[+#]+(?!\w)|[^\W\d_]+(?:'[^\W\d_]+)*'?|[^\w\s]|_|\w"
)
_CODE = re.compile(
    r"(?i:https?|ftp|file|ssh)://.+|www\..+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|.*[/\\_=@].*"
    r"|--?[a-z][\w-]*|.*\w[(\[{<].*|\.[a-z]\w*|.*::.*"
    r"|[^\W\d_][\w-]*(?:\.[^\W\d_][\w-]*)+|@.+|\$[A-Za-z]\w*"
)
_ABBREVIATED = {"e.g": "for", "i.e": "namely", "a.m": "am", "p.m": "pm", "u.s": "us", "u.k": "uk"}
_MIXED = re.compile(r"(?=.*\d)(?=.*[^\W\d_])[\w-]+(?:\.\d+)*")
_COUNTED = re.compile(r"(\d+)-([^\W\d_]+(?:-[^\W\d_]+)?)")
_NUMERIC = re.compile(r"[$\u20ac\u00a3\u00a5]?[+-]?\d.*")
_MEASURED = re.compile(
    r"(?:v(?=\d))?[$\u20ac\u00a3\u00a5]?\d+(?:[.,]\d+)*(?:%|[^\W\d_]{1,4}|\u00b0[a-z])?",
    re.IGNORECASE,
)
_ENDS = frozenset('.!?:\n\u3002\uff01"')
_SILENT = frozenset(
    ".,;:!()[]{}\"'*`-\u2026\u3002\u3001\uff01\uff0c\u060c\u061b\u0964\u00b7\u00a1\u00bf~|\n"
)


class Kind(Enum):
    WORD = auto()
    NUMBER = auto()
    """Digits as they stand, perhaps with what belongs to them."""
    QUANTITY = auto()
    """A number, a measure, a date or a time, in its one way of writing."""
    CODE = auto()
    """Compared letter by letter: an address, a path, an identifier, a flag."""
    MARK = auto()
    """Ends or divides a clause, and says nothing."""
    SIGN = auto()
    """Says something that is no word: an operator, a question mark, an emoji."""


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    kind: Kind
    is_first: bool = False
    """Stands where every word has a capital."""

    word: str = field(init=False)
    """The text as words are compared; of what is no word, what no word is."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "word", self._folded())

    def _folded(self) -> str:
        if self.kind is not Kind.WORD:
            return "\0" + self.text
        folded = self.text.casefold().replace("\u0451", "\u0435")
        return _PLAIN.get(folded, folded)

    @property
    def is_name(self) -> bool:
        """Whether its capitals say that it is a name."""
        if self.kind is not Kind.WORD or self.text == "I":
            return False
        inner = self.text[1:]
        if inner != inner.lower():
            return True
        return not self.is_first and self.text[:1] != self.text[:1].lower()


def tokens(text: str) -> list[Token]:
    found: list[Token] = []
    is_first = True
    for token in _raw(text):
        found.append(Token(token.text, token.kind, is_first))
        is_first = token.text in _ENDS or (is_first and token.kind is Kind.MARK)
    return _without_shouting(found)


def _raw(text: str) -> Iterator[Token]:
    plain = unicodedata.normalize("NFKC", text).translate(_QUOTES).translate(_DASHES)
    for chunk in _CHUNK.findall(_LEAD.sub("", plain)):
        if chunk[0] == "`" and len(chunk) > 1:
            yield from (Token(piece, Kind.CODE) for piece in chunk[1:-1].split())
        elif len(chunk) > _LONGEST_CHUNK:
            yield from _pieces(chunk)
        else:
            yield from _chunk(chunk)


def _without_shouting(found: list[Token]) -> list[Token]:
    """Return the tokens in small letters if all of them are in capitals: none is a name then."""
    letters = [token.text for token in found if token.kind is Kind.WORD]
    if len(letters) > 1 and all(word == word.upper() != word.lower() for word in letters):
        return [
            Token(token.text.lower(), token.kind, token.is_first)
            if token.kind is Kind.WORD
            else token
            for token in found
        ]
    return found


def _chunk(chunk: str) -> Iterator[Token]:
    opened = len(chunk) - len(chunk.lstrip(_OPENING))
    core = chunk[opened:].rstrip(_CLOSING)
    closed = chunk[opened + len(core) :]
    if core.count("(") > core.count(")") and closed.startswith(")"):
        core, closed = core + ")", closed[1:]
    if core.count("[") > core.count("]") and closed.startswith("]"):
        core, closed = core + "]", closed[1:]
    yield from _pieces(chunk[:opened])
    yield from _core(core)
    yield from _pieces(closed)


def _core(core: str) -> Iterator[Token]:
    if core.casefold() in _ABBREVIATED:
        yield Token(_ABBREVIATED[core.casefold()], Kind.WORD)
    elif found := _COUNTED.fullmatch(core):
        yield Token(found[1], Kind.NUMBER)
        yield from _pieces(found[2])
    elif _NUMERIC.fullmatch(core) or _MEASURED.fullmatch(core):
        yield Token(core, Kind.NUMBER)
    elif _CODE.fullmatch(core):
        yield Token(core, Kind.CODE)
    elif _MIXED.fullmatch(core):
        yield Token(core.casefold(), Kind.CODE)
    else:
        yield from _pieces(core)


def _pieces(text: str) -> Iterator[Token]:
    for piece in _PIECE.findall(text):
        if piece in _SILENT:
            yield Token(piece, Kind.MARK)
        elif piece[0].isdecimal():
            yield Token(piece, Kind.NUMBER)
        elif piece[0].isalpha():
            yield from (Token(each, Kind.WORD) for each in _contracted(piece.strip("'")))
        else:
            yield Token(piece, Kind.SIGN)


_SHORT = pairs_of("short forms")
_ENDINGS = {"'re": "are", "'m": "am", "'ve": "have", "'ll": "will", "'d": "would"}
_IS_AFTER = words_of("subjects")


def _contracted(word: str) -> list[str]:
    """Return the words that a short form stands for."""
    low = word.lower()
    if low in _SHORT:
        return _SHORT[low].split()
    if low.endswith("n't"):
        return [word[:-3], "not"]
    for ending, full in _ENDINGS.items():
        if low.endswith(ending):
            return [word[: -len(ending)], full]
    if low.endswith("'s"):
        return [word[:-2], "is" if low[:-2] in _IS_AFTER else "'s"]
    return [word]


# ---------------------------------------------------------------- turns of phrase
def _by_first() -> dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]:
    found: dict[str, dict[tuple[str, ...], tuple[str, ...]]] = defaultdict(dict)
    for line in lines_of("turns"):
        said, stands = (tuple(half.split()) for half in line.split(" = "))
        found[said[0]][said] = stands
    return {
        first: sorted(turns.items(), key=lambda turn: -len(turn[0]))
        for first, turns in found.items()
    }


_BY_FIRST = _by_first()


def rephrased(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with each turn of phrase in its plain words, the longest first."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        stands, length = _turn(tokens, at)
        if length:
            found += [Token(word, Kind.WORD, is_first=True) for word in stands]
        else:
            found.append(tokens[at])
        at += length or 1
    return found


def _turn(tokens: Sequence[Token], at: int) -> tuple[tuple[str, ...], int]:
    for said, stands in _BY_FIRST.get(tokens[at].word, ()):
        after = tokens[at : at + len(said)]
        if not any(token.is_name for token in after) and said == tuple(t.word for t in after):
            return stands, len(said)
    return (), 0
