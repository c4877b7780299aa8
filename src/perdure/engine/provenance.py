"""Provenance: where a node comes from, the evidence of its statements, and its past."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from enum import Enum

from perdure.artifacts import CID
from perdure.context.links import RelationReader
from perdure.context.node_files import CONTENT, META, Meta
from perdure.context.nodes import Nodes
from perdure.dataclass import dataclass, replace
from perdure.engine.briefing import SECONDS
from perdure.engine.learn import statements
from perdure.engine.learn.evidence import (
    Evidence,
    Mention,
    Support,
    cid_of,
    merges_of,
    support_of,
    texts_of,
)
from perdure.engine.learn.review_queue import ORIGINS
from perdure.engine.learn.statements import stated_in
from perdure.engine.sessions import Sessions
from perdure.errors import (
    AbsentError,
    AccessDeniedError,
    BrokenNodeError,
    InvalidUriError,
    InvalidValueError,
    NodeNotFoundError,
    NotTextError,
)
from perdure.model import SUPERSEDED_BY, ContextNode, ContextType, RelationEdge, RequestContext, Uri
from perdure.model.anchors import AnchoredStatement, Anchors, AnchorStatus
from perdure.model.transcript import Message, parse
from perdure.model.values import shortened
from perdure.storage.text_history import History, Version
from perdure.transfer.contract import SOURCE, SOURCE_ID, SOURCE_LINES


class ProvenanceKind(Enum):
    """The kind of a node, by which its provenance is shown."""

    PAGE = "page"
    """It has statements, each with its evidence."""
    SESSION = "session"
    """The messages of a conversation, which are evidence of statements."""
    DOCUMENT = "document"
    """A text that was written outside Perdure."""


@dataclass(frozen=True, slots=True)
class Quote:
    message: int
    text: str
    trouble: str = ""
    """Why the quote is not valid; empty if the message exists and contains it."""

    @property
    def holds(self) -> bool:
        return not self.trouble


@dataclass(frozen=True, slots=True)
class SessionEvidence:
    session: str
    speaker: str
    quotes: tuple[Quote, ...]
    wording: str = ""
    """The statement that was made of the quotes, if it has other words."""
    origins: tuple[str, ...] = ()
    """Foreign sources that the session has read: web, mcp, pasted."""

    @property
    def holds(self) -> bool:
        return all(quote.holds for quote in self.quotes)


@dataclass(frozen=True, slots=True)
class StatementProvenance:
    text: str
    cid: str
    extracted: bool
    """Whether it was learned from a session; else a person wrote it."""
    since: date | None = None
    when: datetime | None = None
    """The time of its last evidence."""
    confidence: float | None = None
    topic: str = ""
    by: str = ""
    """Who stated it, if a tool saved it: the user or the agent."""
    line: str = ""
    """The imported file and the line in it."""
    evidence: tuple[SessionEvidence, ...] = ()
    out_of_reach: int = 0
    """The number of sessions with evidence that the caller may not see."""
    anchors: Anchors | None = None
    """The parts of a checkout that it names, as they were at its last evidence."""
    verdict: AnchorStatus | None = None
    """Whether they are unchanged; None outside of a checkout."""

    @property
    def holds(self) -> bool:
        """Whether all quotes that the caller may see are valid."""
        return all(each.holds for each in self.evidence)


@dataclass(frozen=True, slots=True)
class MergeRecord:
    version: int
    action: str
    statement: str
    """The CID of the merged statement; empty if its text is not known any more."""
    text: str
    when: datetime | None
    """When it was written; None if history does not have it."""
    former: tuple[str, ...]
    """The URIs of the nodes that it superseded."""
    undoable: bool
    """Whether the statement is still on the page."""


@dataclass(frozen=True, slots=True)
class FormerNode:
    uri: str
    text: str
    reason: str
    valid_from: datetime | None
    valid_until: datetime | None
    statements: tuple[StatementProvenance, ...]
    superseded: tuple["FormerNode", ...] = ()


@dataclass(frozen=True, slots=True)
class Successor:
    uri: str
    reason: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """The provenance of a node, as far as the caller may see it."""

    uri: str
    title: str
    kind: ProvenanceKind
    version: int
    created_at: datetime
    updated_at: datetime
    messages: int = 0
    source: str = ""
    statements: tuple[StatementProvenance, ...] = ()
    merges: tuple[MergeRecord, ...] = ()
    """Oldest first."""
    superseded: tuple[FormerNode, ...] = ()
    superseded_by: tuple[Successor, ...] = ()
    edges: tuple[RelationEdge, ...] = ()
    """Outgoing edges, without those to its successors."""
    incoming: tuple[RelationEdge, ...] = ()
    """Incoming edges, without those of nodes that it superseded."""
    versions: tuple[Version, ...] = ()
    """The versions of its content, oldest first."""
    unrecorded: bool = False
    """Whether the file has an edit that history does not have yet."""
    problems: tuple[str, ...] = ()
    """Problems that an edit by hand has caused."""
    origins: tuple[str, ...] = ()
    """What a session read that words in it may stem from: web, mcp, pasted."""
    unused_sessions: int = 0
    """The number of sessions that were shown a line of it and did not use it.

    0 unless briefings leave it out because of that.
    """

    @property
    def holds(self) -> bool:
        return all(statement.holds for statement in self.statements)


_UNREADABLE = "the session can't be read; see `perdure repair`"
_SHOWN = 200
_NO_SESSION = "the session does not exist any more"


def _quote_trouble(evidence: Evidence, messages: list[Message], speaker: str | None) -> str:
    if trouble := _message_trouble(evidence, messages):
        return trouble
    message = messages[evidence.message]
    if not evidence.quote.strip() or evidence.quote not in message.content:
        return "the message does not contain this"
    return "" if speaker in {None, message.speaker} else "another speaker wrote this"


def _message_trouble(evidence: Evidence, messages: list[Message]) -> str:
    """Return why a message is not the one of the evidence; "" if it is."""
    if not 0 <= evidence.message < len(messages):
        return f"the session has no message {evidence.message} any more"
    same = cid_of(messages[evidence.message].content) == evidence.cid
    return "" if same else "the message was changed since"


_MAX_DEPTH = 20
"""The maximum depth of the chain of superseded nodes."""


class ProvenanceReader:
    """Reads the provenance of one node. What the caller may not see is counted or left out."""

    def __init__(
        self,
        nodes: Nodes,
        history: History,
        ctx: RequestContext,
        check: Callable[[Sequence[AnchoredStatement], float], list[AnchorStatus]] | None = None,
    ) -> None:
        self._nodes = nodes
        self._history = history
        self._ctx = ctx
        self._check = check
        self._relations = RelationReader(nodes, nodes)
        self._sessions = Sessions(nodes)
        self._messages_of: dict[str, list[Message] | str | None] = {}
        """The messages of sessions, each of which is read once."""

    def read(self, node: ContextNode, message: int | None = None) -> Provenance:
        """Return the provenance of a node; with a message of a session, of that statement alone."""
        kind = _kind(node)
        listed = tuple(self._statements(node)) if kind is ProvenanceKind.PAGE else ()
        if message is not None:
            found = (
                each for each in parse(node.content) if (each.index, each.piece) == (message, 0)
            )
            listed = tuple(_message_statement(each.message, node, message) for each in found)
        out = self._relations.get_edges(node.uri, self._ctx)
        into = self._relations.get_incoming(node.uri, self._ctx)
        superseded = tuple(self._formers(node.uri, {node.uri}))
        source = node.metadata.get(SOURCE)
        versions = tuple(self._history.versions(self._nodes.file(node.place, CONTENT)))
        return Provenance(
            node.uri,
            node.title,
            kind,
            node.version,
            node.created_at,
            node.updated_at,
            messages=len(parse(node.content)) if kind is ProvenanceKind.SESSION else 0,
            source=source if isinstance(source, str) else "",
            statements=listed,
            merges=tuple(self._merges(node, listed, superseded)),
            superseded=superseded,
            superseded_by=tuple(
                Successor(each.to_uri, each.reason) for each in out if _is_succession(each)
            ),
            edges=tuple(each for each in out if not _is_succession(each)),
            incoming=tuple(each for each in into if not _is_succession(each)),
            versions=versions,
            unrecorded=self._is_edited(node.place, versions),
            problems=node.problems,
            origins=texts_of(node.metadata.get(ORIGINS)),
        )

    def _is_edited(self, place: Uri, versions: Sequence[Version]) -> bool:
        text = self._nodes.text_at(place, CONTENT)
        last = versions[-1].cid if versions else None
        return not isinstance(text, str) or CID.of(text.encode()) != last

    # ------------------------------------------------------------ statements
    def _statements(self, node: ContextNode) -> Iterator[StatementProvenance]:
        support = support_of(node)
        for statement in statements.statements(node.content):
            known = support.get(statement.cid)
            if known is None:
                line = _line(node, statement.cid)
                yield StatementProvenance(
                    statement.text,
                    statement.cid,
                    extracted=False,
                    since=statement.since,
                    line=line,
                )
                continue
            evidence, hidden = self._evidence(known)
            stated = stated_in(node, statement.text, known)
            check = self._check if stated.anchors else None
            verdict = check([stated], SECONDS)[0] if check else None
            yield StatementProvenance(
                statement.text,
                statement.cid,
                extracted=True,
                since=statement.since,
                when=known.when,
                confidence=known.confidence,
                topic=known.topic,
                by=known.by,
                evidence=evidence,
                out_of_reach=hidden,
                anchors=stated.anchors[-1] if stated.anchors else None,
                verdict=verdict,
            )

    # ------------------------------------------------------------ evidence
    def _evidence(self, support: Support) -> tuple[tuple[SessionEvidence, ...], int]:
        """Return the evidence of a statement, and in how many sessions out of reach it has more."""
        within = [each for each in support.mentions if self._messages(each.session) is not None]
        return tuple(map(self._session_evidence, within)), len(support.mentions) - len(within)

    def _session_evidence(self, mention: Mention) -> SessionEvidence:
        mention = self._completed(mention) if mention.is_withheld else mention
        first, *more = mention.evidence
        speaker = mention.speaker
        quotes = (self._quote(first, mention, speaker), *(self._quote(e, mention) for e in more))
        origins = self._origins(mention.session)
        return SessionEvidence(mention.session, speaker, quotes, mention.wording, origins)

    def _origins(self, session: str) -> tuple[str, ...]:
        with suppress(NodeNotFoundError, BrokenNodeError, AccessDeniedError, InvalidUriError):
            place = Uri(self._ctx.account_id, ("sessions", session, "messages"))
            return texts_of(self._nodes.read_node(str(place), self._ctx).metadata.get(ORIGINS))
        return ()

    def _quote(self, evidence: Evidence, mention: Mention, speaker: str | None = None) -> Quote:
        """Return a quote, checked against its message and, if given, the speaker."""
        found = self._messages(mention.session)
        trouble = (
            found if isinstance(found, str) else _quote_trouble(evidence, found or [], speaker)
        )
        return Quote(evidence.message, evidence.quote, trouble)

    def _completed(self, mention: Mention) -> Mention:
        """Return a mention with the withheld quotes, for a caller who may read the session."""
        found = self._messages(mention.session)
        messages = found if isinstance(found, list) else []
        evidence = tuple(
            each
            if _message_trouble(each, messages)
            else replace(each, quote=messages[each.message].content[:_SHOWN])
            for each in mention.evidence
        )
        first = evidence[0]
        speaker = "" if _message_trouble(first, messages) else messages[first.message].speaker
        return replace(mention, evidence=evidence, speaker=speaker)

    def _messages(self, session: str) -> list[Message] | str | None:
        """Return the messages of a session, or why there are none; None if it is out of reach."""
        if session not in self._messages_of:
            self._messages_of[session] = self._read_session(session)
        return self._messages_of[session]

    def _read_session(self, session: str) -> list[Message] | str | None:
        try:
            place = Uri(self._ctx.account_id, ("sessions", session))
            return self._sessions.messages(place, self._ctx) or _NO_SESSION
        except InvalidUriError:
            return _NO_SESSION
        except BrokenNodeError:
            return _UNREADABLE
        except AccessDeniedError:
            return None

    # ------------------------------------------------------------ superseded nodes
    def _formers(self, uri: str, seen: set[str], deep: int = 0) -> Iterator[FormerNode]:
        """Yield the nodes that a node superseded, each once, also in a cycle of relations."""
        for edge in self._relations.get_incoming(uri, self._ctx) if deep < _MAX_DEPTH else ():
            if _is_succession(edge) and edge.from_uri not in seen:
                seen.add(edge.from_uri)
                try:
                    node = self._nodes.read_node(edge.from_uri, self._ctx)
                except (NodeNotFoundError, BrokenNodeError, AccessDeniedError):
                    continue
                yield FormerNode(
                    node.uri,
                    node.content.strip(),
                    edge.reason,
                    node.valid_from,
                    node.valid_until,
                    tuple(self._statements(node)),
                    tuple(self._formers(node.uri, seen, deep + 1)),
                )

    # ------------------------------------------------------------ merges
    def _merges(
        self,
        node: ContextNode,
        listed: tuple[StatementProvenance, ...],
        superseded: tuple[FormerNode, ...],
    ) -> Iterator[MergeRecord]:
        merges = merges_of(node)
        current = dict(_texts(listed))
        former = {each.cid: each.text for node_ in superseded for each in node_.statements}
        times = self._times(node.place, {each.version for each in merges})
        for each in merges:
            text = current.get(each.statement) or former.get(each.statement, "")
            yield MergeRecord(
                each.version,
                each.action,
                each.statement if text else "",
                text,
                times.get(each.version),
                former=tuple(filter(self._is_seen, each.former)),
                undoable=each.statement in current,
            )

    def _is_seen(self, uri: str) -> bool:
        try:
            return self._nodes.reach.may_see(Uri.parse(uri), self._ctx)
        except InvalidValueError:
            return False

    def _times(self, place: Uri, wanted: set[int]) -> Mapping[int, datetime]:
        found: dict[int, datetime] = {}
        if not wanted:
            return found
        for event in reversed(self._history.versions(self._nodes.file(place, META))):
            with suppress(AbsentError, NotTextError, InvalidValueError):
                version = Meta.parse(self._history.text(event)).version
                if version in wanted:
                    found[version] = datetime.fromtimestamp(event.time / 1000, UTC)
                if version <= min(wanted):
                    break
        return found


def _message_statement(message: Message, node: ContextNode, index: int) -> StatementProvenance:
    text = shortened(message.content, _SHOWN)
    evidence = SessionEvidence(node.place.session, message.speaker, (Quote(index, text),))
    when = message.time or node.updated_at
    return StatementProvenance(
        text, cid_of(message.content), extracted=True, when=when, evidence=(evidence,)
    )


def _line(node: ContextNode, cid: str) -> str:
    lines = node.metadata.get(SOURCE_LINES)
    number = lines.get(cid) if isinstance(lines, Mapping) else None
    return f"{node.metadata.get(SOURCE_ID)}, line {number}" if isinstance(number, int) else ""


def _kind(node: ContextNode) -> ProvenanceKind:
    if node.place.session and parse(node.content):
        return ProvenanceKind.SESSION
    return (
        ProvenanceKind.DOCUMENT
        if node.context_type is ContextType.RESOURCE
        else ProvenanceKind.PAGE
    )


def _is_succession(edge: RelationEdge) -> bool:
    return edge.relation_type == SUPERSEDED_BY


def _texts(listed: tuple[StatementProvenance, ...]) -> Iterator[tuple[str, str]]:
    """Yield the statements of a page by CID, in their present and in other words."""
    for statement in listed:
        for each in statement.evidence:
            if each.wording:
                yield statements.cid_of(each.wording), each.wording
        yield statement.cid, statement.text
