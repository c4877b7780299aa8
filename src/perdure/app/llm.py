"""From settings to a language model that costs no more than it may."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from perdure.config import COMMAND_LINE, Config, LanguageModelSettings, load_config
from perdure.errors import ConfigError
from perdure.llm.client import ATTEMPTS, LLMClient
from perdure.llm.contract import LLM, Completer
from perdure.llm.counter import ledger_file
from perdure.llm.ledger import Budget, Cost, Ledger, MeteredCompleter, costs
from perdure.llm.services import Service
from perdure.plugins import Group, create

OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"


def language_model_for(config: Config) -> tuple[LLM, Ledger] | None:
    """Return the model that the owner switched on, and its ledger; it is never asked by itself."""
    settings = config.llm
    if settings.provider == "none":
        return None
    completer = _completer(settings, config.home)
    ledger = Ledger(str(ledger_file(config.home)))
    metered = MeteredCompleter(
        completer, ledger, Budget(settings.tokens_per_day, settings.runs_per_day)
    )
    attempts = 1 if settings.provider in COMMAND_LINE else ATTEMPTS  # clients try again themselves
    return LLMClient(metered, attempts=attempts), ledger


def costs_here(environ: Mapping[str, str], by: str, since: datetime | None) -> tuple[Cost, ...]:
    """Return what models have used in this user's home, by `day` or `model`; opens no memory."""
    return costs(load_config(environ).home, by, since)


def _completer(settings: LanguageModelSettings, home: Path) -> Completer:
    if settings.api_key_variable and not settings.api_key:
        raise ConfigError(
            f"the language model needs the key in {settings.api_key_variable}, which is not set. "
            "Fix: set it in the environment, or correct api_key_variable in [llm] of the config."
        )
    if settings.provider == "openai":
        from perdure.llm.services import OpenAICompleter

        ours = "max_tokens" if settings.base_url else "max_completion_tokens"
        return OpenAICompleter(_service(settings, OPENAI, "json_schema", ours))
    if settings.provider == "anthropic":
        from perdure.llm.services import AnthropicCompleter

        return AnthropicCompleter(_service(settings, ANTHROPIC, "tool", "max_tokens"))
    if settings.provider in COMMAND_LINE:
        return _command_line(settings, home)
    return create(Group.LLM, settings.provider, Completer, settings)  # type: ignore[type-abstract] # only for isinstance


def _command_line(settings: LanguageModelSettings, home: Path) -> Completer:
    from perdure.llm.command_line import ClaudeCode, ClientSettings, Codex

    client = ClaudeCode if settings.provider == ClaudeCode.protocol else Codex
    return client(
        ClientSettings(
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
