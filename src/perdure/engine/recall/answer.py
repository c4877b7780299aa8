"""Recall: from a question to hits that canonical state confirms.

The retriever finds candidates by words and vectors, and ranks them with their surroundings.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from perdure.context.links import edges_of, heaviest
from perdure.context.reader import NodeReader, StoredNode
from perdure.engine.recall import score
from perdure.engine.recall.question import ParsedQuestion, Question, content_words, parse_question
from perdure.engine.recall.result import (
    Confirmation,
    Hint,
    HintKind,
    Hit,
    HitSection,
    PackedContext,
    RecallResult,
    Sources,
    TraceStep,
    hit_of,
    pack_hits,
)
from perdure.engine.recall.score import CONFIG, PassageCandidate, PassageCandidates, ValidityOrder
from perdure.errors import PerdureError
from perdure.index.contract import Embedder, Filters, NodeIndex
from perdure.index.sql import stems
from perdure.index.vectors import embed
from perdure.model import SUPERSEDED_BY, Level, RequestContext, SeedHit, Uri
from perdure.model.node import ACCOUNT, OWNER_SPACE, PROJECT, VALID_AT, record_id
from perdure.model.values import JSON, ROLES

_READ_TOGETHER = 20
"""Read at most this many nodes at a time, until there are enough hits."""
_MAX_SUCCESSORS = 50
"""Follow at most this many nodes along `superseded_by`."""


def recall(sources: Sources, question: Question, ctx: RequestContext) -> RecallResult:
    """Return the best hits that the caller may see, each as canonical state has it now."""
    now, project = sources.clock(), question.project
    asked = parse_question(question.text, now)
    embedder = _QuestionEmbedder(sources.embedder, sources.why_words)
    retriever = Retriever(sources.index, sources.reader)

    def gather() -> tuple[Filters, Sequence[SeedHit], CandidatePool | None]:
        filters = _filters(sources.index, question, ctx)
        found = retriever.by_words(asked, filters, project=project)
        if sources.embedder is not None:  # the model must not run while the index is locked
            return filters, found, None
        return (
            filters,
            found,
            retriever.gather(asked, found, embedder.vector, filters, project),
        )

    filters, found, pool = sources.index.read_snapshot(ctx.account_id, gather)
    if pool is None:
        pool = retriever.gather(asked, found, embedder.vector, filters, project)
    confirmation = ConfirmedHits(sources.reader, ctx, question.projects, together=question.top_k)
    candidates = retriever.rank(asked, pool, filters, confirmation, project)

    def passage(uri: str, text: str) -> PassageCandidate | None:
        return retriever.passage(uri, text, filters)

    order = ValidityOrder(
        asked,
        now,
        lambda hit: confirmation.superseded(hit, passage),
        most=question.top_k,
    )
    confirmed = confirmation.hits(candidates)
    ordered = order.ordered(confirmed) if question.valid_at is None else confirmed
    hits = tuple(islice(_distinct(ordered), question.top_k))
    steps = [_question_step(asked), *pool.steps, *order.steps(), confirmation.step()]
    budget = question.budget_tokens
    packed = None if budget is None else _packed(question, budget, hits, confirmation)
    return RecallResult(
        query=question.text,
        words=tuple(asked.words),
        hits=tuple(hit for hit in hits if hit in packed.hits) if packed else hits,
        index_lag=len(confirmation.stale),
        stale=frozenset(confirmation.stale),
        semantic=embedder.took_part,
        left_out=sum(hit not in packed.hits for hit in hits) if packed else 0,
        hints=tuple(embedder.hints),
        trace=tuple(steps),
        context=packed.markdown if packed else "",
        tokens=packed.tokens if packed else 0,
    )


def _packed(
    question: Question, budget: int, hits: Sequence[Hit], confirmation: "ConfirmedHits"
) -> PackedContext[Hit]:
    of_project = [hit for hit in hits if confirmation.is_of(hit.uri, question.project)]
    sections = [
        HitSection("Always", list(confirmation.profiles())),
        HitSection("Project", of_project),
        HitSection("Remembered", [hit for hit in hits if hit not in of_project]),
    ]
    return pack_hits(sections, budget)


def _filters(index: NodeIndex, question: Question, ctx: RequestContext) -> dict[str, JSON]:
    spaces = index.owner_spaces(ctx.account_id)
    seen = sorted(space for space in spaces if ctx.reaches(space))
    filters: dict[str, JSON] = {
        **(question.filters or {}),
        ACCOUNT: ctx.account_id,
        OWNER_SPACE: tuple(seen) or f"user:{ctx.user_id}",
    }
    if question.projects is not None:
        filters[PROJECT] = question.projects
    if question.valid_at is not None:
        filters[VALID_AT] = question.valid_at.isoformat()
    return filters


class _QuestionEmbedder:
    """Embeds the question; without a model, or if it fails, a hint gives the reason."""

    def __init__(self, embedder: Embedder | None, why_words: Hint | None) -> None:
        self._embedder = embedder
        self._why_words = why_words
        self.hints: list[Hint] = []
        self.took_part = False

    def vector(self, question: Callable[[], str]) -> Sequence[float]:
        if self._embedder is None:
            self.hints = [*filter(None, [self._why_words])]
            return ()
        try:
            text = question()
            vector = embed(self._embedder, [text])[0] if text.strip() else []
        except PerdureError as error:
            text = f"only words were compared, because the model failed: {error}"
            self.hints.append(Hint(HintKind.MODEL_FAILED, text))
            return ()
        self.took_part = bool(vector)
        return vector


class ConfirmedHits(Confirmation):
    """Hits whose node canonical state confirms."""

    def __init__(
        self,
        reader: NodeReader,
        ctx: RequestContext,
        projects: tuple[str, ...] | None = None,
        *,
        together: int = _READ_TOGETHER,
    ) -> None:
        super().__init__(reader, ctx, projects)
        self._together = min(together, _READ_TOGETHER)
        self.stale: set[str] = set()
        """Nodes that changed since they were indexed."""

    def hits(self, candidates: Iterable[PassageCandidate]) -> Iterator[Hit]:
        rest = iter(candidates)
        while some := list(islice(rest, self._together)):
            self.read(candidate.hit.uri for candidate in some)
            for candidate in some:
                stored = self.confirmed(candidate.hit, candidate.facts.cid)
                if stored is not None:
                    yield _hit(candidate, stored)
                elif self.nodes[candidate.hit.uri] is not None:
                    self.stale.add(candidate.hit.uri)

    def profiles(self) -> Iterator[Hit]:
        """Yield the profiles of the caller's user and agent, which any question may need."""
        ctx = self.ctx
        for kind, name in (("users", ctx.user_id), ("agents", ctx.agent_id)):
            uri = str(Uri(ctx.account_id, (kind, name, "memories", "profile")))
            stored = self.stored(uri)
            if stored is not None and stored.node.content.strip():
                yield hit_of(stored)

    def superseded(
        self, hit: Hit, passage: Callable[[str, str], PassageCandidate | None]
    ) -> list[Hit]:
        """Return what superseded a hit, directly or through others, newest first.

        An edge that leads out of reach or nowhere is ignored. `passage` returns the passage of a
        node that is most similar to a text.
        """
        found = (passage(uri, hit.snippet) for uri in reversed(self._successors(hit.uri)))
        return list(self.hits(filter(None, found)))

    def _successors(self, uri: str) -> list[str]:
        chain = [uri]
        for each in chain:  # grows during the loop
            stored = self.stored(each)
            edges = stored.node.relations if stored else ()
            targets = [edge.to_uri for edge in edges if edge.relation_type == SUPERSEDED_BY]
            for target in sorted(target for target in targets if self.stored(target) is not None):
                if target not in chain and len(chain) <= _MAX_SUCCESSORS:
                    chain.append(target)
        return chain[1:]

    def step(self) -> TraceStep:
        refused = sum(stored is None for stored in self.nodes.values())
        text = f"{len(self.nodes)} nodes looked at, {refused} refused, {len(self.stale)} changed"
        return TraceStep("confirmation", text)


def _hit(candidate: PassageCandidate, stored: StoredNode) -> Hit:
    facts, node = candidate.facts, stored.node
    session = node.place.session
    indexes = (facts.key[1],) if facts.key else ()
    return Hit(
        uri=candidate.hit.uri,
        cid=stored.cid,
        title=node.title,
        date=facts.date,
        snippet=candidate.hit.text,
        score=candidate.score,
        score_terms=dict(candidate.terms),
        lines=facts.lines,
        speaker=facts.speaker,
        role=facts.role,
        session_id=session,
        message_indexes=indexes,
        evidence=tuple((session, each) for each in indexes)
        or _evidence(stored, candidate.hit.text),
        category=node.category,
        owner_space=node.owner_space,
        project=node.project,
        valid_from=node.valid_from,
        valid_until=node.valid_until,
    )


def _evidence(stored: StoredNode, passage: str) -> tuple[tuple[str, int], ...]:
    """Return the messages that the statements in a passage rest on."""
    if not stored.node.metadata.get("statements"):
        return ()
    from perdure.engine.learn.evidence import support_of  # noqa: PLC0415 - few nodes were learned
    from perdure.engine.learn.statements import statements  # noqa: PLC0415 - as above

    support = support_of(stored.node)
    found = (support[each.cid] for each in statements(passage) if each.cid in support)
    return tuple(dict.fromkeys(mention.key for each in found for mention in each.mentions))


def _distinct(hits: Iterable[Hit]) -> Iterator[Hit]:
    """Yield hits, without messages that add nothing to an earlier statement that rests on them."""
    stated: dict[tuple[str, int], list[str]] = {}
    for hit in hits:
        if not hit.session_id:
            for each in hit.evidence:
                stated.setdefault(each, []).append(hit.snippet)
        elif any(
            set(stems(hit.snippet)) <= set(stems(text))
            for each in hit.evidence
            for text in stated.get(each, ())
        ):
            continue
        yield hit


def _question_step(asked: ParsedQuestion) -> TraceStep:
    """Return what was understood of a question; what it does not have is left out."""
    found = {
        "words": asked.words,
        "times": [time.text for time in asked.times],
        "about": ["what was"] if asked.asks_for_past else [],
    }
    texts = [f"{name} {', '.join(each)}" for name, each in found.items() if each]
    return TraceStep("plan", "; ".join(texts))


# ---------------------------------------------------------------- retrieval
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
