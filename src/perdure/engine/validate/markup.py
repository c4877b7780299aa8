"""HTML and links that a Markdown viewer would run, or load from elsewhere, as mere text.

Nothing is taken away: a tag is shown instead of obeyed, an image from elsewhere is a link to it,
and code stays as it is. Viewers disagree about where code ends inside lists, quotations and HTML:
what is taken for code here must be code for all of them; after a fence in doubt nothing is.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator

from perdure.dataclass import dataclass, field
from perdure.patterns import later

Span = tuple[int, int]

_FENCE = later(r"([ \t]*)(`{3,}|~{3,})(.*)", re.DOTALL)
_NESTED = later(r"[ \t]*(?:[-*+:>]|\d{1,9}[.)]|\[\^[^\]]{1,80}\]:)")
_BEFORE_TAG = " \t>*+-0123456789.):~[]^"
_TAG = later(r"<[A-Za-z/!?]")
_TICKS = later(r"`+|\\[\\`]|<[A-Za-z/!?]|>")
_RUN = later(r"`+")
_INDENT = 3
"""The most spaces before a fence; with more it may be something else."""


@dataclass(slots=True)
class Layout:
    """Where code is, and where a viewer may pass HTML on as it stands; each in order."""

    code: list[Span] = field(default_factory=list)
    raw: list[Span] = field(default_factory=list)


def within(spans: list[Span], place: int) -> bool:
    at = bisect_right(spans, (place, 1 << 62)) - 1
    return at >= 0 and place < spans[at][1]


def layout(text: str) -> Layout:
    reader = _Reader()
    for start, line in _lines(text):
        reader.read(line, start)
    return reader.found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1


class _Reader:
    def __init__(self) -> None:
        self.found = Layout()
        self._fence: tuple[int, str] | None = None
        """The indent and the mark of the fence that is open."""
        self._doubt = self._nested = False
        """Whether nothing is sure from here on; whether a list or quotation was seen."""
        self._raw = self._open = False
        """Of the paragraph: whether HTML began in it, or code that may go on in the next line."""
        self._fresh = True

    def read(self, line: str, start: int) -> None:
        if self._doubt:
            self.found.raw.append((start, start + len(line) + 1))
        elif self._fence:
            self._fenced(line, start, *self._fence)
        elif not line.strip():
            self._end()
        else:
            self._prose(line, start)

    def _end(self) -> None:
        self._fence = None
        self._raw = self._open = False
        self._fresh = True

    def _fenced(self, line: str, start: int, indent: int, mark: str) -> None:
        spaces = len(line) - len(line.lstrip(" "))
        if line.strip() and spaces < indent:
            self._lose(line, start)
            return
        self.found.code.append((start, start + len(line) + 1))
        said = line.strip()
        if spaces <= _INDENT and said.startswith(mark) and not said.strip(mark[0]):
            self._end()

    def _prose(self, line: str, start: int) -> None:
        fence = _FENCE.fullmatch(line)
        if fence and not (fence[2][0] == "`" and "`" in fence[3]):
            self._begin(fence, line, start)
            return
        nested = _NESTED.match(line) is not None
        if nested and ("```" in line or "~~~" in line):
            self._lose(line, start)
            return
        self._nested |= nested
        if self._fresh and not self._nested and line.startswith(("    ", "\t")):
            self.found.code.append((start, start + len(line) + 1))
            return
        self._fresh = False
        self._paragraph(line, start)

    def _begin(self, fence: re.Match[str], line: str, start: int) -> None:
        indent = fence[1]
        if self._raw or "\t" in indent or len(indent) > _INDENT:
            self._lose(line, start)
            return
        self._fence = len(indent), fence[2]
        self.found.code.append((start, start + len(line) + 1))

    def _lose(self, line: str, start: int) -> None:
        self._doubt = True
        self.read(line, start)

    def _paragraph(self, line: str, start: int) -> None:
        self._raw |= _TAG.match(line.lstrip(_BEFORE_TAG)) is not None
        if self._raw:
            self.found.raw.append((start, start + len(line) + 1))
        elif not self._open:
            self._spans(line, start)

    def _spans(self, line: str, start: int) -> None:
        """Note the code of one line; what may go on in the next line is in doubt."""
        runs: defaultdict[int, deque[int]] = defaultdict(deque)
        for run in _RUN.finditer(line):
            runs[len(run[0])].append(run.start())
        at, in_tag = 0, False
        while found := _TICKS.search(line, at):
            at = found.end()
            if found[0][0] in "<>":
                in_tag = found[0][0] == "<"
            elif found[0] == "\\\\":
                continue
            elif in_tag or found[0] == "\\`" or not (closing := _after(runs, found)):
                self._open = True
                return
            else:
                at = closing + len(found[0])
                if "|" not in line[found.end() : closing]:  # a table would end the cell there
                    self.found.code.append((start + found.start(), start + at))


def _after(runs: defaultdict[int, deque[int]], opening: re.Match[str]) -> int:
    """Return where the run of ticks is that closes this one; 0 if none does."""
    places = runs[len(opening[0])]
    while places and places[0] <= opening.start():
        places.popleft()
    return places[0] if places else 0


Edit = tuple[int, str]
"""What is put in front of a character; for `<` and `!`, in place of it."""

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
"""What runs, loads, or changes how all that follows is read."""
_HARMLESS = frozenset(
    {
        *("align", "alt", "title", "width", "height", "colspan", "rowspan", "start", "lang"),
        *("dir", "class", "href", "src", "open", "value"),
    }
)
_ADDRESSES = frozenset({"href", "src"})
_OPENING = later(r"<(?:[!?]|/?(?P<name>[A-Za-z][A-Za-z0-9-]*)(?P<next>[\s/>:]|$)|/?[A-Za-z])")
_SAFE = later(
    r"</?[A-Za-z][A-Za-z0-9-]*(?P<attributes>(?:\s+[A-Za-z-]+(?:\s*=\s*"
    r"(?:\"[^\"<>]*\"|'[^'<>]*'|[\w.%#-]+))?)*)\s*/?>"
)
_ATTRIBUTE = later(r"(?P<name>[A-Za-z-]+)(?:\s*=\s*(?P<value>\"[^\"]*\"|'[^']*'|[\w.%#-]+))?")
_HIDES = later(r"(?i)\shidden\b")
_LONGEST = 2_000
_BRACKET = later(r"\\[!-/:-@\[-`{-~]|!?\[|\][(\[:]?|\n[ \t\r]*(?=\n)|<(?=[A-Za-z/!?])")
_DESTINATION = later(r"\s{0,20}<?([^\s<>]{0,200})")
_SCHEME = later(r"[a-z][a-z0-9+.-]*:")
_SCRIPTS = ("javascript:", "vbscript:", "livescript:", "data:")
_PICTURE = later(r"data:image/(?:png|jpe?g|gif|webp|avif|bmp)[;,]")
_BLANKS = later(r"[\x00-\x20\\]")


def inert(text: str) -> str:
    """Return the text with nothing in it that a viewer would run, or load from elsewhere."""
    if "<" not in text and "](" not in text and "]:" not in text and "![" not in text:
        return text
    found = layout(text)
    edits = sorted({*_tags(text, found), *_links(text, found)})
    parts: list[str] = []
    at = 0
    for place, put in edits:
        parts += [text[at:place], put]
        at = place + (text[place] == "<")
    return "".join([*parts, text[at:]])


# ---------------------------------------------------------------- tags
def _tags(text: str, found: Layout) -> Iterator[Edit]:
    ends, equals, begins = (_places(text, each) for each in (">", "=", "<|&lt;"))
    for match in _OPENING.finditer(text):
        start = match.start()
        raw = within(found.raw, start)
        if within(found.code, start) or (not raw and _escaped(text, start)):
            continue
        end = _next(ends, start, len(text))
        if not raw and (
            end == len(text) or _breaks_off(text, start, _next(begins, start + 1, end))
        ):
            continue
        if _acts(text, match, end, raw=raw, assigns=_next(equals, start, end) < end):
            yield start, "&lt;"


def _next(places: list[int], start: int, end: int) -> int:
    at = bisect_left(places, start)
    return min(places[at], end) if at < len(places) else end


def _breaks_off(text: str, start: int, begin: int) -> bool:
    """Whether another tag begins where an attribute's name would, so that this is none."""
    return text[begin] != ">" and not any(each in text[start:begin] for each in "\"'=")


def _places(text: str, pattern: str) -> list[int]:
    return [match.start() for match in re.finditer(pattern, text)]


def _escaped(text: str, place: int) -> bool:
    before = text[max(0, place - 64) : place]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _acts(text: str, match: re.Match[str], end: int, *, raw: bool, assigns: bool) -> bool:
    """Whether this tag, which is over at `end`, does anything when a viewer shows it."""
    name = match["name"]
    if name is None:
        return match[0][1] in "!?" or (raw and assigns)
    if match["next"] == ":":
        return _runs(text[match.start() + 1 : min(end, match.start() + _LONGEST)]) or raw
    if name.lower() in _DENIED:
        return True
    tag = text[match.start() : min(end + 1, match.start() + _LONGEST)]
    if not assigns:
        return _HIDES.search(tag) is not None
    safe = _SAFE.fullmatch(tag)
    return safe is None or not all(map(_harmless, _ATTRIBUTE.finditer(safe["attributes"])))


def _harmless(attribute: re.Match[str]) -> bool:
    name, value = attribute["name"].lower(), (attribute["value"] or "").strip("\"'")
    if attribute["value"] is None:
        return name != "hidden"
    if name not in _HARMLESS:
        return False
    return name not in _ADDRESSES or not (_loads(value) if name == "src" else _runs(value))


# ---------------------------------------------------------------- links
def _links(text: str, found: Layout) -> Iterator[Edit]:
    """Yield what keeps links from running, and images from loading."""
    brackets = _Brackets(text)
    for match in _BRACKET.finditer(text):
        if match[0][0] != "\\" and not within(found.code, match.start()):
            brackets.read(match[0], match.start())
    return iter(brackets.edits())


class _Brackets:
    """Pairs brackets as viewers do it. Where they don't pair, every image before is suspected."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._edits: list[Edit] = []
        self._opened: list[tuple[int, bool]] = []
        """Where brackets were opened in this paragraph, and whether of an image."""
        self._images: list[int] = []
        self._referring: list[int] = []
        """Images whose address stands elsewhere in the text."""
        self._open_images = 0
        self._doubt = False
        """Whether a tag stands in an image; brackets in it would be the tag's."""
        self._elsewhere = False
        """Whether an address that stands alone leads elsewhere."""

    def edits(self) -> list[Edit]:
        return self._edits + [(image, "\\") for image in self._referring if self._elsewhere]

    def read(self, bracket: str, start: int) -> None:
        if bracket[0] == "\n":
            self._opened, self._images = [], []
            self._open_images, self._doubt = 0, False
        elif bracket == "<":
            self._doubt |= self._open_images > 0
        elif bracket in {"[", "!["}:
            self._opened.append((start, bracket == "!["))
            self._images += [start] * (bracket == "![")
            self._open_images += bracket == "!["
        else:
            self._close(bracket[1:], start)

    def _close(self, follows: str, start: int) -> None:
        opened, image = self._opened.pop() if self._opened else (-1, False)
        self._open_images -= image
        where = _destination(self._text, start + 2) if follows in {"(", ":"} else ""
        if where and _runs(where):
            self._edits.append((start + 1, "\\"))
        if follows == "(":
            self._load(where, opened, image=image)
        elif image:
            self._referring.append(opened)
        self._elsewhere |= follows == ":" and _loads(where)
        if follows == "[":
            self._opened.append((start + 1, False))

    def _load(self, where: str, opened: int, *, image: bool) -> None:
        if _loads(where) and image:
            self._edits.append((opened, "\\"))
        elif _loads(where) and (opened < 0 or self._doubt):
            self._edits += [(each, "\\") for each in self._images]
            self._images = []


def _destination(text: str, start: int) -> str:
    match = _DESTINATION.match(text, start)
    return match[1] if match else ""


def _plain(address: str) -> str:
    if "&" in address:
        from html import unescape  # noqa: PLC0415 - a table of 2,000 names

        address = unescape(address)
    return _BLANKS.sub("", address).lower()


def _runs(address: str) -> bool:
    plain = _plain(address)
    return plain.startswith(_SCRIPTS) and not _PICTURE.match(plain)


def _loads(address: str) -> bool:
    """Whether an image of this address comes from elsewhere than from beside the text."""
    plain = _plain(address)
    if _PICTURE.match(plain):
        return False
    return address.startswith("\\") or plain.startswith("//") or _SCHEME.match(plain) is not None
