"""The rules that write without being asked: patterns whose sentences were judged to last."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path

from perdure.dataclass import dataclass, replace
from perdure.engine.learn.persons import NOBODY, dated, third_person
from perdure.engine.learn.prose import Sentence, user_sentences
from perdure.model.transcript import Message
from perdure.patterns import entries, later, table

_FEWEST, _MOST = 4, 45
"""Words of a sentence that a rule writes."""
_NAMED = later(
    r"(?:never|always|do not|don't) (?:use|run|commit|edit|touch) "
    r"(?!(?:it|this|that|these|those|them|any|one|me)\b)\S{2,}",
    re.IGNORECASE,
)
"""Shorter ones that say all: "Never use moment.js."."""
_MOST_OF_A_CLAUSE = 16
"""Words of what a user says of themselves; a longer clause says more than that."""
SURE, TOLD, ASKED = 0.8, 0.9, 0.95
"""A rule fits; a user says it of themselves; a user asks that it be remembered."""
_DOUBTED = 0.6
"""What a doubt leaves of it."""
WORK = ("decision", "rule", "fact", "preference", "command", "case")
PERSON = ("profile", "liking", "entity", "event")

_FORMS = {
    name: later(text, re.IGNORECASE) for name, text in table(__file__, "rules.txt", "forms").items()
}


@dataclass(frozen=True, slots=True)
class Written:
    """What a rule writes of a message: its words, from `start` to `end`, and the statement."""

    message: int
    start: int
    end: int
    kind: str = ""
    rule: str = ""
    text: str = ""
    confidence: float = SURE
    when: datetime | None = None
    about: str = ""
    """The words of the user, of what is stated in the third person."""
    key: str = ""


def written(messages: Sequence[Message | Mapping[str, object]]) -> list[Written]:
    session = [m if isinstance(m, Message) else Message.from_mapping(m) for m in messages]
    found: list[Written] = []
    before: Sentence | None = None
    for sentence in user_sentences(session):
        lead, before = before, sentence
        if lead and (lead.message != sentence.message or lead.text.endswith(("?", ":"))):
            lead = None
        message = session[sentence.message]
        is_taken_back = _FORMS["taken_back"].match(message.content, sentence.end)
        if not is_taken_back and not _FORMS["played"].search(message.content):
            of_person = list(_of_person(sentence, message))
            found += of_person or filter(None, [_of_work(sentence, lead, message)])
    return found


def _of_work(sentence: Sentence, lead: Sentence | None, message: Message) -> Written | None:
    rule = rule_for(sentence.plain)
    if rule is None:
        return None
    noted = _FORMS["noted"].match(sentence.text)
    start = sentence.start + (noted.end() if noted else 0)
    text = message.content[start : sentence.end]
    if _FORMS["dangling"].match(text) or rule[0] == "case":
        if lead is None:
            return None  # what it is about is not there
        start, text = lead.start, f"{lead.text} {text}"
    text = " ".join(text.split())
    sure = SURE * (_DOUBTED if _FORMS["doubt"].search(sentence.plain) else 1)
    return Written(
        sentence.message, start, sentence.end, *rule, text, sure, message.time, key=sentence.key
    )


def rule_for(plain: str) -> tuple[str, str] | None:
    """Return the kind and the name of the rule that a sentence fits; None if it fits none."""
    is_short = len(plain.split()) < _FEWEST and not _NAMED.fullmatch(plain)
    if is_short or len(plain.split()) > _MOST or {"`", "\u201c", "\u201d"} & {*plain}:
        return None
    is_request = _FORMS["request"].search(plain)
    if _FORMS["passing"].search(plain) or (_is_question(plain) and not is_request):
        return None
    fits = _fits(WORK, plain)
    return fits[:2] if fits else None


def _is_question(plain: str) -> bool:
    return _FORMS["question"].search(plain) is not None


def _of_person(sentence: Sentence, message: Message) -> Iterator[Written]:
    """Yield what a sentence says of its author, clause by clause."""
    if _is_question(sentence.plain) or _FORMS["passing"].search(sentence.plain):
        return
    joints = [found.span() for found in _FORMS["clause"].finditer(sentence.text)]
    starts = [0, *(end for _, end in joints)]
    ends = [*(start for start, _ in joints), len(sentence.text)]
    for start, end in zip(starts, ends, strict=True):
        at, text = sentence.start + start, sentence.text[start:end]
        clause = replace(sentence, start=at, end=sentence.start + end, text=text)
        found = _of_clause(clause, message)
        if found is not None:
            yield replace(found, key=sentence.key)


def _of_clause(clause: Sentence, message: Message) -> Written | None:
    plain, who = clause.plain, message.name or NOBODY
    led = _FORMS["lead"].match(plain)
    skipped = led.end() if led and plain[: led.end()] == clause.text[: led.end()] else 0
    text = _FORMS["tail"].sub("", clause.text[skipped:].rstrip(" .!;,"))
    start = clause.start + skipped
    made = Written(clause.message, start, start + len(text), when=message.time, about=text)
    if asked := _fits(("asked",), text):
        bare = asked[2].sub("", text, count=1)
        is_rule = rule_for(bare) and re.match(r"we|use|run|always|never", bare)
        stated = third_person(bare, who) or f"{bare[:1].upper()}{bare[1:]}."
        made = replace(made, start=made.end - len(bare), rule=asked[1], confidence=ASKED)
        return replace(made, kind="rule" if is_rule else "entity", text=stated)
    fits = _fits(PERSON, text)
    if fits is None or len(text.split()) > _MOST_OF_A_CLAUSE or "QUOTED" in plain:
        return None
    doubt = _DOUBTED if _FORMS["unsure"].search(plain) else 1
    if fits[1] in {"home", "work"}:
        text = text.partition(",")[0]
        made = replace(made, end=made.start + len(text), about=text)
    made = replace(made, kind=fits[0], rule=fits[1], confidence=TOLD * doubt)
    stated = f"{text[0].upper()}{text[1:]}." if made.rule == "named" else third_person(text, who)
    if made.kind == "event":
        if on := dated(stated, message.time):
            return replace(made, text=on[0], when=on[1])
        fits = _fits(("profile",), text)  # "I moved to Bergen" is of the person without a date
        if fits is None:
            return None
        made = replace(made, kind=fits[0], rule=fits[1])
    moved = re.sub(r" (?:just |has |recently )?(?:moved|relocated) to ", " now lives in ", stated)
    return replace(made, text=moved) if stated else None


Rule = tuple[str, str, re.Pattern[str]]


def _fits(kinds: tuple[str, ...], text: str) -> Rule | None:
    return next((each for each in _rules(kinds) if each[2].search(text)), None)


@cache
def _rules(kinds: tuple[str, ...]) -> list[Rule]:
    path = Path(__file__).with_name("rules.txt")
    return [
        (kind, name, re.compile(text, re.IGNORECASE))
        for kind, name, text in entries(path)
        if kind in kinds
    ]
