"""What the suites of nodes and of relations start from."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, settings

from perdure.context.contract import ContextFS, RelationStore
from perdure.context.events import Clock
from perdure.model import ContextNode, EventType, RelationEdge, RequestContext, Role, Uri
from perdure.storage import StorageBackend
from perdure.testing.suite import Suite
from perdure.testing.suite import examples as scaled
from tests.support.context.index_outbox import LoggedOutbox
from tests.support.context.outbox.base import HandClock
from tests.support.context.seam import Seam

ON_THE_SEAM = "on_the_seam"
"""The nodes are files in a storage that people may edit. What they did can be adopted, and several
nodes can be written at once."""
KEEPS_HISTORY = "keeps_history"
"""On the seam, where earlier contents of a file can be read."""

ACCOUNT = "acme"
ANA = RequestContext(ACCOUNT, "ana")
BOB = RequestContext(ACCOUNT, "bob", agent_id="helper")
ADMIN = RequestContext(ACCOUNT, "root", agent_id="console", role=Role.ADMIN)
STRANGER = RequestContext("other", "ana")

CONTENT = "content.md"
RELATIONS = ".relations.json"
ABSTRACT = ".abstract.md"
OVERVIEW = ".overview.md"
META = ".meta.json"


def few(examples: int = 25) -> settings:
    """Say how hard Hypothesis tries, for each implementation."""
    return settings(
        max_examples=scaled(examples),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


class EditableFS(ContextFS, Protocol):
    """What is promised beyond `ContextFS` by nodes on the seam."""

    def write_nodes(self, nodes: list[ContextNode], ctx: RequestContext) -> None:
        """Write many nodes: all of them, or none."""

    def adopt(self, uri: str, ctx: RequestContext) -> bool:
        """Record an edit as the next version; return whether there was one."""


@dataclass(frozen=True, slots=True)
class Stores:
    """What an implementer opens: the nodes, and the edges between them."""

    nodes: ContextFS
    relations: RelationStore
    outbox: LoggedOutbox
    """What the index has not taken in of what happened to the nodes."""
    close: Callable[[], object] = lambda: None


class Opener(Protocol):
    def __call__(
        self,
        place: Path,
        clock: Clock,
        seam: Callable[[StorageBackend], StorageBackend],
    ) -> Stores: ...


class Subject:
    """What is under test, with all that is around it."""

    def __init__(self, opener: Opener, place: Path) -> None:
        self.clock = HandClock()
        self.seam = Seam()
        self._opener = opener
        self._place = place
        self._stores = opener(place, self.clock, self.seam)

    @property
    def nodes(self) -> ContextFS:
        return self._stores.nodes

    @property
    def outbox(self) -> LoggedOutbox:
        return self._stores.outbox

    @property
    def editable(self) -> EditableFS:
        """The nodes, of an implementation that promises to be on the seam."""
        return self._stores.nodes  # type: ignore[return-value] # so it was promised

    @property
    def relations(self) -> RelationStore:
        return self._stores.relations

    def reopen(self) -> None:
        passed = {account: self.outbox.index.cursor(account) for account in (ACCOUNT, "other")}
        self.close()
        self._stores = self._opener(self._place, self.clock, self.seam)
        for account, cursor in passed.items():
            self.outbox.index.replace(account, {}, cursor=cursor)

    def close(self) -> None:
        self._stores.close()

    # ------------------------------------------------------------ in short
    def write(self, slug: str, ctx: RequestContext = ANA, **fields: Any) -> ContextNode:  # noqa: ANN401 - the fields' own types
        """Make a node, and return it as it is then."""
        self.nodes.write_node(memory(slug, ctx, **fields), ctx)
        return self.read(slug, ctx)

    def read(self, slug: str, ctx: RequestContext = ANA) -> ContextNode:
        return self.nodes.read_node(uri_of(slug, ctx), ctx)

    def rewrite(self, slug: str, **changes: Any) -> ContextNode:  # noqa: ANN401 - the fields' own types
        """Write the next version of a node, and return it as it is then."""
        self.nodes.write_node(self.read(slug).revised(**changes), ANA)
        return self.read(slug)

    def events(self, account: str = ACCOUNT) -> list[tuple[EventType, str]]:
        """Return the pending events, and pass them by."""
        events = [(event.event_type, uri) for uri, event in self.outbox.list_pending(account)]
        self.outbox.pass_by(account)
        return events

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Fail if what is done changes a file, or tells the index of something."""
        before = self.seam.files() if self.seam.used else {}
        self.events()
        yield
        assert self.events() == []
        assert (self.seam.files() if self.seam.used else {}) == before


class ContextSuite(Suite):
    hooks = frozenset({"promises", "open_stores"})
    known_promises = frozenset({ON_THE_SEAM, KEEPS_HISTORY})

    @staticmethod
    def open_stores(
        place: Path,
        clock: Clock,
        seam: Callable[[StorageBackend], StorageBackend],
    ) -> Stores:
        """Open what is under test, on the empty folder `place` or on something of its own.

        Whoever promises to be on the seam uses `seam(backend)` in place of its `backend`.
        """
        raise NotImplementedError("say how to open the nodes and relations under test")

    @pytest.fixture
    def subject(self, tmp_path: Path) -> Iterator[Subject]:
        opened = Subject(self.open_stores, tmp_path)
        yield opened
        opened.close()

    def test_it_is_on_the_seam_if_configured(self, subject: Subject) -> None:
        assert subject.seam.used == (ON_THE_SEAM in self.promises)
        assert ON_THE_SEAM in self.promises or KEEPS_HISTORY not in self.promises


def memory(slug: str, ctx: RequestContext = ANA, **fields: Any) -> ContextNode:  # noqa: ANN401 - the fields' own types
    return ContextNode(uri=uri_of(slug, ctx), **fields)


def uri_of(name: str, ctx: RequestContext = ANA) -> str:
    """Return the URI of a preference, of `category/slug`, or of the profile."""
    segments = (name,) if "/" in name or name == "profile" else ("preference", name)
    path = "/".join(segments).split("/")
    return str(Uri(ctx.account_id, ("users", ctx.user_id, "memories", *path)))


def folder_of(category: str = "preference", ctx: RequestContext = ANA) -> str:
    return str(Uri(ctx.account_id, ("users", ctx.user_id, "memories", category)))


def edge(start: str, target: str, kind: str = "related", weight: float = 1.0) -> RelationEdge:
    return RelationEdge(uri_of(start), uri_of(target), kind, weight)
