"""What people say that they like and dislike, and what they ask to be done always so."""

import re
from collections.abc import Iterator

from perdure.engine.extract import confidence
from perdure.engine.extract.claims import opens
from perdure.engine.extract.persons import third_person
from perdure.engine.extract.prose import BLOT, VERB, Sentence, Statement, predicate, tail
from perdure.engine.extract.words import ADVERBS, MANNERS, REQUESTS, STYLE, any_case, either

# ---------------------------------------------------------------- wishes
_PROCEDURE = any_case(r"\b(?:before|after|whenever|when|each time|every time|once)\b")
_DOING = any_case(
    r"\b(?:run|restart|deploy|build|install|execute|migrate|regenerate|rebuild|check"
    r"|update|bump|tag|push|start"
    r"|stop|test|lint|merge|rebase|squash|commit|backup|back up|clear|reset)\b"
)


def has_code(text: str) -> bool:
    """Whether a blotted text has a piece of code in its line."""
    return f"`{BLOT}" in text


def is_procedure(clause: str) -> bool:
    """Whether a wish says how work is done, rather than what somebody likes."""
    return _DOING.search(clause) is not None and (
        has_code(clause) or _PROCEDURE.search(clause) is not None
    )


def is_of_manners(clause: str, *, surely: bool = False) -> bool:
    """Whether a wish is about how to write or speak, and so outlasts the task.

    "Add her name to the list" may be; to be sure, it has to speak of form and nothing else.
    """
    known = STYLE if surely else MANNERS
    return any(word in known for word in re.findall(r"[\w-]+", clause.lower()))


# ---------------------------------------------------------------- requests
_MOST_WORDS = 6
"""Of a wish without a verb."""


_PLEASE = (
    r"(?:please\s|pls\s|and\s|also\s|but\s|from\snow\son,?\s|in\s(?:the\s)?future,?"
    r"\s|just\s|so\s|yes,?\s|ok,?\s)"
)
_CALL_ME = any_case(rf"(?P<please>{_PLEASE}{{0,3}})(?P<call>call\sme)\s(?P<name>\S{{1,40}})")
_STANDING = any_case(
    rf"(?P<please>{_PLEASE}{{0,3}})(?P<how>always|never|don't\sever|do\snot\sever|make"
    rf"\ssure\sto|remember\sto)\s"
    r"(?:please\s)?(?!give\sup)(?P<verb>[a-z]{2,20})\b"
)
_MANNER = any_case(
    rf"(?P<please>{_PLEASE}{{0,3}})(?P<how>don't|do\snot|stop|avoid|no\smore)?"
    rf"\s?(?P<verb>use|write|keep|answer|reply|respond"
    r"|speak|talk|send|add|put|give|explain|format|start|end|apologi[sz](?:e|ing)"
    r"|us(?:ing)|writ(?:ing)|include|show|(?:call|text|email|address)(?=\s(?:me|us)\b)"
    r"|correct|stick\sto|be)\b"
)
_NO = any_case(rf"(?P<please>{_PLEASE}{{0,3}})(?P<how>no|without|only)\s(?P<what>\w)")
_ONLY = any_case(r"[\w\s-]{3,40}\s(?:only|always|please|pls)\W*\Z")
_STARTS = re.compile(r"\A\W*|[,;:.!]\s+(?:(?:and|but)\s+)?|\s(?:and|but)\s+|\s[-\u2013\u2014]\s+")
_LASTING = any_case(
    r"\b(?:always|never|every\s?time|everywhere|from\snow\son|in\s(?:the\s)?future|whenever)\b"
)
_ONE_TASK = any_case(r"\b(?:the|this|that|these|those|it)\b(?!\s(?:metric|imperial|word))")


def requests(claim: Sentence, who: str) -> Iterator[Statement]:
    """Yield what a claim asks to be done always so: "call me Bea", "never commit to main"."""
    for start in {match.end() for match in _STARTS.finditer(claim.plain)}:
        wish = _wish_at(claim, start, who)
        if wish and wish.finish > wish.begin:
            yield wish


def _wish_at(claim: Sentence, start: int, who: str) -> Statement | None:
    called = _CALL_ME.match(claim.plain, start)
    if called:
        name = claim.text[called.start("name") : called.end("name")].rstrip(".,;!?")
        finish = called.start("name") + len(name)
        told = f"{who} wants to be called {name}"
        return Statement(called.start("call"), finish, told, confidence.ASKED_FOR, "call me")
    standing = _STANDING.match(claim.plain, start)
    if standing and standing["verb"].lower() in REQUESTS:
        return _asked(claim, standing, who)
    manner = _MANNER.match(claim.plain, start)
    if manner:
        return _asked(claim, manner, who)
    return _named(claim, start, who)


def _asked(claim: Sentence, match: re.Match[str], who: str) -> Statement | None:
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
    return Statement(begin, finish, told, confidence.ASKED_FOR, what)


def _asking(how: str) -> str:
    if how == "never" or how.endswith("ever"):
        return "never to "
    if how == "always":
        return "to always "
    if how in {"don't", "do not"}:
        return "not to "
    return f"to {how} " if how in {"stop", "avoid"} else "to "


def _named(claim: Sentence, start: int, who: str) -> Statement | None:
    """Read a wish without a verb: "no emojis please", "short answers only"."""
    finish = tail(claim, start)
    clause = claim.plain[start:finish]
    whole = claim.plain[start:].rstrip(" .!")
    if not is_of_manners(clause):
        return None
    match = _NO.match(claim.plain, start)
    if match and len(clause.split()) <= _MOST_WORDS:
        what = claim.text[match.start("how") : finish]
        about = claim.text[match.start("what") : finish]
        return Statement(start, finish, f"{who} wants {what}", confidence.ASKED_FOR, about)
    if _ONLY.match(whole) and len(whole.split()) < _MOST_WORDS:
        told = f"{who} wants {claim.text[start:finish]}"
        return Statement(start, finish, told, confidence.IMPLIED, clause)
    return None


# ---------------------------------------------------------------- likes
def likes(claim: Sentence, who: str) -> Iterator[Statement]:
    """Yield the tastes that a claim tells of."""
    yield from _tastes(claim, who)
    yield from _favourites(claim, who)


# ---------------------------------------------------------------- tastes
_ADV = rf"(?:\s(?:{either(ADVERBS)}|don't|do\snot|never))"
_LIKES = any_case(
    rf"(?P<subject>\b(?:I|we){_ADV}{{0,4}}\s)?\b(?:like|love|adore|hate|dislike|loathe"
    rf"|detest|prefer|enjoy|can't\sstand"
    r"|cannot\sstand|can't\sbear|am\sinto|am\snot\sinto|am\sa\s(?:big\s|huge\s)?fan"
    r"\sof|avoid|favour|favor"
    r"|listen\sto|drink|crave)\s(?:so\smuch\s|very\smuch\s|more\s)?"
)
_MOST_TERSE = 6
_WEAK = any_case(r"(?:listen\sto|drink|avoid|crave|favou?r)\s\Z")
_HABIT = any_case(r"\b(?:always|never|only|no\slonger|don't|do\snot|usually|mostly)\b")
_MINE = any_case(
    r"\b(?:I'm|I\sam)(?:\s(?:not|really|also|so|very|totally)){0,3}\s(?:into|fond\sof"
    r"|keen\son|crazy\sabout|a\s(?:big\s|"
    r"huge\s|massive\s)?fan\sof|obsessed\swith|tired\sof|sick\sof|not\sa\sfan\sof)\s"
)
_RATHER = any_case(
    r"\b(?:I'd|I\swould)\s(?:much\s)?(?:rather|prefer)\s(?:not\s)?(?:to\s|have\s|use\s)?"
)
_WHAT_I = any_case(
    r"\bwhat\s(?:I|we)\s(?:really\s)?(?:like|love|hate|can't\sstand|dislike|prefer"
    r"|enjoy)(?:\s(?:most|about\s\w+))?\s(?:is|are)\s"
)
_NEVER_DO = any_case(r"\b(?:I|we)\s(?:never|always)\s(?=\w)")
_NO_HABIT = any_case(
    r"(?:forget|forgot|thought|knew|know|said|told|wanted|had|have|been|was|were|did"
    r"|saw|got|get|think|wonder|felt"
    r"|feel|mind|heard|hear|met|tried|went|used|understood|understand|\w+ed)\b"
)
_NOTHING = any_case(
    r"(?:it|that|this|these|those|them|(?:us|me|myself|ourselves)(?=\W*\Z)|him|her|his|their|its|you|your|i|one|both(?!\s[\w-]+\sand\s\w)"
    r"|everything|the\s(?:thought|fact|idea|sound|look|way|first|second"
    r"|last|new|other|one|answer|result|plan)|how|what|to\s(?:know|see|ask|hear|get"
    r"|have|think|thank|add|change|order|book"
    r"|say)|crazy|so|when\sI\ssay|where)\b"
)
_WHEN_YOU = any_case(r"(?:it\s)?when\s(?:you|people|someone|the)\b")
_OF_THE_TALK = any_case(
    r"\b(?:ideas?|options?|suggestions?)\Z|\byou(?:'ve)?\s(?:suggested|mentioned|gave"
    r"|said|wrote|made|listed|provided|shared|recommended|showed|described|sent)\b"
    r"|\b(?:it|this|these|those|them|there|yourself)\b"
)


def _tastes(claim: Sentence, who: str) -> Iterator[Statement]:
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
    return not any_case(r"(?:the|your|all|every)\b").match(claim.plain, match.end())


_OF_ME = any_case(
    r"\W*(?:I|we)\s(?!.*\b(?:he|she|they|who|that|people|to|can|will|would|not|don't|never)\b)"
    r".*\Z"
)


def _goes_on(claim: Sentence, match: re.Match[str]) -> bool:
    """Whether the subject was named before: "I live in Rome and like tea"."""
    if claim.plain[match.start() - 4 : match.start()].lower() != "and " or not VERB.match(
        claim.plain, match.start()
    ):
        return False
    return _OF_ME.match(claim.plain[: match.start()]) is not None


def _liked(
    claim: Sentence, match: re.Match[str], who: str, prefix: str = ""
) -> Iterator[Statement]:
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
    told = third_person(prefix + said, who)
    yield Statement(begin, finish, told, confidence.STATED, about)


# ---------------------------------------------------------------- favourites
_FAVOURITE = any_case(
    r"\bmy\s(?:all[\s-]time\s)?(?P<what>(?:least\s)?favou?rite\s(?:[\w'-]{1,30}"
    r"\s){1,5}?)(?:is|are|was|has\sto\sbe)\s|"
    r"\bmy\sgo-to\s(?P<goto>(?:[\w'-]{1,30}\s){1,3}?)(?:is|are)\s"
)
_IS_FAVOURITE = any_case(
    r"(?P<what>[^\W_][\w\s'-]{1,40}?)\s(?:is|are)\smy\s(?P<kind>(?:all[\s-]time"
    r"\s)?favou?rite(?:\s[\w'-]{1,30}){0,3})"
)


def _favourites(claim: Sentence, who: str) -> Iterator[Statement]:
    for match in _FAVOURITE.finditer(claim.plain):
        finish = tail(claim, match.end())
        if finish > match.end() and opens(claim, match.start()):
            told = third_person(claim.text[match.start() : finish], who)
            about = match["what"] or match["goto"]
            yield Statement(match.start(), finish, told, confidence.STATED, about)
    named = _IS_FAVOURITE.match(claim.plain)
    if named and not _NOTHING.match(named["what"]):
        told = third_person(claim.text[: named.end()], who)
        yield Statement(0, named.end(), told, confidence.STATED, named["kind"])
