"""Keeping what was said in a session: its messages as nodes that people can read."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from hashlib import sha256
from itertools import count, dropwhile
from typing import NamedTuple, overload

from perdure.context.draft import Draft, Marks
from perdure.context.nodes import Nodes
from perdure.context.reading import NodeReader
from perdure.dataclass import dataclass, replace
from perdure.engine.forgotten import ForgottenList, of_caller
from perdure.errors import (
    AccessDeniedError,
    BrokenNodeError,
    ForgottenError,
    NodeExistsError,
    NodeNotFoundError,
    VersionMismatchError,
)
from perdure.model import ContextNode, RequestContext, Uri
from perdure.model.messages import LeftOut, ReadMessages, read_messages
from perdure.model.private import Screen
from perdure.model.record import PROJECT
from perdure.model.transcript import (
    HIDDEN,
    PIECE_CHARACTERS,
    Message,
    Said,
    abstract_of,
    is_hidden_form,
    parse,
    pieces,
    render,
    section,
)
from perdure.model.values import JSON, MAX_ABSTRACT, encodable, shortened
from perdure.safety.secrets import SecretPolicy
from perdure.safety.texts import (
    CleanText,
    Masked,
    cleaned_line,
    common,
    kept,
    refuse_secrets,
)

_NAME = "messages"
_TITLE = "title"
_MAX_TITLE = 80
_LONGEST = 12
_ATTEMPTS = 20

Piece = tuple[int, int, Message]
Join = Callable[[Sequence[Message]], Sequence[Message]]
"""Returns the messages a session is to have, given those it has; the same object if unchanged."""


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """How a session ends, so that more can be added to it without reading all of it."""

    part: int
    digest: str
    messages: int
    mark: str
    """The mark that all of them were learned from."""


@dataclass(frozen=True, slots=True)
class Addition:
    """How given messages join a session."""

    whole: bool = True
    """They are the whole session; else they come after what it has."""
    after: SessionEnd | None = None
    """They come right behind this end. If the session ends elsewhere: `VersionMismatchError`."""
    replace_last: bool | None = None
    """Whether they replace the last answer; None if that is to be found out."""
    title: str = ""
    project: str = ""
    """The project of a new session; one that is there keeps its own."""


WHOLE = Addition()


@dataclass(frozen=True, slots=True)
class SessionArchive:
    place: Uri
    messages: Sequence[Message]
    added: int
    uris: tuple[str, ...]
    learned: int
    """From how many, counted from the first, memories were made already."""
    masked: tuple[Masked, ...] = ()
    replaced: int = 0
    project: str = ""
    left_out: tuple[LeftOut, ...] = ()
    hidden: int = 0
    """How many sentences of them are hidden, because the user forgot them."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    id: str
    title: str
    """As given or imported; else the first line of the first message of a user."""
    date: datetime
    """When the last message was said or, if no message has a time, kept."""
    messages: int
    bytes: int
    uri: str
    project: str = ""


class LearnedNodes(NamedTuple):
    """What is written with the messages of a session, because it was learned from them."""

    nodes: Sequence[ContextNode] = ()
    mark: str = ""
    """The mark that all of them were learned from; without one, that is left for later."""


Learn = Callable[[SessionArchive, RequestContext], LearnedNodes]
"""Learns from a session as it will be, before it is written."""


class _ConflictError(NodeExistsError):
    """Somebody wrote a node of the session since it was looked at, or put one away."""


class Sessions:
    """Archives sessions, without their secrets. The same messages twice are there once.

    What `learn` returns for messages that are added is written with them, in one commit.
    """

    def __init__(self, nodes: Nodes, learn: Learn = lambda *_: LearnedNodes()) -> None:
        self._nodes = nodes
        self._learn = learn
        self._marks = Marks(nodes)

    def archive(
        self,
        messages: Iterable[object],
        session_id: str,
        ctx: RequestContext,
        *,
        addition: Addition = WHOLE,
        dry_run: bool = False,
    ) -> SessionArchive:
        """Keep the messages of a session, as `Memory.commit_session` and `append` describe it."""
        refuse_secrets(session_id, "id of the session", "choose another name.")
        given = public(read_messages(messages))
        place = Uri(ctx.account_id, ("sessions", session_id))
        forgotten = of_caller(self._nodes, ctx)
        if forgotten.hides_session(place):
            raise ForgottenError(
                f"the session {session_id[:80]!a} was forgotten. Nothing was kept. Fix: none "
                "needed; `perdure unarchive` brings back what was not erased."
            )
        clean = screened(given.messages, forgotten)

        def join(before: Sequence[Message]) -> Sequence[Message]:
            if addition.whole:
                return recommitted(before, clean.messages, place)
            return appended(before, clean.messages, replace_last=addition.replace_last)

        inside = replace(ctx, session_id=session_id)
        if addition.after is not None:
            done = self._extended(place, clean.messages, addition.after, inside)
        else:
            naming = forgotten.masked(clean_title(addition.title).text).text, addition.project
            done = self._attempted(place, join, naming, inside, dry_run=dry_run)
        now = of_caller(self._nodes, ctx)
        if now.entries != forgotten.entries and not dry_run:  # since it was looked at
            hidden = self._attempted(
                place, partial(_hidden_in, now), ("", ""), inside, dry_run=False
            )
            done = replace(done, messages=hidden.messages, learned=hidden.learned)
        first, offset = len(done.messages) - done.added, len(done.messages) - len(given.messages)
        masked = tuple(
            Masked(at + offset, kinds)
            for at, kinds in sorted(clean.kinds.items())
            if done.added and at + offset >= first
        )
        return replace(done, masked=masked, left_out=given.left_out, hidden=clean.hidden)

    # ------------------------------------------------------------ more messages at the end
    def _extended(
        self, place: Uri, new: Sequence[Message], end: SessionEnd, ctx: RequestContext
    ) -> SessionArchive:
        """Add messages behind an end. Only the last node of the session is read and written."""
        try:
            last = self._nodes.read_node(str(_part(place, end.part)), ctx)
        except NodeNotFoundError as error:
            raise _moved(place) from error
        is_last = not self._nodes.exists(str(_part(place, end.part + 1)), ctx)
        if _digest(last.content) != end.digest or not is_last:
            raise _moved(place)
        parts = _filled(place, pieces(new, end.messages), last.content)
        nodes = list(_written(place, parts, [last], last.project, end.part))
        self._write(nodes, (), ctx, lambda _draft: None)
        known = _joined(dropwhile(lambda each: each.piece, parse(last.content)))
        said = LazyMessages(
            lambda: self.messages(place, ctx), end, [*known, *new], end.messages + len(new)
        )
        mark = self._marks.read(place, ctx)
        learned = min(_marked(mark)[0], end.messages)  # nothing before the end was changed since
        count = end.part + max(len(nodes), 1)
        return SessionArchive(
            place,
            said,
            len(new),
            tuple(str(_part(place, at)) for at in range(count)),
            learned,
            project=last.project,
        )

    def end(self, place: Uri, ctx: RequestContext, since: SessionEnd | None = None) -> SessionEnd:
        """Return how a session ends, read on from an earlier end of it, if there is one."""
        known = since or SessionEnd(0, "", 0, "")
        nodes = list(_nodes_of(self._nodes, place, ctx, known.part))
        found = (each for node in nodes for each in parse(node.content))
        new = _joined(each for each in found if each.index >= known.messages)
        count = known.messages + len(new)
        said = LazyMessages(lambda: self.messages(place, ctx), known, new, count)
        content = nodes[-1].content if nodes else ""
        part = known.part + len(nodes) - 1
        return SessionEnd(part, _digest(content), count, LearnedMarks(said).mark(count))

    def _attempted(
        self, place: Uri, join: Join, naming: tuple[str, str], ctx: RequestContext, *, dry_run: bool
    ) -> SessionArchive:
        for _ in range(_ATTEMPTS):
            with suppress(_ConflictError):  # somebody was faster: look at what is there now
                return self._archived(place, join, naming, ctx, dry_run=dry_run)
        alone = Sessions(self._nodes)  # what is learned can't be written: the messages can
        return alone._archived(place, join, naming, ctx, dry_run=dry_run)

    def _archived(
        self, place: Uri, join: Join, naming: tuple[str, str], ctx: RequestContext, *, dry_run: bool
    ) -> SessionArchive:
        title, project = naming
        known = list(_nodes_of(self._nodes, place, ctx))
        before = messages_in(known)
        after = join(before)
        same = len(before) if after is before else common(before, after)
        replaced = len(before) - same
        parts = list(_filled(place, pieces(after), "")) if after else []
        gone = known[len(parts) :] if after is not before else []
        mark = self._marks.read(place, ctx) if known else ""
        learned = learned_count(mark, after)
        if replaced:
            learned = min(learned_count(mark, before), same)
        of = known[0].project if known else project
        kept_parts = max(len(parts), len(known) - len(gone))
        uris = tuple(str(_part(place, number)) for number in range(kept_parts))
        added = len(after) - same
        done = SessionArchive(place, after, added, uris, learned, replaced=replaced, project=of)
        if dry_run:
            return done
        changed = _written(place, parts, known, of) if after is not before else ()
        more = self._learn(done, ctx) if added else LearnedNodes()
        moved = more.mark or (LearnedMarks(after).mark(learned) if replaced and mark else mark)
        also = self._marks.moved(place, mark, moved) if moved != mark else lambda _draft: None
        self._write([*_titled(changed, known, title), *more.nodes], gone, ctx, also)
        return replace(done, learned=len(after)) if more.mark else done

    def _write(
        self,
        nodes: Sequence[ContextNode],
        gone: Sequence[ContextNode],
        ctx: RequestContext,
        also: Callable[[Draft], None],
    ) -> None:
        if not nodes and not gone:
            return
        try:
            without = [node.uri for node in gone]
            self._nodes.because("session").exchange(nodes, without, ctx, also=also)
        except (NodeExistsError, NodeNotFoundError, VersionMismatchError) as error:
            raise _ConflictError(*error.args) from error

    def messages(self, place: Uri, ctx: RequestContext) -> list[Message]:
        return messages_in(_nodes_of(self._nodes, place, ctx))


def public(given: ReadMessages) -> ReadMessages:
    screen = Screen()
    pairs = ((each, screen.public(each.role, each.content, each.time)) for each in given.messages)
    kept_ = [(each, text) for each, text in pairs if text or not each.content.strip()]
    if not screen.is_used:
        return given
    return replace(given, messages=tuple(replace(each, content=text) for each, text in kept_))


class ScreenedMessages(NamedTuple):
    """Given messages as they may be kept: without secrets, and without what was forgotten."""

    messages: list[Message]
    kinds: dict[int, tuple[str, ...]]
    """The kinds of the secrets that were masked, by message."""
    hidden: int
    """How many sentences are hidden."""


def screened(
    given: Sequence[Message], forgotten: ForgottenList, before: Sequence[Message] = ()
) -> ScreenedMessages:
    """Return messages as they may be kept; those that are the same `before` are not scanned."""
    messages, kinds, hidden = list[Message](), dict[int, tuple[str, ...]](), 0
    for at, each in enumerate(given):
        if at < len(before) and before[at] == each:
            messages.append(each)
            continue
        found = kept(each)
        said = forgotten.masked(found.message.content)
        is_same = said.text == found.message.content
        messages.append(found.message if is_same else replace(found.message, content=said.text))
        kinds |= {at: found.kinds} if found.kinds else {}
        hidden += said.hidden
    return ScreenedMessages(messages, kinds, hidden)


class LazyMessages(Sequence[Message]):
    """The messages of a session of which the last are at hand; others are read when asked for."""

    def __init__(
        self,
        load: Callable[[], list[Message]],
        end: SessionEnd,
        last: Sequence[Message],
        count: int,
    ) -> None:
        self._load = load
        self._last = last
        self._count = count
        self.end = end
        """The end behind which the new ones are."""

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Message: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Message]: ...

    def __getitem__(self, at: int | slice) -> Message | Sequence[Message]:
        wanted = range(self._count)[at]
        first = self._count - len(self._last)
        indexes = wanted if isinstance(wanted, range) else range(wanted, wanted + 1)
        if indexes and min(indexes) < first:
            self._last, first = self._load()[: self._count], 0
        if isinstance(wanted, range):
            return [self._last[index - first] for index in wanted]
        return self._last[wanted - first]


# ---------------------------------------------------------------- which messages a session gets
def _hidden_in(forgotten: ForgottenList, before: Sequence[Message]) -> Sequence[Message]:
    """Return what a session has once a list hides in it what was forgotten."""
    after = [replace(each, content=forgotten.masked(each.content).text) for each in before]
    return before if after == list(before) else after


def recommitted(
    before: Sequence[Message], said: Sequence[Message], place: Uri
) -> Sequence[Message]:
    """Return what a session has after all its messages are given; the last answer may differ."""
    same = common(before, said)
    if same == len(said):
        return before
    if same == len(before) or _is_last_exchange(before, said, same):
        pairs = zip(before[:same], said, strict=False)
        return [*(old if is_hidden_form(old, new) else new for old, new in pairs), *said[same:]]
    raise NodeExistsError(
        f"the session {place.name[:80]!a} was committed with other messages. "
        "Fix: commit it with all that was said before",
        options={"session_id": "ID"},
    )


def _is_last_exchange(before: Sequence[Message], said: Sequence[Message], first: int) -> bool:
    """Whether the first message that differs belongs to the last answer, or is what it answers.

    Another question is an edit only after an earlier exchange; else it is another conversation.
    Where no user speaks, the last answer is the last message.
    """
    asked = _last_asked(before)
    if asked < 0:
        return first == len(before) - 1 > 0
    if first > asked:
        return True
    earlier = any(each.role in {"user", "assistant"} for each in before[:first])
    return first == asked and earlier and said[first].role == "user"


def appended(
    before: Sequence[Message], new: Sequence[Message], *, replace_last: bool | None
) -> Sequence[Message]:
    """Return what a session has after some messages are added; those it has are not doubled."""
    overlap = _overlap(before, new)
    if replace_last and new:
        is_there = overlap == len(new) and _is_exchange(before[: -len(new)], new)
        return before if is_there else [*before[: _answer_start(before, new[0])], *new]
    rest = new[overlap:]
    if not rest or _is_within(before, new):
        return before
    regenerated = (
        replace_last is None
        and len(rest) == len(new)
        and bool(before)
        and before[-1].role == new[0].role == "assistant"
    )
    return [*(before[:-1] if regenerated else before), *rest]


def _is_exchange(before: Sequence[Message], new: Sequence[Message]) -> bool:
    """Whether messages are a question with its answer, or all of an answer, after what is there."""
    return not before or "user" in {new[0].role, before[-1].role}


def _answer_start(before: Sequence[Message], first: Message) -> int:
    """Return where the last answer begins; if a question comes first, where its own was."""
    asked = _last_asked(before)
    return asked if first.role == "user" and asked >= 0 else asked + 1


def _last_asked(messages: Sequence[Message]) -> int:
    indexes = range(len(messages) - 1, -1, -1)
    return next((index for index in indexes if messages[index].role == "user"), -1)


def _overlap(before: Sequence[Message], new: Sequence[Message]) -> int:
    """Return how many messages end what is there and begin what is new."""
    known, given = list(before), list(new)
    sizes = range(min(len(known), len(given)), 0, -1)
    return next((size for size in sizes if _are_same(known[-size:], given[:size])), 0)


def _are_same(known: Sequence[Message], given: Sequence[Message]) -> bool:
    """Whether messages are kept already, perhaps with something hidden in them.

    One of which all is hidden could be any message; only its time tells.
    """
    return all(
        old == new
        or ((old.time or old.content.replace(HIDDEN, "").strip()) and is_hidden_form(old, new))
        for old, new in zip(known, given, strict=True)
    )


def _is_within(before: Sequence[Message], new: Sequence[Message]) -> bool:
    """Whether messages that each have a time are there in a row: somebody tries again."""
    known, given = list(before), list(new)
    starts = range(len(known) - len(given) + 1)
    return all(each.time for each in given) and any(
        _are_same(known[at : at + 1], given[:1]) and _are_same(known[at : at + len(given)], given)
        for at in starts
    )


# ---------------------------------------------------------------- listing
def list_sessions(reader: NodeReader, ctx: RequestContext) -> list[SessionInfo]:
    """Return the sessions that the caller may see, newest first."""
    found: list[SessionInfo] = []
    for uri in reader.list_children(str(Uri(ctx.account_id, ("sessions",))), ctx):
        with suppress(AccessDeniedError):  # it became another's since it was listed
            info = _info(reader, Uri.parse(uri), ctx)
            if info is not None:
                found.append(info)
    return sorted(found, key=lambda info: (info.date, info.id), reverse=True)


def _info(reader: NodeReader, place: Uri, ctx: RequestContext) -> SessionInfo | None:
    """Return what a list says of a session, as far as it can be read; None without messages."""
    nodes: list[ContextNode] = []
    with suppress(BrokenNodeError):
        nodes.extend(_nodes_of(reader, place, ctx))
    if not nodes:
        return None
    said = messages_in(nodes)
    times = [each.time for each in said if each.time] or [node.updated_at for node in nodes]
    title = _given_title(nodes[0]) or _derived_title(said) or place.name
    size = sum(len(node.content.encode()) for node in nodes)
    project = nodes[0].project
    return SessionInfo(place.name, title, max(times), len(said), size, str(place), project)


def _given_title(first: ContextNode) -> str:
    given = first.metadata.get(_TITLE)
    return clean_title(given).text if isinstance(given, str) and given.strip() else ""


def _derived_title(said: Sequence[Message]) -> str:
    spoken = sorted(said, key=lambda each: each.role != "user")  # users first, in their order
    lines = (line for each in spoken for line in each.content.splitlines() if line.strip())
    return clean_title(shortened(" ".join(next(lines, "").split()), _MAX_TITLE)).text


def clean_title(given: str) -> CleanText:
    """Return what a session is called, as it may be kept: on one line, and without secrets."""
    given = shortened(" ".join(encodable(given, "title").split()), MAX_ABSTRACT)
    clean = cleaned_line(given, "title", SecretPolicy.MASK)
    while len(clean.text) > MAX_ABSTRACT:  # cut before it is clean: a cut can open something
        given = shortened(given, len(given) * 3 // 4)
        clean = cleaned_line(given, "title", SecretPolicy.MASK)
    return clean


# ---------------------------------------------------------------- how far it was learned from


class LearnedMarks:
    """The marks of how a session begins: each says that so many messages were learned from."""

    def __init__(self, said: Sequence[Message]) -> None:
        self._messages = said
        known = said.end.mark if isinstance(said, LazyMessages) else ""
        self._count, self._hashed = _marked(known)

    def mark(self, count: int) -> str:
        if count < self._count:
            self._count, self._hashed = 0, ""
        for each in self._messages[self._count : count]:
            told = f"{self._hashed}{each.role}\0{each.name}\0{each.time}\0{each.content}"
            self._hashed = sha256(told.encode()).hexdigest()
        self._count = count
        return f"{count} {self._hashed}\n"


def _marked(mark: str) -> tuple[int, str]:
    count, _, hashed = mark.strip().partition(" ")
    return (int(count), hashed) if count.isdecimal() and len(count) < _LONGEST else (0, "")


def learned_count(mark: str, said: Sequence[Message]) -> int:
    """Return how many of these messages a mark says were learned from; it knows them."""
    count, _ = _marked(mark)
    is_known = count <= len(said) and mark == LearnedMarks(said).mark(count)
    return count if is_known else 0


# ---------------------------------------------------------------- nodes
def _nodes_of(
    reader: NodeReader, place: Uri, ctx: RequestContext, first: int = 0
) -> Iterator[ContextNode]:
    with suppress(NodeNotFoundError):
        for number in count(first):
            yield reader.read_node(str(_part(place, number)), ctx)


def _part(place: Uri, number: int) -> Uri:
    return place.child(_NAME if number == 0 else f"{_NAME}-{number + 1}")


def _filled(place: Uri, found: Iterable[Piece], begun: str) -> Iterator[str]:
    """Yield a content that was begun, filled with pieces, and others for those left over."""
    texts, length = [begun], len(begun)
    for piece in found:
        text = section(*piece)
        if length + len(text) > PIECE_CHARACTERS and length:
            yield "".join(texts)
            texts, length = [""], 0
        if not length:
            texts = [render(f"Session {place.name}", ())]
            length = len(texts[0])
        texts.append(text)
        length += len(text)
    yield "".join(texts)


def _written(
    place: Uri, parts: Iterable[str], known: Sequence[ContextNode], project: str, first: int = 0
) -> Iterator[ContextNode]:
    """Yield the nodes that must be written: new ones, and the last one, which others came after.

    `known` are those that are there, from the `first` part on.
    """
    metadata: dict[str, JSON] = {PROJECT: project} if project else {}
    for number, content in enumerate(parts):
        is_known = number < len(known)
        if is_known and known[number].content == content:
            continue
        abstract = abstract_of(content)
        if is_known:
            yield known[number].revised(content=content, abstract=abstract)
        else:
            uri = str(_part(place, first + number))
            yield ContextNode(uri=uri, content=content, abstract=abstract, metadata=metadata)


def _titled(
    nodes: Iterable[ContextNode], known: Sequence[ContextNode], title: str
) -> Iterator[ContextNode]:
    """Yield the nodes to write, of which the first one has the title that was given."""
    written = {node.uri: node for node in nodes}
    first = written.get(known[0].uri) if known else next(iter(written.values()), None)
    metadata: Mapping[str, JSON] = {_TITLE: title}
    if title and first is not None:
        written[first.uri] = replace(first, metadata={**first.metadata, **metadata})
    elif title and known and known[0].metadata.get(_TITLE) != title:
        written[known[0].uri] = known[0].revised(metadata=metadata)
    yield from written.values()


def messages_in(nodes: Iterable[ContextNode]) -> list[Message]:
    return _joined(each for node in nodes for each in parse(node.content))


def _joined(found: Iterable[Said]) -> list[Message]:
    messages: list[Message] = []
    for each in found:
        if each.piece and messages:
            last = messages[-1]
            messages[-1] = replace(last, content=last.content + each.message.content)
        else:
            messages.append(each.message)
    return messages


def _digest(content: str) -> str:
    return sha256(content.encode()).hexdigest()


def _moved(place: Uri) -> VersionMismatchError:
    return VersionMismatchError(
        f"the session {place.name[:80]!a} ends elsewhere by now. Nothing was changed. "
        "Fix: commit it with all its messages."
    )
