"""What a model said."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """As many tokens as were read and written."""

    input_tokens: int
    output_tokens: int

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model wants to be called, with arguments as it wrote them."""

    tool: str
    arguments: str
    """Meant to be a JSON object; nobody has looked yet."""


@dataclass(frozen=True, slots=True)
class Answer:
    text: str = ""
    calls: tuple[Call, ...] = ()
    usage: Usage | None = None
    """None if the service does not tell."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The model declined."""

    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Truncation:
    """The model was at the end of its tokens before it was done."""

    usage: Usage | None = None


Reply = Answer | Refusal | Truncation
