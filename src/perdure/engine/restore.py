"""Restore a node or a folder to an earlier state, and undo merges."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from perdure.artifacts import CID, IndexState
from perdure.context.node_files import CONTENT, META, Meta
from perdure.context.nodes import Nodes
from perdure.context.reader import NodeReader
from perdure.dataclass import dataclass, replace
from perdure.engine.indexing.follower import LogReader
from perdure.engine.learn import statements
from perdure.engine.learn.evidence import (
    Merge,
    Support,
    as_metadata,
    merges_as_metadata,
    merges_of,
    support_of,
)
from perdure.engine.learn.merge import SEPARATED, described, separated_cids
from perdure.engine.learn.slugs import separate_place
from perdure.engine.past import When
from perdure.errors import (
    AbsentError,
    AccessDeniedError,
    AccessRefusedError,
    BrokenNodeError,
    InvalidCIDError,
    InvalidValueError,
    NodeNotFoundError,
    NotTextError,
)
from perdure.model import ContextNode, NodeStatus, RequestContext, Uri
from perdure.storage.text_history import RESTORE, History, Version, View

if TYPE_CHECKING:
    from perdure.model.values import JSON


def _next(now: ContextNode, then: ContextNode) -> ContextNode | None:
    """Return the version after `now` with the texts of `then`; None if they are equal."""
    if _texts(now) == _texts(then):
        return None
    return as_it_was(now, then)


def as_it_was(now: ContextNode, then: ContextNode) -> ContextNode:
    """Return the version after `now` with the texts of `then`."""
    gone = dict.fromkeys(now.metadata.keys() - then.metadata.keys())
    return now.revised(
        content=then.content,
        abstract=then.abstract,
        overview=then.overview,
        relations=then.relations,
        frontmatter=then.frontmatter or "",
        metadata={**then.metadata, **gone},
    )


def _texts(node: ContextNode) -> tuple[object, ...]:
    edges = {(edge.to_uri, edge.relation_type, edge.weight, edge.reason) for edge in node.relations}
    lines = node.frontmatter or ""
    return node.content, node.abstract, node.overview, edges, dict(node.metadata), lines


def _cid(wanted: object) -> CID | None:
    try:
        return CID.parse(wanted) if isinstance(wanted, str) else None
    except InvalidCIDError:
        return None


_BROKEN = "its files can't be parsed; see `perdure repair`"
_ARCHIVED = "it was archived since; `perdure unarchive` it first"


class RewindOutcome(Enum):
    """What a rewind does with a node that has changed since a state."""

    RESTORED = "restored"
    """It has its former text again."""
    BACK = "brought back"
    """It was deleted since, and exists again."""
    REMOVED = "removed"
    """It did not exist then; history keeps it."""
    LEFT = "left as it is"
    """It can't be rewound, for the given reason."""


@dataclass(frozen=True, slots=True)
class RewindStep:
    uri: str
    outcome: RewindOutcome
    node: ContextNode | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RewindReport:
    state: IndexState
    steps: tuple[RewindStep, ...]

    def of(self, outcome: RewindOutcome) -> tuple[str, ...]:
        return tuple(each.uri for each in self.steps if each.outcome is outcome)


@dataclass(frozen=True, slots=True)
class Restorer:
    """Writes former versions of nodes as their next versions."""

    nodes: Nodes
    history: History
    ctx: RequestContext

    def planned(
        self, uri: str, state_at: Callable[[When], IndexState], wanted: CID | When
    ) -> ContextNode | None:
        """Return the version to write; None if the node has these texts already."""
        place = self.nodes.reach.require_writable(uri, self.ctx)
        cid = wanted if isinstance(wanted, CID) else _cid(wanted)
        if cid is not None:
            version = self._version(self.nodes.reach.require_visible(uri, self.ctx), cid)
            state, there = IndexState(0, version.commit), self._place(version.key)
        else:
            state, there = state_at(wanted), place  # type: ignore[arg-type] # it is not a CID
        then = self._then(NodeReader(View(self.history, state)), there, place)
        try:
            now = self.nodes.read_node(uri, self.ctx)
        except NodeNotFoundError:
            return replace(then, version=1)
        return _next(now, then)

    def _version(self, place: Uri, cid: CID) -> Version:
        file = self.nodes.file(place, CONTENT)
        found = [each for each in self.history.versions(file) if each.cid == cid]
        if not found:
            raise NodeNotFoundError(
                f"{str(place)!a} never had the content {cid}. Fix: see its history."
            )
        return found[-1]

    def _place(self, key: str) -> Uri:
        """Return the place of a content file; its node may have been moved since."""
        place = Uri.of_key(key.removesuffix(f"/{CONTENT}"))
        if place is None:
            raise NodeNotFoundError(f"{key!a} is not a node. Fix: choose another version.")
        return place

    def _then(self, past: NodeReader, there: Uri, place: Uri) -> ContextNode:
        """Return the former node, as the caller may write it at its present place."""
        try:
            node = past.read_node(str(there), self.ctx)
        except NodeNotFoundError as error:
            raise NodeNotFoundError(
                f"{str(place)!a} did not exist then, or was archived. Nothing was changed. "
                "Fix: choose a version that `perdure why` lists."
            ) from error
        may_see = self.nodes.reach.may_see
        edges = [edge for edge in node.relations if may_see(Uri.parse(edge.to_uri), self.ctx)]
        return replace(
            node,
            uri=str(place),
            owner_space="",
            relations=tuple(
                replace(edge, from_uri=str(place)) for edge in edges if edge.to_uri != str(place)
            ),
            basis="",
            problems=(),
        )

    # ------------------------------------------------------------ many nodes
    def rewind(self, state: IndexState, folder: Uri, *, dry_run: bool) -> RewindReport:
        """Rewind the nodes below a folder, all or none; sessions stay as evidence."""
        past = NodeReader(View(self.history, state))
        found = (self._step(place, past, state) for place in self._changed(state, folder))
        done = RewindReport(state, tuple(sorted(filter(None, found), key=lambda step: step.uri)))
        write = [step.node for step in done.steps if step.node is not None]
        gone = done.of(RewindOutcome.REMOVED)
        if not dry_run and (write or gone):
            self.nodes.because(origin=RESTORE).exchange(write, gone, self.ctx)
        return done

    def _changed(self, state: IndexState, folder: Uri) -> Iterator[Uri]:
        """Yield the nodes below a folder that changed after a state and are the caller's."""
        for place in LogReader(self.history, self.nodes).changed(folder.account, state.position):
            below = place.path[: len(folder.path)] == folder.path
            if below and place.is_node and not place.session and self._may_change(place):
                yield place

    def _may_change(self, place: Uri) -> bool:
        try:
            self.nodes.reach.require_writable(str(place), self.ctx)
        except (AccessDeniedError, AccessRefusedError):
            return False
        return True

    def _step(self, place: Uri, past: NodeReader, state: IndexState) -> RewindStep | None:
        was_there = past.exists(str(place), self.ctx)
        try:
            stored = self.nodes.load(place)
        except BrokenNodeError:
            return RewindStep(str(place), RewindOutcome.LEFT, reason=_BROKEN)
        if stored is None:
            return self._written(place, state, RewindOutcome.BACK) if was_there else None
        if stored.meta.status is not NodeStatus.ACTIVE:
            return (
                RewindStep(str(place), RewindOutcome.LEFT, reason=_ARCHIVED) if was_there else None
            )
        if not was_there:
            return RewindStep(str(place), RewindOutcome.REMOVED)
        return self._written(place, state, RewindOutcome.RESTORED)

    def _written(self, place: Uri, state: IndexState, outcome: RewindOutcome) -> RewindStep | None:
        try:
            node = self.planned(str(place), lambda _: state, "")
        except NodeNotFoundError:
            return None
        return None if node is None else RewindStep(str(place), outcome, node)


@dataclass(frozen=True, slots=True)
class UnmergeReport:
    uri: str
    apart: str
    """The new memory with the statement that had been merged."""
    back: tuple[str, ...] = ()
    """The former nodes whose statements are valid again."""


@dataclass(frozen=True, slots=True)
class _Parent:
    text: str
    support: Support


class Unmerger:
    """Undoes merges. All versions stay in history."""

    def __init__(self, nodes: Nodes, history: History) -> None:
        self._nodes = nodes
        self._history = history

    def unmerge(self, uri: str, ctx: RequestContext, statement: str = "") -> UnmergeReport:
        self._nodes.reach.require_writable(uri, ctx)
        page = self._nodes.read_node(uri, ctx)
        merge = _chosen(page, statement)
        formers = [each for each in map(partial(self._read, ctx), merge.former) if each]
        parent = _parent(page, formers, merge)
        before = self._before(page, merge, formers, ctx) or _taken_out(page, merge, parent, formers)
        apart = self._joined(_apart(before, parent), ctx)
        page = _marked(before, parent, page)
        back = tuple(dict.fromkeys(each.uri for each in formers))
        self._nodes.because("unmerge").exchange([page, apart], back, ctx)
        return UnmergeReport(uri, apart.uri, back)

    def _read(self, ctx: RequestContext, uri: str) -> ContextNode | None:
        """Return a superseded node; None if its owner deleted or archived it."""
        try:
            return self._nodes.read_node(uri, ctx)
        except NodeNotFoundError:
            return None

    # ------------------------------------------------------------ the page and the new memory
    def _joined(self, apart: ContextNode, ctx: RequestContext) -> ContextNode:
        """Return the new memory, joined with the one of an earlier unmerge at the same place."""
        known = self._read(ctx, apart.uri)
        if known is None:
            return apart
        support, content = support_of(known), known.content
        present = {each.cid for each in statements.statements(content)}
        for cid, new in support_of(apart).items():
            support[cid] = support[cid].joined(new) if cid in support else new
            if cid not in present:
                content = statements.inserted(content, apart.content)
        return known.revised(content=content, metadata={**known.metadata, **as_metadata(support)})

    def _before(
        self, page: ContextNode, merge: Merge, formers: Sequence[ContextNode], ctx: RequestContext
    ) -> ContextNode | None:
        """Return the page before a merge, if nothing else has changed since."""
        alone = sum(each.version == merge.version for each in merges_of(page)) == 1
        is_last = page.version == merge.version and all(each.version == 1 for each in formers)
        if not is_last or not alone or merge.version == 1:
            return None
        file = self._nodes.file(page.place, META)
        for version in reversed(self._history.versions(file)):
            if self._version(version) == merge.version - 1:
                view = NodeReader(View(self._history, IndexState(0, version.commit)))
                with suppress(NodeNotFoundError):  # it may have had another place then
                    then = view.read_node(page.uri, ctx)
                    return as_it_was(page, then)
        return None

    def _version(self, change: Version) -> int | None:
        """Return the version number in a version of a meta file; None if it has no text."""
        with suppress(AbsentError, NotTextError, InvalidValueError):
            return Meta.parse(self._history.text(change)).version
        return None


# ---------------------------------------------------------------- the two parents
def _parent(page: ContextNode, formers: Sequence[ContextNode], merge: Merge) -> _Parent:
    for node in (page, *formers):
        support = support_of(node)
        for statement in statements.statements(node.content):
            found = support.get(statement.cid)
            if found is None:
                continue
            if statement.cid == merge.statement and not merge.into:
                return _Parent(statement.text, found)
            mentions = [each for each in found.mentions if each.session == merge.session]
            if statement.cid == merge.into and mentions:
                words = mentions[0].wording or statement.text
                plain = tuple(replace(each, wording="") for each in mentions)
                return _Parent(statements.plain(words), replace(found, mentions=plain))
    raise InvalidValueError(
        f"the statement that was merged into {page.uri!a} does not exist any more. Nothing was "
        "changed. Fix: undo later changes first, or `perdure history restore` a version."
    )


def _taken_out(
    page: ContextNode, merge: Merge, parent: _Parent, formers: Sequence[ContextNode]
) -> ContextNode:
    support, content = support_of(page), page.content
    if merge.into:
        known = support.pop(merge.into)
        mentions = tuple(each for each in known.mentions if each.session != merge.session)
        if mentions:
            support[merge.into] = replace(known, mentions=mentions)
    else:
        content, back = _put_back(page, merge, formers)
        support = {cid: each for cid, each in support.items() if cid != merge.statement} | back
    if not content.strip():
        raise InvalidValueError(
            f"{page.uri!a} would be empty without {parent.text[:80]!a}. Nothing was changed. "
            "Fix: `perdure delete` or `perdure edit` it."
        )
    merges = [each for each in merges_of(page) if each != merge]
    metadata = {**page.metadata, **described(content, support), **merges_as_metadata(merges)}
    return page.revised(content=content, metadata=metadata)


def _put_back(
    page: ContextNode, merge: Merge, formers: Sequence[ContextNode]
) -> tuple[str, dict[str, Support]]:
    """Return the content with the superseded statements in the place of their successor."""
    if any(_says(former, merge.statement) for former in formers):
        return page.content, {}  # it was older than the page, and never on it
    found = statements.statements(page.content)
    successor = next(each for each in found if each.cid == merge.statement)
    back: dict[str, Support] = {}
    for former in formers:
        back |= support_of(former)
    items = "".join(_item(each) for each in formers)
    if items:
        return statements.replaced(page.content, successor, items), back
    return statements.without(page.content, successor), back


def _says(node: ContextNode, cid: str) -> bool:
    return cid in {each.cid for each in statements.statements(node.content)}


# ---------------------------------------------------------------- the merge and its results
def _chosen(page: ContextNode, statement: str) -> Merge:
    """Return the last merge; with a statement, by its text or CID, the last merge of that."""
    wanted = {statement, statements.cid_of(statement.strip())}
    for merge in reversed(merges_of(page)):
        if not statement or wanted & {merge.statement, merge.into}:
            return merge
    what = f"{statement[:80]!a} was not" if statement else "nothing was"
    raise InvalidValueError(
        f"{what} merged into {page.uri!a}. Nothing was changed. "
        "Fix: `perdure why` lists the merges."
    )


def _apart(page: ContextNode, parent: _Parent) -> ContextNode:
    cid = statements.cid_of(parent.text)
    others: list[JSON] = [
        each.cid for each in statements.statements(page.content) if each.cid != cid
    ]
    metadata: dict[str, JSON] = {
        **as_metadata({cid: parent.support}),
        "date": parent.support.when.isoformat() if parent.support.when else None,
        SEPARATED: others or None,
    }
    present = {name: value for name, value in metadata.items() if value is not None}
    place = separate_place(page.place, parent.text)
    return ContextNode(uri=str(place), content=statements.item(parent.text), metadata=present)


def _marked(before: ContextNode, parent: _Parent, page: ContextNode) -> ContextNode:
    cid = statements.cid_of(parent.text)
    if _says(before, cid):
        return before
    apart = tuple(sorted({*separated_cids(page), cid}))
    return replace(before, metadata={**before.metadata, SEPARATED: apart})


def _item(former: ContextNode) -> str:
    since = former.valid_from
    day = since.date() if since else None
    return "".join(
        statements.item(each.text, day) for each in statements.statements(former.content)
    )
