"""From a node to its records: abstract, overview, and its content in passages."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from perdure.dataclass import replace
from perdure.frontmatter import join
from perdure.markdown import aliases, marks
from perdure.model import ContextNode, ContextType, IndexRecord, Level
from perdure.model.record import ACCOUNT, OWNER_SPACE, VALID_FROM, VALID_UNTIL, record_id
from perdure.model.speech import SAID, Kind, speech_of
from perdure.model.transcript import HIDDEN, Said, parse
from perdure.model.values import JSON, MAX_ABSTRACT, frozen_as_is, shortened
from perdure.times import read_moment

CHARACTERS = 900
"""About two hundred tokens of English."""
_MARKED = frozenset("\n\r#")
_GAP = re.compile(r"^[^\S\n]*\n", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?…]['\")\]]*\s+|\s*\n")
_SEVERAL = 2
_NAMES = ("aliases", "tags")
_MOST_NAMES = 20
"""So many aliases and tags of a note are indexed, with each of its passages."""
_END = 60
"""So many characters are the end of a message."""
_WORD = re.compile(r"[^\W_]+")
_INDEXED = SAID | {Kind.SUMMARY}
Plain = dict[str, str | int | tuple[str | int, ...]]
"""What a record says, made of what was checked."""


class Passage(NamedTuple):
    text: str
    first_line: int
    """From 1."""
    last_line: int
    headings: tuple[str, ...] = ()
    """Those that it stands under, the outermost first."""


class _Block(NamedTuple):
    """Where lines are that belong together: a paragraph, a fence of code, a list."""

    start: int
    end: int
    headings: tuple[str, ...]
    section: int
    """How many headings are above."""


def passages(text: str) -> list[Passage]:
    """Return the passages of a Markdown text, in order; none reaches over a heading."""
    if len(text) <= CHARACTERS and _MARKED.isdisjoint(text):  # as most memories are
        return [Passage(text, 1, 1)] if text.strip() else []
    found: list[Passage] = []
    line, before = 1, 0
    for block in _grouped(_blocks(text)):
        line += text.count("\n", before, block.start)
        before = block.start
        found += _cut(text[block.start : block.end], line, block.headings)
    return found


def split_text(text: str, first_line: int = 1) -> list[Passage]:
    """Return plain text in passages, without regard to headings; at least one, be it empty."""
    return list(_cut(text, first_line)) or [Passage(text, first_line, first_line)]


def _blocks(text: str) -> Iterator[_Block]:
    """Yield what blank lines and headings set apart; code stays together."""
    titles: list[tuple[int, str]] = []
    section, at, code = 0, 0, 0
    for mark in [*marks(text), None]:
        start, end = max(at, code), mark.start if mark else len(text)
        above = tuple(title for _, title in titles)
        for gap in _GAP.finditer(text, start, end):
            if at < gap.start():
                yield _Block(at, gap.start() - 1, above, section)
            at = gap.end()
        if mark and mark.kind == "fence":
            code = mark.end
            continue
        if at < end:
            yield _Block(at, end - bool(mark), above, section)
        if mark:
            titles = [each for each in titles if each[0] < mark.level]
            titles.append((mark.level, mark.info))
            section, at = section + 1, mark.end


def _grouped(blocks: Iterator[_Block]) -> Iterator[_Block]:
    """Join small blocks under the same heading, as long as they fit into one passage."""
    last: _Block | None = None
    for block in blocks:
        if last and last.section == block.section and block.end - last.start <= CHARACTERS:
            last = last._replace(end=block.end)
            continue
        if last:
            yield last
        last = block
    if last:
        yield last


def _cut(text: str, line: int, headings: tuple[str, ...] = ()) -> Iterator[Passage]:
    """Cut a long block at the ends of sentences, or in words if there are none."""
    start = 0
    while start < len(text):
        end = len(text) if len(text) - start <= CHARACTERS else _end(text, start)
        said = text[start:end]
        if said.strip():
            first = line + text.count("\n", 0, start + len(said) - len(said.lstrip("\n")))
            last = line + text.count("\n", 0, start + len(said.rstrip("\n")))
            yield Passage(said.strip("\n"), first, last, headings)
        start = end


def _end(text: str, start: int) -> int:
    """Return where the passage that begins at `start` ends, not too early if that can be."""
    limit = start + CHARACTERS
    least = start + CHARACTERS // 3
    ends = [found.end() for found in _SENTENCE_END.finditer(text, least, limit)]
    if ends:
        return ends[-1]
    space = text.rfind(" ", least, limit)
    return space + 1 if space > 0 else limit


class Piece(NamedTuple):
    text: str
    first_line: int
    last_line: int
    context: tuple[str, ...]
    length: int
    """The words of the message that it is of, or its own."""
    date: datetime | None = None
    headings: tuple[str, ...] = ()
    said: Said | None = None
    party: tuple[str, ...] = ()
    """Who speaks in the session."""


def records_of(node: ContextNode, cid: str, names: Sequence[str] = ()) -> list[IndexRecord]:
    """Return the records of a node, without vectors; `cid` names its content.

    They depend on nothing but the node, and the names that its owner gave to its file. A text
    without words has no record. A node of several passages has one record more, of its level 1: all
    of it, so that it can be compared as a whole.
    """
    called, uri = _called(node, names), node.uri
    pieces = list(_pieces(node, called))
    payload, filters = _payload(node, cid), _filters(node)
    texts = (
        (Level.ABSTRACT, 0, node.abstract, called),
        (Level.OVERVIEW, 0, node.overview, called),
        (Level.OVERVIEW, 1, _whole(pieces), ()),
    )
    found: list[IndexRecord] = []
    if any(text.strip() for _, _, text, _ in texts):
        above = frozen_as_is(filters | {"parent_uri": uri.rpartition("/")[0]})
        of_all = above, frozen_as_is(payload)
        found = [
            IndexRecord.of_node(uri, level, number, text, _joined(context), *of_all)
            for level, number, text, context in texts
            if text.strip()
        ]
    units, filters = _units(pieces), {**filters, "parent_uri": uri}
    shared = frozen_as_is(filters)
    for number, piece in enumerate(pieces):
        found.append(
            IndexRecord.of_node(
                uri,
                Level.CONTENT,
                number,
                piece.text,
                _joined(piece.context),
                _filed(filters, shared, piece),
                frozen_as_is(payload | _passage(piece, number, units)),
            )
        )
    return found


def whole_id(uri: str) -> str:
    return record_id(uri, Level.OVERVIEW, 1)


def is_whole(record: IndexRecord) -> bool:
    """Whether a record is of all passages of a node; such a one has no vector."""
    return record.id == whole_id(record.uri)


def embedding_text(record: IndexRecord) -> str:
    """Return the text that stands for a record before an embedder: who says it, or under what."""
    said = record.payload.get("speaker") or record.payload.get("under")
    return f"{said}: {record.text}" if said else record.text


def _pieces(node: ContextNode, called: Sequence[str]) -> Iterator[Piece]:
    said = parse(node.content) if node.place.session else []
    if said:
        yield from _turns(said)
        return
    date = read_moment(node.metadata.get("date"))
    has_content = node.content.strip() or not node.metadata.get("in_place")
    for passage in passages(node.content) if has_content else split_text(node.frontmatter or ""):
        yield Piece(
            passage.text,
            passage.first_line,
            passage.last_line,
            context=(*called, *passage.headings),
            length=_length(passage.text),
            date=date,
            headings=passage.headings,
        )


def _turns(said: Sequence[Said]) -> Iterator[Piece]:
    spoken = [found for each in said for found in _spoken(each)]
    party = tuple(dict.fromkeys(each.message.speaker for each, _, _ in spoken))
    for each, text, line in spoken:
        message = each.message
        length = _length(text)
        for passage in split_text(text, line):
            lines = passage.first_line, passage.last_line
            yield Piece(
                passage.text,
                *lines,
                context=(message.speaker,),
                length=length,
                date=message.time,
                said=each,
                party=party,
            )


def _spoken(said: Said) -> Iterator[tuple[Said, str, int]]:
    """Yield what a person or the agent said in a message, with its first line; else nothing.

    If what nobody said stands in the middle of it, each paragraph of the rest is yielded; of what
    the user forgot, nothing. A summary is a program's, whatever its message says.
    """
    content = said.message.content
    speech = speech_of(said.message.role, content)
    if speech.kind not in _INDEXED or not speech.text.replace(HIDDEN, "").strip():
        return
    if speech.kind is Kind.SUMMARY:
        said = replace(said, message=replace(said.message, role="system", name=""))
    whole = speech.text if speech.text in content else ""
    for text in [whole] if whole else speech.text.split("\n\n"):
        if text.strip() and (at := content.find(text)) >= 0:
            yield said, text, said.first_line + content.count("\n", 0, at)


def _called(node: ContextNode, names: Sequence[str]) -> tuple[str, ...]:
    """Return what a node is called, as far as its content does not say so anyway.

    `names` are in small letters.
    """
    said = set(_WORD.findall(node.content.casefold()))
    lists = [node.metadata.get(name) for name in _NAMES if node.metadata.get("in_place")]
    more = [str(each) for listed in lists if isinstance(listed, tuple) for each in listed]
    if not lists and "alias" in (node.frontmatter or ""):
        more = aliases(join(node.frontmatter or "", ""))
    known, new = set(said), list[str]()
    for name in (node.title, node.place.words, *more[:_MOST_NAMES]):
        words = _WORD.findall(name.casefold())
        known.update(words)
        if not said.issuperset(words):
            new.append(name)
    new += [name for name in names if not known.issuperset(_WORD.findall(name))]
    return tuple(shortened(name, MAX_ABSTRACT) for name in new)


def _length(text: str) -> int:
    return len(_WORD.findall(text))


def _whole(pieces: Sequence[Piece]) -> str:
    """Return all that the passages say, with who says it; nothing if there is only one."""
    if len(pieces) < _SEVERAL:
        return ""
    said = ((piece.said.message.speaker if piece.said else "", piece.text) for piece in pieces)
    return "\n".join(f"{speaker}: {text}" if speaker else text for speaker, text in said)


def _units(pieces: Sequence[Piece]) -> list[int]:
    """Return the number of the first passage of each message; without messages, of each passage."""
    return [
        number
        for number, piece in enumerate(pieces)
        if piece.said is None or number == 0 or pieces[number - 1].said != piece.said
    ]


def _near(number: int, units: Sequence[int]) -> tuple[int, ...]:
    """Return where the message before begins, the one after, and the one after that; -1 is none."""
    at = bisect_right(units, number) - 1
    return tuple([units[to] if 0 <= to < len(units) else -1 for to in (at - 1, at + 1, at + 2)])


def _passage(piece: Piece, number: int, units: Sequence[int]) -> Plain:
    """Return what the payload of a passage has beside that of its node."""
    payload: Plain = {
        "lines": (piece.first_line, piece.last_line),
        "passage": number,
        "near": _near(number, units),
        "length": piece.length,
    }
    if piece.said is not None:
        message = piece.said.message
        payload |= {
            "speaker": message.speaker,
            "role": message.role,
            "message": piece.said.index,
            "party": piece.party,
            "asks": "?" in message.content[-_END:],
        }
    if piece.headings:
        payload["under"] = " · ".join(piece.headings)
    if piece.date is not None:
        payload["date"] = piece.date.isoformat()
    return payload


def _payload(node: ContextNode, cid: str) -> Plain:
    payload: Plain = {"title": node.title, "cid": cid, "version": node.version}
    if node.date:
        payload["date"] = node.date.isoformat()
    payload["updated_at"] = node.updated_at.isoformat()
    if node.place.session:
        payload["session_id"] = node.place.session
    if node.project:
        payload["project"] = node.project
    return payload


def _filters(node: ContextNode) -> Plain:
    """Return what the records of a node are filed under, but for the place above each."""
    filters: Plain = {
        ACCOUNT: node.account_id,
        OWNER_SPACE: node.owner_space,
        "context_type": ContextType.of(node.place).value,
        "category": node.category,
        "session_id": node.place.session,
        "project": node.project,
    }
    for name, time in ((VALID_FROM, node.valid_from), (VALID_UNTIL, node.valid_until)):
        if time is not None:
            filters[name] = time.isoformat()
    return filters


def _filed(filters: Plain, shared: Mapping[str, JSON], piece: Piece) -> Mapping[str, JSON]:
    """Return what a passage is filed under: what somebody said holds from when it was said."""
    if piece.said is None or piece.date is None or VALID_FROM in filters:
        return shared
    return frozen_as_is(filters | {VALID_FROM: piece.date.isoformat()})


def _joined(context: Iterable[str]) -> str:
    return " · ".join(dict.fromkeys(filter(None, context)))
