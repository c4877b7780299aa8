"""What an answer says to whoever gets it, down to the last text in it."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum

from perdure.errors import PerdureError
from perdure.model import ContextNode, OutboxEvent, RequestContext
from tests.support.context.tenancy.model import TOKEN, Model

_URI = re.compile(r"ctx://[\w.~%/-]+")
_TYPED = frozenset({"content", "frontmatter"})
"""What its author typed: the links in it say where they lead, be it in reach or not."""


class Leak(AssertionError):  # noqa: N818 - a leak is what it is
    """Somebody got, or did, what was out of their reach; or was kept from what is theirs."""


def demand(holds: object, what: str) -> None:
    if not holds:
        raise Leak(what)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verb returned, or how it refused."""

    value: object = None
    error: PerdureError | None = None

    def refused(self, *kinds: type[Exception]) -> None:
        demand(isinstance(self.error, kinds), f"expected {kinds}, got {self!r}")

    def given(self) -> object:
        demand(self.error is None, f"refused for no reason: {self.error!r}")
        return self.value

    def words(self, *named: str) -> str:
        """Return the text of a refusal, without the places that were asked for."""
        text = str(self.error)
        for uri in sorted(named, key=len, reverse=True):
            text = text.replace(ascii(uri[:200])[1:-1], "<uri>")
        return text


def check_answer(answer: Answer, asked: Collection[str], ctx: RequestContext, model: Model) -> None:
    """Refuse an answer with a secret or a place in it that the caller can't know.

    A place that the caller named may be named in a refusal, and in an event, which says again what
    an outbox was told; nowhere else.
    """
    events = answer.value if isinstance(answer.value, list) else [answer.value]
    reported = asked if all(isinstance(event, OutboxEvent) for event in events) else ()
    for text in _texts(answer.value):
        _check_text(text, reported, ctx, model)
    if answer.error is not None:
        cause = answer.error.__cause__
        for text in [str(answer.error), str(cause or ""), *getattr(answer.error, "__notes__", ())]:
            _check_text(text, asked, ctx, model)


def uris_in(value: object) -> set[str]:
    return {uri.rstrip(".") for text in _texts(value) for uri in _URI.findall(text)}


def _check_text(text: str, asked: Collection[str], ctx: RequestContext, model: Model) -> None:
    for token in TOKEN.findall(text):
        demand(model.may_know(token, ctx), f"{token} was told to {ctx}: {text!r}")
    for found in _URI.findall(text):
        uri = found.rstrip(".")
        foreign = uri in model.known and not model.may_see(uri, ctx)
        demand(uri in asked or not foreign, f"{uri} was told to {ctx}: {text!r}")


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a value, but not the URIs that somebody typed into a content."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, ContextNode):
        yield from TOKEN.findall(f"{value.content}{value.frontmatter}")
        yield from _fields(value)
    elif is_dataclass(value):
        yield from _fields(value)
    elif isinstance(value, Enum):
        yield str(value.value)
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _texts(name)
            yield from _texts(each)
    elif isinstance(value, Collection) and not isinstance(value, bytes):
        for each in value:
            yield from _texts(each)


def _fields(value: object) -> Iterator[str]:
    for each in fields(value):  # type: ignore[arg-type] # who calls has looked
        if each.name not in _TYPED:
            yield from _texts(getattr(value, each.name))
