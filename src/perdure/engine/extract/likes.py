"""What people say that they like and dislike."""

import re
from collections.abc import Iterator

from perdure.engine.extract import confidence
from perdure.engine.extract.claims import opens
from perdure.engine.extract.clauses import VERB, predicate, tail
from perdure.engine.extract.persons import third_person
from perdure.engine.extract.prose import BLOT, Sentence
from perdure.engine.extract.requests import Wish
from perdure.engine.extract.wishes import is_procedure
from perdure.engine.extract.words import ADVERBS, either


def likes(claim: Sentence, who: str) -> Iterator[Wish]:
    """Yield the tastes that a claim tells of."""
    yield from _tastes(claim, who)
    yield from _favourites(claim, who)


# ---------------------------------------------------------------- tastes
_ADV = rf"(?:\s(?:{either(ADVERBS)}|don't|do\snot|never))"
_LIKES = re.compile(
    rf"(?P<subject>\b(?:I|we){_ADV}{{0,4}}\s)?\b(?:like|love|adore|hate|dislike|loathe"
    rf"|detest|prefer|enjoy|can't\sstand"
    r"|cannot\sstand|can't\sbear|am\sinto|am\snot\sinto|am\sa\s(?:big\s|huge\s)?fan"
    r"\sof|avoid|favour|favor"
    r"|listen\sto|drink|crave)\s(?:so\smuch\s|very\smuch\s|more\s)?",
    re.IGNORECASE,
)
_MOST_TERSE = 6
_WEAK = re.compile(r"(?:listen\sto|drink|avoid|crave|favou?r)\s\Z", re.IGNORECASE)
_HABIT = re.compile(
    r"\b(?:always|never|only|no\slonger|don't|do\snot|usually|mostly)\b", re.IGNORECASE
)
_MINE = re.compile(
    r"\b(?:I'm|I\sam)(?:\s(?:not|really|also|so|very|totally)){0,3}\s(?:into|fond\sof"
    r"|keen\son|crazy\sabout|a\s(?:big\s|"
    r"huge\s|massive\s)?fan\sof|obsessed\swith|tired\sof|sick\sof|not\sa\sfan\sof)\s",
    re.IGNORECASE,
)
_RATHER = re.compile(
    r"\b(?:I'd|I\swould)\s(?:much\s)?(?:rather|prefer)\s(?:not\s)?(?:to\s|have\s|use\s)?",
    re.IGNORECASE,
)
_WHAT_I = re.compile(
    r"\bwhat\s(?:I|we)\s(?:really\s)?(?:like|love|hate|can't\sstand|dislike|prefer"
    r"|enjoy)(?:\s(?:most|about\s\w+))?\s(?:is|are)\s",
    re.IGNORECASE,
)
_NEVER_DO = re.compile(r"\b(?:I|we)\s(?:never|always)\s(?=\w)", re.IGNORECASE)
_NO_HABIT = re.compile(
    r"(?:forget|forgot|thought|knew|know|said|told|wanted|had|have|been|was|were|did"
    r"|saw|got|get|think|wonder|felt"
    r"|feel|mind|heard|hear|met|tried|went|used|understood|understand|\w+ed)\b",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"(?:it|that|this|these|those|them|(?:us|me|myself|ourselves)(?=\W*\Z)|him|her|his|their|its|you|your|i|one|both(?!\s[\w-]+\sand\s\w)"
    r"|everything|the\s(?:thought|fact|idea|sound|look|way|first|second"
    r"|last|new|other|one|answer|result|plan)|how|what|to\s(?:know|see|ask|hear|get"
    r"|have|think|thank|add|change|order|book"
    r"|say)|crazy|so|when\sI\ssay|where)\b",
    re.IGNORECASE,
)
_WHEN_YOU = re.compile(r"(?:it\s)?when\s(?:you|people|someone|the)\b", re.IGNORECASE)
_OF_THE_TALK = re.compile(
    r"\b(?:ideas?|options?|suggestions?)\Z|\byou(?:'ve)?\s(?:suggested|mentioned|gave"
    r"|said|wrote|made|listed|provided|shared|recommended|showed|described|sent)\b"
    r"|\b(?:it|this|these|those|them|there|yourself)\b",
    re.IGNORECASE,
)


def _tastes(claim: Sentence, who: str) -> Iterator[Wish]:
    for match in _LIKES.finditer(claim.plain):
        terse = match["subject"] is None
        if terse and not _is_terse(claim, match) and not _goes_on(claim, match):
            continue
        if _WEAK.search(match[0]) and not _HABIT.search(match[0]):
            continue
        yield from _liked(claim, match, who, prefix="I " if terse else "")
    for pattern in (_MINE, _RATHER, _WHAT_I):
        for match in pattern.finditer(claim.plain):
            yield from _liked(claim, match, who)
    for match in _NEVER_DO.finditer(claim.plain):
        if not _NO_HABIT.match(claim.plain, match.end()) and not _is_ours(claim, match):
            yield from _liked(claim, match, who)


def _is_ours(claim: Sentence, match: re.Match[str]) -> bool:
    """Whether "we always" says how a team works, which is no taste."""
    return match[0].lower().startswith("we") or is_procedure(claim.plain[match.start() :])


def _is_terse(claim: Sentence, match: re.Match[str]) -> bool:
    """Whether the subject was left out: the verb comes first, in a short sentence."""
    if match.start() != 0 or len(claim.plain.split()) > _MOST_TERSE:
        return False
    return not re.compile(r"(?:the|your|all|every)\b", re.IGNORECASE).match(
        claim.plain, match.end()
    )


_OF_ME = re.compile(
    r"\W*(?:I|we)\s(?!.*\b(?:he|she|they|who|that|people|to|can|will|would|not|don't|never)\b)"
    r".*\Z",
    re.IGNORECASE,
)


def _goes_on(claim: Sentence, match: re.Match[str]) -> bool:
    """Whether the subject was named before: "I live in Rome and like tea"."""
    if claim.plain[match.start() - 4 : match.start()].lower() != "and " or not VERB.match(
        claim.plain, match.start()
    ):
        return False
    return _OF_ME.match(claim.plain[: match.start()]) is not None


def _liked(claim: Sentence, match: re.Match[str], who: str, prefix: str = "") -> Iterator[Wish]:
    begin, value = match.span()
    finish = predicate(claim, value, tail(claim, value))
    if claim.plain[finish : finish + 6] == ", not ":
        finish = tail(claim, finish + 2)
    about = claim.text[value:finish]
    if not opens(claim, begin) or not about.strip() or about.strip()[0] == BLOT:
        return
    thing = _NOTHING.match(claim.plain, value) or _OF_THE_TALK.search(claim.plain, value, finish)
    if thing and not _WHEN_YOU.match(claim.plain, value):
        return
    said = claim.text[begin:finish]
    if prefix:
        said = said[0].lower() + said[1:]
    what = re.match(r"(?i)what\s(?P<verb>.+?)\s(?:is|are)\s\Z", match[0])
    if what:
        said = f"{what['verb']} {about}"
    yield Wish(begin, finish, third_person(prefix + said, who), about, confidence.STATED)


# ---------------------------------------------------------------- favourites
_FAVOURITE = re.compile(
    r"\bmy\s(?:all[\s-]time\s)?(?P<what>(?:least\s)?favou?rite\s(?:[\w'-]{1,30}"
    r"\s){1,5}?)(?:is|are|was|has\sto\sbe)\s|"
    r"\bmy\sgo-to\s(?P<goto>(?:[\w'-]{1,30}\s){1,3}?)(?:is|are)\s",
    re.IGNORECASE,
)
_IS_FAVOURITE = re.compile(
    r"(?P<what>[^\W_][\w\s'-]{1,40}?)\s(?:is|are)\smy\s(?P<kind>(?:all[\s-]time"
    r"\s)?favou?rite(?:\s[\w'-]{1,30}){0,3})",
    re.IGNORECASE,
)


def _favourites(claim: Sentence, who: str) -> Iterator[Wish]:
    for match in _FAVOURITE.finditer(claim.plain):
        finish = tail(claim, match.end())
        if finish > match.end() and opens(claim, match.start()):
            told = third_person(claim.text[match.start() : finish], who)
            about = match["what"] or match["goto"]
            yield Wish(match.start(), finish, told, about, confidence.STATED)
    named = _IS_FAVOURITE.match(claim.plain)
    if named and not _NOTHING.match(named["what"]):
        told = third_person(claim.text[: named.end()], who)
        yield Wish(0, named.end(), told, named["kind"], confidence.STATED)
