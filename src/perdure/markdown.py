"""The parser of Markdown: blocks, headings, fences, links, tags, tasks and frontmatter.

markdown-it-py parses the blocks: CommonMark with tables, and with the blocks of mathematics and
comments that Obsidian has. What is within a line is parsed here, because the position of a link is
needed. Every function accepts any text, and takes time in proportion to its length. markdown-it-py
takes 50 ms to import, so it is only used for a text that needs it.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from perdure.frontmatter import Frontmatter, frontmatter, split, text_list
from perdure.patterns import later

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.ruler import RuleOptionsType
    from markdown_it.rules_block import StateBlock

__all__ = ["Frontmatter", "frontmatter", "split"]

MAX_LINES, MAX_CHARACTERS = 50_000, 4_000_000
"""Blocks are parsed in this much of a text; the rest is read as paragraphs."""
_NESTING = 40
"""Deeper blocks are read as paragraphs. The time is proportional to lines times this."""


# ---------------------------------------------------------------- blocks
class Block(NamedTuple):
    """Whole lines of one kind, with the markers of the lists and quotations that they are in."""

    kind: str
    """heading, paragraph, table, fence, code, math, comment, html or rule."""
    start: int
    end: int
    first_line: int
    last_line: int
    level: int = 0
    depth: int = 0
    """How many lists, items and quotations it is in."""
    info: str = ""
    """The title of a heading; the words after the marker of a fence."""
    content: str = ""
    """Of a fence or code, without its markers and its indentation."""


_KINDS = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "table_open": "table",
    "fence": "fence",
    "code_block": "code",
    "html_block": "html",
    "hr": "rule",
    "math": "math",
    "comment": "comment",
}
_INLINE = frozenset({"heading", "paragraph", "table"})
_LINE_END = later(r"\r\n?|\n")
_BLANKS = " \t\r\n"
_STRUCTURE = later(
    r"^[ \t]*(?:[-*+_=#>|<:]|`{3}|~{3}|\$\$|%%|\[(?!\[)|\d{1,9}[.)])"
    r"|^(?: {4}|[ ]{0,3}\t)[ \t]*\S|\r(?!\n)",
    re.MULTILINE,
)
"""The beginning of a line in a text that has more than paragraphs."""


def finding(text: str) -> str | None:
    """Return why the end of a text is read as paragraphs, and the fix; None if it is not."""
    _, body = split(text)
    if _bound(body) == len(body):
        return None
    return (
        f"text has more than {MAX_LINES:,} lines or {MAX_CHARACTERS:,} characters, and the rest is "
        "read without its headings and code. Fix: split the note."
    )


@lru_cache(maxsize=2)
def blocks(text: str) -> tuple[Block, ...]:
    """Return the blocks below the frontmatter, in order; each non-blank line is in one."""
    _, body = split(text)
    offset = len(text) - len(body)
    offset += body.startswith("\ufeff")
    above = len(_LINE_END.findall(text, 0, offset))
    starts = [offset, *(found.end() for found in _LINE_END.finditer(text, offset))]
    if starts[-1] < len(text):
        starts.append(len(text))
    has_more = _STRUCTURE.search(body.removeprefix("\ufeff"))
    found = _parsed(text, offset, starts, above) if has_more else []
    return tuple(_with_gaps(text, found, starts, above))


def _bound(body: str) -> int:
    """Return where the part of a body ends that is parsed for blocks."""
    end = len(body)
    if end > MAX_CHARACTERS:
        end = body.rfind("\n", 0, MAX_CHARACTERS) + 1
    if body.count("\n", 0, end) > MAX_LINES:
        at = 0
        for _ in range(MAX_LINES):
            at = body.find("\n", at) + 1
        end = at
    return end


def _parsed(text: str, offset: int, starts: list[int], above: int) -> list[Block]:
    body = text[offset:]
    found: list[Block] = []
    tokens = _parser().parse(body[: _bound(body)])
    for at, token in enumerate(tokens):
        kind = _KINDS.get(token.type)
        if kind is None or token.map is None:
            continue
        first, last = token.map
        while last > first + 1 and not text[starts[last - 1] : starts[last]].strip(_BLANKS):
            last -= 1  # indented code and lists include the blank lines that follow
        info, level = token.info.strip(), 0
        if kind == "heading":
            info, level = " ".join(tokens[at + 1].content.split()), int(token.tag[1])
        place = starts[first], starts[min(last, len(starts) - 1)], first + above + 1, last + above
        found.append(Block(kind, *place, level, token.level, info, token.content))
    return found


def _with_gaps(text: str, found: list[Block], starts: list[int], above: int) -> Iterator[Block]:
    """Yield blocks, and lines in no block as paragraphs: definitions, or those too deep."""
    line = above
    for block in [*found, None]:
        first: int | None = None
        stop = block.first_line - 1 if block else above + len(starts) - 1
        for number in range(line, stop + 1):
            at = number - above
            is_blank = number == stop or not text[starts[at] : starts[at + 1]].strip(_BLANKS)
            if is_blank and first is not None:
                yield Block("paragraph", starts[first], starts[at], first + above + 1, number)
                first = None
            elif not is_blank and first is None:
                first = at
        if block:
            yield block
            line = max(line, block.last_line)


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 - takes 50 ms

    parser = MarkdownIt("commonmark", {"maxNesting": _NESTING}).enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])  # lines are parsed below
    interrupts: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("fence", "math", _enclosed("$$", "math"), interrupts)
    parser.block.ruler.before("fence", "comment", _enclosed("%%", "comment"), interrupts)
    return parser


def _enclosed(mark: str, kind: str) -> "Callable[[StateBlock, int, int, bool], bool]":
    """Return the rule of a block between two markers, the first of which begins a line."""

    def rule(state: "StateBlock", first: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - of markdown-it-py
        start = state.bMarks[first] + state.tShift[first]
        if state.is_code_block(first) or not state.src.startswith(mark, start):
            return False
        if state.src.find(mark, start + len(mark), state.eMarks[first]) >= 0:
            return False
        for line in range(first + 1, end):
            if state.sCount[line] < state.blkIndent:
                return False
            if state.src.find(mark, state.bMarks[line], state.eMarks[line]) >= 0:
                break
        else:
            return False
        if not silent:
            state.push(kind, "", 0).map = [first, line + 1]
            state.line = line + 1
        return True

    return rule


# ---------------------------------------------------------------- headings
_ANY_HEADING = later(
    r"^\ufeff? {0,3}(?:#{1,6}(?:[ \t]|\r?$)|(?:=+|-+)[ \t]*\r?$)|\r(?!\n)", re.MULTILINE
)
_MARK = later(
    r"^(?:(?P<heading>#{1,6}(?=[ \t]|\r?$))"
    r"|(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})"
    r"|(?P<line> {0,3}(?:=+|-+)[ \t]*\r?$)"
    r"|(?P<html> {0,3}<(?:(?P<whole>!|\?|(?:script|pre|style|textarea)\b)|[A-Za-z/]))"
    r"|(?P<unsure> {1,3}(?:#{1,6}(?:[ \t]|\r?$)|```|~~~)| {0,3}(?P<pair>\$\$|%%)(?!.*(?P=pair))))",
    re.MULTILINE | re.IGNORECASE,
)
"""The beginning of a line with a heading or a fence, or one after which only the parser knows."""
_RETURN = later(r"\r(?!\n)")
_BLANK_LINE = later(r"^[ \t]*\r?\n", re.MULTILINE)
_DELIMITERS = later(r" {0,3}[-:|][-:| \t]*\r?$", re.MULTILINE)


def marks(text: str) -> Iterator[Block]:
    """Yield the headings and fences outside of lists and quotations; fences without their content.

    They are found line by line, up to a line that only the parser can judge.
    """
    offset = len(text) - len(split(text)[1])
    bound = offset + _bound(text[offset:]) if len(text) > MAX_LINES else len(text)
    at = offset + text.startswith("\ufeff", offset)
    line, counted, doubted, done = 1, 0, 0, at
    is_sure = at == offset and ("\r" not in text or not _RETURN.search(text))
    while is_sure and (found := _MARK.search(text, at, bound)):
        start, kind = found.start(), found.lastgroup
        if found["html"]:
            doubted = max(doubted, _html_end(text, found, bound))
            at = found.end()
            continue
        end = text.find("\n", start, bound) + 1 or bound
        if kind == "line" and (start == done or not _has_text(text, start)):
            at = end  # below a heading, a fence or a blank line it is a rule, or a paragraph
            continue
        is_table = "|" in text[start:end] and _DELIMITERS.match(text, end, bound)
        if start < doubted or kind not in {"heading", "fence"} or is_table:
            is_sure = False
            break
        line += text.count("\n", counted, start)
        counted = start
        info = text[found.end() : end].strip()
        if kind == "heading":
            info = " ".join(_unclosed(info).split())
            yield Block("heading", start, end, line, line, len(found[0]), 0, info)
        else:
            end = _fence_end(text, found, bound)
            last = line + text.count("\n", start, end) - (text[end - 1] == "\n")
            yield Block("fence", start, end, line, last, info=info)
        at = done = end
    for block in () if is_sure else blocks(text):
        if block.start >= done and not block.depth and block.kind in {"heading", "fence"}:
            yield block._replace(content="")


def _unclosed(title: str) -> str:
    """Return a title without the `#` that may follow it."""
    bare = title.rstrip("#")
    return bare.rstrip() if bare[-1:] in {"", " ", "\t"} else title


def _has_text(text: str, start: int) -> bool:
    return bool(text[text.rfind("\n", 0, max(start - 1, 0)) + 1 : start].strip(_BLANKS))


def _html_end(text: str, found: re.Match[str], bound: int) -> int:
    """Return where HTML ends at the latest: at a blank line, unless it may contain some."""
    if found["whole"]:
        line = text[found.end() : text.find("\n", found.end(), bound)]
        return found.end() if "-->" in line else bound
    blank = _BLANK_LINE.search(text, found.end(), bound)
    return blank.start() if blank else bound


def _fence_end(text: str, fence: re.Match[str], bound: int) -> int:
    mark = fence["fence"]
    closing = rf"^ {{0,3}}{mark[0]}{{{len(mark)},}}[ \t]*(?:\r?\n|\r?\Z)"
    if closed := re.compile(closing, re.MULTILINE).search(text, fence.end(), bound):
        return closed.end()
    last = len(text[fence.start() : bound].rstrip(_BLANKS)) + fence.start()
    return text.find("\n", last, bound) + 1 or bound


def headings(text: str) -> Iterator[Block]:
    """Yield the headings outside of lists and quotations."""
    start = len(text) - len(split(text)[1])
    if _ANY_HEADING.search(text, start):
        yield from (each for each in marks(text) if each.kind == "heading")


_MAY_BE_TAG = later(r"(?<!\S)#(?!\d+(?:[!-,.:-@\[-^`{-~\s]|\Z))[^\s#]")
"""What may be a tag: not the anchor of a link, nor a number."""


def title(text: str, name: str) -> str:
    """Return the title in the frontmatter, else the first heading of level 1, else the name."""
    named = frontmatter(text).values.get("title")
    if isinstance(named, str | int | float) and str(named).strip():
        return " ".join(str(named).split())
    found = (_shown(each.info) for each in headings(text) if each.level == 1)
    return next(filter(None, found), name)


def aliases(text: str) -> list[str]:
    return _named(text, "aliases", "alias", separators=",")


def _named(text: str, *names: str, separators: str) -> list[str]:
    values = frontmatter(text).values
    return [each for name in names for each in text_list(values.get(name), separators)]


# ---------------------------------------------------------------- within lines
class Link(NamedTuple):
    target: str
    """The note or the path; empty for a place in the same note."""
    heading: str
    block: str
    """The id of a block, without its ^."""
    alias: str
    """The text that is shown, as it is written; empty for the default."""
    embed: bool
    kind: str
    start: int
    end: int
    line: int


class _Piece(NamedTuple):
    """Something within a line that is not prose."""

    kind: str
    start: int
    end: int
    inner: tuple[int, int]
    """The start and end of the text that is displayed."""
    target: str = ""


_SPECIAL = later(r"[\\`%$<!\[\]#]")
_PIECE = later(
    r"\\(?P<escape>[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`+)"
    r"|(?P<comment>%%)"
    r"|(?P<math>\$\$?)"
    r"|<(?P<auto>[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]{0,2000}|[\w.+-]{1,100}@[\w.-]{1,200})>"
    r"|(?P<html><(?:!--|/?[A-Za-z][^<>]{0,2000}>))"
    r"|!?\[\[(?P<wiki>[^\[\]\r\n]{1,1000})\]\]"
    r"|(?P<open>!?\[)|(?P<close>\])"
    r"|(?<![^\s])\#(?P<tag>(?:[\w/-]|[^\x00-\xff\s\u2000-\u200c\u200e-\u206f\u2e00-\u2e7f\u3000-\u303f])+)"
)
_DESTINATION = later(
    r"\([ \t\r\n]*(?:<(?P<angled>[^<>\r\n]{0,2000})>"
    r"|(?P<bare>(?:[^\s()\\]|\\.|\([^\s()]{0,500}\)){0,2000}))"
    r"(?:\s+(?:\"[^\"]{0,1000}\"|'[^']{0,1000}'|\([^()]{0,1000}\)))?[ \t\r\n]*\)"
)
_WIKI = later(
    r"(?P<target>[^#^|\\]*)(?:(?P<mark>#\^|\^|#)(?P<part>[^|\\]*))?(?:\\?\|(?P<alias>.*))?"
)
_FOREIGN = later(r"[A-Za-z][A-Za-z0-9+.-]+:|//")
_NEEDS_BLOCKS = later(
    r"`|~~~|\$\$|%%|<!--|^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*<|<[A-Za-z/][^<>\n]*$"
    r"|^(?: {4}| {0,3}\t)[^\n]*[\[#]",
    re.MULTILINE,
)
"""What may be code, HTML, mathematics or a comment of more than one line."""
_SPAN = later(r"(?<![`\\])(`+)(?!`)[^`\n](?:[^\n]*?[^`\n])?\1(?!`)")
"""Code that begins and ends in one line."""
_SHORT = 20_000
_DEEPEST_BRACKET = 64


def links(text: str) -> list[Link]:
    """Return the links to notes and files, except those in code, mathematics and comments."""
    if "[[" not in text and "](" not in text:
        return []
    found: list[Link] = []
    line, before = 1, 0
    above = _pieces_in(text, 0, len(text) - len(split(text)[1]))
    in_properties = (piece for piece in above if piece.kind == "wiki")
    for piece in (*in_properties, *_pieces(text)):
        if piece.kind in {"wiki", "link"}:
            line += len(_LINE_END.findall(text, before, piece.start))
            before = piece.start
            if link := _link(text, piece, line):
                found.append(link)
    return sorted(found, key=lambda each: each.start)


def _link(text: str, piece: _Piece, line: int) -> Link | None:
    if piece.kind == "wiki":
        found = _WIKI.fullmatch(text, *piece.inner)
        if found is None:
            return None
        kind, target, alias = "wikilink", found["target"].strip(), (found["alias"] or "").strip()
        part, is_block = (found["part"] or "").strip(), found["mark"] in {"#^", "^"}
        if not target and not part:
            return None
    else:
        if _FOREIGN.match(piece.target) or not piece.target:
            return None
        from urllib.parse import unquote  # noqa: PLC0415 - slow, and few texts have such a link

        kind, (target, _, part) = "markdown", piece.target.partition("#")
        is_block, alias = part.startswith("^"), text[slice(*piece.inner)]
        target, part = unquote(target), part[1:] if is_block else unquote(part)
    heading, block = ("", part) if is_block else (part, "")
    is_embed = text[piece.start] == "!"
    return Link(target, heading, block, alias, is_embed, kind, piece.start, piece.end, line)


def tags(text: str) -> list[str]:
    """Return the tags of the frontmatter and those within lines, without #, each once."""
    found = [each.removeprefix("#") for each in _named(text, "tags", "tag", separators=r"[,\s]+")]
    if _MAY_BE_TAG.search(text):
        pieces = (piece for piece in _pieces(text) if piece.kind == "tag")
        found += (text[slice(*piece.inner)] for piece in pieces)
    once: dict[str, str] = {}
    for each in found:
        tag = each.strip("/")
        if tag and not tag.isdecimal():
            once.setdefault(tag.casefold(), tag)
    return list(once.values())


def _pieces(text: str) -> Iterator[_Piece]:
    """Yield what is not prose within the lines of a text."""
    start = len(text) - len(split(text)[1])
    code = marks(text) if "```" in text or "~~~" in text else ()
    fences = [each for each in code if each.kind == "fence"]
    gaps = [
        *zip(
            [start, *(f.end for f in fences)], [*(f.start for f in fences), len(text)], strict=True
        )
    ]
    prose = "\n".join(text[slice(*gap)] for gap in gaps)
    if not _NEEDS_BLOCKS.search(_SPAN.sub("", prose) if len(text) < _SHORT else prose):
        for gap in gaps:
            yield from _pieces_in(text, *gap)
        return
    for block in blocks(text):
        if block.kind in _INLINE:
            yield from _pieces_in(text, block.start, block.end)


def _pieces_in(text: str, start: int, end: int) -> Iterator[_Piece]:
    """Yield the pieces between two positions; those in brackets come before the outer one."""
    closers = _Closers(text, end)
    opened: list[tuple[int, int]] = []
    at = start
    while special := _SPECIAL.search(text, at, end):
        at = special.end()
        found = _PIECE.match(text, special.start(), end)
        if found is None:
            continue
        at = found.end()
        kind = found.lastgroup
        place = found.start(), at
        if kind == "open":
            opened = [*opened[-_DEEPEST_BRACKET:], place]
        elif kind == "close":
            label = opened.pop() if opened else None
            to = label and _DESTINATION.match(text, at, end)
            if label and to:
                at = to.end()
                target = to["angled"] if to["angled"] is not None else to["bare"]
                yield _Piece("link", label[0], at, (label[1], place[0]), _unescaped(target))
        elif kind in {"wiki", "tag", "escape", "auto"}:
            yield _Piece(kind, *place, found.span(kind))
        elif kind == "html" and not found[0].startswith("<!--"):
            yield _Piece("html", *place, (at, at))
        elif kind and (span := closers.of(kind, found)):
            at = span[1]
            yield _Piece(
                kind, place[0], at, span if kind in {"html", "comment"} else (place[1], span[0])
            )


class _Closers:
    """Finds what closes code, mathematics and comments; no missing marker is searched twice."""

    def __init__(self, text: str, end: int) -> None:
        self._text = text
        self._end = end
        self._missing: set[str] = set()
        self._runs: dict[int, list[int]] | None = None

    def of(self, kind: str, opening: re.Match[str]) -> tuple[int, int] | None:
        mark = "-->" if kind == "html" else opening[0]
        if kind == "ticks":
            place = self._ticks(len(mark), opening.end())
        elif mark == "$":
            place = self._dollar(opening.end())
        elif mark in self._missing:
            return None
        else:
            place = self._text.find(mark, opening.end(), self._end)
        if place < 0:
            self._missing.add(mark)
            return None
        return place, place + len(mark)

    def _ticks(self, length: int, after: int) -> int:
        if self._runs is None:
            self._runs = {}
            for run in re.finditer("`+", self._text[after : self._end]):
                self._runs.setdefault(len(run[0]), []).append(after + run.start())
        places = self._runs.get(length, [])
        at = bisect_right(places, after - 1)
        return places[at] if at < len(places) else -1

    def _dollar(self, after: int) -> int:
        """Return where a $ closes another: not after a space, nor before a digit; -1 if nowhere."""
        text = self._text
        if text[after : after + 1].isspace():
            return -1
        stop = text.find("\n", after, self._end)
        place = text.find("$", after + 1, stop if stop >= 0 else self._end)
        if place < 0 or text[place - 1].isspace() or text[place + 1 : place + 2].isdigit():
            return -1
        return place


def _unescaped(target: str) -> str:
    text = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", target) if "\\" in target else target
    return _unreferenced(text)


def _unreferenced(text: str) -> str:
    """Return a text with its character references, such as `&lt;`, replaced."""
    if "&" not in text:
        return text
    from html import unescape  # noqa: PLC0415 - slow, and few texts have such a reference

    return unescape(text)


# ---------------------------------------------------------------- tasks and code
class TaskItem(NamedTuple):
    text: str
    mark: str
    """The character in its box: a space, x, or one with a meaning in an editor."""
    line: int
    start: int
    end: int

    @property
    def done(self) -> bool:
        return self.mark in "xX"


_BOX = later(
    r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)+\[(?P<mark>[^\r\n])\][ \t]+(?P<text>[^\s][^\r\n]*)",
    re.MULTILINE,
)


def tasks(text: str) -> list[TaskItem]:
    if not _BOX.search(text):
        return []
    return [
        TaskItem(found["text"].strip(), found["mark"], block.first_line, found.start(), found.end())
        for block in blocks(text)
        if block.kind == "paragraph" and (found := _BOX.match(text, block.start, block.end))
    ]


_FENCE_LINE = later(
    r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?P<mark>`{3,}(?=[^`\n]*$)|~{3,})(?P<info>[^\n]*)",
    re.MULTILINE,
)


class CodeFence(NamedTuple):
    start: int
    end: int
    is_closed: bool = True


def code_fences(text: str) -> Iterator[CodeFence]:
    """Yield where fenced code starts and ends, including the fences, found line by line.

    The result is the parser's if every fence is closed and its code has the same indentation. Code
    without a closing fence reaches to the end of the text.
    """
    start, mark = -1, ""
    for found in _FENCE_LINE.finditer(text):
        if not mark:
            start, mark = found.start(), found["mark"]
        elif found["mark"].startswith(mark) and not found["info"].strip():
            yield CodeFence(start, min(found.end() + 1, len(text)))
            mark = ""
    if mark:
        yield CodeFence(start, len(text), is_closed=False)


def without_code(text: str) -> str:
    """Return a text with its lines between fences empty."""
    pieces, at = list[str](), 0
    for start, end, _ in code_fences(text):
        pieces += text[at:start], "\n" * text.count("\n", start, end)
        at = end
    return "".join((*pieces, text[at:]))


# ---------------------------------------------------------------- prose
def without_markers(line: str) -> str:
    """Return a line without the markers of the quotations, lists and tasks that it is in."""
    return _PREFIX.sub("", line)


_PREFIX = later(
    r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*"
    r"(?:\[[^\r\n\]]\][ \t]+|\[![\w|-]{1,80}\][-+]?[ \t]*)?",
    re.MULTILINE,
)
"""The markers of quotations, callouts, lists and tasks."""
_EMPHASIS = later(
    r"\*{1,3}(?=[^\s*])|(?<=[^\s*])\*{1,3}|(?<!\w)_{1,3}(?=[^\s_])|(?<=[^\s_])_{1,3}(?!\w)|~~|=="
)


def _shown(text: str) -> str:
    out: list[str] = []
    at = 0
    pieces = sorted(_pieces_in(text, 0, len(text)), key=lambda piece: (piece.start, -piece.end))
    for piece in pieces:
        if piece.start < at:
            continue
        out.append(_EMPHASIS.sub("", text[at : piece.start]))
        at = piece.end
        if piece.kind == "wiki":
            link = _link(text, piece, 1)
            named = " > ".join(filter(None, (link.target, link.heading))) if link else ""
            out.append((link and link.alias) or named)
        elif piece.kind == "link":
            out.append(_EMPHASIS.sub("", text[slice(*piece.inner)]))
        elif piece.kind == "tag":
            out.append(text[piece.start : piece.end])
        elif piece.kind not in {"html", "comment"}:
            out.append(text[slice(*piece.inner)])
    out.append(_EMPHASIS.sub("", text[at:]))
    return _unreferenced("".join(out))
