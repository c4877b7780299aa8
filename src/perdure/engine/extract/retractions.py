"""What is taken back, corrected or not meant: "I like jazz. NOT!", "no wait, spaces"."""

import re

_SORRY = (
    r"(?:no\W+wait|wait\W+(?:no|actually)|(?:or|well)\W+rather|scratch\sthat|strike\sthat"
    r"|correction|(?:sorry|oops|ups|my\sbad)\W+(?:typo|no|i\smeant|wrong|correction|that)|typo"
    r"|i\smeant|actually\W+(?:no|not|scratch)|i\stake\s(?:it|that)\sback)\b"
)
_TAKES_BACK = re.compile(
    rf"[\W_]*(?:{_SORRY}|(?:not|nope|nah|no)[\W_]*\Z|yeah\W+right\b|as\sif[\W_]*\Z|said\sno(?:\s?one|body)\b"
    r"|never\s?mind\b|not\s(?:really|any\s?more|true)\b|actually\W+i\s(?:don't|do\snot|never|mean)\b"
    r"|that(?:'s|\sis|\swas)\s(?:a\s(?:lie|joke)|not\strue|wrong|no\slonger)|i(?:'m|\sam|\swas)\s(?:lying"
    r"|kidding|joking)|(?:well\W+|at\sleast\s){1,2}i\s(?:did|used\sto)\b|i\sdid[\w\s]{0,20}\suntil\b)",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    rf"[\W_]*{_SORRY}\W*(?:i\smeant(?:\sto\ssay|\sthat)?\W+)?"
    r"(?=(?:i|i'm|my|we|our)\s)(?!i\s(?:did|was|meant|used)\b)",
    re.IGNORECASE,
)
_WITHIN = re.compile(
    r"\b(?:no\W+wait|wait\W+no|scratch\sthat|strike\sthat|said\sno(?:\s?one|body)|or\srather|yeah\W+right)\b"
    r"|(?:\.{2,}|[\u2026(\u2013\u2014,-])\s*(?-i:NOT)\b\W*\Z",
    re.IGNORECASE,
)
_JOKE = re.compile(
    r"\b(?:jk|j/k|just kidding|kidding|joking|just joking|as a joke|sarcasm)\b|(?<!\w)/s\b"
    r"|\U0001f644",
    re.IGNORECASE,
)
_FEW_WORDS = 5
_IRONY = re.compile(
    r"[\W_]*(?:yeah\W+right|oh\W+(?:great|joy|yay|wonderful|fantastic|perfect|lovely|how|sure)"
    r"|sure\W+because|as\sif|thanks\sa\slot)\b|.*\bi\sjust\slove\s(?:it\s)?(?:when|how|that)\b",
    re.IGNORECASE,
)
_OF_A_USER = re.compile(
    r"\bas\san?\s[\w\s-]{1,40}?,?\si\s(?:want|need|can|like|should|must|would|am\sable)\b",
    re.IGNORECASE,
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
