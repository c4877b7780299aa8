"""Places in a backend's namespace, as opaque keys."""

import re
import unicodedata
from collections import deque
from dataclasses import dataclass
from itertools import repeat

from holdfast.errors import InvalidLocatorError

TEMPORARY_SUFFIX = ".holdfast-tmp"
"""Ends the name of every file that is not finished yet; no key may use it."""

MAX_SEGMENT_BYTES = 255
"""What every file system in use can hold in one name."""

MAX_KEY_BYTES = 1024
"""What every object store in use can hold in one key."""

_ESCAPES = frozenset({".", ".."})
_UNSAFE_CHARACTERS = re.compile(
    r"[\x00-\x1f\x7f-\x9f\\"  # control characters; the other separator
    r"\u2028\u2029"  # line and paragraph separators
    r"\u200b\u2060\ufeff"  # invisible: two names that look the same
    r"\u202a-\u202e\u2066-\u2069"  # turn the reading direction: a name that looks like another
    r"\ud800-\udfff]"  # half a character: no UTF-8
)


def normalize_key(key: str) -> str:
    """Return `key` in the one form that names its place.

    Relative to the backend's root, in Unicode's NFC, without empty and `.` segments. A key that
    could reach outside the root, or be mistaken for another one, raises `InvalidLocatorError`.
    """
    if not isinstance(key, str):
        raise TypeError(f"a locator's key is text, not {type(key).__name__}: {key!r}")
    composed = key if key.isascii() else unicodedata.normalize("NFC", key)
    segments = [part for part in composed.split("/") if part and part != "."]
    for segment in segments:
        _refuse_unsafe(segment, key)
    normalized = "/".join(segments)
    if len(normalized.encode()) > MAX_KEY_BYTES:
        raise _invalid(key, f"it is longer than {MAX_KEY_BYTES} bytes", "use fewer, shorter names")
    return normalized


def _refuse_unsafe(segment: str, key: str) -> None:
    if segment == "..":
        raise _invalid(key, "it holds a '..' segment", "name the place from the backend's root")
    if unsafe := _UNSAFE_CHARACTERS.search(segment):
        character = f"U+{ord(unsafe.group()):04X}"
        raise _invalid(key, f"it holds the character {character}", "leave that character out")
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
    """Refuse a name that some system would fold into a separator or an upward step."""
    folded = unicodedata.normalize("NFKC", segment)
    if "/" in folded or "\\" in folded or folded in _ESCAPES:
        raise _invalid(key, "a character in it stands for '.', '/' or '\\'", "use plain characters")


def _invalid(key: str, what: str, fix: str) -> InvalidLocatorError:
    shown = key if len(key) <= 80 else key[:77] + "..."  # noqa: PLR2004 - one line of a terminal
    return InvalidLocatorError(f"{shown!a} is not a usable key: {what}. Fix: {fix}.")


def is_key_segment(name: str) -> bool:
    """Whether `name`, as found in a store, is one segment that a key can say."""
    if not name or "/" in name:
        return False
    try:
        return normalize_key(name) == name
    except InvalidLocatorError:
        return False


@dataclass(frozen=True, slots=True, order=True)
class Locator:
    """A place in some backend's namespace; the root is `""`. It does no I/O."""

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
        return _trusted(self.key.rpartition("/")[0])

    def child(self, *parts: str) -> "Locator":
        return Locator("/".join((self.key, *parts)))

    def contains(self, other: "Locator") -> bool:
        """Whether `other` is this place or lies below it."""
        return not self.key or other.key == self.key or other.key.startswith(self.key + "/")

    def __str__(self) -> str:
        return self.key


def _trusted(key: str) -> Locator:
    locator = object.__new__(Locator)
    object.__setattr__(locator, "key", key)
    return locator


_PLAIN_BYTES = bytes(byte for byte in range(0x20, 0x7F) if byte not in b"\\")
_ODD_IN_PATHS = ("//", "/./", "/../", f"{TEMPORARY_SUFFIX}/")
_set_key = vars(Locator)["key"].__set__  # the slot itself, past the freeze


def children_named(parent: Locator, names: list[str]) -> list[Locator]:
    """Return the children of `parent` in key order; names that no key can say are left out.

    Large directories are common and their names nearly always plain, so all are checked at once
    and only a directory with an odd one pays for a check of each. The loops run in C, and the
    sorting comes last, because it scatters the names over the memory.
    """
    prefix = f"{parent.key}/" if parent.key else ""
    room = min(MAX_SEGMENT_BYTES, MAX_KEY_BYTES - len(prefix.encode()))
    if not _all_plain(names, room):
        composed = {unicodedata.normalize("NFC", name) for name in names}
        names = [n for n in composed if is_key_segment(n) and len(n.encode()) <= room]
    keys = list(map(prefix.__add__, names))
    keys.sort()
    locators = list(map(object.__new__, repeat(Locator, len(keys))))
    deque(map(_set_key, locators, keys), maxlen=0)
    return locators


def _all_plain(names: list[str], room: int) -> bool:
    """Whether each is a name of plain ASCII characters that fits; no may be said too often."""
    if not names:
        return True
    joined = f"/{'/'.join(names)}/"
    return (
        joined.isascii()
        and not joined.encode().translate(None, _PLAIN_BYTES)
        and joined.count("/") == len(names) + 1
        and not any(odd in joined for odd in _ODD_IN_PATHS)
        and (len(joined) <= room or max(map(len, names)) <= room)
    )
