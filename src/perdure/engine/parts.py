"""What a memory works with, as the composition root provides it."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from perdure.context.nodes import Nodes
    from perdure.context.reading import NodeReader
    from perdure.context.relations import RelationReader, Relations
    from perdure.engine.erasing.erasing import Erasing
    from perdure.engine.indexes import Indexes, Present
    from perdure.engine.namespaces import NamespaceManager
    from perdure.engine.outbox import OutboxStore
    from perdure.engine.past import Pasts
    from perdure.engine.repair import Repair
    from perdure.engine.upkeep import Checkup, StatusPart
    from perdure.engine.versions import Log
    from perdure.engine.watcher import ChangeWatcher
    from perdure.llm.contract import LLM
    from perdure.model import RequestContext
    from perdure.model.trust import AgentSettings
    from perdure.proofs.keys import SigningKey
    from perdure.storage.seen import Seen
    from perdure.storage.wrappers.recorded import Recorded


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

    def keep_watch(self, folders: Callable[[], Iterable[str]]) -> None:
        """Let a watcher tell of changes in folders, from the second call on and if one can."""

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
    def indexes(self) -> "Indexes": ...
    @property
    def erasing(self) -> "Erasing": ...

    def present(self, account_id: str) -> "Present": ...

    def pasts(self, account_id: str) -> "Pasts": ...

    @property
    def language_model(self) -> "LLM | None":
        """The configured language model, within its budget; None if there is none."""

    def log(self, actor: str) -> "Log":
        """Return the log of all accounts; `actor` is named in what is restored."""

    def signing_key(self) -> "SigningKey":
        """Return the key that this user signs with; the first call makes it."""

    def status(self, caller: "RequestContext", *, exact: bool) -> "tuple[StatusPart, ...]": ...

    def doctor(self, caller: "RequestContext") -> "Checkup": ...

    def warnings(self) -> str: ...

    def retain(self) -> None:
        """Count one more open memory on these parts."""

    def release(self) -> None:
        """Count one less; the last one closes the parts."""
