"""Locators: names in a backend's namespace, as opaque keys."""

import gc
import re
import unicodedata
from collections import deque
from collections.abc import Collection
from functools import lru_cache
from itertools import repeat

from perdure.dataclass import dataclass
from perdure.errors import InvalidLocatorError
from perdure.patterns import later

TEMPORARY_SUFFIX = ".perdure-tmp"
"""The suffix of every unfinished file; no key may have it."""

MAX_SEGMENT_BYTES = 255
"""The longest name that every file system in use allows."""

MAX_KEY_BYTES = 1024
"""The longest key that every object store in use allows."""

_ESCAPES = frozenset({".", ".."})
_UNSAFE = (
    r"\x00-\x09\x0b-\x1f\x7f-\x9f\\\\"  # control characters; the other separator
    r"\u2028\u2029"  # line and paragraph separators
    r"\u00ad\u200b\u2060\ufeff"  # invisible: two names that look the same
    r"\u202a-\u202e\u2066-\u2069"  # turn the reading direction: a name that looks like another
    r"\ud800-\udfff"  # lone surrogates, which UTF-8 can't encode
)
_UNSAFE_CHARACTERS = f"[\n{_UNSAFE}]"
_PLAIN_NAME = r"\.{0,2}[A-Za-z0-9_%-][A-Za-z0-9_%.-]{0,250}"
_PLAIN_KEY = later(rf"{_PLAIN_NAME}(?:/{_PLAIN_NAME})*")
_PRINTABLE_NAMES = later(r"[ -\[\]-~]*")
"""Printable ASCII names of a directory, joined by slashes: each is valid in a key unchanged."""
_PLAIN_BYTES = bytes(byte for byte in (0x0A, *range(0x20, 0x7F)) if byte not in b"\\")
_UNSAFE_IN_LINES = f"[{_UNSAFE}]"
_ESCAPES_IN_LINES = r"(?:^|/)\.\.?$"
_MANY = 5000


@lru_cache(maxsize=256)
def is_plain_name(name: str) -> bool:
    """Whether a name is a segment of a key with one spelling only; a quick check."""
    return re.fullmatch(_PLAIN_NAME, name) is not None and TEMPORARY_SUFFIX not in name


def normalize_key(key: str) -> str:
    """Return `key` in its normal form.

    It is relative to the backend's root, in NFC, without empty and `.` segments. A key that could
    reach outside the root, or be mistaken for another one, raises `InvalidLocatorError`.
    """
    if not isinstance(key, str):
        raise TypeError(f"a locator's key is text, not {type(key).__name__}: {key!r}")
    if _is_plain(key):
        return key
    composed = key if key.isascii() else unicodedata.normalize("NFC", key)
    segments = [part for part in composed.split("/") if part and part != "."]
    for segment in segments:
        _refuse_unsafe(segment, key)
    normalized = "/".join(segments)
    if len(normalized.encode()) > MAX_KEY_BYTES:
        raise _invalid(key, f"it is longer than {MAX_KEY_BYTES} bytes", "use fewer, shorter names")
    return normalized


def _is_plain(key: str) -> bool:
    """Whether a key is in its normal form; a quick check that most keys pass."""
    return (
        _PLAIN_KEY.fullmatch(key) is not None
        and len(key) <= MAX_KEY_BYTES
        and TEMPORARY_SUFFIX not in key
    )


def _refuse_unsafe(segment: str, key: str) -> None:
    if segment == "..":
        raise _invalid(key, "it has a '..' segment", "use a key relative to the backend's root")
    if unsafe := re.search(_UNSAFE_CHARACTERS, segment):
        character = f"U+{ord(unsafe.group()):04X}"
        raise _invalid(key, f"it has the character {character}", "remove that character")
    if segment.endswith(TEMPORARY_SUFFIX):
        raise _invalid(key, f"{TEMPORARY_SUFFIX!r} is reserved", "choose another ending")
    if segment.isascii():
        length = len(segment)
    else:
        _refuse_look_alike(segment, key)
        length = len(segment.encode())
    if length > MAX_SEGMENT_BYTES:
        raise _invalid(key, f"a name in it has {length} bytes", f"at most {MAX_SEGMENT_BYTES}")


def _refuse_look_alike(segment: str, key: str) -> None:
    """Refuse a name that some system would fold into a separator, `.` or `..`."""
    folded = unicodedata.normalize("NFKC", segment)
    if "/" in folded or "\\" in folded or folded in _ESCAPES:
        raise _invalid(
            key, "a character in it may be read as '.', '/' or '\\'", "use plain characters"
        )


def _invalid(key: str, what: str, fix: str) -> InvalidLocatorError:
    shown = key if len(key) <= 80 else key[:77] + "..."  # noqa: PLR2004 - one line of a terminal
    return InvalidLocatorError(f"{shown!a} is not a usable key: {what}. Fix: {fix}.")


def segments_named(names: Collection[str]) -> dict[str, str]:
    """Return the names of a directory by their segments in NFC.

    Names that are not valid in a key are omitted. Of two names with one NFC form, that form wins.
    """
    together = "/".join(names)
    if TEMPORARY_SUFFIX not in together and _PRINTABLE_NAMES.fullmatch(together):
        return dict(zip(names, names, strict=True))
    found = {name: name for name in names if is_key_segment(name)}
    for name in names:
        composed = _composed(name)
        if composed not in found and is_key_segment(composed):
            found[composed] = name
    return found


def is_key_segment(name: str) -> bool:
    """Whether `name`, as found in a store, is a valid segment of a key."""
    if not name or "/" in name:
        return False
    try:
        return normalize_key(name) == name
    except InvalidLocatorError:
        return False


@dataclass(frozen=True, slots=True, order=True)
class Locator:
    """A name in a backend's namespace; the root is `""`. Does no I/O."""

    key: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", normalize_key(self.key))

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.key.split("/")) if self.key else ()

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> "Locator":
        """The directory that holds it; the root is its own parent."""
        return trusted(self.key.rpartition("/")[0])

    def child(self, *parts: str) -> "Locator":
        return _child(self.key, parts)

    def contains(self, other: "Locator") -> bool:
        """Whether `other` is this locator or below it."""
        return not self.key or other.key == self.key or other.key.startswith(self.key + "/")

    def __str__(self) -> str:
        return self.key


def trusted(key: str) -> Locator:
    """Return the locator of a key that is known to be valid."""
    locator = object.__new__(Locator)
    object.__setattr__(locator, "key", key)
    return locator


@lru_cache(maxsize=16384)
def _child(key: str, parts: tuple[str, ...]) -> Locator:
    below = "/".join((key, *parts) if key else parts)
    is_plain = len(below) <= MAX_KEY_BYTES and TEMPORARY_SUFFIX not in below
    if not is_plain or _PLAIN_KEY.fullmatch(below) is None:
        return Locator(below)
    child = object.__new__(Locator)
    _set_key(child, below)
    return child


_set_key = vars(Locator)["key"].__set__  # the slot itself, past the freeze

STORE_NOTE = Locator("Perdure/About this folder.md")
"""The note that has the id of the store. It describes the texts and is not one of them."""


def children_named(parent: Locator, names: list[str]) -> list[Locator]:
    """Return the children of `parent` in key order; names that are not valid in a key are omitted.

    The names are as a file system lists them: one segment each, and none longer than it allows.

    Large directories are common and nearly always have valid names only, so all are checked at
    once, as one string with a line for each key. Only if that fails is each name checked. They are
    sorted first, so that the keys are contiguous in memory.
    """
    if not names:
        return []
    prefix = f"{parent.key}/" if parent.key else ""
    lines = prefix + f"\n{prefix}".join(sorted(names))
    composed = lines if lines.isascii() else unicodedata.normalize("NFC", lines)
    if composed.count("\n") == len(names) - 1 and _are_keys(composed, len(prefix.encode())):
        keys = composed.split("\n")
    else:
        keys = sorted(prefix + name for name in map(_composed, names) if _is_key(prefix, name))
    if composed != lines:
        keys = sorted(set(keys))  # one name may be there in two spellings
    return _locators(keys)


def _are_keys(lines: str, prefix_bytes: int) -> bool:
    """Whether every line is a valid key; False also if a quick check can't tell."""
    if TEMPORARY_SUFFIX in lines or prefix_bytes + MAX_SEGMENT_BYTES > MAX_KEY_BYTES:
        return False
    if lines.isascii():
        return not lines.encode().translate(None, _PLAIN_BYTES)
    if re.search(_UNSAFE_IN_LINES, lines):
        return False
    folded = unicodedata.normalize("NFKC", lines)
    longest = max(map(len, lines.encode().split(b"\n")))
    return (
        folded.count("/") == lines.count("/")
        and "\\" not in folded
        and not re.search(_ESCAPES_IN_LINES, folded, re.MULTILINE)
        and longest - prefix_bytes <= MAX_SEGMENT_BYTES
    )


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _is_key(prefix: str, name: str) -> bool:
    return is_key_segment(name) and len((prefix + name).encode()) <= MAX_KEY_BYTES


def _locators(keys: list[str]) -> list[Locator]:
    """Create many at once in loops that run in C, with the cycle collector disabled."""
    is_collecting = len(keys) >= _MANY and gc.isenabled()
    if is_collecting:
        gc.disable()
    try:
        locators = list(map(object.__new__, repeat(Locator, len(keys))))
        deque(map(_set_key, locators, keys), maxlen=0)
    finally:
        if is_collecting:
            gc.enable()
    return locators
