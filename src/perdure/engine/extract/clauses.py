"""Where a statement ends, and which clauses a sentence has."""

import re
from collections.abc import Iterator

from perdure.engine.extract.prose import Sentence

_NEW_SUBJECT = (
    r"(?:i|i'm|i've|i'd|i'll|we|we're|my|our|he|he's|she|she's|they|it|it's|you|then"
    r"|also|don't|please|never"
    r"|always|now|so|that|this|already|what)"
)
_HARD = (
    r"[,;:!?](?=\s|\Z)|(?<![\w=])\(|\)(?=\W|\Z)|[\u2026\n\u3002]|\s[-\u2013\u2014]+\s|\s(?:but|because|cause|cuz|so|though|although"
    rf"|however|by the way|btw|to be honest|tbh|lol|haha|and\s+{_NEW_SUBJECT})\b"
)
_SOFT = (
    r"|(?<!\sa)\swhile\b|\s(?:when|since|until|after|before|whenever|where|who|which"
    r"|that|even|even though|even if)\b"
)
HARD = re.compile(_HARD, re.IGNORECASE)
SOFT = re.compile(_HARD + _SOFT, re.IGNORECASE)
_CLAUSE = re.compile(
    r"[,;:]\s|[!?()\u2026]|\s[-\u2013\u2014]+\s|\s(?:but|because|so|though|although|which|and\s+"
    rf"(?={_NEW_SUBJECT}\b|come\b|go\b))\b",
    re.IGNORECASE,
)
_LOOSE = re.compile(
    r"(?:\s|\A)(?:for now|now|too|either|btw|tbh|lol|haha|please|pls|though|anyway|again"
    r"|you know|of course|as well|ok"
    r"|at all|right|then|here|these days|in general|by now)\W*\Z",
    re.IGNORECASE,
)
_LIST_GOES_ON = re.compile(
    r",\s(?:(?:some|a little|a bit of|little)\s)?[\w-]{1,30}(?=,|\s(?:and|or)\s|\s*\Z|[.;!])"
)
_LONGEST_TAIL = 160
_ON = re.compile(r"\s(?!(?:and|but|so|because|or)\b)\w")
_PLACED = r"(?:in|at|near|with|on|by|for|as|from|to)"
_SOME = r"(?:the|an?|my|our|some|no|lots|much|many|only|\d+)"
VERB = re.compile(
    rf"(?:like|prefer|enjoy|adore|dislike|have|am|speak|know|think|want|believe)\s"
    rf"|(?:live|work|study|listen|come)\s{_PLACED}\s|(?:love|hate|use|own|drive|play|run|teach"
    rf"|drink|eat|need|collect|avoid|study)\s{_SOME}\s",
    re.IGNORECASE,
)
"""A verb that goes on with what somebody says of themselves: "I live in Rome and like tea"."""
_JOINED = re.compile(rf",?\s(?:and|or)\s(?={VERB.pattern})", re.IGNORECASE)


def tail(sentence: Sentence, position: int, *, soft: bool = False) -> int:
    """Return where what begins at a position ends: at a new thought, or where the sentence does.

    With `soft`, also where it goes on to say when, where or who.
    """
    limit = min(len(sentence.plain), position + _LONGEST_TAIL)
    for match in (SOFT if soft else HARD).finditer(sentence.plain, position, limit):
        if not _is_aside(sentence.plain, position, match):
            return trimmed(sentence, position, match.start())
    return trimmed(sentence, position, _at_a_word(sentence, limit))


def _is_aside(plain: str, position: int, match: re.Match[str]) -> bool:
    """Whether it stands in brackets after which the statement goes on, or is one of these."""
    opened = plain.rfind("(", position, match.end())
    if opened < 0:
        return False
    closed = plain.find(")", opened)
    if closed < match.start():
        return False
    in_a_word = opened > position and not plain[opened - 1].isspace()
    return in_a_word or _ON.match(plain, closed + 1) is not None


def predicate(sentence: Sentence, position: int, end: int) -> int:
    """Return where the first of several verbs ends: "in Rome" of "in Rome and like tea"."""
    joined = _JOINED.search(sentence.plain, position, end)
    return trimmed(sentence, position, joined.start()) if joined else end


def listed(sentence: Sentence, end: int) -> int:
    """Return where a list ends that goes on after `end`: "German, English and some Czech"."""
    while match := _LIST_GOES_ON.match(sentence.plain, end):
        end = match.end()
    last = re.compile(r",?\s(?:and|or)\s(?:(?:some|a little|a bit of|little)\s)?[\w-]{1,30}").match(
        sentence.plain, end
    )
    return last.end() if last else end


def trimmed(sentence: Sentence, position: int, end: int) -> int:
    """Return the end without spaces and loose words before it."""
    while end > position:
        match = _LOOSE.search(sentence.plain, max(position, end - 20), end)
        if match and match.start() > position:
            end = match.start()
        elif sentence.plain[end - 1] in " \t,;:-*.!":
            end -= 1
        else:
            break
    return end


def clauses(sentence: Sentence) -> Iterator[Sentence]:
    """Yield the parts of a sentence that could stand alone; short ones lean on the next."""
    begin = 0
    for match in _CLAUSE.finditer(sentence.plain):
        if match.start() - begin > 0:
            yield sentence.part(begin, match.start())
        begin = match.end()
    if begin < len(sentence.plain):
        yield sentence.part(begin, len(sentence.plain))


def _at_a_word(sentence: Sentence, limit: int) -> int:
    if limit == len(sentence.plain):
        return limit
    space = sentence.plain.rfind(" ", 0, limit)
    return space if space > 0 else limit
