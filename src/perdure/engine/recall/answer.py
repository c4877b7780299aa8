"""Recall: from a question to hits that canonical state confirms."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from perdure.context.reader import NodeReader, StoredNode
from perdure.engine.recall.confirmation import Confirmation
from perdure.engine.recall.question import ParsedQuestion, Question, parse_question
from perdure.engine.recall.result import (
    Hint,
    HintKind,
    Hit,
    RecallResult,
    Sources,
    TraceStep,
    hit_of,
)
from perdure.engine.recall.retrieval import CandidatePool, Retriever
from perdure.engine.recall.score import PassageCandidate
from perdure.engine.recall.token_budget import HitSection, PackedContext, pack_hits
from perdure.engine.recall.validity import ValidityOrder
from perdure.errors import PerdureError
from perdure.index.contract import Embedder, Filters, NodeIndex
from perdure.index.sql import stems
from perdure.index.vectors import embed
from perdure.model import SUPERSEDED_BY, RequestContext, SeedHit, Uri
from perdure.model.node import ACCOUNT, OWNER_SPACE, PROJECT, VALID_AT
from perdure.model.values import JSON

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
