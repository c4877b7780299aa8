"""Escapes HTML and links that a Markdown viewer would run or load from elsewhere.

A Markdown parser decides what a viewer would run or load, and code stays as it is. Nothing is
removed: a tag is displayed, a remote image becomes a link, and a link that runs becomes text.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from perdure.dataclass import dataclass
from perdure.patterns import later

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_DENIED = (
    "script|style|iframe|frame|frameset|object|embed|applet|link|meta|base|form|input|button|select"
    "|textarea|svg|math|video|audio|source|track|picture|image|template|noscript|noembed|pre"
    "|noframes|xmp|plaintext|listing|title|head|body|html|marquee|portal|dialog|param|bgsound|layer"
    "|ilayer|slot|canvas|keygen|fencedframe|isindex|animate|set|foreignobject"
)
"""Elements that run, load, or change how the following text is parsed."""
_HARMLESS = (
    rf"/?(?!(?:{_DENIED})[\s/>])[A-Za-z][A-Za-z0-9-]*"
    r"(?:\s{1,20}(?!hidden\b)[A-Za-z][\w-]{0,40}){0,20}\s{0,20}/?>"
    r"|https?://[^\s<>]*>"
)
_TAG = later(rf"(?i)<(?=[A-Za-z/!?])(?!{_HARMLESS})")
"""The start of what may be a tag that has an effect."""
_IMAGE = later(r"(?<!\\)(?:\\\\)*(?P<mark>!)(?=\[)")
_TARGET = later(r"\](?=(?P<mark>[(:])\s{0,20}<?(?P<address>[^\s<>]{0,200}))")
_LINES = later(r"\r\n?|\n")
_SCHEME = later(r"[a-z][a-z0-9+.-]*:")
_SCRIPTS = ("javascript:", "vbscript:", "livescript:", "data:")
_PICTURE = later(r"data:image/(?:png|jpe?g|gif|webp|avif|bmp)[;,]")
_BLANKS = later(r"[\x00-\x20\\]")
_ROUNDS, _DEPTH, _BRACKETS = 12, 40, 300


def inert(text: str) -> str:
    """Return the text with nothing that a viewer would run or load from elsewhere."""
    for _ in range(_ROUNDS):  # what is escaped may have hidden what follows it
        if not _suspects(text) or not (places := _live(text)):
            return text
        text = _escaped(text, places)
    return _escaped(text, _suspects(text))


def _escaped(text: str, places: Iterable[int]) -> str:
    pieces: list[str] = []
    at = 0
    for place in sorted(set(places)):
        is_tag = text[place] == "<"
        pieces += [text[at:place], "&lt;" if is_tag else "\\"]
        at = place + is_tag
    return "".join([*pieces, text[at:]])


def _suspects(text: str, start: int = 0, end: int | None = None) -> list[int]:
    """Return the places of all that may run or load, in code or not: of `<`, `!`, `(` and `:`."""
    end = len(text) if end is None else end
    places = [each.start() for each in _TAG.finditer(text, start, end)] if "<" in text else []
    if "](" in text or "]:" in text:
        targets = [*_TARGET.finditer(text)]
        found = (each.start("mark") for each in targets if _runs(each["address"]))
        places += [each for each in found if start <= each < end]
        if "![" in text and any(_loads(each["address"]) for each in targets):
            places += [each.start("mark") for each in _IMAGE.finditer(text, start, end)]
    return places


# ---------------------------------------------------------------- what a viewer does
def _live(text: str) -> list[int]:
    """Return the places of what a viewer runs or loads."""
    starts = [0, *(each.end() for each in _LINES.finditer(text)), len(text)]
    env: dict[str, Any] = {}
    lines: tuple[int, int] = (0, 0)
    places: list[int] = []
    for token in _parser().parse(text, env):
        if token.level >= _DEPTH - 1:
            return _suspects(text)
        if token.map:
            lines = starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)]
        if token.type == "html_block":
            places += (each.start() for each in _TAG.finditer(text, *lines))
        elif token.type == "inline":
            places += _live_inline(text, starts, lines, token, env)
    return places


def _live_inline(
    text: str, starts: list[int], lines: tuple[int, int], token: "Token", env: dict[str, Any]
) -> Iterator[int]:
    content = token.content
    if "<" not in content and "[" not in content:
        return
    if content.count("[") + content.count("<") > _BRACKETS:
        yield from _suspects(text, *lines)
        return
    env["live"] = []
    _parser().inline.parse(content, _parser(), env, [])
    for place in env["live"]:
        first = content.rfind("\n", 0, place) + 1
        words = content[first:].partition("\n")[0]
        line = bisect_left(starts, lines[0]) + content.count("\n", 0, place)
        column = text.rfind(words, starts[line], starts[line + 1])
        if column < 0:
            yield from _suspects(text, *lines)
        else:
            yield column + place - first


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt, rules_inline  # noqa: PLC0415 - takes 50 ms

    parser = MarkdownIt("commonmark", {"maxNesting": _DEPTH}).enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])  # most lines need no more
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    for name in ("image", "link", "autolink", "html_inline"):
        parser.inline.ruler.at(name, partial(_noticed, getattr(rules_inline, name)))
    return parser


def _noticed(
    rule: "Callable[[StateInline, bool], bool]",
    state: "StateInline",
    silent: bool,  # noqa: FBT001 - of markdown-it-py
) -> bool:
    """Apply a rule, and add the place to `live` if what it found runs or loads."""
    start, before, live = state.pos, len(state.tokens), state.env["live"]
    known = len(live)
    if not rule(state, silent):
        return False
    if not silent:
        found = next(each for each in state.tokens[before:] if each.type != "text")
        if found.type == "image":
            del live[known:]  # in the text of an image nothing is displayed
            is_live = _loads(str(found.attrs["src"]))
        elif found.type == "link_open":
            is_live = _runs(str(found.attrs["href"]))
        else:
            is_live = _TAG.match(found.content) is not None
        live += [start] * is_live
    return True


def _plain(address: str) -> str:
    if "&" in address:
        from html import unescape  # noqa: PLC0415 - a table of 2,000 names

        address = unescape(address)
    return _BLANKS.sub("", address).lower()


def _runs(address: str) -> bool:
    plain = _plain(address)
    return plain.startswith(_SCRIPTS) and not _PICTURE.match(plain)


def _loads(address: str) -> bool:
    """Whether an image at this address is loaded from outside the folder of the text."""
    plain = _plain(address)
    if _PICTURE.match(plain):
        return False
    return address.startswith("\\") or plain.startswith("//") or _SCHEME.match(plain) is not None


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
