"""Keep one statement that an agent or the user words, and say what it merged with or replaced."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from perdure.context.draft import Draft
from perdure.context.nodes import Nodes
from perdure.engine.learn import pages
from perdure.engine.learn.evidence import Evidence, cid_of
from perdure.engine.learn.extractors import CATEGORIES
from perdure.engine.learn.net import KINDS
from perdure.engine.learn.policies import policy_for
from perdure.engine.learn.slugs import owner_space, slug_of
from perdure.engine.saving.knowing import Ahead, KnownNodes
from perdure.engine.saving.outcome import Learning, Planned
from perdure.engine.sessions import Sessions
from perdure.engine.validate.secrets import SecretPolicy
from perdure.engine.validate.validating import validated
from perdure.errors import (
    ConcurrentModificationError,
    InvalidValueError,
    NodeExistsError,
    NodeNotFoundError,
    VersionMismatchError,
)
from perdure.model import CandidateMemory, ContextNode, RequestContext, Uri
from perdure.model.uri import PROFILE
from perdure.model.values import JSON, MAX_ABSTRACT, encodable, shortened, shown

PERSON = "person"
"""The kind of what is about the user, whatever the project."""
SPEAKERS = ("user", "agent")
_OF_THE_PERSON = frozenset({PROFILE, "preference"})
_IMPERATIVE = frozenset({"rule", "preference"})
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Cited:
    """Words of a message, which a statement rests on."""

    session: str
    message: int
    """Which message of the session, from 0."""
    quote: str


@dataclass(frozen=True, slots=True)
class Statement:
    """What is to be kept."""

    text: str
    kind: str
    project: str = ""
    replaces: tuple[str, ...] = ()
    """URIs of nodes, or the words of statements, that it replaces."""
    evidence: tuple[Cited, ...] = ()
    said_by: str = "user"
    session: str = ""

    def __post_init__(self) -> None:
        if not encodable(self.text, "text").strip():
            raise InvalidValueError("the statement is empty. Fix: give one sentence.")
        if self.kind not in {*KINDS, PERSON}:
            known = ", ".join((*KINDS, PERSON))
            raise InvalidValueError(f"{shown(self.kind)} is not a kind. Fix: use one of {known}.")
        if self.said_by not in SPEAKERS:
            raise InvalidValueError(f"{shown(self.said_by)} can't say it. Fix: use user or agent.")
        if self.said_by != "user" and self.kind in _IMPERATIVE:
            raise InvalidValueError(
                f"only what the user said is a {self.kind}. Fix: keep it as a fact."
            )


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of a statement."""

    uri: str
    text: str
    """The statement as it stands now."""
    outcome: str
    """`created`, `merged`, `appended`, or `skipped` if it was known."""
    merged_with: str = ""
    """The statement that says the same, which was there before."""
    replaced: tuple[str, ...] = ()
    """Statements that ended."""
    doubted: tuple[str, ...] = ()
    """Statements that may be outdated since now; both are kept."""
    lifted: int = 0
    """How many things that say so were forgotten before, and are not any more."""


Also = Callable[[Draft], None]


class Remembering:
    """Keeps statements. The same twice is one."""

    def __init__(
        self,
        nodes: Nodes,
        known: KnownNodes,
        learning: Learning,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._nodes = nodes
        self._known = known
        self._judge = learning.judge
        self._clock = clock

    def remember(
        self, statement: Statement, ctx: RequestContext, also: Also = lambda _draft: None
    ) -> Remembered:
        """Keep a statement by the category of its kind; `also` is done in the same commit."""
        candidate = validated(self._candidate(statement, ctx), SecretPolicy.REFUSE).candidate
        for _ in range(_ATTEMPTS):
            ahead = Ahead(self._known)
            policy = policy_for(candidate.category, ahead, self._judge, self._clock)
            plan = policy.plan(candidate, ctx)
            before = {each.uri: self._known.at(each.place, ctx) for each in plan.doubted}
            page = self._known.at(Uri.parse(plan.uri), ctx)
            ahead.take(plan, ctx)
            try:
                self._nodes.because("remember").exchange(ahead.nodes(), (), ctx, also=also)
            except (VersionMismatchError, NodeExistsError, ConcurrentModificationError):
                continue  # another writer was faster: plan with what is there now
            return _remembered(Planned.by(candidate, plan), page, before)
        raise ConcurrentModificationError(
            f"others change the same memories; {_ATTEMPTS} attempts came too late. "
            "Nothing was written. Fix: try again."
        )

    def _candidate(self, statement: Statement, ctx: RequestContext) -> CandidateMemory:
        category = CATEGORIES.get(statement.kind, PROFILE)
        text = " ".join(statement.text.split())
        quotes = self._evidence(statement, ctx)
        replaces: list[JSON] = [
            each if each.startswith("ctx://") else pages.cid_of(each) for each in statement.replaces
        ]
        metadata: dict[str, JSON] = {
            "kind": statement.kind,
            "by": statement.said_by,
            "evidence": [each.as_json() for each in quotes],
            "project": "" if category in _OF_THE_PERSON else statement.project,
            "replaces": replaces,
            "session_id": ctx.session_id,
        }
        owner = f"user:{ctx.user_id}" if category == "case" else owner_space(category, ctx)
        return CandidateMemory(
            category=category,
            content=text,
            slug="" if category == PROFILE else slug_of(text),
            abstract=shortened(text, MAX_ABSTRACT),
            confidence=1.0,
            owner_space=owner,
            when=self._clock(),
            quote=quotes[0].quote if quotes else "",
            speaker=statement.said_by,
            metadata={name: value for name, value in metadata.items() if value},
        )

    def _evidence(self, statement: Statement, ctx: RequestContext) -> list[Evidence]:
        """Return the quotes that are in messages which are kept; others prove nothing."""
        found: list[Evidence] = []
        for each in statement.evidence:
            if each.session != ctx.session_id:
                continue
            try:
                place = Uri(ctx.account_id, ("sessions", each.session))
                said = Sessions(self._nodes).messages(place, ctx)
            except NodeNotFoundError:
                continue
            if 0 <= each.message < len(said) and each.quote in said[each.message].content:
                content = said[each.message].content
                found.append(Evidence(each.message, cid_of(content), each.quote))
        return found


def _remembered(
    planned: Planned, page: ContextNode | None, before: Mapping[str, ContextNode | None]
) -> Remembered:
    """Return what a plan did to a page, as it was before."""
    plan = planned.plan
    assert plan is not None  # noqa: S101 - it is planned
    known = {each.cid for each in pages.statements(page.content)} if page else set()
    stands = pages.statements(plan.node.content) if plan.node else []
    new = [each.text for each in stands if each.cid not in known]
    return Remembered(
        plan.uri,
        new[0] if new else plan.same or pages.plain(planned.candidate.content),
        planned.outcome.value,
        merged_with=plan.same,
        replaced=tuple(each.content.strip() for each in plan.former),
        doubted=tuple(_newly_doubted(plan.doubted, before)),
    )


def _newly_doubted(
    nodes: Sequence[ContextNode], before: Mapping[str, ContextNode | None]
) -> list[str]:
    found: list[str] = []
    for node in nodes:
        was = before.get(node.uri)
        old = {each.cid for each in pages.statements(was.content) if each.doubted} if was else set()
        stands = pages.statements(node.content)
        found += [each.text for each in stands if each.doubted and each.cid not in old]
    return found
