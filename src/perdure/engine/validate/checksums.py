"""Numbers that check themselves: cards and bank accounts."""

import re
from collections.abc import Iterator

_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])(?!\.\d)")
_ISSUED = re.compile(
    r"(?:4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|3[47]\d{13}"
    r"|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}|35\d{14})"
)
_GROUPED = re.compile(r"\d{4}([ -])\d{4}\1\d{4}\1\d{4}|3\d{3}([ -])\d{6}\2\d{5}")
_CARD_WORDS = re.compile(
    r"(?i)\b(?:card|visa|master ?card|amex|american express|credit|debit|cc|pan|karte\w*"
    r"|kreditkarte\w*|tarjeta|carte|carta|discover|maestro)\b"
)
_NEAR = 60
_KNOWN_CARDS = frozenset(
    {
        *("4242424242424242", "4111111111111111", "4012888888881881", "4000056655665556"),
        *("5555555555554444", "5105105105105100", "2223003122003222", "5200828282828210"),
        *("378282246310005", "371449635398431", "6011111111111117", "6011000990139424"),
        *("30569309025904", "38520000023237", "3566002020360505", "3530111333300000"),
        *("4000000000000002", "4000002500003155", "4000000000009995", "4222222222222"),
    }
)
"""Of the manuals; nobody pays with them."""
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d\d(?: ?[A-Z0-9]){11,30}(?![A-Za-z0-9])")
_IBAN_LENGTHS = {
    country: length
    for length, countries in {
        15: "NO", 16: "BE BI", 18: "DK FI FO GL NL SD", 19: "MK SI",
        20: "AT BA EE KZ LT LU XK MN", 21: "CH HR LI LV", 22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE GI IL IQ OM TL", 24: "AD CZ ES MD PK RO SA SE SK TN VG", 25: "LY PT ST",
        26: "IS TR", 27: "BF FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HU LB NI PL SV",
        29: "BR EG PS QA UA", 30: "JO KW MU", 31: "MT SC", 32: "LC", 33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip
_KNOWN_IBANS = frozenset(
    {
        *("GB82WEST12345698765432", "DE89370400440532013000", "FR1420041010050500013M02606"),
        *("GB29NWBK60161331926819", "ES9121000418450200051332", "NL91ABNA0417164300"),
        *("CH9300762011623852957", "AT611904300234573201", "BE68539007547034"),
        *("IT60X0542811101000000123456", "GB33BUKB20201555555555", "DE75512108001245126199"),
    }
)


def cards_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield where numbers of payment cards are, in groups or beside a word for a card."""
    for match in _CARD.finditer(text):
        digits = re.sub(r"[ -]", "", match[0])
        if not _ISSUED.fullmatch(digits) or digits in _KNOWN_CARDS or not _luhn(digits):
            continue
        before = text[max(0, match.start() - _NEAR) : match.start()]
        if len(set(digits)) > 3 and (_GROUPED.fullmatch(match[0]) or _CARD_WORDS.search(before)):  # noqa: PLR2004
            yield match.span()


def ibans_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield where international bank account numbers are whose length and checksum are right."""
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
    turned = number[4:] + number[:4]
    return int("".join(str(int(each, 36)) for each in turned)) % 97 == 1
