"""How what is to be imported stands to what is there: nobody's edit is ever overwritten."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Protocol

from perdure.context.nodes import Nodes
from perdure.engine.importing.contract import Item
from perdure.engine.importing.texts import digest
from perdure.engine.saving.outcome import SessionCommit
from perdure.errors import InvalidValueError, NodeExistsError
from perdure.model import ContextNode, NodeStatus, RequestContext, Uri
from perdure.model.values import JSON, MAX_CONTENT

SOURCE = "source"
SOURCE_ID = "source_id"
SOURCE_DIGEST = "source_digest"
"""Names in a node's metadata: which format, its own id, and the hash of what was imported."""


class State(Enum):
    """What becomes of an item."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    REFUSED = "refused"


class Verbs(Protocol):
    """The verbs of `Memory` that importers call."""

    caller: RequestContext

    def save(
        self, content: str, *, category: str, slug: str, metadata: Mapping[str, JSON] | None
    ) -> object: ...

    def commit_session(
        self, messages: Iterable[Mapping[str, object]], *, session_id: str, extract: bool
    ) -> SessionCommit: ...

    def settle(self) -> None: ...


def origin(item: Item, content: str) -> dict[str, JSON]:
    """Return what a node says of where it came from."""
    return {
        SOURCE: item.source,
        SOURCE_ID: item.source_id[:MAX_CONTENT],
        SOURCE_DIGEST: digest(content),
    }


def known_at(nodes: Nodes, place: Uri, ctx: RequestContext) -> ContextNode | None:
    """Return the node at a place, be it in use or put away; None if there is none."""
    stored = nodes.load(nodes.reach.changed(str(place), ctx))
    return None if stored is None else stored.node


def stand(item: Item, content: str, known: ContextNode | None) -> State:
    """Say what a text would be at its place.

    What its owner put away stays away. `NodeExistsError` if something else is there, or if the
    text was edited here and at the source.
    """
    if len(content) > MAX_CONTENT:
        raise InvalidValueError(
            f"it has {len(content):,} characters; {MAX_CONTENT:,} are the most. Fix: split it."
        )
    if known is None:
        return State.NEW
    said = known.metadata
    if (said.get(SOURCE), said.get(SOURCE_ID)) != (item.source, item.source_id):
        raise NodeExistsError(
            f"something else is at {known.uri!a}. Fix: move it, and import again."
        )
    if known.status is NodeStatus.ARCHIVED or said.get(SOURCE_DIGEST) == digest(content):
        return State.SAME
    if digest(known.content) not in {said.get(SOURCE_DIGEST), digest(content)}:
        raise NodeExistsError(
            f"{known.uri!a} was edited here, and changed at the source too. It was left alone. "
            "Fix: take over by hand what is missing, or delete it and import again."
        )
    return State.CHANGED
