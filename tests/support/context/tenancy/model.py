"""Who may what, in the plainest form: a dictionary of what there is, and whose it is."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from perdure.model import RelationEdge, RequestContext, Role, Uri

TOKEN = re.compile(r"tok\d{6}")
"""A secret. Each text has its own, so that it is known wherever it turns up."""
_LINK = re.compile(r"\[\[(ctx://[^\]|]+)")

_KINDS = ("users", "agents", "resources", "sessions")

Space = tuple[str, str]
"""An account, and an owner in it."""
Edges = dict[tuple[str, str], str]
"""Target and type of each edge, with its reason."""


@dataclass(slots=True)
class StoredNode:
    """A node as everybody in reach must find it."""

    space: str
    content: str
    abstract: str
    version: int = 1
    archived: bool = False
    edited: bool = False
    """By hand, and not adopted yet."""
    edges: Edges = field(default_factory=dict)

    @property
    def links(self) -> set[str]:
        return set(_LINK.findall(self.content))

    @property
    def tokens(self) -> set[str]:
        return set(TOKEN.findall(f"{self.content}{self.abstract}{list(self.edges.values())}"))


class Model:
    def __init__(self) -> None:
        self.nodes: dict[str, StoredNode] = {}
        self.sessions: dict[tuple[str, str], str] = {}
        self.known: dict[str, str] = {}
        """Every place where a node ever was, and whose; a folder may be left of it."""
        self.owners: set[Uri] = set()
        """The users and agents that were made, or ever had a node."""
        self.records: set[Uri] = set()
        """The accounts, users and agents that were made by name."""
        self.accounts: set[str] = set()
        self._tokens: dict[str, set[Space]] = {}

    # ------------------------------------------------------------ who may
    def reaches(self, ctx: RequestContext, account: str, space: str) -> bool:
        if account != ctx.account_id:
            return False
        own = {f"user:{ctx.user_id}", f"agent:{ctx.agent_id}", f"account:{account}"}
        return ctx.role is not Role.MEMBER or space in own or space in ctx.visible_owner_spaces

    def may_see(self, uri: str, ctx: RequestContext) -> bool:
        place = Uri.parse(uri)
        if place.account != ctx.account_id:
            return False
        match place.path:
            case ("users", user, *_):
                return self.reaches(ctx, place.account, f"user:{user}")
            case ("agents", agent, *_):
                return self.reaches(ctx, place.account, f"agent:{agent}")
            case ("sessions", session, *_):
                return self._may_enter(place.account, session, ctx)
        return True

    def may_change(self, uri: str, ctx: RequestContext) -> bool:
        path = Uri.parse(uri).path
        shared = len(path) < 2 or path[0] == "resources"
        return self.may_see(uri, ctx) and (ctx.role is not Role.MEMBER or not shared)

    def _may_enter(self, account: str, session: str, ctx: RequestContext) -> bool:
        owner = self.sessions.get((account, session))
        if owner is None:
            return ctx.role is not Role.MEMBER or ctx.session_id == session
        return self.reaches(ctx, account, owner)

    def may_know(self, token: str, ctx: RequestContext) -> bool:
        return any(self.reaches(ctx, *space) for space in self._tokens.get(token, ()))

    # ------------------------------------------------------------ what there is
    def space_of(self, uri: str) -> str:
        """Return whose a place is; empty for a session that nobody has."""
        place = Uri.parse(uri)
        return place.owner_space or self.sessions.get((place.account, place.session), "")

    def active(self, uri: str) -> StoredNode | None:
        stored = self.nodes.get(uri)
        return None if stored is None or stored.archived else stored

    def visible_edges(self, stored: StoredNode, ctx: RequestContext) -> Edges:
        return {edge: why for edge, why in stored.edges.items() if self.may_see(edge[0], ctx)}

    def hidden_edges(self, stored: StoredNode, ctx: RequestContext) -> Edges:
        return {edge: why for edge, why in stored.edges.items() if not self.may_see(edge[0], ctx)}

    def below(self, folder: str, ctx: RequestContext) -> tuple[set[str], set[str]]:
        """Return what must, and what may be listed directly below a place."""
        must = {child for uri in self.nodes if self.active(uri) for child in _child(folder, uri)}
        seen = {
            child
            for uri in [*self.known, *map(str, self.owners)]
            if self.may_see(uri, ctx)
            for child in _child(folder, uri)
        }
        if ctx.role is not Role.MEMBER:  # a folder may be left when all that was in it is gone
            seen |= {child for kind in _KINDS for child in _child(folder, _of(folder, kind))}
        places = {uri for uri in seen if not Uri.parse(uri).is_node or self.active(uri)}
        return must & places, places

    def of_owner(self, account: str, space: str) -> list[str]:
        return [
            uri
            for uri, stored in self.nodes.items()
            if Uri.parse(uri).account == account and stored.space == space
        ]

    # ------------------------------------------------------------ what happens
    def put(self, uri: str, stored: StoredNode) -> None:
        place = Uri.parse(uri)
        if place.session:
            self.sessions.setdefault((place.account, place.session), stored.space)
        self.nodes[uri] = stored
        self.known[uri] = stored.space
        self.accounts.add(place.account)
        if place.path[0] in {"users", "agents"}:
            self.owners.add(Uri(place.account, place.path[:2]))
        self.confide(uri)

    def confide(self, uri: str) -> None:
        """Note that the secrets of a node are known in its space."""
        stored = self.nodes[uri]
        self.tell(stored.tokens, Uri.parse(uri).account, stored.space)

    def tell(self, tokens: Iterable[str], account: str, space: str) -> None:
        for token in tokens:
            self._tokens.setdefault(token, set()).add((account, space))

    def forget_account(self, account: str) -> None:
        self._forget(lambda uri: Uri.parse(uri).account == account)
        self.sessions = {key: who for key, who in self.sessions.items() if key[0] != account}
        self.owners = {owner for owner in self.owners if owner.account != account}
        self.records = {place for place in self.records if place.account != account}
        self.accounts.discard(account)

    def forget_owner(self, owner: Uri) -> None:
        space = owner.owner_space
        self._forget(
            lambda uri: Uri.parse(uri).account == owner.account and self.known[uri] == space
        )
        self.sessions = {
            key: who
            for key, who in self.sessions.items()
            if key[0] != owner.account or who != space
        }
        self.owners.discard(owner)
        self.records.discard(owner)

    def _forget(self, gone: Callable[[str], bool]) -> None:
        for uri in [uri for uri in self.known if gone(uri)]:
            del self.known[uri]
            self.nodes.pop(uri, None)

    def replace_edges(
        self, stored: StoredNode, edges: Iterable[RelationEdge], ctx: RequestContext
    ) -> None:
        """Let a write say the edges; those that its author can't see stay."""
        actual = {(edge.to_uri, edge.relation_type): edge.reason for edge in edges}
        stored.edges = {**actual, **self.hidden_edges(stored, ctx)}


def _of(folder: str, kind: str) -> str:
    return str(Uri(Uri.parse(folder).account, (kind,)))


def _child(folder: str, uri: str) -> Iterator[str]:
    """Yield the place directly below a folder on the way to another place, if it is on the way."""
    above, place = Uri.parse(folder), Uri.parse(uri)
    if above.contains(place) and above != place:
        yield str(Uri(place.account, place.path[: len(above.path) + 1]))
