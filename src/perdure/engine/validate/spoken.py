"""Secrets as people say them: beside their name, as a login, as a PIN, as the words of a wallet.

Nothing but the place tells them from other words, so they must look the part: a password mixes
letters, digits and marks, a PIN has its digits, the words of a wallet are no sentence.
"""
# ruff: noqa: RUF001 - other alphabets are the point

import re
from collections.abc import Callable, Iterator

from perdure.engine.validate.assignments import (
    NAMES_OF_KEYS,
    NAMES_OF_PASSWORDS,
    PASSWORD,
    TOKEN,
    Place,
    is_reference,
    looks_like_a_password,
    looks_like_a_token,
    trimmed,
)

PIN, CARD_CODE, SEED = "PIN", "card code", "wallet seed phrase"

_BESIDE_A_KEY = re.compile(
    rf"(?i)(?:{NAMES_OF_KEYS})[ ]{{1,2}}(?P<value>[A-Za-z0-9_+/=.-]{{20,400}})"
)
_BECOMES = (
    r"(?:(?:[ ](?:was|is|has been|got))?(?:[ ](?:set|changed|reset|updated|switched))?[ ]to"
    r"|[ ](?:é|jest|от \w{1,20}|для \w{1,20}))?"
)
_BESIDE_A_PASSWORD = re.compile(
    rf"(?i)(?:{NAMES_OF_PASSWORDS}|\bpass){_BECOMES}[ ]{{1,2}}(?P<value>[^\s\"'`<>]{{6,100}})"
)
_LOGIN = re.compile(
    r"(?i)\b(?:login|log-?in|creds?|credentials?|user(?:name)?|account|wi-?fi|wlan|ssid)\b"
    r"(?:[ ]?[:=]|[ ]are|[ ]is)?[ ]{1,2}"
    r"[\w.@+-]{1,60}[ ]{0,2}[/,|:-][ ]{0,2}(?P<value>[^\s\"'`<>]{6,100})"
)
_IN_THE_EAST = re.compile(
    r"(?:密码|密碼|口令|パスワード|暗証番号|비밀번호|암호)[は가는은이是为為:：=\s「『\"“']{1,6}"
    r"(?P<value>[!-~]{4,100})"
)
_PINS = re.compile(
    r"\b(?:PIN|[Pp]in(?=(?:[ ](?:code|number))?(?:'s|\u2019s|[ ]is|[ ]was|:)))"
    r"(?:[ ](?:code|number))?(?:[ ](?:for|of|to)(?:[ ][\w'-]{1,20}){1,4}?)?"
    r"(?:(?:'s|\u2019s|[ ]is|[ ]was)(?:[ ](?:now|still))?[ ]|[ ]?[:=][ ]?|[ ])(?P<value>\d{4,8})"
    r"(?![\w.,/-]\d|\w| (?:style|pins?|of)\b)"
)
_CODES = re.compile(
    r"(?i)\b(?:pass|unlock|door|alarm|gate|entry|lock)[ -]?code(?:[ ](?:for|of|to)"
    r"(?:[ ][\w'-]{1,20}){1,4}?)?(?:'s[ ]|\u2019s[ ]|[ ]is[ ]|[ ]?[:=][ ]?)(?P<value>\d{4,8})(?!\w)"
)
_WHOSE = re.compile(r"(?i)\b(?:my|our|her|his|card|sim|phone|bank|door|alarm|safe|debit|credit)\b")
_NOBODYS = re.compile(r"(?i)\b(?:default|factory|example|gpio)\b")
_POSTAL = 6
"""Digits from which on a PIN may be that of a place; it must be said whose it is."""
_NEAR = 40
_CARD_CODE = re.compile(
    r"(?i)\b(?:cvv2?|cvc2?|card security code)(?:[ ](?:code|number))?"
    r"(?:[ ](?:is|was)[ ]|[ ]?[:=][ ]?|[ ])(?P<value>\d{3,4})(?![\w.,/-]\d|\w)"
)
_WORD = r"(?:\d{1,2}[.):]?[ ]?)?[a-z]{3,8}"
_SEED = re.compile(
    r"(?i:\b(?:seed (?:phrase|words)|mnemonic(?: phrase)?|(?:recovery|backup) (?:phrase|words)"
    r"|(?:12|24)[ -]words?(?: phrase)?))\b"
    r"[^\n:=]{0,40}?(?::|=|\bis\b|\bare\b|\n)\s{0,4}[\"'`]?"
    rf"(?P<value>(?:{_WORD}[\s,;]{{1,3}}){{11,23}}{_WORD})\b"
)
_SENTENCE = re.compile(
    r"\b(?:the|and|for|with|that|are|was|were|you|your|from|not|but|have|has|his|her|they|them"
    r"|their|which|been|its|our|who|into|than|would|should|could|both|only|also|these|those)\b"
)
_MARK = re.compile(r"[!#$%&*+?@~^§€]")
_CODE = re.compile(r"[(\[{]|->|::|//|^--|@\S+\.\w")
_ENCODED = re.compile(r"(?i)(?:base\d\d|sha-?\d|utf-?\d|md5|argon2|bcrypt|oauth|https?).*")
_HASH = re.compile(r"(?i)[0-9a-f]{40}|[0-9a-f]{64}")
_SHORTEST_PLAIN = 8
_DIGITS = 2

Judge = Callable[[str], bool]


def spoken_in(text: str) -> Iterator[Place]:
    """Yield the kind and place of each value that is said to be a secret."""
    yield from _judged(_BESIDE_A_KEY, text, TOKEN, _is_token)
    yield from _judged(_BESIDE_A_PASSWORD, text, PASSWORD, _is_strong)
    yield from _judged(_LOGIN, text, PASSWORD, _is_strong)
    yield from _judged(_IN_THE_EAST, text, PASSWORD, looks_like_a_password)
    yield from _pins(text)
    for match in _CARD_CODE.finditer(text):
        yield CARD_CODE, *match.span("value")
    for match in _SEED.finditer(text):
        if not _SENTENCE.search(match["value"]):
            yield SEED, *match.span("value")


def _judged(pattern: re.Pattern[str], text: str, kind: str, judge: Judge) -> Iterator[Place]:
    for match in pattern.finditer(text):
        value = trimmed(match["value"])
        if not is_reference(value) and judge(value):
            yield kind, match.start("value"), match.start("value") + len(value)


def _pins(text: str) -> Iterator[Place]:
    for match in _CODES.finditer(text):
        yield PIN, *match.span("value")
    for match in _PINS.finditer(text):
        before = text[max(0, match.start() - _NEAR) : match.start("value")]
        whose = len(match["value"]) < _POSTAL or _WHOSE.search(before)
        if whose and not _NOBODYS.search(before):
            yield PIN, *match.span("value")


def _is_token(value: str) -> bool:
    return looks_like_a_token(value) and not _HASH.fullmatch(value) and not _ENCODED.match(value)


def _is_strong(value: str) -> bool:
    """Whether a word is mixed as only passwords are."""
    if _CODE.search(value) or _ENCODED.fullmatch(value):
        return False
    digits = sum(map(str.isdigit, value))
    cases = any(map(str.isupper, value)) and any(map(str.islower, value))
    if _MARK.search(value):
        return digits > 0 and any(map(str.isalpha, value))
    return value.isalnum() and cases and digits >= _DIGITS and len(value) >= _SHORTEST_PLAIN
