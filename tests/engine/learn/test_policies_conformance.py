"""All four policies keep the contract of merge policies."""

from datetime import UTC, datetime

from perdure.engine.learn.merge import KnownMemory
from perdure.engine.learn.policies import MergePolicy, policy_for
from tests.support.merge import ALONE, JOINS, MergePolicySuite


def opened(category: str, known: KnownMemory) -> MergePolicy:
    return policy_for(category, known, lambda: datetime(2026, 6, 1, tzinfo=UTC))


class TestProfile(MergePolicySuite):
    promises = frozenset({JOINS})
    category = "profile"
    slug = ""

    @staticmethod
    def open_policy(known: KnownMemory) -> MergePolicy:
        return opened("profile", known)


class TestAggregateTopic(MergePolicySuite):
    promises = frozenset({JOINS})
    category = "preference"

    @staticmethod
    def open_policy(known: KnownMemory) -> MergePolicy:
        return opened("preference", known)


class TestAppendOnly(MergePolicySuite):
    promises = frozenset({ALONE})
    category = "event"

    @staticmethod
    def open_policy(known: KnownMemory) -> MergePolicy:
        return opened("event", known)


class TestSkillTool(MergePolicySuite):
    promises = frozenset({JOINS})
    category = "skill"
    owner_space = "agent:default"

    @staticmethod
    def open_policy(known: KnownMemory) -> MergePolicy:
        return opened("skill", known)
