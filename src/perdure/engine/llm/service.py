"""Where a model is, and how it is asked there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from perdure.errors import InvalidValueError
from perdure.model.values import JSON, counted, shown

STRUCTURES = ("json_schema", "tool", "text")
"""How a service is made to answer in JSON: by its own feature, by a tool whose input is the answer,
or by being told to in the prompt."""


@dataclass(frozen=True, slots=True)
class Service:
    """One model behind one endpoint. The key is told to nobody else."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    structured: str = "json_schema"
    max_output_tokens: int = 4_096
    limit_name: str = "max_tokens"
    """What the endpoint calls the limit; only where it can be called otherwise."""
    connect_seconds: float = 10.0
    read_seconds: float = 120.0
    """For how long nothing may come; models think before they say the first word."""

    def __post_init__(self) -> None:
        _check_url(self.base_url)
        if not self.model:
            raise InvalidValueError("there is no name of a model. Fix: set model in [llm].")
        if not self.api_key.isascii() or not self.api_key.isprintable() or " " in self.api_key:
            raise InvalidValueError(
                "the API key holds what no key can. Fix: copy it again, without line breaks."
            )
        if self.structured not in STRUCTURES:
            raise InvalidValueError(
                f"structured is {shown(self.structured)}. Fix: use {', '.join(STRUCTURES)}."
            )
        counted(self.max_output_tokens, "most tokens of an answer", 1)

    def parameters(self, adapter: str) -> Mapping[str, JSON]:
        """Return all that an answer depends on besides the request, and who asked."""
        return {
            "adapter": adapter,
            "base_url": self.base_url,
            "model": self.model,
            "structured": self.structured,
            "max_output_tokens": self.max_output_tokens,
        }


def _check_url(url: str) -> None:
    parts = _split(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidValueError(
            "the URL of the language model holds more than a host and a path. "
            "Fix: give a URL as https://host/v1, and what is secret as the API key."
        )
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidValueError(f"{shown(url)} is no endpoint. Fix: give a URL as https://host/v1.")


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # looked at here, where a wrong one can be told
    except ValueError:
        return SplitResult("", "", "", "", "")
    return parts
