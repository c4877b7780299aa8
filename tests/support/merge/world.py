"""A memory of real nodes for the suite of merge policies, and candidates for it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from perdure.context.nodes import Nodes
from perdure.engine.learn import statements
from perdure.engine.learn.evidence import Evidence, Mention, cid_of, support_of
from perdure.engine.learn.merge import KnownMemory
from perdure.engine.learn.policies import MergePolicy
from perdure.errors import BrokenNodeError, NodeNotFoundError
from perdure.index.contract import Filters
from perdure.model import CandidateMemory, ContextNode, RequestContext, Uri, WritePlan
from perdure.model.node import OWNER_SPACE
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.recorded import Recorded
from perdure.storage.text_history import History
from tests.support.artifacts.memory_disk import MemoryDisk

ACCOUNT = "acme"
ANA = RequestContext(ACCOUNT, "ana", session_id="january")
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)

Opener = Callable[[KnownMemory], MergePolicy]


class World:
    """Nodes in this process, with their history; `policy` plans on what is there."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self.history = History.on_disk(MemoryDisk())
        backend = Recorded(MemoryBackend(), self.history)
        self.nodes = Nodes(backend, clock=lambda: NOON)
        self.known = KnownMemory(self.nodes, self._match)

    @property
    def policy(self) -> MergePolicy:
        return self._opener(self.known.fresh())

    def save(self, candidate: CandidateMemory, ctx: RequestContext = ANA) -> WritePlan:
        """Plan for a candidate, and carry out the plan as saving does."""
        ahead = self.known.fresh()
        plan = self._opener(ahead).plan(candidate, ctx)
        ahead.take(plan, ctx)
        self.nodes.exchange(ahead.planned(), (), ctx)
        return plan

    # ------------------------------------------------------------ what is there
    def read(self, uri: str, ctx: RequestContext = ANA) -> ContextNode:
        return self.nodes.read_node(uri, ctx)

    def all(self, account: str = ACCOUNT) -> dict[str, ContextNode]:
        """Return the nodes that are in use, by their URIs."""
        return {
            str(place): self.nodes.active(place).node
            for place in self.nodes.walk(Uri(account))
            if self.nodes.is_active(place)
        }

    def contents(self) -> dict[str, str]:
        return {uri: node.content for uri, node in self.all().items()}

    def statements(self) -> list[str]:
        """Return all that any node says, sorted."""
        return sorted(
            each.text
            for node in self.all().values()
            for each in statements.statements(node.content)
        )

    def sayings(self, text: str) -> list[Mention]:
        """Return the evidence of a statement that its node names."""
        cid = statements.cid_of(text)
        found = [support_of(node).get(cid) for node in self.all().values()]
        return [saying for grounds in found if grounds for saying in grounds.mentions]

    def _match(self, words: Sequence[str], filters: Filters, most: int) -> dict[str, float]:
        """Look through all nodes for some words, as an index would."""
        found: dict[str, float] = {}
        for uri, node in self.all(str(filters["account_id"])).items():
            wanted = filters[OWNER_SPACE], filters["category"]
            shared = sum(word in node.content.casefold() for word in words)
            if shared and (node.owner_space, node.category) == wanted:
                found[uri] = float(shared)
        best = sorted(found, key=lambda uri: (-found[uri], uri))[:most]
        return {uri: found[uri] for uri in best}

    def edited(self, uri: str, content: str) -> None:
        """Let its owner write something else there."""
        self.nodes.write_node(self.read(uri).revised(content=content), ANA)

    def exists(self, uri: str) -> bool:
        with suppress(NodeNotFoundError, BrokenNodeError):
            return bool(self.read(uri))
        return False


def saying(candidate: CandidateMemory, text: str, day: int = 5) -> CandidateMemory:
    """Return a candidate that says something else, on another day of January."""
    evidence = Evidence(0, cid_of(text), text).as_json()
    return replace(
        candidate,
        content=text,
        when=datetime(2026, 1, day, 10, tzinfo=UTC),
        quote=text[:100],
        speaker="Ana",
        metadata={"evidence": [evidence]},
    )


def session(name: str, ctx: RequestContext = ANA) -> RequestContext:
    return replace(ctx, session_id=name)
