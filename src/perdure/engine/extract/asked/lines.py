"""A message as one line of the record that a model is shown."""

from perdure.engine.llm.quoting import line_of
from perdure.model.transcript import Message
from perdure.model.values import JSON  # noqa: TC001 - imported as everywhere


def as_line(
    number: int, message: Message, text: str, *, is_owner: bool, is_before: bool = False
) -> str:
    """Return who said what, and when, as JSON; the same message gives the same line."""
    told: list[tuple[str, JSON]] = [
        ("role", message.role),
        ("name", message.name),
        ("owner", is_owner),
        ("time", f"{message.time:%A %Y-%m-%d %H:%M}" if message.time else ""),
        ("before", is_before),
    ]
    return line_of({"message": number} | {name: v for name, v in told if v} | {"text": text})
