"""The records of a node: its abstract, its overview, and its content in passages."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from perdure.dataclass import replace
from perdure.frontmatter import join
from perdure.markdown import aliases, marks
from perdure.model import ContextNode, ContextType, IndexRecord, Level
from perdure.model.node import ACCOUNT, OWNER_SPACE, VALID_FROM, VALID_UNTIL, record_id
from perdure.model.speech import SPOKEN, SpeechKind, speech_of
from perdure.model.transcript import HIDDEN, TranscriptEntry, parse
from perdure.model.values import JSON, MAX_ABSTRACT, frozen_as_is, shortened
from perdure.times import read_time

CHARACTERS = 900
"""About two hundred tokens of English."""
_MARKED = frozenset("\n\r#")
_GAP = re.compile(r"^[^\S\n]*\n", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?…]['\")\]]*\s+|\s*\n")
_SEVERAL = 2
_NAMES = ("aliases", "tags")
_MAX_NAMES = 20
"""Aliases and tags of a note that are indexed, with each of its passages."""
_END = 60
"""A question mark in this many last characters makes a message a question."""
_WORD = re.compile(r"[^\W_]+")
_INDEXED = SPOKEN | {SpeechKind.SUMMARY}
Values = dict[str, str | int | tuple[str | int, ...]]
"""Filters or payload of a record, from values that were checked before."""


class Passage(NamedTuple):
    text: str
    first_line: int
    """From 1."""
    last_line: int
    headings: tuple[str, ...] = ()
    """The headings above it, outermost first."""


class _Block(NamedTuple):
    """The position of lines that belong together: a paragraph, a fence of code, a list."""

    start: int
    end: int
    headings: tuple[str, ...]
    section: int
    """The number of headings before it."""


def passages(text: str) -> list[Passage]:
    """Return the passages of a Markdown text, in order; none spans a heading."""
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
    """Return plain text in passages, ignoring headings; at least one, even if it is empty."""
    return list(_cut(text, first_line)) or [Passage(text, first_line, first_line)]


def _blocks(text: str) -> Iterator[_Block]:
    """Yield what blank lines and headings separate; fenced code is not split."""
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
    """Join small blocks under the same heading, while they fit into one passage."""
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
    """Split a long block at the ends of sentences, or between words if there are none."""
    start = 0
    while start < len(text):
        end = len(text) if len(text) - start <= CHARACTERS else _end(text, start)
        part = text[start:end]
        if part.strip():
            first = line + text.count("\n", 0, start + len(part) - len(part.lstrip("\n")))
            last = line + text.count("\n", 0, start + len(part.rstrip("\n")))
            yield Passage(part.strip("\n"), first, last, headings)
        start = end


def _end(text: str, start: int) -> int:
    """Return the end of the passage at `start`: a sentence's, a word's, or the limit."""
    limit = start + CHARACTERS
    least = start + CHARACTERS // 3
    ends = [found.end() for found in _SENTENCE_END.finditer(text, least, limit)]
    if ends:
        return ends[-1]
    space = text.rfind(" ", least, limit)
    return space + 1 if space > 0 else limit


class IndexedPassage(NamedTuple):
    """A passage of a node's content, or of a message of a session."""

    passage: Passage
    context: tuple[str, ...]
    length: int
    """The number of words of its message, or of the passage itself."""
    date: datetime | None = None
    message: TranscriptEntry | None = None
    speakers: tuple[str, ...] = ()
    """All speakers of the session."""


def records_of(node: ContextNode, cid: str, names: Sequence[str] = ()) -> list[IndexRecord]:
    """Return the records of a node, without vectors; `cid` is the name of its content.

    They depend only on the node and the names of its file. A text without words has no record. A
    node with several passages has an additional record of level 1 with all of them, so that nodes
    can be compared as a whole.
    """
    called, uri = _names_of(node, names), node.uri
    content = list(_content_of(node, called))
    payload, filters = _payload(node, cid), _filters(node)
    texts = (
        (Level.ABSTRACT, 0, node.abstract, called),
        (Level.OVERVIEW, 0, node.overview, called),
        (Level.OVERVIEW, 1, _whole(content), ()),
    )
    records: list[IndexRecord] = []
    if any(text.strip() for _, _, text, _ in texts):
        above = frozen_as_is(filters | {"parent_uri": uri.rpartition("/")[0]})
        of_all = above, frozen_as_is(payload)
        records = [
            IndexRecord.of_node(uri, level, number, text, _joined(context), *of_all)
            for level, number, text, context in texts
            if text.strip()
        ]
    units, filters = _units(content), {**filters, "parent_uri": uri}
    shared = frozen_as_is(filters)
    for number, each in enumerate(content):
        records.append(
            IndexRecord.of_node(
                uri,
                Level.CONTENT,
                number,
                each.passage.text,
                _joined(each.context),
                _passage_filters(filters, shared, each),
                frozen_as_is(payload | _passage_payload(each, number, units)),
            )
        )
    return records


def whole_id(uri: str) -> str:
    return record_id(uri, Level.OVERVIEW, 1)


def is_whole(record: IndexRecord) -> bool:
    """Whether a record has all passages of a node; such a record has no vector."""
    return record.id == whole_id(record.uri)


def embedding_text(record: IndexRecord) -> str:
    """Return the text of a record for an embedder, after its speaker or its headings."""
    prefix = record.payload.get("speaker") or record.payload.get("under")
    return f"{prefix}: {record.text}" if prefix else record.text


def _content_of(node: ContextNode, called: Sequence[str]) -> Iterator[IndexedPassage]:
    messages = parse(node.content) if node.place.session else []
    if messages:
        yield from _message_passages(messages)
        return
    date = read_time(node.metadata.get("date"))
    has_content = node.content.strip() or not node.metadata.get("in_place")
    for passage in passages(node.content) if has_content else split_text(node.frontmatter or ""):
        context = (*called, *passage.headings)
        yield IndexedPassage(passage, context, _word_count(passage.text), date)


def _message_passages(messages: Sequence[TranscriptEntry]) -> Iterator[IndexedPassage]:
    spoken = [found for each in messages for found in _spoken(each)]
    speakers = tuple(dict.fromkeys(each.message.speaker for each, _, _ in spoken))
    for each, text, line in spoken:
        message, length = each.message, _word_count(text)
        for passage in split_text(text, line):
            context = (message.speaker,)
            yield IndexedPassage(passage, context, length, message.time, each, speakers)


def _spoken(message: TranscriptEntry) -> Iterator[tuple[TranscriptEntry, str, int]]:
    """Yield what a person or the agent wrote in a message, with its first line.

    If other text is in the middle of it, each paragraph of the rest is yielded. Forgotten sentences
    are left out. A summary counts as written by the system, whatever the role of its message.
    """
    content = message.message.content
    speech = speech_of(message.message.role, content)
    if speech.kind not in _INDEXED or not speech.text.replace(HIDDEN, "").strip():
        return
    if speech.kind is SpeechKind.SUMMARY:
        message = replace(message, message=replace(message.message, role="system", name=""))
    whole = speech.text if speech.text in content else ""
    for text in [whole] if whole else speech.text.split("\n\n"):
        if text.strip() and (at := content.find(text)) >= 0:
            yield message, text, message.first_line + content.count("\n", 0, at)


def _names_of(node: ContextNode, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of a node whose words its content does not have.

    `names` are in lower case.
    """
    in_content = set(_WORD.findall(node.content.casefold()))
    lists = [node.metadata.get(name) for name in _NAMES if node.metadata.get("in_place")]
    more = [str(each) for listed in lists if isinstance(listed, tuple) for each in listed]
    if not lists and "alias" in (node.frontmatter or ""):
        more = aliases(join(node.frontmatter or "", ""))
    known, new = set(in_content), list[str]()
    for name in (node.title, node.place.words, *more[:_MAX_NAMES]):
        words = _WORD.findall(name.casefold())
        known.update(words)
        if not in_content.issuperset(words):
            new.append(name)
    new += [name for name in names if not known.issuperset(_WORD.findall(name))]
    return tuple(shortened(name, MAX_ABSTRACT) for name in new)


def _word_count(text: str) -> int:
    return len(_WORD.findall(text))


def _whole(content: Sequence[IndexedPassage]) -> str:
    """Return all passages with their speakers; empty if there is only one."""
    if len(content) < _SEVERAL:
        return ""
    lines = ((each.message.message.speaker if each.message else "", each) for each in content)
    return "\n".join(
        f"{speaker}: {each.passage.text}" if speaker else each.passage.text
        for speaker, each in lines
    )


def _units(content: Sequence[IndexedPassage]) -> list[int]:
    """Return the number of the first passage of each message; without messages, of each passage."""
    return [
        number
        for number, each in enumerate(content)
        if each.message is None or number == 0 or content[number - 1].message != each.message
    ]


def _near(number: int, units: Sequence[int]) -> tuple[int, ...]:
    """Return the first passages of the previous unit and of the next two; -1 for none."""
    at = bisect_right(units, number) - 1
    return tuple([units[to] if 0 <= to < len(units) else -1 for to in (at - 1, at + 1, at + 2)])


def _passage_payload(indexed: IndexedPassage, number: int, units: Sequence[int]) -> Values:
    """Return what the payload of a passage has in addition to that of its node."""
    payload: Values = {
        "lines": (indexed.passage.first_line, indexed.passage.last_line),
        "passage": number,
        "near": _near(number, units),
        "length": indexed.length,
    }
    if indexed.message is not None:
        message = indexed.message.message
        payload |= {
            "speaker": message.speaker,
            "role": message.role,
            "message": indexed.message.index,
            "party": indexed.speakers,
            "asks": "?" in message.content[-_END:],
        }
    if indexed.passage.headings:
        payload["under"] = " · ".join(indexed.passage.headings)
    if indexed.date is not None:
        payload["date"] = indexed.date.isoformat()
    return payload


def _payload(node: ContextNode, cid: str) -> Values:
    payload: Values = {"title": node.title, "cid": cid, "version": node.version}
    if node.date:
        payload["date"] = node.date.isoformat()
    payload["updated_at"] = node.updated_at.isoformat()
    if node.place.session:
        payload["session_id"] = node.place.session
    if node.project:
        payload["project"] = node.project
    return payload


def _filters(node: ContextNode) -> Values:
    """Return the filters of a node's records, without `parent_uri`."""
    filters: Values = {
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


def _passage_filters(
    filters: Values, shared: Mapping[str, JSON], indexed: IndexedPassage
) -> Mapping[str, JSON]:
    """Return the filters of a passage; a message is valid from its time on."""
    if indexed.message is None or indexed.date is None or VALID_FROM in filters:
        return shared
    return frozen_as_is(filters | {VALID_FROM: indexed.date.isoformat()})


def _joined(context: Iterable[str]) -> str:
    return " · ".join(dict.fromkeys(filter(None, context)))
