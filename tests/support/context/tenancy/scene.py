"""One caller, and a node at every kind of place there is for it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from perdure.model import ContextNode, OutboxEvent, RelationEdge, RequestContext, Role, Uri
from tests.support.context.tenancy.world import World

CALLER = RequestContext("acme", "ana", "bot", visible_owner_spaces=frozenset({"user:bea"}))
PLACES = {
    "own": "ctx://acme/users/ana/memories/event/x",
    "shown": "ctx://acme/users/bea/memories/event/x",
    "foreign": "ctx://acme/users/cyd/memories/event/x",
    "other": "ctx://zeta/users/ana/memories/event/x",
    "shared": "ctx://acme/resources/x",
    "session": "ctx://acme/sessions/anas/x",
    "theirs": "ctx://acme/sessions/cyds/x",
}
"""A place of each kind; of the same name as the caller's own in another account."""
_OWNERS = {PLACES["session"]: "user:ana", PLACES["theirs"]: "user:cyd"}
_NAMES = {
    "user": {"own": "ana", "shown": "bea", "foreign": "cyd", "other": "ana"},
    "agent": {"own": "bot", "foreign": "rob", "other": "bot"},
}
_KNOWS = "knows"

DEAD, LEASED = "dead", "leased"


@dataclass(frozen=True, slots=True)
class Scene:
    """A verb, a caller and a place."""

    world: World
    verb: Callable[..., Any]
    ctx: RequestContext
    column: str
    uri: str

    @property
    def account(self) -> str:
        return Uri.parse(self.uri).account

    @property
    def root(self) -> RequestContext:
        return _root(self.account)

    def place(self, name: str) -> str:
        """Return the place that is asked for, or one that leads to it, or that it leads to."""
        anchor = ("users", "ana", "memories", "event", f"to-{self.column}")
        paths = {"anchor": anchor, "hub": ("resources", "hub")}
        return self.uri if name == "here" else str(Uri(self.account, paths[name]))

    def name(self, kind: str) -> str:
        return _NAMES[kind][self.column]

    def node(self, *, beside: bool = False, version: int = 1) -> ContextNode:
        """Return a node for the place, or for the one beside it."""
        uri = f"{self.uri[:-1]}y" if beside else self.uri
        return ContextNode(uri=uri, version=version, owner_space=_OWNERS.get(self.uri, ""))

    def new(self) -> ContextNode:
        """Return a node of the caller's own that is not there yet."""
        return ContextNode(uri=f"ctx://acme/users/ana/memories/event/new-{self.column}")

    # ------------------------------------------------------------ events
    def events(self) -> list[OutboxEvent]:
        listed = self.world.outbox.list_unfinished(self.account)
        return [event for uri, event in listed if uri == self.uri]

    def event(self) -> OutboxEvent:
        return self.events()[0]

    def set_events(self, state: str) -> None:
        """Let all events be dead, or leased to the worker w."""
        for account in ("acme", "zeta"):
            for uri, event in self.world.outbox.list_unfinished(account):
                if state == DEAD:
                    self.world.outbox.move_to_dlq(event, uri)
                else:
                    self.world.outbox.try_acquire(event, uri, "w", _HOUR)

    def look(self) -> object:
        outbox = self.world.outbox
        listed = [
            (outbox.list_unfinished(account), outbox.list_pending(account))
            for account in ("acme", "zeta")
        ]
        return self.world.snapshot(), listed


_HOUR = int(timedelta(hours=1).total_seconds())


def set_scenes(world: World, verb: Callable[..., Any], ctx: RequestContext) -> dict[str, Scene]:
    """Write a node at every place, each with an edge to one and from one that all may see."""
    scenes = {column: Scene(world, verb, ctx, column, uri) for column, uri in PLACES.items()}
    for account in ("acme", "zeta"):
        world.nodes.write_node(ContextNode(uri=f"ctx://{account}/resources/hub"), _root(account))
    for scene in scenes.values():
        to_hub = RelationEdge(scene.uri, scene.place("hub"), _KNOWS)
        from_anchor = RelationEdge(scene.place("anchor"), scene.uri, _KNOWS)
        anchor = ContextNode(uri=scene.place("anchor"), relations=(from_anchor,))
        world.nodes.write_node(replace(scene.node(), relations=(to_hub,)), scene.root)
        world.nodes.write_node(anchor, scene.root)
    if world.namespaces is not None:
        for account, agent in (("acme", "bot"), ("acme", "rob"), ("zeta", "bot")):
            world.namespaces.create_agent(account, agent, _root(account))
    return scenes


def _root(account: str) -> RequestContext:
    return RequestContext(account, "nobody", "nobody", role=Role.ROOT)
