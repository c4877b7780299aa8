"""A place as one Markdown file: its logical texts are parsed from it and spliced into it.

What a person wrote into the file is preserved exactly. Properties that Perdure writes have one line
each, or one for each entry of a list. As long as they do, they are parsed without YAML.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

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
from perdure.context.note_names import id_of, node_at
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
"""A property with an object of all that the other properties can't express."""
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
"""The creation time of a note that states none; sync clients change the times of files."""
_HEAD = 4_000
"""Search a title in this many characters: parsing a whole note takes most of indexing it."""

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
    """The first fence, with what precedes it; empty without frontmatter."""
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

    def text(self) -> str:
        lines = "".join(entry.raw for entry in self.entries)
        return f"{self.opening}{lines}{self.closing}{self.body}"

    def value(self, name: str) -> JSON:
        """Return a property; None if it is absent or can't be parsed."""
        for entry in self.entries:
            if entry.name == name:
                return _value(entry)
        return None


def _value(entry: FrontmatterEntry) -> JSON:
    """Return the value of a property; None if it can't be parsed, or a meta can't hold it."""
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
    """Return the texts of a place that its file holds. The result must not be changed.

    `owner` is the owner of a session whose file names none and was not written by Perdure.
    """
    return _split(real, place, owner if "/sessions/" in place else "")


@lru_cache(maxsize=64)  # a save reads the abstracts of as many
def _split(real: str, place: str, owner: str) -> Texts:
    file = NoteFile.parse(real)
    node = node_at(place)
    if node is None:
        found = _FENCED.search(file.body)
        return {"": found["text"] if found else file.content}
    return _split_node(file, node, _session_owner(file, node, owner) if node.session else "")


def _session_owner(file: NoteFile, node: Uri, owner: str) -> str:
    stated = file.value(_OWNER)
    try:
        return check_owner_space(stated)
    except InvalidValueError:
        is_ours = stated is None and file.value(ID) == id_of(node.key)
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
        texts |= _property_texts(properties)
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
    _put(texts, {name: each for name, each in literal.items() if name not in TEXT_FILES})
    return texts


def _mapping(value: JSON) -> Values:
    return value if isinstance(value, Mapping) else {}


def _put(texts: dict[str, str], literal: Mapping[str, JSON]) -> None:
    for name, text in literal.items():
        if isinstance(text, str):
            texts[name] = text
        else:
            texts.pop(name, None)


def _own_names(node: Uri, ours: Values) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the names of Perdure's metadata in the order of a meta, and those of its properties.

    All other properties belong to the owner of the file.
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
    """Return the lines of a frontmatter that belong to its owner, unchanged."""
    return "".join([entry.raw for entry in file.entries if entry.name not in ours])


def _property_texts(properties: Values) -> dict[str, str]:
    """Return the texts that are stored as properties, without those that are empty."""
    found: dict[str, str] = {}
    if properties.get(_RELATIONS):
        found[RELATIONS] = _relations_text(properties[_RELATIONS])
    for name, property_ in ((ABSTRACT, _ABSTRACT), (OVERVIEW, _OVERVIEW)):
        if properties.get(property_):
            found[name] = _text(properties[property_])
    return {name: text for name, text in found.items() if text != EMPTY[name]}


def _ends(node: Uri, *, is_learned: bool) -> bool:
    """Whether the content includes the last line end of its file."""
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
    """Return the time in a property; a date means its beginning, and the default zone is UTC."""
    return read_time(value) if isinstance(value, str) and _DATED.match(value) else None


def _evidence(properties: Values, body: str, node: Uri, name: str) -> JSON:
    listed = properties.get(_EVIDENCE if name == _STATEMENTS else _MERGES)
    if isinstance(listed, list):
        return _Evidence(body, _text(properties.get("kind")) or node.category).read(name, listed)
    return properties.get(name)


# ---------------------------------------------------------------- notes in place
IN_PLACE = "in_place"
"""Metadata of a user's own note: its frontmatter grants no owner, rule or pin."""


def split_in_place(real: str, place: str, name: str, daily: str | None = None) -> dict[str, str]:
    """Return the texts of a user's own note; its content is the whole file.

    `daily` is the day in its name.
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
"""The characters of a CID that name a statement of the same file: 60 bits."""


class _Evidence:
    """The evidence of a file, without what its text and its other properties state already."""

    def __init__(self, body: str, kind: str) -> None:
        self._kind = kind
        found = {statement_cid(text): text for text in _STATED.findall(body)}
        self._texts = {cid[_SHORT]: text for cid, text in found.items()}
        self._cids = {cid[_SHORT]: cid for cid in found}

    def read(self, name: str, listed: list[JSON]) -> JSON:
        """Return the statements or the merges of a list; None if it is empty."""
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

    def listed(self, statements: JSON) -> list[JSON] | None:
        """Return statements as a list that parses back to the same; None if that is impossible."""
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
        """Return the entries with short names for the statements that are in the text."""
        return [
            {**each, "statement": cid[_SHORT]}
            if isinstance(each, Mapping)
            and isinstance(cid := each.get("statement"), str)
            and self._cids.get(cid[_SHORT]) == cid
            else each
            for each in listed
        ]

    def _flattened(self, support: Mapping[str, JSON], short: str) -> Mapping[str, JSON] | None:
        """Return a statement with at most one piece of evidence as one flat mapping, else None."""
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
    """Return the file of a place with these texts; what its owner wrote in `before` stays."""
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
    raise InvalidValueError(  # pragma: no cover - a literal text parses to itself
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
    meta = None
    if META in texts and META not in literal:
        with suppress(InvalidValueError):
            meta = Meta.parse(texts[META])
    ours: dict[str, JSON] = {}
    lines, body = "", ""
    if CONTENT in texts and CONTENT not in literal:
        lines, body = halves(texts[CONTENT])
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


def _is_property(name: str, lines: str) -> bool:
    """Whether metadata of this name, which is not Perdure's, can be a property."""
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
    found |= {_ABSTRACT: text} if (text := texts.get(ABSTRACT)) else {}
    found |= {_OVERVIEW: text} if (text := texts.get(OVERVIEW)) else {}
    if (relations := texts.get(RELATIONS, EMPTY[RELATIONS])) != EMPTY[RELATIONS]:
        with suppress(ValueError, RecursionError):
            edges = json.loads(relations)
            found |= {_RELATIONS: edges} if isinstance(edges, list) else {}
    if _STATEMENTS in metadata or _MERGES in metadata:
        found |= _learned(metadata, _Evidence(body, _text(metadata.get("kind")) or node.category))
    return found


def _learned(metadata: Mapping[str, JSON], evidence: _Evidence) -> Iterator[tuple[str, JSON]]:
    statements, merges = (plain(metadata.get(name)) for name in (_STATEMENTS, _MERGES))
    if statements is not None:
        listed = evidence.listed(statements)
        yield (_STATEMENTS, statements) if listed is None else (_EVIDENCE, listed)
    if merges is not None:
        yield _MERGES, evidence.merges(merges)


def _spliced(
    old: NoteFile | None, values: dict[str, JSON], ours: frozenset[str], extra: str, body: str
) -> NoteFile:
    """Return the file with these properties, changing as little of the old one as possible.

    Without a creation time the meta is literal; then our properties stay, as it may use them again.
    """
    keeps_ours = _CREATED not in values
    if old is None or not old.opening:
        first = [_entry(name, value, "\n") for name, value in values.items()]
        mark = "\ufeff" if old and old.body.startswith("\ufeff") else ""
        return NoteFile(f"{mark}---\n", (*first, *entries(extra)), "---\n", f"{body}\n")
    end = old.line_end
    keeps_extra = _extra(old, ours) == extra
    new, left = list[FrontmatterEntry](), dict(values)
    for entry in old.entries:
        if entry.name in left:
            value = left.pop(entry.name)
            is_same = _same(_value(entry), value)
            new.append(entry if is_same else _entry(entry.name, value, end))
        elif keeps_extra if entry.name not in ours else keeps_ours and entry.name != _OURS:
            new.append(entry)
    for before, name in zip(("", *values), values, strict=False):  # each after the one before it
        if name in left:
            at = next((n for n, each in enumerate(new, 1) if each.name == before), 0)
            new.insert(at, _entry(name, left[name], end))
    if not keeps_extra:
        new.extend(entries(extra))
    same_body = old.content == body
    closing = old.closing if old.closing.endswith("\n") else f"{old.closing}{end}"
    below = old.body if same_body and old.closing == closing else f"{body}{end}"
    return NoteFile(old.opening, tuple(new), closing, below)


def _entry(name: str, value: JSON, end: str) -> FrontmatterEntry:
    return FrontmatterEntry(name, render_property(name, value, end))
