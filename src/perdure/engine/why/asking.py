"""Asking why: what a node says, what that rests on, and what it was before."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from perdure.artifacts import CID
from perdure.context.files import CONTENT, META, Meta
from perdure.context.nodes import Nodes
from perdure.context.relations import RelationReader
from perdure.engine.importing.standing import SOURCE
from perdure.engine.merge import pages
from perdure.engine.merge.grounds import Grounds, grounds_of
from perdure.engine.merge.merges import merges_of
from perdure.engine.why.evidence import Witnesses
from perdure.engine.why.provenance import (
    Claim,
    Former,
    Kind,
    Merged,
    Provenance,
    Successor,
)
from perdure.errors import (
    AbsentError,
    AccessDeniedError,
    BrokenNodeError,
    InvalidValueError,
    NodeNotFoundError,
    NotTextError,
)
from perdure.model import (
    SUPERSEDED_BY,
    ContextNode,
    ContextType,
    RelationEdge,
    RequestContext,
    Uri,
)
from perdure.model.record import VALID_FROM, VALID_UNTIL
from perdure.model.transcript import parse
from perdure.model.values import read_moment
from perdure.storage.history import History, Version

_DEEPEST = 20
"""So far back it is told what superseded what."""


class Asking:
    """Answers one question. What the asker may not see is counted, or not told of at all."""

    def __init__(self, nodes: Nodes, history: History, ctx: RequestContext) -> None:
        self._nodes = nodes
        self._history = history
        self._ctx = ctx
        self._relations = RelationReader(nodes, nodes)
        self._witnesses = Witnesses(nodes, ctx)

    def why(self, node: ContextNode) -> Provenance:
        """Return where a node that the caller may read comes from."""
        kind = _kind(node)
        claims = tuple(self._claims(node)) if kind is Kind.PAGE else ()
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
            messages=len(parse(node.content)) if kind is Kind.SESSION else 0,
            source=source if isinstance(source, str) else "",
            claims=claims,
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
        )

    def _is_edited(self, place: Uri, versions: Sequence[Version]) -> bool:
        """Whether the file says something else than its last version."""
        said = self._nodes.look(place, CONTENT)
        last = versions[-1].cid if versions else None
        return not isinstance(said, str) or CID.of(said.encode()) != last

    # ------------------------------------------------------------ what it says
    def _claims(self, node: ContextNode) -> Iterator[Claim]:
        grounds = grounds_of(node)
        for statement in pages.statements(node.content):
            known = grounds.get(statement.cid)
            if known is None:
                yield Claim(statement.text, statement.cid, extracted=False, since=statement.since)
            else:
                yield self._extracted(statement, known)

    def _extracted(self, statement: pages.Statement, grounds: Grounds) -> Claim:
        said, hidden = self._witnesses.said(grounds)
        return Claim(
            statement.text,
            statement.cid,
            extracted=True,
            since=statement.since,
            when=grounds.when,
            confidence=grounds.confidence,
            topic=grounds.topic,
            said=said,
            out_of_reach=hidden,
        )

    # ------------------------------------------------------------ what it was before
    def _formers(self, uri: str, told: set[str], deep: int = 0) -> Iterator[Former]:
        """Yield what a node superseded; each once, whatever somebody related by hand."""
        for edge in self._relations.get_incoming(uri, self._ctx) if deep < _DEEPEST else ():
            if _is_end(edge) and edge.from_uri not in told:
                told.add(edge.from_uri)
                node = self._readable(edge.from_uri)
                if node is not None:
                    yield self._former(node, edge, tuple(self._formers(node.uri, told, deep + 1)))

    def _former(
        self, node: ContextNode, edge: RelationEdge, superseded: tuple[Former, ...]
    ) -> Former:
        return Former(
            node.uri,
            node.content.strip(),
            edge.reason,
            read_moment(node.metadata.get(VALID_FROM)),
            read_moment(node.metadata.get(VALID_UNTIL)),
            tuple(self._claims(node)),
            superseded,
        )

    def _readable(self, uri: str) -> ContextNode | None:
        try:
            return self._nodes.read_node(uri, self._ctx)
        except (NodeNotFoundError, BrokenNodeError, AccessDeniedError):
            return None

    # ------------------------------------------------------------ merges
    def _merges(
        self, node: ContextNode, claims: tuple[Claim, ...], superseded: tuple[Former, ...]
    ) -> Iterator[Merged]:
        merges = merges_of(node)
        standing = dict(_texts(claims))
        gone = {claim.cid: claim.text for each in superseded for claim in each.claims}
        times = self._times(node.place, {each.version for each in merges})
        for each in merges:
            text = standing.get(each.statement) or gone.get(each.statement, "")
            former = tuple(filter(self._is_seen, each.former))
            undoable = each.statement in standing
            yield Merged(
                each.version,
                each.action,
                each.statement if text else "",
                text,
                times.get(each.version),
                former,
                undoable,
            )

    def _is_seen(self, uri: str) -> bool:
        try:
            return self._nodes.reach.may_see(Uri.parse(uri), self._ctx)
        except InvalidValueError:
            return False

    def _times(self, place: Uri, wanted: set[int]) -> Mapping[int, datetime]:
        """Return when some versions of a node were written, as far as history tells."""
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


def _kind(node: ContextNode) -> Kind:
    if node.place.session and parse(node.content):
        return Kind.SESSION
    return Kind.DOCUMENT if node.context_type is ContextType.RESOURCE else Kind.PAGE


def _is_end(edge: RelationEdge) -> bool:
    """Whether an edge says that its start no longer holds."""
    return edge.relation_type == SUPERSEDED_BY


def _texts(claims: tuple[Claim, ...]) -> Iterator[tuple[str, str]]:
    """Yield what stands on a page, by its CID: as it is, and as it was worded otherwise."""
    for claim in claims:
        for said in claim.said:
            if said.wording:
                yield pages.cid_of(said.wording), said.wording
        yield claim.cid, claim.text
