"""Secrets that only their context identifies: `api_key: …`, "my password is …".

In prose only the position separates them from other words, so the value must look like one: a
password mixes letters, digits and symbols, a PIN has digits, the words of a wallet do not form a
sentence. Examples, masks, references and hashes are not secrets.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator

from perdure.dataclass import dataclass
from perdure.patterns import later
from perdure.safety.characters import without_plain
from perdure.tables import table

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
_MIXED = 3


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
        return len(words) <= _MIXED and classes(value) > _MIXED
    return (any(map(str.isdigit, value)) and any(map(str.isalpha, value))) or (
        classes(value) >= _MIXED
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
_NEAR = 40
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
        before = text.text[max(0, match.start() - _NEAR) : match.start("value")]
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
