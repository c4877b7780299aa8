"""The parts of a node, told from what their files say."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple, TypeVar

from perdure.context import frontmatter
from perdure.context.files import PARTS, Meta, parse_relations
from perdure.errors import (
    AccessRefusedError,
    BrokenNodeError,
    DirectoryInTheWayError,
    InvalidValueError,
    LinkRefusedError,
    NotTextError,
)
from perdure.model import RelationEdge
from perdure.model.values import MAX_ABSTRACT, MAX_CONTENT, MAX_OVERVIEW
from perdure.storage import Locator
from perdure.storage.undo import UNREADABLE, Text, Unreadable

Found = Text
"""What a file says."""
Files = Mapping[str, Found]
Earlier = Callable[[str], Iterator[str]]
"""Gives the texts that a file had, newest first."""

Part = TypeVar("Part")


_BASE16 = "f01551220"
"""What comes before the digest in a CIDv1 of raw content and sha2-256, in base 16."""


def cid_of(text: str) -> str:
    """Return the CID of a text, in base 16: it ends with what `sha256sum` prints for the file."""
    return _BASE16 + sha256(text.encode()).hexdigest()


class Look(NamedTuple):
    """What the files of a node say, and the CID of each part that is a text."""

    meta: Meta
    files: Files
    cids: Mapping[str, str]

    @classmethod
    def at(cls, meta: Meta, files: Files) -> "Look":
        texts = ((name, files[name]) for name in PARTS)
        return cls(meta, files, {name: cid_of(said) for name, said in texts if type(said) is str})

    @property
    def whole(self) -> bool:
        """Whether all parts are what the meta names."""
        return self.cids == self.meta.parts

    @property
    def basis(self) -> str:
        """Tell what all parts say from whatever else they could say."""
        return cid_of("\n".join(f"{name} {cid}" for name, cid in self.cids.items()))


def named(cid: str | None, earlier: Iterable[str]) -> str | None:
    """Return the text that a CID names, of those that a file had; None if it was none of them."""
    return next((text for text in earlier if cid_of(text) == cid), None)


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

    def __init__(self, uri: str, look: Look, earlier: Earlier) -> None:
        self.uri = uri
        self.problems: list[str] = []
        self.edited: set[str] = set()
        self._look = look
        self._earlier = earlier

    def take(
        self, name: str, written: Callable[[str], Part], edited: Callable[[str | None], Part]
    ) -> Part:
        """Return what a part says: read as `written` by us, or as `edited` by somebody else."""
        said = self._look.files[name]
        if isinstance(said, str) and self._look.cids[name] == self._look.meta.parts.get(name):
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
        cid = self._look.meta.parts.get(name)
        text = named(cid, self._earlier(name))
        if text is None:
            raise BrokenNodeError(
                f"{self.uri!a} can't be read, and no earlier version of it is kept. "
                f"{self.problems[-1]}"
            )
        return text


def edited_content(said: str | None) -> tuple[str, str]:
    if said is None:
        raise InvalidValueError("it is gone. Fix: restore it, or delete the node.")
    lines, body = frontmatter.split(said)
    if lines:
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
