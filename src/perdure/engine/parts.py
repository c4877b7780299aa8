"""What a memory works with, as the composition root provides it."""

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from perdure.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from perdure.artifacts.keys import SigningKey
    from perdure.context.nodes import Nodes
    from perdure.context.reading import NodeReader
    from perdure.context.relations import RelationReader, Relations
    from perdure.engine.erasing.erasing import Erasing
    from perdure.engine.indexing import Following
    from perdure.engine.learn.extractors import Learning
    from perdure.engine.llm.contract import LLM
    from perdure.engine.llm.ledger import Cost
    from perdure.engine.namespaces import NamespaceManager
    from perdure.engine.outbox import OutboxStore
    from perdure.engine.past import Pasts
    from perdure.engine.recall.recalling import Recaller
    from perdure.engine.recall.result import Hint, Sources
    from perdure.engine.repair import Repair
    from perdure.engine.summaries import Summaries
    from perdure.engine.upkeep import Checkup, ListedIndex, StatusPart, Upkeep
    from perdure.engine.versions import Log
    from perdure.engine.watcher import ChangeWatcher
    from perdure.index.contract import Embedder
    from perdure.model import RequestContext
    from perdure.model.aliases import Identity
    from perdure.model.anchors import Checkout
    from perdure.model.trust import AgentSettings
    from perdure.storage.seen import Seen
    from perdure.storage.wrappers.recorded import Recorded


@dataclass(frozen=True, slots=True)
class Present:
    """What answers about now: an index that follows the log, and who searches it."""

    following: "Following"
    sources: "Sources"
    hints: "Callable[[], Sequence[Hint]]" = tuple
    """Returns why it is this one, if another would have been better."""
    meanwhile: bool = False
    """Whether it answers only until the one that is wanted is made."""
    otherwise: "Present | None" = None
    """Who answers if this one is not made yet, and can't be now."""

    @property
    def recaller(self) -> "Recaller":
        from perdure.engine.recall.recalling import Recaller  # noqa: PLC0415 - a briefing needs none

        return Recaller(self.sources)


class IndexSet(Protocol):
    """The indexes of a memory, one for each embedder that it has had."""

    @property
    def name(self) -> str: ...
    @property
    def embedder(self) -> "Embedder | None": ...
    @property
    def upkeep(self) -> "Upkeep":
        """What verifies and rebuilds the index of the configured embedder."""

    @property
    def summaries(self) -> "Summaries": ...
    def progress(self, account_id: str) -> tuple[int, int]:
        """Return how many places that index has by now, and of how many."""

    def listed(self, account_id: str) -> "list[ListedIndex]": ...
    def prune(self) -> list[tuple[str, int]]: ...


class Parts(Protocol):
    """The parts of one open memory. Each is made when it is first used.

    A caller that only reads needs no outbox, and a damaged one does not stop it.
    """

    @property
    def home(self) -> Path:
        """The folder of the config, the history and all that is derived."""

    @property
    def agents(self) -> "AgentSettings":
        """Which sessions of agents may use memory and contribute to it."""

    def identify(self, folder: str) -> "Identity":
        """Return the identity of a folder's project; an empty one for none."""

    def checkout(self, folder: str) -> "Checkout | None":
        """Return the working tree that a folder is in; None if it is in none."""

    @property
    def recorded(self) -> "Recorded":
        """The texts, with their history."""

    @property
    def seen(self) -> "Seen":
        """What was last seen of each text."""

    @property
    def watcher(self) -> "ChangeWatcher | None":
        """What tells whether files changed; None if every recall looks at them."""

    leaves_checks: bool
    """Whether somebody waits, so that many texts are looked at for edits in the background."""
    may_watch: bool
    """Whether a watcher may be started once looking at all files takes long."""

    def keep_watch(self) -> None:
        """Let a watcher tell of changes from soon on, if one can; twice is once."""

    @property
    def check_seconds(self) -> float:
        """For how long edits made outside Perdure are looked for before an answer."""

    @property
    def reader(self) -> "NodeReader": ...
    @property
    def relation_reader(self) -> "RelationReader": ...
    @property
    def nodes(self) -> "Nodes": ...
    @property
    def relations(self) -> "Relations": ...
    @property
    def outbox(self) -> "OutboxStore": ...
    @property
    def namespaces(self) -> "NamespaceManager": ...
    @property
    def repair(self) -> "Repair": ...
    @property
    def indexes(self) -> IndexSet: ...
    @property
    def erasing(self) -> "Erasing": ...

    def present(self, account_id: str) -> "Present": ...

    def pasts(self, account_id: str) -> "Pasts": ...

    def learning(self, caller: "RequestContext") -> "Learning":
        """Return the extractors and the judge for a caller's sessions."""

    def llm(self, caller: "RequestContext", purpose: str) -> "LLM | None":
        """Return the configured language model for one purpose; None if there is none."""

    def log(self, actor: str) -> "Log":
        """Return the log of all accounts; `actor` is named in what is restored."""

    def signing_key(self) -> "SigningKey":
        """Return the key that this user signs with; the first call makes it."""

    def status(self, caller: "RequestContext", *, exact: bool) -> "tuple[StatusPart, ...]": ...

    def doctor(self, caller: "RequestContext") -> "Checkup": ...

    def costs(self, by: str, since: "datetime | None") -> "tuple[Cost, ...]": ...

    def warnings(self) -> str: ...

    def retain(self) -> None:
        """Count one more open memory on these parts."""

    def release(self) -> None:
        """Count one less; the last one closes the parts."""
