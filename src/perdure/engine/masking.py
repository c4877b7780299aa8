"""Messages as they may be kept: without secrets, in what was said and in who said it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from perdure.engine.validate.secrets import masked
from perdure.errors import InvalidValueError
from perdure.model.transcript import Message
from perdure.model.values import MAX_SHOWN, shortened, shown


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


def read_and_kept(messages: Iterable[Mapping[str, object]]) -> list[Kept]:
    """Return messages as agents hand them over, each as it may be kept."""
    given: object = messages
    if not isinstance(given, Iterable):
        raise InvalidValueError(f"{shown(messages)} are no messages. Fix: give a list of them.")
    return [kept(Message.from_mapping(each)) for each in messages]


def kept_messages(messages: Iterable[Mapping[str, object]]) -> list[Message]:
    """Return messages as they may be kept: what is a secret in them is masked."""
    return [each.message for each in read_and_kept(messages)]


def same(before: Sequence[Message], said: Sequence[Message]) -> bool:
    """Whether these were said before, as far as both go.

    What was kept when fewer secrets were known counts as if it were masked today.
    """
    return all(
        old == new or kept(old).message == new for old, new in zip(before, said, strict=False)
    )
