"""A memory that learns by the policy of each category, and in which merges can be undone."""

from collections.abc import Mapping

from perdure.engine.learn import statements
from perdure.engine.learn.merge import KnownMemory
from perdure.engine.learn.policies import MergePolicy, policy_for
from perdure.engine.restore import Unmerger, UnmergeReport
from perdure.model import CandidateMemory, ContextNode, RequestContext, WritePlan
from tests.support.merge.world import ANA, NOON, World, saying, session

MEMORIES = "ctx://acme/users/ana/memories"
PROFILE = f"{MEMORIES}/profile"
SKILL = "ctx://acme/agents/default/skills/make-ship"


class Memory:
    """A memory in which each candidate is planned for by the policy of its category."""

    def __init__(self) -> None:
        self.category = ""
        self.world = World(self._policy)

    def _policy(self, known: KnownMemory) -> MergePolicy:
        return policy_for(self.category, known, lambda: NOON)

    def save(self, text: str, category: str = "profile", slug: str = "", day: int = 5) -> WritePlan:
        """Save a statement of a day, in a session of that day."""
        self.category = category
        owner = "agent:default" if category in {"skill", "tool"} else "user:ana"
        first = CandidateMemory(category=category, content=text, slug=slug, owner_space=owner)
        return self.world.save(saying(first, text, day), session(f"day {day}"))

    def unmerge(self, uri: str, statement: str = "", ctx: RequestContext = ANA) -> UnmergeReport:
        return Unmerger(self.world.nodes, self.world.history).unmerge(uri, ctx, statement)

    # ------------------------------------------------------------ what is there
    def read(self, uri: str) -> ContextNode:
        return self.world.read(uri)

    def content(self, uri: str) -> str:
        return self.read(uri).content

    def texts(self, uri: str) -> list[str]:
        return [each.text for each in statements.statements(self.content(uri))]

    def edit(self, uri: str, content: str) -> None:
        self.world.edited(uri, content)

    def delete(self, uri: str) -> None:
        self.world.nodes.delete_node(uri, ANA)

    def state(self) -> tuple[object, Mapping[str, str]]:
        """Return all that would show a change."""
        return self.world.history.position(), self.world.contents()


def whole(node: ContextNode) -> tuple[object, ...]:
    """Return what its owner sees of a node."""
    return node.content, node.abstract, node.overview, node.relations, node.created_at
