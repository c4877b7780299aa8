"""What the tenancy machine and the matrix are run over."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from perdure.context.contract import ContextFS, RelationStore
from perdure.engine.indexing.outbox_store import OutboxStore
from perdure.model import RequestContext


class Found(Protocol):
    """What repair says of one node."""

    @property
    def uri(self) -> str: ...


class Repairing(Protocol):
    def examine(self, ctx: RequestContext) -> Sequence[Found]: ...

    def run(self, ctx: RequestContext) -> Sequence[Found]: ...


class Deletion(Protocol):
    @property
    def counts(self) -> Mapping[str, int]: ...


class Namespaces(Protocol):
    """Whoever makes, lists and deletes accounts, users and agents."""

    def create_account(self, account_id: str, ctx: RequestContext) -> None: ...

    def create_user(self, account_id: str, user_id: str, ctx: RequestContext) -> None: ...

    def create_agent(self, account_id: str, agent_id: str, ctx: RequestContext) -> None: ...

    def list_accounts(self, ctx: RequestContext) -> list[str]: ...

    def list_users(self, account_id: str, ctx: RequestContext) -> list[str]: ...

    def list_agents(self, account_id: str, ctx: RequestContext) -> list[str]: ...

    def delete_account(self, account_id: str, ctx: RequestContext) -> Deletion: ...

    def delete_user(self, account_id: str, user_id: str, ctx: RequestContext) -> Deletion: ...

    def delete_agent(self, account_id: str, agent_id: str, ctx: RequestContext) -> Deletion: ...


def _nothing() -> None:
    """Close nothing."""


@dataclass(slots=True)
class World:
    """A memory under test, empty when it is opened.

    Verbs that a part does not have are passed over. All parts work on the same memory.
    """

    nodes: ContextFS
    relations: RelationStore
    outbox: OutboxStore
    """Its `siblings` must be those of the nodes, or none."""
    snapshot: Callable[[], object]
    """Returns all that is kept of nodes, to the letter; two that are equal mean no change."""
    namespaces: Namespaces | None = None
    repair: Repairing | None = None
    edit: Callable[[str, str], None] | None = None
    """Adds a text to the content of a node behind the engine's back, as an editor would."""
    close: Callable[[], None] = _nothing

    def verb(self, name: str) -> Callable[..., Any] | None:
        """Return a verb by its part and name; None if this memory has none such."""
        part, _, verb = name.partition(".")
        found: Callable[..., Any] | None = getattr(getattr(self, part), verb, None)
        return found


OpenWorld = Callable[[], World]
