"""Clauses that tell of something that happened, will happen, or was decided, with its date."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from perdure.engine.extract import confidence
from perdure.engine.extract.claims import hedged, opens
from perdure.engine.extract.persons import is_name, third_person
from perdure.engine.extract.persons import sentence as as_sentence
from perdure.engine.extract.prose import Sentence, Statement, clauses, tail, trimmed
from perdure.engine.extract.words import ADVERBS, OCCASIONS, PAST, any_case, either
from perdure.engine.recall.times import Span, times_in

# ---------------------------------------------------------------- times
_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)
_WEEKDAY = any_case(r"(?:mon|tues|wednes|thurs|fri|satur|sun)day\Z")
_KEPT = any_case(r"\b(?:by|until|till|from|of|for|during|before|after|since|around)\s+\Z")
_REPLACED = any_case(r"\b(?:on|in|at)\s+\Z")
_PART_OF_A_NAME = any_case(r"\b(?:an?|the)\s+\Z")
_REACH = 10
"""How many characters before a time lead up to it."""
_NO_MOMENT = datetime(2000, 1, 1, tzinfo=UTC)
_OTHER_MOMENT = datetime(2013, 7, 17, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Dated:
    """A time that a clause names: where it stands there, and when it is."""

    begin: int
    finish: int
    when: datetime | None
    """None if the clause alone does not say, and nobody knows when it was said."""
    told: str
    """How to say it so that it stays true."""


def dated(clause: str, said_at: datetime | None, *, ahead: bool) -> Dated | None:
    """Return the first time of a clause, as seen from when it was said; None if it names none.

    A stretch that is open, as in "since May", is a state and no time of an event. What comes again
    and again is the next one if the clause looks ahead, else the last one.
    """
    span = _first(clause, said_at or _NO_MOMENT)
    if span is None:
        return None
    if said_at is None and _first(clause, _OTHER_MOMENT) != span:
        return Dated(_begin(clause, span), span.position.stop, None, "")
    if ahead and said_at:
        span = _next(span, said_at)
    return Dated(_begin(clause, span), span.position.stop, span.start, _told(clause, span))


def _first(clause: str, now: datetime) -> Span | None:
    """Return the first time that is whole, and no part of a name like "the Easter fair"."""
    for span in times_in(clause, now):
        begin = span.position.start
        named = span.recurring and _PART_OF_A_NAME.search(clause, max(0, begin - _REACH), begin)
        if span.start and span.end and not named:
            return span
    return None


def _begin(clause: str, span: Span) -> int:
    """Return where a time begins, with the word before it that another one takes the place of."""
    begin = span.position.start
    led = _REPLACED.search(clause, max(0, begin - _REACH), begin)
    return led.start() if led else begin


def _next(span: Span, said_at: datetime) -> Span:
    today = said_at.replace(hour=0, minute=0, second=0, microsecond=0)
    if span.start is None or span.end is None or span.end > today:
        return span
    try:
        if _WEEKDAY.match(span.text):
            return replace(span, start=span.start + _WEEK, end=span.end + _WEEK)
        if span.recurring:
            return replace(span, start=_a_year_on(span.start), end=_a_year_on(span.end))
    except (OverflowError, ValueError):  # there is no next 29 February, or no next year
        pass
    return span


def _a_year_on(moment: datetime) -> datetime:
    return moment.replace(year=moment.year + 1)


def _told(clause: str, span: Span) -> str:
    """Say a span as a date, with the word that leads up to it if there is none."""
    if span.start is None or span.end is None:
        return span.text
    word, date = _date(span.start, span.end)
    begin = span.position.start
    if _WEEKDAY.match(span.text):
        led = _REPLACED.search(clause, max(0, begin - _REACH), begin)
        return f"on {span.text} {date}" if led else f"{span.text} {date}"
    kept = _KEPT.search(clause, max(0, begin - _REACH), begin)
    return date if kept else f"{word} {date}"


def _date(start: datetime, end: datetime) -> tuple[str, str]:
    last = end - _DAY
    if last <= start:
        return "on", f"{start:%Y-%m-%d}"
    if start.day == 1 and end.day == 1:
        months = (end.year - start.year) * 12 + end.month - start.month
        if months == 1:
            return "in", f"{start:%Y-%m}"
        if (months, start.month) == (12, 1):
            return "in", f"{start:%Y}"
    if end - start == _WEEK:
        return "in", f"the week of {start:%Y-%m-%d}"
    return "between", f"{start:%Y-%m-%d} and {last:%Y-%m-%d}"


# ---------------------------------------------------------------- events
_ADV = rf"(?:(?:{either(ADVERBS)}|both|all|even)\s){{0,3}}"
_DID = (
    rf"(?:{either(PAST - {'read', 'set', 'put', 'let', 'was', 'were'})}|(?!need|embed"
    rf"|feed|speed|used\b)[a-z]{{2,20}}ed)"
)
_SUBJECT = (
    r"(?:(?P<me>I|we)|(?P<my>(?:my|our)\s(?:[\w'-]{1,30}\s?){1,3}?)"
    r"|(?P<name>(?-i:[^\W\d_a-z])[\w'-]{1,30})"
    r"|(?P<the>the\s(?:(?!we\b|I\b|you\b|they\b|he\b|she\b|that\b)[\w'-]{1,30}\s?){1,3}?))"
)
_HAPPENED = any_case(
    rf"\b{_SUBJECT}(?:'ve|'s|\shave|\shas)?\s{_ADV}(?P<verb>{_DID}|was\s(?:by|at|in"
    rf"|with)|(?:was|were|got)\s[a-z]{{2,20}}(?:ed|en|t))(?!['\w])"
)
_AHEAD = any_case(
    rf"\b{_SUBJECT}(?:(?:'m|'re|'s|\sam|\sare|\sis)\s{_ADV}(?:going\sto|about\sto"
    rf"|getting|having|moving|[a-z]{{3,20}}ing)\b"
    rf"|(?:'ll|\swill|\smight|\smay)\s{_ADV}[a-z]{{2,20}}\b|\s(?:have|has|got|have"
    rf"\sgot)\s(?:an?\s|my\s|our\s|the\s)?"
    rf"(?:[\w'-]{{1,30}}\s){{0,2}}?(?:{either(OCCASIONS)})\b|\s(?:fly|leave|arrive"
    rf"|arrives|start|starts|begin|begins|end|ends"
    rf"|travel|move|open|opens|turn|turns|launch|launches|graduate|retire|marry|come"
    rf"|comes|expires|is\sdue|is\son|is\sat|is)\b)"
)
_SHORT = any_case(rf"\A\W*(?:(?:my|the|a)\s)?(?:[\w'-]{{1,20}}\s){{0,1}}?(?:{either(OCCASIONS)})\b")
_GREAT = any_case(
    r"\b(?!(?:I|we)(?:'ve|\shave)\sgot\sa\s(?:dog|cat)\b)(?:I|we|we've|I've)\s(?:just\s|finally\s|recently\s|have\s){0,2}(?:got"
    r"\s(?:married|engaged|divorced|promoted|fired|a\s(?:new\sjob"
    r"|dog|cat|promotion))|graduated|adopted\s(?:a|an|him|her)|quit\s(?:my|smoking)"
    r"|moved\s(?:to|into|back)|passed\s(?:my|the)"
    r"|bought\sa\s(?:house|car|flat|boat|van|bike)|had\s(?:a\sbaby|surgery)|broke\smy"
    r"|joined|launched|signed\sup|won|retired"
    r"|lost\smy\sjob)\b"
)
_BARE = any_case(
    r"\W*(?:(?:and|but|so|because|then|also|well|yeah|oh|btw|anyway|actually|finally"
    r"|plus|just|guess what|as|since|now)\W+){0,3}"
    r"(?:I\s(?:just\s|do\s|also\s|should\s)?(?:think|remember(?:ed)?|know|guess"
    r"|believe|mean|reali[sz]ed|forgot\sto\s(?:say|mention)"
    r"|mention|wanted\sto\s(?:tell|say|let)\s[\w\s]{1,12}?)\s(?:that\s)?(?=(?:I|we|my|our)\b))?"
)
"""What comes before the statement itself."""
_MUSING = any_case(
    r"\b(?:thinking\s(?:of|about)|considering|wondering|deciding|trying\sto\sdecide"
    r"|looking\sforward|hoping)\b"
)
_FEWEST = 4
_MOST_SHORT = 6
_HABIT = any_case(
    r"\b(?:every|since|usually|always|never|each|often|sometimes|used\sto|on\s\w+days"
    r"|most\sdays|anymore|didn't|not|hardly"
    r"|see\syou|talk\slater|my\sbirthday\sis)\b"
)
_DECIDED = any_case(
    r"\b(?:(?:I|we|we've|I've|we\shave|I\shave)\s(?:all\s|finally\s|just\s|both\s|now"
    r"\s){0,2}(?:(?:decided|agreed)\s(?:\w+\s)?"
    r"(?:to|on|that|against|not\sto)|chose|settled\son|picked|switched\s(?:over\s)?(?:from|to)|opted\s(?:for|to)|voted\s(?:to|for))"
    r"|(?:we're|I'm|we\sare|we'll|I'll|let's|lets)\s(?:just\s)?(?:going\sto"
    r"\s)?(?:going|go|stick|use)\s?(?:with)?(?=\s)"
    r"|(?:the\s|final\s|our\s)?decision\s?(?:is|was|:)(?:\sto)?)\s"
)
_LETS = any_case(r"(?:let's|lets)\s(?:just\s)?")
_WILL = any_case(r"(?:I'll|we'll)\s")
_WITH = any_case(r"\b(?:with)\s\Z|decid|agreed|chose|settled|picked|switched|opted|voted")


def events(sentence: Sentence, who: str, said_at: datetime | None) -> Iterator[Statement]:
    """Yield the events that a claim tells of, each clause once."""
    taken = -1
    for decision in _decisions(sentence, who, said_at):
        yield decision
        taken = max(taken, decision.finish)
    for clause in clauses(sentence):
        begin = clause.start - sentence.start
        if begin >= taken and (event := _told_by(sentence, clause, who, said_at)):
            yield event


# ---------------------------------------------------------------- decisions
def _decisions(sentence: Sentence, who: str, said_at: datetime | None) -> Iterator[Statement]:
    for match in _DECIDED.finditer(sentence.plain):
        finish = tail(sentence, match.end())
        if (
            not opens(sentence, match.start())
            or finish <= match.end()
            or not _WITH.search(match[0])
        ):
            continue
        said = sentence.text[match.start() : finish]
        time = dated(
            sentence.plain[match.start() : finish], said_at, ahead=_LETS.match(said) is not None
        )
        if time and time.told:
            said = _with_date(said, time)
        told = third_person(_LETS.sub("we decided to ", said, count=1), who)
        sure = confidence.IMPLIED if _WILL.match(said) else confidence.HAPPENED
        weight = confidence.weighed(sure, hedged=hedged(sentence, match.start(), finish))
        happened = said_at if _LETS.match(match[0]) or not (time and time.when) else time.when
        yield Statement(
            match.start(), finish, as_sentence(told), weight, topic="decision", when=happened
        )


# ---------------------------------------------------------------- what happened, or will
def _told_by(
    sentence: Sentence, clause: Sentence, who: str, said_at: datetime | None
) -> Statement | None:
    if _HABIT.search(clause.plain) or _MUSING.search(clause.plain):
        return None
    bare = _BARE.match(clause.plain)
    clause = clause.part(bare.end() if bare else 0, len(clause.plain))
    match = _HAPPENED.search(clause.plain)
    ahead = None if match else _AHEAD.search(clause.plain) or _SHORT.match(clause.plain)
    found = match or ahead
    if found is None or not _is_of_them(clause, found, sentence):
        return None
    time = dated(clause.plain, said_at, ahead=ahead is not None)
    if time is None and not _is_great(clause):
        return None
    if not _leads(clause, found, time) or _leans(clause, time):
        return None
    return _event(sentence, clause, who, time)


_LEANING = any_case(
    r"\W*(?:I|we)(?:'ve|\shave|\shad)?\s(?:(?:finally|just|then|also|recently)\s){0,2}(?:quit|stopped"
    r"|started|began|finished|left|ended|changed|switched|did|gave\sup|tried|returned|continued"
    r"|resumed|failed|succeeded|agreed|refused|managed|forgot|remembered|said|asked|told)\W*\Z"
)


def _leans(clause: Sentence, time: Dated | None) -> bool:
    """Whether only what was said before tells what it is about: "I quit in 2019"."""
    plain = clause.plain
    return (
        _LEANING.match(plain if time is None else plain[: time.begin] + plain[time.finish :])
        is not None
    )


def _is_great(clause: Sentence) -> bool:
    """Whether something happened that matters whenever it was."""
    return _GREAT.search(clause.plain) is not None and len(clause.plain.split()) >= _FEWEST


def _leads(clause: Sentence, found: re.Match[str], time: Dated | None) -> bool:
    """Whether nothing but a time comes before who did it: "the trip we took" is about the trip."""
    if found.re is _SHORT:
        return len(clause.plain.split()) <= _MOST_SHORT
    before = clause.plain[: found.start()]
    if time is not None and time.finish <= found.start():
        before = before[: time.begin] + before[time.finish :]
    return not before.strip(" ,:-(*")


def _is_of_them(clause: Sentence, found: re.Match[str], sentence: Sentence) -> bool:
    """Whether it is said by the speaker, of themselves or of somebody or something of theirs."""
    groups = found.groupdict()
    if groups.get("name") and not is_name(groups["name"]):
        return False
    position = clause.start - sentence.start + found.start()
    before = sentence.plain[max(0, position - 60) : position]
    return not _is_which(sentence, clause) and not re.search(
        r"\b(?:he|she|they|\w+)\s(?:says?|said|thinks|told\s\w+)\s(?:that\s)?\Z", before
    )


def _is_which(sentence: Sentence, clause: Sentence) -> bool:
    """Whether a clause hangs on a word before it."""
    before = sentence.plain[: clause.start - sentence.start].rstrip().lower()
    return before.endswith(("which", "that", "who", "where", "what", "how"))


def _event(sentence: Sentence, clause: Sentence, who: str, time: Dated | None) -> Statement | None:
    begin = len(clause.plain) - len(clause.plain.lstrip(" ,;:-"))
    finish = trimmed(clause, begin, len(clause.plain.rstrip(" .!,;")))
    said = clause.text[:finish]
    if time is not None:
        said = _with_date(said, time)
    offset = clause.start - sentence.start
    sure = confidence.HAPPENED if time is not None and time.when else confidence.UNDATED
    weight = confidence.weighed(sure, hedged=hedged(sentence, offset + begin, offset + finish))
    when = time.when if time else None
    told = third_person(said[begin:], who)
    begin, finish = offset + begin, offset + finish
    return Statement(begin, finish, as_sentence(told), weight, topic="event", when=when)


def _with_date(said: str, time: Dated) -> str:
    after = said[time.finish :]
    gap = "" if after[:1] in {"'", "\u2019"} else " "
    return f"{said[: time.begin].rstrip()} {time.told}{gap}{after.lstrip()}"
