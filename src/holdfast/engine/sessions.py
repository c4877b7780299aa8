"""Keeping what was said in a session: its messages as nodes that people can read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.context.nodes import Nodes
from holdfast.errors import InvalidValueError, NodeExistsError, NodeNotFoundError
from holdfast.model import ContextNode, RequestContext, Uri
from holdfast.model.transcript import PIECE_CHARACTERS, Message, Said, parse, pieces, render
from holdfast.model.values import MAX_ABSTRACT, shortened, shown

_NAME = "messages"

Piece = tuple[int, int, Message]


@dataclass(frozen=True, slots=True)
class SessionCommit:
    """Where the messages of a session are kept."""

    session_id: str
    uris: tuple[str, ...]
    messages: int
    """How many it has now."""
    added: int
    """How many of them are new."""


class Sessions:
    """Archives sessions. The same messages twice are there once; more of them are added."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def commit(
        self, messages: Iterable[Mapping[str, object]], session_id: str, ctx: RequestContext
    ) -> SessionCommit:
        """Keep the messages of a session, or those that came since it was last committed.

        If it was committed with other messages than these begin with: `NodeExistsError`.
        """
        given: object = messages
        if not isinstance(given, Iterable):
            raise InvalidValueError(f"{shown(messages)} are no messages. Fix: give a list of them.")
        said = [Message.from_mapping(each) for each in messages]
        inside = replace(ctx, session_id=session_id)
        place = Uri(ctx.account_id, ("sessions", session_id))
        known = self._known(place, inside)
        before = _whole(each for node in known for each in parse(node.content))
        common = min(len(before), len(said))
        if before[:common] != said[:common]:
            raise NodeExistsError(
                f"the session {session_id[:80]!a} was committed with other messages. "
                "Fix: commit it with all that was said before, or under another id."
            )
        parts = list(_parts(said))
        if len(said) > len(before):
            self._nodes.because("session").write_nodes(_written(place, parts, known), inside)
        uris = tuple(str(_part(place, number)) for number in range(max(len(parts), len(known))))
        return SessionCommit(
            session_id, uris, max(len(said), len(before)), max(0, len(said) - len(before))
        )

    def _known(self, place: Uri, ctx: RequestContext) -> list[ContextNode]:
        """Return the nodes with messages that the session has, in order."""
        found: list[ContextNode] = []
        while True:
            try:
                found.append(self._nodes.read_node(str(_part(place, len(found))), ctx))
            except NodeNotFoundError:
                return found


def _part(place: Uri, number: int) -> Uri:
    return place.child(_NAME if number == 0 else f"{_NAME}-{number + 1}")


def _parts(messages: Sequence[Message]) -> Iterator[list[Piece]]:
    """Yield pieces of messages that go into one node together."""
    part: list[Piece] = []
    length = 0
    for piece in pieces(messages):
        if part and length + len(piece[2].content) > PIECE_CHARACTERS:
            yield part
            part, length = [], 0
        part.append(piece)
        length += len(piece[2].content)
    if part:
        yield part


def _written(
    place: Uri, parts: Iterable[list[Piece]], known: Sequence[ContextNode]
) -> Iterator[ContextNode]:
    """Yield the nodes that must be written: new ones, and the last one, which others came after."""
    for number, part in enumerate(parts):
        content = render(_title(place), part)
        if number >= len(known):
            uri = str(_part(place, number))
            yield ContextNode(uri=uri, content=content, abstract=_abstract(part))
        elif known[number].content != content:
            yield known[number].revised(content=content, abstract=_abstract(part))


def _whole(said: Iterable[Said]) -> list[Message]:
    """Return messages, each put together from its pieces."""
    messages: list[Message] = []
    for each in said:
        if each.piece and messages:
            last = messages[-1]
            messages[-1] = replace(last, content=last.content + each.message.content)
        else:
            messages.append(each.message)
    return messages


def _title(place: Uri) -> str:
    return f"Session {place.name}"


def _abstract(part: Sequence[Piece]) -> str:
    """Say who spoke, when, and how it began."""
    speakers = ", ".join(dict.fromkeys(message.speaker for _, _, message in part))
    times = [message.time for _, _, message in part if message.time]
    date = f", {min(times).date().isoformat()}" if times else ""
    began = next((" ".join(m.content.split()) for _, _, m in part if m.content.strip()), "")
    said = f"{speakers}{date}: {began}"
    return shortened(said, MAX_ABSTRACT)
