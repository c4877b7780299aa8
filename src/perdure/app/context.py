"""The parts that work on one memory."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from perdure.app.opening import default_request, recorded_of
from perdure.config import Config, load_config
from perdure.dataclass import replace
from perdure.errors import LockTimeout, PerdureError
from perdure.files import Closing
from perdure.model import RequestContext
from perdure.storage.wrappers.recorded import Recorded

if TYPE_CHECKING:
    from perdure.context.contract import TenantData
    from perdure.context.followed import FollowedLinks
    from perdure.context.nodes import Nodes
    from perdure.context.reading import NodeReader
    from perdure.context.relations import RelationReader, Relations
    from perdure.engine.erasing.erasing import Erasing
    from perdure.engine.indexes import Indexes, Present
    from perdure.engine.memory import Memory
    from perdure.engine.namespaces import NamespaceManager
    from perdure.engine.outbox import OutboxStore
    from perdure.engine.past import Pasts
    from perdure.engine.repair import Repair
    from perdure.engine.upkeep import Checkup, StatusPart
    from perdure.engine.versions import Log
    from perdure.engine.watcher import ChangeWatcher
    from perdure.index.contract import Embedder
    from perdure.llm.contract import LLM
    from perdure.model.aliases import Identity
    from perdure.model.trust import AgentSettings
    from perdure.proofs.keys import SigningKey
    from perdure.storage.seen import Seen

_LOOKS_BEFORE_WATCHING = 2
"""So often a process looks at all files before a watcher tells it whether some changed."""


class Context(Closing):
    """The parts that work on one memory, each made when it is first asked for.

    What is not asked for is not opened, and a fault of it stops nobody.
    """

    def __init__(
        self,
        recorded: Recorded,
        folder: Path,
        config: Config,
        request: RequestContext,
        embedder: "Embedder | None" = None,
    ) -> None:
        self.recorded = recorded
        self.request = request
        """Who asks, if nobody says."""
        self.config = config
        self._folder = folder
        self._embedder = embedder
        self._unfinished = ""
        self._lock = Lock()
        self._memories = 0
        self._is_closed = False
        self.leaves_checks = False
        self.watcher: ChangeWatcher | None = None
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
        with self._lock:
            self._looks += 1
            if self._looks != _LOOKS_BEFORE_WATCHING or self._is_closed:
                return
            from perdure.engine.watcher import change_watcher

            self.watcher = change_watcher(self.recorded.identity, folders)

    @property
    def check_seconds(self) -> float:
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

        return RelationReader(self.reader, self.links)

    @cached_property
    def nodes(self) -> "Nodes":
        from perdure.context.nodes import Nodes

        return Nodes(self.recorded, backlinks=self.links)

    @cached_property
    def relations(self) -> "Relations":
        from perdure.context.relations import Relations

        return Relations(self.nodes, self.links)

    @cached_property
    def links(self) -> "FollowedLinks":
        from perdure.context.followed import FollowedLinks

        file = str(self._folder / "links.sqlite")
        return self._closing.enter_context(closing(FollowedLinks(self.recorded.history, file)))

    @cached_property
    def outbox(self) -> "OutboxStore":
        from perdure.engine.outbox import LogFeed, OutboxStore

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
            "links": self.links,
            **self.indexes.tenant_data(),
        }
        return NamespaceManager(backend, holders)

    @cached_property
    def erasing(self) -> "Erasing":
        """Return who erases; what was begun and not ended is finished by whoever has the memory."""
        from perdure.engine.erasing.derived import Derived
        from perdure.engine.erasing.erasing import Erasing

        derived = Derived(self.recorded, self.indexes, self.outbox, self.links, self.seen)
        return Erasing(self.nodes, derived, self.signing_key, self.namespaces_on)

    def log(self, actor: str) -> "Log":
        from perdure.engine.versions import Log

        return Log(self._folder, actor=actor, signing_key=self.signing_key, recorded=self.recorded)

    def signing_key(self) -> "SigningKey":
        from perdure.app.opening import signing_key

        return signing_key(self.config)

    @cached_property
    def repair(self) -> "Repair":
        from perdure.engine.repair import Repair

        return Repair(self.nodes)

    def status(self, caller: RequestContext, *, exact: bool) -> "tuple[StatusPart, ...]":
        from perdure.app.condition import Condition

        return tuple(Condition(lambda: self.config, caller, exact=exact).parts())

    def doctor(self, caller: RequestContext) -> "Checkup":
        from perdure.app.condition import check_memory

        return check_memory(self.config, caller)

    def warnings(self) -> str:
        """Return, once, what was quarantined or could not be finished; empty if nothing was."""
        aside = self.indexes.way.report() if "indexes" in vars(self) else ""
        unfinished, self._unfinished = self._unfinished, ""
        return "; ".join(filter(None, (aside, unfinished)))

    @cached_property
    def indexes(self) -> "Indexes":
        from perdure.app.embedding import embedder_for, reopened, settings_of
        from perdure.engine.indexes import Embedders, Indexes

        config, given = self.config, self._embedder
        embedders = Embedders(
            lambda: embedder_for(config) if given is None else given,
            partial(settings_of, config, given),
            partial(reopened, config=config),
        )
        indexes = Indexes(self.recorded, self._folder, config, embedders)
        return self._closing.enter_context(closing(indexes))

    @cached_property
    def language_model(self) -> "LLM | None":
        from perdure.app.llm import language_model_for

        model = language_model_for(self.config)
        if model is None:
            return None
        self._closing.callback(model[1].close)
        return model[0]

    @cached_property
    def memory(self) -> "Memory":
        return self.memory_for(self.request)

    def memory_for(self, caller: RequestContext, project: "Identity | str" = "") -> "Memory":
        """Return the memory for a caller; the last one to close closes these parts too."""
        from perdure.engine.memory import Memory

        self._finish_erasing()
        return Memory(self, caller, project)

    def present(self, account_id: str) -> "Present":
        return self.indexes.present(account_id)

    def pasts(self, account_id: str) -> "Pasts":
        return self.indexes.pasts(account_id)

    def retain(self) -> None:
        with self._lock:
            self._memories += 1

    def release(self) -> None:
        with self._lock:
            self._memories -= 1
            is_last = self._memories == 0
        if is_last:
            self.close()

    def _finish_erasing(self) -> None:
        """Go on with what somebody began to erase, if that can be done now."""
        if (self._folder / "erasing").is_dir():
            try:
                self.erasing.resume(self.request)
            except LockTimeout:
                return  # somebody is at it
            except (PerdureError, OSError) as error:
                self._unfinished = f"what was to be erased is not erased yet: {error}"

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
        if self.watcher is not None:
            self.watcher.close()
        self._closing.close()


def open_context(
    environ: Mapping[str, str], *, backend: str | None = None, embedder: "Embedder | None" = None
) -> Context:
    """Open the configured memory; `backend` and `embedder` replace the configured ones."""
    config = load_config(environ)
    if backend is not None:
        config = replace(config, storage=replace(config.storage, backend=backend))
    recorded = recorded_of(config)
    folder = Path(recorded.history.store.disk.whereabouts)
    return Context(recorded, folder, config, default_request(environ), embedder)


def open_memory(
    environ: Mapping[str, str],
    caller: "RequestContext",
    *,
    backend: str | None = None,
    project: "Identity | str" = "",
    leaves_checks: bool = False,
) -> "Memory":
    """Open the memory of a caller; `leaves_checks` as `Parts` has it."""
    context = open_context(environ, backend=backend)
    context.leaves_checks = leaves_checks
    try:
        return context.memory_for(caller, project)
    except BaseException:
        context.close()
        raise
