"""Values that other programs wrote, as texts that memory can hold."""

import re
from collections.abc import Mapping
from hashlib import sha256

from perdure.engine.importing.contract import Said
from perdure.model import slugify
from perdure.model.messages import called, json_of, text_of, time_in
from perdure.model.values import MAX_SHOWN

MOST_OF_A_TOOL = 2_000
"""Characters of what a tool was asked, or answered; the rest is left out, and that is said."""
MOST_OF_A_MESSAGE = 1_000_000
_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")


def mapping_of(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def time_of(value: object) -> str:
    """Return a time as ISO 8601 in UTC: of seconds since 1970, or of a text; "" if it is none."""
    found = time_in(value)
    return "" if found is None else found.isoformat()


def cut(text: str, most: int) -> str:
    """Return a text of which no more than `most` is kept, and which says what is left out."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[{len(text) - most:,} more characters were not imported]"


def compact(value: object) -> str:
    """Return what a tool was given or gave, as a short text."""
    return cut(json_of(value) or "", MOST_OF_A_TOOL)


def call(name: str, given: object) -> str:
    """Return that a tool was called, as one line of what an assistant says."""
    return called(name, compact(given))


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
