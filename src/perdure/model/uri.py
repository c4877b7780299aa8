"""`ctx://` URIs of nodes and folders, and the keys of their folders in a backend."""

import re
from functools import cached_property, lru_cache
from hashlib import sha256
from urllib.parse import quote, unquote

from perdure.dataclass import dataclass
from perdure.errors import InvalidUriError, InvalidValueError
from perdure.model.values import shown
from perdure.patterns import later

SCHEME = "ctx://"
PROFILE = "profile"
"""The one category whose memory has no slug: there is one profile."""
FIRST_NODE = "messages"
"""The name of the first node of a session, whose metadata has its branch and commit."""
OF_THE_PERSON = frozenset({PROFILE, "preference"})
"""The categories that are about the user, and belong to no project."""
KINDS = {
    "rule": "pattern",
    "decision": "pattern",
    "rejected": "case",
    "preference": "preference",
    "fact": "entity",
    "command": "skill",
    "task": "case",
}
"""The kinds of statements, and the category that each is stored in."""

MAX_ID_BYTES = 200
"""The limit of an id, encoded as the name of a folder."""
MAX_KEY_BYTES = 900
"""The limit of the key of a node's folder; a text in it may have 1,024 bytes."""

MESSAGE = later(r"ctx://[^#\s]+#[0-9]{1,9}")
"""The name of a message: the URI of a node of its session, and the index in the session."""
SLUG = later(r"[a-z0-9_-]{1,100}")
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")
_RESERVED = later(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)")
_SEGMENT = r"(?!(?:con|prn|aux|nul|com\d|lpt\d)(?:/|\Z))([a-z0-9_-]{1,100})"
_USUAL = later(
    rf"{_SEGMENT}/(users|agents)/{_SEGMENT}/(memories)/(?!profile/){_SEGMENT}/{_SEGMENT}"
)
"""A memory whose names need no escapes in its URI and its key, as in most cases. Matching it takes
a tenth of the time of a full check."""
_MARKS = ("conflict", "perdure-tmp", "content.md")
"""Texts with a meaning in a file's name; in an id with one of them, dots are escaped."""

SHAPES = (
    "ctx://{account}/users|agents/{id}/memories/{category}/{slug}",
    "ctx://{account}/users|agents/{id}/memories/profile",
    "ctx://{account}/agents/{id}/skills/{name}",
    "ctx://{account}/resources/{name}/...",
    "ctx://{account}/sessions/{id}/{name}/...",
)
_SHAPES_SHOWN = "one of\n  " + "\n  ".join(SHAPES)


def check_slug(text: object, what: str = "a slug") -> str:
    """Return `text` if it is a slug; `InvalidValueError` if not."""
    if not isinstance(text, str) or not SLUG.fullmatch(text):
        raise InvalidValueError(
            f"{shown(text)} is not {what}: it must be 1 to 100 of a-z, 0-9, _ and -. "
            f"Fix: try {slugify(str(text)[:200])!a}."
        )
    return text


def slugify(text: str) -> str:
    """Return a slug for a title; `untitled` if it has no usable characters."""
    words = re.sub(r"[^a-z0-9_]+", "-", text.casefold()).strip("-")
    return words[:100].strip("-") or "untitled"


_PLAIN_ID = later(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")


def stable_name(source: str, source_id: str) -> str:
    """Return a name for an id of a source; different ids have different names."""
    if _PLAIN_ID.fullmatch(source_id):
        return f"{source}-{source_id}"
    return f"{source}-{stable_slug(source_id)}"


def stable_slug(name: str) -> str:
    """Return a slug for a name; different names have different slugs."""
    slug = slugify(name[:200])[:60].strip("-")
    digest = sha256(name.encode(errors="replace")).hexdigest()
    return slug if slug == name else f"{slug or 'untitled'}-{digest[:12]}"


def slug_of(name: str) -> str:
    """Return the slug of a name, with a hash if it is not plain ASCII; "" for ""."""
    slug = slugify(name)
    if not name or (name.isascii() and re.search(r"[A-Za-z0-9]", name)):
        return slug if name else ""
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{slug[:80].strip('-')}-{digest}"


@dataclass(frozen=True)
class Uri:
    """A place in the memory of one account: a node, or a folder of nodes.

    Ids are any text. Two different ids never share a folder, even on a disk that ignores case:
    characters that could be folded are escaped.
    """

    account: str
    path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        path: object = self.path
        if isinstance(path, list):
            object.__setattr__(self, "path", tuple(path))
        try:
            _check(self.account, self.path)
        except TypeError:
            raise _pathless(path) from None
        except InvalidValueError as error:
            raise InvalidUriError(f"{error}\nA URI is {_SHAPES_SHOWN}") from None

    @classmethod
    def parse(cls, text: object) -> "Uri":
        """Parse what `str` returns; `InvalidUriError` for anything else."""
        if not isinstance(text, str):
            raise misshapen(text)
        if len(text) > MAX_KEY_BYTES:  # a URI is shorter than its key
            raise InvalidUriError(
                f"{shown(text)} is too long: it has {len(text):,} characters. "
                f"Fix: with at most {MAX_KEY_BYTES} characters, write {_SHAPES_SHOWN}"
            )
        return _parse(text)

    def __str__(self) -> str:
        return _text_of(self.account, self.path)

    @cached_property
    def is_node(self) -> bool:
        """Whether a node can be here; if not, it is a folder."""
        match self.path:
            case ("users" | "agents", _, "memories", category):
                return category == PROFILE
            case ("users" | "agents", _, "memories", _, _) | ("agents", _, "skills", _):
                return True
            case ("resources", _, *_) | ("sessions", _, _, *_):
                return True
        return False

    @cached_property
    def category(self) -> str:
        """Of a memory or a skill; empty for everything else."""
        match self.path:
            case ("users" | "agents", _, "memories", category, *_):
                return category
            case ("agents", _, "skills", *_):
                return "skill"
        return ""

    @property
    def name(self) -> str:
        """The last segment: a slug, a skill's name, `profile`."""
        return self.path[-1] if self.path else self.account

    @property
    def words(self) -> str:
        return " ".join(self.name.replace("-", " ").replace("_", " ").split())

    @property
    def level(self) -> int:
        return len(self.path)

    @cached_property
    def owner_space(self) -> str:
        """The owner in the URI; empty above any owner, and for a session."""
        match self.path:
            case ("users", user, *_):
                return f"user:{user}"
            case ("agents", agent, *_):
                return f"agent:{agent}"
            case ("resources", *_):
                return f"account:{self.account}"
        return ""

    @cached_property
    def session(self) -> str:
        """The id of its session; empty outside of sessions."""
        return self.path[1] if len(self.path) > 1 and self.path[0] == "sessions" else ""

    @property
    def parent(self) -> "Uri":
        """The folder that holds it; an account is its own parent."""
        return _checked(self.account, self.path[:-1])

    def child(self, *names: str) -> "Uri":
        return Uri(self.account, (*self.path, *names))

    def contains(self, other: "Uri") -> bool:
        """Whether `other` is this place or below it."""
        return self.account == other.account and other.path[: len(self.path)] == self.path

    @cached_property
    def key(self) -> str:
        return _key_of(self.account, self.path)

    @classmethod
    def of_key(cls, key: object) -> "Uri | None":
        """Return the place that has a folder; None if no place has it."""
        if not isinstance(key, str) or len(key) > MAX_KEY_BYTES:
            return None
        usual = _USUAL.fullmatch(key, len("accounts/")) if key.startswith("accounts/") else None
        if usual is not None:
            account, *path = usual.groups()
            return _checked(account, tuple(path))
        first, *segments = key.split("/")
        names = [name_of(segment) for segment in segments]
        if first != "accounts" or not names or None in names:
            return None
        try:
            account, *path = (name for name in names if name is not None)
            return cls(account, tuple(path))
        except InvalidValueError:
            return None


def _checked(account: str, path: tuple[str, ...]) -> Uri:
    """Return a place whose names were checked already, such as a prefix of another."""
    uri = object.__new__(Uri)
    object.__setattr__(uri, "account", account)
    object.__setattr__(uri, "path", path)
    return uri


def check_id(text: object, what: str) -> str:
    """Return `text` if it can be the id of an account, user, agent or session."""
    if not isinstance(text, str) or not text:
        raise InvalidUriError(f"{shown(text)} is not a valid {what}. Fix: give an id of text.")
    length = len(text)
    try:
        if length <= MAX_ID_BYTES:
            length = len(segment_of(text))
    except UnicodeEncodeError:
        raise InvalidUriError(
            f"the {what} {shown(text)} has half a character. Fix: remove it."
        ) from None
    if length > MAX_ID_BYTES:
        raise InvalidUriError(
            f"the {what} {shown(text)} is too long: {length:,} bytes or more as a folder's name. "
            f"Fix: use an id of at most {MAX_ID_BYTES}; "
            "characters other than a-z, 0-9, _, - and dots count three for each of their bytes."
        )
    return text


def _pathless(path: object) -> InvalidUriError:
    return InvalidUriError(f"{shown(path)} is not a path. Fix: give a tuple of names.")


@lru_cache(maxsize=65536)
def _check(account: str, path: tuple[str, ...]) -> None:
    """Refuse what is not a place; the result is cached."""
    if all(type(name) is str for name in (account, *path)):
        usual = _USUAL.fullmatch("/".join((account, *path)))
        if usual and usual.groups() == (account, *path):
            return
    check_id(account, "account")
    if not isinstance(path, tuple):
        raise _pathless(path)
    for name in path:
        check_id(name, "name")
    match path:
        case () | ("resources" | "sessions", *_):
            pass
        case ("users" | "agents" as kind, *names):
            _check_owned(kind, *names[1:])
        case (first, *_):
            raise InvalidUriError(
                f"an account has no {shown(first)}. Fix: start with one of the names below."
            )
    length = len(_key_of(account, path))
    if length > MAX_KEY_BYTES:
        raise InvalidUriError(
            f"{shown(_text_of(account, path))} is too long: its folder's key has {length} bytes. "
            f"Fix: use shorter names; the limit is {MAX_KEY_BYTES} bytes."
        )


@lru_cache(maxsize=65536)
def _key_of(account: str, path: tuple[str, ...]) -> str:
    return "/".join(("accounts", *map(segment_of, (account, *path))))


@lru_cache(maxsize=65536)
def _text_of(account: str, path: tuple[str, ...]) -> str:
    return SCHEME + "/".join(_in_uri(part) for part in (account, *path))


def _check_owned(kind: str, *names: str) -> None:
    match names:
        case () | ("memories",) | ("memories", _):
            pass
        case ("memories", category, _) if category != PROFILE:
            pass
        case ("memories", _, _):
            raise InvalidUriError("the profile has no slugs. Fix: remove the last segment.")
        case ("skills",) | ("skills", _) if kind == "agents":
            pass
        case _:
            raise InvalidUriError(
                f"{kind} have no {shown('/'.join(names))}. Fix: use one of the forms below."
            )
    for name in names[1:]:
        check_slug(name, "a slug in a URI")


def misshapen(text: object) -> InvalidUriError:
    return InvalidUriError(f"{shown(text)} is not a URI of memory. Fix: write {_SHAPES_SHOWN}")


@lru_cache(maxsize=65536)
def _parse(text: str) -> Uri:
    if not text.startswith(SCHEME):
        raise misshapen(text)
    usual = _USUAL.fullmatch(text, len(SCHEME))
    if usual is not None:
        account, *path = usual.groups()
        return _checked(account, tuple(path))
    account, *path = text.removeprefix(SCHEME).split("/")
    try:
        uri = Uri(
            unquote(account, errors="strict"),
            tuple(unquote(part, errors="strict") for part in path),
        )
    except UnicodeDecodeError:
        raise misshapen(text) from None
    if str(uri) != text:
        raise InvalidUriError(
            f"{shown(text)} is not in canonical form. Fix: write it as {str(uri)!a}."
        )
    return uri


@lru_cache(maxsize=65536)
def segment_of(name: str) -> str:
    """Return the folder name for an id; different ids differ even if case is ignored."""
    if SLUG.fullmatch(name) and not _RESERVED.match(name):
        return name
    plain = _PLAIN
    if name.find(".") > 0 and name[-1] != "." and not any(mark in name for mark in _MARKS):
        plain |= {ord(".")}
    segment = "".join(chr(b) if b in plain else f"%{b:02x}" for b in name.encode())
    if _RESERVED.match(segment):  # the name of a device on some systems
        segment = f"%{ord(segment[0]):02x}{segment[1:]}"
    return segment


@lru_cache(maxsize=65536)
def name_of(segment: str) -> str | None:
    """Return the id whose folder has this name; None if no id has it."""
    if SLUG.fullmatch(segment) and not _RESERVED.match(segment):
        return segment
    try:
        name = unquote(segment, errors="strict")
        return name if name and segment_of(name) == segment else None
    except (UnicodeDecodeError, UnicodeEncodeError):
        return None


@lru_cache(maxsize=65536)
def _in_uri(name: str) -> str:
    if SLUG.fullmatch(name):
        return name
    quoted = quote(name, safe="")
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted


KIND_TITLES = {
    "rule": "Rules",
    "decision": "Decided",
    "rejected": "Rejected",
    "fact": "Facts",
    "command": "Commands",
    "task": "Open",
    "preference": "About the user",
}
"""The headings of the kinds of statements, in the order of a briefing."""
_KIND_OF_CATEGORY = {
    "pattern": "rule",
    "decision": "decision",
    "preference": "preference",
    "profile": "preference",
    "skill": "command",
    "case": "rejected",
}


def kind_of(category: str) -> str:
    """Return the kind that a category implies; `fact` for one that implies none."""
    return _KIND_OF_CATEGORY.get(category, category if category in KIND_TITLES else "fact")
