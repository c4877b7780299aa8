"""What users say of themselves, in the third person: "I live in Porto" as "Ana lives in Porto"."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from perdure.engine.recall.periods import Cycle, anchors_in
from perdure.model import RequestContext
from perdure.model.transcript import Message
from perdure.patterns import later

NOBODY = "the user"
_ADVERBS = "now|currently|still|also|really|always|never|usually|often|mostly|just|only|actually"
_FIRST = later(
    rf"i (?P<adverb>(?:(?:{_ADVERBS}) )*)(?:(?P<not>don't|do not|dont) )?"
    r"(?P<verb>[a-z]+)(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_AM = later(r"(?:i'm|im|i am)\b(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_MY = later(r"my (?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_OTHERS = later(r"\b(?:we|us|our|you|your|he|she|his|they|it|this|that)\b", re.IGNORECASE)
_UNTOLD = later(r"\b(?:i'd|i'll|i've|mine|myself)\b|\bI\b(?=[^'\s])", re.IGNORECASE)
_PAST = later(
    r"(?:\w+ed|was|had|did|went|met|bought|got|flew|came|saw|left|began|ran|made|took|gave|won|lost)"
)
_IRREGULAR = {"have": "has", "do": "does", "go": "goes", "am": "is", "can": "can", "must": "must"}


def owner_of(messages: Sequence[Message], ctx: RequestContext) -> Callable[[Message], bool]:
    """Return whether a message is by the one whose memory this is.

    That is the speaker in the role of the user. If several do, by their names, it is the one who
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
        stated = f"{who} is{found['rest']}"
    elif found := _MY.fullmatch(text):
        stated = f"{who}'s {found['rest']}"
    elif found := _FIRST.fullmatch(text):
        verb, adverb = found["verb"], found["adverb"]
        verb = f"does not {verb}" if found["not"] else _third(verb.lower())
        stated = f"{who} {adverb}{verb}{found['rest']}"
    else:
        return ""
    stated = re.sub(r"\bmy\b", "their", stated, flags=re.IGNORECASE)
    stated = re.sub(r"\bme\b", "them", re.sub(r"\bI am\b|\bI'm\b", "they are", stated))
    stated = re.sub(r"\bI\b", "they", stated)
    return f"{stated[0].upper()}{stated[1:]}."


def _third(verb: str) -> str:
    if verb in _IRREGULAR or _PAST.fullmatch(verb):
        return _IRREGULAR.get(verb, verb)
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{verb}es"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"


_DAY = timedelta(days=1)
_UNKNOWN = datetime(2000, 2, 2, tzinfo=UTC)


def dated(text: str, now: datetime | None) -> tuple[str, datetime | None] | None:
    """Return a statement with its day as an ISO date, and that day; None if it has none.

    A day such as "yesterday" of a message without a time is left out.
    """
    for anchor in anchors_in(text):
        if isinstance(anchor.meaning, Cycle):
            continue
        try:
            day, other = (anchor.meaning(each) for each in (now or _UNKNOWN, _UNKNOWN + 9 * _DAY))
        except (ValueError, OverflowError):  # 31 February
            continue
        if day.end - day.start != _DAY:
            continue
        before, after = text[: anchor.start].removesuffix("on "), text[anchor.end :]
        if now is None and day != other:
            return f"{before.rstrip()}{after}", None
        return f"{before}on {day.start:%Y-%m-%d}{after}", day.start
    return None
