"""Recall: from a question to hits that hold in canonical state."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice

from perdure.context.reading import NodeReader, Stored
from perdure.dataclass import dataclass
from perdure.engine.recall.confirmation import Confirmation
from perdure.engine.recall.question import ParsedQuestion, parse_question
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
from perdure.engine.recall.score import PassageCandidate, RetrievalConfig
from perdure.engine.recall.token_budget import HitSection, PackedContext, pack_hits
from perdure.engine.recall.validity import ValidityOrder
from perdure.errors import (
    InvalidValueError,
    PerdureError,
)
from perdure.index.contract import Embedder, Filters, KeptIndex
from perdure.index.memo import embed
from perdure.index.words import stems
from perdure.model import SUPERSEDED_BY, ContextType, RequestContext, SeedHit, Uri
from perdure.model.record import ACCOUNT, OWNER_SPACE, PROJECT, VALID_AT
from perdure.model.values import JSON, counted, encodable, moment

_FILTERS = ("category", "context_type", "session_id", "uri")
_READ_TOGETHER = 20
"""At most so many nodes are read at a time, until there are enough hits."""
_MOST_SUPERSEDING = 50
"""So many nodes are followed from one; who superseded itself more often is not told of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    text: str
    top_k: int = 10
    budget_tokens: int | None = None
    valid_at: date | None = None
    """Only what held at that time, or on that day, is of interest; None: what holds now is first.

    A `datetime` is a `date` too.
    """
    filters: Mapping[str, JSON] | None = None
    """Only what is filed so: category, context_type, session_id, uri."""
    project: str = ""
    """The project that is asked in. Its memories come first."""
    projects: tuple[str, ...] | None = None
    """Only memories of these projects, "" for those of none; None searches all projects."""

    def __post_init__(self) -> None:
        encodable(self.text, "question")
        encodable(self.project, "project")
        counted(self.top_k, "number of hits", least=1)
        if self.budget_tokens is not None:
            counted(self.budget_tokens, "budget of tokens")
        if type(self.valid_at) is not date and self.valid_at is not None:
            object.__setattr__(self, "valid_at", moment(self.valid_at, "valid time"))
        given = set(self.filters or {})
        if {ACCOUNT, OWNER_SPACE} & given:
            raise InvalidValueError(
                "whose memory is searched is not for a filter to say. Fix: ask as somebody else."
            )
        if unknown := given.difference(_FILTERS):
            raise InvalidValueError(
                f"recall has no filter {min(map(str, unknown))[:80]!a}. "
                f"Fix: use {', '.join(_FILTERS)}; for a time, valid_at."
            )
        if "context_type" in given:
            _demand_types((self.filters or {})["context_type"])


def _demand_types(value: JSON) -> None:
    """Refuse a type that no node has: nothing would be found, and nobody would know why."""
    known = [kind.value for kind in ContextType]
    for each in (value,) if isinstance(value, str) or not isinstance(value, Sequence) else value:
        if each not in known:
            raise InvalidValueError(
                f"no memory has the context_type {str(each)[:80]!a}. Fix: use {', '.join(known)}."
            )


def recall(sources: Sources, question: Question, ctx: RequestContext) -> RecallResult:
    """Return the best hits that the caller may see, each as canonical state has it now."""
    now, config, project = sources.clock(), RetrievalConfig(), question.project
    asked = parse_question(question.text, now)
    embedding = _QuestionEmbedder(sources.embedder, sources.why_words)
    retriever = Retriever(sources.index, sources.reader, config)

    def gather() -> tuple[Filters, Sequence[SeedHit], CandidatePool | None]:
        filters = _filters(sources.index, question, ctx)
        found = retriever.by_words(asked, filters, project=project)
        if sources.embedder is not None:  # which is not asked while others wait
            return filters, found, None
        return (
            filters,
            found,
            retriever.gather(asked, found, embedding.vector, filters, project),
        )

    filters, found, gathered = sources.index.at_once(ctx.account_id, gather)
    if gathered is None:
        gathered = retriever.gather(asked, found, embedding.vector, filters, project)
    confirming = ConfirmedHits(sources.reader, ctx, question.projects, together=question.top_k)
    candidates = retriever.rank(asked, gathered, filters, confirming, project)

    def passage(uri: str, text: str) -> PassageCandidate | None:
        return retriever.passage(uri, text, filters)

    holding = ValidityOrder(
        asked,
        now,
        lambda hit: confirming.superseded(hit, passage),
        most=question.top_k,
        config=config,
    )
    confirmed = confirming.hits(candidates)
    ordered = holding.ordered(confirmed) if question.valid_at is None else confirmed
    hits = tuple(islice(_distinct(ordered), question.top_k))
    steps = [_plan_step(asked), *gathered.steps, *holding.steps(), confirming.step()]
    budget = question.budget_tokens
    packed = None if budget is None else _packed(question, budget, hits, confirming)
    return RecallResult(
        query=question.text,
        words=tuple(asked.words),
        hits=tuple(hit for hit in hits if hit in packed.hits) if packed else hits,
        index_lag=len(confirming.stale),
        stale=frozenset(confirming.stale),
        semantic=embedding.took_part,
        left_out=sum(hit not in packed.hits for hit in hits) if packed else 0,
        hints=tuple(embedding.hints),
        trace=tuple(steps),
        context=packed.markdown if packed else "",
        tokens=packed.tokens if packed else 0,
    )


def _packed(
    question: Question, budget: int, hits: Sequence[Hit], confirming: "ConfirmedHits"
) -> PackedContext[Hit]:
    of_project = [hit for hit in hits if confirming.is_of(hit.uri, question.project)]
    tiers = [
        HitSection("Always", list(confirming.profiles())),
        HitSection("Project", of_project),
        HitSection("Remembered", [hit for hit in hits if hit not in of_project]),
    ]
    return pack_hits(tiers, budget)


def _filters(index: KeptIndex, question: Question, ctx: RequestContext) -> dict[str, JSON]:
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
    """Asks the model, if there is one; says so if there is none, or if it fails."""

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
    """Hits of what canonical state confirms."""

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
        """Nodes that the index has otherwise than they are."""

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
        """Yield what the caller's user and agent are, which is of use to any question."""
        ctx = self.ctx
        for kind, name in (("users", ctx.user_id), ("agents", ctx.agent_id)):
            uri = str(Uri(ctx.account_id, (kind, name, "memories", "profile")))
            stored = self.stored(uri)
            if stored is not None and stored.node.content.strip():
                yield hit_of(stored)

    def superseded(
        self, hit: Hit, passage: Callable[[str, str], PassageCandidate | None]
    ) -> list[Hit]:
        """Return what superseded a hit, what superseded that, and so on; the last comes first.

        Where an edge leads out of reach or nowhere, it ends there. `passage` returns the passage
        of a node that is most like a text.
        """
        found = (passage(uri, hit.snippet) for uri in reversed(self._chain(hit.uri)))
        return list(self.hits(filter(None, found)))

    def _chain(self, uri: str) -> list[str]:
        chain = [uri]
        for each in chain:  # which grows meanwhile
            for target in self._superseding(each):
                if target not in chain and len(chain) <= _MOST_SUPERSEDING:
                    chain.append(target)
        return chain[1:]

    def _superseding(self, uri: str) -> list[str]:
        stored = self.stored(uri)
        edges = stored.node.relations if stored else ()
        targets = [edge.to_uri for edge in edges if edge.relation_type == SUPERSEDED_BY]
        return sorted(target for target in targets if self.stored(target) is not None)

    def step(self) -> TraceStep:
        refused = sum(stored is None for stored in self.nodes.values())
        told = f"{len(self.nodes)} nodes looked at, {refused} refused, {len(self.stale)} changed"
        return TraceStep("confirmation", told)


def _hit(candidate: PassageCandidate, stored: Stored) -> Hit:
    told = candidate.facts
    session = stored.node.place.session
    indexes = (told.key[1],) if told.key else ()
    return Hit(
        uri=candidate.hit.uri,
        cid=stored.cid,
        title=stored.node.title,
        date=told.date,
        snippet=candidate.hit.text,
        score=candidate.score,
        score_terms=dict(candidate.terms),
        lines=told.lines,
        speaker=told.speaker,
        role=told.role,
        session_id=session,
        message_indexes=indexes,
        evidence=tuple((session, each) for each in indexes)
        or _evidence(stored, candidate.hit.text),
        category=stored.node.category,
        owner_space=stored.node.owner_space,
        project=stored.node.project,
        valid_from=stored.node.valid_from,
        valid_until=stored.node.valid_until,
    )


def _evidence(stored: Stored, passage: str) -> tuple[tuple[str, int], ...]:
    """Return the messages that the statements in a passage rest on."""
    if not stored.node.metadata.get("statements"):
        return ()
    from perdure.engine.learn.evidence import support_of  # noqa: PLC0415 - few nodes were learned
    from perdure.engine.learn.statements import statements  # noqa: PLC0415 - as above

    support = support_of(stored.node)
    found = (support[each.cid] for each in statements(passage) if each.cid in support)
    return tuple(dict.fromkeys(mention.key for each in found for mention in each.mentions))


def _distinct(hits: Iterable[Hit]) -> Iterator[Hit]:
    """Yield hits, but for messages that say no more than a statement before that rests on them."""
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


def _plan_step(asked: ParsedQuestion) -> TraceStep:
    """Say what was understood of a question; of what it has none, nothing."""
    parts = {
        "words": asked.words,
        "times": [time.text for time in asked.times],
        "about": ["what was"] if asked.asks_for_past else [],
    }
    told = [f"{name} {', '.join(each)}" for name, each in parts.items() if each]
    return TraceStep("plan", "; ".join(told))
