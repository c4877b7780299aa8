"""Events by which a question tells the time: "before the move", "during our trip to Rome"."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from perdure.engine.recall.times import Span, times_in

Direction = Literal["before", "after", "during"]

_DIRECTIONS: dict[str, Direction] = {
    "before": "before",
    "prior to": "before",
    "until": "before",
    "till": "before",
    "after": "after",
    "since": "after",
    "following": "after",
    "during": "during",
    "throughout": "during",
    "while": "during",
}
_ASKING = "what|which|who|whom|whose|when|where|why|how|did|do|does|and|or|but|because|if|then"
_SAYING = (
    f"{_ASKING}|was|were|is|are|am|has|have|had|will|would|can|could|should|may|might|must|that"
    "|i|we|you|he|she|they"
)
_WORD = r"[^\W_][\w'\u2019-]{0,40}"
_EVENT = re.compile(
    rf"(?<!\w)(?P<cue>{'|'.join(_DIRECTIONS)})\s(?P<phrase>"
    rf"(?:the|my|our|your|his|her|its|their|that|this|an?|{_WORD}['\u2019]s?)"
    rf"(?:\s(?!(?:{_SAYING})\b){_WORD}){{1,7}}"
    rf"|(?:I|we|you|he|she|they|it)(?:\s(?!(?:{_ASKING})\b){_WORD}){{1,7}}"
    rf"|(?:\w{{2,30}}ing|(?-i:[A-Z]){_WORD})(?:\s(?!(?:{_ASKING})\b){_WORD}){{0,7}})",
    re.IGNORECASE,
)
_LOOSE_END = re.compile(
    r"(?:(?:^|\s)(?:the|my|our|your|his|her|its|their|that|this|an?|in|on|of|at|to|for|from|by|with"
    r"|about|before|after|since|until|till|during|there|here|again)){1,8}\Z",
    re.IGNORECASE,
)
_NO_EVENT = re.compile(
    r"(?:the|that|this|an?)\s(?:\w{1,20}\s)?(?:end|start|beginning|fact|rest|others?|first|last|next"
    r"|time|while|hour|day|week|weekend|month|quarter|year|decade|morning|afternoon|evening|night)\Z",
    re.IGNORECASE,
)
_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class EventReference:
    """What happened, in the question's own words, and on which side of it the answer lies.

    `question[position.start : position.stop]` is `phrase`.
    """

    direction: Direction
    phrase: str
    position: range


def events_in(question: str) -> tuple[EventReference, ...]:
    """Return the events that a question refers to, in its order; what is a date is none."""
    return tuple(_references(question, times_in(question, _ANY_DAY)))


def _references(question: str, times: tuple[Span, ...]) -> Iterator[EventReference]:
    stops = [time.position.stop for time in times]
    for match in _EVENT.finditer(question):
        first = bisect_right(stops, match.start("phrase"))
        phrase = _before_time(match, times[first] if first < len(times) else None)
        phrase = _LOOSE_END.sub("", phrase.rstrip()).rstrip()
        if phrase and not _NO_EVENT.match(phrase):
            begin = match.start("phrase")
            direction = _DIRECTIONS[" ".join(match["cue"].lower().split())]
            yield EventReference(direction, phrase, range(begin, begin + len(phrase)))


def _before_time(match: re.Match[str], time: Span | None) -> str:
    """Return the words of a phrase up to the date in it."""
    length = time.position.start - match.start("phrase") if time else len(match["phrase"])
    return match["phrase"][: max(length, 0)]
