"""The parts of a node, told from what their files say."""

import base64
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from hashlib import sha256
from typing import TypeVar

from holdfast.artifacts import CID
from holdfast.context import frontmatter
from holdfast.context.files import PARTS, Meta, parse_relations
from holdfast.errors import (
    AccessRefusedError,
    BrokenNodeError,
    DirectoryInTheWayError,
    InvalidValueError,
    LinkRefusedError,
    NotTextError,
)
from holdfast.model import RelationEdge
from holdfast.model.values import MAX_ABSTRACT, MAX_CONTENT, MAX_OVERVIEW
from holdfast.storage import Locator


class Unreadable(Enum):
    """Something is there that is no text."""

    UNREADABLE = "no text"


UNREADABLE = Unreadable.UNREADABLE

Found = str | None | Unreadable
"""What a file says."""
Files = Mapping[str, Found]
Earlier = Callable[[str], Iterator[str]]
"""Gives the texts that a file had, newest first."""

Part = TypeVar("Part")


def cid_of(text: str) -> str:
    """Return the CID of a text, as it is written."""
    digest = sha256(text.encode()).digest()
    return "b" + base64.b32encode(b"\x01\x55\x12\x20" + digest).decode().lower().rstrip("=")


def differ(meta: Meta, files: Files) -> bool:
    for name in PARTS:
        said = files[name]
        if not isinstance(said, str) or cid_of(said) != meta.parts.get(name):
            return True
    return False


def said_at(locator: Locator, read: Callable[[Locator], str | None]) -> Found:
    try:
        return read(locator)
    except FileNotFoundError:
        return None
    except (NotTextError, DirectoryInTheWayError, LinkRefusedError, AccessRefusedError):
        return UNREADABLE


def text_of(said: str | Unreadable) -> str:
    if isinstance(said, Unreadable):
        raise InvalidValueError("it is no text. Fix: save it as UTF-8.")
    return said


class Parts:
    """The parts of one node, each as its file says, or as it was before somebody broke it."""

    def __init__(self, uri: str, meta: Meta, files: Files, earlier: Earlier) -> None:
        self.uri = uri
        self.problems: list[str] = []
        self.edited = False
        self._meta = meta
        self._files = files
        self._earlier = earlier

    def take(
        self, name: str, written: Callable[[str], Part], edited: Callable[[str | None], Part]
    ) -> Part:
        """Return what a part says: read as `written` by us, or as `edited` by somebody else."""
        said = self._files[name]
        if isinstance(said, str) and cid_of(said) == self._meta.parts.get(name):
            return written(said)
        try:
            value = edited(None if said is None else text_of(said))
        except InvalidValueError as error:
            self.problems.append(f"{name}: {error}")
            return written(self._kept(name))
        self.edited = True
        return value

    def edges(self, text: str) -> tuple[RelationEdge, ...]:
        return parse_relations(text, self.uri)

    def edited_edges(self, text: str | None) -> tuple[RelationEdge, ...]:
        return () if text is None else parse_relations(text, self.uri)

    def _kept(self, name: str) -> str:
        cid = self._meta.parts.get(name)
        text = next((text for text in self._earlier(name) if cid_of(text) == cid), None)
        if text is None:
            raise BrokenNodeError(
                f"{self.uri!a} can't be read, and no earlier version of it is kept. "
                f"{self.problems[-1]}"
            )
        return text


def basis_of(said: Found) -> CID | None:
    return CID(sha256(said.encode()).digest()) if isinstance(said, str) else None


def edited_content(said: str | None) -> tuple[str | None, str]:
    if said is None:
        raise InvalidValueError("it is gone. Fix: restore it, or delete the node.")
    lines, body = frontmatter.split(said)
    if lines is not None:
        frontmatter.check(lines)
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
