"""Contradictions between instruction files and statements that the user made later.

The check is conservative: a line that it names is contradicted.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from perdure.engine.instruction_lines import InstructionLine, Instructions, is_limited
from perdure.engine.learn.judge import Agreement, change_in, compare, outdates, plain_words
from perdure.engine.learn.slugs import words_of
from perdure.patterns import later

_NEGATIONS = words_of("negations") | {"don't", "dont", "avoid"}
_SPARE = words_of("stop") | words_of("verbs")
_EMPHATIC = later(
    r"^(?:always|please|important:|note:|remember:?|from now on,?)\s+"
    r"|\s+(?:now|from now on)(?=[.!]?$)",
    re.IGNORECASE,
)
_NAMED_VALUE = later(r"^([\w -]{3,40}):\s+(?=\S)")
"""`Line length: 80` is read as "Line length is 80"."""
_ORDERS = frozenset({"use", "run", "install", "prefer"})
_MOST_OTHER = 4
"""The most words of a line that a text that contradicts it does not have."""
_FEWEST = 2
"""The fewest words that two orders have, apart from a number."""
_LONGEST_CHANGE = 12
"""Words. A longer text does not name one thing that replaced another."""


class Contradictions:
    """Finds the sentences of instruction files that a statement contradicts."""

    def __init__(self, instructions: Instructions) -> None:
        self._instructions = instructions
        self._first: defaultdict[str, set[int]] = defaultdict(set)
        self._any: defaultdict[str, set[int]] = defaultdict(set)
        """The indexes of the sentences that begin with a word, and of those that have it."""
        self._words: list[frozenset[str]] = []
        for at, (_, line) in enumerate(instructions.dated):
            words = plain_words(_bare(line.text))
            self._words.append(frozenset(words))
            self._first[_first_of(words)].add(at)
            for word in words:
                self._any[word].add(at)

    def line(self, text: str, date: datetime, newer: Sequence[str] = ()) -> InstructionLine | None:
        """Return the first sentence that a later statement contradicts; None if it is not certain.

        It is None if a sentence says the same, or if a newer statement contradicts this one.
        """
        for at in sorted(self._candidates(text)):
            changed, line = self._instructions.dated[at]
            if changed < date and contradicts(line.text, text):
                is_revoked = any(contradicts(text, each) for each in _alike(text, newer))
                return None if is_revoked or self._instructions.cover(text) else line
        return None

    def _candidates(self, text: str) -> set[int]:
        given = plain_words(_bare(text))
        words = frozenset(given)
        near = {
            at
            for at in self._first.get(_first_of(given), ())
            if max(len(words - self._words[at]), len(self._words[at] - words)) <= _MOST_OTHER
        }
        change = change_in(text) if len(given) <= _LONGEST_CHANGE else None
        return near.union(*(self._any.get(word, ()) for word in (change.old if change else ())))


def _alike(text: str, others: Sequence[str]) -> list[str]:
    """Return the texts that begin with the same word, or name a change."""
    first = _first_of(plain_words(_bare(text)))
    return [each for each in others if first in plain_words(_bare(each))[:3] or change_in(each)]


def contradicts(line: str, text: str) -> bool:
    """Whether a newer text contradicts a line."""
    old, new = _bare(line), _bare(text)
    variants = {old, _NAMED_VALUE.sub(r"\1 is ", old)}
    if any(compare(each, new).agreement is Agreement.CONTRADICTS for each in variants):
        return True
    words = plain_words(old)
    if _has_other_number(words, plain_words(new)):
        return True
    if not words or _NEGATIONS & {*words} or is_limited(old) or not _replaces_one_thing(new):
        return False
    certain = outdates(new, old)
    return certain is True or (certain is False and words[0] in _ORDERS)


def _bare(text: str) -> str:
    return _EMPHATIC.sub("", text.replace("`", "").replace(", never ", ", not ").strip())


def _first_of(words: Sequence[str]) -> str:
    return next((word for word in words if word not in _NEGATIONS), "")


def _replaces_one_thing(text: str) -> bool:
    """Whether a short text names one word that replaced another one."""
    change = change_in(text)
    if change is None or len(text.split()) > _LONGEST_CHANGE:
        return False
    came, gone = ({*each} - _SPARE for each in change)
    return len(came) == len(gone) == 1


def _has_other_number(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two orders to use something differ only by one number."""
    pairs = [each for each in zip(words, others, strict=False) if each[0] != each[1]]
    is_one = len(words) == len(others) > _FEWEST and len(pairs) == 1
    return is_one and words[0] in {"use", "prefer"} and all(map(str.isdigit, pairs[0]))
