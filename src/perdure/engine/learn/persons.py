"""What users say of themselves, in the third person: "I live in Porto" as "Ana lives in Porto"."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from perdure.model import RequestContext
from perdure.model.transcript import Message

NOBODY = "the user"
_ADVERBS = "now|currently|still|also|really|always|never|usually|often|mostly|just|only|actually"
_FIRST = re.compile(
    rf"i (?P<adverb>(?:(?:{_ADVERBS}) )*)(?:(?P<not>don't|do not|dont) )?"
    r"(?P<verb>[a-z]+)(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_AM = re.compile(r"(?:i'm|im|i am)\b(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_MY = re.compile(r"my (?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_OTHERS = re.compile(r"\b(?:we|us|our|you|your|he|she|his|they|it|this|that)\b", re.IGNORECASE)
_UNTOLD = re.compile(r"\b(?:i'd|i'll|i've|mine|myself)\b|\bI\b(?=[^'\s])", re.IGNORECASE)
_PAST = re.compile(
    r"(?:\w+ed|was|had|did|went|met|bought|got|flew|came|saw|left|began|ran|made|took|gave|won|lost)"
)
_IRREGULAR = {"have": "has", "do": "does", "go": "goes", "am": "is", "can": "can", "must": "must"}


def owner_of(messages: Sequence[Message], ctx: RequestContext) -> Callable[[Message], bool]:
    """Return whether a message is by the one whose memory this is.

    That is whoever speaks in the role of the user. If several do, by their names, it is the one who
    is named like the user's id, and who has no name; the others are other people.
    """
    names = {each.name.casefold() for each in messages if each.role == "user" and each.name}
    user = ctx.user_id.casefold()
    if user in names or len(names) > 1:
        return lambda message: message.role == "user" and message.name.casefold() in {"", user}
    return lambda message: message.role == "user"


def third_person(clause: str, who: str) -> str:
    """Return a clause in the first person as a statement about `who`; empty if that is not plain.

    A clause that speaks of others too is left alone: who "it" or "they" are is not in it.
    """
    text = " ".join(clause.replace("\u2019", "'").split()).rstrip(" .!;,")
    if _UNTOLD.search(text) or _OTHERS.search(text):
        return ""
    if found := _AM.fullmatch(text):
        said = f"{who} is{found['rest']}"
    elif found := _MY.fullmatch(text):
        said = f"{who}'s {found['rest']}"
    elif found := _FIRST.fullmatch(text):
        verb, adverb = found["verb"], found["adverb"]
        verb = f"does not {verb}" if found["not"] else _third(verb.lower())
        said = f"{who} {adverb}{verb}{found['rest']}"
    else:
        return ""
    said = re.sub(r"\bmy\b", "their", said, flags=re.IGNORECASE)
    said = re.sub(r"\bme\b", "them", re.sub(r"\bI am\b|\bI'm\b", "they are", said))
    said = re.sub(r"\bI\b", "they", said)
    return f"{said[0].upper()}{said[1:]}."


def _third(verb: str) -> str:
    if verb in _IRREGULAR or _PAST.fullmatch(verb):
        return _IRREGULAR.get(verb, verb)
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{verb}es"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"


# ---------------------------------------------------------------- when something happened
_MONTHS = "january february march april may june july august september october november december"
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS.split())
_DATED = re.compile(
    rf"\b(?:on )?(?:(?P<iso>\d{{4}}-\d\d-\d\d)|(?P<day>\d{{1,2}})(?:st|nd|rd|th)? "
    rf"(?P<month>{_MONTH})"
    rf",? (?P<year>\d{{4}})|(?P<month2>{_MONTH}) (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?,? "
    rf"(?P<year2>\d{{4}})|(?P<near>yesterday|today|tomorrow))\b",
    re.IGNORECASE,
)
_NEAR = {"yesterday": -1, "today": 0, "tomorrow": 1}


def dated(text: str, told: datetime | None) -> tuple[str, datetime | None] | None:
    """Return a statement with its day as an ISO date, and that day; None if it has none.

    A day that is seen from an unknown one is left out.
    """
    found = _DATED.search(text)
    when = _day(found, told) if found else None
    if found is None or (when is None and not found["near"]):
        return None
    if when is None:
        return f"{text[: found.start()].rstrip()}{text[found.end() :]}", None
    return f"{text[: found.start()]}on {when:%Y-%m-%d}{text[found.end() :]}", when


def _day(found: re.Match[str], told: datetime | None) -> datetime | None:
    try:
        if found["near"]:
            return told + timedelta(days=_NEAR[found["near"].lower()]) if told else None
        if found["iso"]:
            return datetime.fromisoformat(found["iso"]).replace(tzinfo=UTC)
        month = (found["month"] or found["month2"])[:3].lower()
        number = [name[:3] for name in _MONTHS.split()].index(month) + 1
        year, day = int(found["year"] or found["year2"]), int(found["day"] or found["day2"])
        return datetime(year, number, day, tzinfo=UTC)
    except ValueError:
        return None
