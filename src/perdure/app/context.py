"""The composition of one memory: its parts, with what the config chooses."""

from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.app.opening import default_request, recorded_of, signing_key
from perdure.config import load_config
from perdure.dataclass import replace
from perdure.engine.services import Services
from perdure.model import RequestContext

if TYPE_CHECKING:
    from perdure.engine.indexing.indexes import Embedders
    from perdure.engine.memory import Memory
    from perdure.engine.upkeep import Checkup, StatusSection
    from perdure.index.contract import Embedder
    from perdure.llm.contract import LLM
    from perdure.llm.ledger import Ledger
    from perdure.model.aliases import Identity
    from perdure.proofs.keys import SigningKey


class Context(Services):
    embedder: "Embedder | None" = None
    """In place of the configured one."""

    def signing_key(self) -> "SigningKey":
        return signing_key(self.config)

    def _embedders(self) -> "Embedders":
        from perdure.app.embedding import embedder_for, reopened, settings_of
        from perdure.engine.indexing.indexes import Embedders

        config, given = self.config, self.embedder
        return Embedders(
            lambda: embedder_for(config) if given is None else given,
            partial(settings_of, config, given),
            partial(reopened, config=config),
        )

    def _language_model(self) -> "tuple[LLM, Ledger] | None":
        from perdure.app.llm import language_model_for

        return language_model_for(self.config)

    def status(self, caller: RequestContext, *, exact: bool) -> "tuple[StatusSection, ...]":
        from perdure.app.condition import Condition

        return tuple(Condition(lambda: self.config, caller, exact=exact).parts())

    def doctor(self, caller: RequestContext) -> "Checkup":
        from perdure.app.condition import check_memory

        return check_memory(self.config, caller)

    @cached_property
    def memory(self) -> "Memory":
        return self.memory_for(self.request)

    def memory_for(self, caller: RequestContext, project: "Identity | str" = "") -> "Memory":
        """Return the memory for a caller; the last one to close closes these parts too."""
        from perdure.engine.memory import Memory

        self.finish_erasing()
        return Memory(self, caller, project)


def open_context(
    environ: Mapping[str, str], *, backend: str | None = None, embedder: "Embedder | None" = None
) -> Context:
    """Open the configured memory; `backend` and `embedder` replace the configured ones."""
    config = load_config(environ)
    if backend is not None:
        config = replace(config, storage=replace(config.storage, backend=backend))
    recorded = recorded_of(config)
    folder = Path(recorded.history.store.disk.whereabouts)
    context = Context(recorded, folder, config, default_request(environ))
    context.embedder = embedder
    return context


def open_memory(
    environ: Mapping[str, str],
    caller: "RequestContext",
    *,
    backend: str | None = None,
    project: "Identity | str" = "",
    checks_in_background: bool = False,
) -> "Memory":
    """Open the memory of a caller; `checks_in_background` as `Services` has it."""
    context = open_context(environ, backend=backend)
    context.checks_in_background = checks_in_background
    try:
        return context.memory_for(caller, project)
    except BaseException:
        context.close()
        raise
