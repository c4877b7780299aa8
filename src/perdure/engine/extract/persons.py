"""Who speaks, and what they say of themselves in the third person.

Names, code and quotations stay to the letter: "US" is no "us", and "Me Before You" speaks of
nobody. Where a word could be either, nobody can tell the statement in the third person. Names are
known by their capitals: no list could know everybody's.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from perdure.engine.extract.prose import VERB
from perdure.engine.extract.words import (
    ADVERBS,
    FAMILY,
    MODALS,
    NO_NAMES,
    PAST,
    PEOPLE,
    PETS,
    STOP,
    THINGS,
    any_case,
    either,
    words_of,
)
from perdure.model import RequestContext
from perdure.model.transcript import Message

# ---------------------------------------------------------------- names
_SMALL_PARTS = words_of("small parts of names")
_PART = r"[^\W\d_a-z][\w'\u2019&-]{0,30}"
_HONORIFIC = r"(?:(?:The|Mr|Mrs|Ms|Dr|Prof)\.?\s)?"
NAME = re.compile(
    rf"{_HONORIFIC}{_PART}(?:\s(?:(?:{either(_SMALL_PARTS)})\s){{0,2}}{_PART}){{0,3}}"
)
"""Up to four words with capitals, perhaps with a small one in between."""


def name_at(text: str, position: int) -> str:
    """Return the name that begins at a position; empty if there is none."""
    match = NAME.match(text, position)
    if match is None:
        return ""
    name = _without_others(match[0])
    return name if is_name(name) else ""


def is_name(text: str) -> bool:
    """Whether it can be a name: a capital first, and no word that all sentences begin with."""
    first = re.sub(_HONORIFIC, "", text, count=1).split(maxsplit=1)[:1]
    if not first or first[0].lower().strip("'\u2019") in NO_NAMES:
        return False
    return not first[0][0].islower()


def _without_others(name: str) -> str:
    """Leave out possessives and words that begin something else."""
    kept: list[str] = []
    for part in name.split():
        if kept and not re.fullmatch(_HONORIFIC, f"{kept[-1]} ") and _begins_anew(part):
            break
        kept.append(part)
        if part.endswith(("'s", "\u2019s")):
            break
    while kept and kept[-1] in _SMALL_PARTS:
        kept.pop()
    return re.sub(r"['\u2019]s\Z", "", " ".join(kept))


def _begins_anew(part: str) -> bool:
    if part in _SMALL_PARTS:
        return False
    return part[0].islower() or part.lower() in NO_NAMES


# ---------------------------------------------------------------- to the letter
Spans = list[tuple[int, int]]

PRONOUNS = words_of("pronouns")
_QUOTED = re.compile(
    r"`[^`\n]{1,400}`|\"[^\"\n]{1,400}\"|\u201c[^\u201d\n]{1,400}\u201d|\u00ab[^\u00bb\n]{1,400}\u00bb"
    r"|\u2039[^\u203a\n]{1,400}\u203a|\u201e[^\u201c\u201d\n]{1,400}[\u201c\u201d]"
    r"|\u300c[^\u300d\n]{1,400}\u300d|(?<!\w)['\u2018][^'\u2019\n]{2,200}['\u2019](?!\w)"
)
_CHUNK = re.compile(r"\S+")
_OUTSIDE = ".,;:!?()[]\"'*\u2026\u201c\u201d\u2018\u2019"
_CODE = re.compile(r"-+\w|.*\w[._/\\@=$~<>{}|+#%^&:]+\w|[./\\~$@#<].*\w|.*\w(?:\+\+|#)|\w*_\w*\Z")
_RUN_ON = re.compile(r"\w(?:\.{2,}|[,;:!?])(?i:i|my|me|we|our|us|you|your)\b")
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_SMALL = r"(?:(?:a|an|the|of|by|in|on|at|to|for|and|or|with|from)\s){0,2}"
_TITLE = re.compile(
    rf"(?<![\w'\u2019])[A-Z][\w'\u2019]{{0,30}}(?:\s{_SMALL}[A-Z][\w'\u2019]{{0,30}}){{1,8}}"
)
_NUMBERED = any_case(
    r"\b(?:War|Part|Type|Chapter|Phase|Level|Tier|Class|Act|Volume|Book|Grade|Stage|Division"
    r"|Schedule|Title|Article|Category|Element|Episode|Season)\s\Z"
)
_AFTER_NUMERAL = re.compile(
    r"\s*(?:\Z|[,.;:!?)]|(?:is|was|are|were|and|or|of|in|on|at|from|by|to|as|than|with)\b)"
)
_CAPITAL_BEFORE = re.compile(r"(?<![\w'\u2019])[A-Z][\w'\u2019]{0,30}\s\Z")
_JOINS = any_case(
    r"(?:\A|[,;:.!?(]\s*|\b(?:and|but|so|because|when|while|that|if|as|since|where|what|how|then"
    r"|until|before|after)\s)\Z"
)
_TITLED = re.compile(r"\s[A-Z][a-z]")
_TITLED_TWICE = any_case(rf"\s(?!(?:{either(FAMILY | PEOPLE | PETS | THINGS)})\b)")
_TWO_TITLED = re.compile(r"\s[A-Z][a-z]+\s[A-Z][a-z]")


def verbatim(text: str) -> Spans | None:
    """Return what has to stay as it is written; None if a word may be a name or a pronoun."""
    kept = [match.span() for match in _QUOTED.finditer(text)]
    kept += [_inside(match) for match in _CHUNK.finditer(text) if _is_code(match[0])]
    if _RUN_ON.search(text):
        return None
    titles = [match.span() for match in _TITLE.finditer(text)]
    for match in _WORD.finditer(text):
        if match[0].lower().replace("\u2019", "'") not in PRONOUNS or is_in(match.start(), kept):
            continue
        named = _is_named(text, match, titles)
        if named is None:
            return None
        if named:
            kept.append(match.span())
    return sorted(kept)


def is_in(position: int, spans: Spans) -> bool:
    return any(begin <= position < finish for begin, finish in spans)


def _inside(match: re.Match[str]) -> tuple[int, int]:
    """Return where a chunk stands without the punctuation around it."""
    begin = match.start() + len(match[0]) - len(match[0].lstrip("([\"'*,;"))
    return begin, match.start() + len(match[0].rstrip(_OUTSIDE))


def _is_code(chunk: str) -> bool:
    return _CODE.match(chunk.lstrip("([\"'*,;").rstrip(_OUTSIDE)) is not None


def _is_named(text: str, word: re.Match[str], titles: Spans) -> bool | None:
    """Whether a pronoun is (part of) a name here; None if nobody can tell."""
    said, before, after = word[0], text[: word.start()], text[word.end() :]
    if said.lower() == "i":
        return said == "I" and _is_numeral(before, after, titles)
    if len(said) > 1 and said.isupper():
        return True if said == "US" else None
    if not said[0].isupper() or said.startswith(("I'", "I\u2019")):
        return False
    if not before.strip():
        return _begins_a_name(said, after)
    return True if is_in(word.start(), titles) else None


def _is_numeral(before: str, after: str, titles: Spans) -> bool | None:
    if _NUMBERED.search(before):
        return True
    if _TITLED.match(after):
        return None if _JOINS.search(before) else is_in(len(before), titles)
    return _CAPITAL_BEFORE.search(before) is not None and _AFTER_NUMERAL.match(after) is not None


def _begins_a_name(said: str, after: str) -> bool | None:
    """Whether what a statement begins with is a name: "My Chemical Romance", "You Me At Six"."""
    if said in {"My", "Our", "Your"}:
        doubtful = _TWO_TITLED.match(after) and _TITLED_TWICE.match(after)
    else:
        doubtful = _TITLED.match(after)
    return None if doubtful else False


# ---------------------------------------------------------------- the third person
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
