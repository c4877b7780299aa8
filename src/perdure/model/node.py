"""A node: one memory, skill or resource, with its edges, and the events of its changes."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum, IntEnum
from functools import cached_property, lru_cache
from typing import Any

from perdure.dataclass import dataclass, field, fields, replace
from perdure.errors import InvalidValueError
from perdure.markdown import headings, without_markers
from perdure.model.request import owner_space_at
from perdure.model.uri import SLUG, Uri, check_slug
from perdure.model.values import (
    CUT,
    JSON,
    MAX_ABSTRACT,
    MAX_CONTENT,
    MAX_NOTE,
    MAX_OVERVIEW,
    bounded,
    count,
    encodable,
    extended,
    fraction,
    frozen,
    shortened,
    shown,
    utc_time,
)
from perdure.times import read_time

MENTIONS = "mentions"
"""The type of edges derived from `[[links]]` in a content; they can't be written."""

SUPERSEDED_BY = "superseded_by"
"""The type of edges from a superseded node to its successor."""

_EPOCH = datetime.fromtimestamp(0, UTC)
_USUAL_VERSION = 2**31
_MAX_TITLE = 120
_MAX_BEGINNING = 60
_TIMES = ("date", "valid_from", "valid_until")
"""The metadata with times that Perdure reads."""


@dataclass(frozen=True, slots=True)
class RelationEdge:
    """A directed, weighted edge, identified by start, target and type."""

    from_uri: str
    to_uri: str
    relation_type: str
    weight: float = 1.0
    reason: str = ""
    created_at: datetime = _EPOCH
    """Set when it is first written."""

    def __post_init__(self) -> None:
        start, target = Uri.parse(self.from_uri), Uri.parse(self.to_uri)
        for place in (start, target):
            if not place.is_node:
                raise InvalidValueError(
                    f"{str(place)!a} is a folder of nodes. Fix: relate a node in it."
                )
        if start.account != target.account:
            raise InvalidValueError(
                f"an edge from {self.from_uri!a} to {self.to_uri!a} would leave its account. "
                "Fix: relate nodes of one account."
            )
        if start == target:
            raise InvalidValueError(
                f"{self.from_uri!a} can't be related to itself. Fix: name another node."
            )
        check_slug(self.relation_type, "a type of relation")
        put = object.__setattr__
        put(self, "weight", fraction(self.weight, "weight"))
        put(self, "reason", bounded(self.reason, MAX_ABSTRACT, "reason"))
        put(self, "created_at", utc_time(self.created_at, "creation time"))

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.from_uri, self.to_uri, self.relation_type


class NodeStatus(Enum):
    PENDING = "PENDING"
    """Being written, and not visible yet."""
    ACTIVE = "ACTIVE"
    ARCHIVED = "ARCHIVED"
    """Stored, but neither read nor found."""
    BROKEN = "BROKEN"
    """Its files could not be parsed; repair gave it this status."""


class ContextType(Enum):
    MEMORY = "MEMORY"
    SKILL = "SKILL"
    RESOURCE = "RESOURCE"

    @classmethod
    def of(cls, uri: Uri) -> "ContextType":
        """Return the type of a node by its URI; the messages of a session are memories."""
        if uri.path[:1] == ("agents",) and uri.path[2:3] == ("skills",):
            return cls.SKILL
        return cls.RESOURCE if uri.path[:1] == ("resources",) else cls.MEMORY


@dataclass(frozen=True, kw_only=True)
class ContextNode:
    """A stored node, or one to write.

    `version` is 1 for a new one. `revised` returns the next, which can only be written if its
    predecessor is stored. `abstract` is the shortest summary, `overview` the longer one, `content`
    the whole text, in Markdown.
    """

    uri: str
    content: str = ""
    abstract: str = ""
    overview: str = ""
    relations: tuple[RelationEdge, ...] = ()
    """The edges that start here. Links in the content are not among them."""
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    """The owner's metadata; a rewrite keeps it. A value of None removes a key."""
    frontmatter: str | None = None
    """The lines above the content in its file; None if there are none, or to keep them."""
    status: NodeStatus = NodeStatus.PENDING
    version: int = 1
    owner_space: str = ""
    """The owner; by default the one in its URI."""
    created_at: datetime = _EPOCH
    """Set by the write that creates it."""
    updated_at: datetime = _EPOCH
    basis: str = field(default="", compare=False, repr=False)
    """Identifies its files as they were read, so that no later edit is overwritten."""
    problems: tuple[str, ...] = field(default=(), compare=False)
    """The texts that an edit by hand broke; this node has their earlier versions."""

    def __post_init__(self) -> None:
        place = Uri.parse(self.uri)
        if not place.is_node:
            raise InvalidValueError(
                f"{self.uri!a} is a folder of nodes. Fix: name a node in it, with a slug."
            )
        put = object.__setattr__
        is_note = place.path[:1] == ("resources",) and self.metadata.get("in_place")
        self._bound_texts(MAX_NOTE if is_note else MAX_CONTENT)
        if self.relations != ():
            put(self, "relations", _own_edges(self.uri, self.relations))
        put(self, "metadata", frozen(self.metadata, "metadata"))
        put(self, "owner_space", owner_space_at(place, self.owner_space))
        for name, what in (("created_at", "creation time"), ("updated_at", "time of the update")):
            time = getattr(self, name)
            if type(time) is not datetime or time.tzinfo is not UTC:
                put(self, name, utc_time(time, what))
        if type(self.version) is not int or not 0 < self.version <= _USUAL_VERSION:
            count(self.version, "version", least=1)
        if not isinstance(self.status, NodeStatus):
            raise InvalidValueError(f"{shown(self.status)} is not a status. Fix: use a NodeStatus.")
        if self.frontmatter is not None:
            encodable(self.frontmatter, "frontmatter")
        if self.basis != "":  # also for None, which is refused
            encodable(self.basis, "basis")
        if self.problems != ():
            put(self, "problems", tuple(encodable(each, "problem") for each in self.problems))

    def _bound_texts(self, most: int) -> None:
        limits = {"content": most, "abstract": MAX_ABSTRACT, "overview": MAX_OVERVIEW}
        for name, limit in limits.items():
            text = getattr(self, name)
            if type(text) is not str or len(text) > limit or not text.isascii():
                object.__setattr__(self, name, bounded(text, limit, name))

    # ------------------------------------------------------------ properties
    @cached_property
    def place(self) -> Uri:
        return Uri.parse(self.uri)

    @property
    def account_id(self) -> str:
        return self.place.account

    @cached_property
    def category(self) -> str:
        return self.place.category

    @property
    def level(self) -> int:
        return self.place.level

    @property
    def context_type(self) -> ContextType:
        return ContextType.of(self.place)

    @cached_property
    def title(self) -> str:
        """Its name for people; a user's own note may state a title apart from its headings."""
        is_named = self.abstract and self.metadata.get("in_place")
        return title_of("" if is_named else self.content, self.abstract, self.place)

    @property
    def date(self) -> datetime | None:
        """When it last changed; None for a user's own note that states no time."""
        return self.updated_at if self.updated_at != _EPOCH else None

    @cached_property
    def valid_from(self) -> datetime | None:
        """The time from which it holds; None if unknown."""
        return read_time(self.metadata.get("valid_from"))

    @cached_property
    def valid_until(self) -> datetime | None:
        return read_time(self.metadata.get("valid_until"))

    @cached_property
    def project(self) -> str:
        """The project it belongs to; empty for none.

        It is named in metadata or frontmatter, or the node is below `resources/projects`.
        """
        named = self.declared("project")
        if isinstance(named, str) and SLUG.fullmatch(named):
            return named
        match self.place.path:
            case ("resources", "projects", slug, _, *_) if SLUG.fullmatch(slug):
                return slug
        return ""

    def declared(self, name: str) -> JSON:
        """Return a value of the metadata, else of a line of the frontmatter; else None."""
        if name in self.metadata:
            return self.metadata[name]
        if self.metadata.get("in_place"):  # the frontmatter of a user's own note grants nothing
            return None
        line = rf"^{name}:[ \t]*(.*?)[ \t]*(?:#.*)?\r?$"
        found = re.search(line, self.frontmatter or "", re.MULTILINE)
        return None if found is None else found[1].strip("\"'[]")

    def revised(self, **changes: Any) -> "ContextNode":  # noqa: ANN401 - the fields' own types
        """Return the next version."""
        return replace(self, **{"version": self.version + 1, **changes})


def title_of(content: str, abstract: str, place: Uri) -> str:
    """Return the title of a node: its first heading, abstract, first words, or its name."""
    return _title(content, abstract) or shortened(place.words, _MAX_TITLE)


@lru_cache(maxsize=32)
def _title(content: str, abstract: str) -> str:
    heading = next((each.info for each in headings(content) if each.info), "")
    text = heading or abstract.strip().partition("\n")[0]
    return shortened(" ".join(text.split()) or _beginning(content), _MAX_TITLE)


def _beginning(content: str) -> str:
    """Return the first line with words, cut at the end of a word."""
    lines = (
        line
        for line in map(without_markers, content.splitlines())
        if line[:3] not in {"```", "~~~"}
    )
    line = next((line for line in lines if any(map(str.isalnum, line))), "")
    words = " ".join(line.split())
    if len(words) <= _MAX_BEGINNING:
        return words
    whole, _, _ = words[:_MAX_BEGINNING].rpartition(" ")
    return f"{whole or words[: _MAX_BEGINNING - 1]}…"


def time_problems(metadata: Mapping[str, JSON]) -> Iterator[str]:
    """Yield a problem, with its fix, for each time in some metadata that can't be parsed."""
    for name in _TIMES:
        value = metadata.get(name)
        if value is not None and read_time(value) is None:
            yield (
                f"its {name} is {shown(value)}, not a time. "
                "Fix: write it as 2026-03-02 or 2026-03-02T10:00:00Z."
            )


def _own_edges(uri: str, edges: tuple[RelationEdge, ...]) -> tuple[RelationEdge, ...]:
    """Return the edges, one for each target and type; all must start at the node."""
    if not isinstance(edges, (list, tuple)):
        raise InvalidValueError(f"the relations are {shown(edges)}. Fix: give a tuple of edges.")
    for edge in edges:
        if not isinstance(edge, RelationEdge):
            raise InvalidValueError(f"{shown(edge)} is not an edge. Fix: give a RelationEdge.")
        if edge.from_uri != uri:
            raise InvalidValueError(
                f"an edge of {uri!a} starts at {edge.from_uri!a}. Fix: give it to that node."
            )
    return tuple({(edge.to_uri, edge.relation_type): edge for edge in edges}.values())


class EventType(Enum):
    UPSERT_NODE = "upsert"
    UPSERT_DIRECTORY = "directory"
    DELETE_NODE = "delete"
    ARCHIVE_NODE = "archive"
    MOVE_NODE = "move"
    UPSERT_RELATIONS = "relation"


class EventStatus(Enum):
    PENDING = "pending"
    """Waiting, perhaps for its next attempt."""
    PROCESSING = "processing"
    """A worker has it."""
    DEAD = "dead"
    """Failed too often; an operator decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEvent:
    """A change of a node, with all that a worker needs to update the index."""

    event_id: str
    event_type: EventType
    uri: str
    account_id: str
    owner_space: str = ""
    """The owner of the node, even if it was deleted; by default the one in its URI."""
    payload: Mapping[str, JSON] = field(default_factory=dict)
    created_at: datetime
    status: EventStatus = EventStatus.PENDING
    retry_count: int = 0
    next_retry_at: datetime | None = None
    last_error: str = ""
    """Why the last attempt failed; truncated if it is too long."""

    def __post_init__(self) -> None:
        place = Uri.parse(self.uri)
        if not encodable(self.event_id, "event's id"):
            raise InvalidValueError("an event needs an id. Fix: give it one.")
        for kind, value in ((EventType, self.event_type), (EventStatus, self.status)):
            if not isinstance(value, kind):
                raise InvalidValueError(f"{shown(value)} is not an {kind.__name__}. Fix: use one.")
        if place.account != self.account_id:
            raise InvalidValueError(
                f"{self.uri!a} is not in the account {shown(self.account_id)}. "
                "Fix: register the event in the account of its node."
            )
        put = object.__setattr__
        put(self, "owner_space", owner_space_at(place, self.owner_space))
        put(self, "last_error", _error_text(self.last_error))
        put(self, "payload", frozen(self.payload, "payload"))
        put(self, "created_at", utc_time(self.created_at, "creation time"))
        count(self.retry_count, "retry count")
        if self.next_retry_at is not None:
            put(self, "next_retry_at", utc_time(self.next_retry_at, "time of the next attempt"))


def _error_text(error: str) -> str:
    """Return the text of an error. Any text is accepted: recording a failure must not fail."""
    if not isinstance(error, str):
        raise InvalidValueError(f"the error is {shown(error)}. Fix: give its message as text.")
    text = error.encode(errors="backslashreplace").decode()
    return text if len(text) <= MAX_OVERVIEW else text[: MAX_OVERVIEW - len(CUT)] + CUT


ACCOUNT = "account_id"
OWNER_SPACE = "owner_space"
PROJECT = "project"
EQUALS = (ACCOUNT, OWNER_SPACE, "context_type", "category", "session_id", PROJECT, "parent_uri")
"""The filters of a record that are compared for equality; the first two are required. Its URI and
level are filters too."""
VALID_FROM, VALID_UNTIL = "valid_from", "valid_until"
"""The beginning and the end of the time in which a record holds, in ISO 8601 and UTC."""
VALID_AT = "valid_at"
"""Restricts a search to what holds at a time. A record without a beginning always did."""


class Level(IntEnum):
    ABSTRACT = 0
    OVERVIEW = 1
    CONTENT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRecord:
    """One text of a node, with its vector. `filters` keep tenants apart."""

    id: str
    uri: str
    level: Level
    text: str
    context: str = ""
    """Words that are searched in addition to the text: title, speaker, date."""
    vector: tuple[float, ...] | bytes = ()
    """Numbers; or one signed byte for each, as an index stores them."""
    filters: Mapping[str, JSON]
    payload: Mapping[str, JSON] = field(default_factory=dict)

    def __post_init__(self) -> None:
        place = Uri.parse(self.uri)
        _check_id(self.id)
        encodable(self.text, "text")
        put = object.__setattr__
        put(self, "level", _level(self.level))
        if not isinstance(self.vector, bytes):
            put(self, "vector", _finite(self.vector, "vector"))
        put(self, "filters", check_filters(self.filters))
        put(self, "payload", frozen(self.payload, "payload"))
        account, owner_space = self.filters[ACCOUNT], self.filters[OWNER_SPACE]
        if account != place.account:
            raise InvalidValueError(
                f"{self.uri!a} has the account {shown(account)} in its filters. Fix: use its own."
            )
        if not isinstance(owner_space, str):
            raise InvalidValueError(f"{self.uri!a} has several owners. Fix: name one.")
        owner_space_at(place, owner_space)

    @classmethod
    def of_node(  # noqa: PLR0913, PLR0917 - all fields of a record
        cls,
        uri: str,
        level: Level,
        passage: int,
        text: str,
        context: str,
        filters: Mapping[str, JSON],
        payload: Mapping[str, JSON],
    ) -> "IndexRecord":
        """Return a record without a vector quickly; its values were checked and frozen before."""
        record, put = object.__new__(cls), object.__setattr__
        values = (record_id(uri, level, passage), uri, level, text, context, (), filters, payload)
        for name, value in zip(_FIELDS, values, strict=True):
            put(record, name, value)
        return record

    def with_vector(self, vector: bytes) -> "IndexRecord":
        """Return the same record with a vector, without checking the rest again."""
        return self._with("vector", vector)

    def with_payload(self, more: Mapping[str, JSON]) -> "IndexRecord":
        """Return the same record with more in its payload; as `with_vector`."""
        return self._with("payload", extended(self.payload, more, "payload"))

    def _with(self, field_: str, value: object) -> "IndexRecord":
        record = object.__new__(IndexRecord)
        for name in _FIELDS:
            object.__setattr__(record, name, value if name == field_ else getattr(self, name))
        return record


_FIELDS = tuple(each.name for each in fields(IndexRecord))


@dataclass(frozen=True, kw_only=True)
class SeedHit:
    id: str
    uri: str
    level: Level
    score: float
    text: str = ""
    payload: Mapping[str, JSON] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Uri.parse(self.uri)
        _check_id(self.id)
        encodable(self.text, "text")
        put = object.__setattr__
        put(self, "level", _level(self.level))
        put(self, "score", _finite([self.score], "score")[0])
        put(self, "payload", frozen(self.payload, "payload"))

    @classmethod
    def of_record(
        cls, id_: str, uri: str, level: Level, text: str, payload: Mapping[str, JSON]
    ) -> "SeedHit":
        """Return a hit without a score quickly, of a record that an index checked.

        The payload must not be changed.
        """
        hit = object.__new__(cls)
        hit.__dict__.update(id=id_, uri=uri, level=level, score=0.0, text=text, payload=payload)
        return hit

    def scored(self, score: float) -> "SeedHit":
        """Return the same hit with a score, quickly."""
        hit = object.__new__(SeedHit)
        hit.__dict__.update(self.__dict__, score=score)
        return hit


def check_filters(filters: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the filters, frozen; refuse those without an account and one or more owner spaces."""
    checked = frozen(filters, "filters")
    account, spaces = checked.get(ACCOUNT), checked.get(OWNER_SPACE)
    several = spaces if isinstance(spaces, tuple) else (spaces,)
    owners = {ACCOUNT: _names([account]), OWNER_SPACE: _names(several)}
    if missing := ", ".join(name for name, is_named in owners.items() if not is_named):
        raise InvalidValueError(f"the filters lack {missing}. Fix: state whose memory to search.")
    return checked


def _names(values: Iterable[JSON]) -> bool:
    given = list(values)
    return bool(given) and all(isinstance(each, str) and each for each in given)


def _check_id(text: str) -> None:
    if not encodable(text, "record's id"):
        raise InvalidValueError("a record needs an id. Fix: derive it from URI and level.")


def _level(level: object) -> Level:
    if type(level) is Level:
        return level
    if isinstance(level, int) and not isinstance(level, bool) and level in set(Level):
        return Level(level)
    raise InvalidValueError(f"{shown(level)} is not a level. Fix: use 0, 1 or 2.")


def _finite(numbers: Iterable[float], what: str) -> tuple[float, ...]:
    """Return numbers of any type as floats; booleans and texts are refused."""
    try:
        given = list(numbers)
        floats = tuple(map(float, given))
    except (TypeError, ValueError, OverflowError):
        given, floats = [], (math.nan,)
    if not all(map(math.isfinite, floats)) or not {bool, str, bytes}.isdisjoint(map(type, given)):
        raise InvalidValueError(f"the {what} is {shown(numbers)}. Fix: give finite numbers.")
    return floats


def record_id(uri: str, level: Level, passage: int = 0) -> str:
    """Return the id of a record, unique for its URI, level and passage."""
    return f"{uri}#{level:d}.{passage}"


NOTED = "noted"
"""The project of a note, in the payload of a record; empty if the note is for all projects."""
LINKS = "links"
"""The names that a node links to, in the payload of its first record."""
