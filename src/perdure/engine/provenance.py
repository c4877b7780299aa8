"""Provenance: where a node comes from, what its statements rest on, and what it was before."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from enum import Enum

from perdure.artifacts import CID
from perdure.context.files import CONTENT, META, Meta
from perdure.context.nodes import Nodes
from perdure.context.relations import RelationReader
from perdure.dataclass import dataclass, replace
from perdure.engine.briefing import SECONDS
from perdure.engine.freshness import stated_in
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
from perdure.engine.learn.review import ORIGINS
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
from perdure.model.anchors import Anchors, Stated, Verdict
from perdure.model.transcript import Message, parse
from perdure.model.values import shortened
from perdure.storage.history import History, Version
from perdure.transfer.contract import SOURCE, SOURCE_ID, SOURCE_LINES


class ProvenanceKind(Enum):
    """What a node is, to somebody who asks where it comes from."""

    PAGE = "page"
    """It makes statements, and each may rest on something."""
    SESSION = "session"
    """What was said, word for word; statements rest on it."""
    DOCUMENT = "document"
    """A text that somebody wrote elsewhere."""


@dataclass(frozen=True, slots=True)
class Quote:
    message: int
    text: str
    trouble: str = ""
    """Why the words prove nothing; empty if the message is there and says them."""

    @property
    def holds(self) -> bool:
        return not self.trouble


@dataclass(frozen=True, slots=True)
class SessionEvidence:
    session: str
    speaker: str
    quotes: tuple[Quote, ...]
    wording: str = ""
    """What was made of the words, if the statement is worded otherwise."""
    origins: tuple[str, ...] = ()
    """What the session read that words in it may stem from: web, mcp, pasted."""

    @property
    def holds(self) -> bool:
        return all(quote.holds for quote in self.quotes)


@dataclass(frozen=True, slots=True)
class StatementProvenance:
    text: str
    cid: str
    extracted: bool
    """Made out of what was said in a session; else somebody wrote it."""
    since: date | None = None
    when: datetime | None = None
    """When it was last said."""
    confidence: float | None = None
    topic: str = ""
    by: str = ""
    """Who stated it, where a tool kept it: the user or the agent."""
    line: str = ""
    """The file and the line that it was imported from."""
    evidence: tuple[SessionEvidence, ...] = ()
    out_of_reach: int = 0
    """In how many more places it was said that the caller may not see."""
    anchors: Anchors | None = None
    """What it names of a checkout, as it was when it was last said."""
    verdict: Verdict | None = None
    """Whether that is still so; None outside of a checkout."""

    @property
    def holds(self) -> bool:
        """Whether all words that the caller may see are where they are said to be."""
        return all(each.holds for each in self.evidence)


@dataclass(frozen=True, slots=True)
class MergeRecord:
    version: int
    action: str
    statement: str
    """The CID of what was said; empty if nobody knows any more what that is."""
    text: str
    when: datetime | None
    """When it was written; None if history does not tell."""
    former: tuple[str, ...]
    """Where that is which it superseded."""
    undoable: bool
    """Whether what went in is still there, and so is the page without it."""


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
    """All that is known of where a node comes from, as far as the caller may see it."""

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
    """The oldest first."""
    superseded: tuple[FormerNode, ...] = ()
    superseded_by: tuple[Successor, ...] = ()
    edges: tuple[RelationEdge, ...] = ()
    """Those that lead away, but for those to its successors."""
    incoming: tuple[RelationEdge, ...] = ()
    """Those that lead here, but for those from what it superseded."""
    versions: tuple[Version, ...] = ()
    """Of its content, the oldest first."""
    unrecorded: bool = False
    """Whether somebody edited the file since, and history was not told yet."""
    problems: tuple[str, ...] = ()
    """What an edit by hand broke."""
    origins: tuple[str, ...] = ()
    """What a session read that words in it may stem from: web, mcp, pasted."""
    unused_sessions: int = 0
    """In how many sessions a line of it was shown and not used; 0 unless briefings leave it out."""

    @property
    def holds(self) -> bool:
        return all(claim.holds for claim in self.statements)


_UNREADABLE = "the session can't be read; `perdure repair` says why"
_SHOWN = 200
_NO_SESSION = "the session is not there any more"


def _trouble(evidence: Evidence, messages: list[Message], speaker: str | None) -> str:
    if trouble := _amiss(evidence, messages):
        return trouble
    message = messages[evidence.message]
    if not evidence.quote.strip() or evidence.quote not in message.content:
        return "the message does not say this"
    return "" if speaker in {None, message.speaker} else "somebody else said this"


def _amiss(evidence: Evidence, messages: list[Message]) -> str:
    """Say why a message is not the one that was heard; nothing if it is."""
    if not 0 <= evidence.message < len(messages):
        return f"the session has no message {evidence.message} any more"
    same = cid_of(messages[evidence.message].content) == evidence.cid
    return "" if same else "the message was changed since"


_DEEPEST = 20
"""So far back it is told what superseded what."""


class ProvenanceReader:
    """Answers one question. What the asker may not see is counted, or not told of at all."""

    def __init__(
        self,
        nodes: Nodes,
        history: History,
        ctx: RequestContext,
        check: Callable[[Sequence[Stated], float], list[Verdict]] | None = None,
    ) -> None:
        self._nodes = nodes
        self._history = history
        self._ctx = ctx
        self._check = check
        self._relations = RelationReader(nodes, nodes)
        self._sessions = Sessions(nodes)
        self._heard: dict[str, list[Message] | str | None] = {}
        """Each session is read once."""

    def read(self, node: ContextNode, message: int | None = None) -> Provenance:
        """Return where a node comes from; if a message of it is meant, that is its one claim."""
        kind = _kind(node)
        claims = tuple(self._claims(node)) if kind is ProvenanceKind.PAGE else ()
        if message is not None:
            said = (
                each for each in parse(node.content) if (each.index, each.piece) == (message, 0)
            )
            claims = tuple(_heard(each.message, node, message) for each in said)
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
            statements=claims,
            merges=tuple(self._merges(node, claims, superseded)),
            superseded=superseded,
            superseded_by=tuple(
                Successor(each.to_uri, each.reason) for each in out if _is_end(each)
            ),
            edges=tuple(each for each in out if not _is_end(each)),
            incoming=tuple(each for each in into if not _is_end(each)),
            versions=versions,
            unrecorded=self._is_edited(node.place, versions),
            problems=node.problems,
            origins=texts_of(node.metadata.get(ORIGINS)),
        )

    def _is_edited(self, place: Uri, versions: Sequence[Version]) -> bool:
        said = self._nodes.look(place, CONTENT)
        last = versions[-1].cid if versions else None
        return not isinstance(said, str) or CID.of(said.encode()) != last

    # ------------------------------------------------------------ what it says
    def _claims(self, node: ContextNode) -> Iterator[StatementProvenance]:
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
            said, hidden = self._sources(known)
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
                evidence=said,
                out_of_reach=hidden,
                anchors=stated.anchors[-1] if stated.anchors else None,
                verdict=verdict,
            )

    # ------------------------------------------------------------ what it rests on
    def _sources(self, support: Support) -> tuple[tuple[SessionEvidence, ...], int]:
        """Return where a statement was said, and in how many places out of reach it was too."""
        within = [each for each in support.mentions if self._messages(each.session) is not None]
        return tuple(map(self._said, within)), len(support.mentions) - len(within)

    def _said(self, mention: Mention) -> SessionEvidence:
        mention = self._told(mention) if mention.is_withheld else mention
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
        """Look for some words; if it is said who spoke, that must be so."""
        found = self._messages(mention.session)
        trouble = found if isinstance(found, str) else _trouble(evidence, found or [], speaker)
        return Quote(evidence.message, evidence.quote, trouble)

    def _told(self, mention: Mention) -> Mention:
        """Return a mention with what was kept back, for somebody who may read the session."""
        found = self._messages(mention.session)
        heard = found if isinstance(found, list) else []
        told = tuple(
            each
            if _amiss(each, heard)
            else replace(each, quote=heard[each.message].content[:_SHOWN])
            for each in mention.evidence
        )
        first = told[0]
        speaker = "" if _amiss(first, heard) else heard[first.message].speaker
        return replace(mention, evidence=told, speaker=speaker)

    def _messages(self, session: str) -> list[Message] | str | None:
        """Return what was said in a session, or why nobody knows; None if it is out of reach."""
        if session not in self._heard:
            self._heard[session] = self._read(session)
        return self._heard[session]

    def _read(self, session: str) -> list[Message] | str | None:
        try:
            place = Uri(self._ctx.account_id, ("sessions", session))
            return self._sessions.messages(place, self._ctx) or _NO_SESSION
        except InvalidUriError:
            return _NO_SESSION
        except BrokenNodeError:
            return _UNREADABLE
        except AccessDeniedError:
            return None

    # ------------------------------------------------------------ what it was before
    def _formers(self, uri: str, told: set[str], deep: int = 0) -> Iterator[FormerNode]:
        """Yield what a node superseded; each once, whatever somebody related by hand."""
        for edge in self._relations.get_incoming(uri, self._ctx) if deep < _DEEPEST else ():
            if _is_end(edge) and edge.from_uri not in told:
                told.add(edge.from_uri)
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
                    tuple(self._claims(node)),
                    tuple(self._formers(node.uri, told, deep + 1)),
                )

    # ------------------------------------------------------------ merges
    def _merges(
        self,
        node: ContextNode,
        claims: tuple[StatementProvenance, ...],
        superseded: tuple[FormerNode, ...],
    ) -> Iterator[MergeRecord]:
        merges = merges_of(node)
        standing = dict(_texts(claims))
        gone = {claim.cid: claim.text for each in superseded for claim in each.statements}
        times = self._times(node.place, {each.version for each in merges})
        for each in merges:
            text = standing.get(each.statement) or gone.get(each.statement, "")
            yield MergeRecord(
                each.version,
                each.action,
                each.statement if text else "",
                text,
                times.get(each.version),
                former=tuple(filter(self._is_seen, each.former)),
                undoable=each.statement in standing,
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


def _heard(message: Message, node: ContextNode, index: int) -> StatementProvenance:
    text = shortened(message.content, _SHOWN)
    said = SessionEvidence(node.place.session, message.speaker, (Quote(index, text),))
    when = message.time or node.updated_at
    return StatementProvenance(
        text, cid_of(message.content), extracted=True, when=when, evidence=(said,)
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


def _is_end(edge: RelationEdge) -> bool:
    return edge.relation_type == SUPERSEDED_BY


def _texts(claims: tuple[StatementProvenance, ...]) -> Iterator[tuple[str, str]]:
    """Yield what stands on a page, by its CID: as it is, and as it was worded otherwise."""
    for claim in claims:
        for said in claim.evidence:
            if said.wording:
                yield statements.cid_of(said.wording), said.wording
        yield claim.cid, claim.text
