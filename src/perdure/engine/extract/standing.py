"""Whether a statement stands as it was cut out: no doubt, exception or condition left behind."""

import re
from bisect import bisect_right
from collections.abc import Sequence

from perdure.engine.extract.prose import Sentence

_DOUBT = re.compile(
    r"\b(?:maybe|perhaps|possibly|probably|might|i\sguess|i\ssuppose|not\ssure|unsure|i\sdoubt"
    r"|supposedly|allegedly|presumably|hypothetically|theoretically|could\sbe\sthat|it\smay\sbe"
    r"|(?:i|we|he|she|they)\smay|don't\sknow|no\sidea)\b",
    re.IGNORECASE,
)
_DOUBTED = re.compile(
    r"[\s,(\u2013\u2014-]*(?:i\sguess|i\ssuppose|maybe|perhaps|probably|possibly|or\ssomething|i'm\snot"
    r"\ssure|not\ssure|who\sknows|if\si\sremember|iirc|allegedly|supposedly|i\sthink\W*\Z)\b",
    re.IGNORECASE,
)
_NARROWED = re.compile(
    r"[\s,(\u2013\u2014-]*(?:(?:but|though|although|just|and|yet)\s)?(?:(?<=\w\s)not\b|not\s(?:in|on|at|when|if|always"
    r"|really|any|every|all|for|with|after|before|during|too|that|much|yet|right|today|as|from|to|until)"
    r"|(?:only|except|excepting|unless|until|till|as\slong\sas|provided|if|apart\sfrom|other\sthan"
    r"|excluding|at\sleast|never\s(?:in|on|at|when|after|before))\b"
    r"|(?:mostly|usually|sometimes|rarely|occasionally|theoretically|officially|in\stheory|almost"
    r"|most\sof\sthe\stime|kind\sof|sort\sof|so\sto\ssay)\W*\Z)",
    re.IGNORECASE,
)
_CORRECTED = re.compile(
    r"[\s,(\u2013\u2014-]*(?:sorry|oops|i\smean|erm?|no\s?,|rather|make\sthat|wait)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"\s*\((?P<aside>[^()]*)\)\s+(?=\w)")
_THOUGHT = re.compile(r"[;:.!?]\s|,?\s(?:but|so|because)\s|,\sand\s", re.IGNORECASE)
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
