"""The composition of one memory from what the config chooses."""

from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.app.open import default_request, recorded_for, signing_key_for
from perdure.config import load_config
from perdure.dataclass import replace
from perdure.engine.services import Checkup, Services, StatusSection
from perdure.model import RequestContext

if TYPE_CHECKING:
    from perdure.engine.indexing.indexes import Embedders
    from perdure.engine.memory import Memory
    from perdure.index.contract import Embedder
    from perdure.llm.contract import LLM
    from perdure.llm.ledger import Ledger
    from perdure.model.project_aliases import ProjectIdentity
    from perdure.proofs.signing_keys import SigningKey


class Context(Services):
    embedder: "Embedder | None" = None
    """Replaces the configured embedder."""

    def signing_key(self) -> "SigningKey":
        return signing_key_for(self.config)

    def _embedders(self) -> "Embedders":
        from perdure.app.providers import embedder_for, embedder_settings, reopen_embedder
        from perdure.engine.indexing.indexes import Embedders

        config, given = self.config, self.embedder
        return Embedders(
            lambda: embedder_for(config) if given is None else given,
            partial(embedder_settings, config, given),
            partial(reopen_embedder, config=config),
        )

    def _language_model(self) -> "tuple[LLM, Ledger] | None":
        from perdure.app.providers import language_model_for

        return language_model_for(self.config)

    def status(self, caller: RequestContext, *, exact: bool) -> "tuple[StatusSection, ...]":
        from perdure.app.health import Health

        return tuple(Health(lambda: self.config, caller, exact=exact).status())

    def doctor(self, caller: RequestContext) -> "Checkup":
        from perdure.app.health import check_memory

        return check_memory(self.config, caller)

    @cached_property
    def memory(self) -> "Memory":
        return self.memory_for(self.request)

    def memory_for(self, caller: RequestContext, project: "ProjectIdentity | str" = "") -> "Memory":
        """Return the memory for a caller; closing the last one closes this context too."""
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
    recorded = recorded_for(config)
    folder = Path(recorded.history.store.disk.whereabouts)
    context = Context(recorded, folder, config, default_request(environ))
    context.embedder = embedder
    return context


def open_memory(
    environ: Mapping[str, str],
    caller: "RequestContext",
    *,
    backend: str | None = None,
    project: "ProjectIdentity | str" = "",
    checks_in_background: bool = False,
) -> "Memory":
    """Open the memory of a caller; `checks_in_background` as in `Services`."""
    context = open_context(environ, backend=backend)
    context.checks_in_background = checks_in_background
    try:
        return context.memory_for(caller, project)
    except BaseException:
        context.close()
        raise
