"""From settings to whoever turns texts into vectors."""

from holdfast.config import Config
from holdfast.index.contract import Embedder


def embedder_for(config: Config) -> Embedder | None:
    """Return the embedder that this user configured; None if texts are compared by words only."""
    settings = config.embedding
    if settings.provider == "none":
        return None
    if settings.provider == "openai":
        from holdfast.index.embedders.endpoint import Endpoint  # noqa: PLC0415 - who has one pays
        from holdfast.index.embedders.openai_compatible import (  # noqa: PLC0415 - as before
            OpenAICompatible,
        )

        endpoint = Endpoint(settings.base_url, settings.api_key)
        return OpenAICompatible(endpoint, settings.model, settings.dimension)
    from holdfast.index.models.installed import demand, find  # noqa: PLC0415 - as before

    models = config.home / "models"
    model = demand(models) if settings.provider == "minilm" else find(models)
    if model is None:
        return None
    from holdfast.index.embedders.minilm import MiniLM  # noqa: PLC0415 - as before

    return MiniLM(model)
