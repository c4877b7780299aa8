"""From settings to a language model that costs no more than it may."""

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Protocol, runtime_checkable

from perdure.config import COMMAND_LINE, Config, LanguageModelSettings, load_config
from perdure.engine.llm.asking import Asking, Remembered, Retried
from perdure.engine.llm.contract import LLM, Completer, Occasion
from perdure.engine.llm.counter import ledger_file
from perdure.engine.llm.ledger import (
    Budget,
    Cost,
    Ledger,
    Limit,
    Metered,
    Prices,
    Terms,
    costs,
    nanodollars,
)
from perdure.engine.llm.wire import Service
from perdure.errors import ConfigError
from perdure.plugins import Group, create

OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"


@runtime_checkable
class Adapter(Completer, Protocol):
    """What `perdure.llms` offers, made with the `LanguageModelSettings` of the config."""

    def close(self) -> None: ...


class LanguageModel:
    """The model that the owner switched on. It is asked when somebody asks, and never by itself."""

    def __init__(
        self, adapter: Adapter, ledger: Ledger, terms: Terms, folder: Path, *, retry: bool = True
    ) -> None:
        self._adapter = adapter
        self._ledger = ledger
        self._terms = terms
        self._folder = folder
        self._retry = retry

    def on(self, occasion: Occasion) -> LLM:
        """Return the model as it is asked on an occasion, which the ledger and the memo keep to."""
        metered = Metered(self._adapter, self._ledger, self._terms, occasion)
        asked = Retried(metered) if self._retry else metered
        return Asking(Remembered(asked, self._folder, self._ledger, occasion))

    def close(self) -> None:
        with ExitStack() as closing:
            closing.callback(self._ledger.close)
            closing.callback(self._adapter.close)


def language_model_for(config: Config, folder: Path) -> LanguageModel | None:
    settings = config.llm
    if settings.provider == "none":
        return None
    terms, adapter = _terms(settings), _adapter(settings, config.home)
    ledger = Ledger(str(ledger_file(config.home)), folder.name)
    retry = settings.provider not in COMMAND_LINE  # their clients try again themselves
    return LanguageModel(adapter, ledger, terms, folder / "answers", retry=retry)


def costs_here(environ: Mapping[str, str], by: str, since: datetime | None) -> tuple[Cost, ...]:
    """Return what models have cost in this user's home, by `day`, `session`, `model` or `purpose`.

    No memory is opened.
    """
    return costs(load_config(environ).home, by, since)


def _adapter(settings: LanguageModelSettings, home: Path) -> Adapter:
    if settings.api_key_variable and not settings.api_key:
        raise ConfigError(
            f"the language model needs the key in {settings.api_key_variable}, which is not set. "
            "Fix: set it in the environment, or correct api_key_variable in [llm] of the config."
        )
    if settings.provider == "openai":
        from perdure.engine.llm.wire import OpenAICompatible

        ours = "max_tokens" if settings.base_url else "max_completion_tokens"
        return OpenAICompatible(_service(settings, OPENAI, "json_schema", ours))
    if settings.provider == "anthropic":
        from perdure.engine.llm.wire import Anthropic

        return Anthropic(_service(settings, ANTHROPIC, "tool", "max_tokens"))
    if settings.provider in COMMAND_LINE:
        return _command_line(settings, home)
    return create(Group.LLM, settings.provider, Adapter, settings)  # type: ignore[type-abstract] # only for isinstance


def _command_line(settings: LanguageModelSettings, home: Path) -> Adapter:
    from perdure.engine.llm.adapters.command_line import ClaudeCode, Codex, Settings

    client = ClaudeCode if settings.provider == ClaudeCode.protocol else Codex
    return client(
        Settings(
            ledger_file(home).parent,
            settings.environ,
            settings.model,
            settings.base_url,
            settings.api_key,
            settings.max_output_tokens,
        )
    )


def _service(
    settings: LanguageModelSettings, base_url: str, structured: str, limit_name: str
) -> Service:
    return Service(
        settings.base_url or base_url,
        settings.model,
        settings.api_key,
        settings.structured or structured,
        settings.max_output_tokens,
        settings.limit_name or limit_name,
    )


def _terms(settings: LanguageModelSettings) -> Terms:
    budget = Budget(
        Limit(settings.tokens_per_call, _money(settings.dollars_per_call)),
        Limit(settings.tokens_per_session, _money(settings.dollars_per_session)),
        Limit(settings.tokens_per_day, _money(settings.dollars_per_day)),
        settings.runs_per_day,
    )
    if settings.input_price is None or settings.output_price is None:
        return Terms(budget)
    return Terms(budget, Prices(_exact(settings.input_price), _exact(settings.output_price)))


def _money(dollars: float | None) -> int | None:
    return None if dollars is None else nanodollars(_exact(dollars))


def _exact(number: float) -> Decimal:
    """Return the number that was written, and not the one that is nearest to it in binary."""
    return Decimal(repr(number))
