"""What somebody asks to be remembered: "remember that the key is rotated every 90 days"."""

from collections.abc import Iterator
from dataclasses import dataclass

from perdure.engine.extract import confidence
from perdure.engine.extract.candidates import slug_of
from perdure.engine.extract.claims import claims, is_reported
from perdure.engine.extract.events import events
from perdure.engine.extract.facts import facts
from perdure.engine.extract.findings import Finding, Turn
from perdure.engine.extract.likes import is_procedure, likes, requests
from perdure.engine.extract.persons import third_person
from perdure.engine.extract.prose import Sentence
from perdure.engine.extract.words import any_case

_LEAD = (
    r"(?:\A|[,;:]\s|\s[-\u2013\u2014]\s|\band\s)\W{0,5}(?:(?:please|pls|and|also|so|ok|okay|btw|by\sthe\sway"
    r"|oh|hey|but|just|i\s(?:want|need)\syou\sto|i'd\slike\syou\sto)\W{1,5}){0,3}"
)
_ASK = (
    r"(?:remember|memori[sz]e|note|take\snote|make\sa\snote|(?:keep|bear)\sin\smind|be\saware"
    r"|(?:don't|do\snot|never)\s(?:ever\s)?forget)"
)
_SUBJECT = r"(?:the|my|our|we|i|i'm|all|every|each|there|(?-i:[^\W\d_a-z])\w*|`)"
_VERB = (
    r"(?:is|are|was|were|has|have|had|will|must|can|can't|cannot|should|shall|needs?|uses?|lives?"
    r"|works?|goes|closes|opens|starts|ends|expires|belongs|costs|means|runs|comes|gets|takes)"
)
_CLAUSE = rf"(?={_SUBJECT}\s?[^,;:.!?]{{0,60}}?\s{_VERB}\b)"
_REMEMBER = any_case(
    rf"{_LEAD}(?P<ask>{_ASK}\s+that\s+|{_ASK}(?:\s(?:this|the\sfollowing|well|down))?\s*:\s*"
    rf"|{_ASK},\s+(?:that\s+)?{_CLAUSE}"
    rf"|(?:remember|(?:keep|bear)\sin\smind|(?:don't|do\snot)\sforget)\s+{_CLAUSE}"
    r"|(?:important|reminder|memo|for\sthe\srecord|fyi)\s*[:,]\s*)(?P<what>\S)"
)
_PARTED = any_case(rf"\s{_VERB}\b|'s\s")
_VAGUE = any_case(
    r"(?:it|it's|this|that|they|they're|he|she|he's|she's|to|how|what|when|why|who|if|me|him|her)\b"
)
_RULE = any_case(
    r"\b(?:always|never|must|should|ha(?:s|ve)\sto|needs?\sto|make\ssure|don't|do\snot|only\sever"
    r"|not\sallowed|forbidden)\b|\A(?:we|use|run|do|check|ask|avoid|keep|write)\s"
)
_FEWEST = 3
_LEFT = 2
"""Characters of punctuation that may be left when something else says all of a reminder."""


@dataclass(frozen=True, slots=True)
class Reminder:
    """The statement to be remembered, with whether it says how things are to be done."""

    sentence: Sentence
    is_rule: bool

    def finding(self, turn: Turn) -> Finding:
        said = self.sentence.text
        return Finding(
            turn=turn,
            start=self.sentence.start,
            end=self.sentence.end,
            category="pattern" if self.is_rule else "entity",
            content=third_person(said, turn.who),
            slug=slug_of(said if self.is_rule else _about(said)),
            confidence=confidence.REMINDED,
            when=turn.message.time,
            is_whole=True,
        )


def reminders(turn: Turn) -> Iterator[Reminder]:
    """Yield what the owner asks to be remembered, unless another rule says all of it."""
    for sentence in turn.meant if turn.by_owner else ():
        match = _REMEMBER.search(sentence.plain)
        if match is None or "?" in sentence.plain or is_reported(sentence, match.start("ask")):
            continue
        said = sentence.part(match.start("what"), len(sentence.plain.rstrip(" .!,;:")))
        if _is_statement(said) and not _is_said_otherwise(turn, sentence, said):
            yield Reminder(said, _RULE.search(said.plain) is not None or is_procedure(said.plain))


def _is_statement(said: Sentence) -> bool:
    return len(said.plain.split()) >= _FEWEST and not _VAGUE.match(said.plain)


def _is_said_otherwise(turn: Turn, sentence: Sentence, said: Sentence) -> bool:
    """Whether the profile, a preference or an event has all of it."""
    return any(
        claim.start + begin <= said.start and claim.start + finish + _LEFT >= said.end
        for claim in claims([sentence])
        for begin, finish in _found(turn, claim)
    )


def _found(turn: Turn, claim: Sentence) -> Iterator[tuple[int, int]]:
    for fact in facts(claim, turn.who):
        yield fact.begin, fact.finish
    for wish in (*likes(claim, turn.who), *requests(claim, turn.who)):
        yield wish.begin, wish.finish
    for event in events(claim, turn.who, turn.message.time):
        yield event.begin, event.finish


def _about(said: str) -> str:
    """Return what a statement is about: the words before its verb."""
    parted = _PARTED.search(said)
    about = said[: parted.start()] if parted else ""
    return about if about.strip() and not _VAGUE.match(about) else said
