"""The extractors that go by rules: who the owner is, what people like, and what happens to whom."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from perdure.engine.extract import confidence
from perdure.engine.extract.candidates import slug_of
from perdure.engine.extract.claims import hedged, opens
from perdure.engine.extract.contract import CandidateExtractor
from perdure.engine.extract.events import events
from perdure.engine.extract.facts import facts
from perdure.engine.extract.findings import Finding, Turn, candidates, turns_of
from perdure.engine.extract.likes import likes, requests
from perdure.engine.extract.persons import name_at, third_person
from perdure.engine.extract.prose import Sentence, Statement, apart, tail
from perdure.engine.extract.reminders import reminders
from perdure.engine.extract.rules.procedure import ProcedureExtractor
from perdure.engine.extract.words import FAMILY, PEOPLE, PETS, THINGS, any_case, either
from perdure.model import CandidateMemory, RequestContext
from perdure.model.uri import PROFILE


class _ByRules(ABC):
    """Finds candidates in what users say, message by message."""

    def extract(
        self, messages: Sequence[Mapping[str, object]], ctx: RequestContext
    ) -> list[CandidateMemory]:
        turns = (turn for turn in turns_of(messages, ctx) if turn.message.role == "user")
        return candidates((found for turn in turns for found in self._findings(turn)), ctx)

    @abstractmethod
    def _findings(self, turn: Turn) -> Iterator[Finding]: ...


class ProfileExtractor(_ByRules):
    """Finds what the user says of themselves: name, home, work, family, languages, health.

    The profile has no slug; `metadata["topic"]` says what of it a candidate is.
    """

    def _findings(self, turn: Turn) -> Iterator[Finding]:
        for claim in turn.claims if turn.by_owner else ():
            for fact in facts(claim, turn.who):
                yield turn.finding(claim, fact, PROFILE, "")


class PreferenceExtractor(_ByRules):
    """Finds what speakers like and dislike, and wishes that outlast the task."""

    def _findings(self, turn: Turn) -> Iterator[Finding]:
        for claim in turn.claims:
            asked = requests(claim, turn.who) if turn.by_owner else ()
            for wish in apart([*likes(claim, turn.who), *asked]):
                found = turn.finding(claim, wish, "preference", slug_of(wish.about))
                unsure = hedged(claim, wish.begin, wish.finish)
                yield replace(found, confidence=confidence.weighed(wish.confidence, hedged=unsure))


class EntityEventExtractor(_ByRules):
    """Finds who and what speakers tell of, and what happened, will happen or was decided."""

    def _findings(self, turn: Turn) -> Iterator[Finding]:
        """Yield what a message tells; what is to be remembered as a whole is not told in parts."""
        found = [finding for claim in turn.claims for finding in _in(turn, claim)]
        asked = [each.finding(turn) for each in reminders(turn) if not each.is_rule]
        said = {(each.start, each.end) for each in found}
        whole = [each for each in asked if (each.start, each.end) not in said]
        yield from whole
        for finding in found:
            if not any(each.start <= finding.start < each.end for each in whole):
                yield finding


def _in(turn: Turn, claim: Sentence) -> Iterator[Finding]:
    for event in events(claim, turn.who, turn.message.time):
        day = f"{event.when:%Y-%m-%d}" if event.when else ""
        found = turn.finding(claim, event, "event", slug_of(event.content, day))
        yield replace(found, when=event.when)
    for entity in apart(_entities(turn, claim)):
        found = turn.finding(claim, entity, "entity", slug_of(entity.about))
        yield replace(found, who=(entity.about,))
    if not turn.by_owner:  # what somebody else says of themselves
        for fact in facts(claim, turn.who):
            found = turn.finding(claim, fact, "entity", slug_of(turn.who))
            yield replace(found, who=(turn.who,))


# ---------------------------------------------------------------- entities
_NAME = (
    r"(?P<name>(?:(?-i:The|Mr|Mrs|Ms|Dr|Prof)\.?\s)?(?-i:[^\W\d_a-z])[\w'&-]{0,30}(?:"
    r"\s(?-i:[^\W\d_a-z])[\w'&-]{0,30}){0,2}|[a-z]{1,20}\d{1,4})"
)
_MY = r"\b(?:my|our)\s(?:[\w-]{1,20}\s)?"
_KNOWN = either(PEOPLE | PETS | THINGS)
_IS_MINE = any_case(
    rf"(?<!\w){_NAME}\s(?:is|are|was)\s(?:my|our|one\sof\s(?:my|our))"
    rf"\s(?P<what>(?:[\w'-]{{1,30}}\s?){{1,5}})"
)
_MY_NAMED = any_case(rf"{_MY}(?P<what>{_KNOWN})\s{_NAME}")
_MINE_IS = any_case(
    rf"{_MY}(?P<what>{_KNOWN})(?:'s\sname)?\s(?:is|'s)\s(?:called\s|named\s)?{_NAME}(?="
    rf"\s*(?:\Z|[,.;!)]|and\b|but\b|who\b))"
)
_CALLED = any_case(
    r"\b(?:(?:the|my|our|this|her|his|its)|(?P<has>(?:I|we)(?:'ve)?\s(?:have|got|own"
    r"|adopted)\san?))\s"
    r"(?P<what>(?:[\w'-]{1,30}\s){1,4}?)(?:(?:is|are|was)\s|(?(has)|(?!)))(?:called"
    r"|named|nicknamed)\s"
    r"(?P<name>[\w'&.-]{1,30}(?:\s(?-i:[^\W\d_a-z])[\w'&-]{0,30}){0,3})"
)
_ITS_NAME = any_case(rf"\b(?:his|her|its|their|the\sdog's|the\scat's)\sname(?:'s|\sis)\s{_NAME}")
_THIS_IS = any_case(rf"\bthis\sis\s{_NAME},\s(?:my|our)\s(?P<what>(?:[\w'-]{{1,30}}\s?){{1,5}})")
_NEAR_ME = any_case(
    rf"\A{_NAME}\s(?:is|was)\s(?:an?|the)\s(?P<what>[\w\s'-]{{2,60}}?\s(?:near|in|at"
    rf"|where|next\sto|around\sthe\scorner\sfrom)\s(?:my|our|I|we)\b)"
)
_KIN = any_case(rf"(?:\w+\s)?(?:{either(FAMILY)})\b")
_NO_THING = any_case(
    r"\b(?:favou?rite|fault|problem|idea|guess|plan|goal|turn|pleasure|bad|point|thing|dream)\b"
)


def _as_statement(said: str, name: str) -> str:
    """Return "my friend Olaf" as "Olaf is my friend"; a statement stays as it is."""
    match = re.fullmatch(rf"((?:my|our)\s.+?)\s{re.escape(name)}", said, re.IGNORECASE)
    if match and not re.search(r"\s(?:is|are|'s|called|named)\b|'s\b", match[1]):
        return f"{name} is {match[1][0].lower()}{match[1][1:]}"
    return said


def _entities(turn: Turn, claim: Sentence) -> Iterator[Statement]:
    for pattern in (_IS_MINE, _MY_NAMED, _MINE_IS, _CALLED, _ITS_NAME, _THIS_IS, _NEAR_ME):
        for match in pattern.finditer(claim.plain):
            name = _name_in(claim, match, free=pattern is _CALLED)
            if name and opens(claim, match.start()) and not _is_other(turn, pattern, match):
                begin, finish = match.start(), _finish(pattern, claim, match, name)
                told = third_person(_as_statement(claim.text[begin:finish], name), turn.who)
                sure = confidence.weighed(confidence.DEFINED, hedged=hedged(claim, begin, finish))
                yield Statement(begin, finish, told, sure, name)


def _name_in(claim: Sentence, match: re.Match[str], *, free: bool) -> str:
    """Return the name as it is written; what "is called" names may be small."""
    begin, finish = match.span("name")
    text = claim.text[begin:finish].rstrip("'.-")
    if free or text[:1].islower():
        return (
            ""
            if text.lower() in {"a", "an", "the", "it", "him", "her", "me", "that", "by", "in"}
            else text
        )
    return name_at(text, 0)


def _is_vague(what: str, said: str) -> bool:
    """Whether "X is my Y" says of X nothing that it is: no person, pet or thing that is known."""
    if _NO_THING.search(what):
        return True
    return (
        re.search(r"\sour\s", said) is None
        and re.search(rf"\b(?:{_KNOWN})\b", what, re.IGNORECASE) is None
    )


def _is_other(turn: Turn, pattern: re.Pattern[str], match: re.Match[str]) -> bool:
    """Whether it is family, which is of the profile, or no thing at all."""
    what = match.groupdict().get("what") or ""
    if pattern is _CALLED or pattern is _ITS_NAME:
        return turn.by_owner and _KIN.match(what) is not None
    if turn.by_owner and _KIN.match(what):
        return True
    return pattern is _IS_MINE and not _KIN.match(what) and _is_vague(what, match[0])


def _finish(pattern: re.Pattern[str], claim: Sentence, match: re.Match[str], name: str) -> int:
    if pattern in {_IS_MINE, _NEAR_ME, _THIS_IS}:
        return tail(claim, match.start("what"), soft=True)
    return match.start("name") + len(name)


def extractors() -> tuple[CandidateExtractor, ...]:
    """Return one for each kind of memory."""
    return (ProfileExtractor(), PreferenceExtractor(), EntityEventExtractor(), ProcedureExtractor())
