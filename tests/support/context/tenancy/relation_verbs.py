"""What somebody may ask of the edges, and what must come of it."""

from perdure.errors import NodeNotFoundError
from perdure.model import MENTIONS, RelationEdge, RequestContext, Uri
from tests.support.context.tenancy.answers import Answer, demand
from tests.support.context.tenancy.asking import KNOWS, Ask, Asking, Make, verb
from tests.support.context.tenancy.model import StoredNode


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
            demand(edges == [], f"{edges} were told to {ctx}")
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
            demand(self.model.may_see(uri, ctx), f"{edge} was told to {ctx}")
        mention = edge.relation_type == MENTIONS
        demand(not mention or self.model.active(edge.to_uri), f"{edge} leads nowhere")

    def _leads(self, start: str, stored: StoredNode, to: str, ctx: RequestContext) -> bool:
        """Whether a link leads to a place, for somebody who sees where it starts."""
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
        """Whether no such edge can be, whoever asks."""
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
