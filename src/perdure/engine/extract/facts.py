"""What people say of who they are. Of the owner it is the profile, of others an entity."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from perdure.engine.extract import confidence
from perdure.engine.extract.claims import hedged, opens
from perdure.engine.extract.persons import is_name, name_at, third_person
from perdure.engine.extract.prose import Sentence, Statement, apart, listed, predicate, tail
from perdure.engine.extract.words import (
    ADVERBS,
    FAMILY,
    JOB_ENDINGS,
    JOBS,
    PEOPLES,
    PETS,
    TITLES,
    TRAITS,
    any_case,
    either,
)

# ---------------------------------------------------------------- values
# "I'm a nurse" has one, and "I'm a bit tired" has none.
_PLACE = re.compile(r"(?:the|a|an)\s[\w\s-]{2,40}|[^\W\d_][\w\s'\u2019.-]{1,60}")
_NO_PLACE = any_case(
    r"(?:fear|hope|peace|it|that|this|denial|love" r"|my|your|case|charge|touch|trouble|order)\b"
)
_MOST_OF_ROLE = 5
_END = any_case(
    r"\s*(?:\Z|[,.;:!)?]|and\b|but\b|so\b|now\b|years?\s+old|y/?o\b|yrs?\b|since\b" r"|because\b)"
)


def is_place(sentence: Sentence, begin: int, finish: int) -> bool:
    value = sentence.text[begin:finish]
    return _PLACE.match(value) is not None and not _NO_PLACE.match(value)


def is_named(sentence: Sentence, begin: int, finish: int) -> bool:
    return begin < finish and is_name(sentence.text[begin:finish])


def is_own_name(sentence: Sentence, begin: int, _finish: int) -> bool:
    """Whether a name follows that ends there, and is no people's or month's."""
    name = name_at(sentence.text, begin)
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


# ---------------------------------------------------------------- facts
_ADV = rf"(?:\s(?:{either(ADVERBS)}|never|don't|do\snot|not|doesn't))"
_I = rf"\b(?:I|we){_ADV}{{0,3}}"
_AM = rf"\b(?:I'm|I\sam|Im|we're|we\sare){_ADV}{{0,2}}"
_HAVE = r"\b(?:I've|I\shave|we've|we\shave|I|we)"
_COUNT = r"(?:an?|one|two|three|four|five|six|seven|\d{1,2})"
_FIRST_PERSON = any_case(
    r"\b(?:I|we|my|our|im|I'm|I've|we've|we're)\b|\A(?:name|live|work|reside)\b|\bhere\b"
)
_ITS_TIME = any_case(
    r"\s(?:until|till|since|after|before|when|whenever|while|except|unless)\s(?!I\sam\b|I'm\b)"
)


Check = Callable[[Sentence, int, int], bool]


@dataclass(frozen=True, slots=True)
class _Rule:
    topic: str
    head: re.Pattern[str]
    holds: Check | None = None
    """Whether the value from one place to another can be one."""
    is_list: bool = False
    is_whole: bool = False
    """The head is all of the statement."""
    is_relative: bool = False
    """A relative's name follows, perhaps with something that lasts."""


def facts(sentence: Sentence, who: str) -> Iterator[Statement]:
    """Yield what a claim says of its speaker; of facts that overlap the first and longest."""
    return apart(_found(sentence, who))


def _found(sentence: Sentence, who: str) -> Iterator[Statement]:
    for rule in _RULES if _FIRST_PERSON.search(sentence.plain) else ():
        for match in rule.head.finditer(sentence.plain):
            finish = _finish(rule, sentence, match.end())
            if finish is not None and opens(sentence, match.start()):
                yield _fact(rule, sentence, (match.start(), finish), who)
    yield from _short(sentence, who)


def _finish(rule: _Rule, sentence: Sentence, value: int) -> int | None:
    if rule.is_relative:
        return _after_name(sentence, value)
    finish = value if rule.is_whole else tail(sentence, value, soft=True)
    finish = predicate(sentence, value, listed(sentence, finish) if rule.is_list else finish)
    if finish <= value and sentence.plain[value - 1].isspace():
        return None
    if rule.holds is not None and not rule.holds(sentence, value, finish):
        return None
    return finish if rule.is_whole else _with_its_time(sentence, finish)


def _with_its_time(sentence: Sentence, finish: int) -> int:
    """Return where a statement ends that goes on to say until when or since when it is so."""
    time = _ITS_TIME.match(sentence.plain, finish)
    return tail(sentence, time.end()) if time else finish


def _after_name(sentence: Sentence, value: int) -> int | None:
    """Return where a statement about a relative ends: after what lasts, else after the name."""
    name = name_at(sentence.text, value)
    if not name:
        return None
    after, finish = value + len(name), tail(sentence, value + len(name), soft=True)
    return finish if has_a_fact(sentence, after, finish) else after


def _fact(rule: _Rule, sentence: Sentence, span: tuple[int, int], who: str) -> Statement:
    begin, finish = span
    said = sentence.text[begin:finish]
    if rule.is_relative:
        said = _with_name_first(said)
    if not re.match(r"(?:I|we|my|our|I['\u2019]\w+|we['\u2019]\w+|im)\b", said, re.IGNORECASE):
        said = _spoken_out(rule.topic, said)
    weight = confidence.weighed(confidence.STATED, hedged=hedged(sentence, begin, finish))
    told = third_person(said, who)
    if told.casefold() == f"{who} is {who}.".casefold():
        told = f"{who}'s name is {who}"
    return Statement(begin, finish, told, weight, topic=rule.topic)


def _with_name_first(said: str) -> str:
    """Return "my cousin Rachel" as "Rachel is my cousin"; a statement stays as it is."""
    match = _MY_KIN.match(said)
    name = name_at(said, match.end()) if match else ""
    if match is None or match.end() + len(name) < len(said):
        return said
    return f"{name} is {match['kin'][0].lower()}{match['kin'][1:]}"


def _spoken_out(topic: str, said: str) -> str:
    """Return words that leave the subject out with the subject that they mean."""
    if topic == "name":
        bare = re.sub(r"(?i)\A(?:name's|name\sis|it's|this\sis)\s|\s+here\Z", "", said)
        return f"my name is {bare}"
    return said if re.search(r"\b(?:my|our)\b", said, re.IGNORECASE) else f"I {said}"


def _rule(topic: str, head: str, holds: Check | None = None, **more: bool) -> _Rule:
    return _Rule(topic, any_case(head), holds, **more)


_KIN = rf"(?:{either(FAMILY)})s?"
_MY_KIN = any_case(rf"(?P<kin>(?:my|our)\s(?:\w+\s)?(?:{_KIN}))\s")
_PET = rf"(?:{either(PETS - {'fish'})})s?|puppies|ponies|fish"
_AMOUNT = r"\d{1,3}(?:[.,]\d{1,2})?"
_CAPITAL = r"(?-i:[^\W\d_a-z][\w'\u2019-]{1,30})"
_NAMED = rf"{_CAPITAL}(?:\s{_CAPITAL})?"
_RULES = (
    _rule("name", r"\bmy\s(?:full\s|first\s|real\s)?name(?:'s|\sis)\s", is_named),
    _rule("name", r"\A(?:name's|name\sis|name:)\s", is_named),
    _rule("name", r"\b(?:I'm|I\sam)\s(?=(?-i:[^\W\d_a-z]))", is_own_name),
    _rule("name", rf"\A{_CAPITAL}\s{_CAPITAL}\shere\b", is_whole=True),
    _rule("pronouns", r"\bmy\spronouns\sare\s"),
    _rule("pronouns", r"\bI\s(?:use|go\sby)\s(?=(?:she|he|they|xe|ze)/)"),
    _rule(
        "age",
        rf"{_AM}\s(?:\d{{1,3}})(?:\syears\sold|\syrs\sold|\sy/?o)?(?![\w%'/:.-])",
        is_age,
        is_whole=True,
    ),
    _rule("birthday", r"\bmy\sbirthday\s?(?:is|'s)\s(?:on\s)?"),
    _rule("birthday", r"\bI\swas\sborn\son\s"),
    _rule(
        "home",
        rf"(?:{_I}\s|\A|(?<=\bbut\s)|(?<=\band\s)(?=now\s))(?:now\s|currently\s)?(?:live"
        rf"|reside)\s(?:in|near|at|on|with|outside|by)\s",
        is_place,
    ),
    _rule("home", rf"{_AM}\s(?:living|based|located|staying)\s(?:in|near|at|outside)\s", is_place),
    _rule("home", r"\b(?:I'm|I\sam)\s(?:still|currently|now|back)\sin\s(?=(?-i:[A-Z]))", is_place),
    _rule("home", rf"{_HAVE}\slived\s(?:in|near|at)\s", is_place),
    _rule("home", r"\bmy\shome(?:town|\scity)?\sis\s", is_place),
    _rule("origin", rf"(?:{_AM}|{_I}\scome)\sfrom\s", is_place),
    _rule(
        "origin",
        r"\bI\s(?:grew\sup|was\sborn(?:\sand\sraised)?|was\sraised)\s(?:in|near|on)\s",
        is_place,
    ),
    _rule("origin", _AM + r"\s(?=\w)", is_people),
    _rule("job", rf"{_AM}\s(?:an?\s|the\s)?(?=\w)", is_job),
    _rule("job", rf"{_AM}\sthe\s(?={either(TITLES)})"),
    _rule("job", rf"{_HAVE}\s(?:been|worked\sas|used\sto\sbe)\s(?:an?\s)?(?=\w)", is_job),
    _rule("job", rf"(?:{_I}\swork|{_AM}\sworking)\s(?:as|like)\s(?:an?\s)?(?=\w)"),
    _rule(
        "job",
        rf"(?:{_I}|\A)\s?\bwork\s(?:nights|days|weekends|shifts|from\shome|remotely"
        rf"|part[\s-]time|full[\s-]time|freelance)",
    ),
    _rule("job", rf"{_I}\steach\s"),
    _rule("job", rf"{_I}\s(?:run|own|manage)\s(?:a|an|my|our)\s(?=\w)"),
    _rule("job", r"\bmy\s(?:job|profession|occupation|day\sjob)\sis\s"),
    _rule(
        "employer", rf"(?:{_I}|\A)\s?\bwork\s(?:at|for|with|in)\s(?!it\b|this\b|that\b|the\sdark)"
    ),
    _rule("employer", rf"{_AM}\s(?:working|employed)\s(?:at|for|by|in)\s"),
    _rule(
        "studies",
        rf"(?:{_I}\sstudy|{_AM}\s(?:studying|majoring\sin|doing\s(?:a|my)\s(?:phd|master)))\s",
    ),
    _rule("studies", rf"{_AM}\slearning\s(?=(?-i:[A-Z]))"),
    _rule("family", rf"\b(?:my|our)\s(?:\w+\s)?(?:{_KIN})\s(?={_NAMED})", is_relative=True),
    _rule(
        "family",
        rf"\b(?:my|our)\s(?:{_KIN})\s(?=(?:is|lives|works|speaks|studies|teaches|has)\s)",
        has_a_fact,
    ),
    _rule(
        "family",
        rf"(?<!\band\s)\b(?:my|our)\s(?:{_KIN})\s(?=(?:are|live|work|speak|study|teach|have)\s)",
        has_a_fact,
    ),
    _rule(
        "family",
        rf"\b(?:my|our)\s(?:\w+\s)?(?:{_KIN})(?:'s\sname)?\s(?:is|are)\s(?:called\s|named"
        rf"\s)?(?={_NAMED})",
        is_named,
        is_list=True,
    ),
    _rule("family", rf"\b{_NAMED}\s(?:is|are)\s(?:my|our)\s(?:\w+\s)?(?:{_KIN})\b", is_whole=True),
    _rule("family", rf"{_HAVE}\s(?:got\s)?{_COUNT}\s(?:\w+\s)?(?:{_KIN})\b", is_whole=True),
    _rule(
        "pets",
        rf"\b(?:I|we)(?:'ve\sgot|\shave(?:\sgot)?)\s{_COUNT}\s(?:\w+\s)?(?:{_PET})(?:(?:,|\sand)\s{_COUNT}"
        rf"\s(?:\w+\s)?(?:{_PET})){{0,3}}"
        rf"(?=\s*(?:\Z|[.,;:!?)])|\s(?:and|but|so|at|in|now|too|already|with)\b)",
        is_whole=True,
    ),
    _rule(
        "body",
        rf"\bI(?:\scurrently|\snow)?\sweigh\s{_AMOUNT}\s?(?:kg|kilos?|kilograms?|lbs?|pounds|stone)\b",
        is_whole=True,
    ),
    _rule(
        "body",
        rf"{_AM}\s{_AMOUNT}\s?(?:m|cm|met(?:er|re)s?|centimet(?:er|re)s?|feet|ft)\stall\b",
        is_whole=True,
    ),
    _rule("family", rf"{_AM}\s(?:married|engaged)\sto\s"),
    _rule("family", rf"{_AM}\sa\s(?:mother|father|mum|mom|dad|parent|grandmother|grandfather)\b"),
    _rule("languages", rf"{_I}\sspeak\s", is_language, is_list=True),
    _rule("languages", r"\bmy\s(?:native|first|second)\slanguage\sis\s|\bmy\smother\stongue\sis\s"),
    _rule("languages", rf"{_AM}\s(?:fluent|a\snative\sspeaker)\s(?:in|of)\s", is_list=True),
    _rule("health", rf"{_AM}\s(?:\w+\s)?(?:allergic|intolerant|sensitive)\sto\s", is_list=True),
    _rule("health", rf"{_AM}\s(?:{either(TRAITS)})(?:\sany\s?more)?(?![\w-])", is_whole=True),
    _rule("health", rf"{_AM}\s\w+[\s-](?:intolerant|allergic)(?![\w-])", is_whole=True),
    _rule(
        "health",
        rf"{_HAVE}\s(?:an?\s)?(?:\w+\s)?(?:allergy|allergies|asthma|diabetes|adhd|epilepsy"
        rf"|dyslexia|migraines|arthritis)\b",
    ),
    _rule("health", rf"\bI{_ADV}{{0,2}}\s(?:suffer\sfrom|get\s(?:migraines|seasick|carsick))\b"),
    _rule("diet", r"\b(?:I|we)\s(?:don't|do\snot|can't|cannot|no\slonger|never)\seat\s"),
    _rule("timezone", r"\bmy\stime\s?zone\s?(?:is|'s)\s"),
    _rule(
        "timezone", rf"{_AM}\s(?:in|on)\s(?=(?-i:UTC|GMT|CET|CEST|EST|EDT|PST|PDT|IST|JST|CST)\b)"
    ),
)


# ---------------------------------------------------------------- half sentences
_TRAIT = any_case(rf"(?:{either(TRAITS)})\W*\Z")
_HOW_MANY = any_case(rf"{_COUNT}\s(?:{_KIN})\W*\Z")
_ROLE_OF_NAMED = any_case(
    r"\bI['\u2019]?\s?a?m\s[^,.;!?]{2,60},\s(?P<role>(?:an?\s|the\s)?[^,.;!?]{3,80})"
)


def _short(sentence: Sentence, who: str) -> Iterator[Statement]:
    """Yield what is said without a verb: "Vegan." "2 kids." "I'm Ana, a nurse at …"."""
    plain = sentence.plain
    finish = len(plain.rstrip(" .!"))
    if _TRAIT.match(plain):
        said = f"{who} is {plain[:finish].lower()}"
        yield Statement(0, finish, said, confidence.IMPLIED, topic="health")
    if _HOW_MANY.match(plain):
        said = f"{who} has {plain[:finish].lower()}"
        yield Statement(0, finish, said, confidence.IMPLIED, topic="family")
    match = _ROLE_OF_NAMED.search(plain)
    if match and has_job(re.sub(r"\A(?:an?|the)\s", "", match["role"])):
        finish = tail(sentence, match.start("role"), soft=True)
        said = f"{who} is {sentence.text[match.start('role') : finish]}"
        yield Statement(match.start("role"), finish, said, confidence.STATED, topic="job")
