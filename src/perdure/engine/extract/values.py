"""What the value of a fact must be, so that "I'm a nurse" is one and "I'm a bit tired" is none."""

import re

from perdure.engine.extract import names
from perdure.engine.extract.prose import Sentence
from perdure.engine.extract.words import JOB_ENDINGS, JOBS, PEOPLES, TRAITS

_PLACE = re.compile(r"(?:the|a|an)\s[\w\s-]{2,40}|[^\W\d_][\w\s'\u2019.-]{1,60}")
_NO_PLACE = re.compile(
    r"(?:fear|hope|peace|it|that|this|denial|love" r"|my|your|case|charge|touch|trouble|order)\b",
    re.IGNORECASE,
)
_MOST_OF_ROLE = 5
_END = re.compile(
    r"\s*(?:\Z|[,.;:!)?]|and\b|but\b|so\b|now\b|years?\s+old|y/?o\b|yrs?\b|since\b" r"|because\b)",
    re.IGNORECASE,
)


def is_place(sentence: Sentence, begin: int, finish: int) -> bool:
    value = sentence.text[begin:finish]
    return _PLACE.match(value) is not None and not _NO_PLACE.match(value)


def is_named(sentence: Sentence, begin: int, finish: int) -> bool:
    return begin < finish and names.is_name(sentence.text[begin:finish])


def is_own_name(sentence: Sentence, begin: int, _finish: int) -> bool:
    """Whether a name follows that ends there, and is no people's or month's."""
    name = names.name_at(sentence.text, begin)
    if not name or name.lower() in PEOPLES or name.lower() in TRAITS or has_job(name):
        return False
    rest = sentence.plain[begin + len(name) :]
    return re.match(r"\s*(?:\Z|[,.;!)]|and\b|from\b|but\b)", rest) is not None


def is_job(sentence: Sentence, begin: int, finish: int) -> bool:
    return has_job(sentence.plain[begin:finish])


def has_job(text: str) -> bool:
    if re.match(r"\w+ing\s", text):
        return False
    text = re.sub(r"\s(?:any\s?more|now|again|too)\Z", "", text)
    role = re.split(r"\s(?:at|for|in|with|from|of|on|and|by|to|who)\s|,", text, maxsplit=1)[
        0
    ].lower()
    parts = role.split()
    return 0 < len(parts) <= _MOST_OF_ROLE and any(
        part in JOBS or part.endswith(JOB_ENDINGS)
        for part in (parts[-1], parts[-1].removesuffix("s"))
    )


def is_age(sentence: Sentence, _begin: int, finish: int) -> bool:
    return _END.match(sentence.plain, finish) is not None


def is_people(sentence: Sentence, begin: int, finish: int) -> bool:
    return sentence.plain[begin:finish].lower().strip(" .") in PEOPLES


def is_language(sentence: Sentence, begin: int, finish: int) -> bool:
    value = sentence.text[begin:finish]
    return any(part[0].isupper() for part in value.split()) or value.lower() in PEOPLES


def has_a_fact(sentence: Sentence, begin: int, finish: int) -> bool:
    """Whether what is said of a relative lasts: an age, a work, a place, a trait."""
    value = sentence.plain[begin:finish].lower().strip()
    if re.match(r"(?:is|are|'s)\s(?:\d{1,3}|allergic|called|named|an?\s|from\s)", value):
        return "bit" not in value and not value.endswith((" fan", " mess"))
    if re.match(r"(?:is|are)\s", value):
        return value.split(maxsplit=1)[1] in TRAITS
    if re.match(r"was\sborn\s(?:on|in)\s", value):
        return True
    lasting = (
        r"(?:lives?|works?|speaks?|studies|study|teaches|(?:has|have)\s(?:an?|two|three|\d))\s"
    )
    return re.match(lasting, value) is not None
