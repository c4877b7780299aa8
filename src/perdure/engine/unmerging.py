"""Undoing a merge: the page is again what it was, and what was merged is a memory of its own."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from perdure.artifacts import IndexState
from perdure.context.files import META, Meta
from perdure.context.nodes import Nodes
from perdure.context.reading import NodeReader
from perdure.dataclass import dataclass, replace
from perdure.engine.learn import statements
from perdure.engine.learn.evidence import (
    Merge,
    Support,
    as_metadata,
    merges_as_metadata,
    merges_of,
    support_of,
)
from perdure.engine.learn.merging import APART, described, kept_apart
from perdure.engine.learn.naming import apart_place
from perdure.engine.restore import as_it_was
from perdure.errors import AbsentError, InvalidValueError, NodeNotFoundError, NotTextError
from perdure.model import ContextNode, RequestContext
from perdure.storage.history import History, Version
from perdure.storage.wrappers.view import View

if TYPE_CHECKING:
    from perdure.model.values import JSON


@dataclass(frozen=True, slots=True)
class Unmerged:
    """What a page and what was merged into it became again."""

    uri: str
    apart: str
    """The memory that what was merged is now."""
    back: tuple[str, ...] = ()
    """Where that was kept which holds again."""


@dataclass(frozen=True, slots=True)
class _Parent:
    text: str
    support: Support


class Unmerging:
    """Takes apart what was merged. Nothing is lost: all versions stay in history."""

    def __init__(self, nodes: Nodes, history: History) -> None:
        self._nodes = nodes
        self._history = history

    def unmerge(self, uri: str, ctx: RequestContext, statement: str = "") -> Unmerged:
        self._nodes.reach.changed(uri, ctx)
        page = self._nodes.read_node(uri, ctx)
        merge = _chosen(page, statement)
        formers = [each for each in map(partial(self._read, ctx), merge.former) if each]
        parent = _parent(page, formers, merge)
        before = self._before(page, merge, formers, ctx) or _taken_out(page, merge, parent, formers)
        apart = self._joined(_apart(before, parent), ctx)
        page = _marked(before, parent, page)
        back = tuple(dict.fromkeys(each.uri for each in formers))
        self._nodes.because("unmerge").exchange([page, apart], back, ctx)
        return Unmerged(uri, apart.uri, back)

    def _read(self, ctx: RequestContext, uri: str) -> ContextNode | None:
        """Return what was superseded; None if its owner deleted it, or put it away."""
        try:
            return self._nodes.read_node(uri, ctx)
        except NodeNotFoundError:
            return None

    # ------------------------------------------------------------ the two parents
    def _joined(self, apart: ContextNode, ctx: RequestContext) -> ContextNode:
        """Return what is taken apart as it is to be written, if it was taken apart before, too."""
        known = self._read(ctx, apart.uri)
        if known is None:
            return apart
        support, content = support_of(known), known.content
        stands = {each.cid for each in statements.statements(content)}
        for cid, new in support_of(apart).items():
            support[cid] = support[cid].joined(new) if cid in support else new
            if cid not in stands:
                content = statements.inserted(content, apart.content)
        return known.revised(content=content, metadata={**known.metadata, **as_metadata(support)})

    def _before(
        self, page: ContextNode, merge: Merge, formers: Sequence[ContextNode], ctx: RequestContext
    ) -> ContextNode | None:
        """Return the page as it was before, if nothing else has happened since."""
        alone = sum(each.version == merge.version for each in merges_of(page)) == 1
        is_last = page.version == merge.version and all(each.version == 1 for each in formers)
        if not is_last or not alone or merge.version == 1:
            return None
        file = self._nodes.file(page.place, META)
        for version in reversed(self._history.versions(file)):
            if self._version(version) == merge.version - 1:
                view = NodeReader(View(self._history, IndexState(0, version.commit)))
                with suppress(NodeNotFoundError):  # it may have been elsewhere then
                    then = view.read_node(page.uri, ctx)
                    return as_it_was(page, then, then.frontmatter)
        return None

    def _version(self, change: Version) -> int | None:
        """Return which version of a node was written; None if none was, or none is kept."""
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
            said = [each for each in found.mentions if each.session == merge.session]
            if statement.cid == merge.into and said:
                words = said[0].wording or statement.text
                plain = tuple(replace(each, wording="") for each in said)
                return _Parent(statements.plain(words), replace(found, mentions=plain))
    raise InvalidValueError(
        f"what was merged into {page.uri!a} is not there any more. Nothing was changed. "
        "Fix: undo what came after it first, or `perdure history restore` a version."
    )


def _taken_out(
    page: ContextNode, merge: Merge, parent: _Parent, formers: Sequence[ContextNode]
) -> ContextNode:
    support, content = support_of(page), page.content
    if merge.into:
        known = support.pop(merge.into)
        said = tuple(each for each in known.mentions if each.session != merge.session)
        if said:
            support[merge.into] = replace(known, mentions=said)
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
    """Return the content with what was superseded in the place of what superseded it."""
    if any(_says(former, merge.statement) for former in formers):
        return page.content, {}  # it was told late, and never stood on the page
    stands = statements.statements(page.content)
    standing = next(each for each in stands if each.cid == merge.statement)
    back: dict[str, Support] = {}
    for former in formers:
        back |= support_of(former)
    items = "".join(_item(each) for each in formers)
    if items:
        return statements.replaced(page.content, standing, items), back
    return statements.without(page.content, standing), back


def _says(node: ContextNode, cid: str) -> bool:
    return cid in {each.cid for each in statements.statements(node.content)}


# ---------------------------------------------------------------- which merge, and what of it
def _chosen(page: ContextNode, statement: str) -> Merge:
    """Return the last merge, or the last of a statement, which its words or its CID name."""
    wanted = {statement, statements.cid_of(statement.strip())}
    for merge in reversed(merges_of(page)):
        if not statement or wanted & {merge.statement, merge.into}:
            return merge
    what = f"{statement[:80]!a} was not" if statement else "nothing was"
    raise InvalidValueError(
        f"{what} merged into {page.uri!a}. Nothing was changed. "
        "Fix: `perdure why` shows what was merged."
    )


def _apart(page: ContextNode, parent: _Parent) -> ContextNode:
    cid = statements.cid_of(parent.text)
    others: list[JSON] = [
        each.cid for each in statements.statements(page.content) if each.cid != cid
    ]
    metadata: dict[str, JSON] = {
        **as_metadata({cid: parent.support}),
        "date": parent.support.when.isoformat() if parent.support.when else None,
        APART: others or None,
    }
    kept = {name: value for name, value in metadata.items() if value is not None}
    place = apart_place(page.place, parent.text)
    return ContextNode(uri=str(place), content=statements.item(parent.text), metadata=kept)


def _marked(before: ContextNode, parent: _Parent, page: ContextNode) -> ContextNode:
    """Return the page with a mark that it is never merged with the same again."""
    cid = statements.cid_of(parent.text)
    if _says(before, cid):
        return before
    apart = tuple(sorted({*kept_apart(page), cid}))
    return replace(before, metadata={**before.metadata, APART: apart})


def _item(former: ContextNode) -> str:
    since = former.valid_from
    day = since.date() if since else None
    return "".join(
        statements.item(each.text, day) for each in statements.statements(former.content)
    )
