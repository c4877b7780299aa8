"""Messages as they may be kept: without secrets, in what was said and in who said it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from perdure.engine.validate.secrets import masked
from perdure.model.messages import read_messages
from perdure.model.transcript import Message
from perdure.model.values import MAX_SHOWN, shortened


@dataclass(frozen=True, slots=True)
class Masked:
    """Which secrets were in a message; never what they said."""

    message: int
    """Which one of the session it is, from 0."""
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """A message as it may be kept, and the kinds of the secrets that were masked in it."""

    message: Message
    kinds: tuple[str, ...]


def kept(message: Message) -> Kept:
    """Return a message without its secrets. Masking twice is masking once."""
    content, found = masked(message.content)
    name, in_name = masked(message.name)
    if not found and not in_name:
        return Kept(message, ())
    clean = replace(message, content=content, name=shortened(name, MAX_SHOWN))
    return Kept(clean, tuple(each.kind for each in (*in_name, *found)))


def kept_messages(messages: Iterable[object]) -> list[Message]:
    """Return messages as they may be kept: what is a secret in them is masked."""
    return [kept(each).message for each in read_messages(messages).messages]


def common(before: Sequence[Message], said: Sequence[Message]) -> int:
    """Return how many messages are the same in both, counted from the first.

    What was kept when fewer secrets were known counts as if it were masked today.
    """
    count = 0
    for old, new in zip(before, said, strict=False):
        if old != new and kept(old).message != new:
            break
        count += 1
    return count


def same(before: Sequence[Message], said: Sequence[Message]) -> bool:
    """Whether these were said before, as far as both go."""
    return common(before, said) == min(len(before), len(said))
