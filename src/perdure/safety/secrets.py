"""Finds secrets in a text: keys, tokens, passwords, numbers of cards and accounts.

The formats of services' tokens are in `services.txt`; values that only their context identifies are
found by `passwords`. Hashes, identifiers, examples and placeholders are not secrets.
"""

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import cache
from pathlib import Path

from perdure.dataclass import dataclass
from perdure.patterns import later, table
from perdure.safety.markup import bare_text, without_plain

_PATTERNS = table(__file__, "secrets.txt")

_TELLS = later(_PATTERNS["TELLS"])
_REFERS = later(_PATTERNS["REFERS"])
_DEFAULTS = frozenset(_PATTERNS["DEFAULTS"].split())
"""Common placeholders for a password."""
_RUN = later(r"(.)\1{4}")
_HASHED = later(r"\$(?:2[abxy]?|argon2\w*|[156]|scrypt|pbkdf2[\w-]*)\$.*|pbkdf2_.*|\{SSHA\}.*")
_FEW = 4


def is_placeholder(value: str) -> bool:
    """Whether a value is an example, a mask, a reference or a hash, and not a secret."""
    return (
        value.casefold() in _DEFAULTS
        or len(set(value)) <= _FEW
        or _TELLS.search(value) is not None
        or _RUN.search(value) is not None
        or _HASHED.fullmatch(value) is not None
    )


def is_expression(value: str) -> bool:
    """Whether a value is a name, a path or code that evaluates to the secret."""
    return _REFERS.fullmatch(value) is not None


def classes(value: str) -> int:
    sorts = (str.islower, str.isupper, str.isdigit, lambda each: not each.isalnum())
    return sum(any(map(sort, value)) for sort in sorts)


def entropy(value: str) -> float:
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)


Place = tuple[str, int, int]

PASSWORD, TOKEN = "password", "secret value"

_IN_URL = later(_PATTERNS["IN_URL"])
_GOES_ON = later(r"&lt;|[;&][\w.%-]{1,40}=")
_ENDINGS = ",;)]}|.:?*\\"
_NAMED = later(r"(?:[a-z]{2,}|\d{1,4})(?:[-_.:](?:[a-z]{2,}|\d{1,4}))*")
_PHRASE = later(r"[a-z]{3,}(?:[-_.][a-z]{3,}){2,}[-_.]?\d{1,4}")
_UUID = later(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ENCODED = later(r"(?i)(?:base\d\d|sha-?\d|utf-?\d|md5|argon2|bcrypt|oauth|\d+[a-z]{0,2}$).*")
_SHORTEST = 6
_SHORTEST_TOKEN = 16
_BITS = 3.0
_MIXED_CASE = 3


BEGINS = {
    name: frozenset(words.split())
    for name, words in table(__file__, "secrets.txt", "begins").items()
    if name in _PATTERNS
}
PATTERNS = {name: later(_PATTERNS[name]) for name in BEGINS}
_WORDS = frozenset[str]().union(*BEGINS.values())
_SMALL = {"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k", "\u1c82": "\u043e"}
"""Characters that a pattern matches as lower case, but `str.lower` does not, or expands."""
_FOREIGN = later(f"(?i)[{''.join({*_SMALL, *''.join(_WORDS)} - set(map(chr, range(0x80))))}]")


@dataclass(frozen=True, slots=True)
class NamePlaces:
    """A text, and the positions of words that may start the name of a secret."""

    text: str
    words: dict[str, list[int]]

    def matches(self, name: str) -> Iterator[re.Match[str]]:
        """Yield what `finditer` of a pattern yields, but try a hundredth of the positions."""
        words = BEGINS[name].intersection(self.words)
        end = 0
        for start in sorted({at for word in words for at in self.words[word]}):
            if start >= end and (match := PATTERNS[name].match(self.text, start)):
                yield match
                end = match.end()


def find_names(text: str) -> NamePlaces:
    small = text
    if _FOREIGN.search(without_plain(text)):
        for letter, plain in _SMALL.items():
            small = small.replace(letter, plain)
    elif not text.isascii():
        small = text.encode("ascii", "replace").decode("ascii")  # 4x faster to search
    small = small.lower()
    places = {word: re.finditer(word, small) for word in _WORDS if word in small}
    return NamePlaces(
        text, {word: [each.start() for each in found] for word, found in places.items()}
    )


def assigned_in(text: NamePlaces) -> Iterator[Place]:
    """Yield the kind and place of each value whose name shows that it is a secret."""
    for name in ("ASSIGNED", "PROSE", "OPTION"):
        for match in text.matches(name):
            secret = PASSWORD if match["password"] else TOKEN
            yield from _values_in(match, secret, is_prose=name == "PROSE")
    for match in text.matches("USER_OPTION"):
        yield from _values_in(match, PASSWORD)


def in_urls(text: str) -> Iterator[Place]:
    for match in _IN_URL.finditer(text):
        value = match["bare"]
        if (
            "&lt;" not in match[0]
            and value != match["user"]
            and not is_placeholder(value)
            and not is_expression(value)
        ):
            yield "password in an address", *match.span("bare")


def _values_in(match: re.Match[str], kind: str, *, is_prose: bool = False) -> Iterator[Place]:
    group = match.lastgroup or "bare"
    start, value = match.start(group), match[group]
    if group == "bare":
        value = trim(value)
    plain = value.replace("&lt;", "<")
    if holds_no_value(plain) or (is_prose and _ENCODED.fullmatch(value)):
        return
    phrase = is_prose and _PHRASE.fullmatch(plain) is not None
    if (phrase or looks_like_a_password(plain)) if kind == PASSWORD else looks_like_a_token(plain):
        yield kind, start, start + len(value)


def holds_no_value(value: str) -> bool:
    """Whether a value is an example, a mask, a hash, or an expression."""
    return is_placeholder(value) or is_expression(value)


def trim(value: str) -> str:
    """Return a value without what follows it in an address, a list or a sentence."""
    rest = _GOES_ON.search(value)
    return (value[: rest.start()] if rest else value).rstrip(_ENDINGS)


def looks_like_a_password(value: str) -> bool:
    if len(value) < _SHORTEST or _NAMED.fullmatch(value):
        return False
    words = value.split()
    if len(words) > 1:
        return len(words) <= _MIXED_CASE and classes(value) > _MIXED_CASE
    return (any(map(str.isdigit, value)) and any(map(str.isalpha, value))) or (
        classes(value) >= _MIXED_CASE
    )


def looks_like_a_token(value: str) -> bool:
    return (
        len(value) >= _SHORTEST_TOKEN
        and not any(map(str.isspace, value))
        and any(map(str.isdigit, value))
        and any(map(str.isalpha, value))
        and entropy(value) >= _BITS
        and not _NAMED.fullmatch(value)
        and not _UUID.fullmatch(value)
    )


PIN, CARD_CODE, SEED = "PIN", "card code", "wallet seed phrase"

_WHOSE = later(r"(?i)\b(?:my|our|her|his|card|sim|phone|bank|door|alarm|safe|debit|credit)\b")
_NOBODYS = later(r"(?i)\b(?:default|factory|example|gpio)\b")
_POSTAL = 6
"""From this many digits on a PIN may be a postal code; the text must say whose it is."""
_NEARBY = 40
_SENTENCE = later(_PATTERNS["SENTENCE"])
_MARK = later(r"[!#$%&*+?@~^§€]")
_CODE = later(r"[(\[{]|->|::|//|^--|@\S+\.\w")
_NAMES_OF_CODES = later(r"(?i)(?:base\d\d|sha-?\d|utf-?\d|md5|argon2|bcrypt|oauth|https?).*")
_HASH = later(r"(?i)[0-9a-f]{40}|[0-9a-f]{64}")
_SHORTEST_PLAIN = 8
_DIGITS = 2

Judge = Callable[[str], bool]


def phrased_in(text: NamePlaces) -> Iterator[Place]:
    yield from _values_of("BESIDE_A_KEY", text, TOKEN, _is_token)
    yield from _values_of("BESIDE_A_PASSWORD", text, PASSWORD, _is_strong)
    yield from _values_of("LOGIN", text, PASSWORD, _is_strong)
    yield from _values_of("IN_THE_EAST", text, PASSWORD, looks_like_a_password)
    yield from _pins(text)
    for match in text.matches("CARD_CODE"):
        yield CARD_CODE, *match.span("value")
    for match in text.matches("SEED"):
        if not _SENTENCE.search(match["value"]):
            yield SEED, *match.span("value")


def _values_of(name: str, text: NamePlaces, kind: str, judge: Judge) -> Iterator[Place]:
    for match in text.matches(name):
        value = trim(match["value"])
        if not holds_no_value(value) and judge(value):
            yield kind, match.start("value"), match.start("value") + len(value)


def _pins(text: NamePlaces) -> Iterator[Place]:
    for match in text.matches("CODES"):
        yield PIN, *match.span("value")
    for match in text.matches("PINS"):
        before = text.text[max(0, match.start() - _NEARBY) : match.start("value")]
        whose = len(match["value"]) < _POSTAL or _WHOSE.search(before)
        if whose and not _NOBODYS.search(before):
            yield PIN, *match.span("value")


def _is_token(value: str) -> bool:
    return (
        looks_like_a_token(value)
        and not _HASH.fullmatch(value)
        and not _NAMES_OF_CODES.match(value)
    )


def _is_strong(value: str) -> bool:
    if _CODE.search(value) or _NAMES_OF_CODES.fullmatch(value):
        return False
    digits = sum(map(str.isdigit, value))
    cases = any(map(str.isupper, value)) and any(map(str.islower, value))
    if _MARK.search(value):
        return digits > 0 and any(map(str.isalpha, value))
    return value.isalnum() and cases and digits >= _DIGITS and len(value) >= _SHORTEST_PLAIN


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
