"""The contract of a merge policy as a suite that any implementation can run.

class TestMyPolicy(MergePolicySuite):
    promises = frozenset({JOINS})
    category = "preference"
    slug = "tabs"

    @staticmethod
    def open_policy(known: Known) -> MergePolicy:
        return MyPolicy(known)
"""

from contextlib import suppress
from dataclasses import replace
from itertools import permutations
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perdure.engine.learn import statements
from perdure.engine.learn.evidence import cid_of, merges_of
from perdure.engine.learn.judge import Agreement, compare
from perdure.engine.learn.merge import KnownMemory
from perdure.engine.learn.policies import MergePolicy
from perdure.errors import ContextError
from perdure.model import (
    SUPERSEDED_BY,
    CandidateMemory,
    ContextNode,
    RequestContext,
    Uri,
    WriteAction,
)
from perdure.testing.requirement import requirement
from perdure.testing.suite import Suite, examples, when
from tests.support.merge.world import ACCOUNT, ANA, World, saying, session

JOINS = "joins"
"""Candidates of one name join one page."""
ALONE = "alone"
"""Each candidate is a memory of its own."""

BOB = RequestContext(ACCOUNT, "bob", session_id="january")
HOME, MOVED = "Ana lives in Lisbon.", "Ana now lives in Porto."
JOB, DOG, DIET = "Ana works as a nurse.", "Ana has a dog called Rex.", "Ana is vegan."
TABS, TABS_TOO = "Ana prefers tabs over spaces.", "Ana prefers tabs over the spaces."
NEARLY = {
    "digits": ("The pot holds 3 litres.", "The pot holds 4 litres."),
    "dates": ("The lease ends on 2026-05-01.", "The lease ends on 2026-06-01."),
    "versions": ("The team uses Python 3.11.", "The team uses Python 3.12."),
    "a negation": ("Ana eats soup.", "Ana does not eat soup."),
    "names": ("Bo sings in the choir.", "Al sings in the choir."),
    "one word": (HOME, MOVED),
}
STRANGE = {
    "white space around it": "  Ana sings. \n",
    "several lines": "To ship:\nrun `make`\nand wait",
    "paragraphs": "To ship, do this.\n\nThen do that.",
    "a list": "To ship:\n- run make\n- wait",
    "a list of steps": "1. run make\n2. wait",
    "code": "Run this:\n```sh\nmake ship\n\n# done\n```",
    "only code": "```\n- make\n```",
    "a heading": "# Shipping\nrun make",
    "a heading by a line": "Shipping\n---\nrun make",
    "a table": "| a | b |\n|---|---|\n| 1 | 2 |",
    "a comment": "<!-- to do -->",
    "a line": "---",
    "a footnote": "[^1]: see there",
    "a day at its end": "Ana sings (since 2025-04-05)",
    "two days at its end": "Ana sings (since 2025-04-05) (since 2025-04-06)",
    "no day": "Ana sings (since 2025-99-05)",
    "separators": "Ana sings\u2028- and\x0bdances\x0c- and\x85- plays",
    "a carriage return": "Ana sings\r\n- and dances\r- and plays",
    "a task": "[ ] buy milk",
    "another script": "Ana wohnt in Köln, 福岡",
}
POOL = (
    *(HOME, MOVED, JOB, DOG, DIET, TABS, TABS_TOO, "Ana lives in Oslo."),
    *("The team uses Python 3.11.", "The team uses Python 3.12.", "Ana does not eat soup."),
    *STRANGE.values(),
)
BY_HAND = (
    "# Ana\n\nWhat I know of her.\n\n{}\n| day | what |\n|---|---|\n| Monday | tea |\n\n"
    "```\n- no item\n```\n\n> a quotation\n"
)


class MergePolicySuite(Suite):
    """Everything that a merge policy must do."""

    hooks = frozenset({"promises", "open_policy", "category", "slug", "owner_space"})
    known_promises = frozenset({JOINS, ALONE})

    category: ClassVar[str]
    """Of the candidates that the policy is for."""
    slug: ClassVar[str] = "first"
    owner_space: ClassVar[str] = "user:ana"

    @staticmethod
    def open_policy(known: KnownMemory) -> MergePolicy:
        """Return the policy under test, which asks `known`."""
        raise NotImplementedError("say how to open the policy under test")

    @pytest.fixture
    def world(self) -> World:
        return World(self.open_policy)

    def candidate(self, text: str, day: int = 5) -> CandidateMemory:
        first = CandidateMemory(
            category=self.category, content=text, slug=self.slug, owner_space=self.owner_space
        )
        return saying(first, text, day)

    # ---------------------------------------------------------------- shape
    def test_it_promises_that_candidates_join_or_that_they_do_not(self) -> None:
        assert len(self.promises) == 1

    @requirement("003-merge-plan-action")
    def test_a_plan_is_to_create_merge_append_or_skip(self, world: World) -> None:
        assert isinstance(world.policy, MergePolicy)
        texts = (HOME, JOB, HOME, MOVED, TABS, TABS_TOO)
        plans = [
            world.save(self.candidate(text, 5 + number), session(str(number)))
            for number, text in enumerate(texts)
        ]

        assert plans[0].action is WriteAction.CREATE
        allowed = {WriteAction.CREATE, WriteAction.MERGE, WriteAction.APPEND, WriteAction.SKIP}
        assert {plan.action for plan in plans} <= allowed
        assert all(plan.reason for plan in plans)

    def test_a_plan_writes_nothing(self, world: World) -> None:
        world.save(self.candidate(HOME))
        before = world.history.position(), world.contents()

        for text in (HOME, JOB, MOVED):
            world.policy.plan(self.candidate(text, 9), session("march"))

        assert (world.history.position(), world.contents()) == before

    def test_the_same_memory_gives_the_same_plan(self, world: World) -> None:
        world.save(self.candidate(HOME))

        for text in (HOME, JOB, MOVED):
            asked = self.candidate(text, 9), session("march")
            assert world.policy.plan(*asked) == world.policy.plan(*asked)

    # ---------------------------------------------------------------- once
    @pytest.mark.parametrize("text", [HOME, *STRANGE.values()], ids=["plain", *STRANGE])
    def test_the_same_candidate_twice_is_skipped(self, world: World, text: str) -> None:
        world.save(self.candidate(JOB, 3))
        world.save(self.candidate(text))
        before = world.contents()

        again = world.save(self.candidate(text))

        assert again.action is WriteAction.SKIP
        assert world.contents() == before

    @pytest.mark.parametrize("text", [HOME, *STRANGE.values()], ids=["plain", *STRANGE])
    def test_the_same_in_another_session_is_there_once(self, world: World, text: str) -> None:
        world.save(self.candidate(text))
        before = world.contents()

        world.save(self.candidate(text), session("march"))

        assert world.contents() == before

    @pytest.mark.parametrize("text", [HOME, *STRANGE.values()], ids=["plain", *STRANGE])
    def test_a_written_statement_has_the_mention_as_evidence(self, world: World, text: str) -> None:
        world.save(self.candidate(JOB, 3), session("before"))
        world.save(self.candidate(text))

        (mention,) = world.sayings(text)
        assert (mention.session, mention.evidence[0].cid) == ("january", cid_of(text))

    @pytest.mark.parametrize("pair", NEARLY.values(), ids=NEARLY)
    def test_what_differs_by_a_little_is_not_merged(
        self, world: World, pair: tuple[str, str]
    ) -> None:
        for number, text in enumerate(pair):
            world.save(self.candidate(text, 5 + number), session(str(number)))

        assert world.statements() == sorted(pair)

    # ---------------------------------------------------------------- nothing is lost
    def test_no_statement_is_lost(self) -> None:
        @settings(
            max_examples=examples(25),
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(
            stated=st.lists(
                st.tuples(st.sampled_from(POOL), st.integers(1, 28), st.integers(1, 3)), max_size=7
            )
        )
        @example(stated=[(HOME, 5, 1), (JOB, 6, 1), (MOVED, 20, 2)])
        def each_is_stored(stated: list[tuple[str, int, int]]) -> None:
            world = World(self.open_policy)
            for text, day, number in stated:
                before = set(world.statements())
                world.save(self.candidate(text, day), session(str(number)))
                now = world.statements()
                assert before <= set(now)
                assert any(_is_stated(text, each) for each in now)

        each_is_stored()

    @when(JOINS)
    def test_a_contradiction_keeps_what_held_before(self, world: World) -> None:
        world.save(self.candidate(HOME, 5))
        world.save(self.candidate(JOB, 6))

        plan = world.save(self.candidate(MOVED, 20), session("march"))

        (former,) = plan.former
        former_node = world.read(former.uri)
        assert [each.text for each in statements.statements(former_node.content)] == [HOME]
        (edge,) = former_node.relations
        assert (edge.to_uri, edge.relation_type) == (plan.uri, SUPERSEDED_BY)
        assert str(former_node.metadata["valid_until"]).startswith("2026-01-20")
        stands = [each.text for each in statements.statements(world.read(plan.uri).content)]
        assert sorted(stands) == sorted([MOVED, JOB])

    @when(JOINS)
    def test_the_order_of_commits_does_not_decide_what_holds(self, world: World) -> None:
        first = world.save(self.candidate(MOVED, 20), session("march"))

        world.save(self.candidate(HOME, 5))

        stands = [each.text for each in statements.statements(world.read(first.uri).content)]
        assert stands == [MOVED]
        assert world.statements() == sorted([HOME, MOVED])

    @when(JOINS)
    def test_a_merge_keeps_the_time_of_creation_and_both_parents(self, world: World) -> None:
        created = world.save(self.candidate(TABS))
        before = world.read(created.uri)

        merged = world.save(self.candidate(TABS_TOO, 9), session("march"))

        now = world.read(created.uri)
        assert (merged.action, merged.uri) == (WriteAction.MERGE, created.uri)
        assert (now.created_at, now.version) == (before.created_at, before.version + 1)
        assert now.content == before.content
        assert [each.session for each in world.sayings(TABS)] == ["january", "march"]
        assert [each.wording for each in world.sayings(TABS)] == ["", TABS_TOO]

    @when(JOINS)
    def test_a_node_lists_each_merge(self, world: World) -> None:
        page = world.save(self.candidate(HOME)).uri
        for number, text in enumerate((JOB, HOME, MOVED), start=10):
            world.save(self.candidate(text, number), session(str(number)))

        merges = merges_of(world.read(page))
        assert [each.version for each in merges] == [2, 3, 4]
        assert [each.session for each in merges] == ["10", "11", "12"]
        assert merges[1].into == statements.cid_of(HOME)
        assert all(world.exists(uri) for uri in merges[2].former)

    @when(JOINS)
    def test_what_was_written_by_hand_stays_to_the_letter(self, world: World) -> None:
        page = world.save(self.candidate(HOME)).uri
        world.edited(page, BY_HAND.format(f"- {HOME}\n- Ana knits.\n"))

        world.save(self.candidate(MOVED, 20), session("march"))
        world.save(self.candidate(JOB, 21), session("april"))

        content = world.read(page).content
        wanted = BY_HAND.format(f"- {MOVED} (since 2026-01-20)\n- Ana knits.\n")
        assert content.replace(f"\n- {JOB}\n", "") == wanted

    # ---------------------------------------------------------------- each alone
    @when(ALONE)
    def test_another_candidate_is_a_memory_of_its_own(self, world: World) -> None:
        first = world.save(self.candidate(HOME))

        others = [world.save(self.candidate(text, 9)) for text in (JOB, MOVED, TABS)]

        assert {plan.action for plan in others} == {WriteAction.CREATE}
        assert len({plan.uri for plan in (first, *others)}) == 4
        assert not any(plan.former for plan in others)
        assert world.read(first.uri).version == 1

    @when(ALONE)
    def test_what_happened_on_another_day_is_another_one(self, world: World) -> None:
        for day in (5, 6, 7, 6):
            world.save(self.candidate(JOB, day), session(str(day)))

        assert world.statements() == [JOB] * 3

    # ---------------------------------------------------------------- others
    def test_unrelated_candidates_may_come_in_any_order(self) -> None:
        left = []
        for order in permutations((HOME, JOB, DOG)):
            world = World(self.open_policy)
            for text in order:
                named = replace(self.candidate(text, 5 + len(text)), slug=_slug(self, text))
                world.save(named, session(str(len(text))))
            left.append(world.contents())

        assert all(each == left[0] for each in left)

    def test_the_pages_of_others_are_left_alone(self, world: World) -> None:
        theirs = [_page(self, owner, HOME) for owner in ("bob", "carla")]
        for node, name in zip(theirs, ("bob", "carla"), strict=True):
            world.nodes.write_node(node, RequestContext(ACCOUNT, name, agent_id=name))
        before = world.contents()

        for number, text in enumerate((HOME, MOVED, JOB)):
            plan = world.save(self.candidate(text, 9 + number), session(str(number)))
            assert Uri.parse(plan.uri).owner_space == self.owner_space

        after = world.contents()
        assert {uri: after[uri] for uri in before} == before

    def test_an_archived_node_is_not_written(self, world: World) -> None:
        away = world.save(self.candidate(HOME)).uri
        world.nodes.archive_node(away, ANA)

        with suppress(ContextError):
            assert world.policy.plan(self.candidate(JOB), ANA).uri != away


def _is_stated(text: str, stands: str) -> bool:
    same = statements.cid_of(text) == statements.cid_of(stands)
    return same or compare(stands, text).agreement is Agreement.SAME


def _slug(suite: MergePolicySuite, text: str) -> str:
    return f"{suite.slug}-{len(text)}" if suite.slug else ""


def _page(suite: MergePolicySuite, name: str, text: str) -> ContextNode:
    """Return the node of another user, under the same name."""
    kind = suite.owner_space.partition(":")[0]
    where = {"user": ("memories", suite.category), "agent": ("skills",)}[kind]
    place = Uri(ACCOUNT, (f"{kind}s", name, *where, *filter(None, [suite.slug])))
    return ContextNode(uri=str(place), content=f"- {text}\n")
