"""The services of one open memory, such as its nodes, indexes and outbox, and its health.

`StatusSection` and `Checkup` are the values that `status` and `doctor` show.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from enum import Enum
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from perdure.config import Config
from perdure.dataclass import dataclass
from perdure.errors import LockTimeout, PerdureError
from perdure.files import Closeable
from perdure.model import RequestContext
from perdure.model.values import JSON
from perdure.storage.recorded import Recorded

if TYPE_CHECKING:
    from perdure.context.contract import TenantStore
    from perdure.context.links import RelationReader
    from perdure.context.nodes import Nodes, Relations
    from perdure.context.reader import NodeReader
    from perdure.engine.change_watcher import ChangeWatcher
    from perdure.engine.erase import Eraser
    from perdure.engine.indexing.indexes import Embedders, Indexes
    from perdure.engine.indexing.outbox_store import OutboxStore
    from perdure.engine.namespaces import NamespaceManager
    from perdure.engine.repair import Repair
    from perdure.engine.versions import VersionLog
    from perdure.llm.contract import LLM
    from perdure.llm.ledger import Ledger
    from perdure.model.trust import AgentSettings
    from perdure.proofs.signing_keys import SigningKey
    from perdure.storage import StoragePreview
    from perdure.storage.stamps import StampTable


# ---------------------------------------------------------------- the health of a memory
@dataclass(frozen=True, slots=True)
class StatusSection:
    """One part of a memory, such as its storage, history or index."""

    name: str
    facts: Mapping[str, JSON]
    trouble: str = ""
    """What is wrong, with the fix; empty if nothing is."""


class Severity(Enum):
    OK = "ok"
    NOTE = "note"
    """Nothing is wrong, but something could be improved."""
    WARN = "warn"
    """It works, but needs attention."""
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    level: Severity
    message: str
    """What was found, with the fix if something is wrong."""


@dataclass(frozen=True, slots=True)
class Checkup:
    storage: "StoragePreview"
    checks: tuple[Check, ...]
    """All checks except that of the storage."""

    @property
    def ok(self) -> bool:
        return self.storage.ok and all(check.level is not Severity.FAIL for check in self.checks)


# ---------------------------------------------------------------- services
_SCANS_BEFORE_WATCHING = 2
"""Start a watcher at this scan of all files, so that a short process has none."""


class Services(Closeable, ABC):
    """The services of one open memory. Each is created when it is first used.

    So a damaged outbox does not affect a caller that only reads. A subclass in `app` supplies what
    depends on installed packages, and the reports that work without a memory.
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
        """The default caller."""
        self.config = config
        self._folder = folder
        self._unfinished = ""
        self._lock = Lock()
        self._memories = 0
        self._is_closed = False
        self.checks_in_background = False
        """Whether many texts are checked for edits in the background, because a person waits."""
        self.watcher: ChangeWatcher | None = None
        """Reports whether files changed; None if every recall scans them."""
        self._scans = 0
        self._closing = ExitStack()
        self._closing.callback(recorded.close)

    @property
    def home(self) -> Path:
        return self.config.home

    @property
    def agents(self) -> "AgentSettings":
        return self.config.agents

    def start_watcher(self, folders: Callable[[], Iterable[str]]) -> None:
        """Watch folders for changes from the second call on, if the system can do that."""
        with self._lock:
            self._scans += 1
            if self._scans != _SCANS_BEFORE_WATCHING or self._is_closed:
                return
            from perdure.engine.change_watcher import change_watcher

            self.watcher = change_watcher(self.recorded.identity, folders)

    @property
    def check_seconds(self) -> float:
        """The time limit of a check for edits made outside Perdure before an answer."""
        return self.config.check_seconds

    @cached_property
    def seen(self) -> "StampTable":
        from perdure.storage.stamps import STAMPS_FILE, StampTable

        return self._closing.enter_context(StampTable(str(self._folder / STAMPS_FILE)))

    @cached_property
    def reader(self) -> "NodeReader":
        from perdure.context.reader import NodeReader

        return NodeReader(self.recorded)

    @cached_property
    def relation_reader(self) -> "RelationReader":
        from perdure.context.links import RelationReader

        return RelationReader(self.reader, self.indexes)

    @cached_property
    def nodes(self) -> "Nodes":
        from perdure.context.nodes import Nodes

        return Nodes(self.recorded, backlinks=self.indexes)

    @cached_property
    def relations(self) -> "Relations":
        from perdure.context.nodes import Relations

        return Relations(self.nodes, self.indexes)

    @cached_property
    def outbox(self) -> "OutboxStore":
        from perdure.engine.indexing.outbox_store import LogFeed, OutboxStore

        current = self.indexes.current
        feed = LogFeed(
            self.recorded.history,
            self.reader,
            lambda account: current(account).follower.index.cursor(account),
            lambda account: current(account).follower.log.folders,
        )
        return OutboxStore(self.indexes.events, feed, siblings=self.reader.siblings)

    @cached_property
    def namespaces(self) -> "NamespaceManager":
        return self.namespaces_on(self.recorded)

    def namespaces_on(self, backend: Recorded) -> "NamespaceManager":
        """Return a namespace manager whose changes are recorded through a backend."""
        from perdure.context.tenancy import TenantNodes
        from perdure.engine.namespaces import NamespaceManager

        holders: dict[str, TenantStore] = {
            "nodes": TenantNodes(backend),
            "events": self.outbox,
            **self.indexes.tenant_data(),
        }
        return NamespaceManager(backend, holders)

    @cached_property
    def erasing(self) -> "Eraser":
        """The erasure of nodes and owners, which can resume an interrupted one."""
        from perdure.engine.erase import Eraser
        from perdure.engine.erasure_plan import DerivedFiles

        derived = DerivedFiles(self.recorded, self.indexes, self.outbox, self.seen)
        return Eraser(self.nodes, derived, self.signing_key, self.namespaces_on)

    def log(self, actor: str) -> "VersionLog":
        """Return the log of all accounts; `actor` is recorded with what is restored."""
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
        quarantined = self.indexes.quarantine.report() if "indexes" in vars(self) else ""
        unfinished, self._unfinished = self._unfinished, ""
        return "; ".join(filter(None, (quarantined, unfinished)))

    @cached_property
    def indexes(self) -> "Indexes":
        from perdure.engine.indexing.indexes import Indexes

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

    def retain(self) -> None:
        """Count one more open memory on these services."""
        with self._lock:
            self._memories += 1

    def release(self) -> None:
        """Count one less; the last one closes the services."""
        with self._lock:
            self._memories -= 1
            is_last = self._memories == 0
        if is_last:
            self.close()

    def finish_erasing(self) -> None:
        """Resume an interrupted erasure, if that can be done now."""
        if (self._folder / "erasing").is_dir():
            try:
                self.erasing.resume(self.request)
            except LockTimeout:
                return  # another process erases
            except (PerdureError, OSError) as error:
                self._unfinished = f"an erasure is not finished: {error}"

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
        if self.watcher is not None:
            self.watcher.close()
        self._closing.close()

    # ------------------------------------------------------------ supplied by `app`
    @abstractmethod
    def signing_key(self) -> "SigningKey":
        """Return the signing key of this user; the first call creates it."""

    @abstractmethod
    def _embedders(self) -> "Embedders": ...

    @abstractmethod
    def _language_model(self) -> "tuple[LLM, Ledger] | None": ...

    @abstractmethod
    def status(self, caller: RequestContext, *, exact: bool) -> "tuple[StatusSection, ...]": ...

    @abstractmethod
    def doctor(self, caller: RequestContext) -> "Checkup": ...
