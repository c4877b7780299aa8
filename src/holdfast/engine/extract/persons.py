"""Who speaks, and what they say of themselves in the third person."""

import re
from collections.abc import Callable, Sequence

from holdfast.engine.extract.words import ADVERBS, MODALS, PAST, STOP
from holdfast.model import RequestContext
from holdfast.model.transcript import Message

NOBODY = "the user"
_TOKEN = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_PARTICIPLE = re.compile(r".+ed|...+ing")
_BE = {"am": "is", "have": "has", "do": "does", "don't": "does not", "haven't": "has not"}
_AFTER_I = {
    "i'm": ("is", "are"),
    "i've": ("has", "have"),
    "i'll": ("will", "will"),
    "i'd": ("would", "would"),
    "we're": ("are", "are"),
    "we've": ("have", "have"),
    "we'll": ("will", "will"),
    "we'd": ("would", "would"),
}
_PASSED_OVER = ADVERBS - {"do", "no_longer"} | {"never", "no", "longer", "not", "either", "both"}
_OBJECTS = {"me": "them", "us": "them", "myself": "themself", "ourselves": "themselves"}
_POSSESSED = {"mine": "theirs", "ours": "theirs"}
_YOU = {
    "you": "the assistant",
    "your": "the assistant's",
    "you're": "the assistant is",
    "you've": "the assistant has",
    "you'll": "the assistant will",
    "yourself": "itself",
}


def owner_of(messages: Sequence[Message], ctx: RequestContext) -> Callable[[Message], bool]:
    """Return whether a message is by the one whose memory this is.

    That is who speaks in the role of the user. If several do, by their names, it is the one who is
    named like the user's id, and who has no name; the others are other people.
    """
    names = {each.name.casefold() for each in messages if each.role == "user" and each.name}
    user = ctx.user_id.casefold()
    if user in names or len(names) > 1:
        return lambda message: message.role == "user" and message.name.casefold() in {"", user}
    return lambda message: message.role == "user"


def third_person(text: str, who: str) -> str:
    """Return a statement in the first person as one about `who`, who is named once."""
    return _Telling(who).told(text)


class _Telling:
    """One pass over the words; it remembers whom a verb has to agree with."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._named = False
        self._agree = False

    def told(self, text: str) -> str:
        pieces, last = [], 0
        for match in _TOKEN.finditer(text):
            between = text[last : match.start()]
            if between.strip():
                self._agree = False
            pieces += [between, self._word(match[0])]
            last = match.end()
        return sentence("".join([*pieces, text[last:]]))

    def _word(self, word: str) -> str:
        lower = word.lower().replace("\u2019", "'")
        if lower in {"i", "we"} or lower in _AFTER_I:
            return self._subject(lower)
        if lower in {"my", "our"}:
            return self._possessive()
        if lower in _YOU:
            self._agree = lower == "you"
            return _YOU[lower]
        if lower in _OBJECTS:
            return _OBJECTS[lower] if self._named else self._name()
        if self._agree and lower not in _PASSED_OVER:
            self._agree = False
            return _agreeing(word, lower)
        return _POSSESSED.get(lower, word)

    def _name(self) -> str:
        self._named = True
        return self._who

    def _subject(self, lower: str) -> str:
        first, plural = not self._named, lower.startswith("we")
        subject = self._name() if first else "they"
        if first and plural:
            subject = f"{subject} and others"
        self._agree = first and not plural and lower == "i"
        if lower in _AFTER_I:
            one, many = _AFTER_I[lower]
            return f"{subject} {one if first and not plural else many}"
        return subject

    def _possessive(self) -> str:
        return "their" if self._named else f"{self._name()}'s"


def _agreeing(word: str, lower: str) -> str:
    if lower in _BE:
        return _BE[lower]
    if lower in STOP or lower in MODALS or lower in PAST or _PARTICIPLE.fullmatch(lower):
        return word
    if lower.endswith("y") and lower[-2:-1] not in set("aeiou"):
        return f"{word[:-1]}ies"
    return f"{word}es" if lower.endswith(("s", "x", "z", "ch", "sh", "o")) else f"{word}s"


def sentence(text: str) -> str:
    """Return words as a sentence: a capital first, a full stop last, and one space in between."""
    text = " ".join(text.split()).strip(" ,;:.-\u2013\u2014")
    first = text.split(" ", 1)[0]
    if first.islower() and first.isalpha():
        text = text[0].upper() + text[1:]
    return text if text.endswith(("!", "?", "\u2026", "\u3002")) else f"{text}."
