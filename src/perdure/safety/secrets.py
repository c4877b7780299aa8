"""Finds secrets in a text: keys, tokens, passwords, numbers of cards and accounts.

The formats of services' tokens are in `services.txt`; values that only their context identifies are
found by `passwords`. Hashes, identifiers, examples and placeholders are not secrets.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from pathlib import Path

from perdure.dataclass import dataclass
from perdure.patterns import later
from perdure.safety.characters import bare_text
from perdure.safety.passwords import (
    Place,
    assigned_in,
    classes,
    find_names,
    in_urls,
    is_placeholder,
    phrased_in,
)
from perdure.tables import table

_ROUNDS = 4
_MIXED = 3
"""Lower case, upper case and digits; a hash has only two of them."""
_LONG = later(r"(?<!\S)\S{20,}")
_KEY_BODY = later(r"[A-Za-z0-9+/=]{16}")
_EXAMPLE_JWT = "eyJzdWIiOiIxMjM0NTY3ODkwIiwi"
"""The start of the claims that every manual shows: subject 1234567890."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A part of a text that must not be stored. It never contains the value itself."""

    kind: str
    start: int
    end: int


class SecretPolicy(Enum):
    REFUSE = "refuse"
    MASK = "mask"


def secrets_in(text: str) -> list[Secret]:
    """Return the secrets of a text in order, without overlaps.

    A key with hidden characters in it is found too, including those characters.
    """
    places = [*_places(text)]
    if (bare := bare_text(text)) is not None:
        places += ((kind, *bare.place(start, end)) for kind, start, end in _places(bare.text))
    return _joined(places)


def _places(text: str) -> Iterator[Place]:
    yield from _of_services(text)
    if "://" in text and "@" in text:
        yield from in_urls(text)
    yield from (("card number", *place) for place in _cards_in(text))
    yield from (("IBAN", *place) for place in _ibans_in(text))
    if (names := find_names(text)).words:
        yield from phrased_in(names)
        yield from assigned_in(names)


def mask(text: str) -> tuple[str, list[Secret]]:
    """Return the text with each secret replaced by its kind, and where the secrets were.

    Neither a value nor its length remains.
    """
    found = secrets_in(text) if text else []
    if not found:
        return text, found
    result = _without(text, found)
    for _ in range(_ROUNDS):  # the text beside a masked secret may match now
        again = secrets_in(result)
        if not again:
            break
        result = _without(result, again)
    return result, found


def _without(text: str, secrets: Iterable[Secret]) -> str:
    pieces: list[str] = []
    at = 0
    for each in secrets:
        pieces += [text[at : each.start], f"[secret: {each.kind}]"]
        at = each.end
    return "".join([*pieces, text[at:]])


@cache
def _services() -> list[tuple[str, tuple[str, ...], str, bool]]:
    found: list[tuple[str, tuple[str, ...], str, bool]] = []
    for line in Path(__file__).with_name("services.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            bounds, kind, hints, pattern = line.split(" | ", 3)
            if bounds == "alone":
                pattern = rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9_])"
            found.append((kind, tuple(hints.split()), pattern, bounds == "space"))
    return found


def _of_services(text: str) -> Iterator[Place]:
    words = [(each.start(), each[0]) for each in _LONG.finditer(text)]
    long = " ".join([word for _, word in words])
    for kind, hints, looks_like, spaced in _services():
        searched = text if spaced else long
        if not searched or not any(map(searched.__contains__, hints)):
            continue
        pattern = re.compile(looks_like)  # here, because most processes need none
        group = "value" if "value" in pattern.groupindex else 0
        for at, part in [(0, text)] if spaced else words:
            for match in pattern.finditer(part):
                if _is_secret(kind, match, match[group]):
                    yield kind, at + match.start(group), at + match.end(group)


def _is_secret(kind: str, match: re.Match[str], value: str) -> bool:
    if kind == "private key":
        return _KEY_BODY.search(value.replace("PRIVATE", "")) is not None
    if kind == "AWS secret key":
        return classes(value.replace("/", "").replace("+", "")) >= _MIXED
    if kind == "JSON web token":
        return _EXAMPLE_JWT not in value
    if kind == "authorization header":
        return _authorises(value, basic="asic" in match[0][: match.start("value") - match.start()])
    return not is_placeholder(value) and _is_random(value)


def _is_random(value: str) -> bool:
    """Whether the end of a value looks random, unlike a word."""
    tail = value[-20:]
    return any(map(str.isdigit, tail)) or (tail != tail.lower() and tail != tail.upper())


def _authorises(value: str, *, basic: bool) -> bool:
    if basic:
        try:
            user, colon, password = base64.b64decode(value, validate=True).partition(b":")
        except binascii.Error:
            return False
        return bool(colon) and user != password and not is_placeholder(password.decode("latin-1"))
    return not is_placeholder(value) and any(map(str.isdigit, value))


def _joined(places: list[Place]) -> list[Secret]:
    """Merge places that overlap; the first found gives the kind."""
    found: list[tuple[int, Secret]] = []
    ranked = sorted(enumerate(places), key=lambda each: (each[1][1], -each[1][2], each[0]))
    for rank, (kind, start, end) in ranked:
        if not found or start >= found[-1][1].end:
            found.append((rank, Secret(kind, start, end)))
            continue
        before, last = found[-1]
        merged = kind if rank < before else last.kind
        found[-1] = (min(rank, before), Secret(merged, last.start, max(end, last.end)))
    return [secret for _, secret in found]


_NUMBERS = table(__file__, "secrets.txt", "numbers")
_CARD = later(r"\d(?<![\w.-]\d)(?:[ -]?\d){12,18}(?![\w-])(?!\.\d)")  # begins with a set: 2x faster
_ISSUED = later(_NUMBERS["ISSUED"])
_GROUPED = later(r"\d{4}([ -])\d{4}\1\d{4}\1\d{4}|3\d{3}([ -])\d{6}\2\d{5}")
_CARD_WORDS = later(_NUMBERS["CARD_WORDS"])
_NEAR = 60
_KNOWN_CARDS = frozenset(_NUMBERS["KNOWN_CARDS"].split())
"""Test numbers from manuals."""
_IBAN = later(r"[A-Z](?<![A-Za-z0-9].)[A-Z]\d\d(?: ?[A-Z0-9]){11,30}(?![A-Za-z0-9])")
_IBAN_LENGTHS = {each[:2]: int(each[2:]) for each in _NUMBERS["IBAN_LENGTHS"].split()}
_KNOWN_IBANS = frozenset(_NUMBERS["KNOWN_IBANS"].split())


def _cards_in(text: str) -> Iterator[tuple[int, int]]:
    for match in _CARD.finditer(text):
        digits = re.sub(r"[ -]", "", match[0])
        if not _ISSUED.fullmatch(digits) or digits in _KNOWN_CARDS or not _luhn(digits):
            continue
        before = text[max(0, match.start() - _NEAR) : match.start()]
        if len(set(digits)) > 3 and (_GROUPED.fullmatch(match[0]) or _CARD_WORDS.search(before)):  # noqa: PLR2004
            yield match.span()


def _ibans_in(text: str) -> Iterator[tuple[int, int]]:
    for match in _IBAN.finditer(text):
        wanted = _IBAN_LENGTHS.get(match[0][:2])
        end = match.start()
        seen = 0
        while wanted and seen < wanted and end < match.end():
            seen += text[end] != " "
            end += 1
        number = text[match.start() : end].replace(" ", "")
        if seen == wanted and number not in _KNOWN_IBANS and _mod97(number):
            yield match.start(), end


def _luhn(digits: str) -> bool:
    doubled = (int(each) * (1 + at % 2) for at, each in enumerate(reversed(digits)))
    return sum(each // 10 + each % 10 for each in doubled) % 10 == 0


def _mod97(number: str) -> bool:
    rotated = number[4:] + number[:4]
    return int("".join(str(int(each, 36)) for each in rotated)) % 97 == 1
