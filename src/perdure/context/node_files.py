"""The five files of a node: what they say, and the parts of the node that this gives."""

import json
import re
from base64 import b32encode
from collections.abc import Callable, Iterable, Iterator, Mapping
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
"""What an absent part says. A node in one file, or of a session, has none that would say that."""

ARCHIVED = ".archived"
"""The folder with a mark for each archived node beside it, so that listing need not read them."""
OWNER = ".owner"
"""Whose a session is; written with its first node."""
FORGOTTEN = ".forgotten"
"""What a user forgot, in hashes; in the user's folder."""
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
"""What a meta that names no parts leaves out."""
_json = json.JSONEncoder(ensure_ascii=False).encode
_TIME = later(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
Found = Text
"""What a file says."""
Files = Mapping[str, Found]
Earlier = Callable[[str], Iterator[str]]
"""Gives the texts that a file had, newest first."""
Part = TypeVar("Part")
_BASE16 = "f01551220"
"""What comes before the digest in a CIDv1 of raw content and sha2-256, in base 16."""


class Meta(NamedTuple):
    """What a node is, beside its texts. When its file is written, the node is."""

    status: NodeStatus
    version: int
    owner_space: str
    created_at: datetime
    updated_at: datetime
    cids: Mapping[str, str]
    """The CID of each part, by its file's name; empty where one file has all of the node."""
    metadata: Mapping[str, JSON]
    content: str = ""
    """The short hash of the content where no parts are named, so that no two nodes share a meta."""

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
        """Read what `text` gives; `InvalidValueError` if it is something else."""
        fields = _object(text)
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
            _refuse(f"it does not say {error.args[0]!a}")
        except InvalidValueError:
            raise
        except ValueError as error:  # of the status
            _refuse(str(error))


def relations_text(edges: tuple[RelationEdge, ...]) -> str:
    if not edges:
        return "[]\n"
    lines = []
    for edge in edges:
        said: dict[str, JSON] = {
            "to": edge.to_uri,
            "type": edge.relation_type,
            "weight": edge.weight,
            "created_at": format_time(edge.created_at),
        }
        if edge.reason:
            said["reason"] = edge.reason
        lines.append(f"  {_json(said)}")
    return "[\n" + ",\n".join(lines) + "\n]\n"


def parse_relations(text: str, uri: str) -> tuple[RelationEdge, ...]:
    """Read the edges of a node; `InvalidValueError` if they are none."""
    if text == "[]\n":
        return ()
    said = _parsed(text)
    if not isinstance(said, list):
        _refuse("it is no list of edges")
    edges = []
    for each in said:
        try:
            one = _mapping(each)
            edges.append(
                RelationEdge(
                    uri,
                    _text(one["to"]),
                    _text(one["type"]),
                    one.get("weight", 1.0),  # type: ignore[arg-type] # the edge checks it
                    _text(one.get("reason", "")),
                    parse_time(one["created_at"]),
                )
            )
        except KeyError as error:
            _refuse(f"an edge does not say {error.args[0]!a}")
    return tuple(edges)


def _object(text: str) -> dict[str, JSON]:
    said = _parsed(text)
    return said if isinstance(said, dict) else _refuse("it is no JSON object")


def _parsed(text: str) -> object:
    try:
        return _DECODER.decode(text)
    except InvalidValueError:
        raise
    except (ValueError, RecursionError) as error:
        _refuse(f"it is no JSON: {error}")


def _once(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    """Return an object; what says a name twice may mean either."""
    said = dict(pairs)
    return said if len(said) == len(pairs) else _refuse("it says a name twice in one JSON object")


_DECODER = json.JSONDecoder(object_pairs_hook=_once)


def _mapping(value: object) -> dict[str, JSON]:
    return value if isinstance(value, dict) else _refuse(f"{shown(value)} is no JSON object")


def _text(value: object) -> str:
    if type(value) is str and value.isascii():
        return value
    if not isinstance(value, str):
        _refuse(f"{shown(value)} is no text")
    return encodable(value, "text")


def format_time(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def parse_time(value: object) -> datetime:
    said = _text(value)
    time = read_time(said) if _TIME.fullmatch(said) else None
    return time or _refuse(f"{shown(said)} is no time")


def _refuse(what: str) -> NoReturn:
    raise InvalidValueError(f"{what}. Fix: correct the file, or run `perdure repair`.")


def texts_of(node: ContextNode, content_file: str, *, sparse: bool) -> dict[str, str]:
    """Return what the parts say; if they are `sparse`, without those that are empty."""
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
    """Return the texts of a node as they are in one file, or in five; as they are if it is none."""
    try:
        meta = Meta.parse(texts.get(META, ""))
    except InvalidValueError:
        return texts
    parts = {
        name: text for name in TEXT_FILES if (text := texts.get(name, EMPTY.get(name))) is not None
    }
    is_edited = not NodeFiles.at(meta, {name: texts.get(name) for name in FILES}).whole
    if in_one or place.session:
        parts = {name: text for name, text in parts.items() if text != EMPTY.get(name)}
    owner = "" if in_one and not place.session else place.owner_space or meta.owner_space
    cids = {} if in_one else {name: cid_of(text) for name, text in parts.items()}
    content, version = short_hash(parts.get(CONTENT, "")), meta.version + is_edited
    meta = meta._replace(owner_space=owner, cids=cids, version=version, content=content)
    return {**parts, META: meta.text()}


def derived_abstract(place: Uri, content: str) -> str:
    """Return the abstract of a node without a file for it: in a session, how it begins."""
    if not place.session:
        return ""
    from perdure.model.transcript import abstract_of  # noqa: PLC0415 - only sessions pay

    return abstract_of(content)


def statement_cid(text: str) -> str:
    """Return the CID of a text in base 32, by which a node keeps what its statements rest on."""
    digest = bytes.fromhex(cid_of(text)[1:])
    return f"b{b32encode(digest).decode().rstrip('=').lower()}"


def short_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def cid_of(text: str) -> str:
    """Return the CID of a text, in base 16: it ends with what `sha256sum` prints for the file."""
    return _BASE16 + sha256(text.encode()).hexdigest()


class NodeFiles(NamedTuple):
    """What the files of a node say, and the CID of each part that is a text."""

    meta: Meta
    files: Files
    cids: Mapping[str, str]

    @classmethod
    def at(cls, meta: Meta, files: Files) -> "NodeFiles":
        texts = ((name, files[name]) for name in TEXT_FILES)
        return cls(meta, files, {name: cid_of(said) for name, said in texts if type(said) is str})

    @property
    def whole(self) -> bool:
        return not self.meta.cids or self.cids == self.meta.cids

    @property
    def basis(self) -> str:
        """Tell what all parts say from whatever else they could say."""
        return cid_of("\n".join(f"{name} {cid}" for name, cid in self.cids.items()))


def text_with_cid(cid: str | None, earlier: Iterable[str]) -> str | None:
    """Return the text that a CID names, of those that a file had; None if it was none of them."""
    return next((text for text in earlier if cid_of(text) == cid), None)


def read_text(locator: Locator, read: Callable[[Locator], Text]) -> Found:
    try:
        return read(locator)
    except FileNotFoundError:
        return None
    except (NotTextError, PathIsDirectoryError, LinkRefusedError, AccessRefusedError):
        return UNREADABLE


def text_at(locator: Locator, backend: StorageBackend) -> Found:
    """Return what a text says, without asking whether a folder is there where there is none."""
    inner = getattr(backend, "inner", backend)
    if isinstance(inner, Layout):
        return inner.text_at(locator.key)
    return read_text(locator, backend.read)


def text_of(said: str | Unreadable) -> str:
    if isinstance(said, Unreadable):
        raise InvalidValueError(
            "it can't be read as text. Fix: save it as UTF-8, and let this user read it."
        )
    return said


class NodeTexts:
    """The parts of one node, each as its file says, or as it was before somebody broke it."""

    def __init__(self, uri: str, look: NodeFiles, earlier: Earlier) -> None:
        self.uri = uri
        self.problems: list[str] = []
        self.edited: set[str] = set()
        self._look = look
        self._earlier = earlier

    def take(
        self, name: str, written: Callable[[str], Part], edited: Callable[[str | None], Part]
    ) -> Part:
        """Return what a part says: read as `written` by us, or as `edited` by somebody else."""
        said, parts = self._look.files[name], self._look.meta.cids
        if said is None and name in EMPTY and name not in parts:
            return written(EMPTY[name])
        if isinstance(said, str) and (not parts or self._look.cids[name] == parts.get(name)):
            return written(said)
        try:
            value = edited(None if said is None else text_of(said))
        except InvalidValueError as error:
            self.problems.append(f"{name}: {error}")
            return written(self._kept(name))
        self.edited.add(name)
        return value

    def edges(self, text: str) -> tuple[RelationEdge, ...]:
        return parse_relations(text, self.uri)

    def edited_edges(self, text: str | None) -> tuple[RelationEdge, ...]:
        return () if text is None else parse_relations(text, self.uri)

    def _kept(self, name: str) -> str:
        cid = self._look.meta.cids.get(name)
        text = text_with_cid(cid, self._earlier(name))
        if text is None:
            raise BrokenNodeError(
                f"{self.uri!a} can't be read, and no earlier version of it is kept. "
                f"{self.problems[-1]}"
            )
        return text


def edited_content(said: str | None) -> tuple[str, str]:
    if said is None:
        raise InvalidValueError("it is gone. Fix: restore it, or delete the node.")
    lines, body = split(said)
    return lines, _within(body, MAX_CONTENT)


def edited_abstract(said: str | None) -> str:
    return _within(said or "", MAX_ABSTRACT)


def edited_overview(said: str | None) -> str:
    return _within(said or "", MAX_OVERVIEW)


def _within(text: str, limit: int) -> str:
    if len(text) > limit:
        raise InvalidValueError(
            f"it has {len(text):,} characters; {limit:,} are the most. Fix: shorten it."
        )
    return text


@lru_cache(maxsize=64)
def user_file(account: str, user: str, name: str = FILE) -> Locator:
    """Return where a text of a user is."""
    return Locator(Uri(account, ("users", user)).key).child(name)


def read_aliases(backend: StorageBackend, account: str, user: str) -> ProjectAliases:
    """Return a user's table; `ProjectError` if it can't be understood."""
    file = user_file(account, user)
    inner = getattr(backend, "inner", backend)
    if isinstance(inner, Layout) and inner.text_at(file.key) is None:
        return ProjectAliases()  # without asking whether a folder is there
    try:
        return ProjectAliases.parse(backend.read(file), file.key)
    except AbsentError:
        return ProjectAliases()
