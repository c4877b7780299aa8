"""Retrieval: finds candidates by words and vectors, and ranks them with their surroundings."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from perdure.context.links import edges_of, heaviest
from perdure.context.reader import NodeReader
from perdure.engine.recall import score
from perdure.engine.recall.confirmation import Confirmation
from perdure.engine.recall.question import ParsedQuestion, content_words
from perdure.engine.recall.result import TraceStep
from perdure.engine.recall.score import CONFIG, PassageCandidate, PassageCandidates
from perdure.index.contract import Filters, NodeIndex
from perdure.index.sql import stems
from perdure.model import Level, SeedHit
from perdure.model.node import ACCOUNT, record_id
from perdure.model.values import ROLES

_PASSAGES = {"level": Level.CONTENT.value}
_WHOLES = {"level": Level.OVERVIEW.value}
_MAX_WORDS = 40
"""Search for at most this many words of one text in another."""
_SUMMARIES = {"level": (Level.ABSTRACT.value, Level.OVERVIEW.value)}


Embed = Callable[[Callable[[], str]], Sequence[float]]
"""Returns the vector of the question that it calls for; without a model, an empty one."""


class CandidatePool(NamedTuple):
    found: PassageCandidates
    wholes: int
    """How many whole nodes match."""
    steps: list[TraceStep]


class Retriever:
    """Finds and ranks the passages of an index for a question. They are not confirmed yet."""

    def __init__(self, index: NodeIndex, reader: NodeReader) -> None:
        self._index = index
        self._reader = reader

    def gather(
        self,
        asked: ParsedQuestion,
        by_words: Sequence[SeedHit],
        embed: Embed,
        filters: Filters,
        project: str,
    ) -> CandidatePool:
        """Return the candidates with their relevance and that of their neighbours."""
        found, steps = PassageCandidates(), list[TraceStep]()
        most = CONFIG.candidates_in_project if project else CONFIG.candidates
        found.add_by_words(by_words)
        every = found.all  # a view, which has later additions too
        steps.append(
            TraceStep("words", f"{len(every)} passages have one of {', '.join(asked.words)}")
        )
        vector = embed(lambda: _in_first_person(asked.text, every))
        parents = self._by_meaning(found, vector, filters, most, steps) if vector else {}
        trusted = self._trust(every, asked, filters) if vector else 1.0
        best = score.by_relevance(every, trusted)
        lenders = CONFIG.lenders_in_project if project else CONFIG.lenders

        def around() -> dict[str, float]:
            self._add_neighbours(found, filters, lenders)
            return self._wholes(asked, every, filters) if trusted else {}

        wholes = self._index.read_snapshot(str(filters[ACCOUNT]), around)
        score.by_neighbours(every)
        if trusted:
            score.by_whole(every, wholes, best / trusted)
        if parents:
            self._by_parents(every, parents)
        return CandidatePool(found, len(wholes), steps)

    def rank(
        self,
        asked: ParsedQuestion,
        pool: CandidatePool,
        filters: Filters,
        nodes: Confirmation,
        project: str,
    ) -> Iterator[PassageCandidate]:
        """Return the relevant candidates, best first; without a vector, by words alone.

        Memories of `project` rank before equally good ones that do not belong to it.
        """
        found = pool.found
        every = found.all
        if asked.times:
            score.by_date(every, asked.times)
        score.by_speaker(every, asked)
        score.by_role(every, asked)
        score.by_hotness(every)
        if asked.asks_for_past or asked.times:
            score.by_former(every)
        if project:
            score.by_project(every, project)
        ranked = self._by_relations(found, filters, nodes)
        text = f"{len(every)} candidates, {pool.wholes} nodes as a whole"
        pool.steps.append(TraceStep("ranking", text))
        return score.distinct(ranked)

    def passage(self, uri: str, text: str, filters: Filters) -> PassageCandidate | None:
        """Return the passage of a node most similar to a text; None if filters exclude the node."""
        first = self._index.hits_by_id([record_id(uri, Level.CONTENT)], filters)
        if not first:
            return None
        words = content_words(text)[:_MAX_WORDS]
        of_node = {**filters, **_PASSAGES, "uri": uri}
        hit = next(iter(self._index.search_by_text(words, of_node, 1)), first[0])
        return PassageCandidate.of(hit)

    # ------------------------------------------------------------ words
    def by_words(
        self, asked: ParsedQuestion, filters: Filters, *, project: str = ""
    ) -> list[SeedHit]:
        """Return the passages that contain one of the words."""
        most = CONFIG.candidates_in_project if project else CONFIG.candidates
        return self._index.search_by_text(asked.words, {**filters, **_PASSAGES}, most)

    def _wholes(
        self, asked: ParsedQuestion, found: Collection[PassageCandidate], filters: Filters
    ) -> dict[str, float]:
        """Return how well the whole nodes of the candidates match, by URI."""
        uris = tuple(dict.fromkeys([each.hit.uri for each in found]))
        if not uris:
            return {}
        return self._index.match(asked.words, {**filters, **_WHOLES, "uri": uris}, len(uris))

    def _trust(
        self, found: Collection[PassageCandidate], asked: ParsedQuestion, filters: Filters
    ) -> float:
        """Return how far words can be trusted; the words of a date need not be in a text."""
        best = max(found, key=lambda each: (each.words, each.hit.id), default=None)
        if best is None or not best.words:
            return 0.0
        present = {*stems(best.hit.text), *stems(best.facts.speaker)}
        held = [word for word in asked.words if present.issuperset(stems(word))]
        account = str(filters[ACCOUNT])
        ceiling = self._index.ceiling(account, asked.timeless) or best.words
        covered = max(best.words, self._index.ceiling(account, held)) / ceiling
        more = 0.0 if best.facts.role else CONFIG.cover_of_note
        return score.trust(covered - more, len(held), asked)

    # ------------------------------------------------------------ meaning
    def _by_meaning(
        self,
        found: PassageCandidates,
        vector: Sequence[float],
        filters: Filters,
        most: int,
        steps: list[TraceStep],
    ) -> dict[str, float]:
        """Add the nearest passages and those below the nearest summaries; return the summaries."""
        search = self._index.search_by_vector
        found.add_by_vector(search(vector, {**filters, **_PASSAGES}, most))
        nearest = search(vector, {**filters, **_SUMMARIES}, CONFIG.expanded)
        parents = {hit.uri: score.nearness(hit.score) for hit in nearest}
        for hit in self._below(nearest, vector, filters):
            found.add_by_vector([hit])
        steps.append(TraceStep("meaning", f"{len(found.all)} passages with the nearest in meaning"))
        opened = ", ".join(f"{uri} {near:.2f}" for uri, near in parents.items())
        steps.append(TraceStep("summaries", f"opened {opened or 'none'}"))
        return parents

    def _below(
        self, summaries: Sequence[SeedHit], vector: Sequence[float], filters: Filters
    ) -> Iterator[SeedHit]:
        pending, seen = [hit.uri for hit in summaries], set[str]()
        while pending:
            uri = pending.pop(0)
            if uri in seen:
                continue
            seen.add(uri)
            children = self._index.search_children(uri, vector, filters, CONFIG.children)
            for hit in children:
                if hit.level is Level.CONTENT:
                    yield hit
                elif hit.uri != uri:
                    pending.append(hit.uri)

    def _by_parents(
        self, found: Collection[PassageCandidate], parents: Mapping[str, float]
    ) -> None:
        """Add a share of the nearness of a passage's node or folder summary."""
        for candidate in found:
            uri = candidate.hit.uri
            near = max(parents.get(uri, 0.0), parents.get(uri.rpartition("/")[0], 0.0))
            if near:
                candidate.terms["parent"] = CONFIG.parent * near

    # ------------------------------------------------------------ around
    def _add_neighbours(self, found: PassageCandidates, filters: Filters, lenders: int) -> None:
        """Add the messages next to the best ones, which may hold the answer."""
        if not any(each.facts.near for each in found.all):
            return
        best = sorted((-score.lent(each), each.hit.id, each) for each in found.all)
        wanted = {
            record_id(candidate.hit.uri, Level.CONTENT, number)
            for _, _, candidate in best[:lenders]
            for number in candidate.facts.near
        }
        for hit in self._index.hits_by_id(sorted(wanted), filters) if wanted else ():
            found.add(hit)

    def _by_relations(
        self, found: PassageCandidates, filters: Filters, nodes: Confirmation
    ) -> list[PassageCandidate]:
        """Add a share of the best nodes to related ones; return all candidates, best first."""
        by_uri: dict[str, list[PassageCandidate]] = defaultdict(list)
        ranked, are_related = score.best_first(found.all), False
        for candidate in ranked:
            by_uri[candidate.hit.uri].append(candidate)
        best = list(by_uri.items())[: CONFIG.related]
        nodes.read(uri for uri, _ in best)
        for uri, candidates in best:
            stored = nodes.nodes[uri]
            if stored is None or not (stored.node.relations or "[" in stored.node.content):
                continue
            for edge in heaviest(edges_of(stored.node, self._reader, nodes.ctx)):
                share = CONFIG.relation * edge.weight * candidates[0].score
                for each in by_uri.get(edge.to_uri) or self._first(edge.to_uri, found, filters):
                    each.terms["relation"] = max(each.terms.get("relation", 0.0), share)
                    are_related = True
        return score.best_first(found.all) if are_related else ranked

    def _first(
        self, uri: str, found: PassageCandidates, filters: Filters
    ) -> list[PassageCandidate]:
        first = [record_id(uri, Level.CONTENT)]
        return [found.add(hit) for hit in self._index.hits_by_id(first, filters)]


def _in_first_person(question: str, found: Collection[PassageCandidate]) -> str:
    """Return a question about speakers in their own words: with "I" and "my" for their names."""
    names = sorted({name for candidate in found for name in candidate.facts.party} - set(ROLES))
    if not names:
        return question
    named = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})('s)?\b")
    return named.sub(lambda name: "my" if name[1] else "I", question)
