"""Values that other programs wrote, as texts that memory can hold."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256

from perdure.engine.importing.contract import Said
from perdure.model import slugify
from perdure.model.values import MAX_SHOWN, read_moment

MOST_OF_A_TOOL = 2_000
"""Characters of what a tool was asked, or answered; the rest is left out, and that is said."""
MOST_OF_A_MESSAGE = 1_000_000
_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")
_HALVES = re.compile("[\ud800-\udfff]")


def text_of(value: object) -> str:
    """Return a text that UTF-8 can say; nothing if it is none.

    Half a character, as cut-off texts have it, becomes U+FFFD.
    """
    if not isinstance(value, str):
        return ""
    if value.isascii() or not _HALVES.search(value):
        return value
    whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _HALVES.sub("\ufffd", whole)


def mapping_of(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def time_of(value: object) -> str:
    """Return a time as ISO 8601 in UTC: of seconds since 1970, or of a text; "" if it is none."""
    if isinstance(value, bool):
        return ""
    if isinstance(value, int | float):
        try:
            return datetime.fromtimestamp(value, UTC).isoformat()
        except (ValueError, OverflowError, OSError):
            return ""
    found = read_moment(value)
    return "" if found is None else found.isoformat()


def cut(text: str, most: int) -> str:
    """Return a text of which no more than `most` is kept, and which says what is left out."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[{len(text) - most:,} more characters were not imported]"


def compact(value: object) -> str:
    """Return what a tool was given or gave, as a short text."""
    if isinstance(value, str):
        said = text_of(value)
    else:
        try:
            said = text_of(json.dumps(value, ensure_ascii=False))
        except (RecursionError, ValueError):
            said = ""
    return cut(said, MOST_OF_A_TOOL)


def call(name: str, given: object) -> str:
    """Return that a tool was called, as one line of what an assistant says."""
    return f"[called {name or 'a tool'}] {compact(given)}".rstrip()


def message(role: str, content: str, *, name: object = "", time: object = None) -> Said | None:
    """Return a message; None if nothing was said."""
    if not content.strip():
        return None
    said = {"role": role, "content": cut(content, MOST_OF_A_MESSAGE)}
    if named := " ".join(text_of(name).split())[:MAX_SHOWN]:
        said["name"] = named
    if when := time_of(time):
        said["time"] = when
    return said


def stable_name(source: str, source_id: str) -> str:
    """Return a name for what has this id in this source; two ids have two names."""
    if _PLAIN_ID.fullmatch(source_id):
        return f"{source}-{source_id}"
    return f"{source}-{stable_slug(source_id)}"


def stable_slug(name: str) -> str:
    """Return a slug for a name; two names have two slugs."""
    slug = slugify(name[:200])[:60].strip("-")
    return slug if slug == name else f"{slug or 'untitled'}-{digest(name)[:12]}"


def digest(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()
