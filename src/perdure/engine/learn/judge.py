"""Whether two statements say the same, contradict each other, or may both stand.

The judge is conservative. Two statements are the same only if they have the same words, but for
case, marks, articles and the person of a verb. They contradict each other only in forms that have
one value at a time. Everything else is different, and both are kept.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from functools import cache, lru_cache

from perdure.engine.learn.slugs import lines_of, words_of

MAX_STATEMENT = 2000
"""Longer texts, in characters, are the same only word for word."""
_MOST_WORDS = 3
"""Words of a value, and words of each statement without a partner that a model may judge."""


class Verdict(Enum):
    SAME = "same"
    DIFFERENT = "different"
    CONTRADICTS = "contradicts"


@dataclass(frozen=True, slots=True)
class Comparison:
    verdict: Verdict
    reason: str
    """A short sentence that names what decided."""
    similarity: float
    """The share of words that both statements have, from 0 to 1. It decides nothing."""
    only_words: bool = False
    """They differ by plain words only: no number, name, identifier, negation or order."""


Judge = Callable[[str, str], Comparison]
"""Says what two statements are to each other, an older one and a newer one."""


def compare(old: str, new: str) -> Comparison:
    """Judge two short statements, the same way in either order.

    SAME: one of them is enough. CONTRADICTS: they say of one subject what can't both hold.
    DIFFERENT: everything else. Every text has an answer.
    """
    if old == new:
        return Comparison(Verdict.SAME, "The texts are the same.", 1.0)
    if max(len(old), len(new)) > MAX_STATEMENT:
        same = old.split() == new.split()
        verdict = Verdict.SAME if same else Verdict.DIFFERENT
        return Comparison(verdict, "Long texts are compared word for word.", float(same))
    first, second = map(_words, sorted((old, new)))
    likeness = SequenceMatcher(None, first, second, autojunk=False).ratio()
    if first and first == second:
        return Comparison(Verdict.SAME, "The words are the same.", likeness)
    if reason := _contradiction(first, second):
        return Comparison(Verdict.CONTRADICTS, reason, likeness)
    one, other = _apart(first, second)
    reason = f'Only one has "{" ".join((*one, *other))[:60]}".'
    plain = _is_plain((first, second), (one, other), (_names(old), _names(new)))
    return Comparison(Verdict.DIFFERENT, reason, likeness, plain)


# ---------------------------------------------------------------- words
_TOKEN = re.compile(
    r"`[^`\n]+`|\w+@[\w.-]+|https?://[^\s)]+|-?\d[\d.,:/-]*\d|-\d|--?[a-z][\w-]*|[\w][\w./:#+@-]*[\w#+]"
    r"|[\w#+]+|'s\b|[<>=\u2264\u2265%$\u20ac\u00a3?~^*&|\\]"
)
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)", re.IGNORECASE)
_PREPOSITIONS = frozenset(
    (  # noqa: SIM905 - lines, not a column
        "in at on for of with by to as into from after before until since over under when than "
        "but or and about without not never no only if while because"
    ).split()
)
_CONTRACTED = re.compile(r"(?<=\w)n['\u2019]t\b|\b(?:dont|doesnt|isnt|cant)\b", re.IGNORECASE)
_SHORT = re.compile(r"\b(i|you|we|they|it|he|she|that|there)['\u2019](m|re|s)\b", re.IGNORECASE)
_USER = re.compile(r"\A(?:the )?user(?=\s(?!['\u2019]))|\A(?:i|we)(?=\s)", re.IGNORECASE)
_CEASED = re.compile(r"\bno longer ", re.IGNORECASE)
_BE = {"m": "am", "re": "are", "s": "is"}
_NUMBERS = dict(
    zip(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
        map(str, range(1, 11)),
        strict=True,
    )
)


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    """Return the words that count, in one form: names and identifiers to the letter."""
    text = _SHORT.sub(lambda found: f"{found[1]} {_BE[found[2].lower()]}", text)
    text = _CEASED.sub("not ", _USER.sub("", _CONTRACTED.sub(_expanded, text.strip())))
    found = [_plain(each) for each in _TOKEN.findall(text)]
    kept = [each for each in found if each not in _light()]
    for at, word in enumerate(kept):
        after = kept[at + 1] if at + 1 < len(kept) else ""
        if word in {"do", "does"} and after == "not":
            kept[at] = ""
        if word in {"moved", "relocated"} and after == "to":
            kept[at : at + 2] = ["live", "in"]
    return tuple(each for each in kept if each)


def plain_words(text: str) -> tuple[str, ...]:
    """Return the words of a text that count, each in one form."""
    return _words(text)


def _expanded(found: re.Match[str]) -> str:
    whole = {"dont": "do not", "doesnt": "does not", "isnt": "is not", "cant": "can not"}
    return whole.get(found[0].lower(), " not")


def _plain(token: str) -> str:
    """Return a word in its one form; code, acronyms and other identifiers to the letter."""
    bare = token.strip("`")
    word = bare.casefold()
    if token.startswith("`") or (bare.isupper() and len(bare) > 1 and word not in _negations()):
        return bare
    if not bare.replace("'", "").isalpha():
        return _ORDINAL.sub(r"\1", bare.rstrip(".:")) if bare[0].isdigit() else bare.rstrip(".:")
    for end in ("s", "es"):
        if word.endswith(end) and word.removesuffix(end) in _verbs():
            word = word.removesuffix(end)
    word = {"are": "is", "am": "is", "has": "have"}.get(word, _NUMBERS.get(word, word))
    return _synonyms().get(word, word)


@cache
def _synonyms() -> dict[str, str]:
    lines = (line.split() for line in lines_of("synonyms"))
    return {word: line[0] for line in lines for word in line}


@cache
def _light() -> frozenset[str]:
    return words_of("light")


@cache
def _verbs() -> frozenset[str]:
    return words_of("verbs")


@cache
def _negations() -> frozenset[str]:
    return words_of("negations")


# ---------------------------------------------------------------- contradictions
def _contradiction(  # noqa: PLR0911 - one form after the other
    first: Sequence[str], second: Sequence[str]
) -> str | None:
    """Return how the two contradict each other, in a sentence; in doubt, None."""
    no = _negations()
    bare = [tuple(word for word in each if word not in no) for each in (first, second)]
    denied = [len(each) - len(left) for each, left in zip((first, second), bare, strict=True)]
    if bare[0] == bare[1] and len(bare[0]) > 1 and sorted(denied) == [0, 1]:
        return "One says it, the other denies it."
    if turned := _turned(first, second):
        return turned
    if _feelings(first, second):
        return "One likes what the other does not."
    if any(denied):
        return None
    lead, one, other, tail = _middle(first, second)
    if not lead or not 0 < len(one) <= _MOST_WORDS or not 0 < len(other) <= _MOST_WORDS:
        return None
    if _PREPOSITIONS & {*one, *other}:
        return None  # a value that holds for something only
    if sorted(one) == sorted(other) or _PAST.match(lead[0]) or _digits(one) & _digits(other):
        return None  # an order of words, an event, or a number that is written in two ways
    if _is_one_of_a_line(one, other) or _is_single(lead, one, other, tail):
        return f'One says "{" ".join(one)}", the other "{" ".join(other)}".'
    return None


def _middle(
    first: Sequence[str], second: Sequence[str]
) -> tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]]:
    """Return what both begin with, what each has in the middle, and what both end with."""
    head = 0
    while head < min(len(first), len(second)) and first[head] == second[head]:
        head += 1
    tail = 0
    while tail < min(len(first), len(second)) - head and first[-1 - tail] == second[-1 - tail]:
        tail += 1
    end = len(first) - tail
    return first[:head], first[head:end], second[head : len(second) - tail], first[end:]


def _turned(first: Sequence[str], second: Sequence[str]) -> str | None:
    """Return whether the two sides of a preference have changed places."""
    old, new = _sides(first), _sides(second)
    if old is None or new is None or old == new:
        return None
    turned = (old[0], old[1], old[2]) == (new[0], new[2], new[1])
    return "What is preferred over what is turned around." if turned else None


def _sides(words: Sequence[str]) -> tuple[tuple[str, ...], ...] | None:
    said = tuple(words)
    for over in ("over", "to"):
        if "prefer" in said and over in said[said.index("prefer") :]:
            verb, at = said.index("prefer"), said.index(over, said.index("prefer"))
            return said[:verb], said[verb + 1 : at], said[at + 1 :]
    return None


def _feelings(first: Sequence[str], second: Sequence[str]) -> bool:
    old, new = _feeling(first), _feeling(second)
    return old is not None and new is not None and old[1:] == new[1:] and old[0] != new[0]


def _feeling(words: Sequence[str]) -> tuple[bool, tuple[str, ...], tuple[str, ...]] | None:
    good, bad = words_of("good"), words_of("bad")
    for at, word in enumerate(words[:3]):
        if word in good | bad:
            denied = at > 0 and words[at - 1] == "not"
            before = tuple(words[: at - 1 if denied else at])
            return (word in good) is not denied, before, tuple(words[at + 1 :])
    return None


def _digits(words: Sequence[str]) -> set[str]:
    joined = " ".join(words).casefold().replace(",", "")
    return set(re.findall(r"\d+(?:\.\d+)*", re.sub(r"(?<=\d)k\b", "000", joined)))


@cache
def _lines() -> list[frozenset[str]]:
    return [frozenset(line.split()) for line in lines_of("exclusive")]


def line_of_word(word: str) -> list[str]:
    """Return the words of which one holds at a time, with a given one."""
    return sorted(other for line in _lines() if word in line for other in line)


def same_line(one: str, other: str) -> bool:
    """Whether two words are of those of which one holds at a time: npm and pnpm."""
    return one != other and any(one in line and other in line for line in _lines())


def _is_one_of_a_line(one: Sequence[str], other: Sequence[str]) -> bool:
    return len(one) == len(other) == 1 and same_line(one[0], other[0])


_PAST = re.compile(r"\w{2,}ed\b|went\b|met\b|bought\b")
_VALUE = re.compile(r"v?\d[\w.,:/-]*%?|[a-z]+\d+", re.IGNORECASE)


def _is_single(
    lead: Sequence[str], one: Sequence[str], other: Sequence[str], tail: Sequence[str]
) -> bool:
    """Whether the words before a value are of something that has one value."""
    ends = [tuple(line.split()) for line in lines_of("single")]
    if not tail and any(tuple(lead[-len(end) :]) == end for end in ends):
        alike = bool(_VALUE.fullmatch(one[0])) is bool(_VALUE.fullmatch(other[0]))
        return alike and (len(lead) > 1 or lead[0] == "live")
    if len(lead) > 1 and lead[-1] == "is" and not tail and _attributes() & set(lead[:-1]):
        return True
    numbers = bool(_VALUE.fullmatch(one[0]) and _VALUE.fullmatch(other[0]))
    said = any(word == "is" or word in _verbs() for word in lead)
    return numbers and said and one[1:] == other[1:] and len(lead) > 1


@cache
def _attributes() -> frozenset[str]:
    return words_of("attributes")


_FEWEST = 3
_SPARE = frozenset({"instead", "rather", "always", "repository", "repo", "project"})


def is_rewording(one: str, other: str) -> bool:
    """Whether one of two texts has all that matters of the other, and no other sign or number.

    That is less than the same; it counts only where something else says that they are one.
    """
    first, second = ({_stemmed(w) for w in _words(each)} - _spare() for each in (one, other))
    shorter, longer = sorted((first, second), key=len)
    if len(shorter) < _FEWEST or not shorter <= longer:
        return False
    apart = longer - shorter
    fixed = _negations().union(*_lines())
    return fixed.isdisjoint(apart) and not any(any(map(str.isdigit, word)) for word in apart)


@cache
def _spare() -> frozenset[str]:
    return (words_of("stop") | _SPARE) - _negations()


def _stemmed(word: str) -> str:
    return next(
        (word.removesuffix(e) for e in ("ing", "ed", "s") if word[5:] and word.endswith(e)), word
    )


# ---------------------------------------------------------------- what a model may judge
def _apart(first: Sequence[str], second: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of each that the other has not."""
    one, other = list(first), list(second)
    for word in first:
        if word in other:
            one.remove(word)
            other.remove(word)
    return one, other


def _is_plain(
    said: tuple[Sequence[str], ...],
    alone: tuple[Sequence[str], ...],
    names: tuple[Sequence[str], ...],
) -> bool:
    """Whether two statements differ by a few plain words only, so that a model may know better."""
    more = [*alone[0], *alone[1]]
    if not all(alone) or max(map(len, alone)) > _MOST_WORDS or names[0] != names[1]:
        return False
    if any(word in _negations() for each in said for word in each):
        return False
    if _has_past(alone[0]) != _has_past(alone[1]):
        return False
    if any(a in {f"un{b}", f"dis{b}", f"in{b}", f"non{b}"} for a in more for b in more):
        return False
    fixed = _limits().union(*_lines(), words_of("opposites"), words_of("good"), words_of("bad"))
    stems = {word.removesuffix(end) for word in more for end in ("", "s", "es", "d", "ed", "ing")}
    return fixed.isdisjoint(stems) and all(word.isalpha() and word.isascii() for word in more)


@cache
def _limits() -> frozenset[str]:
    return words_of("limits")


_IRREGULAR = re.compile(
    r"taught|went|met|bought|got|had|was|were|did|made|took|gave|saw|wrote|ran|came"
)


def _has_past(words: Sequence[str]) -> bool:
    return any(word.endswith("ed") or _IRREGULAR.fullmatch(word) for word in words)


def _names(text: str) -> list[str]:
    """Return what may be names, numbers or identifiers, in their order, to the letter."""
    found = _TOKEN.findall(text)
    return [
        token
        for at, token in enumerate(found)
        if not (token.islower() and token.isalpha())
        and token.casefold() not in _light()
        and not (at == 0 and (token.isascii() and _plain(token) in _verbs() | {"user"}))
    ]
