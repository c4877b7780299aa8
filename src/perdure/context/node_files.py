"""The texts that canonical state consists of: the five files of a node, and those of a user."""

import json
import re
from base64 import b32encode
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple, NoReturn, TypeVar

from perdure.errors import (
    AbsentError,
    AccessRefusedError,
    BrokenNodeError,
    InvalidValueError,
    LinkRefusedError,
    NotTextError,
    PathIsDirectoryError,
)
from perdure.frontmatter import split
from perdure.model import ContextNode, NodeStatus, RelationEdge, Uri
from perdure.model.project_aliases import FILE, ProjectAliases
from perdure.model.values import (
    JSON,
    MAX_ABSTRACT,
    MAX_CONTENT,
    MAX_OVERVIEW,
    count,
    encodable,
    frozen,
    shown,
)
from perdure.patterns import later
from perdure.storage import Locator, StorageBackend
from perdure.storage.contract import UNREADABLE, Layout, Text, Unreadable
from perdure.times import read_time

CONTENT = "content.md"
RELATIONS = ".relations.json"
ABSTRACT = ".abstract.md"
OVERVIEW = ".overview.md"
META = ".meta.json"

TEXT_FILES = (CONTENT, RELATIONS, ABSTRACT, OVERVIEW)
"""In the order in which they are written; the meta comes after them."""
FILES = (*TEXT_FILES, META)
EMPTY = {RELATIONS: "[]\n", ABSTRACT: "", OVERVIEW: ""}
"""The text of an absent file. In one file, and in a session, such texts are not stored."""

ARCHIVED = ".archived"
"""A folder with a marker for each archived node beside it, so that listing need not read them."""
OWNER = ".owner"
"""The owner space of a session; written with its first node."""
FORGOTTEN = ".forgotten"
"""The hashes of what a user forgot; in the user's folder."""
LEARNED = ".learned"
"""How far a session was learned from; written with what was learned."""

METADATA = (
    *("kind", "title", "project", "date", "valid_from", "valid_until", "by", "proposed"),
    *("source", "source_id", "source_digest", "source_gone", "origins", "branch", "commit"),
    *("always_load", "phases", "enforced", "kept_apart_from", "statements", "merges"),
    *("source_created_at", "cwd", "foreign"),
)
"""The metadata that Perdure itself writes or reads, in the order of a meta; others follow."""

_FORMAT = 1
_DEFAULTS: Mapping[str, JSON] = {
    "format": _FORMAT,
    "status": NodeStatus.ACTIVE.value,
    "version": 1,
    "owner_space": "",
    "parts": {},
    "metadata": {},
    "content": "",
}
"""The values that a meta without CIDs omits."""
_json = json.JSONEncoder(ensure_ascii=False).encode
_TIME = later(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
Files = Mapping[str, Text]
"""The text of each file of a node, by its name."""
T = TypeVar("T")
_BASE16 = "f01551220"
"""The prefix of a CIDv1 of raw content and sha2-256, in base 16."""


@lru_cache(maxsize=64)
def user_file(account: str, user: str, name: str = FILE) -> Locator:
    """Return the locator of a text that belongs to a user."""
    return Locator(Uri(account, ("users", user)).key).child(name)


def read_aliases(backend: StorageBackend, account: str, user: str) -> ProjectAliases:
    """Return a user's table of projects; `ProjectError` if it can't be parsed."""
    file = user_file(account, user)
    inner = getattr(backend, "inner", backend)
    if isinstance(inner, Layout) and inner.text_at(file.key) is None:
        return ProjectAliases()  # without asking whether a folder is there
    try:
        return ProjectAliases.parse(backend.read(file), file.key)
    except AbsentError:
        return ProjectAliases()


# ---------------------------------------------------------------- the meta
class Meta(NamedTuple):
    """What a node is, apart from its texts. A node exists once this file is written."""

    status: NodeStatus
    version: int
    owner_space: str
    created_at: datetime
    updated_at: datetime
    cids: Mapping[str, str]
    """The CID of each text, by its file's name; empty where one file holds all of the node."""
    metadata: Mapping[str, JSON]
    content: str = ""
    """The short hash of the content if there are no CIDs, so that no two nodes share a meta."""

    def text(self) -> str:
        same = self.updated_at == self.created_at
        fields: dict[str, JSON] = {
            "format": _FORMAT,
            "status": self.status.value,
            "version": self.version,
            "owner_space": self.owner_space,
            "created_at": (created := format_time(self.created_at)),
            "updated_at": created if same else format_time(self.updated_at),
            "parts": self.cids,
            "metadata": self.metadata,
        }
        if not self.cids:
            fields |= {"content": self.content}
            fields = {name: each for name, each in fields.items() if each != _DEFAULTS.get(name)}
            if same:
                del fields["updated_at"]
            return _json(fields) + "\n"
        lines = (f"  {_json(name)}: {_json(value)}" for name, value in fields.items())
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    @lru_cache(maxsize=256)
    def parse(cls, text: str) -> "Meta":
        """Parse what `text` returns; `InvalidValueError` for anything else."""
        fields = _mapping(_parsed(text))
        is_short = "parts" not in fields
        if is_short:
            fields = {**_DEFAULTS, **fields}
        if fields.get("format") != _FORMAT:
            _refuse(f"its format is {fields.get('format')!r}, and {_FORMAT} is known")
        try:
            created = parse_time(fields["created_at"])
            same = is_short and "updated_at" not in fields
            return cls(
                NodeStatus(fields["status"]),
                count(fields["version"], "version", least=1),
                _text(fields["owner_space"]),
                created,
                created if same else parse_time(fields["updated_at"]),
                {name: _text(cid) for name, cid in _mapping(fields["parts"]).items()},
                frozen(_mapping(fields["metadata"]), "metadata"),
                _text(fields.get("content", "")),
            )
        except KeyError as error:
            _refuse(f"it lacks {error.args[0]!a}")
        except InvalidValueError:
            raise
        except ValueError as error:  # of the status
            _refuse(str(error))


def relations_text(edges: tuple[RelationEdge, ...]) -> str:
    if not edges:
        return EMPTY[RELATIONS]
    lines = []
    for edge in edges:
        fields: dict[str, JSON] = {
            "to": edge.to_uri,
            "type": edge.relation_type,
            "weight": edge.weight,
            "created_at": format_time(edge.created_at),
        }
        if edge.reason:
            fields["reason"] = edge.reason
        lines.append(f"  {_json(fields)}")
    return "[\n" + ",\n".join(lines) + "\n]\n"


def parse_relations(text: str, uri: str) -> tuple[RelationEdge, ...]:
    """Parse the edges of a node; `InvalidValueError` if the text is not a list of edges."""
    if text == EMPTY[RELATIONS]:
        return ()
    listed = _parsed(text)
    if not isinstance(listed, list):
        _refuse("it is not a list of edges")
    edges = []
    for each in listed:
        try:
            fields = _mapping(each)
            edges.append(
                RelationEdge(
                    uri,
                    _text(fields["to"]),
                    _text(fields["type"]),
                    fields.get("weight", 1.0),  # type: ignore[arg-type] # the edge checks it
                    _text(fields.get("reason", "")),
                    parse_time(fields["created_at"]),
                )
            )
        except KeyError as error:
            _refuse(f"an edge lacks {error.args[0]!a}")
    return tuple(edges)


def _parsed(text: str) -> object:
    try:
        return _DECODER.decode(text)
    except InvalidValueError:
        raise
    except (ValueError, RecursionError) as error:
        _refuse(f"it is not valid JSON: {error}")


def _once(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    """Return an object; a repeated name is ambiguous, and refused."""
    found = dict(pairs)
    return found if len(found) == len(pairs) else _refuse("a name is repeated in a JSON object")


_DECODER = json.JSONDecoder(object_pairs_hook=_once)


def _mapping(value: object) -> dict[str, JSON]:
    return value if isinstance(value, dict) else _refuse(f"{shown(value)} is not a JSON object")


def _text(value: object) -> str:
    if type(value) is str and value.isascii():
        return value
    if not isinstance(value, str):
        _refuse(f"{shown(value)} is not text")
    return encodable(value, "text")


def format_time(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def parse_time(value: object) -> datetime:
    text = _text(value)
    time = read_time(text) if _TIME.fullmatch(text) else None
    return time or _refuse(f"{shown(text)} is not a time")


def _refuse(what: str) -> NoReturn:
    raise InvalidValueError(f"{what}. Fix: correct the file, or run `perdure repair`.")


# ---------------------------------------------------------------- writing
def texts_of(node: ContextNode, content_file: str, *, sparse: bool) -> dict[str, str]:
    """Return the texts of a node; `sparse` leaves out those that are empty."""
    texts = {
        CONTENT: content_file,
        RELATIONS: relations_text(node.relations),
        ABSTRACT: node.abstract,
        OVERVIEW: node.overview,
    }
    if not sparse:
        return texts
    if node.place.session and node.abstract == derived_abstract(node.place, node.content):
        texts[ABSTRACT] = ""
    return {name: text for name, text in texts.items() if text != EMPTY.get(name)}


def laid_out(texts: Mapping[str, str], place: Uri, *, in_one: bool) -> Mapping[str, str]:
    """Return the texts of a node as stored in one file, or in five; unchanged without a meta."""
    try:
        meta = Meta.parse(texts.get(META, ""))
    except InvalidValueError:
        return texts
    found = {n: text for n in TEXT_FILES if (text := texts.get(n, EMPTY.get(n))) is not None}
    is_edited = not NodeFiles.of(meta, {name: texts.get(name) for name in FILES}).is_whole
    if in_one or place.session:
        found = {name: text for name, text in found.items() if text != EMPTY.get(name)}
    owner = "" if in_one and not place.session else place.owner_space or meta.owner_space
    cids = {} if in_one else {name: cid_of(text) for name, text in found.items()}
    content, version = short_hash(found.get(CONTENT, "")), meta.version + is_edited
    meta = meta._replace(owner_space=owner, cids=cids, version=version, content=content)
    return {**found, META: meta.text()}


def derived_abstract(place: Uri, content: str) -> str:
    """Return the abstract of a node without a file for it: in a session, how it begins."""
    if not place.session:
        return ""
    from perdure.model.transcript import abstract_of  # noqa: PLC0415 - only sessions need it

    return abstract_of(content)


def statement_cid(text: str) -> str:
    """Return the CID of a text in base 32, which names a statement in the metadata of its node."""
    digest = bytes.fromhex(cid_of(text)[1:])
    return f"b{b32encode(digest).decode().rstrip('=').lower()}"


def short_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def cid_of(text: str) -> str:
    """Return the CID of a text in base 16; it ends with what `sha256sum` prints for the file."""
    return _BASE16 + sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------- reading
class NodeFiles(NamedTuple):
    """The files of a node as they were read, and the CID of each text."""

    meta: Meta
    files: Files
    cids: Mapping[str, str]

    @classmethod
    def of(cls, meta: Meta, files: Files) -> "NodeFiles":
        texts = ((name, files[name]) for name in TEXT_FILES)
        return cls(meta, files, {name: cid_of(text) for name, text in texts if type(text) is str})

    @property
    def is_whole(self) -> bool:
        """Whether the texts are those that the meta was written with."""
        return not self.meta.cids or self.cids == self.meta.cids

    @property
    def basis(self) -> str:
        """Identifies the texts: two nodes have the same one only if all texts are the same."""
        return cid_of("\n".join(f"{name} {cid}" for name, cid in self.cids.items()))


def text_with_cid(cid: str | None, earlier: Iterable[str]) -> str | None:
    """Return the first of some texts that has a CID; None if none has."""
    return next((text for text in earlier if cid_of(text) == cid), None)


def read_text(locator: Locator, read: Callable[[Locator], Text]) -> Text:
    """Return a text; None if it is absent, `UNREADABLE` if it is not text or may not be read."""
    try:
        return read(locator)
    except FileNotFoundError:
        return None
    except (NotTextError, PathIsDirectoryError, LinkRefusedError, AccessRefusedError):
        return UNREADABLE


def text_at(locator: Locator, backend: StorageBackend) -> Text:
    """Return a text as `read_text` does; a layout is not asked whether a folder is there."""
    inner = getattr(backend, "inner", backend)
    if isinstance(inner, Layout):
        return inner.text_at(locator.key)
    return read_text(locator, backend.read)


def text_of(found: str | Unreadable) -> str:
    if isinstance(found, Unreadable):
        raise InvalidValueError(
            "it can't be read as text. Fix: save it as UTF-8, and let this user read it."
        )
    return found


class NodeTexts:
    """The texts of one node: as its files have them, or as they were before an edit broke one."""

    def __init__(self, uri: str, files: NodeFiles, earlier: Callable[[str], Iterable[str]]) -> None:
        self.uri = uri
        self.problems: list[str] = []
        self.edited: set[str] = set()
        self._files = files
        self._earlier = earlier

    def take(self, name: str, written: Callable[[str], T], edited: Callable[[str | None], T]) -> T:
        """Return the value of a text: parsed as `written` by Perdure, or as `edited` by others."""
        text, cids = self._files.files[name], self._files.meta.cids
        if text is None and name in EMPTY and name not in cids:
            return written(EMPTY[name])
        if isinstance(text, str) and (not cids or self._files.cids[name] == cids.get(name)):
            return written(text)
        try:
            value = edited(None if text is None else text_of(text))
        except InvalidValueError as error:
            self.problems.append(f"{name}: {error}")
            return written(self._unbroken(name))
        self.edited.add(name)
        return value

    def edges(self, text: str | None) -> tuple[RelationEdge, ...]:
        return () if text is None else parse_relations(text, self.uri)

    def _unbroken(self, name: str) -> str:
        text = text_with_cid(self._files.meta.cids.get(name), self._earlier(name))
        if text is None:
            raise BrokenNodeError(
                f"{self.uri!a} can't be read, and history has no earlier version of it. "
                f"{self.problems[-1]}"
            )
        return text


def edited_content(text: str | None) -> tuple[str, str]:
    """Return the frontmatter and the body of a content that its owner edited."""
    if text is None:
        raise InvalidValueError("it is missing. Fix: restore it, or delete the node.")
    lines, body = split(text)
    return lines, _within(body, MAX_CONTENT)


def edited_abstract(text: str | None) -> str:
    return _within(text or "", MAX_ABSTRACT)


def edited_overview(text: str | None) -> str:
    return _within(text or "", MAX_OVERVIEW)


def _within(text: str, limit: int) -> str:
    if len(text) > limit:
        raise InvalidValueError(
            f"it has {len(text):,} characters; the limit is {limit:,}. Fix: shorten it."
        )
    return text
