"""Whether a sentence claims something: no question, no supposition, no joke, no hearsay.

What is said in a play, in a text to be written or in an example is nobody's word. What is taken
back, corrected or doubted is not claimed.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from perdure.engine.extract.prose import Sentence
from perdure.engine.extract.words import any_case

# ---------------------------------------------------------------- plays and examples
_LEAD = (
    r"[\W_]*(?:(?:please|pls|ok|okay|now|so|and|hey|hi|hello|also|then|kindly|can\syou|could\syou"
    r"|would\syou|will\syou|help\sme(?:\sto)?|i\s(?:want|need|would\slike|'d\slike)\syou\sto|i'd\slike"
    r"\syou\sto|let's|lets|let\sus|just|to|practice|for\sa\smoment)[\W_]+){0,4}"
)
_PLAY = (
    r"(?:pretend|picture\sthis|role-?\s?play(?:ing)?|act\s(?:as|like)|play\s(?:the"
    r"\s(?:role|part)|a\sgame)|take\son\sthe\srole|assume\sthe\srole"
    r"|in\sthis\s(?:story|game|scenario|scene|play)|scenario\b|thought\sexperiment|fiction(?:al)?\b"
    r"|you(?:\sare|'re)\s(?:now\s)?(?:an?\s(?!star|genius|life|angel|legend|hero|gem|great|good|big)"
    r"|the\s(?!best|one\b|only|greatest|expert)|my\s|(?-i:[A-Z][a-z]+))|from\snow\son\s(?:you(?:\sare|'re)))"
)
_SUPPOSE = any_case(
    rf"{_LEAD}(?:imagine|suppose|hypothetically|for\sthe\ssake\sof|assume\s(?:that|i\b|you\b|i'm\b))"
)
_CHARACTER = (
    r"(?:my|the|our|your|his|her)\s(?:[\w'&-]+\s){0,3}?(?:character|persona|avatar|protagonist|hero"
    r"|heroine|narrator|villain|alter\sego)\b[^.!?\n]{0,60}(?::|\s[-\u2013\u2014]\s|\b(?:says?|is|starts)\b)"
)
_CHANGE = (
    r"(?:translate|proof-?read|rephrase|reword|paraphrase|summari[sz]e|(?:spell|grammar)-?check)\b"
)
_MEND = (
    r"(?:correct|rewrite|re-write|shorten|polish|improve|edit|check|simplify|analy[sz]e|classify|fix"
    r"|reformat|continue|complete|finish|explain|read|review)\b"
)
_WRITE = r"(?:write|tell|compose|generate|create|invent|make\sup|draft|give\sme|show\sme|sing)\b"
_SAY = (
    r"(?:say|repeat|use|answer|reply|respond|print|output|type|put|add|copy|send|post|read|greet|quote"
    r"|start|begin|record|spell|pronounce|insert|paste|return)\b"
)
_TEXT = (
    r"(?:text|sentences?|paragraphs?|e-?mails?|mails?|letters?|essay|message|draft|post|story|grammar"
    r"|spelling|bio|cv|passage|speech|review|reply|answer|tweet|translation|wording)\b"
)
_TALE = (
    r"(?:story|stories|poem|song|tale|novel|scene|dialogue|dialog|monologue|script|joke|haiku|limerick"
    r"|lyrics|rap|fable|diary|chapter|first\sperson|fan-?fic(?:tion)?|sketch|screenplay)\b"
)
_ME = r"(?=[\s\x22'\u201c\u2018*]*(?:i|i'm|i've|my|we|our|dear|hi|hello)\b)"
_WORLD = (
    r"in\s(?:the|my|this|our|a|an)\s(?:[\w'-]+\s){0,2}?(?:novel|story|tale|game|film|movie|play|dream"
    r"|campaign|comic|rpg|adventure|simulation)\b[^.!?\n]{0,40}\b(?:i|my|we)\b"
)
_OPENS = any_case(
    rf"{_LEAD}(?:{_PLAY}|{_WORLD}|{_CHARACTER}"
    rf"|{_CHANGE}[^.!?\n]{{0,80}}?(?::|\b(?:this|these|following|below|i|i'm|my)\b)"
    rf"|{_MEND}[^.!?\n]{{0,60}}?(?::\s?{_ME}|:\s*\Z|\b(?:this|the|following|my)\s{_TEXT})"
    rf"|{_SAY}[^.!?\n]{{0,60}}?:\s?{_ME}"
    rf"|{_WRITE}[^.!?\n]{{0,100}}?(?:{_TALE}|:\s?{_ME}|{_TEXT}[^.!?\n]{{0,60}}:\s*\Z))"
)
_GIVEN = any_case(
    r"\b(?:examples?|samples?|test\s(?:data|case|user|input|set)|dummy|placeholder|lyrics|poem|haiku"
    r"|caption|slogan|template|script|dialogue|transcript|prompt|fixtures?|quotation|quote|excerpt|chorus"
    r"|mock|fake|fictional|sentences?|role-?play|plot|persona|backstory|user\sstor(?:y|ies))\b"
    rf"[^.!?\n]{{0,60}}?(?::\s|\s[-\u2013\u2014]+\s){_ME}"
)


def opens_a_frame(text: str) -> bool:
    """Whether what follows is played, given to be worked on, or an example.

    A supposition that is a question ends with it.
    """
    if _SUPPOSE.match(text):
        return not text.rstrip().endswith("?")
    return _OPENS.match(text) is not None or _GIVEN.search(text) is not None


# ---------------------------------------------------------------- what is not meant
_SORRY = (
    r"(?:no\W+wait|wait\W+(?:no|actually)|(?:or|well)\W+rather|scratch\sthat|strike\sthat"
    r"|correction|(?:sorry|oops|ups|my\sbad)\W+(?:typo|no|i\smeant|wrong|correction|that)|typo"
    r"|i\smeant|actually\W+(?:no|not|scratch)|i\stake\s(?:it|that)\sback)\b"
)
_TAKES_BACK = any_case(
    rf"[\W_]*(?:{_SORRY}|(?:not|nope|nah|no)[\W_]*\Z|yeah\W+right\b|as\sif[\W_]*\Z|said\sno(?:\s?one|body)\b"
    r"|never\s?mind\b|not\s(?:really|any\s?more|true)\b|actually\W+i\s(?:don't|do\snot|never|mean)\b"
    r"|that(?:'s|\sis|\swas)\s(?:a\s(?:lie|joke)|not\strue|wrong|no\slonger)|i(?:'m|\sam|\swas)\s(?:lying"
    r"|kidding|joking)|(?:well\W+|at\sleast\s){1,2}i\s(?:did|used\sto)\b|i\sdid[\w\s]{0,20}\suntil\b)"
)
_CORRECTS = any_case(
    rf"[\W_]*{_SORRY}\W*(?:i\smeant(?:\sto\ssay|\sthat)?\W+)?"
    r"(?=(?:i|i'm|my|we|our)\s)(?!i\s(?:did|was|meant|used)\b)"
)
_WITHIN = any_case(
    r"\b(?:no\W+wait|wait\W+no|scratch\sthat|strike\sthat|said\sno(?:\s?one|body)|or\srather|yeah\W+right)\b"
    r"|(?:\.{2,}|[\u2026(\u2013\u2014,-])\s*(?-i:NOT)\b\W*\Z"
)
_JOKE = any_case(
    r"\b(?:jk|j/k|just kidding|kidding|joking|just joking|as a joke|sarcasm)\b|(?<!\w)/s\b"
    r"|\U0001f644"
)
_FEW_WORDS = 5
_IRONY = any_case(
    r"[\W_]*(?:yeah\W+right|oh\W+(?:great|joy|yay|wonderful|fantastic|perfect|lovely|how|sure)"
    r"|sure\W+because|as\sif|thanks\sa\slot)\b|.*\bi\sjust\slove\s(?:it\s)?(?:when|how|that)\b"
)
_OF_A_USER = any_case(
    r"\bas\san?\s[\w\s-]{1,40}?,?\si\s(?:want|need|can|like|should|must|would|am\sable)\b"
)
_SHOUTED = re.compile(r"[^\W\d_]{2,}")


def takes_back(text: str) -> bool:
    """Whether a sentence takes back the one before it."""
    few = len(text.split()) <= _FEW_WORDS
    return _TAKES_BACK.match(text) is not None or (few and _JOKE.search(text) is not None)


def correction(text: str) -> int | None:
    """Return where a sentence says what is right; 0 if it corrects nothing, None if it only denies.

    Of "Sorry, typo: I meant my name is Anna" that is "my name is Anna".
    """
    corrects = _CORRECTS.match(text)
    if corrects:
        return corrects.end()
    return None if takes_back(text) or _WITHIN.search(text) else 0


def is_serious(text: str) -> bool:
    """Whether it is no joke, no irony, no shout, and no wish of a made-up user."""
    if _JOKE.search(text) or _IRONY.match(text) or _OF_A_USER.search(text):
        return False
    shouted = len(_SHOUTED.findall(text)) > 1 and text.upper() == text != text.lower()
    return not shouted


# ---------------------------------------------------------------- claims
_WHO = r"(?:i|you|we|they|he|she|it|there|this|that|my|your|the|anyone|somebody|people)"
_INVERTED = (
    r"(?:do|does|did|don't|didn't|am|is|are|was|were|isn't|aren't|can|could|can't"
    r"|should|shouldn't|would"
    r"|wouldn't|will|won't|shall|may|have|has|haven't)"
)
_ASKING = any_case(
    rf"[\W_]*(?:(?:and|so|but|ok|oh|well|hey|hi|btw|also)\W+){{0,3}}(?:{_INVERTED}\s+{_WHO}\b"
    rf"|(?:what|which|who|whom|whose|when|where|why|how)(?:'s\b|\s+(?:\w+\s+)?{_INVERTED}\b))"
)
_PARTS = re.compile(r"[,;:]\s|\s[-\u2013\u2014]+\s")
_TAG = any_case(rf"[\W_]*{_INVERTED}\s(?:i|we|he|she|it|they|there|that|this)\W*\Z")
_BREAK = any_case(r"[;:,]\s|\s(?:and|but|so|because)\s|\s[-\u2013\u2014]+\s")
_NEW_THOUGHT = any_case(r"(?:[;:]|[,\s](?:so|and|then))\Z")
_ASKED = re.compile(r"[?\uff1f][\"')\]\u201d\u2019*]{0,3}\s*\Z")
_SUPPOSED = any_case(
    r"\b(?:if|imagine|suppose|supposing|pretend|assuming|assume|hypothetically|wish"
    r"|unless|as though"
    r"|let's say|in case|whether)\b"
)
_OPENED = any_case(
    r"(?:\A|[,;:.!?()*\u2026\u2013\u2014-]\s*|\s[-\u2013\u2014]+\s*|\b(?:and|but|so"
    r"|because|cause|cuz|also"
    r"|btw|by the way|though|although|while|plus|currently|personally|honestly"
    r"|actually|now|then|yes|no"
    r"|well|oh|ok|hi|hey|hello|since|i think|i guess|i suppose|i believe|i feel like"
    r"|is that|fact that"
    r"|remember|remember that|note that|in mind|in mind that|forget|forget that|aware that"
    r"|you know|know that|these days|nowadays|lately|anyway|right now|yeah|again|today"
    r"|still|finally|maybe|perhaps|probably)\s+)\Z"
)
_REPORTED = any_case(
    r"(?P<who>[\w'-]{1,40})\s+(?:\w{1,20}\s+)?(?:says?|said|thinks?|thought|told|tells"
    r"|claims?|believes?|wrote"
    r"|writes|insists?|heard|hears|mentions?|mentioned|jokes?|joked|reckons?|asks?"
    r"|asked|knows?|argues?|goes|(?:is|was|were|are)\s(?:all\s)?like)"
    r"(?:\s+\w{1,20})?(?:\s*[,:]\s*|\s+(?:that\s+)?)\Z"
)
_ACCORDING = any_case(r"\baccording\sto\s[^,;:.]{1,40},?\s*\Z")
_HEDGE = any_case(
    r"\b(?:maybe|perhaps|probably|possibly|i think|i guess|i suppose|i believe|might"
    r"|kind of|kinda|sort of"
    r"|not sure|more or less|i'd say)\b"
)
_BEFORE = 60
"""How many characters before a statement tell how it is meant."""


def meant(found: Sequence[Sentence]) -> list[Sentence]:
    """Return what is meant as it is said: no joke, no play, and not taken back by what follows."""
    played = (at for at, sentence in enumerate(found) if opens_a_frame(sentence.plain))
    own = found[: next(played, len(found))]
    return [
        sentence.part(begin, len(sentence.plain))
        for sentence, following in zip_longest(own, own[1:])
        if is_serious(sentence.plain) and not (following and takes_back(following.plain))
        if (begin := correction(sentence.plain)) is not None
    ]


def claims(serious: Sequence[Sentence]) -> list[Sentence]:
    """Return what is claimed: questions left out, and what hangs on an "if"."""
    return [claim for sentence in serious for claim in _claimed(sentence)]


def opens(sentence: Sentence, position: int) -> bool:
    """Whether somebody begins to speak for themselves here, and reports nobody else's words."""
    before = sentence.plain[max(0, position - _BEFORE) : position]
    if position > _BEFORE:
        before = f" {before}"
    if not _OPENED.search(before) and before.strip():
        return False
    return not _is_reported(before)


def is_reported(sentence: Sentence, position: int) -> bool:
    """Whether somebody else's words begin here."""
    return _is_reported(sentence.plain[max(0, position - _BEFORE) : position])


def hedged(sentence: Sentence, begin: int, finish: int) -> bool:
    """Whether the speaker is not sure."""
    return _HEDGE.search(sentence.plain, max(0, begin - _BEFORE // 3), finish) is not None


def is_asked(text: str) -> bool:
    return _ASKING.match(text) is not None


def _is_reported(before: str) -> bool:
    if _ACCORDING.search(before):
        return True
    match = _REPORTED.search(before)
    return match is not None and match["who"].lower() not in {"i", "we"}


def _claimed(sentence: Sentence) -> Iterator[Sentence]:
    finish = _question_begins(sentence)
    supposed = _SUPPOSED.search(sentence.plain, 0, finish)
    if supposed:
        finish = _before_condition(sentence.plain[: supposed.start()].rstrip())
    if sentence.plain[:finish].strip():
        yield sentence.part(0, finish)


def _before_condition(before: str) -> int:
    """Return where the clause begins that a condition belongs to; it is not claimed without it."""
    if _NEW_THOUGHT.search(before):
        return len(before)
    clause = 0
    for match in _BREAK.finditer(before.rstrip(",:-(\u2013\u2014 ")):
        clause = match.start()
    return clause


def _question_begins(sentence: Sentence) -> int:
    """Return where the question of a sentence begins; its end if it has none."""
    if is_asked(sentence.plain):
        return 0
    if not _ASKED.search(sentence.plain):
        return len(sentence.plain)
    last = 0
    for match in _PARTS.finditer(sentence.plain):
        last = match.end()
    asked = sentence.plain[last:]
    return last if last and is_asked(asked) and not _TAG.match(asked) else 0


# ---------------------------------------------------------------- what was cut off
_DOUBT = any_case(
    r"\b(?:maybe|perhaps|possibly|probably|might|i\sguess|i\ssuppose|not\ssure|unsure|i\sdoubt"
    r"|supposedly|allegedly|presumably|hypothetically|theoretically|could\sbe\sthat|it\smay\sbe"
    r"|(?:i|we|he|she|they)\smay|don't\sknow|no\sidea)\b"
)
_DOUBTED = any_case(
    r"[\s,(\u2013\u2014-]*(?:i\sguess|i\ssuppose|maybe|perhaps|probably|possibly|or\ssomething|i'm\snot"
    r"\ssure|not\ssure|who\sknows|if\si\sremember|iirc|allegedly|supposedly|i\sthink\W*\Z)\b"
)
_NARROWED = any_case(
    r"[\s,(\u2013\u2014-]*(?:(?:but|though|although|just|and|yet)\s)?(?:(?<=\w\s)not\b|not\s(?:in|on|at|when|if|always"
    r"|really|any|every|all|for|with|after|before|during|too|that|much|yet|right|today|as|from|to|until)"
    r"|(?:only|except|excepting|unless|until|till|as\slong\sas|provided|if|apart\sfrom|other\sthan"
    r"|excluding|at\sleast|never\s(?:in|on|at|when|after|before))\b"
    r"|(?:mostly|usually|sometimes|rarely|occasionally|theoretically|officially|in\stheory|almost"
    r"|most\sof\sthe\stime|kind\sof|sort\sof|so\sto\ssay)\W*\Z)"
)
_CORRECTED = any_case(
    r"[\s,(\u2013\u2014-]*(?:sorry|oops|i\smean|erm?|no\s?,|rather|make\sthat|wait)\b"
)
_GOES_ON = re.compile(r"\s*\((?P<aside>[^()]*)\)\s+(?=\w)")
_THOUGHT = any_case(r"[;:.!?]\s|,?\s(?:but|so|because)\s|,\sand\s")
_AFTER = 80


def stands(sentences: Sequence[Sentence], start: int, end: int) -> bool:
    """Whether the words from `start` to `end` of a message say no more than their sentence does."""
    at = bisect_right(sentences, start, key=lambda sentence: sentence.start)
    if not at or end > sentences[at - 1].end:
        return True
    sentence = sentences[at - 1]
    return _stands(sentence.plain, start - sentence.start, end - sentence.start)


def is_doubted(text: str) -> bool:
    """Whether a statement says itself that it may not be so."""
    return _DOUBT.search(text) is not None


def _stands(plain: str, begin: int, finish: int) -> bool:
    after = plain[finish : finish + _AFTER]
    if any(left.match(after) for left in (_DOUBTED, _NARROWED, _CORRECTED, _GOES_ON)):
        return False
    thoughts = [match.end() for match in _THOUGHT.finditer(plain, 0, begin)]
    return not is_doubted(plain[thoughts[-1] if thoughts else 0 : begin])
