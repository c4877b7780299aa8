"""What somebody asks to be done always so: "call me Bea", "never commit to main"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from perdure.engine.extract import confidence
from perdure.engine.extract.clauses import tail
from perdure.engine.extract.persons import third_person
from perdure.engine.extract.prose import Sentence
from perdure.engine.extract.wishes import is_of_manners, is_procedure
from perdure.engine.extract.words import REQUESTS

_MOST_WORDS = 6
"""Of a wish without a verb."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What was found from `begin` to `finish` of a sentence, what it says and what it is about."""

    begin: int
    finish: int
    content: str
    about: str
    confidence: float


_PLEASE = (
    r"(?:please\s|pls\s|and\s|also\s|but\s|from\snow\son,?\s|in\s(?:the\s)?future,?"
    r"\s|just\s|so\s|yes,?\s|ok,?\s)"
)
_CALL_ME = re.compile(
    rf"(?P<please>{_PLEASE}{{0,3}})(?P<call>call\sme)\s(?P<name>\S{{1,40}})", re.IGNORECASE
)
_STANDING = re.compile(
    rf"(?P<please>{_PLEASE}{{0,3}})(?P<how>always|never|don't\sever|do\snot\sever|make"
    rf"\ssure\sto|remember\sto)\s"
    r"(?:please\s)?(?!give\sup)(?P<verb>[a-z]{2,20})\b",
    re.IGNORECASE,
)
_MANNER = re.compile(
    rf"(?P<please>{_PLEASE}{{0,3}})(?P<how>don't|do\snot|stop|avoid|no\smore)?"
    rf"\s?(?P<verb>use|write|keep|answer|reply|respond"
    r"|speak|talk|send|add|put|give|explain|format|start|end|apologi[sz](?:e|ing)"
    r"|us(?:ing)|writ(?:ing)|include|show|(?:call|text|email|address)(?=\s(?:me|us)\b)"
    r"|correct|stick\sto|be)\b",
    re.IGNORECASE,
)
_NO = re.compile(
    rf"(?P<please>{_PLEASE}{{0,3}})(?P<how>no|without|only)\s(?P<what>\w)", re.IGNORECASE
)
_ONLY = re.compile(r"[\w\s-]{3,40}\s(?:only|always|please|pls)\W*\Z", re.IGNORECASE)
_STARTS = re.compile(r"\A\W*|[,;:.!]\s+(?:(?:and|but)\s+)?|\s(?:and|but)\s+|\s[-\u2013\u2014]\s+")
_LASTING = re.compile(
    r"\b(?:always|never|every\s?time|everywhere|from\snow\son|in\s(?:the\s)?future|whenever)\b",
    re.IGNORECASE,
)
_ONE_TASK = re.compile(
    r"\b(?:the|this|that|these|those|it)\b(?!\s(?:metric|imperial|word))", re.IGNORECASE
)


def requests(claim: Sentence, who: str) -> Iterator[Wish]:
    for start in {match.end() for match in _STARTS.finditer(claim.plain)}:
        wish = _wish_at(claim, start, who)
        if wish and wish.finish > wish.begin:
            yield wish


def _wish_at(claim: Sentence, start: int, who: str) -> Wish | None:
    called = _CALL_ME.match(claim.plain, start)
    if called:
        name = claim.text[called.start("name") : called.end("name")].rstrip(".,;!?")
        finish = called.start("name") + len(name)
        told = f"{who} wants to be called {name}"
        return Wish(called.start("call"), finish, told, "call me", confidence.ASKED_FOR)
    standing = _STANDING.match(claim.plain, start)
    if standing and standing["verb"].lower() in REQUESTS:
        return _asked(claim, standing, who)
    manner = _MANNER.match(claim.plain, start)
    if manner:
        return _asked(claim, manner, who)
    return _named(claim, start, who)


def _asked(claim: Sentence, match: re.Match[str], who: str) -> Wish | None:
    begin, value = match.start(), match.start("verb")
    finish = tail(claim, match.end("verb"))
    if re.match(r", not ", claim.plain[finish:]):
        finish = tail(claim, finish + 2)
    clause = claim.plain[begin:finish]
    if is_procedure(clause):
        return None
    lasts = match.re is _STANDING or _LASTING.search(clause) is not None
    asked = bool(match["please"].strip() or match["how"])
    if not lasts and (not is_of_manners(clause, surely=not asked) or _ONE_TASK.search(clause)):
        return None
    what = claim.text[value:finish]
    how = (match["how"] or "").lower()
    told = third_person(f"I ask {_asking(how)}{what}", who)
    return Wish(begin, finish, told, what, confidence.ASKED_FOR)


def _asking(how: str) -> str:
    if how == "never" or how.endswith("ever"):
        return "never to "
    if how == "always":
        return "to always "
    if how in {"don't", "do not"}:
        return "not to "
    return f"to {how} " if how in {"stop", "avoid"} else "to "


def _named(claim: Sentence, start: int, who: str) -> Wish | None:
    """Read a wish without a verb: "no emojis please", "short answers only"."""
    finish = tail(claim, start)
    clause = claim.plain[start:finish]
    whole = claim.plain[start:].rstrip(" .!")
    if not is_of_manners(clause):
        return None
    match = _NO.match(claim.plain, start)
    if match and len(clause.split()) <= _MOST_WORDS:
        what = claim.text[match.start("how") : finish]
        told = f"{who} wants {what}"
        return Wish(
            start, finish, told, claim.text[match.start("what") : finish], confidence.ASKED_FOR
        )
    if _ONLY.match(whole) and len(whole.split()) < _MOST_WORDS:
        return Wish(
            start, finish, f"{who} wants {claim.text[start:finish]}", clause, confidence.IMPLIED
        )
    return None
