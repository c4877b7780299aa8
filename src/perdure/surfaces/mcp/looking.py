"""`read`, `list` and `history`."""

from collections.abc import Sequence
from typing import Annotated

from mcp_types import CallToolResult

from perdure.context.reading import NodeReader
from perdure.engine.sessions import SessionInfo
from perdure.engine.validate.texts import presentable
from perdure.errors import BrokenNodeError, InvalidValueError, NodeNotFoundError
from perdure.model import ContextNode, NodeStatus, Uri
from perdure.model.short_names import name_for
from perdure.model.values import shortened, visible
from perdure.storage.history import Version as Written
from perdure.storage.sweep import sweep
from perdure.surfaces.mcp.answers import Entry, Listed, Read, Version, Versions, answered
from perdure.surfaces.mcp.arguments import After, Archived, At, Budget, Folder, Limit, Name, Offset
from perdure.surfaces.mcp.budget import longest
from perdure.surfaces.mcp.naming import node_of, place_of, state_of
from perdure.surfaces.mcp.opened import Opened
from perdure.surfaces.nodes.describing import gist, stamp
from perdure.surfaces.telling import counted, sized, utc_time

_LONGEST_GIST = 120
_LETTERS = 8
"""No token of a text that somebody would read has more."""


class Looking:
    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def read(
        self, uri: Name, at: At = "", offset: Offset = 0, budget_tokens: Budget = 4000
    ) -> Annotated[CallToolResult, Read]:
        """Read the whole text of one memory.

        Use it when a hit of recall is cut off, or before you correct a memory. With `at` it is the
        text as it was then. A long text comes in parts: go on from next_offset.
        """
        memory = self._opened.memory()
        place = node_of(uri, self._opened.request)
        if at:
            context = self._opened.context()
            sweep(context.recorded)
            past = memory.at(state_of(context.recorded.history, at))
            return _read(past.read(str(place)), offset, budget_tokens)
        return _read(memory.read(str(place)), offset, budget_tokens)

    def list(
        self,
        folder: Folder = "",
        limit: Limit = 50,
        after: After = "",
        archived: Archived = False,  # noqa: FBT002 - a client names each
    ) -> Annotated[CallToolResult, Listed]:
        """List what is remembered, by category.

        Use it to see what there is when no question fits, or to find the slug of a memory that you
        want to correct. To look for something, recall is better.
        """
        request, reader = self._opened.request, self._opened.context().reader
        place = reader.reach.seen(str(place_of(folder, request)), request)
        found = sorted(self._archived(place) if archived else self._children(place))
        rest = [uri for uri in found if uri > after]
        sessions = {} if archived else self._sessions(place)
        entries = tuple(sessions.get(uri) or self._entry(uri) for uri in rest[:limit])
        more = rest[limit - 1] if len(rest) > limit else ""
        listed = Listed(folder=str(place), entries=entries, total=len(found), more_after=more)
        return answered(listed)

    def history(self, uri: Name, limit: Limit = 20) -> Annotated[CallToolResult, Versions]:
        """List the versions of a memory: who wrote each, when, and why.

        Use it when the user asks what a memory used to say, or who changed it. `read` with the
        time of a version as `at` shows its text.
        """
        place = node_of(uri, self._opened.request)
        found = self._opened.memory().history(str(place))
        if not found:
            raise NodeNotFoundError(
                f"nothing was ever remembered at {str(place)!a}. Fix: call list, or recall."
            )
        newest = tuple(map(_version, reversed(found[-limit:])))
        return answered(Versions(uri=str(place), total=len(found), versions=newest))

    # ------------------------------------------------------------ listing
    def _children(self, place: Uri) -> Sequence[str]:
        request, reader = self._opened.request, self._opened.context().reader
        if place.is_node and reader.exists(str(place), request):
            raise InvalidValueError(f"{str(place)!a} is a memory. Fix: call read with it.")
        return reader.list_children(str(place), request)

    def _archived(self, place: Uri) -> Sequence[str]:
        request, reader = self._opened.request, self._opened.context().reader
        return [
            str(each)
            for each in reader.walk(place)
            if reader.reach.may_see(each, request) and _is_archived(reader, each)
        ]

    def _sessions(self, place: Uri) -> dict[str, Entry]:
        """Return the entries of sessions, if that is the folder: title, date and size."""
        if place.path != ("sessions",):
            return {}
        return {each.uri: self._session(each) for each in self._opened.memory().sessions()}

    def _session(self, info: SessionInfo) -> Entry:
        size = f"{counted(info.messages, 'message')}, {sized(info.bytes)}"
        return Entry(
            uri=info.uri,
            name=name_for(Uri.parse(info.uri), self._opened.request),
            kind="folder",
            says=f"{presentable(shortened(info.title, _LONGEST_GIST))} ({size})",
            updated_at=stamp(info.date),
            version=0,
        )

    def _entry(self, uri: str) -> Entry:
        place = Uri.parse(uri)
        reader, name = self._opened.context().reader, name_for(place, self._opened.request)
        if not place.is_node:
            below = len(reader.list_children(uri, self._opened.request))
            says = counted(below, "entry")
            return Entry(uri=uri, name=name, kind="folder", says=says, updated_at="", version=0)
        try:
            stored = reader.load(place)
        except BrokenNodeError:
            stored = None
        if stored is None:
            says = "it can't be read; the user should run `perdure repair`"
            return Entry(uri=uri, name=name, kind="memory", says=says, updated_at="", version=0)
        node = stored.node
        return Entry(
            uri=uri,
            name=name,
            kind="memory",
            says=presentable(shortened(gist(node), _LONGEST_GIST)),
            updated_at=stamp(node.updated_at),
            version=node.version,
        )


def _is_archived(reader: NodeReader, place: Uri) -> bool:
    try:
        stored = reader.load(place)
    except BrokenNodeError:
        return False
    return stored is not None and stored.meta.status is NodeStatus.ARCHIVED


def _read(node: ContextNode, offset: int, budget: int) -> CallToolResult:
    text = presentable(node.content)
    if offset and offset >= len(text):
        raise InvalidValueError(
            f"{node.uri!a} has {len(text):,} characters. Fix: take an offset below that."
        )

    def part(length: int) -> Read:
        end = offset + length
        return Read(
            uri=node.uri,
            title=shortened(presentable(node.title), _LONGEST_GIST),
            category=node.category,
            text=text[offset:end],
            version=node.version,
            created_at=stamp(node.created_at),
            updated_at=stamp(node.updated_at),
            offset=offset,
            next_offset=end if end < len(text) else None,
            problems=tuple(shortened(visible(each), _LONGEST_GIST) for each in node.problems),
        )

    length = longest(part, min(len(text) - offset, budget * _LETTERS), budget)
    if offset + length < len(text):
        length = (text.rfind("\n", offset, offset + length) + 1 - offset) or length
    return answered(part(length))


def _version(version: Written) -> Version:
    return Version(
        version=version.number,
        time=utc_time(version.time),
        actor=visible(version.actor),
        origin=visible(version.origin),
        reason=presentable(version.reason),
        cid="" if version.cid is None else str(version.cid),
    )
