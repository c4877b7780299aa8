"""Finding candidates and ranking them: by words and by meaning, by what is around and above."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from perdure.context.reading import NodeReader
from perdure.context.relations import edges_of, heaviest
from perdure.engine.recall import score
from perdure.engine.recall.confirmation import Confirmation
from perdure.engine.recall.question import ParsedQuestion, content_words
from perdure.engine.recall.result import TraceStep
from perdure.engine.recall.score import PassageCandidate, PassageCandidates, RetrievalConfig
from perdure.index.contract import Filters, KeptIndex
from perdure.index.words import stems
from perdure.model import Level, SeedHit
from perdure.model.record import ACCOUNT, record_id
from perdure.model.values import ROLES

_PASSAGES = {"level": Level.CONTENT.value}
_WHOLES = {"level": Level.OVERVIEW.value}
_MOST_WORDS = 40
"""So many words of a text are looked for in another one."""
_SUMMARIES = {"level": (Level.ABSTRACT.value, Level.OVERVIEW.value)}


Embed = Callable[[Callable[[], str]], Sequence[float]]
"""Returns the vector of a question, which is asked for if there is a model; else an empty one."""


class CandidatePool(NamedTuple):
    found: PassageCandidates
    wholes: int
    """How many nodes match as a whole."""
    steps: list[TraceStep]


class Retriever:
    """Ranks what an index has to say to a question. What it finds is not confirmed yet."""

    def __init__(self, index: KeptIndex, reader: NodeReader, config: RetrievalConfig) -> None:
        self._index = index
        self._reader = reader
        self._config = config

    def gather(
        self,
        plan: ParsedQuestion,
        by_words: Sequence[SeedHit],
        embed: Embed,
        filters: Filters,
        project: str,
    ) -> CandidatePool:
        """Return the candidates, with what they and those around them are worth."""
        config, found, steps = self._config, PassageCandidates(), list[TraceStep]()
        most = config.candidates_in_project if project else config.candidates
        found.add_by_words(by_words)
        every = found.all  # and what is found later
        steps.append(
            TraceStep("words", f"{len(every)} passages have one of {', '.join(plan.words)}")
        )
        vector = embed(lambda: _as_asked_by_themselves(plan.question, every))
        parents = self._by_meaning(found, vector, filters, most, steps) if vector else {}
        trusted = self._trust(every, plan, filters) if vector else 1.0
        best = score.by_relevance(every, trusted, config)
        lenders = config.lenders_in_project if project else config.lenders

        def around() -> dict[str, float]:
            self._add_neighbours(found, filters, lenders)
            return self._wholes(plan, every, filters) if trusted else {}

        wholes = self._index.at_once(str(filters[ACCOUNT]), around)
        score.by_neighbours(every, config)
        if trusted:
            score.by_whole(every, wholes, best / trusted, config)
        if parents:
            self._by_parents(every, parents)
        return CandidatePool(found, len(wholes), steps)

    def rank(
        self,
        plan: ParsedQuestion,
        gathered: CandidatePool,
        filters: Filters,
        nodes: Confirmation,
        project: str,
    ) -> Iterator[PassageCandidate]:
        """Return what is worth reading, best first; without a vector, by words alone.

        What belongs to `project` comes before what is as good and does not.
        """
        config, found = self._config, gathered.found
        every = found.all
        if plan.times:
            score.by_date(every, plan.times, config)
        score.by_speaker(every, plan, config)
        score.by_role(every, plan, config)
        score.by_hotness(every, config)
        if plan.asks_for_past or plan.times:
            score.by_former(every, config)
        if project:
            score.by_project(every, project, config)
        ranked = self._by_relations(found, filters, nodes)
        told = f"{len(every)} candidates, {gathered.wholes} nodes as a whole"
        gathered.steps.append(TraceStep("ranking", told))
        return score.distinct(ranked)

    def passage(self, uri: str, text: str, filters: Filters) -> PassageCandidate | None:
        """Return the passage of a node that is most like a text; None if filters leave it out."""
        first = self._index.look([record_id(uri, Level.CONTENT)], filters)
        if not first:
            return None
        words = content_words(text)[:_MOST_WORDS]
        of_node = {**filters, **_PASSAGES, "uri": uri}
        hit = next(iter(self._index.search_by_text(words, of_node, 1)), first[0])
        return PassageCandidate.of(hit)

    # ------------------------------------------------------------ words
    def by_words(
        self, plan: ParsedQuestion, filters: Filters, *, project: str = ""
    ) -> list[SeedHit]:
        """Return the passages that have one of the words."""
        most = self._config.candidates_in_project if project else self._config.candidates
        return self._index.search_by_text(plan.words, {**filters, **_PASSAGES}, most)

    def _wholes(
        self, plan: ParsedQuestion, found: Collection[PassageCandidate], filters: Filters
    ) -> dict[str, float]:
        """Return how well the nodes of candidates match by all that they say."""
        uris = tuple(dict.fromkeys([each.hit.uri for each in found]))
        if not uris:
            return {}
        return self._index.match(plan.words, {**filters, **_WHOLES, "uri": uris}, len(uris))

    def _trust(
        self, found: Collection[PassageCandidate], plan: ParsedQuestion, filters: Filters
    ) -> float:
        """Return how far words can be trusted; those of a date are not expected in a text."""
        best = max(found, key=lambda each: (each.words, each.hit.id), default=None)
        if best is None or not best.words:
            return 0.0
        said = {*stems(best.hit.text), *stems(best.facts.speaker)}
        held = [word for word in plan.words if said.issuperset(stems(word))]
        account = str(filters[ACCOUNT])
        ceiling = self._index.ceiling(account, plan.timeless) or best.words
        covered = max(best.words, self._index.ceiling(account, held)) / ceiling
        more = 0.0 if best.facts.role else self._config.cover_of_note
        return score.trust(covered - more, len(held), plan, self._config)

    # ------------------------------------------------------------ meaning
    def _by_meaning(
        self,
        found: PassageCandidates,
        vector: Sequence[float],
        filters: Filters,
        most: int,
        steps: list[TraceStep],
    ) -> dict[str, float]:
        """Add the nearest passages, and those below the nearest summaries; return these."""
        search, config = self._index.search_by_vector, self._config
        found.add_by_vector(search(vector, {**filters, **_PASSAGES}, most))
        nearest = search(vector, {**filters, **_SUMMARIES}, config.expanded)
        parents = {hit.uri: score.nearness(hit.score, config) for hit in nearest}
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
            children = self._index.search_children(uri, vector, filters, self._config.children)
            for hit in children:
                if hit.level is Level.CONTENT:
                    yield hit
                elif hit.uri != uri:
                    pending.append(hit.uri)

    def _by_parents(
        self, found: Collection[PassageCandidate], parents: Mapping[str, float]
    ) -> None:
        """Give a passage something of what the summaries of its node and its folder are worth."""
        for candidate in found:
            uri = candidate.hit.uri
            near = max(parents.get(uri, 0.0), parents.get(uri.rpartition("/")[0], 0.0))
            if near:
                candidate.terms["parent"] = self._config.parent * near

    # ------------------------------------------------------------ around
    def _add_neighbours(self, found: PassageCandidates, filters: Filters, lenders: int) -> None:
        """Add the messages beside the best ones, which may say what was asked for."""
        if not any(each.facts.near for each in found.all):
            return
        best = sorted((-score.lent(each), each.hit.id, each) for each in found.all)
        wanted = {
            record_id(candidate.hit.uri, Level.CONTENT, number)
            for _, _, candidate in best[:lenders]
            for number in candidate.facts.near
        }
        for hit in self._index.look(sorted(wanted), filters) if wanted else ():
            found.add(hit)

    def _by_relations(
        self, found: PassageCandidates, filters: Filters, nodes: Confirmation
    ) -> list[PassageCandidate]:
        """Let the best lend to what they are related to; return all candidates, best first."""
        by_uri: dict[str, list[PassageCandidate]] = defaultdict(list)
        ranked, are_related = score.best_first(found.all), False
        for candidate in ranked:
            by_uri[candidate.hit.uri].append(candidate)
        best = list(by_uri.items())[: self._config.related]
        nodes.read(uri for uri, _ in best)
        for uri, candidates in best:
            stored = nodes.nodes[uri]
            if stored is None or not (stored.node.relations or "[" in stored.node.content):
                continue
            for edge in heaviest(edges_of(stored.node, self._reader, nodes.ctx)):
                share = self._config.relation * edge.weight * candidates[0].score
                for each in by_uri.get(edge.to_uri) or self._first(edge.to_uri, found, filters):
                    each.terms["relation"] = max(each.terms.get("relation", 0.0), share)
                    are_related = True
        return score.best_first(found.all) if are_related else ranked

    def _first(
        self, uri: str, found: PassageCandidates, filters: Filters
    ) -> list[PassageCandidate]:
        first = [record_id(uri, Level.CONTENT)]
        return [found.add(hit) for hit in self._index.look(first, filters)]


def _as_asked_by_themselves(question: str, found: Collection[PassageCandidate]) -> str:
    """Return a question about speakers as if they asked it: they say "I" of themselves."""
    names = sorted({name for candidate in found for name in candidate.facts.party} - set(ROLES))
    if not names:
        return question
    named = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})('s)?\b")
    return named.sub(lambda name: "my" if name[1] else "I", question)
