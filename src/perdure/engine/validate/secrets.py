"""Which parts of a text are secrets: keys, tokens, passwords, numbers of cards and accounts.

What a service's token looks like is in `services`; a value that only its name tells, in
`assignments`. Hashes, identifiers, examples and placeholders are no secrets.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from perdure.engine.validate.assignments import Place, assigned_in, in_urls
from perdure.engine.validate.characters import bare
from perdure.engine.validate.checksums import cards_in, ibans_in
from perdure.engine.validate.placeholders import classes, stands_for_one
from perdure.engine.validate.services import AWS_SECRET, SHAPES, Shape
from perdure.engine.validate.spoken import spoken_in

_ROUNDS = 4
_MIXED = 3
"""Small and capital letters and digits; a hash has only two of them."""
_KEY_BODY = re.compile(r"[A-Za-z0-9+/=]{16}")
_EXAMPLE_JWT = "eyJzdWIiOiIxMjM0NTY3ODkwIiwi"
"""How the claims begin that every manual shows: subject 1234567890."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A part of a text that must not be stored. It never holds the value itself."""

    kind: str
    start: int
    end: int


class SecretPolicy(Enum):
    """What becomes of a text with a secret."""

    REFUSE = "refuse"
    MASK = "mask"


def secrets_in(text: str) -> list[Secret]:
    """Return the secrets of a text, in their order; no two overlap.

    Hidden characters hide none: a key that they take apart is found, and they are a part of it.
    """
    places = [*_places(text)]
    if (read := bare(text)) is not None:
        places += ((kind, *read.place(start, end)) for kind, start, end in _places(read.text))
    return _joined(places)


def _places(text: str) -> Iterator[Place]:
    yield from _of_services(text)
    yield from in_urls(text)
    yield from _of_checksums(text)
    yield from spoken_in(text)
    yield from assigned_in(text)


def masked(text: str) -> tuple[str, list[Secret]]:
    """Return the text with each secret's kind in its place, and where they were.

    Neither a value nor its length is left.
    """
    found = secrets_in(text)
    result = _without(text, found)
    for _ in range(_ROUNDS):  # what stood beside a secret may be one without it
        again = secrets_in(result)
        if not again:
            break
        result = _without(result, again)
    return result, found


def _without(text: str, secrets: Iterable[Secret]) -> str:
    parts: list[str] = []
    at = 0
    for each in secrets:
        parts += [text[at : each.start], f"[secret: {each.kind}]"]
        at = each.end
    return "".join([*parts, text[at:]])


def _of_services(text: str) -> Iterator[Place]:
    for shape in SHAPES:
        if any(hint in text for hint in shape.hints):
            for match in shape.pattern.finditer(text):
                group = "value" if "value" in shape.pattern.groupindex else 0
                if _is_one(shape, match, match[group]):
                    yield shape.kind, *match.span(group)


def _is_one(shape: Shape, match: re.Match[str], value: str) -> bool:
    if shape.kind == "private key":
        return _KEY_BODY.search(value.replace("PRIVATE", "")) is not None
    if shape.kind == AWS_SECRET:
        return classes(value.replace("/", "").replace("+", "")) >= _MIXED
    if shape.kind == "JSON web token":
        return _EXAMPLE_JWT not in value
    if shape.kind == "authorization header":
        return _authorises(value, basic="asic" in match[0][: match.start("value") - match.start()])
    return not stands_for_one(value) and _random(value)


def _random(value: str) -> bool:
    """Whether letters are mixed as chance does it, and not as words are."""
    tail = value[-20:]
    return any(map(str.isdigit, tail)) or (tail != tail.lower() and tail != tail.upper())


def _authorises(value: str, *, basic: bool) -> bool:
    if basic:
        try:
            user, colon, password = base64.b64decode(value, validate=True).partition(b":")
        except binascii.Error:
            return False
        return bool(colon) and user != password and not stands_for_one(password.decode("latin-1"))
    return not stands_for_one(value) and any(map(str.isdigit, value))


def _of_checksums(text: str) -> Iterator[Place]:
    for start, end in cards_in(text):
        yield "card number", start, end
    for start, end in ibans_in(text):
        yield "IBAN", start, end


def _joined(places: list[Place]) -> list[Secret]:
    """Return secrets that don't overlap; of those that do, the first found gives the kind."""
    found: list[tuple[int, Secret]] = []
    ranked = sorted(enumerate(places), key=lambda each: (each[1][1], -each[1][2], each[0]))
    for rank, (kind, start, end) in ranked:
        if not found or start >= found[-1][1].end:
            found.append((rank, Secret(kind, start, end)))
            continue
        before, last = found[-1]
        told = kind if rank < before else last.kind
        found[-1] = (min(rank, before), Secret(told, last.start, max(end, last.end)))
    return [secret for _, secret in found]
