"""The rules that write without being asked: patterns whose sentences were judged to last."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path

from perdure.engine.learn.persons import NOBODY, dated, third_person
from perdure.engine.learn.prose import Sentence, user_sentences
from perdure.engine.tables import entries
from perdure.model.transcript import Message

_FEWEST, _MOST = 4, 45
"""Words of a sentence that a rule writes."""
_MOST_OF_A_CLAUSE = 16
"""Words of what a user says of themselves; a longer clause says more than that."""
SURE, TOLD, ASKED = 0.8, 0.9, 0.95
"""A rule fits; a user says it of themselves; a user asks that it be remembered."""
_DOUBTED = 0.6
"""What a doubt leaves of it."""
WORK = ("decision", "rule", "fact", "preference", "command", "case")
PERSON = ("profile", "liking", "entity", "event")

_QUESTION = re.compile(
    r"\?[\"')]*\s*$|^(?:why|what|how|where|which|who|did|does|do you|do we|is|are|could|would|"
    r"should|will|was|were|have|has|can you)\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(r"\bcan we (?:move|change|rename|replace|switch)\b", re.IGNORECASE)
_PASSING = re.compile(
    r"\b(?:this time|for now|right now|today|just this once|temporarily|i'm (?:looking|theorizing)"
    r"|yeah right|joking|kidding|if i (?:had|were|was)|i see|when i|commit message|whoops"
    r"|the latter|the former"
    r"|go ahead and (?:update|modify|fix)|error|failed|fails)\b"
    r"|^(?:instead of|so that|which|because|or|to use|a review|suppose|imagine|if only|pretend)\b",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:possibly|maybe|perhaps|i guess|presumably|i assume|might|not sure"
    r"|i think (?:that|i|you))\b",
    re.IGNORECASE,
)
_DANGLING = re.compile(
    r"(?:they|it|that|these|those|this)\b(?! (?:is (?:not )?an?|project|app|repo)\b)", re.IGNORECASE
)
_PLAYED = re.compile(
    r"\b(?:write|tell|continue|compose|make up) (?:me |us )?(?:an? )?(?:\w+ )?"
    r"(?:story|poem|song|scene|letter|mail|bio|monologue|dialogue)\b"
    r"|\b(?:in the (?:first person|voice)|role-?play|play(?:ing)? (?:a|the)|pretend|imagine|suppose"
    r"|translate|summari[sz]e|proofread|rephrase|paraphrase)\b",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"[\s.!]*(?:no,? wait|scratch that|just kidding|kidding|never ?mind|not really|joking|jk|not!)",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"(?:,? (?:and|but|so)|[;:,]) (?=(?:i|i'm|my)\b)|(?: -|,) (?=(?:remember|note|keep)\b)",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:(?:hi|hello|hey|well|oh|ok|okay|yes|so|and|but|also|btw|by the way|actually|honestly"
    r"|i think|maybe|i guess|perhaps)\b[,!.]? )+",
    re.IGNORECASE,
)
_NOTED = re.compile(
    r"(?:for (?:your|the) notes?(?:, then)?|note|fyi|reminder|important)\s*[:,]\s*", re.IGNORECASE
)
_TAIL = re.compile(
    r"(?:,? (?:by the way|btw|now|though|too|as well|lol|haha|you know|of course|please))+$",
    re.IGNORECASE,
)
_UNSURE = re.compile(r"\b(?:i think|maybe|i guess|perhaps|probably|might)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Written:
    """What a rule writes of a message: its words, from `start` to `end`, and what they say."""

    message: int
    start: int
    end: int
    kind: str
    rule: str
    text: str
    confidence: float = SURE
    when: datetime | None = None
    about: str = ""
    """The words as they were said, of what is told in the third person."""
    key: str = ""
    """The key of the sentence that the rule fits."""


def written(messages: Sequence[Message | Mapping[str, object]]) -> list[Written]:
    """Return what the rules write of a session, in the order in which it was said."""
    said = [each if isinstance(each, Message) else Message.from_mapping(each) for each in messages]
    found: list[Written] = []
    before: Sentence | None = None
    for sentence in user_sentences(said):
        lead = before if before is not None and _leads(before, sentence) else None
        before = sentence
        message = said[sentence.message]
        if _TAKEN_BACK.match(message.content, sentence.end):
            continue
        of_person = list(_of_person(sentence, message))
        found += of_person or filter(None, [_of_work(sentence, lead, message)])
    return found


# ---------------------------------------------------------------- of the work
def _of_work(sentence: Sentence, lead: Sentence | None, message: Message) -> Written | None:
    rule = rule_for(sentence.plain)
    if rule is None or _PLAYED.search(message.content):
        return None
    noted = _NOTED.match(sentence.text)
    start = sentence.start + (noted.end() if noted else 0)
    text = message.content[start : sentence.end]
    if _DANGLING.match(text) or rule[0] == "case":
        if lead is None:
            return None  # what it is about is not said
        start, text = lead.start, f"{lead.text} {text}"
    text = " ".join(text.split())
    sure = SURE * (_DOUBTED if _DOUBT.search(sentence.plain) else 1)
    return Written(
        sentence.message, start, sentence.end, *rule, text, sure, message.time, key=sentence.key
    )


def rule_for(plain: str) -> tuple[str, str] | None:
    if (
        not _FEWEST <= len(plain.split()) <= _MOST
        or plain.count("`")
        or {"\u201c", "\u201d"} & {*plain}
    ):
        return None
    if _PASSING.search(plain) or (_QUESTION.search(plain) and not _REQUEST.search(plain)):
        return None
    fits = (each for each in _rules(WORK) if each[2].search(plain))
    return next(((kind, name) for kind, name, _ in fits), None)


def _leads(before: Sentence, sentence: Sentence) -> bool:
    return before.message == sentence.message and not before.text.endswith(("?", ":"))


# ---------------------------------------------------------------- of the person
def _of_person(sentence: Sentence, message: Message) -> Iterator[Written]:
    """Yield what a sentence says of who wrote it, clause by clause."""
    plain = sentence.plain
    if _QUESTION.search(plain) or _PASSING.search(plain) or _PLAYED.search(message.content):
        return
    begin = 0
    for end in [*(found.start() for found in _CLAUSE.finditer(sentence.text)), len(sentence.text)]:
        joint = _CLAUSE.match(sentence.text, begin)
        begin = joint.end() if joint else begin
        clause = replace(
            sentence,
            start=sentence.start + begin,
            end=sentence.start + end,
            text=sentence.text[begin:end],
        )
        begin = end
        yield from _of_clause(clause, message, sentence.key)


def _of_clause(  # noqa: C901 - one way for each kind
    clause: Sentence, message: Message, key: str
) -> Iterator[Written]:
    plain = clause.plain
    unsure = bool(_UNSURE.search(plain))
    led = _LEAD.match(plain)
    skipped = led.end() if led and plain[: led.end()] == clause.text[: led.end()] else 0
    text = _TAIL.sub("", clause.text[skipped:].rstrip(" .!;,"))
    start = clause.start + skipped
    made = Written(
        clause.message, start, start + len(text), "", "", "", TOLD, message.time, text, key
    )
    if unsure:
        made = replace(made, confidence=TOLD * _DOUBTED)
    if asked := _fits(("asked",), text):
        said = asked[2].sub("", text, count=1)
        kind = "rule" if rule_for(said) and re.match(r"we|use|run|always|never", said) else "entity"
        told = third_person(said, message.name or NOBODY) or f"{said[:1].upper()}{said[1:]}."
        start = made.end - len(said)
        yield replace(made, start=start, kind=kind, rule=asked[1], text=told, confidence=ASKED)
        return
    fits = _fits(PERSON, text)
    if fits is None or len(text.split()) > _MOST_OF_A_CLAUSE or "QUOTED" in plain:
        return
    kind, rule = fits[:2]
    if rule in {"home", "work"}:
        text = text.partition(",")[0]
        made = replace(made, end=made.start + len(text), about=text)
    told = third_person(text, message.name or NOBODY)
    if rule == "named":
        told = f"{text[0].upper()}{text[1:]}."
    if kind == "event":
        on = dated(told, message.time)
        if on:
            yield replace(made, kind=kind, rule=rule, text=on[0], when=on[1])
        if on or rule != "happened":
            return
        fits = _fits(("profile",), text)  # "I moved to Bergen" is of the person without a date
        if fits is None:
            return
        kind, rule = fits[:2]
    if told:
        yield replace(made, kind=kind, rule=rule, text=_settled(told))


def _settled(told: str) -> str:
    """Return where somebody moved as where they live now."""
    return re.sub(r" (?:just |has |recently )?(?:moved|relocated) to ", " now lives in ", told)


Rule = tuple[str, str, re.Pattern[str]]


def _fits(kinds: Sequence[str], text: str) -> Rule | None:
    return next((each for each in _rules(tuple(kinds)) if each[2].search(text)), None)


@cache
def _rules(kinds: tuple[str, ...]) -> list[Rule]:
    path = Path(__file__).with_name("rules.txt")
    return [
        (kind, name, re.compile(text, re.IGNORECASE))
        for kind, name, text in entries(path)
        if kind in kinds
    ]
