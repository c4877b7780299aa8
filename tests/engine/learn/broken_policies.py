"""Merge policies with one fault each. The name says the fault."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from itertools import count
from typing import ClassVar
from unittest.mock import patch

from perdure.engine.learn import merge, statements
from perdure.engine.learn.judge import Agreement, Comparison, compare
from perdure.engine.learn.merge import KnownMemory
from perdure.engine.learn.policies import policy_for
from perdure.engine.learn.slugs import place_of
from perdure.model import CandidateMemory, ContextNode, RequestContext, Uri, WriteAction, WritePlan

NOON = datetime(2026, 6, 1, tzinfo=UTC)
_calls = count()


class Faulty:
    """A policy of a category, without any fault."""

    category: ClassVar[str] = "profile"
    planned_as: ClassVar[str] = ""
    """As what it is planned for, if that is something else."""

    def __init__(self, known: KnownMemory) -> None:
        self.known = known
        kind = self.planned_as or self.category
        self.inner = policy_for(kind, known, lambda: NOON)

    @staticmethod
    def judge(old: str, new: str) -> Comparison:
        return compare(old, new)

    def plan(self, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        with patch.object(merge, "compare", self.judge):
            return self.changed(self.inner.plan(self.heard(candidate), ctx))

    def heard(self, candidate: CandidateMemory) -> CandidateMemory:
        return candidate

    def changed(self, plan: WritePlan) -> WritePlan:
        if plan.node is None:
            return plan
        return replace(plan, node=self.written(plan.node))

    def written(self, node: ContextNode) -> ContextNode:
        return node

    def page(self, candidate: CandidateMemory, ctx: RequestContext) -> ContextNode | None:
        return self.known.at(place_of(candidate, ctx.account_id), ctx)


# ---------------------------------------------------------------- shape
class ArchivesWhatIsKnown(Faulty):
    def changed(self, plan: WritePlan) -> WritePlan:
        if plan.action is WriteAction.CREATE:
            return plan
        return WritePlan(action=WriteAction.ARCHIVE, uri=plan.uri, reason=plan.reason)


class WritesAtOnce(Faulty):
    def plan(self, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        plan = super().plan(candidate, ctx)
        if plan.node is not None and ctx.session_id == "march":  # the one that is not saved
            self.known.nodes.write_nodes([plan.node, *plan.former], ctx)
        return plan


class CountsItsPlans(Faulty):
    def changed(self, plan: WritePlan) -> WritePlan:
        return replace(plan, reason=f"{plan.reason} {next(_calls)}")


# ---------------------------------------------------------------- once
class SaysItAgain(Faulty):
    def plan(self, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        page = self.page(candidate, ctx)
        if page is None:
            return super().plan(candidate, ctx)
        return merge.appended(page, candidate, ctx)


class SaysItOnceInEachSession(Faulty):
    def plan(self, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        page, plan = self.page(candidate, ctx), super().plan(candidate, ctx)
        if page is None or plan.action is WriteAction.SKIP:
            return plan
        return merge.appended(page, candidate, ctx)


class ForgetsItsMentions(Faulty):
    def written(self, node: ContextNode) -> ContextNode:
        return replace(node, metadata={**node.metadata, "statements": None})


class MergesWhatIsNearlyTheSame(Faulty):
    @staticmethod
    def judge(old: str, new: str) -> Comparison:
        near = SequenceMatcher(None, old, new).ratio() > 0.8
        return Comparison(Agreement.SAME if near else Agreement.DIFFERENT, "They are near.")


# ---------------------------------------------------------------- nothing is lost
class DropsWhatItSupersedes(Faulty):
    def changed(self, plan: WritePlan) -> WritePlan:
        return replace(plan, former=())


class ContradictsNothing(Faulty):
    @staticmethod
    def judge(old: str, new: str) -> Comparison:
        found = compare(old, new)
        contradicts = found.agreement is Agreement.CONTRADICTS
        return Comparison(Agreement.DIFFERENT, "It differs.") if contradicts else found


class BelievesWhoSpeaksLast(Faulty):
    def heard(self, candidate: CandidateMemory) -> CandidateMemory:
        return replace(candidate, when=NOON + timedelta(days=next(_calls)))


class ForgetsHowItWasWorded(Faulty):
    def heard(self, candidate: CandidateMemory) -> CandidateMemory:
        return replace(
            candidate, content=candidate.content.replace("over the spaces", "over spaces")
        )


class RemembersNoMerges(Faulty):
    def written(self, node: ContextNode) -> ContextNode:
        return replace(node, metadata={**node.metadata, "merges": None})


class TidiesUp(Faulty):
    def written(self, node: ContextNode) -> ContextNode:
        stands = statements.statements(node.content)
        tidy = "".join(statements.item(each.text, each.since) for each in stands)
        return replace(node, content=tidy)


# ---------------------------------------------------------------- each alone
class GathersWhatHappened(Faulty):
    category = "event"
    planned_as = "preference"


class KnowsNoDays(Faulty):
    category = "event"

    def heard(self, candidate: CandidateMemory) -> CandidateMemory:
        return replace(candidate, when=None)


# ---------------------------------------------------------------- others
class PutsTheNewestLast(Faulty):
    def plan(self, candidate: CandidateMemory, ctx: RequestContext) -> WritePlan:
        page, plan = self.page(candidate, ctx), super().plan(candidate, ctx)
        if page is None or plan.node is None:
            return plan
        content = page.content + statements.item(candidate.content)
        return replace(plan, node=replace(plan.node, content=content))


class WritesToAnotherOwner(Faulty):
    def heard(self, candidate: CandidateMemory) -> CandidateMemory:
        return replace(candidate, owner_space="user:bob")


class BringsBackWhatWasPutAway(Faulty):
    category = "preference"

    def __init__(self, known: KnownMemory) -> None:
        super().__init__(NothingTaken(known))


class NothingTaken(KnownMemory):
    """What is known, without archived nodes."""

    def __init__(self, known: KnownMemory) -> None:
        self.__dict__ = known.__dict__

    def taken(self, place: Uri, ctx: RequestContext) -> bool:
        del place, ctx
        return False
