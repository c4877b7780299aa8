"""A place as one Markdown file: its logical texts are read from it and spliced into it.

What a person wrote into the file stays to the letter. Properties that Perdure writes have one line
each, or one for each entry of a list, and are read without YAML as long as they look so.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from perdure.context.layouts.names import id_of, node_at
from perdure.context.node_files import (
    ABSTRACT,
    ARCHIVED,
    CONTENT,
    EMPTY,
    FILES,
    LEARNED,
    META,
    METADATA,
    OVERVIEW,
    OWNER,
    RELATIONS,
    TEXT_FILES,
    Meta,
    format_time,
    short_hash,
    statement_cid,
)
from perdure.errors import InvalidValueError
from perdure.frontmatter import (
    FrontmatterEntry,
    as_json,
    entries,
    fences,
    is_plain_name,
    join,
    render_property,
    value_of,
)
from perdure.frontmatter import split as halves
from perdure.markdown import aliases, frontmatter, tags, title
from perdure.model import NodeStatus, Uri
from perdure.model.node import title_of
from perdure.model.request import check_owner_space
from perdure.model.values import JSON, MAX_ABSTRACT, frozen, plain, shortened
from perdure.patterns import later
from perdure.times import read_time

ID = "id"
_CREATED, _UPDATED, _VERSION, _STATUS = "created", "updated", "version", "status"
_OWNER, _LEARNED, _RELATIONS, _ABSTRACT, _OVERVIEW = (
    "owner",
    "learned",
    "relations",
    "abstract",
    "overview",
)
_OURS = "perdure"
"""What no other property says: as an object, to the letter."""
_EVIDENCE = "evidence"
_STATEMENTS = "statements"
_MERGES = "merges"
_RESERVED = (
    *(ID, _STATUS, _CREATED, _UPDATED, _VERSION, _OWNER, _LEARNED),
    *(_RELATIONS, _ABSTRACT, _OVERVIEW, _EVIDENCE, _OURS),
)
_SPELLED = {"valid_from": "valid-from", "valid_until": "valid-until"}
_SPOKEN = {spelled: name for name, spelled in _SPELLED.items()}
_TITLES = frozenset({"title", "aliases"})
_ATTEMPTS = 5
_NEVER = datetime.fromtimestamp(0, UTC)
"""When something was made that does not say it: sync clients set any time of a file."""
_HEAD = 4_000
"""A title is looked for in so many characters: to parse a whole note takes most of indexing it."""

_TIME = later(r"\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_DATED = later(r"\d{4}-\d\d-\d\d(?!\d)", re.ASCII)
_FENCED = later(r"^(?P<fence>`{3,})text\n(?P<text>.*)\n(?P=fence)$", re.DOTALL | re.MULTILINE)
_encode = json.JSONEncoder(ensure_ascii=False).encode

Texts = Mapping[str, str]
"""The texts of a place by their names; what is not there has none."""
Values = Mapping[str, JSON]
"""Properties, or metadata, by their names."""


class NoteFile(NamedTuple):
    opening: str
    """The first fence, with what comes before it; empty without frontmatter."""
    entries: tuple[FrontmatterEntry, ...]
    closing: str
    body: str

    @classmethod
    def parse(cls, text: str) -> "NoteFile":
        found = fences(text)
        if found is None:
            return cls("", (), "", text)
        opening, lines, closing, body = found
        return cls(opening, tuple(entries(lines)), closing, body)

    @property
    def line_end(self) -> str:
        return "\r\n" if self.opening.endswith("\r\n") else "\n"

    @property
    def content(self) -> str:
        """The body without the line end that every file has."""
        return self.body.removesuffix(self.line_end)

    def says(self, name: str) -> bool:
        return any(entry.name == name for entry in self.entries)

    def text(self) -> str:
        lines = "".join(entry.raw for entry in self.entries)
        return f"{self.opening}{lines}{self.closing}{self.body}"

    def value(self, name: str) -> JSON:
        """Return a property; None if there is none, or none that can be read."""
        for entry in self.entries:
            if entry.name == name:
                return _value(entry)
        return None


def _value(entry: FrontmatterEntry) -> JSON:
    """Return the value of a property; None if it can't be read, or a meta can't have it."""
    try:
        found = value_of(entry)
        if type(found) is not str or not found.isascii():
            frozen({"": found}, "value")
    except (ValueError, RecursionError):
        return None
    return found


def _same(one: JSON, other: JSON) -> bool:
    return _encode(plain(one)) == _encode(plain(other))


# ---------------------------------------------------------------- reading
def split(real: str, place: str, owner: str = "") -> Texts:
    """Return the texts of a place that its file holds; to be read only.

    `owner` has a session whose file names nobody, or was not written here.
    """
    return _split(real, place, owner if "/sessions/" in place else "")


@lru_cache(maxsize=64)  # those whose abstracts a save reads
def _split(real: str, place: str, owner: str) -> Texts:
    file = NoteFile.parse(real)
    node = node_at(place)
    if node is None:
        found = _FENCED.search(file.body)
        return {"": found["text"] if found else file.content}
    return _split_node(file, node, _session_owner(file, node, owner) if node.session else "")


def _session_owner(file: NoteFile, node: Uri, owner: str) -> str:
    said = file.value(_OWNER)
    try:
        return check_owner_space(said)
    except InvalidValueError:
        is_ours = said is None and file.value(ID) == id_of(node.key)
        return "" if is_ours else owner


def _split_node(file: NoteFile, node: Uri, owner: str) -> dict[str, str]:
    ours = _mapping(file.value(_OURS))
    literal = _mapping(ours.get("texts"))
    texts: dict[str, str] = {}
    own, names = _own_names(node, ours)
    properties: Values = {e.name: _value(e) for e in reversed(file.entries) if e.name in names}
    if ours.get("node") is not False:
        ends = ours.get("ends") is not False and _ends(node, is_learned=_EVIDENCE in properties)
        texts[CONTENT] = join(_extra(file, names), file.body if ends else file.content)
        texts |= _parts(properties)
        if literal:
            _put(texts, {name: each for name, each in literal.items() if name in TEXT_FILES})
        metadata = _metadata(properties, file.body, node, own, _mapping(ours.get("values")))
        meta = _meta(properties, texts.get(CONTENT, ""), metadata, owner)
        texts[META] = meta.text()
        if meta.status is NodeStatus.ARCHIVED:
            texts[ARCHIVED] = f"{node}\n"
    if node.session and node.path[2:] == ("messages",):
        for name, text in ((OWNER, owner or None), (LEARNED, properties.get(_LEARNED))):
            if isinstance(text, str):
                texts[name] = f"{text}\n"
    if literal:
        _put(texts, {name: each for name, each in literal.items() if name not in TEXT_FILES})
    return texts


def _mapping(value: JSON) -> Values:
    return value if isinstance(value, Mapping) else {}


def _put(texts: dict[str, str], literal: Mapping[str, JSON]) -> None:
    for name, said in literal.items():
        if isinstance(said, str):
            texts[name] = said
        else:
            texts.pop(name, None)


def _own_names(node: Uri, ours: Values) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the metadata that a file of ours may have, in the order of a meta; and as properties.

    What else is in a frontmatter belongs to its owner.
    """
    more = ours.get("metadata")
    return _names(
        bool(node.session), tuple(map(str, more)) if isinstance(more, list | tuple) else ()
    )


@lru_cache(maxsize=64)
def _names(in_session: bool, more: tuple[str, ...]) -> tuple[tuple[str, ...], frozenset[str]]:  # noqa: FBT001 - of `_own_names`
    known = [name for name in METADATA if name != "title" or in_session]
    own = (*known, *(name for name in more if name not in known))
    return own, frozenset({*_RESERVED, *(_SPELLED.get(name, name) for name in own)})


def _extra(file: NoteFile, ours: frozenset[str]) -> str:
    """Return the lines of a frontmatter that belong to its owner, to the letter."""
    return "".join([entry.raw for entry in file.entries if entry.name not in ours])


def _parts(properties: Values) -> dict[str, str]:
    """Return the parts that are properties, without those that are empty."""
    found: dict[str, str] = {}
    if properties.get(_RELATIONS):
        found[RELATIONS] = _relations_text(properties[_RELATIONS])
    for name, property_ in ((ABSTRACT, _ABSTRACT), (OVERVIEW, _OVERVIEW)):
        if properties.get(property_):
            found[name] = _text(properties[property_])
    return {name: text for name, text in found.items() if text != EMPTY[name]}


def _ends(node: Uri, *, is_learned: bool) -> bool:
    """Whether a content ends with a line end of its own: sessions and learned pages do."""
    return bool(node.session) or is_learned


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def _relations_text(value: JSON) -> str:
    if not isinstance(value, list) or not value:
        return "[]\n"
    return "[\n" + ",\n".join(f"  {_encode(each)}" for each in value) + "\n]\n"


def _meta(properties: Values, content: str, metadata: Values, owner: str) -> Meta:
    version, status = properties.get(_VERSION), str(properties.get(_STATUS, "")).upper()
    begun = _time(properties.get(_CREATED)) or _time(properties.get("date")) or _NEVER
    return Meta(
        NodeStatus[status] if status in NodeStatus.__members__ else NodeStatus.ACTIVE,
        max(int(version), 1) if isinstance(version, int) else 1,
        owner,
        begun,
        _time(properties.get(_UPDATED)) or begun,
        {},
        metadata,
        short_hash(content),
    )


def _metadata(
    properties: Values, body: str, node: Uri, own: Sequence[str], values: Values
) -> Values:
    found: dict[str, JSON] = {}
    for name in own:
        if name in values:
            found[name] = values[name]
        elif name in {_STATEMENTS, _MERGES}:
            found[name] = _evidence(properties, body, node, name)
        else:
            found[name] = properties.get(_SPELLED.get(name, name))
    return {name: value for name, value in found.items() if value is not None}


def _time(value: JSON) -> datetime | None:
    """Return a time that a property says; a date is its first moment, and no zone is UTC."""
    return read_time(value) if isinstance(value, str) and _DATED.match(value) else None


def _evidence(properties: Values, body: str, node: Uri, name: str) -> JSON:
    listed = properties.get(_EVIDENCE if name == _STATEMENTS else _MERGES)
    if isinstance(listed, list):
        return _Shortened(body, _text(properties.get("kind")) or node.category).read(name, listed)
    return properties.get(name)


# ---------------------------------------------------------------- notes in place
IN_PLACE = "in_place"
"""In the metadata of a note that its owner wrote: what it says of itself grants nothing."""


def split_in_place(real: str, place: str, name: str, daily: str | None = None) -> dict[str, str]:
    """Return the texts of a note that its owner wrote; its content is the note to the letter.

    `daily` is the day that it is named after.
    """
    node = node_at(place)
    assert node is not None  # noqa: S101 - it is a resource
    found = frontmatter(real)
    called = shortened(title(real[:_HEAD], name), MAX_ABSTRACT)
    values = {key: as_json(found.values.get(key)) for key in ("created", "date")}
    day = next(filter(None, map(_time, (*values.values(), daily))), None)
    abstract = "" if title_of(found.body, "", node) == called else called
    texts = {CONTENT: real, **({ABSTRACT: abstract} if abstract else {})}
    metadata: dict[str, JSON] = {"date": format_time(day)} if day else {}
    metadata |= {"tags": found_tags} if (found_tags := tags(real)) else {}
    metadata |= {"aliases": others} if (others := aliases(real)) else {}
    begun = day or _NEVER
    meta = Meta(
        NodeStatus.ACTIVE,
        1,
        "",
        begun,
        begun,
        {},
        {**metadata, IN_PLACE: True},
        short_hash(real),
    )
    return {**texts, META: meta.text()}


# ---------------------------------------------------------------- evidence
_STATED = later(
    r"^[-*+][ \t]+(\S.*?)(?: \((?:may be outdated )?since [\d-]{10}\))*\r?$", re.MULTILINE
)
"""A statement in one line, without the days at its end."""
_SHORT = slice(7, 19)
"""The part of a CID that names a statement of the same file: 60 bits."""


class _Shortened:
    """The evidence of a file, without what its text and its other properties say already."""

    def __init__(self, body: str, kind: str) -> None:
        self._kind = kind
        found = {statement_cid(text): text for text in _STATED.findall(body)}
        self._texts = {cid[_SHORT]: text for cid, text in found.items()}
        self._cids = {cid[_SHORT]: cid for cid in found}

    def read(self, name: str, listed: list[JSON]) -> JSON:
        """Return the statements or the merges that are listed; None for none."""
        found: dict[str, JSON] = {}
        merges: list[JSON] = []
        for each in listed:
            short = each.get("statement") if isinstance(each, Mapping) else None
            if isinstance(each, Mapping) and isinstance(short, str):
                cid = self._cids.get(short, short)
                more = {name: value for name, value in each.items() if name != "statement"}
                found[cid] = more if "said" in more else self._unflattened(more, short)
                merges.append({**each, "statement": cid})
            else:
                merges.append(each)
        return (found if name == _STATEMENTS else merges) or None

    def evidence(self, statements: JSON) -> list[JSON] | None:
        """Return statements as a list that reads back the same; None if none does."""
        if not isinstance(statements, Mapping) or not statements:
            return None
        listed: list[JSON] = []
        for cid, support in statements.items():
            if not isinstance(support, Mapping):
                return None
            listed.append({**(self._flattened(support, cid[_SHORT]) or support), "statement": cid})
        listed = self._short(listed)
        return listed if _same(self.read(_STATEMENTS, listed), statements) else None

    def merges(self, merges: JSON) -> JSON:
        listed = self._short(merges) if isinstance(merges, list) else []
        return listed if _same(self.read(_MERGES, listed), merges) else merges

    def _short(self, listed: list[JSON]) -> list[JSON]:
        """Return entries whose statements have short names, if they are in the text."""
        return [
            {**each, "statement": cid[_SHORT]}
            if isinstance(each, Mapping)
            and isinstance(cid := each.get("statement"), str)
            and self._cids.get(cid[_SHORT]) == cid
            else each
            for each in listed
        ]

    def _flattened(self, support: Mapping[str, JSON], short: str) -> Mapping[str, JSON] | None:
        """Return a statement with at most one piece of evidence in one line; None for others."""
        flat: dict[str, JSON] = {}
        one: Mapping[str, JSON] = {}
        match support.get("said"):
            case [{"evidence": [Mapping() as one], "session": session, "speaker": speaker}]:
                flat["session"] = session
                flat |= {name: one[name] for name in ("message", "quote") if name in one}
                flat |= {} if speaker == "user" else {"speaker": speaker}
            case []:
                pass
            case _:
                return None
        if flat.get("quote") == self._texts.get(short):
            flat.pop("quote", None)
        flat |= {name: each for name, each in support.items() if name != "said"}
        if flat.get("kind") == self._kind:
            flat.pop("kind", None)
        flat |= {"cid": one["cid"]} if "cid" in one else {}
        return flat if _same(self._unflattened(flat, short), support) else None

    def _unflattened(self, flat: Mapping[str, JSON], short: str) -> JSON:
        rest = {"speaker": "user", "kind": self._kind, "quote": self._texts.get(short), **flat}
        of_evidence = {name: rest.pop(name, None) for name in ("message", "cid", "quote")}
        by = {"session": rest.pop("session", None), "evidence": [of_evidence]}
        by["speaker"] = rest.pop("speaker")
        names: tuple[str, ...] = ("when", "confidence", "topic", "kind")
        first = {name: rest.pop(name) for name in names if name in rest}
        after = {"anchors": rest.pop("anchors")} if "anchors" in rest else {}
        return {**first, **rest, "said": [by] if "session" in flat else [], **after}


# ---------------------------------------------------------------- writing
def compose(texts: Texts, place: str, before: str | None) -> str:
    """Return the file of a place that holds these texts; what its owner wrote before stays."""
    node = node_at(place)
    if node is None:
        return _system_note(texts[""], place)
    old = NoteFile.parse(before) if before is not None else None
    literal: dict[str, JSON] = {}
    for _ in range(_ATTEMPTS):
        real = _composed(texts, node, old, literal)
        read = split(real, place)
        wrong = {name for name in {*texts, *read} if texts.get(name) != read.get(name)}
        if not wrong:
            return real
        literal |= {name: texts.get(name) for name in sorted(wrong)}
    raise InvalidValueError(  # pragma: no cover - a literal text reads as it is
        f"{place!a} can't be written as a note. Fix: report it with the text."
    )


def _system_note(text: str, place: str) -> str:
    longest = max((len(found[0]) for found in re.finditer("`+", text)), default=2)
    fence = "`" * max(longest + 1, 3)
    return (
        f"---\n{render_property(ID, place, chr(10))}---\nPerdure keeps this for itself. "
        f"It changes when Perdure is used, and needs no care.\n\n{fence}text\n{text}\n{fence}\n"
    )


def _composed(texts: Texts, node: Uri, old: NoteFile | None, literal: Mapping[str, JSON]) -> str:
    meta = None if META in literal else _understood(texts.get(META))
    ours: dict[str, JSON] = {}
    lines, body = _content(texts, literal)
    if not any(name in texts for name in FILES):
        ours["node"] = False
        literal = {name: each for name, each in literal.items() if name not in FILES}
    metadata = dict(meta.metadata) if meta else {}
    known, _ = _own_names(node, {})
    if more := [name for name in metadata if name not in known]:
        ours["metadata"] = more
    if apart := {n: metadata.pop(n) for n in more if not _is_property(n, lines)}:
        ours["values"] = apart
    values = _properties(texts, node, meta, metadata, body)
    if CONTENT in texts and _ends(node, is_learned=_EVIDENCE in values):
        end = old.line_end if old else "\n"
        ours |= {} if body.endswith(end) else {"ends": False}
        body = body.removesuffix(end)
    if literal:
        ours["texts"] = literal
    if ours:
        values[_OURS] = ours
    return _spliced(old, values, _own_names(node, ours)[1], lines, body).text()


def _understood(said: str | None) -> Meta | None:
    if said is None:
        return None
    try:
        return Meta.parse(said)
    except InvalidValueError:
        return None


def _content(texts: Texts, literal: Mapping[str, JSON]) -> tuple[str, str]:
    """Return the lines and the body of a content; of one that is literal, none."""
    if CONTENT not in texts or CONTENT in literal:
        return "", ""
    return halves(texts[CONTENT])


def _is_property(name: str, lines: str) -> bool:
    """Whether metadata of this name, which Perdure does not know, can be a property."""
    taken = {*_RESERVED, *_SPOKEN, *_TITLES, *METADATA, *(e.name for e in entries(lines))}
    return is_plain_name(name) and name not in taken


def _properties(
    texts: Texts, node: Uri, meta: Meta | None, metadata: Mapping[str, JSON], body: str
) -> dict[str, JSON]:
    """Return the properties of a file in the order of a new one."""
    found: dict[str, JSON] = {ID: id_of(node.key)}
    if meta:
        if meta.status is not NodeStatus.ACTIVE:
            found[_STATUS] = meta.status.value.lower()
        for name, value in metadata.items():
            if name not in {_STATEMENTS, _MERGES}:
                found[_SPELLED.get(name, name)] = value
        found[_CREATED] = format_time(meta.created_at)
        if meta.updated_at != meta.created_at:
            found[_UPDATED] = format_time(meta.updated_at)
        if meta.version > 1:
            found[_VERSION] = meta.version
    owner = texts.get(OWNER, meta.owner_space if meta and node.session else "").removesuffix("\n")
    found |= {_OWNER: owner} if owner else {}
    found |= {_LEARNED: texts[LEARNED].removesuffix("\n")} if LEARNED in texts else {}
    found |= {_ABSTRACT: said} if (said := texts.get(ABSTRACT)) else {}
    found |= {_OVERVIEW: said} if (said := texts.get(OVERVIEW)) else {}
    if (said := texts.get(RELATIONS, "[]\n")) != "[]\n":
        found |= _listed(said)
    if _STATEMENTS in metadata or _MERGES in metadata:
        found |= _learned(metadata, _Shortened(body, _text(metadata.get("kind")) or node.category))
    return found


def _learned(metadata: Mapping[str, JSON], short: _Shortened) -> Iterator[tuple[str, JSON]]:
    statements, merges = (plain(metadata.get(name)) for name in (_STATEMENTS, _MERGES))
    if statements is not None:
        evidence = short.evidence(statements)
        yield (_STATEMENTS, statements) if evidence is None else (_EVIDENCE, evidence)
    if merges is not None:
        yield _MERGES, short.merges(merges)


def _listed(relations: str) -> dict[str, JSON]:
    try:
        said = json.loads(relations)
    except (ValueError, RecursionError):
        return {}
    return {_RELATIONS: said} if isinstance(said, list) else {}


def _spliced(
    old: NoteFile | None, values: dict[str, JSON], ours: frozenset[str], extra: str, body: str
) -> NoteFile:
    """Return the file with these properties, changing no more of the old one than must be.

    Without a time of creation the meta is literal, so properties that it may have again stay.
    """
    keeps_ours = _CREATED not in values
    if old is None or not old.opening:
        end = "\n"
        first = [
            FrontmatterEntry(name, render_property(name, value, end))
            for name, value in values.items()
        ]
        mark = "\ufeff" if old and old.body.startswith("\ufeff") else ""
        return NoteFile(f"{mark}---\n", (*first, *entries(extra)), "---\n", f"{body}\n")
    end = old.line_end
    keeps_extra = _extra(old, ours) == extra
    kept, left = list[FrontmatterEntry](), dict(values)
    for entry in old.entries:
        if entry.name in left:
            value = left.pop(entry.name)
            is_same = _same(_value(entry), value)
            kept.append(
                entry
                if is_same
                else FrontmatterEntry(entry.name, render_property(entry.name, value, end))
            )
        elif keeps_extra if entry.name not in ours else keeps_ours and entry.name != _OURS:
            kept.append(entry)
    for before, name in zip(("", *values), values, strict=False):  # each after the one before it
        if name in left:
            at = next((n for n, each in enumerate(kept, 1) if each.name == before), 0)
            kept.insert(at, FrontmatterEntry(name, render_property(name, left[name], end)))
    if not keeps_extra:
        kept.extend(entries(extra))
    same_body = old.content == body
    closing = old.closing if old.closing.endswith("\n") else f"{old.closing}{end}"
    said = old.body if same_body and old.closing == closing else f"{body}{end}"
    return NoteFile(old.opening, tuple(kept), closing, said)
