"""A place as one Markdown file: its logical texts are read from it and spliced into it.

What a person wrote into the file stays to the letter. Properties that Perdure writes have one line
each, or one for each entry of a list, and are read without YAML as long as they look so.
"""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from perdure.context.files import (
    ABSTRACT,
    ARCHIVED,
    CONTENT,
    FILES,
    LEARNED,
    META,
    METADATA,
    OVERVIEW,
    OWNER,
    PARTS,
    RELATIONS,
    Meta,
    cid_of,
    derived_abstract,
    generated_lines,
    read_time,
    written_time,
)
from perdure.context.layouts.names import id_of, node_at
from perdure.errors import InvalidValueError
from perdure.frontmatter import (
    Entry,
    as_json,
    entries,
    fences,
    is_plain_name,
    join,
    value_of,
    written,
)
from perdure.frontmatter import split as halves
from perdure.model import NodeStatus, Uri
from perdure.model.node import title_of
from perdure.model.values import JSON, MAX_ABSTRACT, plain, shortened
from perdure.times import read_moment

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
_RESERVED = (
    *(ID, _STATUS, _CREATED, _UPDATED, _VERSION, _OWNER, _LEARNED),
    *(_RELATIONS, _ABSTRACT, _OVERVIEW, _EVIDENCE, _OURS),
)
_SPELLED = {"valid_from": "valid-from", "valid_until": "valid-until"}
_SPOKEN = {spelled: name for name, spelled in _SPELLED.items()}
_TITLES = frozenset({"title", "aliases"})
_ATTEMPTS = 5
_NEVER = "1970-01-01T00:00:00Z"
_HEAD = 4_000
"""A title is looked for in so many characters: to parse a whole note takes most of indexing it."""
"""When something was made that does not say it: sync clients set any time of a file."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_DATED = re.compile(r"\d{4}-\d\d-\d\d(?!\d)", re.ASCII)
_FENCED = re.compile(r"^(?P<fence>`{3,})text\n(?P<text>.*)\n(?P=fence)$", re.DOTALL | re.MULTILINE)
_encode = json.JSONEncoder(ensure_ascii=False).encode

Texts = Mapping[str, str]
"""The texts of a place by their names; what is not there has none."""


class NoteFile(NamedTuple):
    opening: str
    """The first fence, with what comes before it; empty without frontmatter."""
    entries: tuple[Entry, ...]
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
        """Return a property; None if there is none, or none that can be read."""
        return next((value_of(entry) for entry in self.entries if entry.name == name), None)


def _same(one: JSON, other: JSON) -> bool:
    return _encode(plain(one)) == _encode(plain(other))


# ---------------------------------------------------------------- reading
def split(real: str, place: str) -> dict[str, str]:
    """Return the texts of a place that its file holds."""
    file = NoteFile.parse(real)
    node = node_at(place)
    if node is None:
        found = _FENCED.search(file.body)
        return {"": found["text"] if found else file.content}
    return _split_node(file, node)


def _split_node(file: NoteFile, node: Uri) -> dict[str, str]:
    ours = file.value(_OURS)
    ours = ours if isinstance(ours, Mapping) else {}
    literal = ours.get("texts")
    literal = literal if isinstance(literal, Mapping) else {}
    texts: dict[str, str] = {}
    own = _own_names(node, ours)
    if ours.get("node") is not False:
        texts = _parts(file, node, own, lines=ours.get("lines") is not False)
        _put(texts, {name: each for name, each in literal.items() if name in PARTS})
        texts[META] = _meta(file, node, texts, _metadata(file, own, ours)).text()
        if _status(file) is NodeStatus.ARCHIVED:
            texts[ARCHIVED] = f"{node}\n"
    if node.session and node.path[2:] == ("messages",):
        for name, key in ((OWNER, _OWNER), (LEARNED, _LEARNED)):
            if isinstance(said := file.value(key), str):
                texts[name] = f"{said}\n"
    _put(texts, {name: each for name, each in literal.items() if name not in PARTS})
    return texts


def _put(texts: dict[str, str], literal: Mapping[str, JSON]) -> None:
    for name, said in literal.items():
        if isinstance(said, str):
            texts[name] = said
        else:
            texts.pop(name, None)


def _own_names(node: Uri, ours: Mapping[str, JSON]) -> list[str]:
    """Return the names of metadata that a file of ours may have, in the order of a meta."""
    named = ours.get("metadata")
    more = [str(each) for each in named] if isinstance(named, (list, tuple)) else []
    known = [name for name in METADATA if name != "title" or node.session]
    return [*known, *(name for name in more if name not in known)]


def _extra(file: NoteFile, own: list[str]) -> str:
    """Return the lines of a frontmatter that belong to its owner, to the letter."""
    ours = {*_RESERVED, *(_SPELLED.get(name, name) for name in own)}
    return "".join(entry.raw for entry in file.entries if entry.name not in ours)


def _parts(file: NoteFile, node: Uri, own: list[str], *, lines: bool) -> dict[str, str]:
    said = {
        ABSTRACT: _text(file.value(_ABSTRACT)),
        OVERVIEW: _text(file.value(_OVERVIEW)),
        RELATIONS: _relations_text(file.value(_RELATIONS)),
    }
    title = _title(node, file.content, said[ABSTRACT])
    extra = _extra(file, own)
    has_title = any(e.name in _TITLES and e.name not in own for e in file.entries)
    shown = extra if has_title or not lines else generated_lines(title) + extra
    texts = {CONTENT: join(shown, file.content)}
    for name in PARTS[1:]:
        if not node.session or said[name] not in {"", "[]\n"}:
            texts[name] = said[name]
    return texts


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def _title(node: Uri, content: str, abstract: str) -> str:
    return title_of(content, abstract or derived_abstract(node, content), node)


def _relations_text(value: JSON) -> str:
    if not isinstance(value, list) or not value:
        return "[]\n"
    return "[\n" + ",\n".join(f"  {_encode(each)}" for each in value) + "\n]\n"


def _status(file: NoteFile) -> NodeStatus:
    said = _text(file.value(_STATUS)).upper()
    return NodeStatus(said) if said in NodeStatus.__members__ else NodeStatus.ACTIVE


def _meta(file: NoteFile, node: Uri, parts: Texts, metadata: Mapping[str, JSON]) -> Meta:
    _, body = halves(parts.get(CONTENT, ""))
    version = file.value(_VERSION)
    created = _time(file.value(_CREATED)) or _time(file.value("date"))
    updated = _time(file.value(_UPDATED))
    begun = read_time(created or _NEVER)
    return Meta(
        _status(file),
        version if isinstance(version, int) and not isinstance(version, bool) and version else 1,
        _text(file.value(_OWNER)) if node.session else node.owner_space,
        begun,
        read_time(updated) if updated else begun,
        _title(node, body, parts.get(ABSTRACT, "")),
        {name: cid_of(parts[name]) for name in PARTS if name in parts},
        metadata,
    )


def _metadata(file: NoteFile, own: list[str], ours: Mapping[str, JSON]) -> dict[str, JSON]:
    values = ours.get("values")
    values = values if isinstance(values, Mapping) else {}
    found = {n: values[n] if n in values else _metadata_value(file, n) for n in own}
    return {name: value for name, value in found.items() if value is not None}


def _time(value: JSON) -> str | None:
    """Return a time as a meta writes it; a date is its first moment, and no zone is UTC."""
    if not isinstance(value, str) or not _DATED.match(value):
        return None
    time = read_moment(value)
    return None if time is None else written_time(time)


def _metadata_value(file: NoteFile, name: str) -> JSON:
    if name == _STATEMENTS:
        listed = file.value(_EVIDENCE)
        return _statements(listed) if isinstance(listed, list) else file.value(_STATEMENTS)
    return file.value(_SPELLED.get(name, name))


# ---------------------------------------------------------------- notes in place
IN_PLACE = "in_place"
"""In the metadata of a note that its owner wrote: what it says of itself grants nothing."""


def split_in_place(real: str, place: str, name: str, daily: str | None = None) -> dict[str, str]:
    """Return the texts of a note that its owner wrote; its content is the note to the letter.

    `daily` is the day that it is named after.
    """
    from perdure.markdown import aliases, frontmatter, tags, title  # noqa: PLC0415 - only vaults

    node = node_at(place)
    assert node is not None  # noqa: S101 - it is a resource
    found = frontmatter(real)
    called = shortened(title(real[:_HEAD], name), MAX_ABSTRACT)
    values = {key: as_json(found.values.get(key)) for key in ("created", "date")}
    day = next(filter(None, map(_time, (*values.values(), daily))), None)
    abstract = "" if title_of(found.body, "", node) == called else called
    texts = {CONTENT: real, **({ABSTRACT: abstract} if abstract else {})}
    metadata: dict[str, JSON] = {"date": day} if day else {}
    metadata |= {"tags": found_tags} if (found_tags := tags(real)) else {}
    metadata |= {"aliases": others} if (others := aliases(real)) else {}
    begun = read_time(day or _NEVER)
    meta = Meta(
        NodeStatus.ACTIVE,
        1,
        node.owner_space,
        begun,
        begun,
        title_of("" if abstract else found.body, abstract, node),
        {part: cid_of(text) for part, text in texts.items()},
        {**metadata, IN_PLACE: True},
    )
    return {**texts, META: meta.text()}


# ---------------------------------------------------------------- evidence
_OF_MENTION, _OF_EVIDENCE = ("session", "speaker"), ("message", "cid", "quote")


def _statements(listed: list[JSON]) -> JSON:
    """Return the statements that a list of evidence is for."""
    found: dict[str, JSON] = {}
    for each in listed:
        if not isinstance(each, Mapping) or not isinstance(each.get("statement"), str):
            continue
        more = {name: value for name, value in each.items() if name != "statement"}
        found[str(each["statement"])] = more if "said" in more else _unflattened(more)
    return found or None


def _flattened(support: Mapping[str, JSON]) -> Mapping[str, JSON] | None:
    """Return a statement with just one piece of evidence in one line; None for any other."""
    match support:
        case {"said": [{"evidence": [Mapping() as one]} as by]} if isinstance(by, Mapping):
            flat: dict[str, JSON] = {"session": by.get("session")}
            flat |= {name: one[name] for name in ("message", "quote") if name in one}
            flat["speaker"] = by.get("speaker")
            flat |= {name: each for name, each in support.items() if name != "said"}
            flat |= {"cid": one["cid"]} if "cid" in one else {}
            return flat if _same(_unflattened(flat), support) else None
    return None


def _unflattened(flat: Mapping[str, JSON]) -> JSON:
    of_evidence = {name: flat[name] for name in _OF_EVIDENCE if name in flat}
    rest = {n: each for n, each in flat.items() if n not in {*_OF_MENTION, *_OF_EVIDENCE}}
    by = {"session": flat.get("session"), "evidence": [of_evidence], "speaker": flat.get("speaker")}
    after = {name: rest.pop(name) for name in ("anchors",) if name in rest}
    return {**rest, "said": [by], **after}


def _evidence(statements: JSON) -> list[JSON] | None:
    """Return statements as a list of evidence that reads back the same; None if none does."""
    if not isinstance(statements, Mapping) or not statements:
        return None
    listed: list[JSON] = []
    for cid, support in statements.items():
        if not isinstance(support, Mapping):
            return None
        listed.append({**(_flattened(support) or support), "statement": cid})
    return listed if _same(_statements(listed), statements) else None


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
        f"---\n{written(ID, place, chr(10))}---\nPerdure keeps this for itself. "
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
    known = _own_names(node, {})
    if more := [name for name in metadata if name not in known]:
        ours["metadata"] = more
    if apart := {n: metadata.pop(n) for n in more if not _is_property(n, lines)}:
        ours["values"] = apart
    values = _properties(texts, node, meta, metadata)
    title = _title(node, body, texts.get(ABSTRACT, ""))
    extra, is_generated = _owners_lines(lines, title)
    if not is_generated and _TITLES.isdisjoint(e.name for e in entries(extra)):
        ours["lines"] = False
    if literal:
        ours["texts"] = literal
    if ours:
        values[_OURS] = ours
    return _spliced(old, values, _own_names(node, ours), extra, body).text()


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


def _owners_lines(lines: str, title: str) -> tuple[str, bool]:
    """Return the lines of a content without the generated ones, and whether they were there."""
    generated = generated_lines(title)
    return lines.removeprefix(generated), lines.startswith(generated)


def _is_property(name: str, lines: str) -> bool:
    """Whether metadata of this name, which Perdure does not know, can be a property."""
    taken = {*_RESERVED, *_SPOKEN, *_TITLES, *METADATA, *(e.name for e in entries(lines))}
    return is_plain_name(name) and name not in taken


def _properties(
    texts: Texts, node: Uri, meta: Meta | None, metadata: Mapping[str, JSON]
) -> dict[str, JSON]:
    """Return the properties of a file in the order of a new one."""
    found: dict[str, JSON] = {ID: id_of(node.key)}
    if meta:
        if meta.status is not NodeStatus.ACTIVE:
            found[_STATUS] = meta.status.value.lower()
        for name, value in metadata.items():
            if name not in {_STATEMENTS, "merges"}:
                found[_SPELLED.get(name, name)] = value
        found[_CREATED] = written_time(meta.created_at)
        if meta.updated_at != meta.created_at:
            found[_UPDATED] = written_time(meta.updated_at)
        if meta.version > 1:
            found[_VERSION] = meta.version
    owner = texts.get(OWNER, meta.owner_space if meta and node.session else "").removesuffix("\n")
    found |= {_OWNER: owner} if owner else {}
    found |= {_LEARNED: texts[LEARNED].removesuffix("\n")} if LEARNED in texts else {}
    found |= {_ABSTRACT: said} if (said := texts.get(ABSTRACT)) else {}
    found |= {_OVERVIEW: said} if (said := texts.get(OVERVIEW)) else {}
    if (said := texts.get(RELATIONS, "[]\n")) != "[]\n":
        found |= _listed(said)
    statements = metadata.get(_STATEMENTS)
    evidence = _evidence(plain(statements))
    if statements is not None:
        found[_STATEMENTS if evidence is None else _EVIDENCE] = evidence or statements
    if "merges" in metadata:
        found["merges"] = metadata["merges"]
    return found


def _listed(relations: str) -> dict[str, JSON]:
    try:
        said = json.loads(relations)
    except (ValueError, RecursionError):
        return {}
    return {_RELATIONS: said} if isinstance(said, list) else {}


def _spliced(
    old: NoteFile | None, values: dict[str, JSON], own: list[str], extra: str, body: str
) -> NoteFile:
    """Return the file with these properties, changing no more of the old one than must be.

    Without a time of creation the meta is literal, so properties that it may have again stay.
    """
    keeps_ours = _CREATED not in values
    if old is None or not old.opening:
        end = "\n"
        first = [Entry(name, written(name, value, end)) for name, value in values.items()]
        mark = "\ufeff" if old and old.body.startswith("\ufeff") else ""
        return NoteFile(f"{mark}---\n", (*first, *entries(extra)), "---\n", f"{body}\n")
    end = old.line_end
    ours = {*_RESERVED, *(_SPELLED.get(name, name) for name in own)}
    keeps_extra = _extra(old, own) == extra
    kept, left, last = list[Entry](), dict(values), 0
    for entry in old.entries:
        if entry.name in left:
            value = left.pop(entry.name)
            is_same = _same(value_of(entry), value)
            kept.append(entry if is_same else Entry(entry.name, written(entry.name, value, end)))
            last = len(kept)
        elif keeps_extra if entry.name not in ours else keeps_ours and entry.name != _OURS:
            kept.append(entry)
    new = [Entry(name, written(name, value, end)) for name, value in left.items()]
    kept[last:last] = new
    if not keeps_extra:
        kept.extend(entries(extra))
    same_body = old.content == body
    closing = old.closing if old.closing.endswith("\n") else f"{old.closing}{end}"
    said = old.body if same_body and old.closing == closing else f"{body}{end}"
    return NoteFile(old.opening, tuple(kept), closing, said)
