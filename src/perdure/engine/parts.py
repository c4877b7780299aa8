"""The parts of one open memory."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from perdure.config import Config
from perdure.errors import LockTimeout, PerdureError
from perdure.files import Closing
from perdure.model import RequestContext
from perdure.storage.wrappers.recorded import Recorded

if TYPE_CHECKING:
    from perdure.context.contract import TenantData
    from perdure.context.nodes import Nodes
    from perdure.context.reading import NodeReader
    from perdure.context.relations import RelationReader, Relations
    from perdure.engine.erase import Eraser
    from perdure.engine.indexes import Embedders, Indexes, Present
    from perdure.engine.namespaces import NamespaceManager
    from perdure.engine.outbox import OutboxStore
    from perdure.engine.past import Pasts
    from perdure.engine.repair import Repair
    from perdure.engine.upkeep import Checkup, StatusPart
    from perdure.engine.versions import VersionLog
    from perdure.engine.watcher import ChangeWatcher
    from perdure.llm.contract import LLM
    from perdure.llm.ledger import Ledger
    from perdure.model.trust import AgentSettings
    from perdure.proofs.keys import SigningKey
    from perdure.storage.seen import Seen

_LOOKS_BEFORE_WATCHING = 2
"""So often a process looks at all files before a watcher tells it whether some changed."""


class Parts(Closing, ABC):
    """The parts of one open memory. Each is made when it is first used.

    A caller that only reads needs no outbox, and a damaged one does not stop it. The composition
    root gives what depends on installed packages, and what is reported without a memory too.
    """

    def __init__(
        self,
        recorded: Recorded,
        folder: Path,
        config: Config,
        request: RequestContext,
    ) -> None:
        self.recorded = recorded
        self.request = request
        """The caller, if none is named."""
        self.config = config
        self._folder = folder
        self._unfinished = ""
        self._lock = Lock()
        self._memories = 0
        self._is_closed = False
        self.leaves_checks = False
        """Whether a person waits, so that many texts are looked at for edits in the background."""
        self.watcher: ChangeWatcher | None = None
        """What tells whether files changed; None if every recall looks at them."""
        self._looks = 0
        self._closing = ExitStack()
        self._closing.callback(recorded.close)

    @property
    def home(self) -> Path:
        return self.config.home

    @property
    def agents(self) -> "AgentSettings":
        return self.config.agents

    def keep_watch(self, folders: Callable[[], Iterable[str]]) -> None:
        """Let a watcher tell of changes in folders, from the second call on and if one can."""
        with self._lock:
            self._looks += 1
            if self._looks != _LOOKS_BEFORE_WATCHING or self._is_closed:
                return
            from perdure.engine.watcher import change_watcher

            self.watcher = change_watcher(self.recorded.identity, folders)

    @property
    def check_seconds(self) -> float:
        """For how long edits made outside Perdure are looked for before an answer."""
        return self.config.check_seconds

    @cached_property
    def seen(self) -> "Seen":
        from perdure.storage.seen import SEEN, Seen

        return self._closing.enter_context(Seen(str(self._folder / SEEN)))

    @cached_property
    def reader(self) -> "NodeReader":
        from perdure.context.reading import NodeReader

        return NodeReader(self.recorded)

    @cached_property
    def relation_reader(self) -> "RelationReader":
        from perdure.context.relations import RelationReader

        return RelationReader(self.reader, self.indexes)

    @cached_property
    def nodes(self) -> "Nodes":
        from perdure.context.nodes import Nodes

        return Nodes(self.recorded, backlinks=self.indexes)

    @cached_property
    def relations(self) -> "Relations":
        from perdure.context.relations import Relations

        return Relations(self.nodes, self.indexes)

    @cached_property
    def outbox(self) -> "OutboxStore":
        from perdure.engine.feed import LogFeed
        from perdure.engine.outbox import OutboxStore

        history, present = self.recorded.history, self.indexes.present
        feed = LogFeed(
            history,
            self.reader,
            lambda account: present(account).following.index.cursor(account),
            lambda account: present(account).following.indexer.tells_folders,
        )
        return OutboxStore(self.indexes.events, feed, siblings=self.reader.siblings)

    @cached_property
    def namespaces(self) -> "NamespaceManager":
        return self.namespaces_on(self.recorded)

    def namespaces_on(self, backend: Recorded) -> "NamespaceManager":
        """Return who deletes tenants, under the circumstances that a backend knows."""
        from perdure.context.tenants import NodeData
        from perdure.engine.namespaces import NamespaceManager

        holders: dict[str, TenantData] = {
            "nodes": NodeData(backend),
            "events": self.outbox,
            **self.indexes.tenant_data(),
        }
        return NamespaceManager(backend, holders)

    @cached_property
    def erasing(self) -> "Eraser":
        """Return the erasing of this memory; it finishes what was begun and not ended."""
        from perdure.engine.erase import Eraser
        from perdure.engine.erasure_plan import DerivedFiles

        derived = DerivedFiles(self.recorded, self.indexes, self.outbox, self.seen)
        return Eraser(self.nodes, derived, self.signing_key, self.namespaces_on)

    def log(self, actor: str) -> "VersionLog":
        """Return the log of all accounts; `actor` is named in what is restored."""
        from perdure.engine.versions import VersionLog

        return VersionLog(
            self._folder, actor=actor, signing_key=self.signing_key, recorded=self.recorded
        )

    @cached_property
    def repair(self) -> "Repair":
        from perdure.engine.repair import Repair

        return Repair(self.nodes)

    def warnings(self) -> str:
        """Return, once, what was quarantined or could not be finished; empty if nothing was."""
        aside = self.indexes.way.report() if "indexes" in vars(self) else ""
        unfinished, self._unfinished = self._unfinished, ""
        return "; ".join(filter(None, (aside, unfinished)))

    @cached_property
    def indexes(self) -> "Indexes":
        from perdure.engine.indexes import Indexes

        indexes = Indexes(self.recorded, self._folder, self.config, self._embedders())
        return self._closing.enter_context(closing(indexes))

    @cached_property
    def language_model(self) -> "LLM | None":
        """The configured language model, within its budget; None if there is none."""
        model = self._language_model()
        if model is None:
            return None
        self._closing.callback(model[1].close)
        return model[0]

    def present(self, account_id: str) -> "Present":
        return self.indexes.present(account_id)

    def pasts(self, account_id: str) -> "Pasts":
        return self.indexes.pasts(account_id)

    def retain(self) -> None:
        """Count one more open memory on these parts."""
        with self._lock:
            self._memories += 1

    def release(self) -> None:
        """Count one less; the last one closes the parts."""
        with self._lock:
            self._memories -= 1
            is_last = self._memories == 0
        if is_last:
            self.close()

    def finish_erasing(self) -> None:
        """Finish an erasure that was interrupted, if that can be done now."""
        if (self._folder / "erasing").is_dir():
            try:
                self.erasing.resume(self.request)
            except LockTimeout:
                return  # another process is at it
            except (PerdureError, OSError) as error:
                self._unfinished = f"what was to be erased is not erased yet: {error}"

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
        if self.watcher is not None:
            self.watcher.close()
        self._closing.close()

    # ------------------------------------------------------------ given by the composition root
    @abstractmethod
    def signing_key(self) -> "SigningKey":
        """Return the key that this user signs with; the first call makes it."""

    @abstractmethod
    def _embedders(self) -> "Embedders": ...

    @abstractmethod
    def _language_model(self) -> "tuple[LLM, Ledger] | None": ...

    @abstractmethod
    def status(self, caller: RequestContext, *, exact: bool) -> "tuple[StatusPart, ...]": ...

    @abstractmethod
    def doctor(self, caller: RequestContext) -> "Checkup": ...
