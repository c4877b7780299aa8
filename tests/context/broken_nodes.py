"""Nodes and relations with one fault each. The name says the fault.

A class stands for its healthy base; a function patches a part that both are made of.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from perdure import frontmatter, markdown
from perdure.context import links, node_files, nodes, reader
from perdure.context.node_files import CONTENT, META, NodeFiles, NodeTexts, cid_of
from perdure.context.nodes import NodeDraft, Nodes, Relations
from perdure.context.reader import NodeReader, NoteTexts, Reach, StoredNode, not_found
from perdure.engine.indexing.follower import IndexFollower
from perdure.engine.indexing.outbox_store import LogFeed
from perdure.errors import (
    AccessDeniedError,
    BrokenNodeError,
    InvalidValueError,
    NodeNotFoundError,
)
from perdure.model import ContextNode, EventType, RelationEdge, RequestContext, Role, Uri, slugify
from perdure.storage import Locator
from perdure.storage.recorded import Recorded
from tests.support.context.seam import Seam

Patch = pytest.MonkeyPatch
Plan = Callable[[NodeDraft], None]


def nothing(*_: object, **__: object) -> None:
    """Do not do it."""


# ---------------------------------------------------------------- where and how nodes are written


def goes_past_the_seam(patch: Patch) -> None:
    patch.setattr(Seam, "__call__", lambda _, inner: inner)


class LacksAVerb(Nodes):
    unarchive_node = None  # type: ignore[assignment] # it lacks it


class LivesElsewhere(Nodes):
    def folder(self, place: Uri) -> Locator:
        return Locator("").child("nodes", place.key)

    def file(self, place: Uri, name: str) -> Locator:
        return Locator("").child("nodes", place.key, name)


class Writing(Nodes):
    """Writes something else than it was given."""

    def write_nodes(self, nodes: Iterable[ContextNode], ctx: RequestContext) -> None:
        super().write_nodes(map(self.instead, nodes), ctx)

    def instead(self, node: ContextNode) -> ContextNode:
        return node


class ForgetsOverviews(Writing):
    def instead(self, node: ContextNode) -> ContextNode:
        return replace(node, overview="")


class TranslatesLineEnds(Writing):
    def instead(self, node: ContextNode) -> ContextNode:
        return replace(node, content="\n".join(node.content.splitlines()))


class CutsLongContents(Writing):
    def instead(self, node: ContextNode) -> ContextNode:
        return replace(node, content=node.content[:65_536])


class StripsSummaries(Writing):
    def instead(self, node: ContextNode) -> ContextNode:
        return replace(node, abstract=node.abstract.strip(), overview=node.overview.strip())


class IgnoresGivenFrontmatter(Writing):
    def instead(self, node: ContextNode) -> ContextNode:
        return replace(node, frontmatter=None)


def takes_contents_for_frontmatter(patch: Patch) -> None:
    patch.setattr(frontmatter, "join", lambda lines, body: lines and f"---\n{lines}---\n{body}")
    split = frontmatter.split
    patch.setattr(frontmatter, "split", lambda text: (split(text)[0], split(split(text)[1])[1]))


def writes_summaries_first(patch: Patch) -> None:
    patch.setattr(nodes, "TEXT_FILES", node_files.TEXT_FILES[::-1])


class WritesOneByOne(Nodes):
    def change(self, plan: Plan, ctx: RequestContext, **more: Any) -> NodeDraft:  # noqa: ANN401
        planned = self._planned(plan)
        for locator, text in self.in_order(planned.changes):
            if text is None:
                self._inner.remove(locator)
            else:
                self._inner.write(locator, text)
        return planned

    def in_order(self, changes: Mapping[Locator, str | None]) -> list[tuple[Locator, str | None]]:
        return list(changes.items())

    @property
    def _inner(self) -> Any:  # noqa: ANN401
        return self.backend.inner  # type: ignore[attr-defined] # it is wrapped here


class WritesTheMetaFirst(WritesOneByOne):
    def in_order(self, changes: Mapping[Locator, str | None]) -> list[tuple[Locator, str | None]]:
        return list(changes.items())[::-1]


def tells_nobody_of_writes(patch: Patch, kind: EventType = EventType.UPSERT_NODE) -> None:
    after = LogFeed.after
    patch.setattr(
        LogFeed,
        "after",
        lambda *asked, **more: (
            event for event in after(*asked, **more) if event.event_type is not kind
        ),
    )


def tells_nobody_of_moves(patch: Patch) -> None:
    tells_nobody_of_writes(patch, EventType.MOVE_NODE)


def tells_nobody_of_archives(patch: Patch) -> None:
    tells_nobody_of_writes(patch, EventType.ARCHIVE_NODE)


def tells_nobody_of_relations(patch: Patch) -> None:
    tells_nobody_of_writes(patch, EventType.UPSERT_RELATIONS)


def tells_of_what_was_undone(patch: Patch) -> None:
    patch.setattr("perdure.engine.indexing.outbox_store.UNDONE", "never")


# ---------------------------------------------------------------- versions


def writes_version_one_always(patch: Patch) -> None:
    final = NodeDraft._final
    patch.setattr(NodeDraft, "_final", lambda *given: replace(final(*given), version=1))


def overwrites_any_version(patch: Patch) -> None:
    patch.setattr(nodes, "_refuse_unless_next", nothing)


def revives_what_was_archived(patch: Patch) -> None:
    def refuse(node: ContextNode, stored: StoredNode) -> None:
        if node.version != stored.node.version + 1:
            raise nodes._occupied(node.place)

    patch.setattr(nodes, "_refuse_unless_next", refuse)


class BeginsAnywhere(Nodes):
    def _refuse_unless_first(self, node: ContextNode) -> None: ...


def replaces_metadata(patch: Patch) -> None:
    final = NodeDraft._final
    patch.setattr(
        NodeDraft,
        "_final",
        lambda self, node, *more: replace(final(self, node, *more), metadata=node.metadata),
    )


class ForgetsMetadataOnTheWay(Nodes):
    def move_node(self, from_uri: str, to_uri: str, ctx: RequestContext) -> None:
        super().move_node(from_uri, to_uri, ctx)
        moved = self.read_node(to_uri, ctx)
        self.write_node(moved.revised(metadata=dict.fromkeys(moved.metadata)), ctx)


def takes_times_from_the_caller(patch: Patch) -> None:
    final = NodeDraft._final

    def reported(self: NodeDraft, node: ContextNode, *more: Any) -> ContextNode:  # noqa: ANN401
        done = final(self, node, *more)
        return replace(done, created_at=node.created_at, updated_at=node.updated_at)

    patch.setattr(NodeDraft, "_final", reported)


class WritesTheFirstOnly(Nodes):
    def write_nodes(self, nodes: Iterable[ContextNode], ctx: RequestContext) -> None:
        super().write_nodes(list(nodes)[:1], ctx)


class WritesOneAfterAnother(Nodes):
    def write_nodes(self, nodes: Iterable[ContextNode], ctx: RequestContext) -> None:
        for node in nodes:
            super().write_nodes([node], ctx)


def expects_nothing(patch: Patch) -> None:
    def put(self: NodeDraft, locator: Locator, text: str | None, found: object) -> None:
        self.changes[locator] = text

    patch.setattr(NodeDraft, "put", put)


# ---------------------------------------------------------------- reach


def reaches_other_accounts(patch: Patch) -> None:
    patch.setattr(RequestContext, "may_see", lambda *_: True)


def reaches_other_users(patch: Patch) -> None:
    patch.setattr(RequestContext, "reaches", lambda *_: True)


class LooksBeforeItAsks(Nodes):
    def read_node(self, uri: str, ctx: RequestContext) -> ContextNode:
        self.active(Uri.parse(uri))
        return super().read_node(uri, ctx)


def ignores_what_was_shown(patch: Patch) -> None:
    healthy = RequestContext.reaches

    def reaches(self: RequestContext, owner_space: str) -> bool:
        return healthy(replace(self, visible_owner_spaces=frozenset()), owner_space)

    patch.setattr(RequestContext, "reaches", reaches)


def knows_no_admins(patch: Patch) -> None:
    healthy = RequestContext.reaches

    def reaches(self: RequestContext, owner_space: str) -> bool:
        return healthy(replace(self, role=Role.MEMBER), owner_space)

    patch.setattr(RequestContext, "reaches", reaches)


def lets_all_change_what_is_shared(patch: Patch) -> None:
    patch.setattr(RequestContext, "may_change", RequestContext.may_see)


def opens_every_session(patch: Patch) -> None:
    patch.setattr(Reach, "_reaches_session", lambda *_: True)


class ListsEverybody(Nodes):
    def _visible(
        self, place: Uri, names: list[str], put_away: set[str | None], ctx: RequestContext
    ) -> Iterable[str]:
        return names


# ---------------------------------------------------------------- states


class ReadsNothingAsEmpty(Nodes):
    def read_node(self, uri: str, ctx: RequestContext) -> ContextNode:
        try:
            return super().read_node(uri, ctx)
        except NodeNotFoundError:
            return ContextNode(uri=uri)


def shows_what_is_not_active(patch: Patch) -> None:
    patch.setattr(NodeReader, "_refuse_inactive", nothing)


class DeletesNothing(Nodes):
    def delete_node(self, uri: str, ctx: RequestContext) -> None:
        self.reach.require_writable(uri, ctx)


class DeletesTheMetaOnly(Nodes):
    def delete_node(self, uri: str, ctx: RequestContext) -> None:
        self._changing.remove(self.file(self.reach.require_writable(uri, ctx), META))


class DeletesWhatIsNotThere(Nodes):
    def delete_node(self, uri: str, ctx: RequestContext) -> None:
        with suppress(NodeNotFoundError):
            super().delete_node(uri, ctx)


class DeletesOnlyWhatItCanRead(Nodes):
    def delete_node(self, uri: str, ctx: RequestContext) -> None:
        self.read_node(uri, ctx)
        super().delete_node(uri, ctx)


class ArchivesByDeleting(Nodes):
    def archive_node(self, uri: str, ctx: RequestContext) -> None:
        self.delete_node(uri, ctx)


class ArchivesNothing(Nodes):
    def archive_node(self, uri: str, ctx: RequestContext) -> None: ...


class ArchivesTheAbsent(Nodes):
    def archive_node(self, uri: str, ctx: RequestContext) -> None:
        with suppress(NodeNotFoundError):
            super().archive_node(uri, ctx)


Also = Callable[[NodeDraft], None]


class TakesNothingBack(Nodes):
    def unarchive_node(self, uri: str, ctx: RequestContext, also: Also = nothing) -> None: ...


class TakesAnythingBack(Nodes):
    def unarchive_node(self, uri: str, ctx: RequestContext, also: Also = nothing) -> None:
        with suppress(NodeNotFoundError):
            super().unarchive_node(uri, ctx, also)


# ---------------------------------------------------------------- moving


class MovesByCopying(Nodes):
    def move_node(self, from_uri: str, to_uri: str, ctx: RequestContext) -> None:
        node = self.read_node(from_uri, ctx)
        self.write_node(replace(node, uri=to_uri, version=1, relations=(), owner_space=""), ctx)


class MovesTheMetaOnly(MovesByCopying):
    def move_node(self, from_uri: str, to_uri: str, ctx: RequestContext) -> None:
        super().move_node(from_uri, to_uri, ctx)
        self._changing.remove(self.file(Uri.parse(from_uri), META))


class MovesByMakingAnew(MovesByCopying):
    def move_node(self, from_uri: str, to_uri: str, ctx: RequestContext) -> None:
        super().move_node(from_uri, to_uri, ctx)
        self.delete_node(from_uri, ctx)


class StaysWithItsOwner(Nodes):
    def move_node(self, from_uri: str, to_uri: str, ctx: RequestContext) -> None:
        if Uri.parse(from_uri).owner_space != Uri.parse(to_uri).owner_space:
            raise AccessDeniedError(to_uri)
        super().move_node(from_uri, to_uri, ctx)


class MovesOverOthers(Nodes):
    def move_node(self, from_uri: str, to_uri: str, ctx: RequestContext) -> None:
        with suppress(NodeNotFoundError):
            self.delete_node(to_uri, ctx)
        super().move_node(from_uri, to_uri, ctx)


class MovesTheArchived(Nodes):
    def move_node(self, from_uri: str, to_uri: str, ctx: RequestContext) -> None:
        with suppress(NodeNotFoundError):
            self.unarchive_node(from_uri, ctx)
        super().move_node(from_uri, to_uri, ctx)


class MovesToWhereItIs(Nodes):
    def move_node(self, from_uri: str, to_uri: str, ctx: RequestContext) -> None:
        if from_uri != to_uri:
            super().move_node(from_uri, to_uri, ctx)


class IsFollowedByNobody(Nodes):
    def _followers(self, place: Uri, ctx: RequestContext) -> Iterator[StoredNode]:
        return iter(())


class IsFollowedByAll(Nodes):
    def _followers(self, place: Uri, ctx: RequestContext) -> Iterator[StoredNode]:
        return (self.active(other) for other in self._backlinks.leading_to(place))


def shows_the_new_name(patch: Patch) -> None:
    def renamed(content: str, follow: Callable[[str], Uri | None], *_: object) -> str:
        new = next(filter(None, map(follow, links.targets(content))), None)
        return content if new is None else re.sub(r"\[\[[^]]*tabs[^]]*]]", f"[[{new}]]", content)

    patch.setattr(nodes, "relinked", renamed)


def breaks_tables(patch: Patch) -> None:
    healthy = links.relinked
    patch.setattr(nodes, "relinked", lambda *given: healthy(*given).replace("\\|", "|"))


class LeavesItsOwnLinks(Nodes):
    def _plan_arrival(
        self, draft: NodeDraft, stored: StoredNode, new: Uri, ctx: RequestContext
    ) -> None:
        edges = tuple(replace(edge, from_uri=str(new)) for edge in stored.node.relations)
        moved = stored.node.revised(uri=str(new), owner_space="", relations=edges)
        draft.write(moved, replace(stored, files=dict.fromkeys(stored.files)))


def names_skills_by_their_category(patch: Patch) -> None:
    patch_links(patch, "_link_text", lambda place, _: f"{place.category}/{place.name}")


# ---------------------------------------------------------------- listing


class ListsBackwards(Nodes):
    def list_children(self, uri: str, ctx: RequestContext) -> list[str]:
        return super().list_children(uri, ctx)[::-1]


class ListsThePlaceItself(Nodes):
    def list_children(self, uri: str, ctx: RequestContext) -> list[str]:
        return super().list_children(uri, ctx) or [uri]


class ListsPlainNamesOnly(Nodes):
    def _named(self, place: Uri, segments: list[str]) -> list[str]:
        return [segment for segment in segments if segment.isalnum()]


class ListsWhateverIsThere(Nodes):
    def list_children(self, uri: str, ctx: RequestContext) -> list[str]:
        return [
            f"{uri}/{segment}" for segment in self._segments(self.reach.require_visible(uri, ctx))
        ]


def marks_nothing_as_archived(patch: Patch) -> None:
    patch.setattr(NodeDraft, "mark", nothing)


class LeavesFolders(Nodes):
    def clear(self, place: Uri) -> None: ...


# ---------------------------------------------------------------- frontmatter and edits


def writes_a_title(patch: Patch) -> None:
    healthy = nodes._content_file

    def titled(node: ContextNode, stored: StoredNode | None) -> str:
        return f"---\ntitle: {node.title}\n---\n{healthy(node, stored)}"

    patch.setattr(nodes, "_content_file", titled)


def drops_lines_that_it_did_not_write(patch: Patch) -> None:
    patch.setattr(nodes, "_content_file", lambda node, _stored: node.content)


def knows_plain_fences_only(patch: Patch) -> None:
    patch.setattr(frontmatter, "_OPENING", re.compile(r"\A---\n"))
    patch.setattr(frontmatter, "_CLOSING", re.compile(r"^---\n", re.MULTILINE))


def takes_any_frontmatter(patch: Patch) -> None:
    patch.setattr(frontmatter, "properties", lambda _: {})


def refuses_edits_of_broken_frontmatter(patch: Patch) -> None:
    healthy = node_files.edited_content

    def edited(found_text: str | None) -> tuple[str, str]:
        lines, body = healthy(found_text)
        frontmatter.properties(lines)
        return lines, body

    patch.setattr(reader, "edited_content", edited)


def sees_no_edits(patch: Patch) -> None:
    def take(self: NodeTexts, name: str, written: Callable[[str], Any], edited: object) -> Any:  # noqa: ANN401
        return written(self._unbroken(name))

    patch.setattr(NodeTexts, "take", take)


def refuses_missing_summaries(patch: Patch) -> None:
    def edited(found_text: str | None) -> str:
        if found_text is None:
            raise InvalidValueError("it is gone. Fix: write it.")
        return found_text

    patch.setattr(reader, "edited_abstract", edited)


class DoesNotCountEdits(Nodes):
    def load(self, place: Uri) -> StoredNode | None:
        stored = super().load(place)
        if stored is None:
            return None
        node = replace(stored.node, version=stored.meta.version, basis="")
        return replace(stored, node=node)


class ForgetsWhatItWasBasedOn(Writing):
    def instead(self, node: ContextNode) -> ContextNode:
        return replace(node, basis="")


def looks_at_the_content_only(patch: Patch) -> None:
    patch.setattr(NodeFiles, "basis", property(lambda self: self.cids.get(CONTENT, "")))


def compares_with_the_meta_only(patch: Patch) -> None:
    patch.setattr(
        StoredNode,
        "is_unchanged",
        lambda self, name, text: self.meta.cids.get(name) == cid_of(text),
    )


class AdoptsNothing(Nodes):
    def adopt(self, uri: str, ctx: RequestContext) -> bool:
        return False


def finds_no_earlier_text(patch: Patch) -> None:
    patch.setattr(Recorded, "earlier", lambda *_: iter(()))


class NamesNoProblem(Nodes):
    def load(self, place: Uri) -> StoredNode | None:
        stored = super().load(place)
        return stored and replace(stored, node=replace(stored.node, problems=()))


class TakesBrokenForAbsent(Nodes):
    def active(self, place: Uri, files: NoteTexts | None = None) -> StoredNode:
        try:
            return super().active(place, files)
        except BrokenNodeError:
            raise not_found(place) from None


# ---------------------------------------------------------------- edges


class AddsTheFirstOnly(Relations):
    def upsert_edges(self, edges: Sequence[RelationEdge], ctx: RequestContext) -> None:
        super().upsert_edges(edges[:1], ctx)


def dates_edges_anew(patch: Patch) -> None:
    patch.setattr(nodes, "_dated", lambda edge, _: edge)


class RelatesBothWays(Relations):
    def upsert_edges(self, edges: Sequence[RelationEdge], ctx: RequestContext) -> None:
        back = [replace(e, from_uri=e.to_uri, to_uri=e.from_uri) for e in edges]
        super().upsert_edges([*edges, *back], ctx)


class RaisesForTheAbsent(Relations):
    def get_edges(self, uri: str, ctx: RequestContext) -> list[RelationEdge]:
        self._nodes.read_node(uri, ctx)
        return super().get_edges(uri, ctx)


class RemovesAllEdges(Relations):
    def remove_edges(self, edges: Sequence[RelationEdge], ctx: RequestContext) -> None:
        for one in edges:
            super().remove_edges(self._nodes.read_node(one.from_uri, ctx).relations, ctx)


class WipesTheNode(Nodes):
    def relate(
        self,
        uris: Sequence[str],
        change: Callable[[ContextNode], ContextNode],
        ctx: RequestContext,
    ) -> None:
        super().relate(uris, lambda node: replace(change(node), content=""), ctx)


class RefusesNoEdge(Relations):
    def _refuse(self, edge: RelationEdge, ctx: RequestContext) -> None: ...


def changes_whatever_it_is_told_to(patch: Patch) -> None:
    patch.setattr(Reach, "require_writable", lambda _self, uri, _ctx: Uri.parse(uri))
    patch.setattr(Reach, "require_visible", lambda _self, uri, _ctx: Uri.parse(uri))


class PutsTheLightestFirst(Relations):
    def get_one_hop(self, uri: str, ctx: RequestContext, limit: int = 3) -> list[RelationEdge]:
        return sorted(self.get_edges(uri, ctx), key=lambda e: e.weight)[:limit]


class GivesAllNeighbours(Relations):
    def get_one_hop(self, uri: str, ctx: RequestContext, limit: int = 3) -> list[RelationEdge]:
        return super().get_one_hop(uri, ctx, 1000)


# ---------------------------------------------------------------- links
def patch_links(patch: Patch, name: str, value: object) -> None:
    """Replace a name of `links` wherever it is imported."""
    for module in (links, nodes):
        if hasattr(module, name):
            patch.setattr(module, name, value)


def knows_plain_links_only(patch: Patch) -> None:
    healthy = markdown.links
    plain = re.compile(r"\[\[[a-z-]+\]\]")
    patch_links(
        patch,
        "links",
        lambda text: [each for each in healthy(text) if plain.match(text, each.start)],
    )


def knows_no_code(patch: Patch) -> None:
    healthy = markdown.links
    patch_links(patch, "links", lambda text: healthy(re.sub("[`~]", "-", text)))


def takes_stray_ticks_for_code(patch: Patch) -> None:
    healthy = markdown.links
    patch_links(patch, "links", lambda text: healthy(re.sub("`[^`]*`", "", text)))


def links_to_what_is_not_there(patch: Patch) -> None:
    patch.setattr(NodeReader, "is_active", lambda *_: True)


def looks_far_away_first(patch: Patch) -> None:
    candidates = links._candidates
    patch_links(patch, "_candidates", lambda *given: reversed(list(candidates(*given))))


def ignores_categories(patch: Patch) -> None:
    owned = links._owned_candidates
    patch_links(patch, "_owned_candidates", lambda _, *given: owned("", *given))


def links_to_itself(patch: Patch) -> None:
    def resolve(target: str, start: Uri, places: links.LinkTargets) -> Uri | None:
        found = (p for p in links._candidates(target, start, places) if places.is_active(p))
        return next(found, None)

    patch_links(patch, "resolve", resolve)


def takes_other_accounts_for_its_own(patch: Patch) -> None:
    resolve = links.resolve
    patch_links(
        patch,
        "resolve",
        lambda target, *given: resolve(target.replace("//other/", "//acme/"), *given),
    )


class GivesOneEdgeForEachTarget(Relations):
    def get_edges(self, uri: str, ctx: RequestContext) -> list[RelationEdge]:
        return list({edge.to_uri: edge for edge in super().get_edges(uri, ctx)}.values())


def files_uris_by_their_last_part(patch: Patch) -> None:
    patch_links(patch, "name_in", lambda target: slugify(target.removesuffix(".md").split("/")[-1]))


def takes_any_folder_for_a_category(patch: Patch) -> None:
    patch.setattr(NodeReader, "_named", lambda _self, _place, segments: segments)


def sees_no_links(patch: Patch) -> None:
    patch.setattr("perdure.context.links._mentions", lambda *_: iter(()))


# ---------------------------------------------------------------- what leads to a node


def looks_for_links_only(patch: Patch) -> None:
    patch_links(patch, "names_of_edges", lambda _: set())


class RemembersWhatLedHere(Relations):
    def get_incoming(self, uri: str, ctx: RequestContext) -> list[RelationEdge]:
        found: list[RelationEdge] = self.__dict__.setdefault(uri, super().get_incoming(uri, ctx))
        return found


def follows_from_now_on(patch: Patch) -> None:
    patch.setattr(IndexFollower, "behind", lambda *_: [])


class PassesOverTheBroken(Relations):
    def get_incoming(self, uri: str, ctx: RequestContext) -> list[RelationEdge]:
        found = super().get_incoming(uri, ctx)
        return [e for e in found if not self._nodes.read_node(e.from_uri, ctx).problems]


class FindsOneOnly(Relations):
    def get_incoming(self, uri: str, ctx: RequestContext) -> list[RelationEdge]:
        return super().get_incoming(uri, ctx)[:1]
