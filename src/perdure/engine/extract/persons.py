"""Who speaks, and what they say of themselves in the third person."""

import re
from collections.abc import Callable, Mapping, Sequence

from perdure.engine.extract.clauses import VERB
from perdure.engine.extract.verbatim import Spans, is_in, verbatim
from perdure.engine.extract.words import ADVERBS, MODALS, PAST, STOP, words_of
from perdure.model import RequestContext
from perdure.model.transcript import Message

NOBODY = "the user"
_TOKEN = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_PARTICIPLE = re.compile(r".+ed|...+ing")
_ONE = {"am": "is", "have": "has", "do": "does", "don't": "does not", "haven't": "has not"}
_MANY = {"am": "are", "was": "were", "wasn't": "weren't"}
_VERBS_IN_LY = words_of("verbs in ly")
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
    """Return a statement in the first person as one about `who`, who is named once.

    Empty if nobody can tell: a word may be a name or a pronoun, or a verb agrees with nothing.
    """
    kept = verbatim(text)
    if kept is None:
        return ""
    telling = _Telling(who)
    try:
        return telling.told(text, kept)
    except _UntoldError:
        return ""


class _UntoldError(ValueError):
    """A statement whose third person would say something else, or nothing that is a sentence."""


class _Telling:
    """One pass over the words; it remembers whom a verb has to agree with."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._named = False
        self._agree: Mapping[str, str] | None = None
        self._led: str = ""
        self._joined = False

    def told(self, text: str, kept: Spans) -> str:
        pieces, last = [], 0
        for match in _TOKEN.finditer(text):
            between = text[last : match.start()]
            if self._agree and between.strip(" ,*"):
                raise _UntoldError
            is_kept = is_in(match.start(), kept)
            word = match[0] if is_kept else self._word(match[0], text[match.end() :])
            if is_kept and self._agree:
                raise _UntoldError
            pieces += [between, word]
            last = match.end()
        return sentence("".join([*pieces, text[last:]]))

    def _word(self, word: str, after: str) -> str:
        lower = word.lower().replace("\u2019", "'")
        if lower in {"i", "we"} or lower in _AFTER_I:
            return self._subject(lower)
        if lower in {"my", "our"}:
            return self._possessive()
        if lower in _YOU:
            self._agree = _ONE if lower == "you" else None
            return _YOU[lower]
        if lower in _OBJECTS:
            return _OBJECTS[lower] if self._named else self._name()
        if self._agree is not None and not _is_passed_over(lower):
            return self._verb(word, lower)
        return _POSSESSED.get(lower) or self._joined_verb(word, lower, after)

    def _name(self) -> str:
        self._named = True
        return self._who

    def _subject(self, lower: str) -> str:
        first, plural = not self._named, lower.startswith("we")
        subject = self._name() if first else "they"
        if first and plural:
            subject = f"{subject} and others"
        self._led = "one" if first and not plural else ""
        if lower in _AFTER_I:
            one, many = _AFTER_I[lower]
            return f"{subject} {one if first and not plural else many}"
        self._agree = _ONE if self._led else _MANY
        return subject

    def _possessive(self) -> str:
        return "their" if self._named else f"{self._name()}'s"

    def _verb(self, word: str, lower: str) -> str:
        agree, self._agree = self._agree, None
        if self._led and (lower in MODALS or lower in {"don't", "do", "haven't"}):
            self._led = "modal"
        return _agreeing(word, lower) if agree is _ONE else _MANY.get(lower, word)

    def _joined_verb(self, word: str, lower: str, after: str) -> str:
        """Return "like" of "I live in Rome and like tea" as "likes"."""
        joined, self._joined = self._joined, lower in {"and", "or", "but"}
        if lower == "to" and self._led:
            self._led = "to"
        if not joined or not self._led or not VERB.match(f"{lower}{after}"):
            return word
        if self._led == "modal":
            raise _UntoldError
        return _agreeing(word, lower) if self._led == "one" else word


def _is_passed_over(lower: str) -> bool:
    return lower in _PASSED_OVER or (lower.endswith("ly") and lower not in _VERBS_IN_LY)


def _agreeing(word: str, lower: str) -> str:
    if lower in _ONE:
        return _ONE[lower]
    if len(word) > 1 and word.isupper():
        word = lower
    if lower in STOP or lower in MODALS or lower in PAST or _PARTICIPLE.fullmatch(lower):
        return word
    if lower.endswith("y") and lower[-2:-1] not in set("aeiou"):
        return f"{word[:-1]}ies"
    return f"{word}es" if lower.endswith(("s", "x", "z", "ch", "sh", "o")) else f"{word}s"


def sentence(text: str) -> str:
    """Return words as a sentence: a capital first, a full stop last, and one space in between."""
    text = " ".join(text.split()).rstrip(" ,;:.-\u2013\u2014")
    text = re.sub(r"\A(?:[ ,;:\u2013\u2014]|[.-]+(?=\s))+", "", text)
    if not text:
        return ""
    first = text.split(" ", 1)[0]
    if first.islower() and first.isalpha():
        text = text[0].upper() + text[1:]
    return text if text.endswith(("!", "?", "\u2026", "\u3002")) else f"{text}."
