"""Sessions: their messages are archived as nodes that people can read.

New messages join stored ones, and a mark states how far they were learned from.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from hashlib import sha256
from itertools import count, dropwhile
from typing import NamedTuple, overload

from perdure.context.nodes import NodeDraft, Nodes, SessionMarks
from perdure.context.reader import NodeReader
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
from perdure.model.messages import ParsedMessages, SkippedContent, read_messages
from perdure.model.node import PROJECT
from perdure.model.privacy import PrivacyFilter
from perdure.model.transcript import (
    HIDDEN,
    PIECE_CHARACTERS,
    Message,
    TranscriptEntry,
    abstract_of,
    matches_hidden,
    parse,
    pieces,
    render,
    section,
)
from perdure.model.values import JSON, MAX_ABSTRACT, encodable, shortened
from perdure.safety.secrets import SecretPolicy
from perdure.safety.validation import (
    CleanText,
    MaskedMessage,
    clean_line,
    mask_message,
    refuse_secrets,
    shared_prefix,
)

_LONGEST = 12


class LazyMessages(Sequence[Message]):
    """The messages of a session; only the last ones are in memory, others are read on access."""

    def __init__(
        self,
        load: Callable[[], list[Message]],
        mark: str,
        last: Sequence[Message],
        count: int,
    ) -> None:
        self._load = load
        self._last = last
        self._count = count
        self.mark = mark
        """The mark of the messages before the new ones."""

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


# ---------------------------------------------------------------- joining messages
def recommitted(
    before: Sequence[Message], given: Sequence[Message], place: Uri
) -> Sequence[Message]:
    """Return the messages of a session, given all of them; the last answer may differ."""
    same = shared_prefix(before, given)
    if same == len(given):
        return before
    if same == len(before) or _is_last_exchange(before, given, same):
        pairs = zip(before[:same], given, strict=False)
        return [*(old if matches_hidden(old, new) else new for old, new in pairs), *given[same:]]
    raise NodeExistsError(
        f"the session {place.name[:80]!a} was committed with other messages. "
        "Fix: commit it with all earlier messages",
        options={"session_id": "ID"},
    )


def _is_last_exchange(before: Sequence[Message], given: Sequence[Message], first: int) -> bool:
    """Whether the first message that differs belongs to the last answer, or is its question.

    Another question is an edit only after an earlier exchange; without one, it begins another
    conversation. If there is no user, the last answer is the last message.
    """
    asked = _last_asked(before)
    if asked < 0:
        return first == len(before) - 1 > 0
    if first > asked:
        return True
    earlier = any(each.role in {"user", "assistant"} for each in before[:first])
    return first == asked and earlier and given[first].role == "user"


def appended(
    before: Sequence[Message], new: Sequence[Message], *, replace_last: bool | None
) -> Sequence[Message]:
    """Return the messages of a session after some are added; none is added twice."""
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
    """Whether new messages are a question with its answer, or a whole answer."""
    return not before or "user" in {new[0].role, before[-1].role}


def _answer_start(before: Sequence[Message], first: Message) -> int:
    """Return where the last answer begins; if `first` is a question, where its question is."""
    asked = _last_asked(before)
    return asked if first.role == "user" and asked >= 0 else asked + 1


def _last_asked(messages: Sequence[Message]) -> int:
    indexes = range(len(messages) - 1, -1, -1)
    return next((index for index in indexes if messages[index].role == "user"), -1)


def _overlap(before: Sequence[Message], new: Sequence[Message]) -> int:
    """Return how many messages are at the end of the stored and at the start of the new ones."""
    known, given = list(before), list(new)
    sizes = range(min(len(known), len(given)), 0, -1)
    return next((size for size in sizes if _are_same(known[-size:], given[:size])), 0)


def _are_same(known: Sequence[Message], given: Sequence[Message]) -> bool:
    """Whether messages are stored already, perhaps with hidden sentences.

    A message that is all hidden could be any; only its time identifies it.
    """
    return all(
        old == new
        or ((old.time or old.content.replace(HIDDEN, "").strip()) and matches_hidden(old, new))
        for old, new in zip(known, given, strict=True)
    )


def _is_within(before: Sequence[Message], new: Sequence[Message]) -> bool:
    """Whether messages that each have a time are stored in a row: the call is a retry."""
    known, given = list(before), list(new)
    starts = range(len(known) - len(given) + 1)
    return all(each.time for each in given) and any(
        _are_same(known[at : at + 1], given[:1]) and _are_same(known[at : at + len(given)], given)
        for at in starts
    )


# ---------------------------------------------------------------- marks


class LearnedMarks:
    """The marks of a session: each is a count of messages that were learned from, and a hash."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        known = messages.mark if isinstance(messages, LazyMessages) else ""
        self._count, self._hashed = _parsed_mark(known)

    def mark(self, count: int) -> str:
        if count < self._count:
            self._count, self._hashed = 0, ""
        for each in self._messages[self._count : count]:
            text = f"{self._hashed}{each.role}\0{each.name}\0{each.time}\0{each.content}"
            self._hashed = sha256(text.encode()).hexdigest()
        self._count = count
        return f"{count} {self._hashed}\n"


def marked_count(mark: str) -> int:
    """Return how many messages a mark says were learned from, without checking its hash."""
    return _parsed_mark(mark)[0]


def _parsed_mark(mark: str) -> tuple[int, str]:
    count, _, hashed = mark.strip().partition(" ")
    return (int(count), hashed) if count.isdecimal() and len(count) < _LONGEST else (0, "")


def learned_count(mark: str, messages: Sequence[Message]) -> int:
    """Return the count of a mark; 0 if its hash is not that of these messages."""
    count, _ = _parsed_mark(mark)
    is_known = count <= len(messages) and mark == LearnedMarks(messages).mark(count)
    return count if is_known else 0


# ---------------------------------------------------------------- archives
_NAME = "messages"
_TITLE = "title"
_MAX_TITLE = 80
_ATTEMPTS = 20

Piece = tuple[int, int, Message]
Join = Callable[[Sequence[Message]], Sequence[Message]]
"""Returns the new messages of a session, given the stored ones; the same object if unchanged."""


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """The end of a session, behind which messages can be added without reading all of it."""

    part: int
    digest: str
    messages: int
    mark: str
    """The mark that says that all of them were learned from."""


@dataclass(frozen=True, slots=True)
class Addition:
    """How given messages join a session."""

    whole: bool = True
    """They are the whole session; False adds them to the stored ones."""
    after: SessionEnd | None = None
    """They follow this end. Raises `VersionMismatchError` if the session ends elsewhere."""
    replace_last: bool | None = None
    """Whether they replace the last answer; None if the messages decide."""
    title: str = ""
    project: str = ""
    """The project of a new session; an existing one keeps its own."""


WHOLE = Addition()


@dataclass(frozen=True, slots=True)
class SessionArchive:
    place: Uri
    messages: Sequence[Message]
    added: int
    uris: tuple[str, ...]
    learned: int
    """How many messages, from the first, were learned from."""
    masked: tuple[MaskedMessage, ...] = ()
    replaced: int = 0
    project: str = ""
    left_out: tuple[SkippedContent, ...] = ()
    hidden: int = 0
    """How many of their sentences are hidden, because the user forgot them."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    id: str
    title: str
    """The given or imported title, or the first line of the first message of a user."""
    date: datetime
    """The time of the last message; if none has a time, when it was archived."""
    messages: int
    bytes: int
    uri: str
    project: str = ""


class LearnedNodes(NamedTuple):
    """Nodes that were learned from the messages of a session, and are written with them."""

    nodes: Sequence[ContextNode] = ()
    mark: str = ""
    """The mark that says so; empty if nothing was learned yet."""


Learn = Callable[[SessionArchive, RequestContext], LearnedNodes]
"""Learns from the new state of a session, before it is written."""


class _ConflictError(NodeExistsError):
    """Another process wrote or archived a node of the session since it was read."""


class Sessions:
    """Archives sessions, without their secrets. The same messages twice are stored once.

    The nodes that `learn` returns for added messages are written with them, in one commit.
    """

    def __init__(self, nodes: Nodes, learn: Learn = lambda *_: LearnedNodes()) -> None:
        self._nodes = nodes
        self._learn = learn
        self._marks = SessionMarks(nodes)

    def archive(
        self,
        messages: Iterable[object],
        session_id: str,
        ctx: RequestContext,
        *,
        addition: Addition = WHOLE,
        dry_run: bool = False,
    ) -> SessionArchive:
        """Store the messages of a session, as `Memory.commit_session` and `append` describe it."""
        refuse_secrets(session_id, "id of the session", "choose another name.")
        given = public(read_messages(messages))
        place = Uri(ctx.account_id, ("sessions", session_id))
        forgotten = of_caller(self._nodes, ctx)
        if forgotten.hides_session(place):
            raise ForgottenError(
                f"the session {session_id[:80]!a} was forgotten. Nothing was stored. Fix: none "
                "needed; `perdure unarchive` restores it unless it was erased."
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
        if now.entries != forgotten.entries and not dry_run:  # it changed meanwhile
            hidden = self._attempted(
                place, partial(_hidden_in, now), ("", ""), inside, dry_run=False
            )
            done = replace(done, messages=hidden.messages, learned=hidden.learned)
        first, offset = len(done.messages) - done.added, len(done.messages) - len(given.messages)
        masked = tuple(
            MaskedMessage(at + offset, kinds)
            for at, kinds in sorted(clean.kinds.items())
            if done.added and at + offset >= first
        )
        return replace(done, masked=masked, left_out=given.left_out, hidden=clean.hidden)

    # ------------------------------------------------------------ more messages at the end
    def _extended(
        self, place: Uri, new: Sequence[Message], end: SessionEnd, ctx: RequestContext
    ) -> SessionArchive:
        """Add messages behind an end. Reads and writes only the last node of the session."""
        try:
            last = self._nodes.read_node(str(_part(place, end.part)), ctx)
        except NodeNotFoundError as error:
            raise _moved(place) from error
        is_last = not self._nodes.exists(str(_part(place, end.part + 1)), ctx)
        if _digest(last.content) != end.digest or not is_last:
            raise _moved(place)
        contents = _filled(place, pieces(new, end.messages), last.content)
        nodes = list(_written(place, contents, [last], last.project, end.part))
        self._write(nodes, (), ctx, lambda _draft: None)
        known = _joined(dropwhile(lambda each: each.piece, parse(last.content)))
        messages = LazyMessages(
            lambda: self.messages(place, ctx), end.mark, [*known, *new], end.messages + len(new)
        )
        mark = self._marks.read(place, ctx)
        learned = min(marked_count(mark), end.messages)  # nothing before the end has changed
        count = end.part + max(len(nodes), 1)
        return SessionArchive(
            place,
            messages,
            len(new),
            tuple(str(_part(place, at)) for at in range(count)),
            learned,
            project=last.project,
        )

    def end(self, place: Uri, ctx: RequestContext, since: SessionEnd | None = None) -> SessionEnd:
        """Return the end of a session; reads only what follows an earlier end, if one is given."""
        known = since or SessionEnd(0, "", 0, "")
        nodes = list(_nodes_of(self._nodes, place, ctx, known.part))
        found = (each for node in nodes for each in parse(node.content))
        new = _joined(each for each in found if each.index >= known.messages)
        count = known.messages + len(new)
        messages = LazyMessages(lambda: self.messages(place, ctx), known.mark, new, count)
        content = nodes[-1].content if nodes else ""
        part = known.part + len(nodes) - 1
        return SessionEnd(part, _digest(content), count, LearnedMarks(messages).mark(count))

    def _attempted(
        self, place: Uri, join: Join, naming: tuple[str, str], ctx: RequestContext, *, dry_run: bool
    ) -> SessionArchive:
        for _ in range(_ATTEMPTS):
            with suppress(_ConflictError):  # another writer was faster: read again
                return self._archived(place, join, naming, ctx, dry_run=dry_run)
        alone = Sessions(self._nodes)  # without the learned nodes, which may be the conflict
        return alone._archived(place, join, naming, ctx, dry_run=dry_run)

    def _archived(
        self, place: Uri, join: Join, naming: tuple[str, str], ctx: RequestContext, *, dry_run: bool
    ) -> SessionArchive:
        title, project = naming
        known = list(_nodes_of(self._nodes, place, ctx))
        before = messages_in(known)
        after = join(before)
        same = len(before) if after is before else shared_prefix(before, after)
        replaced = len(before) - same
        contents = list(_filled(place, pieces(after), "")) if after else []
        gone = known[len(contents) :] if after is not before else []
        mark = self._marks.read(place, ctx) if known else ""
        learned = learned_count(mark, after)
        if replaced:
            learned = min(learned_count(mark, before), same)
        of = known[0].project if known else project
        node_count = max(len(contents), len(known) - len(gone))
        uris = tuple(str(_part(place, number)) for number in range(node_count))
        added = len(after) - same
        done = SessionArchive(place, after, added, uris, learned, replaced=replaced, project=of)
        if dry_run:
            return done
        changed = _written(place, contents, known, of) if after is not before else ()
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
        also: Callable[[NodeDraft], None],
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


def public(given: ParsedMessages) -> ParsedMessages:
    """Return messages without their private parts."""
    screen = PrivacyFilter()
    pairs = ((each, screen.public(each.role, each.content, each.time)) for each in given.messages)
    shared = [(each, text) for each, text in pairs if text or not each.content.strip()]
    if not screen.is_used:
        return given
    return replace(given, messages=tuple(replace(each, content=text) for each, text in shared))


class ScreenedMessages(NamedTuple):
    """Messages as they may be stored: without secrets and forgotten sentences."""

    messages: list[Message]
    kinds: dict[int, tuple[str, ...]]
    """The kinds of the masked secrets, by the index of the message."""
    hidden: int
    """How many forgotten sentences are hidden."""


def screened(
    given: Sequence[Message], forgotten: ForgottenList, before: Sequence[Message] = ()
) -> ScreenedMessages:
    """Return messages as they may be stored; those that equal `before` are not scanned."""
    messages, kinds, hidden = list[Message](), dict[int, tuple[str, ...]](), 0
    for at, each in enumerate(given):
        if at < len(before) and before[at] == each:
            messages.append(each)
            continue
        found = mask_message(each)
        masked = forgotten.masked(found.message.content)
        is_same = masked.text == found.message.content
        messages.append(found.message if is_same else replace(found.message, content=masked.text))
        kinds |= {at: found.kinds} if found.kinds else {}
        hidden += masked.hidden
    return ScreenedMessages(messages, kinds, hidden)


def _hidden_in(forgotten: ForgottenList, before: Sequence[Message]) -> Sequence[Message]:
    """Return the messages of a session without what a list hides."""
    after = [replace(each, content=forgotten.masked(each.content).text) for each in before]
    return before if after == list(before) else after


# ---------------------------------------------------------------- listing
def list_sessions(reader: NodeReader, ctx: RequestContext) -> list[SessionInfo]:
    """Return the sessions that the caller may see, newest first."""
    found: list[SessionInfo] = []
    for uri in reader.list_children(str(Uri(ctx.account_id, ("sessions",))), ctx):
        with suppress(AccessDeniedError):  # its owner changed since it was listed
            info = _info(reader, Uri.parse(uri), ctx)
            if info is not None:
                found.append(info)
    return sorted(found, key=lambda info: (info.date, info.id), reverse=True)


def _info(reader: NodeReader, place: Uri, ctx: RequestContext) -> SessionInfo | None:
    """Return the entry of a session, as far as it can be read; None without messages."""
    nodes: list[ContextNode] = []
    with suppress(BrokenNodeError):
        nodes.extend(_nodes_of(reader, place, ctx))
    if not nodes:
        return None
    messages = messages_in(nodes)
    times = [each.time for each in messages if each.time] or [node.updated_at for node in nodes]
    title = _given_title(nodes[0]) or _derived_title(messages) or place.name
    size = sum(len(node.content.encode()) for node in nodes)
    project = nodes[0].project
    return SessionInfo(place.name, title, max(times), len(messages), size, str(place), project)


def _given_title(first: ContextNode) -> str:
    given = first.metadata.get(_TITLE)
    return clean_title(given).text if isinstance(given, str) and given.strip() else ""


def _derived_title(messages: Sequence[Message]) -> str:
    spoken = sorted(messages, key=lambda each: each.role != "user")  # users first, in their order
    lines = (line for each in spoken for line in each.content.splitlines() if line.strip())
    return clean_title(shortened(" ".join(next(lines, "").split()), _MAX_TITLE)).text


def clean_title(given: str) -> CleanText:
    """Return a title as it may be stored: on one line, and without secrets."""
    given = shortened(" ".join(encodable(given, "title").split()), MAX_ABSTRACT)
    clean = clean_line(given, "title", SecretPolicy.MASK)
    while (
        len(clean.text) > MAX_ABSTRACT
    ):  # cut the given text: a cut of the clean one could reveal a secret
        given = shortened(given, len(given) * 3 // 4)
        clean = clean_line(given, "title", SecretPolicy.MASK)
    return clean


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
    """Yield the contents of nodes: the first one that was begun, then new ones, when it is full."""
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
    place: Uri, contents: Iterable[str], known: Sequence[ContextNode], project: str, first: int = 0
) -> Iterator[ContextNode]:
    """Yield the nodes to write: new ones, and those whose content changed.

    `known` are the stored nodes, from the number `first` on.
    """
    metadata: dict[str, JSON] = {PROJECT: project} if project else {}
    for number, content in enumerate(contents):
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
    """Yield the nodes to write; the first one gets the given title."""
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


def _joined(found: Iterable[TranscriptEntry]) -> list[Message]:
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
        f"the session {place.name[:80]!a} has changed since. Nothing was changed. "
        "Fix: commit it with all its messages."
    )
