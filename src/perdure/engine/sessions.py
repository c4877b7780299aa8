"""Keeping what was said in a session: its messages as nodes that people can read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256

from perdure.context.marks import Marks
from perdure.context.nodes import Nodes
from perdure.engine.masking import Masked, read_and_kept, same
from perdure.engine.validate.texts import refuse_secrets
from perdure.errors import (
    NodeExistsError,
    NodeNotFoundError,
    VersionMismatchError,
)
from perdure.model import ContextNode, RequestContext, Uri
from perdure.model.transcript import PIECE_CHARACTERS, Message, parse, pieces, render
from perdure.model.values import MAX_ABSTRACT, shortened

_NAME = "messages"
_LONGEST = 12
_ATTEMPTS = 20

Piece = tuple[int, int, Message]


@dataclass(frozen=True, slots=True)
class Archived:
    """The messages of a session as they are kept."""

    place: Uri
    said: Sequence[Message]
    added: int
    """How many of them are new."""
    uris: tuple[str, ...]
    learned: int
    """From how many, counted from the first, memories were made already."""
    masked: tuple[Masked, ...] = ()
    """The secrets in what is new."""


class _TakenError(NodeExistsError):
    """Somebody wrote a node of the session since it was looked at, or put one away."""


class Sessions:
    """Archives sessions. The same messages twice are there once; more of them are added.

    Secrets are masked before anything is kept.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._marks = Marks(nodes)

    def archive(
        self,
        messages: Iterable[Mapping[str, object]],
        session_id: str,
        ctx: RequestContext,
        *,
        dry_run: bool = False,
    ) -> Archived:
        """Keep the messages of a session, or those that came since it was last committed.

        If it was committed with other messages than these begin with: `NodeExistsError`.
        """
        refuse_secrets(session_id, "id of the session", "name it otherwise.")
        read = read_and_kept(messages)
        said = [each.message for each in read]
        place = Uri(ctx.account_id, ("sessions", session_id))
        inside = replace(ctx, session_id=session_id)
        done = self._attempted(place, said, inside, dry_run=dry_run)
        new = list(enumerate(read))[len(read) - done.added :]
        return replace(done, masked=tuple(Masked(at, each.kinds) for at, each in new if each.kinds))

    def _attempted(
        self, place: Uri, said: list[Message], ctx: RequestContext, *, dry_run: bool
    ) -> Archived:
        for _ in range(_ATTEMPTS):
            with suppress(_TakenError):  # somebody was faster: look at what is there now
                return self._archived(place, said, ctx, dry_run=dry_run)
        return self._archived(place, said, ctx, dry_run=dry_run)

    def _archived(
        self, place: Uri, said: list[Message], ctx: RequestContext, *, dry_run: bool
    ) -> Archived:
        known = self._known(place, ctx)
        before = _said(known)
        if not same(before, said):
            raise NodeExistsError(
                f"the session {place.name[:80]!a} was committed with other messages. "
                "Fix: commit it with all that was said before, or under another id."
            )
        parts = list(_parts(said))
        if len(said) > len(before) and not dry_run:
            self._write(_written(place, parts, known), ctx)
        uris = tuple(str(_part(place, number)) for number in range(max(len(parts), len(known))))
        added = max(0, len(said) - len(before))
        kept = said if added else before
        learned = self._learned(place, kept, ctx) if known else 0
        return Archived(place, kept, added, uris, learned)

    def _write(self, nodes: Iterable[ContextNode], ctx: RequestContext) -> None:
        try:
            self._nodes.because("session").write_nodes(nodes, ctx)
        except (NodeExistsError, VersionMismatchError) as error:
            raise _TakenError(*error.args) from error

    def messages(self, place: Uri, ctx: RequestContext) -> list[Message]:
        """Return the messages that a session has."""
        return _said(self._known(place, ctx))

    def _learned(self, place: Uri, said: Sequence[Message], ctx: RequestContext) -> int:
        return learned_from(self._marks.read(place, ctx), said)

    def _known(self, place: Uri, ctx: RequestContext) -> list[ContextNode]:
        """Return the nodes with messages that the session has, in order."""
        found: list[ContextNode] = []
        while True:
            try:
                found.append(self._nodes.read_node(str(_part(place, len(found))), ctx))
            except NodeNotFoundError:
                return found


class Beginnings:
    """The marks of how a session begins: each says that so many messages were learned from."""

    def __init__(self, said: Sequence[Message]) -> None:
        self._said = said
        self._hashed = sha256()
        self._count = 0

    def mark(self, count: int) -> str:
        """Return the mark of the first messages; the next one that is asked for is no shorter."""
        for each in self._said[self._count : count]:
            told = f"{each.role}\0{each.name}\0{each.time}\0{each.content}\0"
            self._hashed.update(told.encode())
        self._count = count
        return f"{count} {self._hashed.hexdigest()}\n"


def learned_from(mark: str, said: Sequence[Message]) -> int:
    """Return how many of these messages a mark says were learned from; it knows them."""
    told = mark.partition(" ")[0]
    count = int(told) if told.isdecimal() and len(told) < _LONGEST else 0
    return count if mark == Beginnings(said).mark(count) else 0


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


def _said(nodes: Iterable[ContextNode]) -> list[Message]:
    """Return the messages of some nodes, each put together from its pieces."""
    messages: list[Message] = []
    for each in (said for node in nodes for said in parse(node.content)):
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
