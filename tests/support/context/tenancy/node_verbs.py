"""The verbs of nodes and relations as any caller may call them, with their expected outcomes."""

import re
from dataclasses import replace

from perdure.errors import AccessDeniedError, NodeExistsError, NodeNotFoundError
from perdure.model import MENTIONS, ContextNode, RelationEdge, RequestContext, Uri
from tests.support.context.tenancy.calls import KNOWS, Answer, Ask, Asking, Make, demand, verb
from tests.support.context.tenancy.model import StoredNode

_LINK = re.compile(r"\[\[.*?\]\]")


class NodeVerbs(Asking):
    # ------------------------------------------------------------ writing
    @verb("nodes.write_node", 6)
    def write_node(self, ask: Ask) -> None:
        ctx, uri, target = ask.ctx, ask.here, ask.there
        node, stored = self._next(ask, uri)
        account = Uri.parse(uri).account
        linked = ask.flag(3) and target != uri and Uri.parse(target).account == account
        self.model.tell(stored.tokens, account, stored.space)

        def make(place: str) -> tuple[ContextNode, RequestContext]:
            owner = "" if Uri.parse(place).owner_space else node.owner_space
            relations = (RelationEdge(place, target, KNOWS),) if linked else ()
            return replace(node, uri=place, owner_space=owner, relations=relations), ctx

        answer = self.ask_of("nodes.write_node", ctx, make, uri)
        refusals = self._refusals(ask, node)
        if linked and not self.model.may_see(target, ctx):
            refusals.append(AccessDeniedError)
        if refusals == [AccessDeniedError] and not self.model.may_change(uri, ctx):
            self.denied(answer, ("nodes.write_node", ctx, make), uri)
        elif refusals:
            answer.refused(*refusals)
        else:
            answer.given()
            self._written(node, stored, ctx)
            self.model.replace_edges(stored, make(uri)[0].relations, ctx)
            self.model.put(uri, stored)

    @verb("nodes.write_nodes", 2)
    def write_nodes(self, ask: Ask) -> None:
        ctx = ask.ctx
        drafts = [self._next(ask, uri) for uri in dict.fromkeys((ask.here, ask.there))]
        for node, stored in drafts:
            self.model.tell(stored.tokens, node.account_id, stored.space)
        answer = self.ask("nodes.write_nodes", ctx, [node for node, _ in drafts], ctx)
        refusals = [refusal for node, _ in drafts for refusal in self._refusals(ask, node)]
        if refusals:
            answer.refused(*refusals)
            return
        answer.given()
        for node, stored in drafts:
            self._written(node, stored, ctx)
            self.model.put(node.uri, stored)

    @verb("nodes.exchange", 2)
    def exchange(self, ask: Ask) -> None:
        ctx, (node, stored) = ask.ctx, self._next(ask, ask.here)
        gone = [ask.there] if ask.there != node.uri else []
        self.model.tell(stored.tokens, node.account_id, stored.space)
        answer = self.ask("nodes.exchange", ctx, [node], gone, ctx)
        refusals = self._refusals(ask, node)
        for uri in gone:
            if not self.model.may_change(uri, ctx):
                refusals.append(AccessDeniedError)
            elif self.model.active(uri) is None:
                refusals.append(NodeNotFoundError)
        if refusals:
            answer.refused(*refusals)
            return
        answer.given()
        self._written(node, stored, ctx)
        self.model.put(node.uri, stored)
        for uri in gone:
            del self.model.nodes[uri]

    def _next(self, ask: Ask, uri: str) -> tuple[ContextNode, StoredNode]:
        """Return a node that follows the stored one, or that the caller takes for the first."""
        own = f"user:{self.cast.users[ask.odd % 3] if ask.flag(5) else ask.ctx.user_id}"
        place = Uri.parse(uri)
        claims = "" if place.owner_space else own
        node, stored = self.drafted(uri, claims or place.owner_space, ask.there)
        before = self.model.nodes.get(uri)
        if before is not None and not (ask.flag(0) and ask.flag(1)):
            node = replace(node, version=before.version + 1)
            stored.version, stored.edges = node.version, self.model.hidden_edges(before, ask.ctx)
        stored.space = self.model.space_of(uri) or own
        return node, stored

    def _refusals(self, ask: Ask, node: ContextNode) -> list[type[Exception]]:
        uri, ctx = node.uri, ask.ctx
        if not self.model.may_change(uri, ctx):
            return [AccessDeniedError]
        before = self.model.nodes.get(uri)
        if before is not None and (before.archived or node.version == 1):
            return [NodeExistsError]
        claimed = self.model.space_of(uri) or node.owner_space
        if not self.model.reaches(ctx, ctx.account_id, claimed):
            return [AccessDeniedError]
        return []

    def _written(self, node: ContextNode, stored: StoredNode, ctx: RequestContext) -> None:
        """Let a session that was nobody's be whose the store says, if that is in reach."""
        if not self.model.space_of(node.uri):
            stored.space = self.world.nodes.read_node(node.uri, ctx).owner_space
            demand(self.model.reaches(ctx, ctx.account_id, stored.space), f"gave away {node.uri}")

    # ------------------------------------------------------------ reading
    @verb("nodes.read_node", 4)
    def read_node(self, ask: Ask) -> None:
        ctx, uri, stored = ask.ctx, ask.here, self.model.active(ask.here)
        answer = self.ask("nodes.read_node", ctx, uri, ctx)
        if not self.model.may_see(uri, ctx):
            self.denied(answer, ("nodes.read_node", ctx, lambda uri: (uri, ctx)), uri)
        elif stored is None:
            answer.refused(NodeNotFoundError)
        else:
            self.check_node(answer.given(), stored, ctx)

    @verb("nodes.exists", 2)
    def exists(self, ask: Ask) -> None:
        """Let all ask, everywhere: it is quick, and finds every mistake about who is who."""
        self.ask("nodes.exists", ask.ctx, ask.here, ask.ctx).given()
        for ctx in (replace(ask.ctx, user_id=user) for user in self.cast.users):
            for uri in self.places:
                found = self.world.nodes.exists(uri, ctx)
                seen = self.model.may_see(uri, ctx) and self.model.active(uri) is not None
                demand(found is seen, f"exists({uri}) is {found} for {ctx}")

    @verb("nodes.list_children", 4)
    def list_children(self, ask: Ask) -> None:
        place, ctx = Uri.parse(ask.here), ask.ctx
        folder = str(Uri(place.account, place.path[: ask.odd % (len(place.path) + 1)]))
        answer = self.ask("nodes.list_children", ctx, folder, ctx)
        if not self.model.may_see(folder, ctx):
            answer.refused(AccessDeniedError)
            return
        listed = answer.given()
        assert isinstance(listed, list)
        must, may = self.model.below(folder, ctx)
        demand(must <= set(listed) <= may, f"{folder} lists {listed} for {ctx}: {must} / {may}")

    @verb("nodes.siblings", 2)
    def siblings(self, ask: Ask) -> None:
        ctx, uri = ask.ctx, ask.here
        place = Uri.parse(uri)
        owner = "" if place.owner_space else f"user:{ctx.user_id}"

        def make(uri: str) -> tuple[ContextNode, RequestContext]:
            return ContextNode(uri=uri, owner_space=owner), ctx

        answer = self.ask_of("nodes.siblings", ctx, make, uri)
        if not self.model.may_see(str(place.parent), ctx):
            answer.refused(AccessDeniedError)
            return
        beside = {
            (other, stored.abstract)
            for other in self.places
            if other != uri and Uri.parse(other).parent == place.parent
            if (stored := self.model.active(other)) and self.model.may_see(other, ctx)
        }
        listed = answer.given()
        assert isinstance(listed, list)
        demand(set(listed) == beside, f"beside {uri} are {listed} for {ctx}, not {beside}")

    # ------------------------------------------------------------ putting away, removing
    @verb("nodes.delete_node")
    def delete_node(self, ask: Ask) -> None:
        if self._changes("nodes.delete_node", ask, self.model.nodes.get(ask.here)):
            del self.model.nodes[ask.here]

    @verb("nodes.archive_node", 2)
    def archive_node(self, ask: Ask) -> None:
        stored = self.model.active(ask.here)
        if self._changes("nodes.archive_node", ask, stored) and stored:
            stored.archived, stored.version, stored.edited = True, stored.version + 1, False

    @verb("nodes.unarchive_node", 2)
    def unarchive_node(self, ask: Ask) -> None:
        put_away = [uri for uri, stored in self.model.nodes.items() if stored.archived]
        if put_away and ask.flag(2):
            ask = replace(ask, here=put_away[ask.odd % len(put_away)])
        stored = self.model.nodes.get(ask.here)
        archived = stored if stored and stored.archived else None
        if self._changes("nodes.unarchive_node", ask, archived) and archived:
            archived.archived, archived.version = False, archived.version + 1

    @verb("nodes.relate")
    def relate(self, ask: Ask) -> None:
        """Let the edges be as they are, which is no change."""
        ctx, stored = ask.ctx, self.model.active(ask.here)
        make = lambda uri: ([uri], lambda node: node, ctx)  # noqa: E731 - used once
        answer = self.ask_of("nodes.relate", ctx, make, ask.here)
        if not self.model.may_change(ask.here, ctx):
            self.denied(answer, ("nodes.relate", ctx, make), ask.here)
        elif stored is None:
            answer.refused(NodeNotFoundError)

    def _changes(self, name: str, ask: Ask, stored: StoredNode | None) -> bool:
        """Ask for a change of one node that must be there; say whether it was made."""
        ctx, uri = ask.ctx, ask.here
        answer = self.ask(name, ctx, uri, ctx)
        if not self.model.may_change(uri, ctx):
            self.denied(answer, (name, ctx, lambda uri: (uri, ctx)), uri)
            return False
        if stored is None:
            answer.refused(NodeNotFoundError)
            return False
        answer.given()
        return True

    # ------------------------------------------------------------ edits by hand, and the index
    @verb("edit", 2)
    def edit(self, ask: Ask) -> None:
        stored = self.model.active(ask.here)
        if stored is None or self.world.edit is None:
            return
        text = f"By hand: {self.secret()}\n"
        stored.content += text
        stored.version += not stored.edited
        stored.edited = True
        self.model.confide(ask.here)
        self.world.edit(ask.here, text)
        self.files = self.world.snapshot()

    @verb("nodes.adopt", 2)
    def adopt(self, ask: Ask) -> None:
        ctx, uri, stored = ask.ctx, ask.here, self.model.nodes.get(ask.here)
        answer = self.ask("nodes.adopt", ctx, uri, ctx)
        if not self.model.may_change(uri, ctx):
            self.denied(answer, ("nodes.adopt", ctx, lambda uri: (uri, ctx)), uri)
            return
        edited = stored is not None and stored.edited
        demand(answer.given() is edited, f"adopted {uri}: {answer.value}")
        if stored is not None:
            stored.edited = False

    @verb("nodes.move_node", 5)
    def move_node(self, ask: Ask) -> None:
        ctx, old, new = ask.ctx, ask.here, ask.there
        stored = self.model.active(old)
        free = [uri for uri in self.places if uri not in self.model.nodes]
        own = [uri for uri in free if self.model.may_change(uri, ctx)]
        if own and ask.flag(2):
            new = own[ask.odd % len(own)]
        if old == new:
            return
        followers = [uri for uri in self.places if self._may_follow(uri, old, ctx)]
        make = lambda old, new: (old, new, ctx)  # noqa: E731 - used once
        answer = self.ask_of("nodes.move_node", ctx, make, old, new)
        if not (self.model.may_change(old, ctx) and self.model.may_change(new, ctx)):
            self.denied(answer, ("nodes.move_node", ctx, make), old, new)
        elif stored is None:
            answer.refused(NodeNotFoundError)
        elif new in self.model.nodes:
            answer.refused(NodeExistsError)
        elif (new, KNOWS) not in stored.edges or answer.error is None:  # else it led to itself
            answer.given()
            stored.edges.pop((new, KNOWS), None)
            self._moved(stored, old, new, ctx)
            for uri in followers:
                self._followed(uri, old, new)

    def _may_follow(self, uri: str, old: str, ctx: RequestContext) -> bool:
        stored = self.model.active(uri)
        return uri != old and stored is not None and self.model.may_change(uri, ctx)

    def _moved(self, stored: StoredNode, old: str, new: str, ctx: RequestContext) -> None:
        node = self.world.nodes.read_node(new, ctx)
        demand(
            _unlinked(node.content) == _unlinked(stored.content),
            f"{new} has not the content of {old}",
        )
        del self.model.nodes[old]
        before, place = stored.links, Uri.parse(new)
        moved = replace(stored, content=node.content, version=stored.version + 1, edited=False)
        for link in moved.links - before:
            shared = {node.owner_space, f"account:{place.account}"}
            demand(
                self.model.space_of(link) in shared, f"{new} has a link to {link} since it moved"
            )
        moved.space = self.model.space_of(new)
        self._written(node, moved, ctx)
        self.model.put(new, moved)

    def _followed(self, uri: str, old: str, new: str) -> None:
        """Let a node lead to the new place; its links, only if all who read it may know."""
        stored = self.model.nodes[uri]
        node = self.world.nodes.read_node(uri, self.root(Uri.parse(uri).account))
        if node.version == stored.version:
            return
        spaces = {self.model.space_of(old), self.model.space_of(new)}
        shared = {stored.space, f"account:{Uri.parse(uri).account}"}
        known = node.content == stored.content or spaces <= shared
        demand(known, f"a link in {uri} tells that {old} is {new} now")
        demand(_unlinked(node.content) == _unlinked(stored.content), f"{uri} was changed by a move")
        stored.edges = {
            (new if to == old else to, kind): r for (to, kind), r in stored.edges.items()
        }
        stored.content, stored.version, stored.edited = node.content, stored.version + 1, False


def _unlinked(content: str) -> str:
    return _LINK.sub("[[]]", content)


class RelationVerbs(Asking):
    # ------------------------------------------------------------ reading
    @verb("relations.get_edges", 4)
    def get_edges(self, ask: Ask) -> None:
        answer = self.ask("relations.get_edges", ask.ctx, ask.here, ask.ctx)
        self._check_outgoing(ask, _edges(answer))

    @verb("relations.get_one_hop")
    def get_one_hop(self, ask: Ask) -> None:
        limit = ask.odd % 4
        answer = self.ask("relations.get_one_hop", ask.ctx, ask.here, ask.ctx, limit)
        few = _edges(answer)
        demand(len(few) <= limit, f"{len(few)} edges, and not {limit}")
        every = _edges(self.ask("relations.get_edges", ask.ctx, ask.here, ask.ctx))
        demand(len(few) == min(limit, len(every)), "an edge in reach was left out")
        demand(all(edge in every for edge in few), "an edge came from nowhere")

    @verb("relations.get_incoming", 4)
    def get_incoming(self, ask: Ask) -> None:
        ctx, uri = ask.ctx, ask.here
        edges = _edges(self.ask("relations.get_incoming", ctx, uri, ctx))
        starts = [
            (start, stored)
            for start in self.places
            if (stored := self.model.active(start)) and self.model.may_see(start, ctx)
        ]
        must = set()
        if self.model.may_see(uri, ctx):
            must = {
                (start, kind) for start, stored in starts for to, kind in stored.edges if to == uri
            }
        actual = {(edge.from_uri, edge.relation_type) for edge in edges}
        written = {each for each in actual if each[1] != MENTIONS}
        demand(written == must, f"to {uri} lead {written} for {ctx}, not {must}")
        for edge in edges:
            self._check_mention(edge, ctx)
        linking = {start for start, stored in starts if self._leads(start, stored, uri, ctx)}
        mentioned = {start for start, kind in actual if kind == MENTIONS}
        demand(linking <= mentioned, f"{linking - mentioned} lead to {uri} too, for {ctx}")

    def _check_outgoing(self, ask: Ask, edges: list[RelationEdge]) -> None:
        ctx, uri, stored = ask.ctx, ask.here, self.model.active(ask.here)
        if stored is None or not self.model.may_see(uri, ctx):
            demand(edges == [], f"{edges} were shown to {ctx}")
            return
        written = {(e.to_uri, e.relation_type) for e in edges if e.relation_type != MENTIONS}
        must = set(self.model.visible_edges(stored, ctx))
        demand(written == must, f"from {uri} lead {written} for {ctx}, not {must}")
        for edge in edges:
            self._check_mention(edge, ctx)
        mentioned = {edge.to_uri for edge in edges if edge.relation_type == MENTIONS}
        links = {to for to in stored.links if self._leads(uri, stored, to, ctx)}
        demand(links <= mentioned, f"{uri} leads to {links - mentioned} too, for {ctx}")

    def _check_mention(self, edge: RelationEdge, ctx: RequestContext) -> None:
        for uri in (edge.from_uri, edge.to_uri):
            demand(self.model.may_see(uri, ctx), f"{edge} was shown to {ctx}")
        mention = edge.relation_type == MENTIONS
        demand(not mention or self.model.active(edge.to_uri), f"{edge} leads nowhere")

    def _leads(self, start: str, stored: StoredNode, to: str, ctx: RequestContext) -> bool:
        """Whether a link leads to a place, for a caller who sees where it starts."""
        inside = Uri.parse(to).account == Uri.parse(start).account and to != start
        there = self.model.active(to) is not None and self.model.may_see(to, ctx)
        return inside and there and to in stored.links

    # ------------------------------------------------------------ changing
    @verb("relations.upsert_edges", 4)
    def upsert_edges(self, ask: Ask) -> None:
        reason = self.secret()
        if self._skip(ask):
            return
        self.model.tell([reason], *self._space(ask.here))
        make = _created(ask.ctx, reason)
        answer = self.ask_of("relations.upsert_edges", ask.ctx, make, ask.here, ask.there)
        start = self.model.active(ask.here)
        if self._out_of_reach(ask):
            self.denied(answer, ("relations.upsert_edges", ask.ctx, make), ask.here, ask.there)
        elif start is None or self.model.active(ask.there) is None:
            answer.refused(NodeNotFoundError)
        else:
            answer.given()
            start.edges[ask.there, KNOWS] = reason
            start.version, start.edited = start.version + 1, False

    @verb("relations.remove_edges", 2)
    def remove_edges(self, ask: Ask) -> None:
        if self._skip(ask):
            return
        make = _created(ask.ctx, "")
        answer = self.ask_of("relations.remove_edges", ask.ctx, make, ask.here, ask.there)
        start = self.model.active(ask.here)
        if self._out_of_reach(ask):
            self.denied(answer, ("relations.remove_edges", ask.ctx, make), ask.here, ask.there)
        elif start is None:
            answer.refused(NodeNotFoundError)
        else:
            answer.given()
            if start.edges.pop((ask.there, KNOWS), None) is not None:
                start.version, start.edited = start.version + 1, False

    def _skip(self, ask: Ask) -> bool:
        """Whether such an edge is impossible for every caller."""
        accounts = {Uri.parse(uri).account for uri in (ask.here, ask.there)}
        return ask.here == ask.there or len(accounts) > 1

    def _out_of_reach(self, ask: Ask) -> bool:
        seen = self.model.may_see(ask.there, ask.ctx)
        return not (seen and self.model.may_change(ask.here, ask.ctx))

    def _space(self, uri: str) -> tuple[str, str]:
        return Uri.parse(uri).account, self.model.space_of(uri)


def _created(ctx: RequestContext, reason: str) -> Make:
    return lambda here, there: ([RelationEdge(here, there, KNOWS, reason=reason)], ctx)


def _edges(answer: Answer) -> list[RelationEdge]:
    edges = answer.given()
    assert isinstance(edges, list)
    return edges
