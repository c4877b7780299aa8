"""Remember one statement that an agent or the user words."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from perdure.context.nodes import NodeDraft, Nodes
from perdure.dataclass import dataclass
from perdure.engine.learn import statements
from perdure.engine.learn.evidence import Evidence, cid_of, with_anchors
from perdure.engine.learn.extractors import rule_for
from perdure.engine.learn.merge import KnownMemory
from perdure.engine.learn.policies import policy_for
from perdure.engine.learn.slugs import owner_space, slug_of
from perdure.engine.learn.statements import Statement
from perdure.engine.session_commit import CandidateResult
from perdure.engine.sessions import Sessions
from perdure.errors import (
    ConcurrentModificationError,
    InvalidValueError,
    NodeExistsError,
    NodeNotFoundError,
    VersionMismatchError,
)
from perdure.model import CandidateMemory, ContextNode, RequestContext, Uri, WritePlan
from perdure.model.anchors import Anchors
from perdure.model.uri import KINDS, OF_THE_PERSON, PROFILE
from perdure.model.values import JSON, encodable, shown
from perdure.safety.secrets import SecretPolicy
from perdure.safety.validation import validate

_CATEGORIES = KINDS | {"person": PROFILE}
SPEAKERS = ("user", "agent")
_IMPERATIVE = frozenset({"rule", "preference"})
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Citation:
    """Words of a message that a statement rests on."""

    session: str
    message: int
    quote: str


@dataclass(frozen=True, slots=True)
class NewStatement:
    text: str
    kind: str
    project: str = ""
    replaces: tuple[str, ...] = ()
    """URIs of nodes, or texts of statements, that it replaces."""
    evidence: tuple[Citation, ...] = ()
    speaker: str = "user"
    reason: str = "remember"
    """The reason that history records."""
    anchors: Anchors | None = None
    """The files and branches that it names, as the checkout has them."""

    def __post_init__(self) -> None:
        if not encodable(self.text, "text").strip():
            raise InvalidValueError("the statement is empty. Fix: give one sentence.")
        if self.kind not in _CATEGORIES:
            known = ", ".join(_CATEGORIES)
            raise InvalidValueError(f"{shown(self.kind)} is not a kind. Fix: use one of {known}.")
        if self.speaker not in SPEAKERS:
            raise InvalidValueError(
                f"{shown(self.speaker)} is not a speaker. Fix: use user or agent."
            )
        fits = rule_for(" ".join(self.text.split())) or ("", "")
        if self.speaker != "user" and (self.kind in _IMPERATIVE or fits[0] == "rule"):
            raise InvalidValueError(
                "only the user can state a rule or a preference. Fix: state it as a fact."
            )


@dataclass(frozen=True, slots=True)
class RememberResult:
    uri: str
    text: str
    """The statement as it is stored."""
    outcome: str
    """`created`, `merged`, `appended`, or `skipped` if it was known."""
    merged_with: str = ""
    """The earlier statement that says the same."""
    replaced: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()
    """Statements that may be outdated from now on; both are stored."""
    lifted: int = 0
    """How many entries of the forgotten list were removed, because they match it."""


def remember(
    known: KnownMemory,
    statement: NewStatement,
    ctx: RequestContext,
    also: Callable[[NodeDraft], None],
) -> RememberResult:
    """Store a statement in the category of its kind, once; `also` joins the same commit."""
    now = datetime.now(UTC)
    given = _candidate(known.nodes, statement, now, ctx)
    candidate = with_anchors(validate(given, SecretPolicy.REFUSE).candidate, statement.anchors)
    for _ in range(_ATTEMPTS):
        planned = known.fresh()
        plan = policy_for(candidate.category, planned, lambda: now).plan(candidate, ctx)
        written = (Uri.parse(plan.uri), *(each.place for each in plan.doubted))
        before = {str(each): _statements(planned.at(each, ctx)) for each in written}
        planned.take(plan, ctx)
        try:
            known.nodes.because(statement.reason).exchange(planned.planned(), (), ctx, also=also)
        except (VersionMismatchError, NodeExistsError, ConcurrentModificationError):
            continue  # another writer was faster: plan again
        return _remembered(candidate, plan, before)
    raise ConcurrentModificationError(
        f"other writers changed the same memories during {_ATTEMPTS} attempts. "
        "Nothing was written. Fix: try again."
    )


def _candidate(
    nodes: Nodes, statement: NewStatement, when: datetime, ctx: RequestContext
) -> CandidateMemory:
    category = _CATEGORIES[statement.kind]
    text = " ".join(statement.text.split())
    quotes = _evidence(nodes, statement, ctx)
    replaces: list[JSON] = [
        each if each.startswith("ctx://") else statements.cid_of(each)
        for each in statement.replaces
    ]
    metadata: dict[str, JSON] = {
        "kind": statement.kind,
        "by": statement.speaker,
        "evidence": [each.as_json() for each in quotes],
        "project": "" if category in OF_THE_PERSON else statement.project,
        "replaces": replaces,
        "session_id": ctx.session_id,
    }
    owner = f"user:{ctx.user_id}" if category == "case" else owner_space(category, ctx)
    return CandidateMemory(
        category=category,
        content=text,
        slug="" if category == PROFILE else slug_of(text),
        owner_space=owner,
        when=when,
        quote=quotes[0].quote if quotes else "",
        speaker=statement.speaker,
        metadata={name: value for name, value in metadata.items() if value},
    )


def _evidence(nodes: Nodes, statement: NewStatement, ctx: RequestContext) -> list[Evidence]:
    """Return the citations that are in messages of this session, and ignore others."""
    cited = [each for each in statement.evidence if each.session and each.session == ctx.session_id]
    try:
        place = Uri(ctx.account_id, ("sessions", ctx.session_id)) if cited else None
        texts = [each.content for each in Sessions(nodes).messages(place, ctx)] if place else []
    except NodeNotFoundError:
        return []
    return [
        Evidence(each.message, cid_of(texts[each.message]), each.quote)
        for each in cited
        if 0 <= each.message < len(texts) and each.quote in texts[each.message]
    ]


def _remembered(
    candidate: CandidateMemory, plan: WritePlan, before: Mapping[str, list[Statement]]
) -> RememberResult:
    known = {each.text for each in before[plan.uri]}
    new = [each.text for each in _statements(plan.node) if each.text not in known]
    old = {(uri, each.text) for uri, found in before.items() for each in found if each.doubted}
    doubted = [(node.uri, each) for node in plan.doubted for each in _statements(node)]
    return RememberResult(
        plan.uri,
        new[0] if new else plan.same or statements.plain(candidate.content),
        CandidateResult.by(candidate, plan).outcome.value,
        merged_with=plan.same,
        replaced=tuple(each.content.strip() for each in plan.former),
        doubted=tuple(e.text for uri, e in doubted if e.doubted and (uri, e.text) not in old),
    )


def _statements(node: ContextNode | None) -> list[Statement]:
    return statements.statements(node.content) if node else []
