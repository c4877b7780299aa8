"""Escapes HTML and links that a Markdown viewer would run or load from elsewhere.

Nothing is removed: a tag is displayed, and a remote image becomes a link. Code is left as it is
where all viewers agree that it is code: between fences at the start of a line, and between ticks in
one line. Viewers disagree about the rest, so tags are escaped there too.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterator
from functools import partial

from perdure.dataclass import dataclass
from perdure.patterns import later

Span = tuple[int, int]
Edit = tuple[int, str]
"""A position, and what is inserted there; a `<` is replaced."""

_FENCE = later(r"(`{3,}|~{3,})(.*)", re.DOTALL)
_TAG_FIRST = later(r"^[ \t>*+\d.):~\[\]^-]*<[A-Za-z/!?]", re.MULTILINE)
_SPECIAL = later(r"`+|\\[\\`]|<[A-Za-z/!?]|>")
_DENIED = frozenset(
    {
        *("script", "style", "iframe", "frame", "frameset", "object", "embed", "applet", "link"),
        *("meta", "base", "form", "input", "button", "select", "textarea", "svg", "math", "video"),
        *("audio", "source", "track", "picture", "image", "template", "noscript", "noembed", "pre"),
        *("noframes", "xmp", "plaintext", "listing", "title", "head", "body", "html", "marquee"),
        *("portal", "dialog", "param", "bgsound", "layer", "ilayer", "slot", "canvas", "keygen"),
        *("fencedframe", "isindex", "animate", "set", "foreignobject"),
    }
)
"""Elements that run, load, or change how the following text is parsed."""
_OPENING = later(r"<(?:[!?]|/?(?P<name>[A-Za-z][A-Za-z0-9-]*)(?P<next>[\s/>:]|$)|/?[A-Za-z])")
_HIDES = later(r"(?i)\shidden\b")
_LONGEST = 2_000
_TARGET = later(r"\](?=(?P<mark>[(:])\s{0,20}<?(?P<address>[^\s<>]{0,200}))")
_WORDS = r"[^\[\]<>`\\\n]*"
_IMAGE = later(
    rf"(?<!\\)!(?=\[(?:\[{_WORDS}\]\](?![(\[:])"
    rf"|{_WORDS}\](?:\(\s{{0,20}}<?(?P<address>[^\s<>]*))?|(?P<other>)))"
)
"""An image with an address, by reference, or with brackets in its text."""
_GAP = later(r"\n[ \t\r]*\n")
_SCHEME = later(r"[a-z][a-z0-9+.-]*:")
_SCRIPTS = ("javascript:", "vbscript:", "livescript:", "data:")
_PICTURE = later(r"data:image/(?:png|jpe?g|gif|webp|avif|bmp)[;,]")
_BLANKS = later(r"[\x00-\x20\\]")


def inert(text: str) -> str:
    """Return the text with nothing that a viewer would run or load from elsewhere."""
    if "<" not in text and "](" not in text and "]:" not in text and "![" not in text:
        return text
    code = list(_code(text))
    edits = sorted({*_tags(text, code), *_links(text, code)})
    pieces: list[str] = []
    at = 0
    for place, put in edits:
        pieces += [text[at:place], put]
        at = place + (text[place] == "<")
    return "".join([*pieces, text[at:]])


# ---------------------------------------------------------------- code
def _code(text: str) -> Iterator[Span]:
    """Yield the spans of code, in order; none after a fence that viewers may disagree on."""
    fence, is_open, start = "", True, 0
    for line in text.split("\n"):
        end = start + len(line) + 1
        opening = _FENCE.fullmatch(line)
        if fence:
            yield start, end
            closing = line.strip()
            is_end = closing.startswith(fence) and not closing.strip(fence[0])
            fence = "" if is_end else fence
            is_open = True
        elif opening and not (opening[1][0] == "`" and "`" in opening[2]):
            if not is_open:  # HTML or code of earlier lines may continue
                return
            fence = opening[1]
            yield start, end
        elif "```" in line or "~~~" in line:
            return
        elif not line.strip():
            is_open = True
        elif is_open and not _TAG_FIRST.match(line):
            is_open = yield from _spans(line, start)
        else:
            is_open = False
        start = end


def _spans(line: str, start: int) -> Generator[Span, None, bool]:
    """Yield the code of one line; return whether none of it may continue in the next line."""
    at, in_tag = 0, False
    while found := _SPECIAL.search(line, at):
        at = found.end()
        if found[0][0] in "<>":
            in_tag = found[0][0] == "<"
            continue
        if found[0] == "\\\\":
            continue
        ticks = found[0]
        closing = re.compile(rf"(?<!`){ticks}(?!`)").search(line, at) if ticks[0] == "`" else None
        if in_tag or closing is None:
            return False
        at = closing.end()
        if "|" not in line[found.end() : closing.start()]:  # a table would end the cell there
            yield start + found.start(), start + at
    return True


def _within(spans: list[Span], place: int) -> bool:
    at = bisect_right(spans, (place, 1 << 62)) - 1
    return at >= 0 and place < spans[at][1]


# ---------------------------------------------------------------- tags
def _tags(text: str, code: list[Span]) -> Iterator[Edit]:
    ends, begins = ([at.start() for at in re.finditer(each, text)] for each in (">", "<|&lt;"))
    raw = [each for each in _paragraphs(text) if _TAG_FIRST.search(text, *each)]
    for match in _OPENING.finditer(text):
        start = match.start()
        if _within(code, start):
            continue
        end = _next(ends, start, len(text))
        head = text[start : _next(begins, start + 1, end)]
        is_raw = _within(raw, start)
        if not is_raw and start + len(head) < end and not {*"\"'="} & {*head}:
            continue  # another tag starts before this one ends, so this is not a tag
        if _acts(match, text[start : min(end, start + _LONGEST) + 1], is_raw=is_raw):
            yield start, "&lt;"


def _paragraphs(text: str) -> Iterator[Span]:
    start = 0
    for end in [*(gap.start() for gap in _GAP.finditer(text)), len(text)]:
        yield start, end
        start = end


def _next(places: list[int], start: int, end: int) -> int:
    at = bisect_left(places, start)
    return min(places[at], end) if at < len(places) else end


def _acts(match: re.Match[str], tag: str, *, is_raw: bool) -> bool:
    """Whether a tag has an effect when displayed; with an attribute value, it may."""
    name = match["name"]
    if name is None:
        return match[0][1] in "!?" or (is_raw and "=" in tag)
    if match["next"] == ":":
        return _runs(tag[1:]) or is_raw
    return name.lower() in _DENIED or "=" in tag or _HIDES.search(tag) is not None


# ---------------------------------------------------------------- links
def _links(text: str, code: list[Span]) -> Iterator[Edit]:
    """Yield the edits that stop links from running and images from loading.

    Viewers pair brackets differently. So an image with brackets inside becomes a link if any
    address in its paragraph is remote, or if a reference definition in the text is.
    """
    found = [each for each in _TARGET.finditer(text) if not _within(code, each.start())]
    yield from ((each.start() + 1, "\\") for each in found if _runs(each["address"]))
    loading = [each for each in found if _loads(each["address"])]
    alone = any(each["mark"] == ":" for each in loading)
    places = [each.start() for each in loading]
    for start, end in _paragraphs(text):
        is_any = _next(places, start, end) < end
        for image in _IMAGE.finditer(text, start, end) if alone or is_any else ():
            address = image["address"]
            loads = _loads(address) if address is not None else alone
            loads = is_any or alone if image["other"] is not None else loads
            if loads and not _within(code, image.start()):
                yield image.start(), "\\"


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
