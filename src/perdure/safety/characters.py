"""Characters that control a terminal, reorder text, or are invisible.

Control characters are made visible, so that no text is lost. Invisible ones are removed, because
they may spell words that an agent reads and its owner does not see.
"""

import re
from bisect import bisect_right
from functools import partial

from perdure.dataclass import dataclass
from perdure.patterns import later

_CSI = later("(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]")
"""Escape sequences for colours and cursor."""
_BARE_RETURN = later("\r(?!\n)")
_CONTROL = later("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_MARKS = "\u200e\u200f\u061c"
_HIDDEN = (
    "\u00ad\u034f\u115f\u1160\u3164\uffa0"
    "\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u061c\ufeff\ufff9-\ufffb\U0001bca0-\U0001bca3"
    f"\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f{_SELECTORS}"
)
_JOINED = (
    "\u0600-\u060b\u060d-\u061b\u061d-\u0dff\u0e80-\u109f\u1780-\u180d\u180f-\u18af\ufb50-\ufdff"
    "\ufe70-\ufefc\U00010a00-\U00011fff"
)
"""Scripts in which a joiner changes the shape of letters."""
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df"
"""Scripts that separate words with a zero-width space."""
_PICTURES = "\u00a9\u00ae\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_SUSPECT = later(
    f"(?P<needed>(?<=[{_JOINED}])[\u200c\u200d]"
    f"|(?<=[{_PICTURES}\ufe0f])\u200d(?=[{_PICTURES}])"
    f"|(?<=[{_UNSPACED}])\u200b(?=[{_UNSPACED}])"
    f"|(?<=[^\\sA-Za-z\u00c0-\u024f{_HIDDEN}])[{_SELECTORS}]"
    "|(?<=\U0001f3f4)[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f)"
    f"|(?P<hidden>[{_HIDDEN}])"
)
_BETWEEN = later(f"{_CSI.pattern}|{_CONTROL.pattern}|[\u180b-\u180d\u180f{_HIDDEN}]+")
"""Everything invisible that may be inside a word, needed or not."""
_ODD = later(f"{_CONTROL.pattern[:-1]}\u180b-\u180d\u180f\uff01-\uff5e{_HIDDEN}]")
_PLAIN = bytes([*b"\t\n\r", *range(ord(" "), 0x7F)])
_WIDE = {0xFEE0 + code: code for code in range(0x21, 0x7F)}
"""From full-width letters, digits and symbols to plain ones."""
_FIRST_PICTURE, _C1 = 0x2400, 0x100
_RIGHT_TO_LEFT = later("[\u0590-\u0605\u0608-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")


def visible(text: str) -> str:
    """Return the text without hidden characters, and with visible control characters.

    Newlines and tabs stay, and so do joiners and marks that a script or an emoji needs.
    """
    if "\r" not in text and not _ODD.search(without_plain(text)):
        return text
    text = _BARE_RETURN.sub("\n", _CSI.sub("", text))
    text = _CONTROL.sub(_pictured, text)
    allowed = _MARKS if _RIGHT_TO_LEFT.search(text) else ""
    while (seen := _SUSPECT.sub(partial(_needed, allowed), text)) != text:
        text = seen  # a character may have a new neighbour now
    return text


@dataclass(frozen=True, slots=True)
class BareText:
    """A text without hidden characters, in plain letters."""

    text: str
    removed: tuple[tuple[int, int], ...]
    """Positions of removals in the bare text, each with the total removed so far; in order."""

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of the bare text is in the original, with hidden characters."""
        return self._original(start), self._original(end - 1) + 1

    def _original(self, at: int) -> int:
        before = bisect_right(self.removed, at, key=lambda each: each[0]) - 1
        return at + (self.removed[before][1] if before >= 0 else 0)


def bare_text(text: str) -> BareText | None:
    others = without_plain(text)
    if not _ODD.search(others):
        return None
    pieces: list[str] = []
    removed: list[tuple[int, int]] = []
    at = gone = 0
    for odd in _ODD.finditer(text):
        if odd.start() < at or not (match := _BETWEEN.match(text, odd.start())):
            continue
        pieces.append(text[at : match.start()])
        removed.append((match.start() - gone, gone + len(match[0])))
        at, gone = match.end(), gone + len(match[0])
    plain = "".join([*pieces, text[at:]])
    for code in _WIDE.keys() & set(map(ord, others)):
        plain = plain.replace(chr(code), chr(_WIDE[code]))
    return None if plain == text else BareText(plain, tuple(removed))


def without_plain(text: str) -> str:
    """Return the characters of a text that are not printable ASCII, tabs or newlines."""
    others = text.encode("utf-8", "surrogatepass").translate(None, _PLAIN)
    return others.decode("utf-8", "surrogatepass")


def _pictured(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < ord(" "):
        return chr(_FIRST_PICTURE + code)
    return "\u2421" if match[0] == "\x7f" else f"\\x{code:02x}" if code < _C1 else f"\\u{code:04x}"


def _needed(allowed: str, match: re.Match[str]) -> str:
    return match["needed"] or (match[0] if match[0] in allowed else "")
